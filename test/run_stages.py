#!/usr/bin/env python3
"""Runs a plan written by `divi-opt --emit=onnx -o DIR` under ONNX Runtime: one ONNX model per stage, in the plan's order.

    run_stages.py DIR [NAME=FILE.npy …] [--output OUT]

Inputs that are not given are random. Outputs are printed, and written to OUT/NAME.npy. Everything runs on the local CPU, so
transfers between devices have no effect.
"""

import argparse
import json
import pathlib

import numpy
import onnxruntime

# Element types of stages.json whose numpy names differ.
TYPES = {"float": "float32", "double": "float64"}


def batch_view(array, count, axis, outer):
    """Returns a view with a separate axis, `axis + 1`, for the batch of inputs."""
    shape = array.shape
    return array.reshape(*shape[:axis], outer, count, shape[axis] // (outer * count), *shape[axis + 1 :])


def merged(array, axis):
    """Undoes `batch_view`."""
    shape = array.shape
    return array.reshape(*shape[:axis], shape[axis] * shape[axis + 1] * shape[axis + 2], *shape[axis + 3 :])


def on_cpu(model):
    """Loads a model into ONNX Runtime's CPU provider."""
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def run_stages(folder, inputs, load=on_cpu):
    """Runs a plan; returns its outputs by name. `load` turns a model file into an object with a `run` method."""
    folder = pathlib.Path(folder)
    plan = json.loads((folder / "stages.json").read_text())
    if plan["format"] != "divi-stages/1":
        raise SystemExit(f"{folder} has format {plan['format']}; expected divi-stages/1")
    stages = {stage["name"]: stage for stage in plan["stages"]}
    sessions = {name: load(folder / stage["model"]) for name, stage in stages.items()}
    values = {value["name"]: inputs[value["name"]] for value in plan["inputs"]}
    for step in plan["steps"]:
        if "launch" in step:
            stage = stages[step["launch"]]
            feeds = {name: values[value] for name, value in zip(stage["inputs"], step["inputs"], strict=True)}
            results = sessions[step["launch"]].run(stage["outputs"], feeds)
            values.update(zip(step["outputs"], results, strict=True))
        elif "transfer" in step:
            values[step["output"]] = values[step["transfer"]]
        elif "slice" in step:
            axis = step["axis"]
            view = batch_view(values[step["slice"]], step["of"], axis, step["outer"])
            values[step["output"]] = merged(view.take(step["positions"], axis=axis + 1), axis)
        elif "gather" in step:
            axis = step["axis"]
            views = [batch_view(values[name], count, axis, step["outer"]) for name, count in zip(step["gather"], step["of"])]
            values[step["output"]] = merged(numpy.concatenate(views, axis=axis + 1), axis)
        else:
            raise SystemExit(f"{folder}: unknown step: {step}")
    return {output["name"]: values[output["value"]] for output in plan["outputs"]}


def random_inputs(folder, seed=0):
    """Returns random inputs for a plan: small integers, and normally distributed floating-point numbers."""
    random = numpy.random.default_rng(seed)
    inputs = {}
    for value in json.loads((pathlib.Path(folder) / "stages.json").read_text())["inputs"]:
        dtype = numpy.dtype(TYPES.get(value["type"], value["type"]))
        shape = [1 if size is None else size for size in value["shape"]]
        numbers = random.standard_normal(shape) if dtype.kind == "f" else random.integers(0, 2 if dtype.kind == "b" else 100, shape)
        inputs[value["name"]] = numbers.astype(dtype)
    return inputs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("inputs", nargs="*", metavar="NAME=FILE.npy")
    parser.add_argument("--output", type=pathlib.Path, metavar="OUT")
    arguments = parser.parse_args()
    inputs = random_inputs(arguments.folder)
    for text in arguments.inputs:
        name, _, file = text.partition("=")
        inputs[name] = numpy.load(file)
    outputs = run_stages(arguments.folder, inputs)
    for name, array in outputs.items():
        print(f"{name}: {array.dtype}{list(array.shape)}, {array.ravel()[:4]} …")
        if arguments.output:
            arguments.output.mkdir(parents=True, exist_ok=True)
            numpy.save(arguments.output / f"{name}.npy", array)


if __name__ == "__main__":
    main()
