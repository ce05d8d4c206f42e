"""Compares divi with ONNX Runtime on random models (generate.py), and reports the operators that differ.

    run.py --models N [--seed S] [--program target/release/divi-compute] [--log FILE] [--processes P]
    run.py --folder DIR …      existing models, as DIR/*/model.onnx with inputs.npz (nnsmith_models.py)

A model whose outputs differ is reduced: each node alone on ONNX Runtime's values, then larger and larger subgraphs. Each
difference is a line with the operator, the values of ONNX Runtime, onnx.reference and divi, and the errors of ONNX Runtime and
divi relative to onnx.reference in double precision. Differences in known.txt are expected, as are those where divi agrees with
onnx.reference. The exit status is 1 if there are others.
"""

import argparse
import collections
import datetime
import multiprocessing
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnx.reference
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from generate import build  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
KNOWN = pathlib.Path(__file__).with_name("known.txt")
# Relative to the element, and relative to the largest element of the tensor.
TOLERANCES = {np.dtype(np.float64): (1e-7, 1e-8), np.dtype(np.float32): (1e-4, 2e-5), np.dtype(np.float16): (1e-2, 4e-3)}
# Factor by which divi's error in double precision may exceed ONNX Runtime's before it counts as a difference.
FURTHER = 4
LARGEST_PIECE = 8
# Suffix of the key of a difference where divi and onnx.reference agree.
AS_REFERENCE = ", as onnx.reference"


