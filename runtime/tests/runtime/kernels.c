// Kernels of the tests' bundles. Buffers are floats; the first one is the result.
#include <stdint.h>
#include <time.h>

int add(float **buffers, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    buffers[0][i] = buffers[1][i] + buffers[2][i];
  return 0;
}

// Multiplies by the first number of the second operand.
int scale(float **buffers, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    buffers[0][i] = buffers[1][i] * buffers[2][0];
  return 0;
}

// Copies, with a millisecond per iteration.
int slow(float **buffers, int64_t begin, int64_t end) {
  struct timespec millisecond = {0, 1000000};
  for (int64_t i = begin; i < end; ++i) {
    nanosleep(&millisecond, 0);
    buffers[0][i] = buffers[1][i];
  }
  return 0;
}

// Squares; fails for negative numbers.
int root(float **buffers, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    if (buffers[1][i] < 0)
      return 3;
    buffers[0][i] = buffers[1][i] * buffers[1][i];
  }
  return 0;
}
