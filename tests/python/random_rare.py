"""Random graphs of the types that few models have: float16, bfloat16, complex64, and integers of 4 and 2 bits.

Each graph is one short pattern from float32 through such a type and back, whose outputs must have the reference's bits, but
for SOFTMAX of float16.
"""

import ml_dtypes  # noqa: F401 (without it LiteRT cannot name bfloat16)
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from random_values import NONE, RELU, RELU6, RELU_N1_TO_1, Chooser

F16, BF16, C64 = schema.TensorType.FLOAT16, schema.TensorType.BFLOAT16, schema.TensorType.COMPLEX64
I4, U4, I2 = schema.TensorType.INT4, schema.TensorType.UINT4, schema.TensorType.INT2
RANGES = {I4: (-8, 7), U4: (0, 15), I2: (-2, 1)}
FUNCTIONS = ["COS", "FLOOR", "GELU", "LOGISTIC", "NEG", "SIN", "TANH"]
COMPARISONS = ["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"]
# The names of the patterns; those that stand more than once are taken more often.
STEPS = """
functions functions binary binary compare softmax product packed packed quantized embedding
""".split()


class RandomRare(Chooser):
    places = 0
    dtype = np.dtype(np.float16)

    def __init__(self, seed):
        super().__init__(seed)
        rank = self.int(1, 4)
        large = self.chance(0.1)  # more elements than one unit of work
        self.shape = tuple(self.int(1, 40 if large else 9) for _ in range(rank))
        self.input = self.g.input(self.shape, np.float32)

    def grow(self, names=STEPS):
        getattr(self, self.pick(names))()
        return self

    def as_type(self, tensor_type, spread=0.0):
        """The input times a power of two, in a type."""
        factor = self.g.constant(np.float32(2.0 ** self.rng.uniform(-spread, spread)))
        x = self.g.op("MUL", [self.input, factor], self.shape, "MulOptions")
        return self.g.op("CAST", [x], self.shape, "CastOptions", 1, dtype=np.float16, tensor_type=tensor_type)

    def back(self, x, shape=None):
        y = self.g.op("CAST", [x], shape or x.shape, "CastOptions", 1, dtype=np.float32)
        self.outputs = [y]

    def apply(self, name, inputs, shape, tensor_type, options=None, **fields):
        return self.g.op(name, inputs, shape, options, 1, dtype=np.float16, tensor_type=tensor_type, **fields)

    def functions(self):
        tensor_type = self.pick([F16, F16, BF16])
        names = FUNCTIONS if tensor_type == F16 else ["FLOOR", "LOGISTIC", "NEG", "TANH"]
        x = self.as_type(tensor_type, 6)
        for _ in range(self.int(1, 3)):
            name = self.pick(names)
            fields = {"approximate": self.chance(0.5)} if name == "GELU" else {}
            x = self.apply(name, [x], self.shape, tensor_type, "GeluOptions" if fields else None, **fields)
        self.back(x)

    def partner(self, tensor_type, x):
        """Another operand of the type, that broadcasts with x."""
        shape = self.pick([(), (1,), self.shape[-1:], self.shape, tuple(self.pick([1, d]) for d in self.shape)])
        if self.chance(0.1):
            return x
        values = (self.rng.normal(0, 1, shape) * 2.0 ** self.rng.uniform(-8, 8)).astype(np.float32)
        y = self.g.constant(values)
        return self.g.op("CAST", [y], shape, "CastOptions", 1, dtype=np.float16, tensor_type=tensor_type)

    def binary(self):
        tensor_type = self.pick([F16, F16, BF16])
        names = ["ADD", "MUL", "MAXIMUM", "MINIMUM"] if tensor_type == F16 else ["MAXIMUM", "MINIMUM"]
        x = self.as_type(tensor_type, 10)
        for _ in range(self.int(1, 3)):
            name, y = self.pick(names), self.partner(tensor_type, x)
            options = {"ADD": "AddOptions", "MUL": "MulOptions"}.get(name)
            fused = {"fusedActivationFunction": self.pick([NONE, RELU, RELU6, RELU_N1_TO_1])} if options else {}
            x = self.apply(name, list(self.pick([(x, y), (y, x)])), self.shape, tensor_type, options, **fused)
        self.back(x)

    def compare(self):
        tensor_type = self.pick([F16, F16, BF16])
        x = self.as_type(tensor_type, 2)
        x = self.apply("FLOOR", [x], self.shape, tensor_type) if self.chance(0.5) else x  # equal ones
        y = self.partner(tensor_type, x)
        name = self.pick(COMPARISONS if tensor_type == F16 else ["LESS", "GREATER"])
        self.outputs = [self.g.op(name, [x, y], self.shape, None, 1, dtype=np.bool_)]

    def softmax(self):
        """Whose exponentials are rounded to halves, and then their quotients by a sum that has an order of its own."""
        self.places = 1
        x = self.as_type(F16, 4)
        self.back(self.apply("SOFTMAX", [x], self.shape, F16, "SoftmaxOptions", beta=self.pick([1.0, 0.5])))

    def product(self):
        """Of complex numbers; a rotation brings the imaginary part out."""
        x = self.as_type(C64)
        for _ in range(self.int(1, 2)):
            shape = self.pick([(), self.shape[-1:], self.shape])
            values = (self.rng.normal(0, 1, shape) + 1j * self.rng.normal(0, 1, shape)).astype(np.complex64)
            x = self.apply("MUL", [x, self.g.constant(values)], self.shape, C64, "MulOptions")
        turned = self.apply("MUL", [x, self.g.constant(np.complex64(-1j))], self.shape, C64, "MulOptions")
        self.outputs = [self.g.op("CAST", [y], self.shape, "CastOptions", 1, dtype=np.float32) for y in (x, turned)]

    def moved(self, x, tensor_type):
        """x after an operator that moves its elements, where LiteRT has one."""
        fields = {"dtype": np.int8, "scale": x.scale, "zero_point": x.zero_point, "tensor_type": tensor_type}
        rank = len(x.shape)
        name = self.pick(["RESHAPE"] + (["TRANSPOSE", "SLICE", "GATHER", "CONCATENATION"] if tensor_type == I4 else []))
        if name == "RESHAPE":
            shape = x.shape[::-1]
            return self.g.op(name, [x, self.indices(shape)], shape, "ReshapeOptions", 1, **fields)
        if name == "TRANSPOSE":
            order = self.rng.permutation(rank)
            shape = tuple(x.shape[i] for i in order)
            return self.g.op(name, [x, self.indices(order)], shape, "TransposeOptions", 1, **fields)
        if name == "SLICE":
            begin = [self.int(0, d - 1) for d in x.shape]
            size = [self.int(1, d - b) for b, d in zip(begin, x.shape)]
            return self.g.op(name, [x, self.indices(begin), self.indices(size)], tuple(size), "SliceOptions", 1, **fields)
        axis = self.int(0, rank - 1)
        if name == "GATHER" and np.prod(x.shape[axis + 1 :]) % 2 == 0:  # LiteRT copies whole bytes
            places = [self.int(0, x.shape[axis] - 1) for _ in range(self.int(1, 5))]
            shape = (*x.shape[:axis], len(places), *x.shape[axis + 1 :])
            return self.g.op(name, [x, self.indices(places)], shape, "GatherOptions", 1, axis=axis, **fields)
        shape = (*x.shape[:axis], 2 * x.shape[axis], *x.shape[axis + 1 :])
        return self.g.op(name, [x, x], shape, "ConcatenationOptions", 1, axis=axis, **fields)

    def packed(self):
        tensor_type = self.pick([I4, I4, U4, I2])
        factor = self.g.constant(np.float32(2.0 ** self.rng.uniform(-1, 5)))
        x = self.g.op("MUL", [self.input, factor], self.shape, "MulOptions")
        x = self.g.op("CAST", [x], self.shape, "CastOptions", 1, dtype=np.int8, tensor_type=tensor_type)
        self.back(self.moved(x, tensor_type) if self.chance(0.5) else x)

    def quantized(self):
        tensor_type = self.pick([I4, U4])
        low, high = RANGES[tensor_type]
        scale, zero = float(np.float32(2.0 ** self.rng.uniform(-6, 0))), self.int(low, high)
        x = self.g.op(
            "QUANTIZE",
            [self.input],
            self.shape,
            "QuantizeOptions",
            1,
            dtype=np.int8,
            scale=scale,
            zero_point=zero,
            tensor_type=tensor_type,
        )
        if self.chance(0.5):
            x = self.moved(x, tensor_type)
        self.outputs = [self.g.op("DEQUANTIZE", [x], x.shape, "DequantizeOptions", 1, dtype=np.float32)]

    def embedding(self):
        """Rows of 4 bits, as float32 or float16, weighted by the input."""
        rows, width = self.int(1, 9), 2 * self.int(1, 20)
        scales = self.rng.uniform(0.01, 2, rows if self.chance(0.5) else 1).astype(np.float32)
        data = self.g.constant_int4(self.rng.integers(-8, 8, (rows, width)).astype(np.int8), scales)
        self.input.shape = self.shape = (self.int(1, 6), width)
        self.g.tensors[self.input.index].shape = list(self.shape)
        ids = self.indices(self.rng.integers(0, rows, self.shape[0]).tolist())
        half = self.chance(0.4)
        x = self.g.op("EMBEDDING_LOOKUP", [ids, data], self.shape, None, 1, dtype=np.float16 if half else np.float32)
        if half:
            x = self.g.op("CAST", [x], self.shape, "CastOptions", 1, dtype=np.float32)
        self.outputs = [self.g.op("MUL", [x, self.input], self.shape, "MulOptions")]
