"""What the steps of a random graph draw from: its values so far, constants, weights, scales."""

import graphs
import numpy as np

NONE, RELU, RELU_N1_TO_1, RELU6 = 0, 1, 2, 3
SAME, VALID = 0, 1


class Chooser:
    """A graph and the random numbers that it is grown from. `feeds`: the values that some of its inputs must have, by
    the tensor's index."""

    run_time = 0.0  # how many of the operands that decide shapes and the like are inputs

    def __init__(self, seed):
        self.rng, self.g, self.feeds = np.random.default_rng(seed), graphs.Graph(), {}

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, options):
        return options[self.int(0, len(options) - 1)]

    def indices(self, values):
        data = np.array(values, np.int32)
        return self.feed(data) if self.run_time and self.chance(self.run_time) else self.g.constant(data)

    def feed(self, data, scale=None, zero_point=0):
        """A value that is known at run time only."""
        data = np.asarray(data)
        value = self.g.input(data.shape, data.dtype, scale, zero_point)
        self.feeds[value.index] = data
        return value

    def choose_outputs(self):
        """What nothing reads, in some graphs other values too."""
        read = {i for operator in self.g.operators for i in operator.inputs}
        made = {i for operator in self.g.operators for i in operator.outputs}
        known = {value.index: value for value in self.values}
        self.outputs = [known.get(i) or graphs.Value(i, (), self.dtype, None, 0) for i in sorted(made - read)]
        self.outputs += [v for v in self.values if v.index in made & read and self.chance(0.1)]

    def model(self, change=None):
        """The model's bytes; of a variant where `change` maps the values of each float constant."""
        return self.g.build(self.outputs, change)


