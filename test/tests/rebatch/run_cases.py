"""Compares several runs at once with single runs, on the node test cases of the onnx package and on random graphs.

    run_cases.py prepare NODES FOLDER GRAPHS
        writes FOLDER/NAME/model.onnx for each case. Its inputs are those with a batch: their first dimension equals that of
        the first input. The others become constants with the case's data. If several inputs have a batch, NAME.first has only
        the first as input. GRAPHS random graphs are added.
    run_cases.py compare FOLDER FACTOR
        for each NAME/claim.tsv, runs model.onnx on FACTOR different inputs, together.onnx on all of them, and canonical.onnx
        on the first, and prints a line: the name and `same`, or the difference.

A line of claim.tsv has the layout of the runs in an output: `same`, `at AXIS OUTER`, or `separate` (on a new first axis).
"""

import concurrent.futures
import pathlib
import sys
import warnings

import numpy
import onnx
import onnx.reference

from random_graphs import Graph


def write(folder, model, arrays):
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    for i, tensor in enumerate(arrays):
        (folder / f"input_{i}.pb").write_bytes(tensor.SerializeToString())


def prepare(nodes, folder, graphs):
    lines = []
    for line in (nodes / "index.tsv").read_text().splitlines():
        name, category = line.split("\t")[:2]
        if category != "plain":
            continue
        model = onnx.load(nodes / name / "model.onnx")
        data = {tensor.name: tensor for tensor in onnx.load(nodes / name / "model_constant.onnx").graph.initializer}
        declared = [(value, data[value.name]) for value in model.graph.input if value.name in data]
        shaped = [(value, tensor) for value, tensor in declared if tensor.dims]
        if not shaped or shaped[0][1].dims[0] == 0:
            continue
        unit = shaped[0][1].dims[0]
        batched = [value for value, tensor in shaped if tensor.dims[0] == unit]
        for suffix, inputs in (("", batched), (".first", batched[:1])):
            if suffix and len(batched) == 1:
                continue
            variant = onnx.ModelProto.FromString(model.SerializeToString())
            variant.graph.initializer.extend(tensor for value, tensor in declared if value not in inputs)
            del variant.graph.input[:]
            variant.graph.input.extend(inputs)
            write(folder / (name + suffix), variant, [data[value.name] for value in inputs])
            lines.append(f"{name}{suffix}\t{unit}")
    for seed in range(graphs):
        model, arrays = Graph(seed).model()
        name = f"random_{seed}"
        write(folder / name, model, [onnx.numpy_helper.from_array(array) for array in arrays])
        lines.append(f"{name}\t{arrays[0].shape[0]}")
    (folder / "index.tsv").write_text("\n".join(lines) + "\n")


def turned(array, by):
    """Returns an array with its elements rotated."""
    return numpy.roll(array.reshape(-1), by).reshape(array.shape)


def run(path, names, arrays):
    return onnx.reference.ReferenceEvaluator(str(path)).run(None, dict(zip(names, arrays, strict=True)))


def one_by_one(folder, names, arrays, factor):
    """Returns different inputs and their results. If arbitrary inputs fail, because they hold indices or determine the shape of
    a result, only floating-point inputs differ, or finally none."""
    model = folder / "model.onnx"
    for which in (lambda a: True, lambda a: a.dtype.kind == "f", lambda a: False):
        inputs = [[turned(a, 4 * g) if which(a) else a for a in arrays] for g in range(factor)]
        try:
            results = [run(model, names, arrays) for arrays in inputs]
        except Exception as error:
            problem = error
            continue
        shapes = [[numpy.shape(array) for array in arrays] for arrays in results]
        if all(others == shapes[0] for others in shapes):
            return inputs, results
    raise ValueError(f"cannot be run: {problem}")


def part(array, place, run, factor):
    """Extracts one run from an output that has several."""
    kind, *numbers = place
    if kind == "same":
        return array
    if kind == "separate":
        return array[run]
    axis, outer = map(int, numbers)
    shape = array.shape
    rest = shape[axis] // (outer * factor)
    split = array.reshape(*shape[:axis], outer, factor, rest, *shape[axis + 1 :])
    return split.take(run, axis=axis + 1).reshape(*shape[:axis], outer * rest, *shape[axis + 1 :])


def differ(actual, expected):
    actual, expected = numpy.asarray(actual), numpy.asarray(expected)
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"is {actual.dtype}{list(actual.shape)}, not {expected.dtype}{list(expected.shape)}"
    if actual.dtype.kind == "V":
        actual, expected = actual.astype(numpy.float32), expected.astype(numpy.float32)
    if actual.dtype.kind not in "fc":
        return None if (actual == expected).all() else "differs"
    near = numpy.allclose(actual, expected, rtol=1e-5, atol=1e-5, equal_nan=True)
    return None if near else f"differs by up to {numpy.nanmax(numpy.abs(actual - expected))}"


def compare_one(folder, factor):
    warnings.simplefilter("ignore")
    numpy.seterr(all="ignore")
    places = [line.split() for line in (folder / "claim.tsv").read_text().splitlines()]
    names = [value.name for value in onnx.load(folder / "model.onnx").graph.input]
    tensors = [onnx.TensorProto.FromString((folder / f"input_{i}.pb").read_bytes()) for i in range(len(names))]
    arrays = [onnx.numpy_helper.to_array(tensor) for tensor in tensors]
    try:
        inputs, expected = one_by_one(folder, names, arrays, factor)
    except ValueError as error:
        return f"skipped: {error}"
    stacked = [numpy.concatenate(parts, axis=0) for parts in zip(*inputs)]
    try:
        together = run(folder / "together.onnx", names, stacked)
        canonical = run(folder / "canonical.onnx", names, inputs[0])
    except Exception as error:
        return f"cannot be run: {type(error).__name__}: {error}"
    for i, place in enumerate(places):
        problem = differ(canonical[i], expected[0][i])
        if problem:
            return f"canonical output {i} {problem}"
        for g in range(factor):
            problem = differ(part(numpy.asarray(together[i]), place, g, factor), expected[g][i])
            if problem:
                return f"output {i} of run {g} {problem}"
    return "same"


def safely(folder, factor):
    try:
        message = compare_one(folder, factor)
    except Exception as error:
        message = f"cannot be compared: {type(error).__name__}: {error}"
    return f"{folder.name}\t{' '.join(message.split())}"


def main():
    command, *arguments = sys.argv[1:]
    if command == "prepare":
        nodes, folder, graphs = arguments
        prepare(pathlib.Path(nodes), pathlib.Path(folder), int(graphs))
        return
    root, factor = pathlib.Path(arguments[0]), int(arguments[1])
    folders = sorted(claim.parent for claim in root.glob("*/claim.tsv"))
    with concurrent.futures.ProcessPoolExecutor() as pool:
        for line in pool.map(safely, folders, [factor] * len(folders), chunksize=16):
            print(line)


if __name__ == "__main__":
    main()
