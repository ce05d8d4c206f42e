/* Binding to the implementation of MPI that this file is compiled with. */
#define _POSIX_C_SOURCE 200809L
#include "divi_mpi.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif
#if defined(OMPI_HAVE_MPI_EXT_FTMPI) && OMPI_HAVE_MPI_EXT_FTMPI
#define HAS_FAULT_TOLERANCE 1
#else
#define HAS_FAULT_TOLERANCE 0
#endif

/* Counts of MPI are of type int, so that a message of more bytes than this is sent in parts. Tests use small parts. */
#ifndef PART
#define PART ((uint64_t)1 << 30)
#endif

/* Communicator. It is freed by finalize only: operations on a revoked one may be in progress. */
struct divi_mpi_communicator {
  MPI_Comm comm;
};

/* Operation: the requests of the parts of a message. */
struct divi_mpi_operation {
  MPI_Comm comm;
  /* Peer, or -1 for a collective operation. */
  int64_t peer;
  int64_t tag;
  int is_receive;
  int is_agreement;
  /* Flags of an agreement. */
  int flags;
  /* First error of a part. It is reported when all parts have ended, so that the memory of the message is free then. */
  int error;
  uint64_t bytes;
  /* Bytes of the parts that are complete. */
  uint64_t complete;
  size_t parts;
  /* Number of the first part that is not complete. */
  size_t next;
  MPI_Request requests[];
};

static char last_message[MPI_MAX_ERROR_STRING + 64];

static int64_t write_text(char *text, size_t bytes, const char *source) {
  if (bytes > 0) {
    snprintf(text, bytes, "%s", source);
  }
  return 0;
}

/* Notes a failure. Returns its status. */
static int64_t fail(MPI_Comm comm, int code, int64_t peer, struct divi_mpi_envelope *envelope) {
  int length = 0, class = MPI_ERR_OTHER;
  if (MPI_Error_string(code, last_message, &length) != MPI_SUCCESS) {
    snprintf(last_message, sizeof last_message, "error %d", code);
  }
  MPI_Error_class(code, &class);
  if (envelope != NULL) {
    envelope->rank = peer;
  }
  if (class == MPI_ERR_TRUNCATE) {
    return DIVI_MPI_TOO_LONG;
  }
#if HAS_FAULT_TOLERANCE
  if (class == MPIX_ERR_REVOKED) {
    return DIVI_MPI_REVOKED;
  }
  if (class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_PROC_FAILED_PENDING) {
    if (envelope != NULL && peer < 0) {
      MPI_Group all, failed;
      int first = 0, rank = -1;
      MPIX_Comm_failure_ack(comm);
      MPIX_Comm_failure_get_acked(comm, &failed);
      MPI_Group_size(failed, &rank);
      if (rank > 0) {
        MPI_Comm_group(comm, &all);
        MPI_Group_translate_ranks(failed, 1, &first, all, &rank);
        MPI_Group_free(&all);
        envelope->rank = rank;
      }
      MPI_Group_free(&failed);
    }
    return DIVI_MPI_PEER_FAILED;
  }
#endif
  (void)comm;
  return DIVI_MPI_FAILED;
}

/* Makes a communicator whose errors are returned instead of ending the job. */
static int64_t wrap(MPI_Comm comm, struct divi_mpi_communicator **communicator) {
  int code = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (code != MPI_SUCCESS) {
    return fail(comm, code, -1, NULL);
  }
  struct divi_mpi_communicator *made = malloc(sizeof *made);
  if (made == NULL) {
    snprintf(last_message, sizeof last_message, "there is not enough memory for a communicator");
    return DIVI_MPI_FAILED;
  }
  made->comm = comm;
  *communicator = made;
  return 0;
}

static int64_t initialize(struct divi_mpi_communicator **communicator) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Comm comm = MPI_COMM_NULL;
  *communicator = NULL;
#if HAS_FAULT_TOLERANCE
  /* After the death of a rank, the fence at the end of MPI_Finalize sometimes waits forever (Open MPI 5.0.11). Ranks agree on the
   * end of the job before they leave. */
  if (getenv("OMPI_MCA_mpi_ft_enable") != NULL) {
    setenv("OMPI_MCA_async_mpi_finalize", "1", 0);
  }
