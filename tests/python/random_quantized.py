"""Steps of quantized graphs alone: each takes a value of rank 4 and adds others. Operators that LiteRT's references
lack in a type are left out: it would refuse the graph."""

import numpy as np
from random_values import SAME, RandomValues

BYTES = (np.int8, np.uint8)


class Quantized(RandomValues):
    def byte(self):
        return self.dtype in BYTES

    def table(self, x):
        """Functions that quantized kernels look up."""
        names = {
            np.int8: ["GELU", "EXP", "LOG", "SQRT", "RSQRT", "ABS"],
            np.uint8: ["GELU"],
            np.int16: ["GELU", "EXP", "LOG", "ABS"],
        }
        names = names.get(self.dtype.type, [])
        if not self.quantized or not names:
            return
        name = self.pick(names)
        options = {"GELU": "GeluOptions", "EXP": "ExpOptions", "ABS": "AbsOptions"}.get(name)
        fields = {"approximate": self.chance(0.5)} if name == "GELU" else {}
        out = self.out()
        if name in ("LOG", "SQRT", "RSQRT") and self.byte():  # these want inputs that are not negative
            scale, _ = self.scale()
            x = self.g.op("QUANTIZE", [x], x.shape, "QuantizeOptions", 2, dtype=self.dtype, scale=scale, zero_point=self.low)
        self.add(self.g.op(name, [x], x.shape, options, 2, dtype=self.dtype, **out, **fields))

    def extreme(self, x):
        """The larger or smaller of two values with one scale."""
        if not self.quantized:
            return
        same = [v for v in self.values if v.shape == x.shape and (v.scale, v.zero_point) == (x.scale, x.zero_point)]
        shape = self.pick([(x.shape[3],), (1,), x.shape])
        other = self.rng.integers(self.low, self.high + 1, shape).astype(self.dtype)
        y = self.pick([self.pick(same), self.g.constant(other, **self.same(x))])
        self.add(self.g.op(self.pick(["MAXIMUM", "MINIMUM"]), [x, y], x.shape, "MaximumMinimumOptions", 2))

    def reduce(self, x):
        if not self.quantized:
            return
        names = ["REDUCE_MAX", "REDUCE_MIN"] + (["SUM"] if self.dtype == np.uint8 else [])
        axes = sorted(self.rng.choice(4, self.int(1, 3), replace=False).tolist())
        name, keep = self.pick(names), self.chance(0.7)
        shape = tuple(1 if i in axes else d for i, d in enumerate(x.shape))
        out = self.out() if name == "SUM" else self.same(x)
        y = self.g.op(
            name,
            [x, self.indices(axes)],
            shape if keep else tuple(d for i, d in enumerate(x.shape) if i not in axes),
            "ReducerOptions",
            2,
            dtype=self.dtype,
            keepDims=keep,
            **out,
        )
        if keep:
            self.add(y)

    def prelu(self, x):
        if not self.quantized:
            return
        shape = (1, 1, x.shape[3])
        alpha = (
            self.constant(shape)
            if self.byte()
            else self.g.constant(self.rng.integers(-128, 128, shape).astype(np.int8), 2.0**-6, self.int(-128, 127))
        )
        self.add(self.g.op("PRELU", [x, alpha], x.shape, None, 1, dtype=self.dtype, **self.out()))

    def normalized(self, x):
        """Rows of length one, or the logarithms of their softmax."""
        if not self.quantized or not self.byte() or x.shape[3] > self.MAX_SOFTMAX_ROW:
            return
        middle = (self.low + self.high + 1) // 2
        if self.chance(0.5):
            out = {"scale": 1 / 128, "zero_point": middle}
            self.add(self.g.op("L2_NORMALIZATION", [x], x.shape, "L2NormOptions", 2, dtype=self.dtype, **out))
        else:
            out = {"scale": 16 / 256, "zero_point": self.high}
            self.add(self.g.op("LOG_SOFTMAX", [x], x.shape, "LogSoftmaxOptions", 2, dtype=self.dtype, **out))

    def difference(self, x):
        if self.dtype == np.int8:
            y, out = self.constant(self.pick([(x.shape[3],), x.shape[1:]])), self.out()
            # LiteRT aborts where its fixed-point multiplier would be above 1.
            out["scale"] = max(out["scale"], 1.01 * (2 * max(x.scale, y.scale)) ** 2 / 2**14)
            self.add(self.g.op("SQUARED_DIFFERENCE", [x, y], x.shape, "SquaredDifferenceOptions", 2, dtype=self.dtype, **out))

    def compare(self, x):
        """A mask, and what it selects of two values with one scale."""
        if not self.quantized:
            return
        y = self.pick([v for v in self.values if v.shape == x.shape])
        if max(x.scale, y.scale) >= 1:  # LiteRT aborts
            return
        name = self.pick(["LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL"])
        options = {"EQUAL": "EqualOptions", "NOT_EQUAL": "NotEqualOptions"}.get(name)
        mask = self.g.op(name, [x, y], x.shape, options, 2, dtype=np.bool_)
        other = self.g.constant(self.rng.integers(self.low, self.high + 1, x.shape).astype(self.dtype), **self.same(x))
        self.add(self.g.op("SELECT_V2", [mask, x, other], x.shape, "SelectV2Options", 1, like=x))

    def index_of_largest(self, x):
        if self.quantized and self.byte():
            axis = self.int(0, 3)
            name, options = self.pick([("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")])
            self.g.op(
                name,
                [x, self.g.constant(np.array(axis, np.int32))],
                tuple(d for i, d in enumerate(x.shape) if i != axis),
                options,
                2,
                dtype=np.int64,
                outputType=4,
            )

    def float_detour(self, x):
        """Through floats and back; operators that round alike everywhere."""
        if not self.quantized:
            return
        y = self.g.op("DEQUANTIZE", [x], x.shape, "DequantizeOptions", 2, dtype=np.float32)
        for _ in range(self.int(0, 2)):
            y = self.moved_floats(y)
        for _ in range(self.int(0, 3)):
            constant = self.g.constant(self.rng.uniform(-2, 2, self.pick([(), (y.shape[3],)])).astype(np.float32))
            name, operands, options = self.pick(
                [
                    ("RELU", [y], None),
                    ("RELU6", [y], None),
                    ("ADD", [y, constant], "AddOptions"),
                    ("MUL", [y, constant], "MulOptions"),
                    ("MAXIMUM", [y, constant], "MaximumMinimumOptions"),
                ]
            )
            y = self.g.op(name, operands, y.shape, options)
        self.add(self.g.op("QUANTIZE", [y], y.shape, "QuantizeOptions", 2, dtype=self.dtype, **self.out()))

    def moved_floats(self, y):
        """An operator that gives elements of its input, or zeros."""
        n, h, w, c = y.shape
        name = self.pick(["TRANSPOSE", "PAD", "MAX_POOL_2D", "REVERSE_V2", "SLICE"])
        if name == "TRANSPOSE":
            return self.g.op(name, [y, self.indices([0, 2, 3, 1])], (n, w, c, h), "TransposeOptions")
        if name == "PAD":
            paddings = np.array([[0, 0], [self.int(0, 1), 0], [0, self.int(0, 2)], [0, 0]], np.int32)
            shape = tuple(d + int(p.sum()) for d, p in zip(y.shape, paddings))
            return self.g.op(name, [y, self.g.constant(paddings)], shape, "PadOptions")
        if name == "MAX_POOL_2D":
            window = dict(padding=SAME, strideH=1, strideW=1, filterHeight=2, filterWidth=3)
            return self.g.op(name, [y], y.shape, "Pool2DOptions", **window)
        if name == "REVERSE_V2":
            return self.g.op(name, [y, self.indices([2])], y.shape, "ReverseV2Options")
        size = [self.int(1, d) for d in y.shape]
        return self.g.op(name, [y, self.indices([0] * 4), self.indices(size)], tuple(size), "SliceOptions")

    def other_type(self, x):
        """To the other 8-bit type and back."""
        if not self.quantized or not self.byte():
            return
        other = {np.int8: np.uint8, np.uint8: np.int8}[self.dtype.type]
        low = np.iinfo(other).min
        scale = self.scale()[0]
        y = self.g.op(
            "QUANTIZE", [x], x.shape, "QuantizeOptions", 2, dtype=other, scale=scale, zero_point=self.int(low, low + 255)
        )
        self.add(self.g.op("QUANTIZE", [y], x.shape, "QuantizeOptions", 2, dtype=self.dtype, **self.out()))

    def matmul(self, x):
        """The product of two values over the innermost dimension."""
        if not self.quantized or self.dtype == np.uint8:
            return
        n, h, w, c = x.shape
        y = self.pick([v for v in self.values if len(v.shape) == 4 and v.shape[3] == c and v.shape[0] == n])
        if self.dtype == np.int16 and self.chance(0.3):  # a right side of 8 bits
            data = self.rng.integers(-128, 128, (n, 1, self.int(1, 30), c)).astype(np.int8)
            y = self.g.constant(data, self.power(-4))
        rows = y.shape[1] * y.shape[2]
        if h * w * rows > self.elements // 4 or y.scale is None:
            return
        largest = 35000 if y.dtype == np.int16 else 5000 / 70
        spread = x.scale * y.scale * largest * np.sqrt(c) * 2.0 ** self.rng.uniform(-3, 3)
        product = self.g.op(
            "BATCH_MATMUL",
            [self.reshape_to(x, (n, h * w, c)), self.reshape_to(y, (n, rows, c))],
            (n, h * w, rows),
            "BatchMatMulOptions",
            2,
            dtype=self.dtype,
            scale=float(np.float32(spread)),
            zero_point=0 if self.dtype == np.int16 else self.int(self.low, self.high),
            adjY=True,
        )
        self.add(self.reshape_to(product, (n, h, w, rows)))

    def reverse(self, x):
        if self.quantized and self.byte():
            axes = self.indices(self.rng.choice(4, 1).tolist())
            self.add(self.g.op("REVERSE_V2", [x, axes], x.shape, None, 3 if self.dtype == np.int8 else 2))

    def batches(self, x):
        """Space to batch, and back."""
        n, h, w, c = x.shape
        if not self.quantized or not self.byte():
            return
        block = (self.int(1, 3), self.int(1, 3))
        pads = [(0, -h % block[0]), (0, -w % block[1])]
        shape = (n * block[0] * block[1], (h + pads[0][1]) // block[0], (w + pads[1][1]) // block[1], c)
        version = 2 if self.dtype == np.int8 else 1
        y = self.g.op("SPACE_TO_BATCH_ND", [x, self.indices(block), self.indices(pads)], shape, "SpaceToBatchNDOptions", version)
        self.add(y)
        self.add(
            self.g.op(
                "BATCH_TO_SPACE_ND", [y, self.indices(block), self.indices(pads)], x.shape, "BatchToSpaceNDOptions", version
            )
        )
