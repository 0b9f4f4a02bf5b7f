"""Random graphs of the operators and shapes in which networks use them: float32, or 8 or 16 bits with random scales.

A graph grows from its input by steps, each a short pattern on one of the values so far: a convolution, a residual, a
squeeze-excite gate, a split whose parts are joined again, a normalization from its parts.
"""

from random_elementwise import Elementwise
from random_movement import Movement
from random_products import Products
from random_quantized import Quantized

# The names of the steps; those that stand more than once are taken more often.
STEPS = """
conv conv conv depthwise depthwise padded_conv residual residual stepped_over transposed dense binary binary binary
unary unary silu hard_swish_parts table extreme reduce prelu normalized difference compare index_of_largest
float_detour other_type matmul reverse batches mean squeeze_excite layer_norm_parts pool concat concat split split
slice resize transpose reshape softmax blocks attention runtime_weights tile mirror_pad gather pack
""".split()


class RandomGraph(Products, Elementwise, Movement, Quantized):
    def grow(self, names=STEPS):
        """Takes one to eight steps and chooses the outputs: what nothing reads, in some graphs other values too."""
        steps = 1 if self.chance(0.2) else self.int(2, 8)
        if self.hybrid:
            # Activations are rounded to 8 bits for each product: after a second one, the roundings of the first may
            # differ by a whole step of those, which no useful bound allows.
            products = ["conv", "depthwise", "dense", "transposed"]
            products = [name for name in products if name in names] or products
            while not self.g.operators:
                getattr(self, self.pick(products))(self.values[0])
            names, steps = ["unary", "binary", "silu", "concat", "reshape"], self.int(0, 2)
        while steps > 0 or not self.g.operators:
            getattr(self, self.pick(names))(self.any())
            steps -= 1
        self.choose_outputs()
        return self
