"""LSTM with float32 activations and 8-bit weights, against LiteRT's own kernels (it has no portable ones for these)."""

import graphs
import numpy as np
import pytest
import running
from ai_edge_litert import interpreter as litert

GATES = 4
# LiteRT's matrix products round in another order for some sizes, which may move a quantized value by a step.
TOLERANCE = 2e-3


def lstm_model(path, rng, sequence, *, coupled, peephole, projection, layer_norm, asymmetric, steps=5):
    batch, inputs, cells = (int(n) for n in rng.integers(1, (4, 50, 40)))
    outputs = int(rng.integers(1, 30)) if projection else cells
    graph = graphs.Graph()

    def weights(shape):
        return graph.constant(rng.integers(-127, 128, shape).astype(np.int8), 0.5 / 127 / shape[-1] ** 0.5 * 2)

    def floats(shape, low=-0.3):
        return graph.constant(rng.uniform(low, 0.3, shape).astype(np.float32))

    def gates(make, there=True):
        return [make() if there and not (coupled and gate == 0) else None for gate in range(GATES)]

    def state(width):
        value = graph._tensor((batch, width), np.float32, None, 0)
        graph.tensors[value.index].isVariable = True
        return value

    shape = (batch, steps, inputs) if sequence else (batch, inputs)
    x = graph.input(shape)
    operands = [x, *gates(lambda: weights((cells, inputs))), *gates(lambda: weights((cells, outputs)))]
    operands += [
        graph.constant(rng.integers(-127, 128, cells).astype(np.int8), 0.002) if peephole and not (coupled and i == 0) else None
        for i in range(3)
    ]
    operands += gates(lambda: floats((cells,)))
    operands += [weights((outputs, cells)), floats((outputs,))] if projection else [None, None]
    operands += [state(outputs), state(cells)]
    if layer_norm:
        operands += gates(lambda: floats((cells,), 0.1))
    name = "UNIDIRECTIONAL_SEQUENCE_LSTM" if sequence else "LSTM"
    options = "UnidirectionalSequenceLSTMOptions" if sequence else "LSTMOptions"
    y = graph.op(
        name,
        operands,
        (*shape[:-1], outputs),
        options,
        version=3 if sequence else 4,
        fusedActivationFunction=4,
        cellClip=0.8 if rng.random() < 0.5 else 0.0,
        projClip=0.0,
        asymmetricQuantizeInputs=asymmetric,
    )
    path.write_bytes(graph.build([y]))
    return shape


@pytest.mark.parametrize("seed", range(24))
def test_equals_litert(seed, tmp_path, load_delegate):
    rng = np.random.default_rng(seed)
    path = tmp_path / "lstm.tflite"
    layer_norm = seed % 6 == 5
    shape = lstm_model(
        path,
        rng,
        sequence=seed % 3 != 2,
        coupled=seed % 4 == 1,
        peephole=seed % 5 in (1, 2),
        projection=seed % 7 in (3, 4),
        layer_norm=layer_norm,
        asymmetric=seed % 2 == 1,
    )
    plain = litert.Interpreter(str(path), experimental_op_resolver_type=running.Resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    plain.allocate_tensors()
    ours = running.delegated(path, load_delegate())
    assert running.delegate_kernels(ours) == 1
    for interpreter in (plain, ours):
        interpreter.reset_all_variables()
    for _ in range(3):  # the states outlive a run
        x = rng.uniform(-1, 1, shape).astype(np.float32)
        results = []
        for interpreter in (plain, ours):
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
            interpreter.invoke()
            results.append([interpreter.get_tensor(interpreter.get_output_details()[0]["index"])])
        assert running.largest_difference(*results) < TOLERANCE * (10 if layer_norm else 1)


@pytest.mark.parametrize("others, odd", [(np.int8, np.uint8), (np.uint8, np.int8)])
def test_weights_of_two_types_are_left_to_litert_which_refuses_them(others, odd, tmp_path, load_delegate):
    rng = np.random.default_rng(5)
    graph = graphs.Graph()

    def weights(dtype):
        return graph.constant(rng.integers(0, 100, (4, 4)).astype(dtype), 0.01)

    def state():
        value = graph._tensor((1, 4), np.float32, None, 0)
        graph.tensors[value.index].isVariable = True
        return value

    biases = [graph.constant(np.zeros(4, np.float32)) for _ in range(GATES)]
    matrices = [weights(odd if i == 5 else others) for i in range(2 * GATES)]
    operands = [graph.input((1, 3, 4)), *matrices, None, None, None, *biases, None, None, state(), state()]
    name, options = "UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTMOptions"
    y = graph.op(name, operands, (1, 3, 4), options, version=3, fusedActivationFunction=4)
    path, explain = tmp_path / "lstm.tflite", tmp_path / "explain.json"
    path.write_bytes(graph.build([y]))
    with pytest.raises(RuntimeError):
        running.delegated(path, load_delegate(explain_file=explain))
    (node,) = running.explanation(explain)["nodes"]
    assert not node["claimed"]
