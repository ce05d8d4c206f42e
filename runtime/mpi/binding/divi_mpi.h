/* Interface between divi-mpi and a library that binds it to one implementation of MPI. The implementations have different ABIs,
 * so the library is built with the compiler wrapper of each; this interface is the same for all of them. It has integers,
 * pointers and sizes only.
 *
 * Functions return 0 or a positive value for success, and one of the negative statuses below for failure.
 */
#ifndef DIVI_MPI_H
#define DIVI_MPI_H

#include <stddef.h>
#include <stdint.h>

/* Version of this interface. */
#define DIVI_MPI_VERSION 2

/* An operation of MPI failed; `divi_mpi.message` describes it. */
#define DIVI_MPI_FAILED -1
/* A rank has failed, and `envelope->rank` is its number, or -1 if it is unknown. */
#define DIVI_MPI_PEER_FAILED -2
/* A message is longer than the receiver expects, and `envelope->rank` is its sender. */
#define DIVI_MPI_TOO_LONG -3
/* The communicator was revoked, because a rank has failed. */
#define DIVI_MPI_REVOKED -4

/* Rank, tag and size of a message. */
struct divi_mpi_envelope {
  int64_t rank;
  int64_t tag;
  uint64_t bytes;
};

/* Ranks that pass messages to each other. */
struct divi_mpi_communicator;

/* Operation in progress. */
struct divi_mpi_operation;

/* Functions of a binding. Calls are serialized by the caller. */
struct divi_mpi {
  uint64_t version;
  /* Initializes MPI, for use by one thread at a time. The communicator has all ranks of the job. */
  int64_t (*initialize)(struct divi_mpi_communicator **communicator);
  /* Returns the number of this rank, the number of ranks, and the largest tag. */
  int64_t (*rank)(struct divi_mpi_communicator *communicator);
  int64_t (*size)(struct divi_mpi_communicator *communicator);
  int64_t (*max_tag)(struct divi_mpi_communicator *communicator);
  /* Returns 1 if the library and the launcher let ranks continue after the failure of another one (ULFM), otherwise 0. */
  int64_t (*can_recover)(void);
  /* Writes the name and version of the library as NUL-terminated text of at most `bytes` bytes. */
  int64_t (*library)(char *text, size_t bytes);
  /* Starts an operation. */
  int64_t (*send)(struct divi_mpi_communicator *communicator, int64_t to, int64_t tag, const void *data, uint64_t bytes,
                  struct divi_mpi_operation **operation);
  int64_t (*receive)(struct divi_mpi_communicator *communicator, int64_t from, int64_t tag, void *data, uint64_t bytes,
                     struct divi_mpi_operation **operation);
  /* Returns 1 if the operation is complete. It is freed then, and after a failure. */
  int64_t (*test)(struct divi_mpi_operation *operation, struct divi_mpi_envelope *envelope);
  /* Returns 1 if a message has arrived that no receive operation matches; any tag if `tag` is negative. */
  int64_t (*probe)(struct divi_mpi_communicator *communicator, int64_t tag, struct divi_mpi_envelope *envelope);
  /* Starts to gather `bytes` bytes of each rank at all ranks. */
  int64_t (*all_gather)(struct divi_mpi_communicator *communicator, const void *own, void *all, uint64_t bytes,
                        struct divi_mpi_operation **operation);
  /* Ends the operations of all ranks on the communicator with DIVI_MPI_REVOKED, except for `agree` and `shrink`. */
  int64_t (*revoke)(struct divi_mpi_communicator *communicator);
  /* Starts to compute the bitwise and of the flags of all ranks that have not failed. `envelope->bytes` is the result. */
  int64_t (*agree)(struct divi_mpi_communicator *communicator, int64_t flags, struct divi_mpi_operation **operation);
  /* Makes a communicator of the ranks that have not failed, in the same order. Blocks until all of them call it. */
  int64_t (*shrink)(struct divi_mpi_communicator *communicator, struct divi_mpi_communicator **survivors);
  /* Writes the number that each rank of the communicator has in the communicator of `initialize`. */
  int64_t (*original_ranks)(struct divi_mpi_communicator *communicator, int64_t *ranks);
  /* Leaves MPI. Blocks until all ranks do. */
  int64_t (*finalize)(struct divi_mpi_communicator *communicator);
  /* Writes the description of the last failure, as `library` does. */
  int64_t (*message)(char *text, size_t bytes);
};

/* Returns the functions. The only symbol that is looked up. */
const struct divi_mpi *divi_mpi_binding(void);

#endif
