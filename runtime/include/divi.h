/* C API of divi's runtime, which runs bundles compiled by divi. Link with libdivirun.so (cargo build -p divi-capi).
 *
 *   divi_runtime *runtime = divi_load("bundle", NULL);
 *   if (!runtime) { fprintf(stderr, "%s\n", divi_error()); exit(1); }
 *   divi_tensor input;
 *   divi_input(runtime, 0, &input);
 *   ...
 *   if (divi_run(runtime, inputs, 1, outputs, 1) != 0) fprintf(stderr, "%s\n", divi_error());
 *   divi_free(runtime);
 *
 * Requests may also run asynchronously:
 *
 *   divi_request *request = divi_submit(runtime, inputs, 1);
 *   ...
 *   if (divi_wait(request, 1000, outputs, 1) == DIVI_TIMEOUT) divi_cancel(request);
 *   divi_request_free(request);
 *
 * All functions are thread-safe. Runtimes and requests are handles: passing one that is NULL, was freed or never existed is an
 * error (DIVI_INVALID), not undefined behavior. */
#ifndef DIVI_H
#define DIVI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loaded bundle. */
typedef struct divi_runtime divi_runtime;

/* Submitted request. */
typedef struct divi_request divi_request;

/* Status codes. divi_error returns the message of an error. */
enum divi_status {
  DIVI_OK = 0,
  /* The bundle or an argument is invalid, or a kernel failed. */
  DIVI_ERROR = -1,
  /* The request is not complete yet. */
  DIVI_TIMEOUT = -2,
  /* The request was cancelled before it was complete. */
  DIVI_CANCELLED = -3,
  /* The handle is NULL, was freed or never existed. */
  DIVI_INVALID = -4,
  /* The runtime is being freed. */
  DIVI_CLOSED = -5
};

/* Options for running a bundle. All zeros selects the defaults of its plan. */
typedef struct {
  /* Threads per device; 0 for the number in the plan. */
  size_t threads;
  /* Maximum number of requests in flight; 0 for the default. */
  size_t in_flight;
  /* Folder that weights may be read from in addition to those of the bundle and its model; NULL for none. */
  const char *allow_path;
  /* Nonzero: weights are mapped instead of read, so that processes share them. Truncating a mapped file kills the process. */
  int map_weights;
} divi_options;

/* Description of an input or output of the model, which is dense and row-major. Valid until the runtime is freed. */
typedef struct {
  const char *name;
  /* ONNX element type: "float", "int64". */
  const char *type;
  const uint64_t *shape;
  size_t rank;
  /* Total size in bytes. */
  size_t bytes;
} divi_tensor;

/* Memory of the caller for an input or output. */
typedef struct {
  void *data;
  size_t bytes;
} divi_buffer;

/* Loads the bundle in a folder. Options may be NULL. Returns NULL on error: see divi_error. */
divi_runtime *divi_load(const char *folder, const divi_options *options);

/* Cancels the calls and requests that use a runtime, waits until they have ended, and frees it. NULL is ignored. */
void divi_free(divi_runtime *runtime);

/* Number of inputs and outputs; 0 on error. */
size_t divi_input_count(const divi_runtime *runtime);
size_t divi_output_count(const divi_runtime *runtime);

/* Describe an input or output. DIVI_ERROR if the index is out of range. */
int divi_input(const divi_runtime *runtime, size_t index, divi_tensor *tensor);
int divi_output(const divi_runtime *runtime, size_t index, divi_tensor *tensor);

/* Runs the model and waits for its outputs. Buffers are in the order of the model's inputs and outputs. Returns DIVI_OK or a
 * negative code: see divi_error. Inputs aligned to 64 bytes are read in place, others are copied once. */
int divi_run(divi_runtime *runtime, const divi_buffer *inputs, size_t input_count, const divi_buffer *outputs,
             size_t output_count);

/* Submits a request and returns without waiting for its outputs. Inputs are copied. Blocks while the maximum number of requests
 * is in flight. Returns NULL on error: see divi_error. The request must be freed with divi_request_free. */
divi_request *divi_submit(divi_runtime *runtime, const divi_buffer *inputs, size_t input_count);

/* Waits until a request is complete, for at most timeout_ms milliseconds (0: does not wait; negative: no limit), and copies its
 * outputs in the model's order. With NULL and 0 for outputs, only waits. May be called again, by any thread, with the same
 * result. Returns DIVI_TIMEOUT if the request is not complete yet, DIVI_CANCELLED if it was cancelled, or another code if it
 * failed. */
int divi_wait(divi_request *request, int64_t timeout_ms, const divi_buffer *outputs, size_t output_count);

/* Cancels a request without waiting: it ends when its running kernels return. May be called repeatedly, by any thread; has no
 * effect on a complete request. */
int divi_cancel(divi_request *request);

/* Frees a request, exactly once; cancels it if it is not complete. Calls of divi_wait in other threads return. NULL is
 * ignored. */
int divi_request_free(divi_request *request);

/* Returns the error message of this thread's last call. Valid until the thread's next call. */
const char *divi_error(void);

#ifdef __cplusplus
}
#endif

#endif
