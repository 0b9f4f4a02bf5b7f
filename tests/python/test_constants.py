"""Constants that nodes make of constants: followed across partitions, and left to the host where it needs them."""

import graphs
import numpy as np
import running

WIDTH = 64


def two_layers():
    """Two dense layers with float16 weights, whose DEQUANTIZEs stand in front, and an operator between them."""
    rng = np.random.default_rng(0)
    graph = graphs.Graph()
    x = graph.input((1, WIDTH))
    weights = []
    for _ in range(2):
        half = graph.constant(rng.uniform(-0.1, 0.1, (WIDTH, WIDTH)).astype(np.float16))
        weights.append(graph.op("DEQUANTIZE", [half], (WIDTH, WIDTH), dtype=np.float32))
    y = x
    for i, w in enumerate(weights):
        for _ in range(3):
            y = graph.op("FULLY_CONNECTED", [y, w, None], (1, WIDTH), "FullyConnectedOptions")
        if i == 0:
            y = graph.op("COS", [y], (1, WIDTH))
    return graph, y, weights


def run_both(model, load_delegate, tmp_path, **options):
    path, explain = tmp_path / "model.tflite", tmp_path / "explain.json"
    path.write_bytes(model)
    plain = running.reference(path)
    made = running.delegated(path, load_delegate(explain_file=explain, **options))
    inputs = running.random_inputs(plain, 1)
    assert running.largest_difference(running.run(made, inputs), running.run(plain, inputs)) <= 1e-5
    return running.explanation(explain)


def test_readers_in_other_partitions_have_constants(load_delegate, tmp_path):
    graph, y, _ = two_layers()
    explained = run_both(graph.build([y]), load_delegate, tmp_path, ops_deny="COS")
    partitions = explained["partitions"]
    assert len(partitions) == 2
    for partition in partitions:
        steps = [step["ops"] for step in partition["steps"]]
        assert steps == ["FULLY_CONNECTED"] * 3, steps
    kernels = {step["kernel"] for partition in partitions for step in partition["steps"]}
    assert len(kernels) == 1, kernels


def test_what_the_hosts_nodes_read_is_left_to_the_host(load_delegate, tmp_path):
    graph, y, weights = two_layers()
    shifted = graph.op("SIN", [weights[1]], weights[1].shape)
    explained = run_both(graph.build([y, shifted]), load_delegate, tmp_path, ops_deny="SIN")
    first, second = explained["nodes"][:2]
    assert first["claimed"] and not second["claimed"]
    assert "may need its result as a constant" in second["reason"]
    for partition in explained["partitions"]:
        assert all("DEQUANTIZE" not in step["ops"] for step in partition["steps"])


def test_constants_that_are_outputs_keep_their_values(load_delegate, tmp_path):
    graph, y, weights = two_layers()
    run_both(graph.build([y, weights[0]]), load_delegate, tmp_path)
