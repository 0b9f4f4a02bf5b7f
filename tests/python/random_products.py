"""Steps with convolutions, dense layers, windows: each takes a value of rank 4 and adds others."""

import graphs
import numpy as np
from random_values import NONE, SAME, VALID, RandomValues


class Products(RandomValues):
    def conv(self, x, kernel=None, channels=None, stride=None, activation=None, **out):
        kernel = kernel or (self.pick([1, 1, 1, 2, 3, 3, 5]), self.pick([1, 1, 1, 2, 3, 3, 5]))
        if self.chance(0.5):
            kernel = (kernel[0], kernel[0])
        stride = stride or (self.pick([1, 1, 1, 2, 3]), self.pick([1, 1, 1, 2, 3]))
        padding = self.pick([SAME, SAME, VALID])
        n, h, w, c = x.shape
        # Up to taps of which only the middle ones lie in the image.
        dilation = (1, 1)
        if stride == (1, 1):
            dilation = tuple(self.pick([1, 1, 1, 2, self.int(1, max(1, size))]) for size in (h, w))
        groups = self.pick([d for d in range(1, c + 1) if c % d == 0]) if self.chance(0.1) and not channels else 1
        channels = channels or groups * self.int(1, max(1, self.channels // groups))
        size = self.window((h, w), kernel, stride, dilation, padding)
        if size is None or channels * kernel[0] * kernel[1] * c // groups > self.MAX_WEIGHTS:
            return None
        weights, bias, own = self.product_operands(
            x, (channels, *kernel, c // groups), 0, kernel[0] * kernel[1] * c // groups, narrow=True, int4=True
        )
        return self.add(
            self.g.op(
                "CONV_2D",
                [x, weights, bias],
                (n, *size, channels),
                "Conv2DOptions",
                8 if self.narrow(bias) else 3 if self.quantized else 2,
                padding=padding,
                strideH=stride[0],
                strideW=stride[1],
                dilationHFactor=dilation[0],
                dilationWFactor=dilation[1],
                fusedActivationFunction=self.activation() if activation is None else activation,
                **self.bias_type(bias),
                **{**own, **out},
            )
        )

    def narrow(self, bias):
        return self.dtype == np.int16 and bias.dtype == np.int32

    def bias_type(self, bias, weights=None):
        """The option without which LiteRT reads the bias of 16-bit activations as int64, with int16 weights as int32."""
        short = weights is not None and weights.dtype == np.int16
        return {"quantizedBiasType": graphs.TYPES[bias.dtype]} if self.narrow(bias) != short else {}

    def window(self, image, kernel, stride, dilation, padding):
        size = []
        for i, k, s, d in zip(image, kernel, stride, dilation):
            reach = (k - 1) * d + 1
            size.append(-(-i // s) if padding == SAME else (i - reach) // s + 1 if i >= reach else 0)
        return tuple(size) if min(size) > 0 else None

    def depthwise(self, x):
        kernel, stride, padding = (
            (self.pick([1, 2, 3, 3, 5]), self.pick([1, 2, 3, 3, 5])),
            self.pick([1, 1, 2]),
            self.pick([SAME, SAME, VALID]),
        )
        dilation = self.pick([1, 1, 2]) if stride == 1 else 1
        n, h, w, c = x.shape
        multiplier = self.pick([1, 1, 1, 2, 3])
        size = self.window((h, w), kernel, (stride,) * 2, (dilation,) * 2, padding)
        if size is None:
            return
        weights, bias, own = self.product_operands(
            x, (1, *kernel, c * multiplier), 3, kernel[0] * kernel[1], int4=self.dtype == np.int8
        )
        self.add(
            self.g.op(
                "DEPTHWISE_CONV_2D",
                [x, weights, *self.sometimes(bias)],
                (n, *size, c * multiplier),
                "DepthwiseConv2DOptions",
                3 if self.quantized else 2,
                padding=padding,
                strideH=stride,
                strideW=stride,
                dilationHFactor=dilation,
                dilationWFactor=dilation,
                depthMultiplier=multiplier,
                fusedActivationFunction=self.activation(),
                **own,
            )
        )

    def padded_conv(self, x):
        before, after = (self.int(0, 2), self.int(0, 2)), (self.int(0, 2), self.int(0, 2))
        n, h, w, c = x.shape
        shape = (n, h + before[0] + after[0], w + before[1] + after[1], c)
        paddings = self.indices([[0, 0], [before[0], after[0]], [before[1], after[1]], [0, 0]])
        padded = self.add(self.g.op("PAD", [x, paddings], shape, "PadOptions", 2 if self.quantized else 1, like=x))
        self.pick([self.conv, self.depthwise])(padded)

    def residual(self, x):
        """x + f(x), in either order, before or after an activation."""
        y = self.conv(x, stride=(1, 1), channels=x.shape[3])
        if y is not None and y.shape == x.shape:
            return self.binary_op(self.pick(["ADD", "ADD", "SUB"]), *self.pick([(x, y), (y, x)]))
        return None

    def stepped_over(self, x):
        """A residual sum of which convolutions of 1x1 read every second or third row and column."""
        total = self.residual(x)
        step = (self.int(1, 3), self.int(1, 3))
        for _ in range(self.int(1, 2) if total is not None else 0):
            self.conv(total, kernel=(1, 1), stride=step)

    def transposed(self, x):
        n, h, w, c = x.shape
        kernel, stride, channels = self.int(1, 4), self.int(1, 3), self.int(1, 20)
        if stride > kernel or h * stride * w * stride * channels > self.elements:
            return
        weights, bias, own = self.product_operands(
            x,
            (channels, kernel, kernel, c),
            0,
            kernel * kernel * c / (stride * stride),
            narrow=True,
            per_channel=self.hybrid,  # LiteRT's kernel reads that many scales
        )
        options = self.bias_type(bias)
        biases = [bias] if options else self.sometimes(bias)
        shape = (n, h * stride, w * stride, channels)
        self.add(
            self.g.op(
                "TRANSPOSE_CONV",
                [self.indices(shape), weights, x, *biases],
                shape,
                "TransposeConvOptions",
                5 if options else 3 if biases else 2 if self.quantized else 1,
                like=x,
                padding=SAME,
                strideH=stride,
                strideW=stride,
                **{**own, **options},
            )
        )

    def dense(self, x):
        rows, depth = int(np.prod(x.shape[:-1])), x.shape[-1]
        if self.chance(0.5):
            shape = self.pick([(rows, depth), (1, rows * depth)])
            x = self.reshape_to(x, shape)
            rows, depth = shape
        units = self.int(1, min(self.channels, max(1, self.MAX_WEIGHTS // depth)))
        weights, bias, own = self.product_operands(x, (units, depth), 0, depth, narrow=True, int4=True, short=True)
        operands = [x, weights, *self.sometimes(bias)]
        to_short = self.dtype == np.uint8 and self.chance(0.1)  # LiteRT wants a bias then
        if to_short:
            operands, own = [x, weights, bias], {"dtype": np.int16, "scale": own["scale"] / 128}
        keep = len(x.shape) != 2 and self.chance(0.5)
        shape = (*x.shape[:-1], units) if keep else (rows, units)
        add = (lambda value: value) if to_short else self.add  # the graph's steps take one type
        y = add(
            self.g.op(
                "FULLY_CONNECTED",
                operands,
                shape,
                "FullyConnectedOptions",
                11 if self.bias_type(bias, weights) else 9 if self.hybrid else 5,
                keepNumDims=keep,
                asymmetricQuantizeInputs=self.hybrid and self.chance(0.5),
                fusedActivationFunction=self.activation(),
                **self.bias_type(bias, weights),
                **own,
            )
        )
        if not keep and not to_short:
            self.add(self.reshape_to(y, (1, 1, rows, units)))

    def runtime_weights(self, x):
        """A product of two values."""
        n, h, w, c = x.shape
        y = self.pick(self.values)
        rows = int(np.prod(y.shape)) // c
        if np.prod(y.shape) % c or rows > 400 or (self.dtype == np.int8 and y.zero_point != 0):
            return
        if self.dtype == np.int16:  # its weights have 8 bits
            return
        # Far beyond int32, TFLite's conversion of a dense layer's real sum is undefined.
        out = self.product_scale(x.scale * y.scale * 70 * np.sqrt(c)) if self.quantized else {}
        if self.chance(0.5):
            weights = self.reshape_to(y, (rows, 1, 1, c))
            scale = x.scale * y.scale if self.quantized else None
            bias = self.g.constant(np.zeros(rows, np.int32 if self.quantized else np.float32), scale)
            self.add(
                self.g.op(
                    "CONV_2D",
                    [x, weights, bias],
                    (n, h, w, rows),
                    "Conv2DOptions",
                    3,
                    padding=SAME,
                    strideH=1,
                    strideW=1,
                    dilationHFactor=1,
                    dilationWFactor=1,
                    **out,
                )
            )
        else:
            y = self.g.op(
                "FULLY_CONNECTED",
                [x, self.reshape_to(y, (rows, c))],
                (n * h * w, rows),
                "FullyConnectedOptions",
                5,
                fusedActivationFunction=self.activation(),
                **out,
            )
            self.add(self.reshape_to(y, (1, 1, n * h * w, rows)))

    def pool(self, x):
        kernel, stride, padding = (
            (self.int(1, 4), self.int(1, 4)),
            (self.int(1, 2), self.int(1, 2)),
            self.pick([SAME, VALID]),
        )
        size = self.window(x.shape[1:3], kernel, stride, (1, 1), padding)
        if size is None:
            return
        self.add(
            self.g.op(
                self.pick(["AVERAGE_POOL_2D", "MAX_POOL_2D"]),
                [x],
                (x.shape[0], *size, x.shape[3]),
                "Pool2DOptions",
                2 if self.quantized else 1,
                padding=padding,
                strideH=stride[0],
                strideW=stride[1],
                filterHeight=kernel[0],
                filterWidth=kernel[1],
                fusedActivationFunction=self.activation(),
            )
        )

    def attention(self, x):
        if self.quantized:
            return
        n, h, w, c = x.shape
        rows, columns = (n * h, w * c) if self.chance(0.5) else (n * h * w, c)
        if rows * rows > 10 * self.elements:  # else the scores of a large value take gigabytes, and minutes
            return
        q, k, v = (
            self.reshape_to(self.pick([u for u in self.values if np.prod(u.shape) == np.prod(x.shape)]), (1, 1, rows, columns))
            for _ in range(3)
        )
        scores = self.g.op("BATCH_MATMUL", [q, k], (1, 1, rows, rows), "BatchMatMulOptions", adjY=True)
        if self.chance(0.6):
            scores = self.binary_op("MUL", scores, self.g.constant(np.float32(0.3)), NONE)
        weights = self.g.op("SOFTMAX", [scores], scores.shape, "SoftmaxOptions", beta=1.0)
        self.add(self.g.op("BATCH_MATMUL", [weights, v], (1, 1, rows, columns), "BatchMatMulOptions"))
