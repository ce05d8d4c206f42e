"""Runs pairs of models on the same random inputs and prints the errors of their outputs.

Usage: compare.py FOLDER. FOLDER has N-unfolded.onnx and N-folded.onnx for N from 0 on. Prints a line per pair: the largest
difference relative to the largest output.
"""

import sys
from pathlib import Path

import numpy
import onnxruntime


def run(path, inputs):
    options = onnxruntime.SessionOptions()
    # Prevents ONNX Runtime from folding by itself.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    if inputs is None:
        random = numpy.random.default_rng(7)
        inputs = {i.name: random.standard_normal(i.shape).astype(numpy.float32) for i in session.get_inputs()}
    return inputs, session.run(None, inputs)[0]


folder = Path(sys.argv[1])
for number in range(len(list(folder.glob("*-folded.onnx")))):
    inputs, expected = run(folder / f"{number}-unfolded.onnx", None)
    _, actual = run(folder / f"{number}-folded.onnx", inputs)
    assert actual.shape == expected.shape, number
    print(numpy.abs(actual - expected).max() / numpy.abs(expected).max())
