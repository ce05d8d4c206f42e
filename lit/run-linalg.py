"""Runs every module of a file twice, compiled by divi and by MLIR's own passes, and compares the results.

    run-linalg.py FILE -o FOLDER [--seed=N] [--spread=DEVICE,…] OPTION…

Modules are separated by `// -----`. Each has a function @main with a name before it: `// NAME`. Inputs are random: numbers in
-2..2, integers and truth values in -3..3. With --spread, operators are pinned to the devices in turn. divi-opt gets the options. Prints `NAME: equal`, or the largest difference.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i8": np.int8, "i1": np.bool_}
# Types that MLIR's runner prints; others are converted to these first.
PRINTED = {"f64": "F64", "f32": "F32", "i64": "I64", "i32": "I32"}
CONVERTED = {"f16": ("arith.extf", "f32"), "i8": ("arith.extsi", "i32"), "i1": ("arith.extui", "i32")}
FROM_TOSA = ["--tosa-to-linalg-pipeline", "--tosa-to-tensor", "--tosa-to-arith"]
PASSES = """--convert-elementwise-to-linalg --one-shot-bufferize=bufferize-function-boundaries --convert-linalg-to-loops
--expand-strided-metadata --lower-affine --math-expand-ops=ops=roundeven --convert-math-to-llvm --convert-math-to-libm --convert-scf-to-cf
--memref-expand --expand-strided-metadata --lower-affine --arith-expand --finalize-memref-to-llvm --convert-index-to-llvm
--convert-arith-to-llvm --convert-func-to-llvm --convert-cf-to-llvm --reconcile-unrealized-casts""".split()
LIBRARIES = [f"/usr/lib/llvm-22/lib/libmlir_{name}.so" for name in ("runner_utils", "c_runner_utils")]

parser = argparse.ArgumentParser()
parser.add_argument("file")
parser.add_argument("-o", dest="folder", type=Path, required=True)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--spread", default="")
arguments, options = parser.parse_known_args()
shutil.rmtree(arguments.folder, ignore_errors=True)


def call(command, text=None):
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stderr}")
    return result.stdout


def types(text):
    """Returns shape and element type of each tensor type in a text."""
    found = re.findall(r"tensor<((?:\d+x)*)(\w+)>", text)
    return [([int(size) for size in shape.split("x")[:-1]], element) for shape, element in found]


def pins(module, devices):
    """Returns options that pin the operators of a module to devices in turn."""
    converted = call(["divi-opt", module, *FROM_TOSA, "--divi-convert-linalg", "--divi-canonicalize"])
    names = dict.fromkeys(re.findall(r'onnx_node_name = "(.*?)"', "\n".join(line for line in converted.splitlines() if "constant_bytes" not in line)))
    return [f"--pin={name}={devices[index % len(devices)]}" for index, name in enumerate(names)] if len(names) > 1 else []


def typed(shape, element):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def entry(inputs, outputs):
    """Returns a function that calls @main on constants and prints its results, and the functions that print."""
    lines, calls, declared = [], [], set()
    for index, (array, (shape, element)) in enumerate(inputs):
        data = array.astype("<u1" if element == "i1" else array.dtype).tobytes().hex().upper()
        if element == "i1":
            data = None
        numbers = f'"0x{data}"' if data is not None else str(array.tolist()).replace("True", "true").replace("False", "false")
        lines.append(f"%a{index} = arith.constant dense<{numbers}> : {typed(shape, element)}")
    names = ", ".join(f"%a{index}" for index in range(len(inputs)))
    signature = ", ".join(typed(*kind) for _, kind in inputs)
    results = ", ".join(typed(*kind) for kind in outputs)
    target = f"%r:{len(outputs)}" if len(outputs) > 1 else "%r"
    lines.append(f"{target} = func.call @main({names}) : ({signature}) -> ({results})")
    for index, (shape, element) in enumerate(outputs):
        value = f"%r#{index}" if len(outputs) > 1 else "%r"
        if element in CONVERTED:
            operation, wide = CONVERTED[element]
            lines.append(f"%w{index} = {operation} {value} : {typed(shape, element)} to {typed(shape, wide)}")
            value, element = f"%w{index}", wide
        declared.add(element)
        lines.append(f"%u{index} = tensor.cast {value} : {typed(shape, element)} to tensor<*x{element}>")
        lines.append(f"func.call @printMemref{PRINTED[element]}(%u{index}) : (tensor<*x{element}>) -> ()")
    printers = "".join(f"func.func private @printMemref{PRINTED[element]}(tensor<*x{element}>)\n" for element in sorted(declared))
    body = "\n  ".join(lines)
    return f"{printers}func.func @entry() {{\n  {body}\n  return\n}}\n"


def printed(text, outputs):
    """Returns the arrays that MLIR's runner has printed."""
    arrays = []
    for part, (shape, element) in zip(re.split(r"Unranked Memref.*", text)[1:], outputs):
        numbers = re.findall(r"-?nan|-?inf|-?\d[\d.e+-]*", part)
        arrays.append(np.array([float(number) for number in numbers]).reshape(shape))
    return arrays


def difference(found, wanted):
    """Returns the largest difference relative to the largest finite number."""
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    scale = max(np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0), 1e-30)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0.0, np.abs(found - wanted) / scale)
    return np.nan_to_num(error, nan=np.inf).max(initial=0.0)


for number, text in enumerate(re.split(r"^// -----.*$", Path(arguments.file).read_text(), flags=re.M)):
    name = re.search(r"^// (\S+)$\s*(?:#.*\n)*func.func @main", text, flags=re.M)
    if not name:
        continue
    folder = arguments.folder / str(number)
    folder.mkdir(parents=True)
    module = folder / "module.mlir"
    module.write_text(text)
    header = re.search(r"@main\((.*?)\)\s*->\s*(.*?)\s*(?:attributes\b.*)?\{\n", text, flags=re.S)
    random = np.random.default_rng(arguments.seed)
    inputs = []
    for shape, element in types(header[1]):
        values = random.uniform(-2, 2, shape) if element.startswith("f") else random.integers(-3, 4, shape)
        inputs.append((values.astype(DTYPES[element]), (shape, element)))
    outputs = types(header[2])
    reference = call(["mlir-opt", *FROM_TOSA, *PASSES], text + entry(inputs, outputs))
    reference = call(["mlir-runner", "-e", "entry", "-entry-point-result=void", f"-shared-libs={','.join(LIBRARIES)}"], reference)
    wanted = printed(reference, outputs)
    spread = pins(module, arguments.spread.split(",")) if arguments.spread else []
    call(["divi-opt", module, "--emit=bundle", "-q", "-o", folder / "bundle", *options, *spread])
    names = [f"input_{index}" for index in range(len(inputs))]
    for name_of, (array, _) in zip(names, inputs):
        np.save(folder / f"{name_of}.npy", array)
    given = [f"--input={name_of}={folder / name_of}.npy" for name_of in names]
    call(["divi-run", folder / "bundle", "-q", "-o", folder / "found", *given])
    stems = [f"output_{index}" for index in range(len(outputs))]
    worst = max(difference(np.load(folder / "found" / f"{stem}.npy"), array) for stem, array in zip(stems, wanted))
    limit = 2e-3 if any(element == "f16" for _, element in outputs) else 2e-5
    print(f"{name[1]}:", "equal" if worst <= limit else f"differ by {worst:.1e}", flush=True)
