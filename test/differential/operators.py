"""Operators of the generator: each function adds one node or a few, or none if no value matches.

`OPERATORS` maps their names to the functions and their weights.
"""

import numpy as np

from generate import BOOL, F16, F32, I8, I32, I64, U8, NUMPY, Value

OPERATORS = {}


def operator(weight=1.0):
    def register(function):
        OPERATORS[function.__name__] = (function, weight)
        return function

    return register


# Elementwise.

SMOOTH = {
    "Relu": {}, "LeakyRelu": {"alpha": 0.2}, "Sigmoid": {}, "Tanh": {}, "Abs": {}, "Neg": {}, "Erf": {}, "Elu": {"alpha": 0.7},
    "Selu": {}, "Softplus": {}, "Softsign": {}, "HardSigmoid": {"alpha": 0.3}, "HardSwish": {}, "Mish": {}, "Celu": {"alpha": 1.5},
    "Gelu": {"approximate": "tanh"}, "Sin": {}, "Cos": {}, "Atan": {}, "Asinh": {}, "Identity": {}, "Dropout": {}, "Shrink": {"lambd": 0.0},
}
KEEP_EXACT = {"Relu", "Abs", "Neg", "Identity", "Dropout"}


@operator(8)
def unary(graph):
    value = graph.pick()
    if value:
        op = graph.random.choice([op for op in SMOOTH if op != "Celu" or value.dtype == F32])
        graph.emit(op, [graph.squashed(value)], [value.shape], value.dtype, value.exact and op in KEEP_EXACT, value.size, **SMOOTH[op])


@operator(1)
def gelu(graph):
    value = graph.pick()
    if value:
        graph.emit("Gelu", [graph.squashed(value)], [value.shape], value.dtype, size=value.size)


@operator(1)
def bounded_domain(graph):
    """Operators defined for positive numbers only."""
    value = graph.pick()
    if value:
        [positive] = graph.emit("Abs", [graph.squashed(value)], [value.shape], value.dtype)
        one = graph.constant(np.array(1, NUMPY[value.dtype]))
        [shifted] = graph.emit("Add", [positive, one], [value.shape], value.dtype, size=17)
        graph.emit(graph.random.choice(["Log", "Sqrt", "Reciprocal", "Acosh"]), [shifted], [value.shape], value.dtype)


@operator(1)
def exponential(graph):
    value = graph.pick()
    if value:
        [small] = graph.emit("Tanh", [value], [value.shape], value.dtype, size=1)
        graph.emit(graph.random.choice(["Exp", "Sinh", "Cosh", "Asin", "Acos", "Tan"]), [small], [value.shape], value.dtype, size=3)


@operator(1.5)
def jump(graph):
    value = graph.pick(exact=True)
    if value:
        op = graph.random.choice(["Floor", "Ceil", "Round", "Sign", "ThresholdedRelu", "Hardmax", "IsNaN", "IsInf"])
        if op == "IsInf" and value.dtype == F16:
            return
        if op == "Hardmax" and value.rank == 0:
            return
        dtype = BOOL if op.startswith("Is") else value.dtype
        graph.emit(op, [value], [value.shape], dtype, exact=True)


@operator(2)
def clip(graph):
    value = graph.pick((graph.float, I32, I64))
    if value:
        low, high = sorted(graph.random.sample(range(-4, 5), 2))
        bounds = [graph.constant(np.array(bound, NUMPY[value.dtype])) for bound in (low, high)]
        bounds = graph.random.choice([bounds, bounds[:1], ["", bounds[1]]])
        graph.emit("Clip", [value, *bounds], [value.shape], value.dtype, value.exact, value.size)


@operator(1)
def prelu(graph):
    value = graph.pick(least_rank=2)
    if value:
        slope = graph.weights((value.shape[1],) + (1,) * (value.rank - 2), 0.3)
        graph.emit("PRelu", [value, slope], [value.shape], value.dtype, size=value.size)


