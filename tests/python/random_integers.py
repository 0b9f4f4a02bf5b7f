"""Random graphs of int32, int64 and bool: the arithmetic of shapes, indices and masks around networks.

A graph grows from one or two inputs by steps; each takes values so far and adds others. What LiteRT leaves undefined is
left out: divisors of 0, and of -1, by which the smallest integer has no quotient.
"""

import numpy as np
from random_values import NONE, RELU, RELU6, Chooser

INTEGERS = (np.int32, np.int64)
CAST_TYPES = (np.int32, np.int64, np.int16, np.int8, np.uint8, np.float32, np.bool_)
# The names of the steps; those that stand more than once are taken more often.
STEPS = """
shape shape shape_element computed_reshape computed_reshape constants
arithmetic arithmetic arithmetic divide power negate cast compare compare logic select select
reduce reduce running largest reshape transpose slice slice gather pack split concat tile expand pad reverse
""".split()


class RandomIntegers(Chooser):
    places = 0
    dtype = np.dtype(np.int32)
    MAX_ELEMENTS = 4000

    def __init__(self, seed):
        super().__init__(seed)
        self.values = [self.g.input(self.dims(self.int(1, 4)), self.pick(INTEGERS))]
        if self.chance(0.4):
            self.values.append(self.g.input(self.pick([self.values[0].shape, self.dims(2)]), self.pick(INTEGERS)))

    def grow(self, names=STEPS):
        steps = 1 if self.chance(0.2) else self.int(2, 12)
        while steps > 0 or not self.g.operators:
            getattr(self, self.pick(names))()
            steps -= 1
        self.choose_outputs()
        return self

    def dims(self, rank):
        return tuple(self.int(1, 6) for _ in range(rank))

    def add(self, value):
        if np.prod(value.shape) <= self.MAX_ELEMENTS:
            self.values.append(value)
        return value

    def op(self, name, inputs, shape, options=None, version=1, dtype=None, **fields):
        return self.g.op(name, inputs, shape, options, version, dtype=dtype or inputs[0].dtype, **fields)

    def any(self, types=INTEGERS, least_rank=0):
        options = [v for v in self.values if v.dtype.type in types and len(v.shape) >= least_rank]
        return self.pick(options) if options else None

    def numbers(self, shape, dtype, low=-9, high=9):
        return self.g.constant(self.rng.integers(low, high, shape, endpoint=True).astype(dtype))

    def partner(self, x, low=-9, high=9):
        """Another operand that broadcasts with x: a value of its shape, or a constant."""
        shape = self.pick([(), (1,), x.shape[-1:], x.shape, tuple(self.pick([1, d]) for d in x.shape)])
        same = [v for v in self.values if v.dtype == x.dtype and v.shape in (x.shape, ())]
        return self.pick(same) if same and self.chance(0.4) else self.numbers(shape, x.dtype, low, high)

    # Arithmetic.

    def arithmetic(self):
        x = self.any()
        names = ["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"] + (["SQUARED_DIFFERENCE"] if x.dtype == np.int32 else [])
        name, y = self.pick(names), self.partner(x)
        options = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}.get(name)
        fused = {"fusedActivationFunction": self.pick([NONE, NONE, NONE, RELU, RELU6])} if options else {}
        a, b = self.pick([(x, y), (y, x)])
        self.add(self.op(name, [a, b], np.broadcast_shapes(x.shape, y.shape), options, 1, **fused))

    def divide(self):
        x = self.any()
        divisors = self.rng.choice([-7, -3, -2, 1, 2, 3, 5, 64], self.pick([(), x.shape[-1:], x.shape]))
        y = self.g.constant(np.array(divisors, x.dtype))
        names = ["FLOOR_MOD"] + (["FLOOR_DIV", "DIV"] if x.dtype == np.int32 else [])
        name = self.pick(names)
        options = {"DIV": "DivOptions", "FLOOR_DIV": "FloorDivOptions", "FLOOR_MOD": "FloorModOptions"}[name]
        self.add(self.op(name, [x, y], x.shape, options, 1))

    def power(self):
        x = self.any((np.int32,))
        if x is None:
            return
        small = self.op("FLOOR_MOD", [x, self.g.constant(np.int32(7))], x.shape, "FloorModOptions")
        self.add(self.op("POW", [small, self.numbers(self.pick([(), x.shape]), np.int32, 0, 5)], x.shape, "PowOptions"))

    def negate(self):
        x = self.any()
        name, options = self.pick(
            [("NEG", "NegOptions")] + ([("ABS", "AbsOptions"), ("SIGN", "SignOptions")] if x.dtype == np.int32 else [])
        )
        self.add(self.op(name, [x], x.shape, options, {"ABS": 1, "SIGN": 2}.get(name, 1)))

    def cast(self):
        x = self.any((*INTEGERS, np.bool_))
        between, to = self.pick(CAST_TYPES), self.pick(INTEGERS)
        y = self.g.op("CAST", [x], x.shape, "CastOptions", 1, dtype=between)
        self.add(self.g.op("CAST", [y], x.shape, "CastOptions", 1, dtype=to) if between != to else y)

    # Masks.

    def compare(self):
        x = self.any()
        y, name = self.partner(x), self.pick(["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"])
        shape = np.broadcast_shapes(x.shape, y.shape)
        return self.add(self.op(name, [x, y], shape, None, 1, dtype=np.bool_))

    def logic(self):
        x = self.any((np.bool_,)) or self.compare()
        if self.chance(0.3):
            self.add(self.op("LOGICAL_NOT", [x], x.shape, "LogicalNotOptions"))
            return
        name, options = self.pick([("LOGICAL_AND", "LogicalAndOptions"), ("LOGICAL_OR", "LogicalOrOptions")])
        y = self.partner(x, 0, 1)
        self.add(self.op(name, [x, y], np.broadcast_shapes(x.shape, y.shape), options))

    def select(self):
        x = self.any()
        same = [v for v in self.values if v.dtype == np.bool_ and v.shape == x.shape]
        mask = self.pick(same) if same else self.numbers(self.pick([(), x.shape[-1:], x.shape]), np.bool_, 0, 1)
        if mask.shape == x.shape and self.chance(0.3):
            other = self.numbers(x.shape, x.dtype)
            self.add(self.op("SELECT", [mask, x, other], x.shape, "SelectOptions", dtype=x.dtype))
            return
        y = self.partner(x)
        shape = np.broadcast_shapes(mask.shape, x.shape, y.shape)
        self.add(self.op("SELECT_V2", [mask, *self.pick([(x, y), (y, x)])], shape, "SelectV2Options", dtype=x.dtype))

    # Sums and places.

    def axes(self, x):
        return sorted(self.rng.choice(len(x.shape), self.int(1, len(x.shape)), replace=False).tolist())

    def reduce(self):
        x = self.any((*INTEGERS, np.bool_), 1)
        names = ["REDUCE_ANY", "REDUCE_ALL"] if x.dtype == np.bool_ else ["SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"]
        axes, keep = self.axes(x), self.chance(0.5)
        shape = [1 if i in axes else d for i, d in enumerate(x.shape) if keep or i not in axes]
        self.add(self.op(self.pick(names), [x, self.indices(axes)], tuple(shape), "ReducerOptions", 1, keepDims=keep))

    def running(self):
        x = self.any(least_rank=1)
        axis = self.g.constant(np.int32(self.int(0, len(x.shape) - 1)))
        flags = {"exclusive": self.chance(0.5), "reverse": self.chance(0.5)}
        self.add(self.op("CUMSUM", [x, axis], x.shape, "CumsumOptions", 1, **flags))

    def largest(self):
        x = self.any((np.int32,), 1)
        if x is None:
            return
        axis = self.int(0, len(x.shape) - 1)
        name, options = self.pick([("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")])
        wide = self.chance(0.5)
        shape = tuple(d for i, d in enumerate(x.shape) if i != axis)
        self.add(
            self.op(
                name,
                [x, self.g.constant(np.int32(axis))],
                shape,
                options,
                1,
                dtype=np.int64 if wide else np.int32,
                outputType=4 if wide else 2,
            )
        )

    # Shapes.

    def shape(self):
        x, wide = self.any(least_rank=1), self.chance(0.3)
        return self.add(
            self.op(
                "SHAPE", [x], (len(x.shape),), "ShapeOptions", 1, dtype=np.int64 if wide else np.int32, outType=4 if wide else 2
            )
        )

    def dimension(self, x, axis):
        """The size of a dimension of x, as networks compute it: a scalar."""
        of = self.op("SHAPE", [x], (len(x.shape),), "ShapeOptions", 1, dtype=np.int32, outType=2)
        bounds = [self.indices([i]) for i in (axis, axis + 1, 1)]
        return self.op("STRIDED_SLICE", [of, *bounds], (), "StridedSliceOptions", 1, shrinkAxisMask=1)

    def shape_element(self):
        x = self.any(least_rank=1)
        self.add(self.dimension(x, self.int(0, len(x.shape) - 1)))

    def computed_reshape(self):
        """To a shape that other operators compute from the shape of x."""
        x = self.any(least_rank=1)
        dims, kind = list(x.shape), self.int(0, 2)
        if kind == 0:  # the dimensions in another order
            order = self.rng.permutation(len(dims)).tolist()
            of = self.op("SHAPE", [x], (len(dims),), "ShapeOptions", 1, dtype=np.int32, outType=2)
            shape = self.op("GATHER", [of, self.indices(order)], (len(dims),), "GatherOptions", 1)
            dims = [dims[i] for i in order]
        elif kind == 1:  # all but the first in one
            parts = [self.dimension(x, 0), self.g.constant(np.int32(-1))]
            shape = self.op("PACK", parts, (2,), "PackOptions", 1, valuesCount=2)
            dims = [dims[0], int(np.prod(dims[1:]))]
        else:  # the product of the first two, doubled and halved
            size = self.dimension(x, 0)
            two = self.g.constant(np.int32(2))
            size = self.op("MUL", [size, two], (), "MulOptions")
            size = self.op("FLOOR_DIV", [size, two], (), "FloorDivOptions")
            parts = [self.g.constant(np.int32(-1)), size]
            shape = self.op("PACK", parts, (2,), "PackOptions", 1, valuesCount=2)
            dims = [int(np.prod(dims[1:])), dims[0]]
        self.add(self.op("RESHAPE", [x, shape], tuple(dims), "ReshapeOptions"))

    def constants(self):
        """What needs no value: ranges, fills, ranks, zeros."""
        kind, dtype = self.int(0, 3), self.pick(INTEGERS)
        if kind == 0:
            start, delta, count = self.int(-5, 5), self.pick([-3, -1, 1, 2]), self.int(1, 9)
            limits = [self.g.constant(dtype(v)) for v in (start, start + delta * count, delta)]
            self.add(self.op("RANGE", limits, (count,), "RangeOptions"))
        elif kind == 1:
            dims = self.dims(self.int(1, 3))
            self.add(self.op("FILL", [self.indices(dims), self.numbers((), dtype)], dims, "FillOptions", dtype=dtype))
        elif kind == 2:
            self.add(self.op("RANK", [self.any()], (), "RankOptions", dtype=np.int32))
        else:
            x = self.any()
            self.add(self.op("ZEROS_LIKE", [x], x.shape, "ZerosLikeOptions"))

    # Movement.

    def reshape(self):
        x = self.any()
        shape = self.pick([(-1,), (1, *x.shape), (*x.shape, 1), x.shape[::-1]])[:8]
        known = tuple(int(np.prod(x.shape)) if d == -1 else d for d in shape)
        self.add(self.op("RESHAPE", [x, self.indices(shape)], known, "ReshapeOptions", newShape=list(shape)))

    def transpose(self):
        x = self.any(least_rank=1)
        order = self.rng.permutation(len(x.shape))
        shape = tuple(x.shape[i] for i in order)
        self.add(self.op("TRANSPOSE", [x, self.indices(order)], shape, "TransposeOptions"))

    def slice(self):
        x = self.any((*INTEGERS, np.bool_), 1)
        begin = [self.int(0, d - 1) for d in x.shape]
        size = [self.int(1, d - b) for b, d in zip(begin, x.shape)]
        if self.chance(0.3) and x.dtype != np.bool_:
            self.add(self.op("SLICE", [x, self.indices(begin), self.indices(size)], tuple(size), "SliceOptions"))
            return
        strides = [self.int(1, 2) for _ in size]
        end, shrink = [b + s for b, s in zip(begin, size)], 0
        shape = []
        for d, (s, t) in enumerate(zip(size, strides)):
            if self.chance(0.3):
                shrink, end[d], strides[d] = shrink | 1 << d, begin[d] + 1, 1
            else:
                shape.append(-(-s // t))
        parts = [x, self.indices(begin), self.indices(end), self.indices(strides)]
        self.add(self.op("STRIDED_SLICE", parts, tuple(shape), "StridedSliceOptions", 1, shrinkAxisMask=shrink))

    def gather(self):
        x = self.any(least_rank=1)
        axis = self.int(0, len(x.shape) - 1)
        places = [self.int(0, x.shape[axis] - 1) for _ in range(self.int(1, 5))]
        shape = (*x.shape[:axis], len(places), *x.shape[axis + 1 :])
        indices = self.g.constant(np.array(places, self.pick(INTEGERS)))
        self.add(self.op("GATHER", [x, indices], shape, "GatherOptions", 1, axis=axis))

    def like(self, x):
        return self.pick([v for v in self.values if v.shape == x.shape and v.dtype == x.dtype])

    def pack(self):
        x = self.any()
        count, axis = self.int(1, 3), self.int(0, len(x.shape))
        shape = (*x.shape[:axis], count, *x.shape[axis:])
        parts = [x] + [self.like(x) for _ in range(count - 1)]
        packed = self.add(self.op("PACK", parts, shape, "PackOptions", 1, valuesCount=count, axis=axis))
        if self.chance(0.3) and x.dtype == np.int32:
            parts = self.op("UNPACK", [packed], [x.shape] * count, "UnpackOptions", 1, num=count, axis=axis)
            self.add(self.pick(parts))

    def split(self):
        x = self.any(least_rank=1)
        axis = self.int(0, len(x.shape) - 1)
        count = self.pick([d for d in range(1, 5) if x.shape[axis] % d == 0])
        shape = (*x.shape[:axis], x.shape[axis] // count, *x.shape[axis + 1 :])
        at = self.g.constant(np.int32(axis))
        for part in self.op("SPLIT", [at, x], [shape] * count, "SplitOptions", 1, dtype=x.dtype, numSplits=count):
            self.add(part)

    def concat(self):
        x = self.any(least_rank=1)
        axis, parts = self.int(0, len(x.shape) - 1), [self.like(x) for _ in range(self.int(0, 2))] + [x]
        shape = (*x.shape[:axis], x.shape[axis] * len(parts), *x.shape[axis + 1 :])
        self.add(self.op("CONCATENATION", parts, shape, "ConcatenationOptions", 1, axis=axis))

    def tile(self):
        x = self.any((*INTEGERS, np.bool_), 1)
        counts = [self.int(1, 2) for _ in x.shape]
        shape = tuple(a * b for a, b in zip(x.shape, counts))
        self.add(self.op("TILE", [x, self.g.constant(np.array(counts, self.pick(INTEGERS)))], shape, "TileOptions"))

    def expand(self):
        x, kind = self.any(), self.int(0, 2)
        if len(x.shape) > 4:
            return
        if kind == 0:
            axis = self.int(0, len(x.shape))
            shape = (*x.shape[:axis], 1, *x.shape[axis:])
            self.add(self.op("EXPAND_DIMS", [x, self.g.constant(np.int32(axis))], shape, "ExpandDimsOptions"))
        elif kind == 1:
            shape = tuple(d for d in x.shape if d != 1)
            self.add(self.op("SQUEEZE", [x], shape, "SqueezeOptions"))
        else:
            shape = (self.int(1, 3), *x.shape)
            to = self.g.constant(np.array(shape, self.pick(INTEGERS)))
            self.add(self.op("BROADCAST_TO", [x, to], shape, "BroadcastToOptions", 2))

    def pad(self):
        x = self.any(least_rank=1)
        if len(x.shape) > 4:
            return
        pads = np.array([[self.int(0, 2), self.int(0, 2)] for _ in x.shape], np.int32)
        shape = tuple(int(d + sum(p)) for d, p in zip(x.shape, pads))
        if self.chance(0.5):
            self.add(self.op("PAD", [x, self.g.constant(pads)], shape, "PadOptions"))
        else:
            value = self.numbers((), x.dtype)
            self.add(self.op("PADV2", [x, self.g.constant(pads), value], shape, "PadV2Options"))

    def reverse(self):
        x = self.any(least_rank=1)
        axis = self.indices([self.int(0, len(x.shape) - 1)])
        self.add(self.op("REVERSE_V2", [x, axis], x.shape, "ReverseV2Options"))
