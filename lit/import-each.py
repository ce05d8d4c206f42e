"""Imports every case of a test file, as `--split-input-file` would if ONNX models were text.

    import-each.py FILE -o FOLDER [--fails] OPTION…

writes the models into FOLDER and runs divi-opt there on each, with the options. Prints `case NAME`, then the messages of
divi-opt, then the IR. With --fails, every case must be rejected with exit code 1, without output.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("file")
parser.add_argument("-o", dest="folder", type=Path, required=True)
parser.add_argument("--fails", action="store_true")
arguments, options = parser.parse_known_args()

shutil.rmtree(arguments.folder, ignore_errors=True)
writer = [sys.executable, Path(__file__).with_name("onnx-from-text.py"), arguments.file, "-o", arguments.folder]
models = subprocess.run(writer, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
folder = arguments.folder.resolve()
before = set(os.listdir(folder))
for model in map(Path, models):
    command = ["divi-opt", model.name, *options]
    if arguments.fails:
        command += ["-o", "out.mlir"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    print(f"case {model.stem}", result.stderr.strip(), result.stdout, sep="\n")
    expected = 1 if arguments.fails else 0
    if result.returncode != expected:
        sys.exit(f"{model.name}: divi-opt exited with {result.returncode} instead of {expected}")
    if left := set(os.listdir(folder)) - before:
        sys.exit(f"{model.name}: divi-opt left {', '.join(sorted(left))} behind")
