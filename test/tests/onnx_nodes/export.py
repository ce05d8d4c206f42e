"""Writes the node test cases of the onnx package into a folder, for tests that import them.

For each case: NAME/model.onnx, the original; NAME/model_stripped.onnx, without declared shapes except those of the inputs; and
a line in index.tsv with name, category, number of inputs, name=type of each input, and type of each output, as in the case's
data. For each plain case also NAME/model_constant.onnx, with the case's data as constants instead of inputs; if some inputs
are parameters of operators (shapes, axes, …), NAME/model_parameters.onnx, in which only those are constants. NAME/input_N.bin
and NAME/output_N.bin are the elements of non-string tensors in the layout of ONNX's raw_data.

Does nothing if the folder is up to date.
"""

import collections
import hashlib
import pathlib
import sys
import warnings

import onnx

CONTROL_FLOW = {"If", "Loop", "Scan", "SequenceMap"}
STRING_OPS = {"StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch"}
CONTAINER_OPS = {
    "ConcatFromSequence",
    "Optional",
    "OptionalGetElement",
    "OptionalHasElement",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "SplitToSequence",
}

# Inputs of operators that are parameters, and usually constants in models.
PARAMETERS = {
    "AffineGrid": [1],
    "BlackmanWindow": [0],
    "CenterCropPad": [1],
    "Col2Im": [1, 2],
    "ConstantOfShape": [0],
    "CumProd": [1],
    "CumSum": [1],
    "DFT": [1, 2],
    "Dropout": [1, 2],
    "Expand": [1],
    "HammingWindow": [0],
    "HannWindow": [0],
    "MaxUnpool": [2],
    "MelWeightMatrix": [0, 1, 2, 3, 4],
    "NonMaxSuppression": [2, 3, 4],
    "OneHot": [1],
    "Pad": [1, 3],
    "Range": [0, 1, 2],
    "Reshape": [1],
    "Resize": [1, 2, 3],
    "STFT": [1, 3],
    "Slice": [1, 2, 3, 4],
    "Split": [1],
    "Squeeze": [1],
    "Tile": [1],
    "TopK": [1],
    "Trilu": [1],
    "Unsqueeze": [1],
    "Upsample": [1],
}
REDUCTIONS = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]
PARAMETERS.update({f"Reduce{kind}": [1] for kind in REDUCTIONS})


def graphs(graph):
    """Yields a graph and all graphs nested in it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graphs(attribute.g)


def category(model):
    """Returns the first matching category of: control flow, other domains, strings, containers, plain."""
    nodes = [node for graph in graphs(model.graph) for node in graph.node]
    nodes += [node for function in model.functions for node in function.node]
    values = [
        value.type
        for graph in graphs(model.graph)
        for value in (*graph.input, *graph.output, *graph.value_info)
    ]
    ops = {node.op_type for node in nodes}
    if ops & CONTROL_FLOW:
        return "control-flow"
    if any(node.domain not in ("", "ai.onnx") for node in nodes):
        return "other-domain"
    if ops & STRING_OPS or any(value.tensor_type.elem_type == onnx.TensorProto.STRING for value in values):
        return "string"
    if ops & CONTAINER_OPS or any(value.WhichOneof("value") not in ("tensor_type", None) for value in values):
        return "sequence"
    return "plain"


def type_of(value, declared):
    """Returns the type of an input's or output's data in divi's notation."""
    kind = declared.WhichOneof("value")
    if kind == "sequence_type":
        return "sequence"
    if kind == "optional_type":
        return "optional"
    if isinstance(value, onnx.TensorProto):
        code, dims = value.data_type, value.dims
    else:
        code, dims = onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
    name = onnx.TensorProto.DataType.Name(code).lower()
    return f"{name}[{'x'.join(map(str, dims))}]"


def stripped(model):
    """Returns a model without the shapes that inference has to find."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    del model.graph.value_info[:]
    for output in model.graph.output:
        if output.type.WhichOneof("value") == "tensor_type":
            output.type.tensor_type.ClearField("shape")
    return model


def tensor_of(value, name):
    """Returns a case's data as a tensor with raw_data."""
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    return onnx.numpy_helper.from_array(value, name)


def constant(model, inputs, names):
    """Returns a model in which the inputs with the given names are constants, so that folding applies."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    declared = list(model.graph.input)
    del model.graph.input[:]
    for value, declaration in zip(inputs, declared, strict=True):
        if declaration.name in names:
            model.graph.initializer.append(tensor_of(value, declaration.name))
        else:
            model.graph.input.append(declaration)
    return model


def parameters(model):
    """Returns the names of inputs that are parameters of operators."""
    names = {
        node.input[i] for node in model.graph.node for i in PARAMETERS.get(node.op_type, []) if i < len(node.input)
    }
    return names & {declared.name for declared in model.graph.input}


def write_elements(path, value, declared):
    """Writes the elements of a tensor unless it has strings."""
    type = declared.type.tensor_type.elem_type if declared.type.WhichOneof("value") == "tensor_type" else None
    if type not in (None, onnx.TensorProto.STRING):
        path.write_bytes(tensor_of(value, "").raw_data)


def main():
    root = pathlib.Path(sys.argv[1])
    index = root / "index.tsv"
    stamp = root / "stamp"
    version = onnx.__version__ + " " + hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == version and index.exists():
        return
    # Some cases compute with infinities on purpose.
    warnings.simplefilter("ignore")
    from onnx.backend.test.case.node import collect_testcases

    lines = []
    counts = collections.Counter()
    cases = sorted(collect_testcases(None), key=lambda case: case.name)
    by_name = {case.name: case for case in cases}
    for case in cases:
        model = case.model
        folder = root / case.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        (folder / "model_stripped.onnx").write_bytes(stripped(model).SerializeToString())
        inputs, outputs = case.data_sets[0]
        inputs = list(zip(inputs, model.graph.input, strict=True))
        outputs = list(zip(outputs, model.graph.output, strict=True))
        kind = category(model)
        if kind == "plain":
            data = [value for value, _ in inputs]
            names = {declared.name for _, declared in inputs}
            (folder / "model_constant.onnx").write_bytes(constant(model, data, names).SerializeToString())
            # The expansion of an operator has the inputs of the operator.
            whole = by_name.get(case.name.removesuffix("_expanded"), case)
            if names := parameters(model) | parameters(whole.model) & names:
                (folder / "model_parameters.onnx").write_bytes(constant(model, data, names).SerializeToString())
        for side, values in (("input", inputs), ("output", outputs)):
            for i, (value, declared) in enumerate(values):
                write_elements(folder / f"{side}_{i}.bin", value, declared)
        counts[kind] += 1
        arguments = [f"{declared.name}={type_of(value, declared.type)}" for value, declared in inputs]
        types = [type_of(value, declared.type) for value, declared in outputs]
        lines.append("\t".join([case.name, kind, str(len(inputs)), *arguments, *types]))
    index.write_text("\n".join(lines) + "\n")
    stamp.write_text(version)
    print(f"{len(lines)} cases: " + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
