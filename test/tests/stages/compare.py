"""Runs a model and what was made of it on the same random inputs under ONNX Runtime.

Usage: compare.py MODEL.onnx OTHER, where OTHER is a model or a folder with stages. Prints the largest difference of their
outputs, as a share of the largest output, and that output.
"""

import pathlib
import sys

import numpy
import onnxruntime

sys.path.append(str(pathlib.Path(__file__).parents[2]))
from run_stages import run_stages  # noqa: E402


def run(path, inputs):
    if path.is_dir():
        return run_stages(path, inputs)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def random_inputs(path):
    random = numpy.random.default_rng(7)
    inputs = {}
    for value in onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).get_inputs():
        is_integer = "int" in value.type
        inputs[value.name] = (
            random.integers(0, 1000, value.shape) if is_integer else random.standard_normal(value.shape, numpy.float32)
        )
    return inputs


original, other = map(pathlib.Path, sys.argv[1:])
inputs = random_inputs(original)
expected, actual = run(original, inputs), run(other, inputs)
assert list(expected) == list(actual), f"{list(expected)} became {list(actual)}"
largest = max(float(numpy.abs(array).max()) for array in expected.values())
difference = 0.0
for name, array in expected.items():
    assert array.shape == actual[name].shape and array.dtype == actual[name].dtype, name
    difference = max(difference, float(numpy.abs(array.astype(numpy.float64) - actual[name]).max()))
print(difference / largest, largest)
