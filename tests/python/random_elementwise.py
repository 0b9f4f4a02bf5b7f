"""Elementwise steps and what networks build of them: each takes a value of rank 4 and adds others."""

import numpy as np
from random_values import NONE, RELU, RELU6, RandomValues


class Elementwise(RandomValues):
    def binary_op(self, name, x, y, activation=None):
        options = {
            "ADD": "AddOptions",
            "SUB": "SubOptions",
            "MUL": "MulOptions",
            "DIV": "DivOptions",
            "MAXIMUM": "MaximumMinimumOptions",
            "MINIMUM": "MaximumMinimumOptions",
            "SQUARED_DIFFERENCE": "SquaredDifferenceOptions",
        }[name]
        fused = (
            {}
            if options in ("MaximumMinimumOptions", "SquaredDifferenceOptions")
            else {"fusedActivationFunction": self.activation() if activation is None else activation}
        )
        version = 2 if self.quantized else 1
        if self.dtype == np.int16 and name in ("ADD", "SUB"):
            # The arithmetic for scales that are powers of two aborts the process where operands are broadcast.
            fused["potScaleInt16"], version = False, {"ADD": 3, "SUB": 5}[name]
        out = self.out()
        if self.quantized and name in ("ADD", "SUB"):  # LiteRT aborts where its last multiplier would be above 1
            bits = 15 if self.dtype == np.int16 else 20
            out["scale"] = max(out["scale"], 1.01 * 2 * max(x.scale, y.scale) / 2**bits)
        shape = np.broadcast_shapes(x.shape, y.shape)
        return self.add(self.g.op(name, [x, y], shape, options, version, **out, **fused))

    def binary(self, x):
        n, h, w, c = x.shape
        partners = [v for v in self.values if v.shape == x.shape]
        y = self.pick(
            [
                self.pick(partners),
                self.constant(()),
                self.constant((1,)),
                self.constant((c,)),
                self.constant((1, 1, 1, c)),
                self.constant((h, w, c)),
                self.constant((n, h, 1, 1)),
                self.constant((1, h, w, 1)),
            ]
        )
        names = ["ADD", "SUB", "MUL"] if self.quantized else ["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"]
        a, b = self.pick([(x, y), (y, x)])
        if len(a.shape) < len(b.shape) and not a.shape:
            a, b = b, a
        self.binary_op(self.pick(names), a, b)

    def unary_op(self, name, x, **out):
        options = {
            "LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.2}),
            "HARD_SWISH": ("HardSwishOptions", {}),
            "GELU": ("GeluOptions", {"approximate": self.chance(0.5)}),
            "ABS": ("AbsOptions", {}),
            "NEG": ("NegOptions", {}),
            "SQUARE": ("SquareOptions", {}),
        }.get(name, (None, {}))
        return self.add(
            self.g.op(
                name,
                [x],
                x.shape,
                options[0],
                2 if self.quantized and name not in ("HARD_SWISH", "RELU_N1_TO_1") else 1,
                **out,
                **options[1],
            )
        )

    def unary(self, x):
        if not self.quantized:
            self.unary_op(
                self.pick(
                    [
                        "RELU",
                        "RELU6",
                        "RELU_N1_TO_1",
                        "LOGISTIC",
                        "TANH",
                        "HARD_SWISH",
                        "LEAKY_RELU",
                        "GELU",
                        "ABS",
                        "NEG",
                        "SQUARE",
                    ]
                ),
                x,
            )
            return
        names = ["RELU", "RELU6", "LOGISTIC", "TANH", "LEAKY_RELU", "REQUANTIZE"]
        name = self.pick(names if self.dtype == np.int16 else names + ["RELU_N1_TO_1", "HARD_SWISH"])
        if name == "REQUANTIZE":
            self.add(self.g.op("QUANTIZE", [x], x.shape, "QuantizeOptions", 2, **self.out()))
        elif name == "LOGISTIC":
            self.unary_op(name, x, **self.fraction(8))
        elif name == "TANH":
            self.unary_op(name, x, **self.fraction(7))
        else:
            self.unary_op(name, x, **self.out())

    def silu(self, x):
        gate = self.unary_op("LOGISTIC", x, **self.fraction(8))
        self.binary_op("MUL", *self.pick([(x, gate), (gate, x)]), NONE)

    def hard_swish_parts(self, x):
        if self.quantized:
            return
        y = self.binary_op("ADD", x, self.g.constant(np.float32(3)), self.pick([NONE, RELU6]))
        y = self.unary_op("RELU6", y)
        first = self.binary_op("MUL", y, self.g.constant(np.float32(1 / 6)), NONE)
        self.binary_op("MUL", *self.pick([(x, first), (first, x)]), NONE)

    def mean(self, x, keep=True, axes=(1, 2)):
        shape = tuple(1 if i in axes else d for i, d in enumerate(x.shape))
        shape = shape if keep else tuple(d for i, d in enumerate(x.shape) if i not in axes)
        return self.add(
            self.g.op(
                "MEAN",
                [x, self.indices(axes)],
                shape,
                "ReducerOptions",
                2 if self.quantized else 1,
                keepDims=keep,
                **self.pick([self.out(), self.same(x)]),
            )
        )

    def squeeze_excite(self, x):
        y = self.mean(x)
        y = self.conv(y, kernel=(1, 1), channels=self.int(1, 8), stride=(1, 1), activation=RELU)
        y = self.conv(y, kernel=(1, 1), channels=x.shape[3], stride=(1, 1), activation=NONE) if y else None
        if y is None or y.shape[1:] != (1, 1, x.shape[3]):
            return
        y = self.unary_op("LOGISTIC", y, **self.fraction(8))
        z = self.binary_op("MUL", *self.pick([(x, y), (y, x)]), NONE)
        if self.chance(0.6):
            self.conv(z, kernel=(1, 1), stride=(1, 1))

    def layer_norm_parts(self, x):
        if self.quantized:
            return
        c = x.shape[3]
        mean = self.mean(x, axes=(3,))
        centred = self.binary_op("SQUARED_DIFFERENCE", x, mean)
        variance = self.binary_op("ADD", self.mean(centred, axes=(3,)), self.g.constant(np.float32(1e-3)), NONE)
        inverse = self.add(self.g.op("RSQRT", [variance], variance.shape))
        factor = self.binary_op("MUL", inverse, self.constant((c,)), NONE)
        scaled = self.binary_op("MUL", x, factor, NONE)
        shift = self.binary_op("SUB", self.constant((c,)), self.binary_op("MUL", mean, factor, NONE), NONE)
        self.binary_op("ADD", scaled, shift, NONE)

    def softmax(self, x):
        if self.quantized and x.shape[3] > self.MAX_SOFTMAX_ROW:
            return
        self.add(
            self.g.op(
                "SOFTMAX",
                [x],
                x.shape,
                "SoftmaxOptions",
                2 if self.quantized else 1,
                beta=self.pick([1.0, 0.5]),
                **self.fraction(8),
            )
        )
