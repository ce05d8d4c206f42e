"""Runs a model and its exported form on the same random inputs under ONNX Runtime.

Usage: compare.py MODEL.onnx OTHER, where OTHER is a model or a folder with stages; the latter may be for several inputs at
once. Prints the largest difference of their outputs relative to the largest output, and the largest output.
"""

import json
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


def random_input(declared):
    """Returns random inputs of a model."""
    return {
        value.name: random.integers(0, 1000, value.shape)
        if "int" in value.type
        else random.standard_normal(value.shape, numpy.float32)
        for value in declared
    }


def queued(declared, other):
    """Returns the number of inputs of the model that a plan takes at once."""
    if not other.is_dir():
        return 1
    return json.loads((other / "stages.json").read_text())["inputs"][0]["shape"][0] // declared[0].shape[0]


def join(dicts):
    return {name: numpy.concatenate([arrays[name] for arrays in dicts]) for name in dicts[0]}


random = numpy.random.default_rng(7)
original, other = map(pathlib.Path, sys.argv[1:])
declared = onnxruntime.InferenceSession(original, providers=["CPUExecutionProvider"]).get_inputs()
inputs = [random_input(declared) for _ in range(queued(declared, other))]
expected = join([run(original, one) for one in inputs])
actual = run(other, join(inputs))
assert list(expected) == list(actual), f"{list(expected)} became {list(actual)}"
largest = max(float(numpy.abs(array).max()) for array in expected.values())
difference = 0.0
for name, array in expected.items():
    assert array.shape == actual[name].shape and array.dtype == actual[name].dtype, name
    difference = max(difference, float(numpy.abs(array.astype(numpy.float64) - actual[name]).max()))
print(difference / largest, largest)
