"""Checks every model of a folder with onnx.checker. Usage: check.py FOLDER. Prints a line for each rejected model: its name,
a tab, and the reason."""

import concurrent.futures
import pathlib
import sys

import onnx


def problem(path):
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        # The checker requires external files, which are missing for large models.
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            del tensor.external_data[:]
            tensor.data_location = onnx.TensorProto.DEFAULT
            tensor.ClearField("raw_data")
            model.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    kept = [tensor for tensor in model.graph.initializer if tensor.HasField("raw_data") or tensor.string_data]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    try:
        onnx.checker.check_model(model)
    except Exception as error:
        return f"{path.stem}\t{type(error).__name__}: {' '.join(str(error).split())}"
    return None


def main():
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.onnx"))
    with concurrent.futures.ProcessPoolExecutor() as pool:
        for line in pool.map(problem, paths, chunksize=64):
            if line:
                print(line)


if __name__ == "__main__":
    main()
