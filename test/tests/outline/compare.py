"""Compares stages with the model on random graphs.

    compare.py prepare FOLDER GRAPHS
        writes FOLDER/NAME/model.onnx with its inputs for each graph.
    compare.py compare FOLDER
        for each NAME/places.json, runs model.onnx on each queued input separately, and NAME/stages on all of them, in ONNX's
        reference implementation, and prints a line: the name and `same`, or the difference.

In places.json, `count` is the number of queued inputs, `places` the layout of the outputs as in rebatch/run_cases.py.
"""

import concurrent.futures
import json
import pathlib
import sys
import warnings

import numpy
import onnx
import onnx.reference

sys.path += [str(pathlib.Path(__file__).parents[1] / "rebatch"), str(pathlib.Path(__file__).parents[2])]

from random_graphs import Graph  # noqa: E402
from run_cases import differ, one_by_one, part, write  # noqa: E402
from run_stages import run_stages  # noqa: E402


def prepare(folder, graphs):
    for seed in range(graphs):
        model, arrays = Graph(1_000_000 + seed).model()
        write(folder / f"random_{seed}", model, [onnx.numpy_helper.from_array(array) for array in arrays])


def load(model):
    return onnx.reference.ReferenceEvaluator(onnx.load(model))


def compare_one(folder):
    warnings.simplefilter("ignore")
    numpy.seterr(all="ignore")
    plan = json.loads((folder / "places.json").read_text())
    names = [value.name for value in onnx.load(folder / "model.onnx").graph.input]
    tensors = [onnx.TensorProto.FromString((folder / f"input_{i}.pb").read_bytes()) for i in range(len(names))]
    arrays = [onnx.numpy_helper.to_array(tensor) for tensor in tensors]
    count = plan["count"]
    inputs, expected = one_by_one(folder, names, arrays, count)
    stacked = [numpy.concatenate(parts, axis=0) for parts in zip(*inputs)]
    outputs = run_stages(folder / "stages", dict(zip(names, stacked, strict=True)), load)
    results = list(outputs.values())
    for i, place in enumerate(plan["places"]):
        for g in range(count):
            problem = differ(part(numpy.asarray(results[i]), place.split(), g, count), expected[g][i])
            if problem:
                return f"output {i} of input {g} {problem}"
    return "same"


def safely(folder):
    try:
        message = compare_one(folder)
    except Exception as error:
        message = f"cannot be compared: {type(error).__name__}: {error}"
    return f"{folder.name}\t{' '.join(message.split())}"


def main():
    command, root, *arguments = sys.argv[1:]
    root = pathlib.Path(root)
    if command == "prepare":
        prepare(root, int(arguments[0]))
        return
    folders = sorted(places.parent for places in root.glob("*/places.json"))
    with concurrent.futures.ProcessPoolExecutor() as pool:
        for line in pool.map(safely, folders, chunksize=16):
            print(line)


if __name__ == "__main__":
    main()
