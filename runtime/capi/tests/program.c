// Loads the bundle given as the argument, runs it twice, and prints the results.
#include "divi.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments) {
  divi_options options;
  memset(&options, 0, sizeof options);
  divi_runtime *runtime = divi_load(count > 1 ? arguments[1] : NULL, &options);
  if (!runtime) {
    printf("error: %s\n", divi_error());
    return 1;
  }
  divi_tensor input, output;
  if (divi_input(runtime, 0, &input) || divi_output(runtime, 0, &output))
    return 2;
  printf("%zu %zu %s %s %zu %llu %zu\n", divi_input_count(runtime), divi_output_count(runtime), input.name, input.type,
         input.rank, (unsigned long long)input.shape[0], output.bytes);
  if (divi_input(runtime, 1, &input) != -1)
    return 3;
  float *x = malloc(input.bytes), *y = malloc(output.bytes);
  divi_buffer in = {x, input.bytes}, out = {y, output.bytes};
  for (int round = 1; round <= 2; ++round) {
    for (size_t i = 0; i < input.shape[0]; ++i)
      x[i] = (float)(round * (int)i);
    if (divi_run(runtime, &in, 1, &out, 1))
      return 4;
    printf("%g\n", y[10]);
  }
  in.bytes = 4;
  if (divi_run(runtime, &in, 1, &out, 1) != -1)
    return 5;
  printf("error: %s\n", divi_error());
  if (divi_run(runtime, NULL, 0, &out, 1) != -1)
    return 6;
  printf("error: %s\n", divi_error());
  divi_free(runtime);
  free(x);
  free(y);
  return 0;
}
