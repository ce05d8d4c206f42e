"""Times a bundle, ONNX Runtime and OpenVINO on the same model with the same weights, in one process.

Usage: compare.py LIBRARY BUNDLE MODEL.onnx THREADS ROUNDS PRECISION. Prints JSON: milliseconds of each engine in each round, and the
largest difference of outputs from ONNX Runtime's, relative to the largest output. With PRECISION f32, all engines compute in 32 bits;
otherwise OpenVINO computes in its default precision, which depends on the processor.

A round has a burst of calls for each engine, in alternating order. A burst is preceded by a pause, in which the threads of the
previous engine stop spinning, and by an untimed call, which brings the weights back into the caches.
"""

import ctypes
import json
import statistics
import sys
import time

import numpy
import onnxruntime
import openvino

# Approximate duration of a burst, in seconds.
BURST = 0.05
PAUSE = 0.005

TYPES = {"float": numpy.float32, "double": numpy.float64, "int64": numpy.int64, "int32": numpy.int32, "bool": numpy.bool_}


class Options(ctypes.Structure):
    _fields_ = [("threads", ctypes.c_size_t), ("in_flight", ctypes.c_size_t)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_uint64)),
        ("rank", ctypes.c_size_t),
        ("bytes", ctypes.c_size_t),
    ]


class Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


def aligned(shape, dtype):
    """Returns an array aligned to 64 bytes, as the engines prefer."""
    count = int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
    memory = numpy.zeros(count + 64, numpy.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + count].view(dtype).reshape(shape)


class Divi:
    """A bundle, loaded through the C API of divi.h."""

    def __init__(self, library, bundle, threads):
        self.library = ctypes.CDLL(library)
        self.library.divi_load.restype = ctypes.c_void_p
        self.library.divi_load.argtypes = [ctypes.c_char_p, ctypes.POINTER(Options)]
        self.library.divi_error.restype = ctypes.c_char_p
        for name in ("divi_input_count", "divi_output_count"):
            getattr(self.library, name).restype = ctypes.c_size_t
            getattr(self.library, name).argtypes = [ctypes.c_void_p]
        for name in ("divi_input", "divi_output"):
            getattr(self.library, name).argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(Tensor)]
        self.library.divi_run.argtypes = [
            ctypes.c_void_p,
            ctypes.POINTER(Buffer),
            ctypes.c_size_t,
            ctypes.POINTER(Buffer),
            ctypes.c_size_t,
        ]
        self.runtime = self.library.divi_load(bundle.encode(), Options(threads, 0))
        if not self.runtime:
            raise SystemExit(self.library.divi_error().decode())
        self.inputs, self.input_buffers = self.arrays("input")
        self.outputs, self.output_buffers = self.arrays("output")

    def arrays(self, side):
        """Returns arrays by name, and the corresponding buffers."""
        count = getattr(self.library, f"divi_{side}_count")(self.runtime)
        arrays = {}
        for index in range(count):
            tensor = Tensor()
            getattr(self.library, f"divi_{side}")(self.runtime, index, tensor)
            arrays[tensor.name.decode()] = aligned(tensor.shape[: tensor.rank], TYPES[tensor.type.decode()])
        buffers = (Buffer * count)(*[Buffer(array.ctypes.data, array.nbytes) for array in arrays.values()])
        return arrays, buffers

    def set(self, inputs):
        for name, array in inputs.items():
            self.inputs[name][...] = array

    def run(self):
        counts = len(self.input_buffers), len(self.output_buffers)
        if self.library.divi_run(self.runtime, self.input_buffers, counts[0], self.output_buffers, counts[1]) != 0:
            raise SystemExit(self.library.divi_error().decode())

    def results(self):
        return self.outputs


class OnnxRuntime:
    def __init__(self, model, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]

    def set(self, inputs):
        self.inputs = inputs

    def run(self):
        self.outputs = self.session.run(self.names, self.inputs)

    def results(self):
        return dict(zip(self.names, self.outputs, strict=True))


class OpenVino:
    def __init__(self, model, threads, precision):
        core = openvino.Core()
        config = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
        if precision == "f32":
            config["INFERENCE_PRECISION_HINT"] = "f32"
        self.model = core.compile_model(core.read_model(model), "CPU", config)
        self.request = self.model.create_infer_request()

    def set(self, inputs):
        for name, array in inputs.items():
            self.request.set_tensor(name, openvino.Tensor(array, shared_memory=True))

    def run(self):
        self.request.infer()

    def results(self):
        return {output.any_name: self.request.get_tensor(output).data for output in self.model.outputs}


def burst(engine, calls):
    """Returns the median time of consecutive calls, in milliseconds."""
    time.sleep(PAUSE)
    engine.run()
    samples = []
    for _ in range(calls):
        start = time.perf_counter()
        engine.run()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples) * 1e3


def relative_error(results, expected):
    """Returns the largest difference relative to the largest output."""
    largest = max(float(numpy.abs(array).max()) for array in expected.values())
    differences = [float(numpy.abs(array - results[name]).max()) for name, array in expected.items()]
    # JSON cannot represent NaN and infinity.
    return max(differences) / largest if numpy.isfinite(differences).all() else 1e30


def main():
    library, bundle, model = sys.argv[1:4]
    threads, rounds = map(int, sys.argv[4:6])
    engines = {
        "divi": Divi(library, bundle, threads),
        "onnxruntime": OnnxRuntime(model, threads),
        "openvino": OpenVino(model, threads, sys.argv[6]),
    }
    random = numpy.random.default_rng(7)
    inputs = {}
    for name, like in engines["divi"].inputs.items():
        inputs[name] = aligned(like.shape, like.dtype)
        is_float = like.dtype.kind == "f"
        inputs[name][...] = random.standard_normal(like.shape) if is_float else random.integers(0, 1000, like.shape)
    calls = {}
    for name, engine in engines.items():
        engine.set(inputs)
        engine.run()
        start = time.perf_counter()
        engine.run()
        calls[name] = max(1, round(BURST / (time.perf_counter() - start)))
    expected = engines["onnxruntime"].results()
    errors = {name: relative_error(engine.results(), expected) for name, engine in engines.items() if name != "onnxruntime"}
    times = {name: [] for name in engines}
    for number in range(rounds):
        names = list(engines)
        # Rotates and reverses the order, so that no engine always follows the same one.
        turn = number % len(names)
        order = names[turn:] + names[:turn]
        for name in order if number % 2 else reversed(order):
            times[name].append(burst(engines[name], calls[name]))
    print(json.dumps({"times": times, "errors": errors}))


main()
