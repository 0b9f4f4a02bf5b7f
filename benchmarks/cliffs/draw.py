"""Random shapes and operands, of the kinds and sizes that nets have."""

import graphs
import numpy as np

FLOAT, INT8, UINT8, INT16 = np.dtype("f4"), np.dtype("i1"), np.dtype("u1"), np.dtype("i2")
INT32, INT64, BOOL = np.dtype("i4"), np.dtype("i8"), np.dtype("?")
HALF = np.dtype("f2")
QUANTIZED = {INT8: (0.05, 3), UINT8: (0.05, 120), INT16: (2.0**-12, 0)}
_WEIGHTS = {FLOAT: (None, 0), UINT8: (0.02, 125)}  # scale and zero point of those that a run gives
MAPS = [
    *[(1, 112, 112, 16), (1, 56, 56, 24), (1, 28, 28, 192), (1, 14, 14, 116), (1, 7, 7, 960), (1, 64, 64, 3)],
    *[(1, 128, 128, 1), (1, 20, 20, 255), (4, 13, 13, 33), (1, 1, 400, 40)],
]
ROWS = [(1, 128, 768), (12, 128, 128), (1, 1000), (8400, 16), (1, 197, 192), (1, 8400, 4), (3000,), (2000, 2), (7,)]
MAX_ELEMENTS = 600_000


class Draw:
    """Random choices, and a graph that one operator is added to."""

    def __init__(self, rng):
        self.rng, self.g = rng, graphs.Graph()
        self.others = []  # further subgraphs, as Graph.build() takes them
        self.fed = ()  # which of "weights" and "bias" a run gives

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def size(self, low, high):
        """Small sizes are as likely as large ones."""
        return int(round(np.exp(self.rng.uniform(np.log(low), np.log(high)))))

    def image(self):
        if self.rng.random() < 0.5:
            return self.pick(MAPS)
        side = self.size(4, 160)
        return 1, side, max(1, side + self.pick([-1, 0, 0, 3])), min(self.size(1, 512), MAX_ELEMENTS // side**2 + 1)

    def shape(self):
        kind = self.rng.random()
        if kind < 0.4:
            return self.image()
        if kind < 0.7:
            return self.pick(ROWS)
        sizes = [self.size(1, 200) for _ in range(self.pick([1, 2, 3, 3, 4, 5]))]
        while np.prod(sizes) > MAX_ELEMENTS:
            sizes[sizes.index(max(sizes))] //= 2
        return tuple(sizes)

    def quantization(self, dtype):
        """Scale and zero point of a type: round scales have ties in every sum, those of nets have none."""
        scale, zero_point = QUANTIZED.get(dtype, (None, 0))
        return scale and float(np.float32(scale * np.exp(self.rng.uniform(-0.3, 0.3)))), zero_point

    def input(self, shape, dtype, scale=None, zero_point=None):
        own = self.quantization(dtype)
        return self.g.input(shape, dtype, scale or own[0], own[1] if zero_point is None else zero_point)

    def second(self, shape, dtype, scale=None):
        """An input, or, as often in nets, a constant."""
        if dtype == BOOL or self.rng.random() < 0.6:
            return self.input(shape, dtype, scale)
        own = self.quantization(dtype)
        if dtype.kind == "f":
            return self.g.constant(self.rng.uniform(0.5, 2, shape).astype(dtype))
        return self.g.constant(self.rng.integers(1, 100, shape).astype(dtype), scale or own[0], own[1])

    def ints(self, *values):
        return self.g.constant(np.array(values, np.int32))

    def weights(self, shape, dtype, axis=0):
        if "weights" in self.fed:
            own = _WEIGHTS.get(dtype) or (self.rng.uniform(0.01, 0.03, shape[axis]), 0)
            wide = dtype if "wide weights" in self.fed else INT8
            return self.g.input(shape, wide if dtype == INT16 else dtype, *own, axis)
        if dtype == FLOAT:
            return self.g.constant(self.rng.normal(0, 0.1, shape).astype(np.float32))
        if dtype == UINT8:
            return self.g.constant(self.rng.integers(0, 256, shape).astype(np.uint8), 0.02, 125)
        scales = self.rng.uniform(0.01, 0.03, shape[axis])
        return self.g.constant(self.rng.integers(-127, 128, shape).astype(np.int8), scales, 0, axis)

    def bias(self, channels, x, weights):
        if "bias" in self.fed:
            wide = {FLOAT: FLOAT, INT16: INT64}.get(x.dtype, INT32)
            return self.g.input((channels,), wide, x.scale and np.float32(x.scale) * np.atleast_1d(weights.scale))
        if x.dtype == FLOAT:
            return self.g.constant(np.zeros(channels, np.float32))
        wide = np.int64 if x.dtype == INT16 else np.int32
        return self.g.constant(np.zeros(channels, wide), np.float32(x.scale) * np.atleast_1d(weights.scale), 0)

    def indices(self, count, limit):
        return self.g.constant(self.rng.integers(0, limit, count).astype(np.int32))
