"""Each function of floats at each level of instructions, over rows of many vectors, against LiteRT's own kernels."""

import graphs
import numpy as np
import pytest
import running

FUNCTIONS = {
    **dict.fromkeys(["ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LOGISTIC", "NEG", "RELU", "RELU6"], (-4, 4)),
    **dict.fromkeys(["RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "SIGN", "SIN", "SQUARE", "TANH"], (-4, 4)),
    **dict.fromkeys(["LOG", "RSQRT", "SQRT"], (0.1, 9)),
    "GELU": (-4, 4),
    "LEAKY_RELU": (-4, 4),
}
LEVELS = ["scalar", "ssse3", "sse4", "avx2", "avxvnni", "avx512", "avx512vnni", "avx512bf16"]
OPTIONS = {
    "ABS": "AbsOptions",
    "COS": "CosOptions",
    "EXP": "ExpOptions",
    "GELU": "GeluOptions",
    "HARD_SWISH": "HardSwishOptions",
    "LEAKY_RELU": "LeakyReluOptions",
    "NEG": "NegOptions",
    "SIGN": "SignOptions",
    "SQUARE": "SquareOptions",
}


def outputs(model, values, delegates):
    host = running.interpret(model, delegates, running.Resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    assert running.delegate_kernels(host) == len(delegates)
    return running.run(host, [values])[0]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_level_has_the_values_of_litert(name, level, load_delegate):
    low, high = FUNCTIONS[name]
    values = np.random.default_rng(1).uniform(low, high, (5, 327)).astype(np.float32)
    if low < 0:
        values[:, ::9] = 0
    fields = {"GELU": {"approximate": False}, "LEAKY_RELU": {"alpha": 0.2}}.get(name, {})
    g = graphs.Graph()
    y = g.op(name, [g.input(values.shape)], values.shape, OPTIONS.get(name), **fields)
    model = bytes(g.build([y]))
    expected = outputs(model, values, [])
    for jit in ("on", "off"):
        actual = outputs(model, values, [load_delegate(isa=level, jit=jit)])
        np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-6, err_msg=f"jit={jit}")
