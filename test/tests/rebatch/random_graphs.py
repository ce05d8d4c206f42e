"""Small graphs of operators that move, merge, mix and repeat a batch, and of no-op operators."""

import math
import random

import numpy
import onnx
from onnx import helper, numpy_helper


class Graph:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = numpy.random.default_rng(seed)
        self.nodes, self.constants, self.values = [], [], []
        batch = self.random.choice([1, 1, 2])
        shape = [batch, *self.random.choices([1, 2, 3, 4], k=self.random.choice([1, 2, 3]))]
        self.inputs = {"x": shape}
        if self.random.random() < 0.5:
            self.inputs["y"] = [batch, *self.random.choices([1, 2, 3], k=self.random.choice([1, 2]))]
        self.values += self.inputs.items()

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.asarray(array), name))
        return name

    def list(self, values):
        return self.constant(numpy.array(values, dtype=numpy.int64))

    def add(self, op, inputs, shape, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], f"n{len(self.nodes)}", **attributes))
        self.values.append((name, list(shape)))

    def axis(self, shape):
        return self.random.randrange(len(shape)) if shape else None

    def step(self):
        # The last value is the most likely operand, so that graphs are deep.
        name, shape = self.values[-1] if self.random.random() < 0.7 else self.random.choice(self.values)
        kinds = [self.layout] * 5 + [self.elementwise] * 3 + [self.nothing] * 2 + [self.mixing, self.product, self.cut]
        self.random.choice(kinds)(name, shape, self.axis(shape))

    def layout(self, name, shape, axis):
        kind = self.random.choice(["Transpose", "Reshape", "Reshape", "Flatten", "Squeeze", "Unsqueeze"])
        if kind == "Transpose" and shape:
            perm = self.random.sample(range(len(shape)), len(shape))
            self.add(kind, [name], [shape[i] for i in perm], perm=perm)
        elif kind == "Reshape":
            self.reshape(name, shape)
        elif kind == "Flatten":
            at = self.random.randrange(len(shape) + 1)
            self.add(kind, [name], [math.prod(shape[:at]), math.prod(shape[at:])], axis=at)
        elif kind == "Squeeze" and 1 in shape:
            gone = self.random.choice([i for i, size in enumerate(shape) if size == 1])
            self.add(kind, [name, self.list([gone])], shape[:gone] + shape[gone + 1 :])
        elif kind == "Unsqueeze" and len(shape) < 5:
            new = self.random.randrange(len(shape) + 1)
            self.add(kind, [name, self.list([new])], shape[:new] + [1] + shape[new:])

    def reshape(self, name, shape):
        """Merges and splits dimensions at random, and writes some of them as 0 or -1."""
        new = list(shape)
        for _ in range(self.random.randrange(1, 4)):
            at = self.random.randrange(len(new) + 1)
            if self.random.random() < 0.5 and at + 1 < len(new):
                new[at : at + 2] = [new[at] * new[at + 1]]
            elif at < len(new) and len(new) < 5:
                divisors = [d for d in range(1, new[at] + 1) if new[at] % d == 0]
                first = self.random.choice(divisors)
                new[at : at + 1] = [first, new[at] // first]
        written = [0 if i < len(shape) and shape[i] == size and self.random.random() < 0.2 else size
                   for i, size in enumerate(new)]
        if new and self.random.random() < 0.3:
            written[self.random.randrange(len(new))] = -1
        self.add("Reshape", [name, self.list(written)], new)

    def elementwise(self, name, shape, axis):
        kind = self.random.choice(["Relu", "Neg", "Add", "Mul", "Sub", "Where"])
        if kind in ("Relu", "Neg"):
            self.add(kind, [name], shape)
            return
        same = [other for other, size in self.values if size == shape]
        other = self.random.choice(same)
        if self.random.random() < 0.5:
            small = [size if self.random.random() < 0.6 else 1 for size in shape][self.random.randrange(len(shape) + 1) :]
            other = self.constant(self.numbers.normal(size=small).astype(numpy.float32))
        if kind == "Where":
            condition = self.constant(self.numbers.random(shape) < 0.5)
            self.add(kind, [condition, name, other], shape)
        else:
            self.add(kind, self.random.sample([name, other], 2), shape)

    def nothing(self, name, shape, axis):
        number = lambda value, dims=(): self.constant(numpy.full(dims, value, dtype=numpy.float32))
        ones = [1] * self.random.randrange(len(shape) + 1)
        kind = self.random.choice(["Identity", "Cast", "Add", "Mul", "Div", "Sub", "Pad", "Tile", "Concat", "Expand", "Again"])
        if kind == "Identity":
            self.add(kind, [name], shape)
        elif kind == "Cast":
            self.add(kind, [name], shape, to=onnx.TensorProto.FLOAT)
        elif kind in ("Add", "Sub"):
            self.add(kind, [name, number(0, ones)], shape)
        elif kind in ("Mul", "Div"):
            self.add(kind, [name, number(1, shape)], shape)
        elif kind == "Pad":
            self.add(kind, [name, self.list([0] * (2 * len(shape)))], shape)
        elif kind == "Tile":
            self.add(kind, [name, self.list([1] * len(shape))], shape)
        elif kind == "Concat" and shape:
            self.add(kind, [name], shape, axis=axis)
        elif kind == "Expand":
            self.add(kind, [name, self.list(shape)], shape)
        elif kind == "Again" and self.nodes:
            node = self.random.choice(self.nodes)
            shape = dict(self.values)[node.output[0]]
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            self.add(node.op_type, list(node.input), shape, **attributes)

    def mixing(self, name, shape, axis):
        kind = self.random.choice(["Softmax", "ReduceSum", "ReduceMax", "CumSum", "Concat", "Tile"])
        if axis is None:
            return
        if kind == "Softmax":
            self.add(kind, [name], shape, axis=axis)
        elif kind.startswith("Reduce"):
            keep = self.random.randrange(2)
            self.add(kind, [name, self.list([axis])], shape[:axis] + [1] * keep + shape[axis + 1 :], keepdims=keep)
        elif kind == "CumSum":
            self.add(kind, [name, self.constant(numpy.int64(axis))], shape)
        elif kind == "Concat":
            same = [other for other, size in self.values if size == shape]
            other = self.random.choice(same + [self.constant(self.numbers.normal(size=shape).astype(numpy.float32))])
            self.add(kind, [name, other], shape[:axis] + [2 * shape[axis]] + shape[axis + 1 :], axis=axis)
        else:
            repeats = [2 if i == axis else 1 for i in range(len(shape))]
            self.add(kind, [name, self.list(repeats)], [a * b for a, b in zip(shape, repeats)])

    def product(self, name, shape, axis):
        if not shape:
            return
        if len(shape) >= 2 and self.random.random() < 0.4:
            perm = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
            self.add("Transpose", [name], [shape[i] for i in perm], perm=perm)
            turned = self.values[-1][0]
            self.add("MatMul", [name, turned], [*shape[:-1], shape[-2]])
            return
        weights = self.numbers.normal(size=[shape[-1], 3]).astype(numpy.float32)
        if len(shape) == 2 and self.random.random() < 0.5:
            bias = self.constant(self.numbers.normal(size=[3]).astype(numpy.float32))
            self.add("Gemm", [name, self.constant(weights), bias], [shape[0], 3])
        else:
            self.add("MatMul", [name, self.constant(weights)], [*shape[:-1], 3])

    def cut(self, name, shape, axis):
        if axis is None:
            return
        size = shape[axis]
        resized = lambda new: shape[:axis] + [new] + shape[axis + 1 :]
        kind = self.random.choice(["Slice", "Reverse", "Gather", "Pad"])
        if kind == "Slice":
            start = self.random.randrange(size)
            end = self.random.choice([size, size, 2**62])
            self.add(kind, [name, self.list([start]), self.list([end]), self.list([axis])], resized(size - start))
        elif kind == "Reverse":
            lists = [self.list([value]) for value in (-1, -(2**62), axis, -1)]
            self.add("Slice", [name, *lists], shape)
        elif kind == "Gather":
            indices = [self.random.randrange(-size, size) for _ in range(self.random.randrange(1, 4))]
            self.add(kind, [name, self.list(indices)], resized(len(indices)), axis=axis)
        else:
            pads = [0] * (2 * len(shape))
            pads[axis] = 1
            self.add(kind, [name, self.list(pads)], resized(size + 1))

    def model(self):
        while len(self.nodes) < 12:
            self.step()
            if math.prod(self.values[-1][1]) > 3000:
                break
        outputs = [self.values[-1], *self.random.sample(self.values[len(self.inputs) :], min(2, len(self.nodes)))]
        declare = lambda name, shape: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        # A dictionary removes duplicates.
        outputs = {name: declare(name, None) for name, _ in outputs}
        inputs = [declare(name, shape) for name, shape in self.inputs.items()]
        graph = helper.make_graph(self.nodes, "random", inputs, list(outputs.values()), self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        data = [self.numbers.normal(size=shape).astype(numpy.float32) for shape in self.inputs.values()]
        return model, data