#endif
  int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
  if (code != MPI_SUCCESS) {
    return fail(MPI_COMM_SELF, code, -1, NULL);
  }
  if (provided < MPI_THREAD_SERIALIZED) {
    snprintf(last_message, sizeof last_message, "the library supports one thread only (MPI_THREAD_SERIALIZED is needed)");
    return DIVI_MPI_FAILED;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  code = MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  return code == MPI_SUCCESS ? wrap(comm, communicator) : fail(MPI_COMM_WORLD, code, -1, NULL);
}

static int64_t own_rank(struct divi_mpi_communicator *communicator) {
  int rank = 0;
  int code = MPI_Comm_rank(communicator->comm, &rank);
  return code == MPI_SUCCESS ? rank : fail(communicator->comm, code, -1, NULL);
}

static int64_t job_size(struct divi_mpi_communicator *communicator) {
  int size = 0;
  int code = MPI_Comm_size(communicator->comm, &size);
  return code == MPI_SUCCESS ? size : fail(communicator->comm, code, -1, NULL);
}

static int64_t max_tag(struct divi_mpi_communicator *communicator) {
  int *value = NULL, is_set = 0;
  int code = MPI_Comm_get_attr(communicator->comm, MPI_TAG_UB, &value, &is_set);
  if (code != MPI_SUCCESS) {
    return fail(communicator->comm, code, -1, NULL);
  }
  /* The standard guarantees 32767. */
  return is_set ? *value : 32767;
}

static int64_t library(char *text, size_t bytes) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  int code = MPI_Get_library_version(version, &length);
  if (code != MPI_SUCCESS) {
    return fail(MPI_COMM_SELF, code, -1, NULL);
  }
  /* The first line has name and version. */
  version[strcspn(version, "\n,")] = '\0';
  return write_text(text, bytes, version);
}

static struct divi_mpi_operation *allocate(MPI_Comm comm, int64_t peer, int64_t tag, int is_receive, uint64_t bytes) {
  size_t parts = bytes == 0 ? 1 : (size_t)((bytes + PART - 1) / PART);
  struct divi_mpi_operation *operation = calloc(1, sizeof *operation + parts * sizeof(MPI_Request));
  if (operation == NULL) {
    snprintf(last_message, sizeof last_message, "there is not enough memory for a message");
    return NULL;
  }
  operation->comm = comm;
  operation->peer = peer;
  operation->tag = tag;
  operation->is_receive = is_receive;
  operation->bytes = bytes;
  operation->parts = parts;
  operation->error = MPI_SUCCESS;
  return operation;
}

static int64_t start(MPI_Comm comm, int64_t peer, int64_t tag, char *data, uint64_t bytes, int is_receive,
                     struct divi_mpi_operation **operation) {
  struct divi_mpi_operation *made = allocate(comm, peer, tag, is_receive, bytes);
  *operation = made;
  if (made == NULL) {
    return DIVI_MPI_FAILED;
  }
  for (size_t part = 0; part < made->parts; part++) {
    uint64_t offset = part * PART, left = bytes - offset;
    int count = (int)(left < PART ? left : PART);
    int code = is_receive
                   ? MPI_Irecv(data + offset, count, MPI_BYTE, (int)peer, (int)tag, comm, &made->requests[part])
                   : MPI_Isend(data + offset, count, MPI_BYTE, (int)peer, (int)tag, comm, &made->requests[part]);
    if (code != MPI_SUCCESS && part == 0) {
      struct divi_mpi_envelope envelope;
      free(made);
      *operation = NULL;
      return fail(comm, code, peer, &envelope);
    }
    if (code != MPI_SUCCESS) {
      made->error = code;
      made->parts = part;
    }
  }
  return 0;
}

static int64_t start_send(struct divi_mpi_communicator *communicator, int64_t to, int64_t tag, const void *data,
                          uint64_t bytes, struct divi_mpi_operation **operation) {
  return start(communicator->comm, to, tag, (char *)data, bytes, 0, operation);
}