@operator(8)
def binary(graph):
    value = graph.pick((graph.float, graph.float, I32, I64))
    if value:
        other = graph.partner(value)
        op = graph.random.choice(["Add", "Sub", "Mul", "Max", "Min", "Add", "Mul"] + ([] if value.dtype in (I32, I64) else ["Mean", "Sum"]))
        if value.dtype in (F32, F16):
            value = graph.squashed(value)
            other = graph.squashed(other)
        operands = [value, other] if graph.random.random() < 0.5 else [other, value]
        if op in ("Max", "Min", "Mean", "Sum") and graph.random.random() < 0.3:
            operands.append(value)
        shape = np.broadcast_shapes(value.shape, other.shape)
        exact = value.exact and other.exact and (op in ("Max", "Min", "Add", "Sub", "Mul") and op != "Sum")
        # Integer overflow wraps around in every implementation.
        graph.emit(op, operands, [shape], value.dtype, exact, value.size * other.size if op == "Mul" else value.size + other.size)


@operator(1.5)
def divide(graph):
    value = graph.pick()
    if value:
        other = graph.partner(value)
        [positive] = graph.emit("Abs", [graph.squashed(other)], [other.shape], other.dtype)
        [shifted] = graph.emit("Add", [positive, graph.constant(np.array(0.5, NUMPY[value.dtype]))], [other.shape], other.dtype)
        graph.emit("Div", [value, shifted], [np.broadcast_shapes(value.shape, other.shape)], value.dtype, size=value.size * 2)


@operator(1)
def power(graph):
    value = graph.pick()
    if value:
        exponent = graph.random.choice([2.0, 3.0, 0.5, 1.5, -1.0])
        base = graph.squashed(value)
        if exponent not in (2.0, 3.0):
            [positive] = graph.emit("Abs", [base], [value.shape], value.dtype)
            [base] = graph.emit("Add", [positive, graph.constant(np.array(0.5, NUMPY[value.dtype]))], [value.shape], value.dtype)
        graph.emit("Pow", [base, graph.constant(np.array(exponent, NUMPY[value.dtype]))], [value.shape], value.dtype, size=4096)


@operator(1)
def integer_division(graph):
    value = graph.pick((I32, I64))
    if value:
        divisor = graph.constant(graph.numpy.choice([-3, -2, 2, 3, 5], value.shape).astype(NUMPY[value.dtype]))
        graph.emit(graph.random.choice(["Div", "Mod"]), [value, divisor], [value.shape], value.dtype, exact=True)


@operator(0.7)
def float_mod(graph):
    value = graph.pick(exact=True)
    if value:
        divisor = graph.constant(graph.numpy.choice([0.5, 1.0, 2.0], value.shape).astype(NUMPY[value.dtype]))
        graph.emit("Mod", [value, divisor], [value.shape], value.dtype, exact=True, fmod=1)


@operator(0.7)
def bits(graph):
    value = graph.pick((I32, I64, U8))
    if value:
        other = graph.constant(graph.array(value.shape, value.dtype))
        graph.emit(graph.random.choice(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]), [value, other], [value.shape], value.dtype, exact=True, size=256)


@operator(2)
def compare(graph):
    value = graph.pick((graph.float, I32, I64), exact=True)
    if value:
        other = graph.partner(value)
        if other.exact:
            op = graph.random.choice(["Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"])
            graph.emit(op, [value, other], [np.broadcast_shapes(value.shape, other.shape)], BOOL, exact=True)


@operator(1)
def logic(graph):
    value = graph.pick((BOOL,))
    if value:
        if graph.random.random() < 0.3:
            graph.emit("Not", [value], [value.shape], BOOL, exact=True)
        else:
            other = graph.partner(value)
            op = graph.random.choice(["And", "Or", "Xor"])
            graph.emit(op, [value, other], [np.broadcast_shapes(value.shape, other.shape)], BOOL, exact=True)


@operator(1.5)
def where(graph):
    condition, value = graph.pick((BOOL,)), graph.pick((graph.float, I64))
    if condition and value:
        other = graph.partner(value)
        try:
            shape = np.broadcast_shapes(condition.shape, value.shape, other.shape)
        except ValueError:
            return
        if np.prod(shape, dtype=int) <= 4096:
            graph.emit("Where", [condition, value, other], [shape], value.dtype, value.exact and other.exact, max(value.size, other.size))


@operator(1.5)
def cast(graph):
    value = graph.pick((I32, I64, U8, I8, BOOL, graph.float), exact=True)
    if value:
        targets = [I32, I64, graph.float, graph.float]
        targets += [BOOL] if value.dtype != graph.float else []
        target = graph.random.choice(targets)
        # Narrow integer targets are left out: conversion of values out of range is undefined.
        graph.emit("Cast", [value], [value.shape], target, exact=True, size=value.size, to=target)


