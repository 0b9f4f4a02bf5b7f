"""LSTM's form of five inputs, in LiteRT with the delegate and in our own interpreter, against LiteRT's kernel: bytes to the
bit. Where its states are variables runs follow one another; otherwise each is given them."""

import graphs
import numpy as np
import own_interpreter
import pytest
import running
from ai_edge_litert import interpreter as litert

RUNS = 4


def model(dtype, batch, width, cells, seed, keeps=True):
    rng = np.random.default_rng(seed)
    g = graphs.Graph()
    byte = dtype == np.uint8
    values = (1 / 128, 128) if byte else (None, 0)
    sums = np.int16 if byte else np.float32
    x = g.input((batch, width), dtype, *values)
    given = g.variable if keeps else g.input
    previous = given((batch, cells), dtype, *values)
    shape = (4 * cells, width + cells)
    if byte:
        scale = float(rng.uniform(0.002, 0.01))
        weights = g.constant(rng.integers(0, 256, shape).astype(np.uint8), scale, int(rng.integers(90, 160)))
        bias = g.constant(rng.integers(-60000, 60000, shape[:1]).astype(np.int32), scale / 128, 0)
    else:
        weights = g.constant(rng.uniform(-1, 1, shape).astype(np.float32))
        bias = g.constant(rng.uniform(-1, 1, shape[:1]).astype(np.float32))
    state = given((batch, cells), sums, *((1 / 2048, 0) if byte else ()))
    outputs = g.op(
        "LSTM",
        [x, previous, weights, bias, state],
        [(batch, cells), (batch, cells), (batch, width + cells), (batch, 4 * cells)],
        "LSTMOptions",
        2,
        fusedActivationFunction=4,
        kernelType=1,
    )
    for output, (kind, quantization) in zip(
        outputs, [(dtype, values), (sums, (1 / 2048, 0)), (dtype, values), (sums, (1 / 4096, 0))], strict=True
    ):
        tensor = g.tensors[output.index]
        tensor.type, tensor.quantization = graphs.TYPES[np.dtype(kind)], None
        if byte:
            graphs.quantize(tensor, *quantization)
    return g.build(outputs)


def runs(interpreter, inputs):
    results = []
    for x in inputs:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        results.append([interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()])
    return results


def compare(actual, expected):
    for one, other in zip(actual, expected, strict=True):
        for a, e in zip(one, other, strict=True):
            assert a.dtype == e.dtype and a.shape == e.shape
            if e.dtype == np.float32:
                assert np.abs(a - e).max() <= 1e-5
            else:
                assert np.array_equal(a, e)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
@pytest.mark.parametrize("batch, width, cells", [(1, 1, 1), (2, 2, 4), (3, 17, 9), (1, 40, 33)])
def test_has_the_outputs_of_litert(dtype, batch, width, cells, load_delegate, delegate_path, tmp_path):
    content = model(dtype, batch, width, cells, seed=batch * 100 + cells)
    rng = np.random.default_rng(cells)
    shape = (RUNS, batch, width)
    inputs = rng.integers(0, 256, shape).astype(dtype) if dtype == np.uint8 else rng.uniform(-2, 2, shape).astype(dtype)
    plain = litert.Interpreter(model_content=content, experimental_op_resolver_type=running.Resolver.BUILTIN_REF)
    plain.allocate_tensors()
    # LiteRT starts uint8 with bytes of 0, which stand for -1.
    expected = runs(plain, inputs)
    delegated = litert.Interpreter(
        model_content=content,
        experimental_op_resolver_type=running.Resolver.BUILTIN_REF,
        experimental_delegates=[load_delegate()],
    )
    delegated.allocate_tensors()
    assert running.delegate_kernels(delegated) == 1
    compare(runs(delegated, inputs), expected)
    for delegate in (None, own_interpreter.Delegate(delegate_path)):
        own = own_interpreter.Interpreter(content, delegate)
        compare([own.run([x]) for x in inputs], expected)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
@pytest.mark.parametrize("batch, width, cells", [(1, 1, 1), (2, 2, 4), (3, 17, 9)])
def test_has_the_outputs_of_litert_for_states_that_it_is_given(dtype, batch, width, cells, load_delegate, delegate_path):
    content = model(dtype, batch, width, cells, seed=batch * 10 + cells, keeps=False)
    rng = np.random.default_rng(cells)

    def drawn(shape, kind):
        if kind == np.float32:
            return rng.uniform(-2, 2, shape).astype(kind)
        return rng.integers(0, 256, shape).astype(kind) if kind == np.uint8 else rng.integers(-9000, 9000, shape).astype(kind)

    state = np.int16 if dtype == np.uint8 else np.float32
    inputs = [[drawn((batch, width), dtype), drawn((batch, cells), dtype), drawn((batch, cells), state)] for _ in range(RUNS)]
    plain = litert.Interpreter(model_content=content, experimental_op_resolver_type=running.Resolver.BUILTIN_REF)
    delegated = litert.Interpreter(model_content=content, experimental_delegates=[load_delegate()])
    for interpreter in plain, delegated:
        interpreter.allocate_tensors()
    assert running.delegate_kernels(delegated) == 1
    expected = [running.run(plain, values) for values in inputs]
    compare([running.run(delegated, values) for values in inputs], expected)
    for delegate in (None, own_interpreter.Delegate(delegate_path)):
        own = own_interpreter.Interpreter(content, delegate)
        compare([own.run(values) for values in inputs], expected)