static int64_t start_receive(struct divi_mpi_communicator *communicator, int64_t from, int64_t tag, void *data,
                             uint64_t bytes, struct divi_mpi_operation **operation) {
  return start(communicator->comm, from, tag, data, bytes, 1, operation);
}

/* Returns true for errors of operations that a failed rank takes part in. */
static int is_failure_of_rank(int code) {
#if HAS_FAULT_TOLERANCE
  int class = MPI_ERR_OTHER;
  MPI_Error_class(code, &class);
  return class == MPIX_ERR_PROC_FAILED;
#else
  (void)code;
  return 0;
#endif
}

static int64_t test(struct divi_mpi_operation *operation, struct divi_mpi_envelope *envelope) {
  while (operation->next < operation->parts) {
    MPI_Status status;
    int is_complete = 0, count = 0;
    int code = MPI_Test(&operation->requests[operation->next], &is_complete, &status);
    if (code == MPI_SUCCESS && !is_complete) {
      return 0;
    }
    operation->next++;
    if (code != MPI_SUCCESS) {
      operation->error = operation->error == MPI_SUCCESS ? code : operation->error;
      continue;
    }
    if (operation->is_receive) {
      MPI_Get_count(&status, MPI_BYTE, &count);
      operation->complete += (uint64_t)count;
      if (count == 0 && operation->next == 1 && operation->parts > 1) {
        /* An empty message has one part only: the other receive operations match nothing. */
        for (size_t part = 1; part < operation->parts; part++) {
          MPI_Cancel(&operation->requests[part]);
          MPI_Request_free(&operation->requests[part]);
        }
        operation->next = operation->parts;
      }
    } else {
      operation->complete = operation->bytes;
    }
  }
  /* An agreement is reached without the ranks that have failed. */
  if (operation->error != MPI_SUCCESS && !(operation->is_agreement && is_failure_of_rank(operation->error))) {
    MPI_Comm comm = operation->comm;
    int64_t peer = operation->peer;
    int code = operation->error;
    free(operation);
    return fail(comm, code, peer, envelope);
  }
  envelope->rank = operation->peer;
  envelope->tag = operation->tag;
  envelope->bytes = operation->is_agreement ? (uint64_t)operation->flags : operation->complete;
  free(operation);
  return 1;
}

static int64_t probe(struct divi_mpi_communicator *communicator, int64_t tag, struct divi_mpi_envelope *envelope) {
  MPI_Status status;
  int has_arrived = 0, count = 0;
  int code = MPI_Iprobe(MPI_ANY_SOURCE, tag < 0 ? MPI_ANY_TAG : (int)tag, communicator->comm, &has_arrived, &status);
  if (code != MPI_SUCCESS) {
    return fail(communicator->comm, code, -1, envelope);
  }
  if (has_arrived) {
    MPI_Get_count(&status, MPI_BYTE, &count);
    envelope->rank = status.MPI_SOURCE;
    envelope->tag = status.MPI_TAG;
    envelope->bytes = (uint64_t)count;
  }
  return has_arrived;
}

static int64_t all_gather(struct divi_mpi_communicator *communicator, const void *own, void *all, uint64_t bytes,
                          struct divi_mpi_operation **operation) {
  *operation = NULL;
  if (bytes > INT_MAX) {
    snprintf(last_message, sizeof last_message, "a record of %llu bytes is too long", (unsigned long long)bytes);
    return DIVI_MPI_FAILED;
  }
  struct divi_mpi_operation *made = allocate(communicator->comm, -1, 0, 0, 0);
  if (made == NULL) {
    return DIVI_MPI_FAILED;
  }
  int code = MPI_Iallgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, communicator->comm, &made->requests[0]);
  if (code != MPI_SUCCESS) {
    free(made);
    return fail(communicator->comm, code, -1, NULL);
  }
  *operation = made;
  return 0;
}