# Shapes.

@operator(3)
def transpose(graph):
    value = graph.pick((graph.float, graph.float, I64, BOOL, U8), least_rank=1)
    if value:
        order = graph.random.sample(range(value.rank), value.rank)
        graph.emit("Transpose", [value], [[value.shape[i] for i in order]], value.dtype, value.exact, value.size, perm=order)


@operator(3)
def reshape(graph):
    value = graph.pick((graph.float, graph.float, I64, BOOL))
    if value:
        count, sizes = int(np.prod(value.shape, dtype=int)), []
        rest = count
        for _ in range(graph.random.randrange(0, 4)):
            size = graph.random.choice([size for size in (1, 2, 3, 4, 5, 7, 8) if rest % size == 0])
            sizes.append(size)
            rest //= size
        sizes.append(rest)
        graph.random.shuffle(sizes)
        asked = list(sizes)
        if graph.random.random() < 0.5:
            asked[graph.random.randrange(len(asked))] = -1
        graph.emit("Reshape", [value, graph.ints(asked)], [sizes], value.dtype, value.exact, value.size)


@operator(1)
def flatten(graph):
    value = graph.pick(least_rank=1)
    if value:
        axis = graph.random.randrange(value.rank + 1)
        shape = [int(np.prod(value.shape[:axis], dtype=int)), int(np.prod(value.shape[axis:], dtype=int))]
        graph.emit("Flatten", [value], [shape], value.dtype, value.exact, value.size, axis=axis)


@operator(1)
def squeeze(graph):
    value = graph.pick()
    if value and 1 in value.shape:
        axis = graph.random.choice([i for i, size in enumerate(value.shape) if size == 1])
        shape = [size for i, size in enumerate(value.shape) if i != axis]
        graph.emit("Squeeze", [value, graph.ints([axis - graph.random.choice([0, value.rank])])], [shape], value.dtype, value.exact, value.size)


@operator(1)
def unsqueeze(graph):
    value = graph.pick()
    if value and value.rank < 5:
        axis = graph.axis(value, 1)
        shape = list(value.shape)
        shape.insert(axis % (value.rank + 1), 1)
        graph.emit("Unsqueeze", [value, graph.ints([axis])], [shape], value.dtype, value.exact, value.size)


@operator(2)
def concat(graph):
    value = graph.pick((graph.float, graph.float, I64), least_rank=1)
    if value:
        axis = graph.axis(value)
        at = axis % value.rank
        same = lambda other: other.rank == value.rank and all(a == b for i, (a, b) in enumerate(zip(other.shape, value.shape)) if i != at)
        fits = [other for other in graph.values if other.dtype == value.dtype and same(other)]
        parts = [graph.random.choice(fits) for _ in range(graph.random.randrange(1, 4))] + [value]
        shape = list(value.shape)
        shape[at] = sum(part.shape[at] for part in parts)
        graph.emit("Concat", parts, [shape], value.dtype, all(part.exact for part in parts), max(part.size for part in parts), axis=axis)


@operator(2)
def split(graph):
    value = graph.pick(least_rank=1)
    if value:
        axis = graph.axis(value)
        size = value.shape[axis]
        if size >= 2:
            first = graph.random.randrange(1, size)
            shapes = [list(value.shape), list(value.shape)]
            shapes[0][axis], shapes[1][axis] = first, size - first
            graph.emit("Split", [value, graph.ints([first, size - first])], shapes, value.dtype, value.exact, value.size, axis=axis)


@operator(3)
def slice_(graph):
    value = graph.pick((graph.float, graph.float, I64, BOOL), least_rank=1)
    if value:
        axis = graph.axis(value)
        size = value.shape[axis]
        step = graph.random.choice([1, 1, 2, -1, -2])
        start, end = graph.random.randrange(-size, size), graph.random.randrange(-size - 1, size + 2)
        cut = np.empty(size)[slice(start, end if step > 0 or end >= -size else None, step)].shape[0]
        end = end if step > 0 or end >= -size else -(1 << 40)
        if cut:
            shape = list(value.shape)
            shape[axis] = cut
            graph.emit("Slice", [value, *(graph.ints([n]) for n in (start, end, axis, step))], [shape], value.dtype, value.exact, value.size)


