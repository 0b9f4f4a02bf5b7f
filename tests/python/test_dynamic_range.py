"""Dynamic range: activations that lie between two steps are rounded as LiteRT rounds them."""

import graphs
import numpy as np
import pytest
import running


def pixels(shape):
    """An image as MobileNets take it: of 255 steps from -1 to 1 each pixel lies in the middle between two."""
    image = np.random.default_rng(0).integers(0, 256, shape).astype(np.float32) / np.float32(127.5) - np.float32(1)
    image.flat[:2] = -1, 1
    return image


def layer(name, shape):
    rng = np.random.default_rng(1)
    g = graphs.Graph()
    x = g.input(shape)
    depthwise, dense = name == "DEPTHWISE_CONV_2D", name == "FULLY_CONNECTED"
    filters = (16, shape[-1]) if dense else (1, 3, 3, shape[-1]) if depthwise else (16, 3, 3, shape[-1])
    units = filters[3] if depthwise else filters[0]
    scales = rng.uniform(0.002, 0.01, 1 if dense else units).astype(np.float32)
    w = g.constant(rng.integers(-127, 128, filters).astype(np.int8), scales, 0, 3 if depthwise else 0)
    b = g.constant(rng.normal(0, 0.1, units).astype(np.float32))
    out = (*shape[:-1], units)
    if dense:
        return g.build([g.op(name, [x, w, b], out, "FullyConnectedOptions", 9, asymmetricQuantizeInputs=True)])
    options = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
    fields = {"padding": 0, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    fields |= {"depthMultiplier": 1} if depthwise else {}
    return g.build([g.op(name, [x, w, b], out, options, 6 if depthwise else 5, **fields)])


@pytest.mark.parametrize("options", [{}, {"jit": "off"}, {"isa": "scalar"}], ids=str)
@pytest.mark.parametrize("name", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_halves_are_rounded_before_the_zero_point_is_added(name, options, load_delegate):
    shape = (5, 3) if name == "FULLY_CONNECTED" else (1, 24, 25, 3)
    model, values = bytes(layer(name, shape)), pixels(shape)

    def outputs(delegates):
        host = running.interpret(model, delegates)
        assert running.delegate_kernels(host) == len(delegates)
        return running.run(host, [values])[0]

    np.testing.assert_allclose(outputs([load_delegate(**options)]), outputs([]), rtol=1e-5, atol=1e-5)
