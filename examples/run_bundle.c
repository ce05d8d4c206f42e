/* Loads a bundle, runs it on zeros and prints the first elements of each float output.
 *
 *   cc -Iruntime/include examples/run_bundle.c -Ltarget/debug -ldivirun -o run_bundle
 *   LD_LIBRARY_PATH=target/debug ./run_bundle BUNDLE
 */
#include "divi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what) {
  fprintf(stderr, "error: %s: %s\n", what, divi_error());
  return 1;
}

/* Allocates zeroed buffers for all inputs or outputs of a runtime. */
static divi_buffer *allocate(divi_runtime *runtime, size_t count, int (*describe)(const divi_runtime *, size_t, divi_tensor *)) {
  divi_buffer *buffers = calloc(count ? count : 1, sizeof *buffers);
  for (size_t i = 0; buffers && i < count; ++i) {
    divi_tensor tensor;
    if (describe(runtime, i, &tensor) != DIVI_OK)
      return NULL;
    buffers[i].data = calloc(tensor.bytes ? tensor.bytes : 1, 1);
    buffers[i].bytes = tensor.bytes;
    if (!buffers[i].data)
      return NULL;
  }
  return buffers;
}

static void release(divi_buffer *buffers, size_t count) {
  for (size_t i = 0; i < count; ++i)
    free(buffers[i].data);
  free(buffers);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: run_bundle BUNDLE\n");
    return 1;
  }
  divi_runtime *runtime = divi_load(argv[1], NULL);
  if (!runtime)
    return fail("cannot load the bundle");
  size_t input_count = divi_input_count(runtime), output_count = divi_output_count(runtime);
  divi_buffer *inputs = allocate(runtime, input_count, divi_input);
  divi_buffer *outputs = allocate(runtime, output_count, divi_output);
  if (!inputs || !outputs)
    return fail("cannot allocate the buffers");

  if (divi_run(runtime, inputs, input_count, outputs, output_count) != DIVI_OK)
    return fail("cannot run the bundle");
  for (size_t i = 0; i < output_count; ++i) {
    divi_tensor tensor;
    divi_output(runtime, i, &tensor);
    printf("%s:", tensor.name);
    const float *numbers = outputs[i].data;
    for (size_t j = 0; strcmp(tensor.type, "float") == 0 && j < 4 && j < tensor.bytes / sizeof *numbers; ++j)
      printf(" %.4f", numbers[j]);
    printf("\n");
  }

  release(inputs, input_count);
  release(outputs, output_count);
  divi_free(runtime);
  return 0;
}