@operator(1.5)
def gather(graph):
    value = graph.pick((graph.float, graph.float, I64), least_rank=1)
    if value:
        axis = graph.axis(value)
        size, at = value.shape[axis], axis % value.rank
        indices = graph.numpy.integers(-size, size, graph.random.choice([(), (3,), (2, 2)]))
        shape = value.shape[:at] + indices.shape + value.shape[at + 1:]
        graph.emit("Gather", [value, graph.constant(indices.astype(np.int64))], [shape], value.dtype, value.exact, value.size, axis=axis)


@operator(1)
def gather_elements(graph):
    value = graph.pick(least_rank=1)
    if value:
        axis = graph.axis(value)
        shape = [graph.random.randrange(1, size + 1) for size in value.shape]
        indices = graph.numpy.integers(-value.shape[axis], value.shape[axis], shape)
        graph.emit("GatherElements", [value, graph.constant(indices.astype(np.int64))], [shape], value.dtype, value.exact, value.size, axis=axis)


@operator(1)
def gather_nd(graph):
    value = graph.pick(least_rank=2)
    if value:
        depth = graph.random.randrange(1, value.rank + 1)
        indices = np.stack([graph.numpy.integers(0, size, 4) for size in value.shape[:depth]], -1)
        graph.emit("GatherND", [value, graph.constant(indices.astype(np.int64))], [(4,) + value.shape[depth:]], value.dtype, value.exact, value.size)


@operator(1)
def scatter_elements(graph):
    value = graph.pick(least_rank=1)
    if value:
        axis = graph.axis(value)
        shape = list(value.shape)
        order = np.argsort(graph.numpy.random(value.shape), axis=axis).astype(np.int64)
        updates = graph.array(shape, value.dtype)
        graph.emit("ScatterElements", [value, graph.constant(order), graph.constant(updates)], [shape], value.dtype, value.exact, value.size, axis=axis,
                   reduction=graph.random.choice(["none", "add", "mul", "max"]) if value.dtype == F32 else "none")


@operator(1)
def scatter_nd(graph):
    value = graph.pick(least_rank=1)
    if value:
        count = graph.random.randrange(1, value.shape[0] + 1)
        indices = graph.numpy.permutation(value.shape[0])[:count, None].astype(np.int64)
        updates = graph.array((count,) + value.shape[1:], value.dtype)
        graph.emit("ScatterND", [value, graph.constant(indices), graph.constant(updates)], [value.shape], value.dtype, value.exact, value.size)


@operator(1)
def expand(graph):
    value = graph.pick((graph.float, I64, BOOL))
    if value:
        shape = [graph.random.choice([2, 3, 4]) if size == 1 else graph.random.choice([1, size]) for size in value.shape]
        shape = [2] * graph.random.randrange(2) + shape
        result = np.broadcast_shapes(shape, value.shape)
        if np.prod(result, dtype=int) <= 4096:
            graph.emit("Expand", [value, graph.ints(shape)], [result], value.dtype, value.exact, value.size)


@operator(1)
def tile(graph):
    value = graph.pick(most=1000)
    if value and value.rank:
        repeats = [graph.random.choice([1, 1, 2, 3]) for _ in value.shape]
        graph.emit("Tile", [value, graph.ints(repeats)], [np.multiply(value.shape, repeats).tolist()], value.dtype, value.exact, value.size)


@operator(2)
def pad(graph):
    value = graph.pick(least_rank=1, most=2000)
    if value:
        mode = graph.random.choice(["constant", "constant", "reflect", "edge", "wrap"])
        most = [min(2, size - 1) for size in value.shape] if mode in ("reflect", "wrap") else [2] * value.rank
        before, after = ([graph.random.randrange(n + 1) if graph.random.random() < 0.6 else 0 for n in most] for _ in range(2))
        shape = [size + a + b for size, a, b in zip(value.shape, before, after)]
        operands = [value, graph.ints(before + after)]
        if mode == "constant" and graph.random.random() < 0.7:
            operands.append(graph.constant(np.array(1.5, NUMPY[value.dtype])))
        graph.emit("Pad", operands, [shape], value.dtype, value.exact, value.size, mode=mode)


