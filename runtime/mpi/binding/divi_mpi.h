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
#define DIVI_MPI_VERSION 1

/* An operation of MPI failed; `divi_mpi.message` describes it. */
#define DIVI_MPI_FAILED -1
/* A rank has failed, and `envelope->rank` is its number, or -1 if it is unknown. */
#define DIVI_MPI_PEER_FAILED -2
/* A message is longer than the receiver expects, and `envelope->rank` is its sender. */
#define DIVI_MPI_TOO_LONG -3

/* Rank, tag and size of a message. */
struct divi_mpi_envelope {
  int64_t rank;
  int64_t tag;
  uint64_t bytes;
};

/* Operation in progress. */
struct divi_mpi_operation;

/* Functions of a binding. Calls are serialized by the caller. */
struct divi_mpi {
  uint64_t version;
  /* Initializes MPI, for use by one thread at a time. */
  int64_t (*initialize)(void);
  /* Returns the number of this rank, the number of ranks, and the largest tag. */
  int64_t (*rank)(void);
  int64_t (*size)(void);
  int64_t (*max_tag)(void);
  /* Writes the name and version of the library as NUL-terminated text of at most `bytes` bytes. */
  int64_t (*library)(char *text, size_t bytes);
  /* Starts an operation. */
  int64_t (*send)(int64_t to, int64_t tag, const void *data, uint64_t bytes, struct divi_mpi_operation **operation);
  int64_t (*receive)(int64_t from, int64_t tag, void *data, uint64_t bytes, struct divi_mpi_operation **operation);
  /* Returns 1 if the operation is complete. It is freed then, and after a failure. */
  int64_t (*test)(struct divi_mpi_operation *operation, struct divi_mpi_envelope *envelope);
  /* Returns 1 if a message has arrived that no receive operation matches; any tag if `tag` is negative. */
  int64_t (*probe)(int64_t tag, struct divi_mpi_envelope *envelope);
  /* Starts to gather `bytes` bytes of each rank at all ranks. */
  int64_t (*all_gather)(const void *own, void *all, uint64_t bytes, struct divi_mpi_operation **operation);
  /* Leaves MPI. Blocks until all ranks do. */
  int64_t (*finalize)(void);
  /* Writes the description of the last failure, as `library` does. */
  int64_t (*message)(char *text, size_t bytes);
};

/* Returns the functions. The only symbol that is looked up. */
const struct divi_mpi *divi_mpi_binding(void);

#endif