class Divi:
    """A process that compiles and runs models."""

    def __init__(self, program, folder):
        self.program, self.folder, self.process = program, folder, None
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, model, arrays):
        """Returns the outputs by name and None; or None and the failure: ("refused" or "failed", reason)."""
        paths = [self.folder / name for name in ("model.onnx", "inputs.npz", "outputs.npz")]
        paths[0].write_bytes(model.SerializeToString())
        np.savez(paths[1], **arrays)
        if self.process is None:
            self.process = subprocess.Popen([self.program, self.folder / "work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        answer = ""
        try:
            self.process.stdin.write("\t".join(map(str, paths)) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            pass
        if not answer:
            code = self.process.wait()
            self.process = None
            return None, ("failed", f"the process ended with {code}")
        kind, _, reason = answer.strip().partition(" ")
        if kind != "ok":
            return None, (kind, reason)
        with np.load(paths[2]) as outputs:
            return dict(outputs), None


def run_onnxruntime(model, arrays):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    outputs = session.run(None, {name: arrays[name] for name in names})
    return {value.name: np.asarray(array) for value, array in zip(model.graph.output, outputs)}


def run_reference(model, arrays):
    """Returns the outputs of onnx.reference; empty if it cannot run the model."""
    try:
        outputs = onnx.reference.ReferenceEvaluator(model).run(None, arrays)
    except Exception:
        return {}
    return {value.name: np.asarray(array) for value, array in zip(model.graph.output, outputs)}


def in_double(model, arrays):
    """Returns the model and its inputs with float64 instead of float32 and float16."""
    floats = (TensorProto.FLOAT, TensorProto.FLOAT16)
    double = onnx.ModelProto()
    double.CopyFrom(model)
    for tensor in double.graph.initializer:
        if tensor.data_type in floats:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for value in [*double.graph.input, *double.graph.output]:
        if value.type.tensor_type.elem_type in floats:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for node in double.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i in floats:
                attribute.i = TensorProto.DOUBLE
    wide = {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in arrays.items()}
    return double, wide


def far(ours, theirs):
    """Returns the index of the largest error, None if all are within tolerance, or "shape" if shapes or types differ."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return "shape"
    if ours.dtype.kind != "f":
        wrong = ours != theirs
    else:
        relative, of_largest = TOLERANCES[ours.dtype]
        a, b = ours.astype(np.float64), theirs.astype(np.float64)
        size = np.where(np.isfinite(b), np.abs(b), 0)
        limit = relative * size + of_largest * (size.max() if size.size else 0) + 1e-7
        is_same = (a == b) | (np.isnan(a) & np.isnan(b))
        with np.errstate(invalid="ignore"):
            # Infinite if only one of the two is finite.
            off = np.where(is_same, 0, np.nan_to_num(np.abs(a - b), nan=np.inf))
        wrong = off > limit
        if wrong.any():
            return tuple(int(i) for i in np.unravel_index(np.argmax(off / limit), off.shape))
        return None
    return tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.any() else None


class Difference:
    """A model whose output differs, with the values at the worst element."""

    def __init__(self, model, arrays, name, index, ours, theirs):
        self.model, self.arrays, self.name, self.index = model, arrays, name, index
        self.ours = ours if index == "shape" else ours[index]
        self.theirs = theirs if index == "shape" else theirs[index]
        if index == "shape":
            self.ours, self.theirs = (f"{array.dtype}{list(array.shape)}" for array in (ours, theirs))
        self.dtype = ours.dtype
        reference = run_reference(model, arrays).get(name)
        self.reference = _at(reference, index)
        self.is_as_reference = reference is not None and far(ours, reference.astype(ours.dtype)) is None
        self.is_rounding, self.errors = False, ""
        if ours.dtype.kind == "f" and index != "shape" and np.isfinite(self.theirs) and np.isfinite(self.ours):
            exact = run_reference(*in_double(model, arrays)).get(name)
            if exact is not None and exact.shape == ours.shape:
                finite = np.isfinite(exact)
                with np.errstate(invalid="ignore"):
                    errors = [np.abs(np.where(finite, array.astype(np.float64) - exact, 0)).max() for array in (theirs, ours)]
                self.errors = f", errors in double {errors[0]:.1e} and {errors[1]:.1e}"
                # If ONNX Runtime's own error is large, it counts as a difference.
                most = 1e-2 * np.abs(np.where(finite, exact, 0)).max()
                self.is_rounding = errors[1] <= FURTHER * errors[0] + 1e-12 and errors[0] <= most

    def key(self):
        ops = [node.op_type for node in self.model.graph.node]
        kind = "shape" if self.index == "shape" else "NaN" if self.dtype.kind == "f" and np.isnan(self.ours) != np.isnan(self.theirs) else "value"
        pieces = "+".join(ops) if len(ops) <= LARGEST_PIECE else "whole model"
        return f"{pieces} {self.dtype} {kind}{AS_REFERENCE if self.is_as_reference else ''}"

    def line(self):
        node = self.model.graph.node[-1]
        attributes = " ".join(f"{a.name}={_text(a)}" for a in node.attribute)
        shapes = " ".join(f"{name}:{list(array.shape)}" for name, array in self.arrays.items())
        at = "" if self.index == "shape" else f" at {list(self.index)}"
        return (f"ONNX Runtime {self.theirs}, onnx.reference {self.reference}, divi {self.ours}{at}{self.errors}; {attributes} {shapes}")


def _at(array, index):
    if array is None:
        return "cannot"
    return f"{array.dtype}{list(array.shape)}" if index == "shape" else array[index] if len(index) == array.ndim else "another shape"


def _text(attribute):
    value = helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else str(value).replace(" ", "")


def differences(divi, model, arrays, theirs=None):
    """Returns the differences of a model's outputs and None; or None and the failure."""
    theirs = theirs or run_onnxruntime(model, arrays)
    ours, why = divi.run(model, arrays)
    if ours is None:
        return None, why
    found = []
    for name, array in theirs.items():
        index = far(ours[name], array) if name in ours else "shape"
        if index is not None:
            found.append(Difference(model, arrays, name, index, ours.get(name, np.zeros(0)), array))
    return found, None


def piece(model, values, nodes):
    """Returns the model of a subset of the nodes, with the given values as its inputs."""
    made = {name for node in nodes for name in node.output}
    needed = {name for node in nodes for name in node.input if name and name not in made}
    initializers = [tensor for tensor in model.graph.initializer if tensor.name in needed]
    inputs = sorted(needed - {tensor.name for tensor in initializers})
    read = {name for node in nodes for name in node.input}
    outputs = [name for node in nodes for name in node.output if name and (name not in read or node is nodes[-1])]
    info = lambda name: helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(values[name].dtype), values[name].shape)
    graph = helper.make_graph(nodes, "piece", [info(name) for name in inputs], [info(name) for name in outputs], initializers)
    made_model = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    return made_model, {name: values[name] for name in inputs}


def all_values(model, arrays):
    """Returns ONNX Runtime's values of all inputs and intermediate results."""
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    del whole.graph.output[:]
    whole.graph.output.extend(helper.make_empty_tensor_value_info(name) for node in model.graph.node for name in node.output)
    return arrays | run_onnxruntime(whole, arrays)


def ending_at(model, node, size):
    """Returns at most `size` nodes, the node itself and its closest predecessors, in order."""
    makers = {name: maker for maker in model.graph.node for name in maker.output}
    nodes, pending = [node], [node]
    while pending and len(nodes) < size:
        names = [name for other in pending for name in other.input if name in makers]
        pending = [makers[name] for name in dict.fromkeys(names) if makers[name] not in nodes][: size - len(nodes)]
        nodes += pending
    return [other for other in model.graph.node if other in nodes]


def smallest(divi, model, arrays, found):
    """Returns a difference in the smallest failing subgraph; it ends at one of the first nodes whose outputs differ."""
    values = all_values(model, arrays)
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    del whole.graph.output[:]
    names = [name for node in model.graph.node for name in node.output if name]
    whole.graph.output.extend(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(values[name].dtype), values[name].shape) for name in names)
    computed, _ = divi.run(whole, arrays)
    is_far = lambda name: computed and name in computed and far(computed[name], values[name]) is not None
    ends = [node for node in model.graph.node if any(is_far(name) for name in node.output)][:2]
    ends += [node for node in model.graph.node if any(difference.name in node.output for difference in found)][:1]
    for node in ends:
        for size in range(1, LARGEST_PIECE + 1):
            try:
                together, _ = differences(divi, *piece(model, values, ending_at(model, node, size)))
            except Exception:
                continue
            results = [difference for difference in together or [] if not difference.is_rounding]
            if results:
                return results[:1]
    return [difference for difference in found if not difference.is_rounding][:1]


_divi = None


def start(program, folder):
    global _divi
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    onnxruntime.set_default_logger_severity(4)
    _divi = Divi(program, folder / str(os.getpid()))


def load(folder):
    """Loads a model of another generator, with its inputs."""
    with np.load(folder / "inputs.npz") as arrays:
        return onnx.load(folder / "model.onnx"), dict(arrays)


def attempt(seed):
    """Compares the model of a seed or folder; returns (seed, kind, details, number of operators)."""
    try:
        model, arrays = load(seed) if isinstance(seed, pathlib.Path) else build(seed)
        theirs = run_onnxruntime(model, arrays)
    except Exception as error:
        return seed, "skipped", str(error).splitlines()[0][:200], 0
    count = len(model.graph.node)
    found, why = differences(_divi, model, arrays, theirs)
    if found is None:
        return seed, *why, count
    if not found:
        return seed, "same", "", count
    if all(difference.is_rounding for difference in found):
        return seed, "rounding", "", count
    lines = [(difference.key(), difference.line()) for difference in smallest(_divi, model, arrays, found)]
    return (seed, "different", lines, count) if lines else (seed, "rounding", "", count)


def known_differences():
    """Returns the keys of expected differences, each with a substring of its line."""
    lines = KNOWN.read_text().splitlines() if KNOWN.exists() else []
    fields = [[field.strip() for field in line.split("|")] for line in lines if line.strip() and not line.startswith("#")]
    return [(key, text) for key, text, _ in fields]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=0)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--program", default=str(ROOT / "target/release/divi-compute"))
    parser.add_argument("--log", default=str(ROOT / "test/results/differential.txt"))
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.models)
    if arguments.folder:
        seeds = sorted(path.parent for path in arguments.folder.glob("*/model.onnx"))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="divi-differential-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    counts, reasons, lines, nodes = collections.Counter(), {}, {}, 0
    begin, done = datetime.datetime.now(datetime.UTC), 0
    # An interrupted run reports its results so far.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with multiprocessing.get_context("spawn").Pool(arguments.processes, start, (arguments.program, folder)) as pool:
            for done, (seed, kind, details, count) in enumerate(pool.imap_unordered(attempt, seeds, chunksize=4), 1):
                counts[kind] += 1
                nodes += count if kind in ("same", "rounding", "different") else 0
                if kind in ("refused", "failed", "skipped"):
                    reasons.setdefault(f"{kind}: {_general(details)}", []).append(seed)
                for key, line in details if kind == "different" else []:
                    lines.setdefault(key, []).append(f"seed {seed}: {line}")
                if done % 500 == 0:
                    print(f"{done} models: {dict(counts)}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(f"interrupted after {done} models", file=sys.stderr)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = (datetime.datetime.now(datetime.UTC) - begin).total_seconds()
    known = known_differences()
    is_known = lambda key, line: any(key == expected and text in line for expected, text in known)
    text = [
        f"{begin:%Y-%m-%d %H:%M} UTC: {done} models, {f'of {arguments.folder.name}' if arguments.folder else f'seeds from {arguments.seed}'}, {nodes} operators compared, {seconds:.0f} s on {arguments.processes} cores",
        f"ONNX Runtime {onnxruntime.__version__}, onnx {onnx.__version__}, numpy {np.__version__}, Python {platform.python_version()}",
        "outputs: " + ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items())),
        "same: within tolerance; rounding: beyond it, but the error relative to double precision is at most "
        f"{FURTHER} times ONNX Runtime's; refused: divi reports that it cannot compile it; skipped: ONNX Runtime does not run it",
        "", f"{len(lines)} kinds of differences:",
    ]
    for key, examples in sorted(lines.items(), key=lambda item: -len(item[1])):
        unknown = [line for line in examples if not is_known(key, line)]
        text.append(f"{key}: {len(examples)} times{'' if unknown else ' (known)'}, first {(unknown or examples)[0]}")
    most = sorted(reasons.items(), key=lambda item: -len(item[1]))[:40]
    text += ["", "not compared:"] + [f"{len(of):6} {reason} (first seed {of[0]})" for reason, of in most]
    print("\n".join(text))
    if arguments.log != "none":
        pathlib.Path(arguments.log).write_text("\n".join(text) + "\n")
    new = [key for key, all_of in lines.items() if not key.endswith(AS_REFERENCE) and not all(is_known(key, line) for line in all_of)]
    return 1 if new or counts["failed"] else 0


def _general(reason):
    """Returns a reason without names and numbers, so that equal reasons are counted together."""
    import re

    reason = re.sub(r"/dev/shm/\S+model\.onnx:?", "", reason)
    return re.sub(r"\b[A-Za-z]+_\d+\b|\b[vcx]\d+\b|\d+", "#", reason)[:160]


if __name__ == "__main__":
    sys.exit(main())
