"""Writes the ONNX models of a test file, and prints their paths.

A test file has models in ONNX's textual syntax, split by `// -----` into cases. Lines that start with `//` are comments
(the purpose of the case, directives for FileCheck). A line `// EDIT: …` is a Python statement for properties that the
syntax cannot express, with these names:

    model           the ModelProto, to be changed
    data            set it to write these bytes instead of the model
    folder          folder of the model, for files beside it
    raw(model)      moves initializers into raw_data
    external(model, "w.bin")    moves initializers into a file beside the model

A case without the `<ir_version: …>` header has opset 28.

    onnx-from-text.py FILE -o MODEL.onnx    one case
    onnx-from-text.py FILE -o FOLDER        any number: FOLDER/GRAPH.onnx, named after the case's graph
"""

import argparse
import re
from pathlib import Path

import onnx
import onnx.numpy_helper
import onnx.parser

HEADER = '<ir_version: 13, opset_import: ["" : 28]>\n'


def raw(model):
    for tensor in model.graph.initializer:
        name = tensor.name
        tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), name))


def external(model, location, folder):
    raw(model)
    contents = b""
    for tensor in model.graph.initializer:
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", len(contents)), ("length", len(tensor.raw_data))):
            tensor.external_data.add(key=key, value=str(value))
        contents += tensor.raw_data
        tensor.ClearField("raw_data")
    (folder / location).write_bytes(contents)


def build(case, folder):
    """Returns the name of a case's graph and the bytes of its model."""
    lines = case.splitlines()
    text = "\n".join(line for line in lines if not line.startswith("//")).strip()
    model = onnx.parser.parse_model(text if text.startswith("<") else HEADER + text)
    names = {
        "data": None,
        "external": lambda model, location: external(model, location, folder),
        "folder": folder,
        "model": model,
        "onnx": onnx,
        "raw": raw,
    }
    for line in lines:
        if line.startswith("// EDIT: "):
            exec(line.removeprefix("// EDIT: "), names)
    data = names["data"]
    return model.graph.name, model.SerializeToString() if data is None else data


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("-o", dest="output", type=Path, required=True)
    arguments = parser.parse_args()
    cases = re.split(r"^// -----$", arguments.file.read_text(), flags=re.MULTILINE)
    single = arguments.output.suffix == ".onnx"
    if single and len(cases) != 1:
        parser.error(f"{arguments.file} has {len(cases)} cases: write them into a folder")
    folder = arguments.output.parent if single else arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    written = set()
    for case in cases:
        name, data = build(case, folder)
        path = arguments.output if single else folder / f"{name}.onnx"
        if path in written:
            parser.error(f"{arguments.file} has two cases with a graph named {name}")
        written.add(path)
        path.write_bytes(data)
        print(path)


main()