class RandomValues(Chooser):
    # How many places of float16 the outputs' floats may be from the reference's: 0, the same bits; None, FLOAT_BOUND.
    places = None
    # LiteRT's 8-bit SOFTMAX and LOG_SOFTMAX sum exponentials of at most 1 in Q12.19, and take the reciprocal of the sum
    # in a way that aborts the process from 512 on.
    MAX_SOFTMAX_ROW = 511
    MAX_WEIGHTS = 2_000_000  # of one operator: more would take minutes

    def __init__(self, seed, dtype, hybrid=False):
        """`hybrid`: float32 with weights of 8 or 4 bits."""
        self.hybrid = hybrid
        super().__init__(seed)
        self.dtype = np.dtype(dtype)
        self.quantized = self.dtype != np.float32
        self.low, self.high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if self.quantized else (0, 0)
        self.powers = self.chance(0.15)  # all scales powers of two, whose quotients make ties
        scale, zero = self.scale()
        large = self.chance(0.1)  # the sizes at which kernels work in blocks and share them among threads
        self.extent, self.channels, self.elements = (40, 300, 100000) if large else (12, 40, 20000)
        depths = [1, 2, 3, 4, 7, 8, 16, 17, 24, 33] + ([64, 130, 256] if large else [])
        shape = (self.pick([1, 1, 1, 2]), self.int(1, self.extent), self.int(1, self.extent), self.pick(depths))
        self.values = [self.g.input(shape, self.dtype, scale, zero)]
        if self.chance(0.2):
            self.values.append(self.g.input(shape, self.dtype, *self.scale()))

    def scale(self):
        """Scale and zero point of a value; zero points at the ends of the type are frequent."""
        if not self.quantized:
            return None, 0
        zero = self.pick([self.low, self.high, 0 if self.low else 128, self.int(self.low, self.high)])
        exponent = self.rng.uniform(-6, -3) if self.chance(0.9) else self.rng.uniform(-14, 3)
        if self.dtype == np.int16:
            exponent, zero = exponent - 8, 0
        return self.power(exponent), zero

    def power(self, exponent):
        return float(np.float32(2.0 ** (round(exponent) if self.powers or self.chance(0.05) else exponent)))

    def fraction(self, bits):
        """The keywords of an output from 0 to 1, or with `bits` less by one, from -1 to 1: as LiteRT wants them."""
        if not self.quantized:
            return {}
        if self.dtype == np.int16:
            return {"scale": 1 / 32768, "zero_point": 0}
        zero = self.low if bits == 8 else (self.low + self.high + 1) // 2
        return {"scale": 2.0**-bits, "zero_point": zero}

    def out(self):
        """The keywords of an output with a scale of its own."""
        scale, zero = self.scale()
        return {"scale": scale, "zero_point": zero}

    def same(self, value):
        return {"scale": value.scale, "zero_point": value.zero_point}

    def product_scale(self, real):
        """The keywords of an output of sums of products whose typical real value is `real`; now and then far smaller
        or larger steps than those values need, so that sums saturate or are shifted to the left."""
        factor = 2.0 ** (self.rng.uniform(-2, 1) if self.chance(0.9) else self.rng.uniform(-7, 4))
        zero = 0 if self.dtype == np.int16 else self.int(self.low, self.high)
        return {"scale": self.power(np.log2(real * factor)), "zero_point": zero}

    def constant(self, shape, spread=1.0):
        """Weights of elementwise operators, of the graph's type."""
        if not self.quantized:
            return self.g.constant((self.rng.uniform(-1, 1, shape) * spread).astype(np.float32))
        scale, zero = self.scale()
        return self.g.constant(self.rng.integers(self.low, self.high + 1, shape).astype(self.dtype), scale, zero)

    def sometimes(self, bias):
        return [bias] if self.chance(0.8) else []

    def activation(self):
        return self.pick([NONE, NONE, RELU, RELU6, RELU_N1_TO_1])

    def product_operands(self, x, shape, axis, taps, narrow=False, int4=False, short=False, per_channel=False):
        """Weights, bias and the output's keywords of an operator that sums `taps` products. With `narrow` the bias of
        16-bit activations may be int32, with `int4` weights may have 4 bits, with `short` 16 beside 16-bit
        activations, with `per_channel` they have a scale for each channel."""
        channels = shape[axis]
        if not self.quantized:
            bias = self.g.constant(self.rng.normal(0, 0.5, channels).astype(np.float32))
            return self.float_weights(shape, axis, taps, int4, per_channel), bias, {}
        weights, scales = self.integer_weights(shape, axis, int4, short, per_channel)
        wide = self.dtype == np.int16 and not (narrow and self.chance(0.2))
        values = self.rng.integers(-4000, 4000, channels).astype(np.int64 if wide else np.int32)
        bias = self.g.constant(values, (np.float32(x.scale) * scales).astype(np.float32), 0)
        spread = 70 * (256 if weights.dtype == np.int16 else 1)
        return weights, bias, self.product_scale(x.scale * scales.mean() * spread * np.sqrt(taps))

    def float_weights(self, shape, axis, taps, int4, per_channel):
        """Weights of float activations: float32, from float16 now and then, or integers where the graph is hybrid."""
        if self.hybrid:
            return self.integer_weights(shape, axis, int4, False, per_channel)[0]
        weights = self.rng.normal(0, 1 / np.sqrt(taps), shape).astype(np.float32)
        if not self.chance(0.1):
            return self.g.constant(weights)
        half = self.g.constant(weights.astype(np.float16))
        return self.g.op("DEQUANTIZE", [half], shape, "DequantizeOptions", 3, dtype=np.float32)

    def integer_weights(self, shape, axis, int4, short, per_channel):
        """(the constant, its scales): per channel but for uint8, now and then for the whole."""
        short = short and self.dtype == np.int16 and self.chance(0.3)
        int4 = int4 and self.chance(0.2)
        own_scales = self.chance(0.7) or per_channel or self.hybrid and (int4 or axis == 3)
        per_channel = self.dtype != np.uint8 and own_scales
        exponents = self.rng.uniform(-8, -6, shape[axis] if per_channel else 1)
        scales = (2.0 ** (np.round(exponents) if self.powers else exponents)).astype(np.float32)
        if self.dtype == np.uint8:
            data = self.rng.integers(0, 256, shape).astype(np.uint8)
            return self.g.constant(data, scales, self.int(0, 255), axis), scales
        if short:
            data, scales = self.rng.integers(-32768, 32768, shape).astype(np.int16), scales / 256
            return self.g.constant(data, scales, 0 if per_channel else self.pick([0, 0, 77]), axis), scales
        if int4:
            return self.g.constant_int4(self.rng.integers(-7, 8, shape).astype(np.int8), 16 * scales, axis), 16 * scales
        return self.g.constant(self.rng.integers(-127, 128, shape).astype(np.int8), scales, 0, axis), scales

    def any(self, rank=4):
        """One of the values so far, a late one more likely."""
        options = [v for v in self.values if len(v.shape) == rank]
        return options[max(0, len(options) - 1 - int(self.rng.exponential(1.5)))] if options else None

    def add(self, value):
        """Lets further steps use the value, unless it is too large."""
        if np.prod(value.shape) <= self.elements:
            self.values.append(value)
        return value

    def reshape_to(self, x, shape):
        return self.g.op("RESHAPE", [x, self.indices(shape)], shape, "ReshapeOptions", newShape=list(shape), like=x)
