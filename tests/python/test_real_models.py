"""Models that people deploy, in LiteRT with the delegate and in our own interpreter with and without it, against LiteRT's
reference kernels: integers to the bit. Those of the folder `real` of FUSELITE_MODELS where it is set, and networks of the
zoo that are made as they are."""

import json
import os

import flatbuffers
import numpy as np
import own_interpreter
import pytest
import running
from ai_edge_litert import interpreter as litert
from ai_edge_litert import schema_py_generated as schema

RUNS = 3
# What LiteRT computes with XNNPACK only.
NEEDS_XNNPACK = {"hair_segmentation", "mp_selfie_segmentation"}
# Where roundings make another tap the largest of its window, now and then, and where the output is tiny.
FLIPS = {"hair_segmentation": 5e-3, "mp_selfie_segmentation": 5e-3}
# Errors of floats, relative to the largest element: those of XNNPACK are 1.7e-5 on the first.
FLOAT_BOUND = 2e-5
ZOO = [
    "denoiser",
    "detector",
    "keyword",
    "keyword_int16",
    "keyword_int8",
    "segmenter",
    "wake_word",
]
REAL = [
    "ds_cnn_int16x8_mlzoo",
    "dtln_model_2",
    "dtln_quant_1",
    "hair_segmentation",
    "lite_dynamic_shapes",
    "lite_while_nested",
    "llm_ff",
    "lyra_soundstream_encoder",
    "magic_wand",
    "micro_speech_lstm",
    "mp_face_detection_short",
    "mp_face_landmark",
    "mp_gesture_embedder",
    "mp_hand_landmark_sparse",
    "mp_iris_landmark",
    "mp_knift_1k",
    "mp_selfie_segmentation",
    "mww_okay_nabu_v2",
    "posenet_257_int",
    "recommendation_rnn",
    "ssd_mobilenet_v1_detect_uint8",
    "torchaudio_conformer",
    "yamnet_classification",
]


if not os.environ.get("FUSELITE_MODELS"):
    REAL = []


@pytest.fixture(scope="session")
def file_of(request, tool, tmp_path_factory):
    """file_of("detector"): where the model is."""
    folder = tmp_path_factory.mktemp("zoo")

    def path_of(name):
        if name not in ZOO:
            return request.getfixturevalue("models") / "real" / f"{name}.tflite"
        path = folder / f"{name}.tflite"
        tool("zoo", name, "-o", path)
        return path

    return path_of


@pytest.fixture(params=ZOO + REAL)
def model(request, file_of):
    return file_of(request.param)


def interpreter(path, delegates=()):
    kind = running.Resolver.AUTO if path.stem in NEEDS_XNNPACK and not delegates else running.Resolver.BUILTIN_REF
    made = litert.Interpreter(
        str(path), experimental_op_resolver_type=kind, experimental_delegates=list(delegates), num_threads=1
    )
    made.allocate_tensors()
    return made


def outputs(made, inputs):
    """Of runs one after the other: state goes on."""
    results = []
    for values in inputs:
        for detail, value in zip(made.get_input_details(), values):
            made.set_tensor(detail["index"], value)
        made.invoke()
        results.append([made.get_tensor(detail["index"]) for detail in made.get_output_details()])
    return results


def compare(actual, expected, bound=FLOAT_BOUND):
    for a, e in zip(actual, expected, strict=True):
        for x, y in zip(a, e, strict=True):
            assert x.dtype == y.dtype and x.shape == y.shape
            if y.dtype != np.float32:
                assert np.array_equal(x, y)
            elif y.size:
                assert np.abs(x - y).max() <= bound * max(np.abs(y).max(), 1e-30)


def test_in_both_hosts(model, load_delegate, delegate_path):
    plain = interpreter(model)
    inputs = [running.random_inputs(plain, seed) for seed in range(RUNS)]
    expected = outputs(plain, inputs)
    bound = FLIPS.get(model.stem, FLOAT_BOUND)
    compare(outputs(interpreter(model, [load_delegate()]), inputs), expected, bound)
    for delegate in (None, own_interpreter.Delegate(delegate_path)):
        own = own_interpreter.Interpreter(model, delegate)
        compare([own.run(values) for values in inputs], expected, bound)


QUICK = ["--num_runs", 1, "--min_secs", 0, "--warmup_min_secs", 0]


def test_tools(model, tool, tmp_path):
    """They take each model, with the shapes that the file has; the profile tells of which subgraph a step is."""
    profile, explanation = tmp_path / "profile.json", tmp_path / "explain.json"
    tool("explain", model)
    tool("diff", model)
    tool("benchmark", model, *QUICK, f"--fuselite_profile_file={profile}", f"--fuselite_explain_file={explanation}")
    subgraphs = json.loads(explanation.read_text())["graphs"]
    taken = {i for i, graph in enumerate(subgraphs) if graph["partitions"]}
    profiled = {partition["graph"] for partition in json.loads(profile.read_text())["partitions"]}
    assert profiled and profiled <= taken, (profiled, taken)