#if HAS_FAULT_TOLERANCE
/* The launcher enables fault tolerance by a control variable of the library (`mpirun --with-ft ulfm`). */
static int64_t can_recover(void) {
  int provided = MPI_THREAD_SINGLE, index = -1, count = 0;
  char is_enabled[8] = {0};
  MPI_T_cvar_handle handle;
  if (MPI_T_init_thread(MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) {
    return 0;
  }
  if (MPI_T_cvar_get_index("mpi_ft_enable", &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS) {
    if (count != 1 || MPI_T_cvar_read(handle, is_enabled) != MPI_SUCCESS) {
      is_enabled[0] = 0;
    }
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
  return is_enabled[0] != 0;
}

static int64_t revoke(struct divi_mpi_communicator *communicator) {
  int code = MPIX_Comm_revoke(communicator->comm);
  return code == MPI_SUCCESS ? 0 : fail(communicator->comm, code, -1, NULL);
}

static int64_t agree(struct divi_mpi_communicator *communicator, int64_t flags, struct divi_mpi_operation **operation) {
  struct divi_mpi_operation *made = allocate(communicator->comm, -1, 0, 0, 0);
  *operation = NULL;
  if (made == NULL) {
    return DIVI_MPI_FAILED;
  }
  made->is_agreement = 1;
  made->flags = (int)flags;
  int code = MPIX_Comm_iagree(communicator->comm, &made->flags, &made->requests[0]);
  if (code != MPI_SUCCESS) {
    free(made);
    return fail(communicator->comm, code, -1, NULL);
  }
  *operation = made;
  return 0;
}

static int64_t shrink(struct divi_mpi_communicator *communicator, struct divi_mpi_communicator **survivors) {
  MPI_Comm comm = MPI_COMM_NULL;
  *survivors = NULL;
  int code = MPIX_Comm_shrink(communicator->comm, &comm);
  return code == MPI_SUCCESS ? wrap(comm, survivors) : fail(communicator->comm, code, -1, NULL);
}
#else
static int64_t can_recover(void) { return 0; }

static int64_t unsupported(void) {
  snprintf(last_message, sizeof last_message, "the library has no fault tolerance (ULFM)");
  return DIVI_MPI_FAILED;
}

static int64_t revoke(struct divi_mpi_communicator *communicator) {
  (void)communicator;
  return unsupported();
}

static int64_t agree(struct divi_mpi_communicator *communicator, int64_t flags, struct divi_mpi_operation **operation) {
  (void)communicator, (void)flags, (void)operation;
  return unsupported();
}

static int64_t shrink(struct divi_mpi_communicator *communicator, struct divi_mpi_communicator **survivors) {
  (void)communicator, (void)survivors;
  return unsupported();
}
#endif

static int64_t original_ranks(struct divi_mpi_communicator *communicator, int64_t *ranks) {
  MPI_Group own, world;
  int size = 0;
  int code = MPI_Comm_group(communicator->comm, &own);
  if (code != MPI_SUCCESS) {
    return fail(communicator->comm, code, -1, NULL);
  }
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_size(own, &size);
  for (int rank = 0; rank < size && code == MPI_SUCCESS; rank++) {
    int original = -1;
    code = MPI_Group_translate_ranks(own, 1, &rank, world, &original);
    ranks[rank] = original;
  }
  MPI_Group_free(&own);
  MPI_Group_free(&world);
  return code == MPI_SUCCESS ? 0 : fail(communicator->comm, code, -1, NULL);
}

static int64_t finalize(struct divi_mpi_communicator *communicator) {
  int code = MPI_Comm_free(&communicator->comm);
  free(communicator);
  if (code == MPI_SUCCESS) {
    code = MPI_Finalize();
  }
  return code == MPI_SUCCESS ? 0 : fail(MPI_COMM_SELF, code, -1, NULL);
}

static int64_t message(char *text, size_t bytes) { return write_text(text, bytes, last_message); }

const struct divi_mpi *divi_mpi_binding(void) {
  static const struct divi_mpi functions = {
      DIVI_MPI_VERSION, initialize, own_rank,   job_size, max_tag, can_recover, library,        start_send, start_receive,
      test,             probe,      all_gather, revoke,   agree,   shrink,      original_ranks, finalize,   message,
  };
  return &functions;
}
