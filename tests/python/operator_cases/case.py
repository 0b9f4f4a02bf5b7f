"""What a case draws from, and what it is compared by."""

import numpy as np
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

    def model(self):
        return self.g.build(self.outputs, others=self.others)
