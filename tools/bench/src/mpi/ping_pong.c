// Prints the median time of a round trip of 1 MiB between two ranks in microseconds.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { SIZE = 1 << 20, RUNS = 2000 };
static int order(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char *sent = malloc(SIZE), *received = malloc(SIZE);
  memset(sent, 1, SIZE);
  memset(received, 1, SIZE);
  static double times[RUNS];
  for (int run = 0; run < RUNS; run++) {
    double start = MPI_Wtime();
    if (rank == 0) {
      MPI_Send(sent, SIZE, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(received, SIZE, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(received, SIZE, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(sent, SIZE, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    times[run] = (MPI_Wtime() - start) * 1e6;
  }
  qsort(times, RUNS, sizeof times[0], order);
  if (rank == 0) printf("%f\n", times[RUNS / 2]);
  MPI_Finalize();
}
