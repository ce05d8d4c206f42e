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
 * Requests may also run while the caller does something else:
 *
 *   divi_request *request = divi_submit(runtime, inputs, 1);
 *   ...
 *   if (divi_wait(request, 1000, outputs, 1) == DIVI_TIMEOUT) divi_cancel(request);
 *   divi_request_free(request);
 *
 * All functions may be called by several threads at once. Runtimes and requests are handles: one that is NULL, was freed or
 * never existed is an error (DIVI_INVALID), not undefined behaviour. */
#ifndef DIVI_H
#define DIVI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loaded bundle. */
typedef struct divi_runtime divi_runtime;

/* A request that was submitted. */
typedef struct divi_request divi_request;

/* What functions return. The message of an error is that of divi_error. */
enum divi_status {
  DIVI_OK = 0,
  /* The bundle, an argument or a kernel is wrong. */
  DIVI_ERROR = -1,
  /* The request is not done yet. */
  DIVI_TIMEOUT = -2,
  /* The request was cancelled before it was done. */
  DIVI_CANCELLED = -3,
  /* The handle is NULL, was freed or never existed. */
  DIVI_INVALID = -4,
  /* The runtime is being freed. */
  DIVI_CLOSED = -5
};

/* How to run a bundle. All zeros is as its plan has it. */
typedef struct {
  /* Threads of each device; 0 for what the plan says. */
  size_t threads;
  /* How many requests may be in flight; 0 for as many as is usual. */
  size_t in_flight;
  /* A folder that weights may be in beside the bundle's and its model's; NULL for none. */
  const char *allow_path;
  /* Not 0: weights are mapped instead of read, so that processes share them. If a file is truncated then, the process ends. */
  int map_weights;
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

/* Frees a runtime when the calls and requests that use it have ended; they are cancelled. NULL is nothing to free. */
void divi_free(divi_runtime *runtime);

size_t divi_input_count(const divi_runtime *runtime);
size_t divi_output_count(const divi_runtime *runtime);

/* Describes an input or output. An error if there is none with this index. */
int divi_input(const divi_runtime *runtime, size_t index, divi_tensor *tensor);
int divi_output(const divi_runtime *runtime, size_t index, divi_tensor *tensor);

/* Runs the model on its inputs, in their order, and waits for all outputs, in theirs. DIVI_OK, or a negative code: see
 * divi_error. Inputs that begin at a multiple of 64 bytes are read where they are, others are copied once. */
int divi_run(divi_runtime *runtime, const divi_buffer *inputs, size_t input_count, const divi_buffer *outputs,
             size_t output_count);

/* Submits a request and returns without waiting for its outputs. Inputs are copied. While as many requests are in flight as
 * may be, it waits until one of them is done. NULL on error: see divi_error. The request is to be freed with
 * divi_request_free. */
divi_request *divi_submit(divi_runtime *runtime, const divi_buffer *inputs, size_t input_count);

/* Waits until a request is done, for at most timeout_ms milliseconds (0: does not wait; negative: without limit), and copies its
 * outputs, in their order. With NULL and 0 for outputs, only waits. May be called again, by any thread, with the same result.
 * DIVI_TIMEOUT if the request is not done yet, DIVI_CANCELLED if it was cancelled, or another code of its failure. */
int divi_wait(divi_request *request, int64_t timeout_ms, const divi_buffer *outputs, size_t output_count);

/* Cancels a request: it ends as soon as the kernels that it is in return. Does not wait for that. May be called by any thread,
 * as often as wanted; a request that is done stays as it is. */
int divi_cancel(divi_request *request);

/* Frees a request, once; it is cancelled if it is not done. Calls of divi_wait in other threads return. NULL is nothing to
 * free. */
int divi_request_free(divi_request *request);

/* Why this thread's last call failed. It is there until the thread's next call. */
const char *divi_error(void);

#ifdef __cplusplus
}
#endif

#endif
