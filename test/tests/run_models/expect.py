"""Runs a model on random inputs under ONNX Runtime.

Usage: expect.py MODEL.onnx FOLDER [COUNT]. Writes the inputs and outputs of COUNT runs as FOLDER/in.NAME.npy and
FOLDER/out.NAME.npy, concatenated along the first axis.
"""

import pathlib
import sys

import numpy
import onnxruntime


def random_input(value):
    """Returns token ids valid in every vocabulary, a mask that hides the last tokens, or normally distributed numbers."""
    shape = [size if isinstance(size, int) else 1 for size in value.shape]
    if "mask" in value.name:
        mask = numpy.ones(shape, numpy.int64)
        mask[..., -3:] = 0
        return mask
    if "int" in value.type:
        return random.integers(0, 1000, shape)
    return random.standard_normal(shape, numpy.float32)


random = numpy.random.default_rng(7)
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
folder = pathlib.Path(sys.argv[2])
count = int(sys.argv[3]) if len(sys.argv) > 3 else 1
names = [output.name for output in session.get_outputs()]
inputs = [{value.name: random_input(value) for value in session.get_inputs()} for _ in range(count)]
outputs = [dict(zip(names, session.run(names, one), strict=True)) for one in inputs]
for prefix, values in (("in", inputs), ("out", outputs)):
    for name in values[0]:
        numpy.save(folder / f"{prefix}.{name}.npy", numpy.concatenate([value[name] for value in values]))
