"""Scales far from what trained networks have, as networks without training bring them: claimed, and LiteRT's bits."""

import graphs
import numpy as np
import own_interpreter
import pytest
import running
from ai_edge_litert import interpreter as litert

SCALES = [(4.7e-8, 2.3e-8), (1e-6, 1e-7), (3e-5, 1e-4), (1e-3, 30.0), (4.7e-10, 1e-3), (0.05, 0.04)]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("scales", SCALES, ids=str)
def test_hard_swish(scales, dtype, load_delegate):
    info = np.iinfo(dtype)
    values = np.arange(info.min, info.max + 1).astype(dtype).reshape(1, 256)
    zero_points = (info.min + 100, info.min + 7)
    g = graphs.Graph()
    x = g.input(values.shape, dtype, scales[0], zero_points[0])
    y = g.op("HARD_SWISH", [x], values.shape, dtype=dtype, scale=scales[1], zero_point=zero_points[1])
    model = bytes(g.build([y]))

    def in_litert(delegates):
        host = litert.Interpreter(
            model_content=model,
            experimental_op_resolver_type=running.Resolver.BUILTIN_REF,
            experimental_delegates=delegates,
        )
        host.allocate_tensors()
        return host

    expected = running.run(in_litert([]), [values])[0]
    delegated = in_litert([load_delegate()])
    assert running.delegate_kernels(delegated) == 1
    np.testing.assert_array_equal(running.run(delegated, [values])[0], expected)
    np.testing.assert_array_equal(own_interpreter.Interpreter(model).run([values])[0], expected)
