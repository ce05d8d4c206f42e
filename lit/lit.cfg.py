"""Configuration of the lit suite: `.venv/bin/lit -v lit` from the repository's root.

Environment: DIVI_BUILD is the build folder (target/debug), MLIR_SYS_220_PREFIX the prefix of LLVM 22 (/usr/lib/llvm-22).
"""

import os
import sys
from pathlib import Path

import lit.formats

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("DIVI_BUILD", "target/debug")
LLVM = Path(os.environ.get("MLIR_SYS_220_PREFIX", "/usr/lib/llvm-22")) / "bin"

config.name = "divi"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".onnxtxt"]
config.test_source_root = str(ROOT / "lit")
config.test_exec_root = str(ROOT / "target" / "lit")

for folder, names in ((BUILD, ("divi-opt", "divi-plan", "divi-run", "libdivi.so")), (LLVM, ("FileCheck", "count", "mlir-opt", "not"))):
    for name in names:
        if not (folder / name).exists():
            lit_config.fatal(f"{folder / name} does not exist: build divi, or set DIVI_BUILD or MLIR_SYS_220_PREFIX")

config.environment["PATH"] = os.pathsep.join([str(BUILD), str(LLVM), os.environ["PATH"]])

# Tests do not depend on the calibration of this machine.
config.environment["XDG_CACHE_HOME"] = str(ROOT / "target" / "lit" / "cache")

config.substitutions += [
    ("%libdivi", str(BUILD / "libdivi.so")),
    ("%python", sys.executable),
    ("%models", str(ROOT / "test" / "models")),
    ("%onnx", f"{sys.executable} {ROOT / 'lit' / 'onnx-from-text.py'}"),
    ("%import", f"{sys.executable} {ROOT / 'lit' / 'import-each.py'}"),
]
