"""Random models of 5 to 30 operators with inputs, from a seed.

Every value has a shape, a type, a flag `exact` (bitwise equal in every implementation) and a bound `size` on its magnitude.
Discontinuous operators (rounding, comparison, sorting) are only applied to exact values: elsewhere the last bit would decide.
"""

import random

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32, F16, I64, I32, U8, I8, BOOL = (
    TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8, TensorProto.INT8,
    TensorProto.BOOL,
)
NUMPY = {F32: np.float32, F16: np.float16, I64: np.int64, I32: np.int32, U8: np.uint8, I8: np.int8, BOOL: np.bool_}
OPSET = 21
MOST_ELEMENTS = 4096


class Value:
    def __init__(self, name, shape, dtype, exact=False, size=2.0):
        self.name, self.shape, self.dtype, self.exact, self.size = name, tuple(shape), dtype, exact, size

    @property
    def rank(self):
        return len(self.shape)


class Graph:
    """A model under construction. `size` of a value is a rough bound on its magnitude; large values are squashed first."""

    def __init__(self, seed, float_type=None):
        self.random = random.Random(seed)
        self.numpy = np.random.default_rng(seed)
        self.float = float_type or self.random.choices([F32, F16], [9, 1])[0]
        self.nodes, self.initializers, self.inputs, self.arrays, self.values, self.used = [], [], [], {}, [], set()
        self.count = 0

    # Construction.

    def name(self, prefix="v"):
        self.count += 1
        return f"{prefix}{self.count}"

    def array(self, shape, dtype):
        if dtype in (F32, F16):
            return (self.numpy.standard_normal(shape)).clip(-3, 3).astype(NUMPY[dtype])
        if dtype == BOOL:
            return self.numpy.integers(0, 2, shape).astype(np.bool_)
        low, high = {U8: (0, 256), I8: (-128, 128)}.get(dtype, (-8, 9))
        return self.numpy.integers(low, high, shape).astype(NUMPY[dtype])

    def input(self, shape, dtype):
        value = Value(self.name("x"), shape, dtype, exact=True, size=256 if dtype in (U8, I8) else 8.0)
        self.inputs.append(helper.make_tensor_value_info(value.name, dtype, shape))
        self.arrays[value.name] = np.asarray(self.array(shape, dtype))
        self.values.append(value)
        return value

    def constant(self, array):
        name = self.name("c")
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(np.shape(array)), name))
        return name

    def ints(self, numbers):
        return self.constant(np.array(numbers, np.int64))

    def weights(self, shape, scale=None):
        fan_in = max(1, int(np.prod(shape[1:])))
        array = self.numpy.standard_normal(shape) * (scale or 1 / np.sqrt(fan_in))
        return self.constant(array.astype(NUMPY[self.float]))

    def emit(self, op, inputs, shapes, dtype, exact=False, size=2.0, **attributes):
        """Adds a node; `shapes` are the shapes of its outputs."""
        names = [value.name if isinstance(value, Value) else value for value in inputs]
        self.used.update(names)
        dtypes = dtype if isinstance(dtype, list) else [dtype] * len(shapes)
        outputs = [Value(self.name(), shape, kind, exact, size) for shape, kind in zip(shapes, dtypes)]
        self.nodes.append(helper.make_node(op, names, [value.name for value in outputs], name=f"{op}_{len(self.nodes)}", **attributes))
        self.values += outputs
        return outputs

    # Random choices.

    def pick(self, dtypes=None, rank=None, exact=None, least_rank=0, most=MOST_ELEMENTS):
        """Returns an existing value, preferably a recent one; None if no value matches."""
        dtypes = dtypes or (self.float,)
        fits = [
            value for value in self.values
            if value.dtype in dtypes and (rank is None or value.rank == rank) and (exact is None or value.exact >= exact)
            and value.rank >= least_rank and 0 < np.prod(value.shape, dtype=int) <= most
        ]
        if not fits:
            return None
        return self.random.choice(fits[-8:])

    def axis(self, value, extra=0):
        axis = self.random.randrange(value.rank + extra)
        return axis - (value.rank + extra) if self.random.random() < 0.3 else axis

    def shape(self, rank=None):
        rank = self.random.choice([1, 2, 2, 3, 4, 4]) if rank is None else rank
        return tuple(self.random.choice([1, 2, 3, 4, 5, 7, 8, 16][: 8 if rank < 4 else 6]) for _ in range(rank))

    def squashed(self, value):
        """Returns a value of moderate magnitude."""
        return value if value.size <= 16 else self.emit("Tanh", [value], [value.shape], value.dtype, size=1.0)[0]

    def partner(self, value):
        """Returns another operand that broadcasts with a value: a value or a constant."""
        fits = [
            other for other in self.values
            if other.dtype == value.dtype and other.rank <= 5 and _broadcasts(other.shape, value.shape)
        ]
        if fits and self.random.random() < 0.7:
            return self.random.choice(fits)
        shape = tuple(size if self.random.random() < 0.6 else 1 for size in value.shape)[self.random.randrange(value.rank + 1):]
        return Value(self.constant(self.array(shape, value.dtype)), shape, value.dtype, exact=True, size=8.0)


def _broadcasts(a, b):
    try:
        return np.prod(np.broadcast_shapes(a, b), dtype=int) <= MOST_ELEMENTS
    except ValueError:
        return False


def build(seed, float_type=None):
    """Builds the model of a seed; returns it and its inputs by name."""
    from operators import OPERATORS

    graph = Graph(seed, float_type)
    names, weights = list(OPERATORS), [weight for _, weight in OPERATORS.values()]
    graph.input(graph.shape(4), graph.float)
    for _ in range(graph.random.randrange(1, 4)):
        graph.input(graph.shape(), graph.random.choices([graph.float, I64, I32, U8, I8, BOOL], [8, 1, 1, 1, 1, 1])[0])
    wanted = graph.random.randrange(5, 31)
    for _ in range(wanted * 6):
        if len(graph.nodes) >= wanted:
            break
        OPERATORS[graph.random.choices(names, weights)[0]][0](graph)
    outputs = [value for value in graph.values if value.name not in graph.used and value.name not in graph.arrays]
    made = helper.make_graph(
        graph.nodes, f"seed_{seed}", graph.inputs,
        [helper.make_tensor_value_info(value.name, value.dtype, value.shape) for value in outputs], graph.initializers,
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    return model, graph.arrays