def test_partitions(model, load_delegate, tmp_path):
    """One, since no model here has a custom operator that is not ours. Further graphs are initializers of variables, which the
    main graph's partition has taken, and the subgraphs of loops."""
    explain = tmp_path / "explain.json"
    interpreter(model, [load_delegate(explain_file=explain)])
    main, *others = json.loads(explain.read_text())["graphs"]
    assert all(node["claimed"] for node in main["nodes"]), [n for n in main["nodes"] if not n["claimed"]]
    assert len(main["partitions"]) == 1 and all(len(graph["partitions"]) <= 1 for graph in others)


def sparse_form(path):
    """The model with filters a part of whose values are zero, of which a row's others alone are stored, each before a DENSIFY."""
    model = schema.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    graph, kept = model.subgraphs[0], np.random.default_rng(1)
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.DENSIFY
    model.operatorCodes.append(code)
    dense = []
    for operator in graph.operators:
        if model.operatorCodes[operator.opcodeIndex].builtinCode != schema.BuiltinOperator.CONV_2D:
            continue
        filters = graph.tensors[operator.inputs[1]]
        values = np.frombuffer(model.buffers[filters.buffer].data.tobytes(), np.float32).reshape(-1, filters.shape[-1])
        values = np.where(kept.random(values.shape) < 0.3, values, 0).astype(np.float32)
        model.buffers[filters.buffer].data = np.frombuffer(values[values != 0].tobytes(), np.uint8)
        filters.sparsity = sparse_rows(filters.shape, values)
        widened = schema.TensorT()
        widened.name, widened.shape, widened.type, widened.buffer = filters.name + b"_dense", filters.shape, filters.type, 0
        graph.tensors.append(widened)
        densify = schema.OperatorT()
        densify.opcodeIndex = len(model.operatorCodes) - 1
        densify.inputs, densify.outputs = [operator.inputs[1]], [len(graph.tensors) - 1]
        operator.inputs = [operator.inputs[0], len(graph.tensors) - 1, *operator.inputs[2:]]
        dense.append(densify)
    graph.operators = [*dense, *graph.operators]
    return packed(model)


def sparse_rows(shape, values):
    """Of a tensor whose innermost dimension alone is stored sparsely: `values` [rows, innermost]."""
    sparsity = schema.SparsityParametersT()
    sparsity.traversalOrder = list(range(len(shape)))
    sparsity.dimMetadata = [schema.DimensionMetadataT() for _ in shape]
    for dimension, size in zip(sparsity.dimMetadata, shape):
        dimension.format, dimension.denseSize = schema.DimensionType.DENSE, size
    innermost = sparsity.dimMetadata[-1]
    innermost.format = schema.DimensionType.SPARSE_CSR
    segments, indices = schema.Int32VectorT(), schema.Int32VectorT()
    segments.values = [0, *np.cumsum((values != 0).sum(axis=1)).tolist()]
    indices.values = np.nonzero(values)[1].tolist()
    innermost.arraySegmentsType = innermost.arrayIndicesType = schema.SparseIndexVector.Int32Vector
    innermost.arraySegments, innermost.arrayIndices = segments, indices
    return sparsity


def packed(model):
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def dense_twin(sparse):
    """The sparse model with the results of its DENSIFYs as constants."""
    model = schema.ModelT.InitFromPackedBuf(sparse, 0)
    graph, plain = (
        model.subgraphs[0],
        litert.Interpreter(
            model_content=sparse,
            experimental_op_resolver_type=running.Resolver.BUILTIN_REF,
            experimental_preserve_all_tensors=True,
        ),
    )
    plain.allocate_tensors()
    plain.invoke()

    def is_densify(operator):
        return model.operatorCodes[operator.opcodeIndex].builtinCode == schema.BuiltinOperator.DENSIFY

    for operator in filter(is_densify, graph.operators):
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(plain.get_tensor(operator.outputs[0]).tobytes(), np.uint8)
        model.buffers.append(buffer)
        graph.tensors[operator.outputs[0]].buffer = len(model.buffers) - 1
    count = len(graph.operators)
    graph.operators = [operator for operator in graph.operators if not is_densify(operator)]
    assert len(graph.operators) < count
    return packed(model)


@pytest.mark.parametrize("name", ["segmenter"] + ["mp_hand_landmark_sparse"] * bool(REAL))
def test_a_sparse_model_runs_the_steps_of_its_dense_twin(name, file_of, load_delegate, tmp_path):
    """So that it is no slower: the same kernels on weights of the same size, and the same bits."""
    path, plans, results = file_of(name), [], []
    sparse = path.read_bytes() if "sparse" in name else sparse_form(path)
    for name, content in ("sparse", sparse), ("dense", dense_twin(sparse)):
        explain = tmp_path / f"{name}.json"
        made = litert.Interpreter(model_content=content, experimental_delegates=[load_delegate(explain_file=explain)])
        made.allocate_tensors()
        (inputs,) = running.random_inputs(made, 1)
        results.append(running.run(made, [inputs]))
        (partition,) = running.explanation(explain)["partitions"]
        plans.append([(step["kernel"], step["tail"], step["output_shape"], step["weight_bytes"]) for step in partition["steps"]])
    assert plans[0] == plans[1]
    for sparse, dense in zip(*results, strict=True):
        np.testing.assert_array_equal(sparse, dense)