@operator(1)
def depth_to_space(graph):
    value = graph.pick(rank=4)
    if value:
        n, c, h, w = value.shape
        if c % 4 == 0:
            mode = graph.random.choice(["DCR", "CRD"])
            graph.emit("DepthToSpace", [value], [(n, c // 4, h * 2, w * 2)], value.dtype, value.exact, value.size, blocksize=2, mode=mode)
        elif h % 2 == 0 and w % 2 == 0:
            graph.emit("SpaceToDepth", [value], [(n, c * 4, h // 2, w // 2)], value.dtype, value.exact, value.size, blocksize=2)


@operator(0.7)
def trilu(graph):
    value = graph.pick((graph.float, I64), least_rank=2)
    if value:
        k = graph.constant(np.array(graph.random.randrange(-2, 3), np.int64))
        graph.emit("Trilu", [value, k], [value.shape], value.dtype, value.exact, value.size, upper=graph.random.randrange(2))


@operator(0.7)
def shape_arithmetic(graph):
    value = graph.pick(least_rank=1)
    if value:
        [shape] = graph.emit("Shape", [value], [(value.rank,)], I64, exact=True)
        graph.emit("Reshape", [value, shape], [value.shape], value.dtype, value.exact, value.size)


# Reductions and scans along axes.

@operator(5)
def reduce(graph):
    value = graph.pick((graph.float, graph.float, graph.float, I32), least_rank=1)
    if value:
        ops = ["ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceSumSquare", "ReduceProd"]
        ops += [] if value.dtype == I32 else ["ReduceL2", "ReduceLogSumExp"]
        op = graph.random.choice(ops)
        value = graph.squashed(value) if value.dtype != I32 else value
        if op == "ReduceProd":
            [value] = graph.emit("Clip", [value, graph.constant(np.array(-1, NUMPY[value.dtype])), graph.constant(np.array(1, NUMPY[value.dtype]))], [value.shape], value.dtype)
        axes = sorted(graph.random.sample(range(value.rank), graph.random.randrange(1, value.rank + 1)))
        keep = graph.random.randrange(2)
        shape = [1 if i in axes else size for i, size in enumerate(value.shape) if keep or i not in axes]
        operands = [value] if len(axes) == value.rank and graph.random.random() < 0.5 else [value, graph.ints([axis - graph.random.choice([0, value.rank]) for axis in axes])]
        count = np.prod([value.shape[axis] for axis in axes])
        exact = value.exact and op in ("ReduceMax", "ReduceMin") or value.dtype == I32 and op != "ReduceMean"
        graph.emit(op, operands, [shape], value.dtype, exact, value.size * count if op not in ("ReduceMax", "ReduceMin", "ReduceMean") else value.size, keepdims=keep)


@operator(1)
def arg(graph):
    value = graph.pick(exact=True, least_rank=1)
    if value:
        axis, keep = graph.axis(value), graph.random.randrange(2)
        shape = [1 if i == axis % value.rank else size for i, size in enumerate(value.shape) if keep or i != axis % value.rank]
        graph.emit(graph.random.choice(["ArgMax", "ArgMin"]), [value], [shape], I64, exact=True, size=16, axis=axis, keepdims=keep)


@operator(1)
def top_k(graph):
    value = graph.pick(exact=True, least_rank=1)
    if value:
        axis = graph.axis(value)
        k = graph.random.randrange(1, value.shape[axis] + 1)
        shape = list(value.shape)
        shape[axis] = k
        graph.emit("TopK", [value, graph.ints([k])], [shape, shape], [value.dtype, I64], exact=True, axis=axis, largest=graph.random.randrange(2))


@operator(2)
def softmax(graph):
    value = graph.pick(least_rank=1)
    if value:
        graph.emit(graph.random.choice(["Softmax", "LogSoftmax"]), [graph.squashed(value)], [value.shape], value.dtype, size=16, axis=graph.axis(value))


@operator(0.7)
def cum_sum(graph):
    value = graph.pick(least_rank=1)
    if value:
        axis = graph.constant(np.array(graph.axis(value), np.int64))
        graph.emit("CumSum", [value, axis], [value.shape], value.dtype, size=value.size * 8, exclusive=graph.random.randrange(2), reverse=graph.random.randrange(2))


# Neural network layers.

def _convolved(size, kernel, stride, before, after, dilation):
    return (size + before + after - (kernel - 1) * dilation - 1) // stride + 1


@operator(6)
def conv(graph):
    value = graph.pick(rank=graph.random.choice([3, 4, 4, 4, 5]))
    if value:
        value = graph.squashed(value)
        n, c, *sizes = value.shape
        group = graph.random.choice([g for g in {1, 1, c} if c % g == 0])
        out = group * graph.random.choice([1, 2, 3, 4] if group > 1 else [1, 4, 8, 16])
        kernel = [graph.random.choice([1, 2, 3, 3, 5]) for _ in sizes]
        stride = [graph.random.choice([1, 1, 2]) for _ in sizes]
        dilation = [graph.random.choice([1, 1, 2]) for _ in sizes]
        # ONNX Runtime does not pad dilated windows with SAME.
        auto = "NOTSET" if max(dilation) > 1 else graph.random.choice(["NOTSET"] * 5 + ["SAME_UPPER", "SAME_LOWER", "VALID"])
        attributes = {"group": group, "kernel_shape": kernel, "strides": stride, "dilations": dilation}
        if auto.startswith("SAME"):
            shape = [-(-size // s) for size, s in zip(sizes, stride)]
            attributes["auto_pad"] = auto
        else:
            pads = [0] * (2 * len(sizes)) if auto == "VALID" else [graph.random.randrange(0, 3) for _ in range(2 * len(sizes))]
            shape = [_convolved(size, k, s, pads[i], pads[i + len(sizes)], d) for i, (size, k, s, d) in enumerate(zip(sizes, kernel, stride, dilation))]
            attributes |= {"auto_pad": "VALID"} if auto == "VALID" else {"pads": pads}
        if min(shape) < 1 or n * out * np.prod(shape) > 8192:
            return
        operands = [value, graph.weights((out, c // group, *kernel))] + ([graph.weights((out,), 0.1)] if graph.random.random() < 0.6 else [])
        [result] = graph.emit("Conv", operands, [(n, out, *shape)], value.dtype, size=value.size * 2, **attributes)
        if graph.random.random() < 0.4:
            batch_norm(graph, result)


@operator(1)
def conv_transpose(graph):
    value = graph.pick(rank=graph.random.choice([3, 4, 4]), most=600)
    if value:
        value = graph.squashed(value)
        n, c, *sizes = value.shape
        kernel, stride = [graph.random.choice([1, 2, 3]) for _ in sizes], [graph.random.choice([1, 2]) for _ in sizes]
        pads = [graph.random.randrange(0, 2) for _ in range(2 * len(sizes))]
        extra = [graph.random.randrange(0, s) for s in stride]
        shape = [(size - 1) * s + k + e - pads[i] - pads[i + len(sizes)] for i, (size, k, s, e) in enumerate(zip(sizes, kernel, stride, extra))]
        if min(shape) >= 1:
            out = graph.random.choice([1, 3, 4])
            graph.emit("ConvTranspose", [value, graph.weights((c, out, *kernel))], [(n, out, *shape)], value.dtype, size=value.size * 2, strides=stride,
                       pads=pads, output_padding=extra)


@operator(2)
def pool(graph):
    value = graph.pick(rank=graph.random.choice([3, 4, 4, 4]))
    if value:
        sizes = value.shape[2:]
        op = graph.random.choice(["MaxPool", "AveragePool", "LpPool"])
        kernel, stride = [graph.random.choice([1, 2, 3]) for _ in sizes], [graph.random.choice([1, 2]) for _ in sizes]
        dilation = [graph.random.choice([1, 1, 2]) if op != "LpPool" else 1 for _ in sizes]
        pads = [graph.random.randrange(0, k) for k in kernel * 2]
        ceil = graph.random.randrange(2) if op != "LpPool" else 0
        shape = []
        for i, (size, k, s, d) in enumerate(zip(sizes, kernel, stride, dilation)):
            reach = (k - 1) * d + 1
            if pads[i] >= reach or pads[i + len(sizes)] >= reach:
                return
            room = size + pads[i] + pads[i + len(sizes)] - reach
            if room < 0:
                return
            count = -(-room // s) + 1 if ceil else room // s + 1
            # A window that starts behind the data: counted by ONNX's shape inference, but not by runtimes.
            if ceil and (count - 1) * s >= size + pads[i]:
                return
            shape.append(count)
        attributes = {"kernel_shape": kernel, "strides": stride, "pads": pads}
        attributes |= {"ceil_mode": ceil, "dilations": dilation} if op != "LpPool" else {"p": graph.random.choice([1, 2])}
        attributes |= {"count_include_pad": graph.random.randrange(2)} if op == "AveragePool" else {}
        graph.emit(op, [value], [(*value.shape[:2], *shape)], value.dtype, value.exact and op == "MaxPool", value.size, **attributes)


@operator(1)
def global_pool(graph):
    value = graph.pick(least_rank=3)
    if value:
        shape = value.shape[:2] + (1,) * (value.rank - 2)
        graph.emit(graph.random.choice(["GlobalAveragePool", "GlobalMaxPool"]), [value], [shape], value.dtype, size=value.size)


@operator(1.5)
def batch_norm(graph, value=None):
    value = value or graph.pick(least_rank=2)
    if value:
        c = value.shape[1]
        variance = graph.constant((graph.numpy.random(c) + 0.5).astype(NUMPY[graph.float]))
        graph.emit("BatchNormalization", [value, graph.weights((c,), 1), graph.weights((c,), 1), graph.weights((c,), 1), variance], [value.shape], value.dtype,
                   size=value.size * 3, epsilon=1e-3)


@operator(2)
def normalization(graph):
    value = graph.pick(least_rank=3)
    if value:
        value = graph.squashed(value)
        c = value.shape[1]
        kind = graph.random.choice(["InstanceNormalization", "LayerNormalization", "GroupNormalization", "LRN", "LpNormalization"])
        if kind == "InstanceNormalization":
            graph.emit(kind, [value, graph.weights((c,), 1), graph.weights((c,), 1)], [value.shape], value.dtype, size=8, epsilon=1e-2)
        elif kind == "LayerNormalization":
            axis = graph.random.randrange(1, value.rank)
            scale = graph.weights(value.shape[axis:], 1)
            bias = [graph.weights(value.shape[axis:], 1)] if graph.random.random() < 0.5 else []
            graph.emit(kind, [value, scale, *bias], [value.shape], value.dtype, size=8, axis=axis - graph.random.choice([0, value.rank]), epsilon=1e-2)
        elif kind == "GroupNormalization":
            groups = graph.random.choice([g for g in (1, 2, 4) if c % g == 0])
            graph.emit(kind, [value, graph.weights((c,), 1), graph.weights((c,), 1)], [value.shape], value.dtype, size=8, num_groups=groups, epsilon=1e-2)
        elif kind == "LRN" and value.rank == 4:
            graph.nodes.append(_lrn(graph, value))
        elif kind == "LpNormalization":
            one = graph.constant(np.array(2, NUMPY[value.dtype]))
            [shifted] = graph.emit("Add", [value, one], [value.shape], value.dtype)
            graph.emit(kind, [shifted], [value.shape], value.dtype, axis=graph.axis(value), p=graph.random.choice([1, 2]))


def _lrn(graph, value):
    """Builds an LRN node: its attribute `size` collides with the parameter of `emit`."""
    from onnx import helper

    output = Value(graph.name(), value.shape, value.dtype, size=value.size)
    graph.used.add(value.name)
    graph.values.append(output)
    return helper.make_node("LRN", [value.name], [output.name], name=f"LRN_{len(graph.nodes)}", size=graph.random.choice([1, 3, 5]), alpha=0.1, beta=0.75, bias=1.5)


@operator(4)
def matmul(graph):
    value = graph.pick(least_rank=1)
    if value:
        value = graph.squashed(value)
        k = value.shape[-1]
        fits = [other for other in graph.values if other.dtype == value.dtype and other.rank == 2 and other.shape[0] == k and other.size <= 16]
        if fits and graph.random.random() < 0.4:
            other = graph.random.choice(fits)
            n = other.shape[1]
        else:
            n = graph.random.choice([1, 3, 8, 17])
            other = graph.weights((k, n))
        if np.prod(value.shape[:-1], dtype=int) * n <= 8192:
            graph.emit("MatMul", [value, other], [value.shape[:-1] + (n,)], value.dtype, size=value.size * 4)


@operator(2)
def gemm(graph):
    value = graph.pick(rank=2)
    if value:
        value = graph.squashed(value)
        ta, tb = graph.random.randrange(2), graph.random.randrange(2)
        m, k = value.shape[::-1] if ta else value.shape
        n = graph.random.choice([1, 4, 9])
        operands = [value, graph.weights((n, k) if tb else (k, n), 0.3)]
        if graph.random.random() < 0.7:
            operands.append(graph.weights(graph.random.choice([(n,), (1, n), (m, n), (m, 1), ()]), 1))
        graph.emit("Gemm", operands, [(m, n)], value.dtype, size=value.size * 4, transA=ta, transB=tb, alpha=graph.random.choice([1.0, 0.5]),
                   beta=graph.random.choice([1.0, 0.25]))


@operator(1)
def einsum(graph):
    value = graph.pick(rank=3, most=1000)
    if value:
        value = graph.squashed(value)
        b, i, j = value.shape
        equation, shape, result = graph.random.choice([
            ("bij,bjk->bik", (b, j, 3), (b, i, 3)), ("bij,kj->bik", (4, j), (b, i, 4)), ("bij,bij->b", (b, i, j), (b,)), ("bij,j->ib", (j,), (i, b)),
        ])
        graph.emit("Einsum", [value, graph.weights(shape, 0.3)], [result], value.dtype, size=value.size * 4, equation=equation)


@operator(1.5)
def resize(graph):
    value = graph.pick(rank=4, most=800)
    if value:
        n, c, h, w = value.shape
        mode = graph.random.choice(["nearest", "linear", "cubic"])
        coordinates = graph.random.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
        if graph.random.random() < 0.5:
            scale = graph.random.choice([2.0, 0.5, 1.5])
            shape = (n, c, int(h * scale), int(w * scale))
            operands = [value, "", graph.constant(np.array([1, 1, scale, scale], np.float32))]
        else:
            shape = (n, c, graph.random.randrange(1, 12), graph.random.randrange(1, 12))
            operands = [value, "", "", graph.ints(shape)]
        if min(shape) < 1:
            return
        attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
        attributes |= {"nearest_mode": graph.random.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])} if mode == "nearest" else {}
        graph.emit("Resize", operands, [shape], value.dtype, value.exact and mode == "nearest", value.size * 2, **attributes)


@operator(0.7)
def grid_sample(graph):
    value = graph.pick((F32,), rank=4, most=800)
    if value:
        n, c, h, w = value.shape
        grid = graph.constant((graph.numpy.random((n, 3, 4, 2)) * 2.2 - 1.1).astype(np.float32))
        graph.emit("GridSample", [value, grid], [(n, c, 3, 4)], value.dtype, size=value.size, mode=graph.random.choice(["linear", "cubic"]),
                   padding_mode=graph.random.choice(["zeros", "border", "reflection"]), align_corners=graph.random.randrange(2))


# Quantized.

@operator(1.5)
def quantize(graph):
    value = graph.pick((F32,), exact=True, least_rank=1)
    if value:
        dtype = graph.random.choice([U8, I8])
        point = graph.constant(np.array(graph.random.randrange(100) if dtype == U8 else graph.random.randrange(-20, 20), NUMPY[dtype]))
        scale = graph.constant(np.array(graph.random.choice([0.03125, 0.0625, 0.5]), np.float32))
        [quantized] = graph.emit("QuantizeLinear", [value, scale, point], [value.shape], dtype, exact=True, size=256)
        if graph.random.random() < 0.6:
            graph.emit("DequantizeLinear", [quantized, scale, point], [value.shape], F32, exact=True, size=8)


@operator(1)
def integer_product(graph):
    value = graph.pick((U8, I8), rank=graph.random.choice([2, 3, 4]))
    if value:
        if value.rank == 4 and graph.random.random() < 0.6:
            n, c, h, w = value.shape
            weights = graph.constant(graph.array((3, c, 1, 1), I8 if value.dtype == I8 else graph.random.choice([U8, I8])))
            # ONNX Runtime has ConvInteger for unsigned data only.
            if value.dtype == U8:
                graph.emit("ConvInteger", [value, weights, graph.constant(np.array(7, NUMPY[value.dtype]))], [(n, 3, h, w)], I32, exact=True, size=1 << 20)
            return
        k = value.shape[-1]
        other = graph.constant(graph.array((k, 5), I8 if value.dtype == I8 else graph.random.choice([U8, I8])))
        graph.emit("MatMulInteger", [value, other, graph.constant(np.array(3, NUMPY[value.dtype]))], [value.shape[:-1] + (5,)], I32, exact=True, size=1 << 20)


@operator(0.7)
def dynamic_quantize(graph):
    value = graph.pick((F32,), exact=True, least_rank=1)
    if value:
        graph.emit("DynamicQuantizeLinear", [value], [value.shape, (), ()], [U8, F32, U8], exact=True, size=256)
