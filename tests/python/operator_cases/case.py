"""What a case draws from, and what it is compared by."""

import graphs
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from random_values import Chooser

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32]
FLOATS = [np.float16, np.float32, np.float64]


class Case(Chooser):
    """`exact`: outputs have LiteRT's bits; otherwise floats are as near as `tolerance` of the largest. `reference`:
    compared with LiteRT's reference kernels where they have the operator, otherwise with its others. `steps`: by how
    much integers may differ."""

    def __init__(self, name, grow, seed):
        super().__init__([seed, *name.encode()])
        self.name = name
        self.exact, self.tolerance, self.reference, self.steps = True, 1e-6, True, 0
        self.others = []  # further subgraphs, as Graph.build() takes them
        outputs = grow(self)
        self.outputs = outputs if isinstance(outputs, list) else [outputs]

    def shape(self, low=1, high=4, extent=6):
        return tuple(self.int(1, extent) for _ in range(self.int(low, high)))

    def values(self, shape, dtype, low=None, high=None):
        dtype = np.dtype(dtype)
        if dtype == np.bool_:
            return self.rng.random(shape) < 0.5
        if dtype.kind == "c":
            return (self.rng.normal(0, 3, shape) + 1j * self.rng.normal(0, 3, shape)).astype(dtype)
        if dtype.kind == "f":
            low, high = (-3, 3) if low is None else (low, high)
            return self.rng.uniform(low, high, shape).astype(dtype)
        low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if low is None else (low, high)
        return self.rng.integers(low, high, shape, dtype, endpoint=True)

    def input(self, shape, dtype, low=None, high=None, scale=None, zero_point=0):
        return self.feed(self.values(shape, dtype, low, high), scale, zero_point)

    def either(self, data):
        """A constant or a run-time value."""
        return self.feed(data) if self.chance(0.5) else self.g.constant(data)

    def two_of(self, dtype, low=None, high=None):
        """Two inputs that broadcast, and the result's shape."""
        shape = self.shape(0, 4)
        other = self.pick([shape, shape, (), shape[1:], tuple(self.pick([1, d]) for d in shape)])
        x, y = self.input(shape, dtype, low, high), self.input(other, dtype, low, high)
        return *self.pick([(x, y), (y, x)]), shape

    def scale(self):
        return float(np.float32(2.0 ** self.rng.uniform(-6, -3)))

    def with_run_time_operands(self):
        """Makes inputs of all constants of a type that numpy has. Returns whether there were any."""
        kinds, before = {code: dtype for dtype, code in graphs.TYPES.items()}, len(self.g.inputs)
        for index, tensor in enumerate(self.g.tensors):
            if not tensor.buffer or tensor.type not in kinds or tensor.sparsity is not None:
                continue
            data = np.frombuffer(self.g.buffers[tensor.buffer].data.tobytes(), kinds[tensor.type])
            self.feeds[index], tensor.buffer = data.reshape(tensor.shape), 0
            self.g.inputs.append(graphs.Value(index, tensor.shape, data.dtype, None, 0))
        return len(self.g.inputs) > before

    def with_constant_operands(self):
        """Makes constants of all inputs but the first. Returns whether there were any."""
        others, self.g.inputs = self.g.inputs[1:], self.g.inputs[:1]
        for value in others:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(self.feeds[value.index].tobytes(), np.uint8)
            self.g.buffers.append(buffer)
            self.g.tensors[value.index].buffer = len(self.g.buffers) - 1
        return bool(others)

    def model(self):
        return self.g.build(self.outputs, others=self.others)
