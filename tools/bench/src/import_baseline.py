"""Times onnx.load and onnx.shape_inference.infer_shapes on models; prints `seconds_load seconds_infer` for each model.

External data is not loaded, since divi does not load it either. `--embed OUT` instead writes the given model with embedded
weights, filled with noise.
"""

import sys
import time

import numpy
import onnx


def embed(path, out):
    model = onnx.load(path, load_external_data=False)
    noise = numpy.random.default_rng(0)
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            length = next(int(entry.value) for entry in tensor.external_data if entry.key == "length")
            tensor.raw_data = noise.bytes(length)
            tensor.data_location = onnx.TensorProto.DEFAULT
            del tensor.external_data[:]
    onnx.save(model, out)


def measure(path, repeats):
    samples = []
    for _ in range(repeats):
        start = time.perf_counter()
        model = onnx.load(path, load_external_data=False)
        loaded = time.perf_counter()
        onnx.shape_inference.infer_shapes(model)
        samples.append((loaded - start, time.perf_counter() - loaded))
    return sorted(samples, key=sum)[len(samples) // 2]


if sys.argv[1] == "--embed":
    embed(sys.argv[3], sys.argv[2])
else:
    for path in sys.argv[2:]:
        print(*measure(path, int(sys.argv[1])))
