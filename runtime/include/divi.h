/* Runs bundles that divi compiled. Link with libdivirun.so (cargo build -p divi-capi).
 *
 *   divi_runtime *runtime = divi_load("bundle", NULL);
 *   if (!runtime) { fprintf(stderr, "%s\n", divi_error()); exit(1); }
 *   divi_tensor input;
 *   divi_input(runtime, 0, &input);
 *   ...
 *   if (divi_run(runtime, inputs, 1, outputs, 1) != 0) fprintf(stderr, "%s\n", divi_error());
 *   divi_free(runtime);
 *
 * A runtime may be used by several threads at once. */
#ifndef DIVI_H
#define DIVI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct divi_runtime divi_runtime;

/* How to run a bundle. All zeros is as its plan has it. */
typedef struct {
  /* Threads of each device; 0 for what the plan says. */
  size_t threads;
  /* How many requests may be in flight; 0 for as many as is usual. */
  size_t in_flight;
} divi_options;

/* What an input or output of the model is: dense and row-major. It lives as long as the runtime. */
typedef struct {
  const char *name;
  /* As ONNX has it: "float", "int64". */
  const char *type;
  const uint64_t *shape;
  size_t rank;
  /* Of all its elements. */
  size_t bytes;
} divi_tensor;

typedef struct {
  void *data;
  size_t bytes;
} divi_buffer;

/* Loads the bundle in a folder. Options may be NULL. NULL if it cannot be loaded: see divi_error. */
divi_runtime *divi_load(const char *folder, const divi_options *options);

/* Ends what is running and gives everything back. NULL is nothing to free. */
void divi_free(divi_runtime *runtime);

size_t divi_input_count(const divi_runtime *runtime);
size_t divi_output_count(const divi_runtime *runtime);

/* Describes an input or output. -1 if there is none with this index. */
int divi_input(const divi_runtime *runtime, size_t index, divi_tensor *tensor);
int divi_output(const divi_runtime *runtime, size_t index, divi_tensor *tensor);

/* Runs the model on its inputs, in their order, and waits for all outputs, in theirs. 0 if all is well, else -1: see
 * divi_error. Inputs that begin at a multiple of 64 bytes are read where they are, others are copied once. */
int divi_run(divi_runtime *runtime, const divi_buffer *inputs, size_t input_count, const divi_buffer *outputs,
             size_t output_count);

/* Why this thread's last call failed. It is there until the thread's next call. */
const char *divi_error(void);

#ifdef __cplusplus
}
#endif

#endif
