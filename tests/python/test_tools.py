"""The command line, run as a person runs it."""

import json
import os
import re
import shutil
import subprocess

import graphs
import numpy as np
import pytest
import running
import test_models
from ai_edge_litert import schema_py_generated as schema


def test_run_writes_outputs_that_do_not_depend_on_the_delegate(tool, mobilenet, tmp_path):
    tool("run", mobilenet, "-o", tmp_path / "with", "--seed", 3)
    tool("run", mobilenet, "-o", tmp_path / "without", "--seed", 3, "--no-delegate")
    (name,) = os.listdir(tmp_path / "with")
    a, b = np.load(tmp_path / "with" / name), np.load(tmp_path / "without" / name)
    assert a.shape == (1, 1000) and a.dtype == np.float32
    assert np.ptp(a) > 0
    assert np.abs(a - b).max() <= 1e-5 * np.ptp(b)


def test_run_reads_inputs(tool, mobilenet, tmp_path):
    image = np.random.default_rng(0).uniform(-1, 1, (1, 224, 224, 3)).astype(np.float32)
    np.save(tmp_path / "image.npy", image)
    np.save(tmp_path / "other.npy", -image)
    tables = [tool("run", mobilenet, "--input", tmp_path / f"{name}.npy") for name in ("image", "image", "other")]
    assert tables[0] == tables[1] != tables[2]


@pytest.mark.parametrize("command", ["run", "diff", "benchmark"])
@pytest.mark.parametrize(
    "array, given",
    [
        (np.zeros((1, 224, 224, 3), np.float64), "float64 [1,224,224,3]"),
        (np.zeros((1, 224, 224, 4), np.float32), "[1,224,224,4]"),
        (np.zeros((1, 3), np.float32), "[1,3]"),
        (np.zeros((), np.float32), "[]"),
    ],
)
def test_inputs_that_do_not_fit_are_named(tool, mobilenet, tmp_path, command, array, given):
    np.save(tmp_path / "input.npy", array)
    message = tool(command, mobilenet, "-i", tmp_path / "input.npy", status=1)
    assert f"input.npy, which is {given}," in message and "input 'image', which is float32 [1,224,224,3]" in message


def test_another_batch_is_run(tool, mobilenet, tmp_path):
    np.save(tmp_path / "input.npy", np.zeros((3, 224, 224, 3), np.float32))
    assert "[3,1000]" in tool("run", mobilenet, "-i", tmp_path / "input.npy")


def test_shapes_are_given_before_anything_is_judged(tool, mobilenet):
    for shape in (["--shape", "image:3,224,224,3"], ["--input_layer=image", "--input_layer_shape=3,224,224,3"]):
        assert "[3,1000]" in tool("run", mobilenet, *shape)
    assert "computed in 3 parts" in tool("explain", mobilenet, "--shape", "3,224,224,3")
    tool("diff", mobilenet, "--shape", "1,96,96,3")
    assert "one shape too many" in tool("run", mobilenet, "--shape", "1,224,224,3", "--shape", "1,2", status=1)


@pytest.mark.parametrize("name", ["mobilenet_v1", "transformer"])
def test_fast_precision_is_compared_by_its_own_bound(tool, name):
    """A machine without AVX512-BF16 computes in float32, which is within it, too."""
    assert "beyond" not in tool("diff", f"zoo:{name}", "--precision", "fast", "--runs", "2")


# What the interpreter has no kernel for: STABLEHLO_COMPOSITE.
NOT_IN_OUR_HOST = {"ops/l2_norm_composite"}


@pytest.mark.parametrize("name", [name for name in test_models.PEER_ERRORS if name not in NOT_IN_OUR_HOST])
@pytest.mark.parametrize("fusion", ["on", "off"])
def test_our_own_host_gives_the_outputs_of_litert(tool, networks, tmp_path, name, fusion):
    path = networks / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    interpreter = running.reference(path)
    inputs = running.random_inputs(interpreter, 0)
    expected = running.run(interpreter, inputs)
    arguments = []
    for i, value in enumerate(inputs):
        np.save(tmp_path / f"{i}.npy", value)
        arguments += ["-i", tmp_path / f"{i}.npy"]
    table = tool("run", path, *arguments, "-o", tmp_path / "out", "--fusion", fusion)
    files = [line.split()[-1] for line in table.splitlines()[1:]]
    actual = [np.load(file) for file in files]
    assert running.largest_difference(actual, expected) <= test_models.allowed(name, expected)


def named_outputs(path, names, dtype=np.float32):
    """Writes a model whose outputs have these names, and whose n-th output is n times its input."""
    graph = graphs.Graph()
    x = graph.input((1, 2))
    outputs = [graph.op("MUL", [x, graph.constant(np.float32([i]))], (1, 2), "MulOptions") for i in range(len(names))]
    for value, name in zip(outputs, names, strict=True):
        graph.tensors[value.index].name = name
    path.write_bytes(graph.build(outputs))
    return path


def test_each_output_has_its_own_file(tool, tmp_path):
    names = ["a/b", "a:b", "a_b_3", "a_b", "a?b", "x" * 300, "x" * 299 + "y", ""]
    path = named_outputs(tmp_path / "names.tflite", names)
    np.save(tmp_path / "x.npy", np.ones((1, 2), np.float32))
    table = tool("run", path, "-i", tmp_path / "x.npy", "-o", tmp_path / "out")
    files = [line.split()[-1] for line in table.splitlines()[1:]]
    assert [np.load(file).max() for file in files] == list(range(len(names)))
    expected = ["a_b", "a_b_1", "a_b_3", "a_b_3_3", "a_b_4", "x" * 100, "x" * 100 + "_6", "output_7"]
    assert files == [str(tmp_path / "out" / f"{name}.npy") for name in expected]


def test_outputs_that_numpy_lacks_are_named_behind_the_table(tool, tmp_path):
    graph, string = graphs.Graph(), schema.TensorType.STRING
    x, text = graph.input((1, 2)), graph.input((1,))
    graph.tensors[text.index].type = string
    grams = graph.op("SKIP_GRAM", [text], (1,), "SkipGramOptions", tensor_type=string, ngramSize=1)
    path = tmp_path / "text.tflite"
    path.write_bytes(graph.build([grams, graph.op("EXP", [x], (1, 2), "ExpOptions")]))
    result = subprocess.run([tool.path, "run", path, "-o", tmp_path / "out"], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == "fuselite: outputs that no .npy file can hold were not written: 't2' (string)\n"
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["output", "t2", "t3"]
    assert os.listdir(tmp_path / "out") == ["t3.npy"]


def test_arrays_that_cannot_be_read_say_how_to_save_them(tool, mobilenet, tmp_path):
    image = np.zeros((1, 224, 224, 3), np.float32)
    np.save(tmp_path / "big.npy", image.astype(">f4"))
    assert "'>f4' is big-endian; save it as '<f4'" in tool("run", mobilenet, "-i", tmp_path / "big.npy", status=1)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(image))
    assert "ascontiguousarray" in tool("run", mobilenet, "-i", tmp_path / "fortran.npy", status=1)
    np.save(tmp_path / "image.npy", image)
    twice = ["-i", tmp_path / "image.npy", "-i", f"image={tmp_path / 'image.npy'}"]
    assert "input 'image' is given twice" in tool("run", mobilenet, *twice, status=1)


def test_run_names_the_inputs_that_there_are(tool, mobilenet, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1,), np.float32))
    assert "no input 'nonesuch'; it has" in tool("run", mobilenet, "-i", f"nonesuch={tmp_path / 'x.npy'}", status=1)
    np.save(tmp_path / "image.npy", np.zeros((1, 224, 224, 3), np.float32))
    twice = ["-i", tmp_path / "image.npy"] * 2
    assert "one input too many; the model has image" in tool("run", mobilenet, *twice, status=1)


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        (["run", "/nowhere.tflite"], 1, "/nowhere.tflite"),
        (["run", "zoo:mobilenet_v9"], 1, "mobilenet_v2"),
        (["run"], 2, "run: model is required; fuselite run --help says more"),
        (["generate", "zoo:decoder_small"], 2, "generate: --tokens is required; fuselite generate --help says more"),
        (["fly"], 2, "fly"),
        (["run", "zoo:mobilenet_v1", "--isa", "mmx"], 2, "nearest valid value"),
        (
            ["run", "zoo:mobilenet_v1", "--num_threads", "many"],
            2,
            "num_threads: 'many' is not a whole number from 0 to 1024; write a number, 2 for example\n",
        ),
        (["run", "zoo:mobilenet_v1", "--num_threads", " 2"], 2, "from 0 to 1024; the nearest valid value is 2\n"),
        (["run", "zoo:mobilenet_v1", "--num_threads=+2"], 2, "from 0 to 1024; the nearest valid value is 2\n"),
        (["run", "zoo:mobilenet_v1", "--max_memory", " 2G"], 2, "; write 0 (no limit), 500M or 2G\n"),
        (["benchmark", "zoo:mobilenet_v1", "--delegate", "perhaps"], 2, "perhaps"),
        (["explain", "zoo:mobilenet_v1", "--format", "xml"], 2, "xml"),
        ([], 2, "a command is missing: run"),
        (["--fly"], 2, "'--fly' stands where a command is expected"),
        (["run", "zoo:"], 1, "mobilenet_v1"),
        (["run", "."], 1, ".: is a folder, not a regular file"),
        (["run", "/dev/null"], 1, "not a regular file"),
        (["run", "two\nlines.tflite"], 1, "two?lines.tflite: no such file"),
        (["fly"], 2, "there is no command 'fly'; fuselite --help lists them"),
        (["expain"], 2, "there is no command 'expain'; the nearest one is explain"),
        (["run", "zoo:mobilenet_v1", "--bogus"], 2, "run has no flag '--bogus'; fuselite run --help lists them"),
        (["run", "zoo:mobilenet_v1", "--flag"], 2, "run has no flag '--flag'; fuselite run --help lists them"),
        (["run", "zoo:mobilenet_v1", "--nun_threads", "2"], 2, "no flag '--nun_threads'; the nearest one is --num_threads"),
        (["benchmark", "zoo:mobilenet_v1", "--num_run=2"], 2, "no flag '--num_run'; the nearest one is --num_runs"),
        (["run", "zoo:mobilenet_v1", "more"], 2, "'more' is one argument too many"),
        (["benchmark"], 2, "benchmark: a model is missing; give a .tflite file, or zoo:NAME"),
        (["benchmark", "a.tflite", "--graph=b.tflite"], 2, "two models, 'a.tflite' and --graph=b.tflite; give one of them"),
        (["explain", "zoo:keyword", "--profile_runs=2"], 2, "shown in the picture; give its file by --html"),
        (["run", "zoo:keyword", "--external_delegate_options", "a:b"], 2, "is given once, --external_delegate_path 0 times"),
        (["profile", "zoo:keyword", "--num_runs=1.5"], 2, "--num_runs: '1.5' is not a whole number of at most 2147483647"),
        (["profile", "zoo:keyword", "--num_runs=99999999999"], 2, "'99999999999' is not a whole number of at most 2147483647"),
        (["profile", "zoo:keyword", "--signature", "serve"], 1, "zoo:keyword: the model has no signature 'serve'"),
        (["run", "zoo:keyword", "--use_fuselite=maybe"], 2, "'maybe' is neither true nor false; to turn it on, write --use_"),
        (["run", "zoo:keyword", "--delegate=maybe"], 2, "'maybe' is neither true nor false; to turn it on, write --delegate="),
        (["generate", "zoo:decoder_small", "--tokens", ""], 2, "'' is no token id, a whole number from 0 to 2147483647"),
        (["generate", "zoo:decoder_small", "--tokens", "1,,2"], 2, "--tokens: '' is no token id"),
        (["generate", "zoo:decoder_small", "--tokens", "1,a"], 2, "--tokens: 'a' is no token id"),
        (["generate", "zoo:decoder_small", "--tokens", "-1"], 2, "--tokens: '-1' is no token id"),
        (["generate", "zoo:decoder_small", "--tokens", "4294967296"], 2, "--tokens: '4294967296' is no token id"),
        (["benchmark", "--dry_run=a.tflite"], 2, "--dry_run: 'a.tflite' is neither true nor false; to turn it on, write"),
        (["benchmark", "--dry_run", "a.tflite"], 1, "a.tflite: no such file"),
        (["run", ""], 1, "the model's name is empty"),
        (["run", "zoo:mobilenet_v1", "--signature", "serve"], 1, "zoo:mobilenet_v1: the model has no signature 'serve'"),
        (["run", "zoo:mobilenet_v1", "--seed", "-1"], 2, "'-1' is not a whole number"),
        (["run", "zoo:mobilenet_v1", "--seed", "99999999999999999999"], 2, "is not a whole number"),
        (["run", "zoo:mobilenet_v1", "-i", ""], 1, "names no file"),
        (["run", "zoo:mobilenet_v1", "-i", "/nowhere.npy"], 1, "/nowhere.npy: no such file"),
        (["run", "zoo:mobilenet_v1", "-i", "/tmp"], 1, "/tmp: is a folder, not a regular file"),
        (["run", "zoo:mobilenet_v1", "-o", "/proc/fuselite"], 1, "/proc/fuselite: the folder for the outputs cannot be made: "),
        (["run", "zoo:keyword", "--ops_deny", "CONV"], 2, "'CONV' is no operator known here; the nearest one is CONV_2D"),
        (["run", "zoo:keyword", "--external_delegate_path=/bin/sh"], 2, "/bin/sh: "),
        (["run", "zoo:mobilenet_v1", "--seed", "many"], 2, "--seed"),
        (["diff", "zoo:transformer", "--runs", "0"], 2, "'0' is not at least 1"),
        (["diff", "zoo:transformer", "--tolerance", "nan"], 2, "'nan' is not at least 0"),
        (["diff", "zoo:transformer", "--tolerance", "-1"], 2, "'-1' is not at least 0"),
        (["demo", "--seconds", "-1"], 2, "'-1' is not at least 0"),
        (["demo", "a.tflite", "--directory", "b"], 2, "--directory: the zoo's models are written there, and other models are"),
        (["demo", "--seconds", "inf"], 2, "--seconds: 'inf' is not finite"),
        (["benchmark", "zoo:keyword", "--max_secs=1e999"], 2, "--max_secs: '1e999' is not finite"),
        (["zoo", "transformer", "-o", "/nowhere/x"], 1, "/nowhere/x: cannot be written: No such file or directory"),
        (["explain", "zoo:transformer", "-o", "/nowhere/x"], 1, "/nowhere/x: cannot be written"),
        (["benchmark", "zoo:transformer", "--num_runs=-1"], 2, "'-1' is not at least 0"),
        (["benchmark", "zoo:transformer", "--run_delay=nan"], 2, "'nan' is not at least -1"),
        (["benchmark", "zoo:transformer", "--num_runs"], 2, "--num_runs"),
        (["benchmark", "--num_runs=", "zoo:transformer"], 2, "--num_runs: '' is not a number"),
        (["benchmark", "--graph=", "--num_runs=1"], 2, "benchmark: a model is missing"),
        (["benchmark", "--dry_run=", "zoo:transformer"], 2, "--dry_run: '' is neither true nor false; to turn it on, write"),
        (["benchmark", "--roofline=", "zoo:transformer"], 2, "--roofline: '' is neither true nor false; to turn it on, write"),
        (["benchmark", "--num_threads=", "zoo:transformer"], 2, "num_threads: '' is not a whole number from 0 to 1024"),
        (["benchmark", "--result_file_path=", "zoo:transformer"], 2, "--result_file_path: '' names no file"),
        (["run", "--bogus=", "zoo:transformer"], 2, "run has no flag '--bogus'"),
        (["benchmark", "zoo:transformer", "--memory_footprint_check_interval_ms=0"], 2, "is not at least 1"),
        (["benchmark", "zoo:transformer", "--input_layer_shape=1,2"], 2, "--input_layer_shape has 1 shapes for the 0"),
        (["benchmark", "zoo:transformer", "--input_layer=a", "--input_layer_shape=1,x"], 2, "'x' is no dimension"),
        (["benchmark", "zoo:transformer", "--input_layer_value_range=a,5,1"], 2, "has a LOW above its HIGH"),
        (["benchmark", "zoo:transformer", "--input_layer_value_files=a"], 2, "is not NAME:FILE"),
        (["benchmark", "zoo:transformer", "--input_layer=nonesuch"], 1, "no input 'nonesuch'; it has"),
    ],
)
def test_errors_are_one_line(tool, arguments, status, message):
    assert message in tool(*arguments, status=status)


@pytest.mark.parametrize(
    "arguments",
    [
        *(["run", "zoo:keyword", flag] for flag in ("-o", "--external_delegate_path")),
        *(["explain", "zoo:keyword", flag] for flag in ("-o", "--html")),
        *(["profile", "zoo:keyword", flag] for flag in ("-o", "--chrome-trace")),
        ["stress", "-o"],
        ["zoo", "keyword", "-o"],
        ["demo", "--directory"],
        *(
            ["benchmark", "zoo:keyword", f"--{flag}"]
            for flag in ("result_file_path", "output_filepath", "op_profiling_output_file", "profiling_output_csv_file")
        ),
    ],
)
def test_paths_that_are_empty_are_refused(tool, arguments):
    assert re.search("--[a-z_-]+: '' names no (file|folder)\n", tool(*arguments, "", status=2))


def test_two_flags_do_not_write_one_file(tool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quick = ["--num_runs=1", "--min_secs=0"]
    assert "--output and --chrome-trace name the same file, p" in tool(
        "profile", "zoo:keyword", "-o", "./p", "--chrome-trace", "p", status=2
    )
    assert "--output and --html name the same file" in tool("explain", "zoo:keyword", "-o", "p", "--html", "p", status=2)
    both = ["--result_file_path=p", f"--output_filepath={tmp_path / 'p'}"]
    assert "--result_file_path and --output_filepath name the same" in tool("benchmark", "zoo:keyword", *quick, *both, status=2)
    assert os.listdir() == []
    tool("profile", "zoo:keyword", "-o", "/dev/null", "--chrome-trace", "/dev/null", "--num_runs=1")


@pytest.mark.parametrize("arguments", [["explain", "zoo:mobilenet_v1"], ["--help"], ["run", "--help"], ["--version"]])
def test_a_full_disk_is_an_error(tool, arguments):
    with open("/dev/full", "w", encoding="utf-8") as full:
        assert "standard output cannot be written" in tool(*arguments, status=1, stdout=full)


@pytest.mark.parametrize("command", ["explain", "analyze", "demo", "stress", "generate"])
def test_flags_that_a_command_could_only_ignore_are_not_offered(tool, command):
    flags, needed = ["--external_delegate_path", "--use_fuselite"], []
    if command == "generate":  # which can do without fuselite
        flags, needed = flags[:1], ["--tokens=1"]
    for flag in flags:
        assert f"{command} has no flag '{flag}'" in tool(command, "zoo:decoder_small", *needed, f"{flag}=false", status=2)
        assert flag not in tool(command, "--help")


def test_a_file_and_a_flag_that_give_two_shapes_are_refused(tool, mobilenet, tmp_path):
    np.save(tmp_path / "one.npy", np.zeros((1, 224, 224, 3), np.float32))
    for flags in (["--shape", "image:2,224,224,3"], ["--shape", "2,224,224,3"]):
        message = tool("run", mobilenet, *flags, "-i", tmp_path / "one.npy", status=1)
        assert "one.npy, which is [1,224,224,3], does not fit the shape [2,224,224,3] that a flag gives" in message
    tool("run", mobilenet, "--shape", "image:1,224,224,3", "-i", tmp_path / "one.npy")


def test_ranges_are_given_to_names_with_colons(tool, tmp_path):
    graph = graphs.Graph()
    x = graph.input((1, 4))
    graph.tensors[x.index].name = "serving_default_x:0"
    path = tmp_path / "colon.tflite"
    path.write_bytes(graph.build([graph.op("EXP", [x], (1, 4), "ExpOptions")]))
    tool("run", path, "-o", tmp_path / "out", "--input_layer_value_range=serving_default_x::0,3,3")
    (output,) = os.listdir(tmp_path / "out")
    assert np.load(tmp_path / "out" / output) == pytest.approx(np.full((1, 4), np.exp(3)))
    refused = tool("run", path, "--input_layer_value_range=serving_default_x:0,3,3", status=2)
    assert "'serving_default_x' is not NAME,LOW,HIGH; write :: for a colon of a name" in refused


def test_broken_models_are_refused(tool, mobilenet, tmp_path):
    whole, path = mobilenet.read_bytes(), tmp_path / "broken.tflite"
    for length in (0, 7, 100, 5000, len(whole) // 2):
        path.write_bytes(whole[:length])
        assert "broken.tflite" in tool("run", path, status=1)


def test_diff_is_within_and_fails_past_the_tolerance(tool, tmp_path):
    assert "within" in tool("diff", "zoo:transformer", "--runs", 2)
    assert "differs beyond" in tool("diff", "zoo:transformer", "--tolerance", 0, status=1)


def test_diff_allows_for_steps_of_quantized_rows(tool, networks):
    name = "keras_vit_tiny_dynrange" if os.environ.get("FUSELITE_MODELS") else "transformer_dynamic"
    path = networks / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    assert "within" in tool("diff", path)
    assert "differs beyond" in tool("diff", path, "--tolerance", 1e-6, status=1)


def test_diff_looks_at_layers(tool):
    assert "no tensor differs beyond tolerance" in tool("diff", "zoo:transformer", "--layers")


def test_explain_in_every_form(tool, tmp_path):
    text = tool("explain", "zoo:mobilenet_v2", "--ops_deny", "SOFTMAX")
    assert "left to the host: the option ops_deny names this operator" in text and "multiply-adds" in text
    graph = json.loads(tool("explain", "zoo:mobilenet_v2", "--format", "json"))["graphs"][0]
    assert all(node["claimed"] for node in graph["nodes"])
    (partition,) = graph["partitions"]
    assert 0 < len(partition["steps"]) < len(graph["nodes"]), "some nodes are fused"
    dot = tmp_path / "plan.dot"
    tool("explain", "zoo:mobilenet_v2", "--format", "dot", "-o", dot)
    assert dot.read_text().startswith("digraph") and "->" in dot.read_text()


def test_info_and_zoo(tool):
    info = json.loads(tool("info", "--json"))
    assert info["isa"] in info["runnable_isas"] and info["physical_cores"] >= 1
    assert "mobilenet_v1" in tool("zoo") and "transformer" in tool("zoo")
    assert tool("--version").strip() == info["version"]


def test_info_tells_of_a_wrong_setting_behind_all_else(tool, monkeypatch):
    monkeypatch.setenv("FUSELITE_ISA", "avx9")
    result = subprocess.run([tool.path, "info"], capture_output=True, text=True, check=False)
    assert result.returncode == 2 and "physical" in result.stdout
    assert "environment variable FUSELITE_ISA: 'avx9' is unknown" in result.stderr


def test_info_names_variables_that_nothing_reads(tool, monkeypatch):
    monkeypatch.setenv("FUSELITE_NUM_THREADS", "1")
    monkeypatch.setenv("FUSELITE_NUM_THREAD", "2")
    monkeypatch.setenv("FUSELITE_Q", "3")
    lines = tool("info").splitlines()
    assert "setting   FUSELITE_NUM_THREADS=1" in lines
    assert "setting   FUSELITE_NUM_THREAD=2, which nothing reads; the nearest valid one is FUSELITE_NUM_THREADS" in lines
    assert "setting   FUSELITE_Q=3, which nothing reads" in lines
    settings = {setting["name"]: setting for setting in json.loads(tool("info", "--json"))["settings"]}
    assert settings["FUSELITE_NUM_THREADS"]["read"] and not settings["FUSELITE_Q"]["read"]
    monkeypatch.setenv("FUSELITE_Q", "\udcff")  # a byte that is no UTF-8
    assert {"name": "FUSELITE_Q", "value": "\ufffd", "read": False, "nearest": ""} in json.loads(tool("info", "--json"))[
        "settings"
    ]


def test_demo_prints_one_row_for_each_network(tool, tmp_path):
    text = tool("demo", "--seconds", 0, "--directory", tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["mobilenet_v1.tflite", "mobilenet_v2.tflite", "transformer.tflite"]
    rows = [line.split() for line in text.splitlines() if re.match("mobilenet|transformer", line)]
    assert len(rows) == 3
    for _, nodes, claimed, partitions, steps, difference, _, _, ratio in rows:
        assert nodes == claimed and partitions == "1" and int(steps) <= int(nodes)
        assert float(difference) < 1e-4 and float(ratio.rstrip("x")) > 1


def test_explains_what_cannot_run_here(tool, tmp_path):
    graph = graphs.Graph()
    y = graph.op("STABLEHLO_TANH", [graph.input((1, 4))], (1, 4))
    path = tmp_path / "missing.tflite"
    path.write_bytes(graph.build([graph.op("EXP", [y], (1, 4), "ExpOptions")]))
    assert "STABLEHLO_TANH" in tool("run", path, status=1)
    text = tool("explain", path)
    assert re.search(r"0 +STABLEHLO_TANH .*left to the host: the operator is not implemented", text)
    assert re.search(r"1 +EXP ", text)


def grey_jpeg():
    """8 x 8 pixels of 200: one block whose mean alone is coded."""

    def one_code(kind, symbol):
        return bytes([0xFF, 0xC4, 0, 20, kind, 1, *[0] * 15, symbol])

    quantization = b"\xff\xdb\x00\x43\x00" + bytes([1] * 64)
    frame, scan = bytes([0xFF, 0xC0, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0]), bytes([0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0])
    return b"\xff\xd8" + quantization + frame + one_code(0, 10) + one_code(0x10, 0) + scan + b"\x48\x0f\xff\xd9"


def test_images_are_inputs(tool, mobilenet, tmp_path):
    """In the range of the input's values, of its size: the same as the array that they stand for."""
    image, same = tmp_path / "grey.JPG", tmp_path / "same.npy"
    image.write_bytes(grey_jpeg())
    results = []
    for low, high, flags in ((-1, 1, []), (0, 1, ["--input_layer=image", "--input_layer_value_range=image,0,1"])):
        np.save(same, np.full((1, 224, 224, 3), low + 200 / 255 * (high - low), np.float32))
        for name, source in (("image", image), ("array", same)):
            tool("run", mobilenet, "-i", source, "-o", tmp_path / name, *flags)
            (output,) = os.listdir(tmp_path / name)
            results.append(np.load(tmp_path / name / output))
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[2], results[3])
    assert not np.array_equal(results[0], results[2])
    assert "within" in tool("diff", mobilenet, "-i", f"image={image}")
    named = f"--input_layer_value_files=image:{image}"
    assert "Inference timings" in tool("benchmark", "--graph", mobilenet, "--num_runs=1", "--min_secs=0", named)
    (tmp_path / "broken.png").write_bytes(b"no")
    assert "broken.png: is no JPEG, PNG or BMP image" in tool("run", mobilenet, "-i", tmp_path / "broken.png", status=1)


@pytest.mark.parametrize("model", ["zoo:transformer", "zoo:wake_word"])
def test_stress_is_borne(tool, model):
    """Every scenario that is not long by itself; `fuselite stress --cap all` runs all of them, longer, at every level.

    The second model has resource variables, which nothing resets.
    """
    quick = "reference,cycles,threads,destroy,cancel,resize,fork,noexec,stack,affinity,signals,rounding,files"
    told = json.loads(tool("stress", model, "--scenario", quick, "--rounds", 3, "--format", "json"))
    assert {row["scenario"] for row in told} == set(quick.split(","))
    assert [row for row in told if row["verdict"] != "SUCCESS"] == []


def test_stress_of_a_model_without_packed_weights(tool, tmp_path):
    graph = graphs.Graph()
    path = tmp_path / "exp.tflite"
    path.write_bytes(graph.build([graph.op("EXP", [graph.input((1, 4))], (1, 4), "ExpOptions")]))
    told = json.loads(tool("stress", path, "--scenario=cache,cachefolder", "--rounds", 3, "--format", "json"))
    assert [row["verdict"] for row in told] == ["SUCCESS"] * 2


def test_stress_as_a_page(tool, tmp_path):
    page = tmp_path / "page.html"
    tool("stress", "--scenario=rounding", "--format=html", "-o", page)
    assert 'class="SUCCESS"' in page.read_text()


def test_stress_tells_failures_hangs_and_wrong_names(tool):
    refused = subprocess.run([tool.path, "stress", "--scenario=cycles", "--limit=0"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "HANG" in refused.stdout and "1 of 1 scenarios did not succeed" in refused.stderr
    assert "there is no scenario 'cycle'" in tool("stress", "--scenario=cycle", status=2)
    assert "does not run 'avx3'" in tool("stress", "--cap=avx3", status=2)


def test_profile_and_its_trace(tool, mobilenet, tmp_path):
    trace = tmp_path / "trace.json"
    out = tool("profile", mobilenet, "--num_runs", 3, "--fuselite_num_threads=2", "--chrome-trace", trace)
    assert "CONV_2D" in out and "threads: 2" in out
    events = json.loads(trace.read_text())["traceEvents"]
    assert {"M", "X"} == {event["ph"] for event in events}


def test_profile_takes_shapes_and_signatures(tool, mobilenet):
    once = ["--num_runs", 1, "--format", "json"]
    whole, part = (json.loads(tool("profile", mobilenet, *once, *more)) for more in ([], ["--shape", "image:1,32,32,3"]))
    assert len(part["rows"]) > 0
    assert sum(row["avg_us"] for row in part["rows"]) < sum(row["avg_us"] for row in whole["rows"])
    first, other = (
        {row["name"] for row in json.loads(tool("profile", "zoo:decoder_small", *once, "--signature", key))["rows"]}
        for key in ("decode", "prefill_64")
    )
    assert first and other and first != other


def test_diff_as_json(tool, mobilenet):
    told = json.loads(tool("diff", mobilenet, "--format", "json"))
    assert [output["within"] for output in told["outputs"]] == [True]


def test_analyze_has_the_analyzers_look_and_who_runs_each(tool, mobilenet):
    out = tool("analyze", mobilenet, "--ops_deny", "SOFTMAX")
    assert re.search(r"^Subgraph#0 main\(T#\d+\) -> \[T#\d+\]$", out, re.M)
    assert re.search(r"^  Op#0 CONV_2D\(T#\d+, T#\d+, T#\d+\) -> \[T#\d+\] +fuselite$", out, re.M)
    assert re.search(r"^  Op#64 SOFTMAX\(.*\) -> \[T#\d+\] +host: .*ops_deny", out, re.M)
    assert re.search(r"^  T#\d+\(.*\) shape:\[1, 1000\], type:FLOAT32$", out, re.M)
    assert "Total data buffer size" in out


def test_names_of_a_file_stay_in_their_lines(tool, tmp_path):
    """Whatever a file calls its tensors and operators, it makes no lines of its own and sends nothing to the terminal."""
    bad, shown = "a\nnode\x1b[2J\x7f\u009b", "a?node?[2J??"
    graph = graphs.Graph()
    x = graph.input((1, 4))
    y = graph.op("EXP", [x], (1, 4), "ExpOptions")
    graph.tensors[y.index].name = bad
    path, custom = tmp_path / "bad.tflite", tmp_path / "custom.tflite"
    path.write_bytes(graph.build([y]))
    for command in ("run", "diff", "analyze"):
        out = tool(command, path)
        assert shown in out and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", out), out
        assert "\nnode" not in out
    z = graph.op(f"custom {bad}", [y], (1, 4))
    custom.write_bytes(graph.build([z]))
    for command in ("explain", "analyze"):
        out = tool(command, custom)
        assert shown in out and "\nnode?" not in out and "\x1b" not in out
    assert json.loads(tool("explain", custom, "--format", "json"))["graphs"][0]["nodes"][1]["op"].endswith(bad)


def test_explain_draws_the_graph(tool, mobilenet, tmp_path):
    page = tmp_path / "graph.html"
    tool("explain", mobilenet, "--ops_deny", "SOFTMAX", "--html", page, "--profile_runs", 2)
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>") and "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    data = json.loads(re.search(r"const graph = (.*);\n", text).group(1))
    boxes = data["boxes"]
    assert {box["kind"] for box in boxes} >= {"step", "host", "end"}
    (left,) = (box for box in boxes if box["kind"] == "host")
    assert left["label"] == "SOFTMAX" and "ops_deny" in left["detail"]
    steps = [box for box in boxes if box["kind"] == "step"]
    assert sorted(node for box in boxes for node in box.get("nodes", [])) == list(range(65))
    assert all(box["us"] > 0 for box in steps)
    reached, edges = {i for i, box in enumerate(boxes) if box["label"] == "input"}, data["edges"]
    for _ in boxes:
        reached |= {b for a, b in edges if a in reached}
    assert len(reached) == len(boxes)  # the graph is connected from its input on


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(tool, shell, tmp_path):
    script = tmp_path / "completion"
    script.write_text(tool("completion", shell))
    assert "num_threads" in script.read_text() and "benchmark" in script.read_text()
    if shell != "bash":
        return
    check = (
        f"source {script}; COMP_WORDS=(fuselite ben); COMP_CWORD=1; _fuselite; echo ${{COMPREPLY[@]}}; "
        "COMP_WORDS=(fuselite explain --ht); COMP_CWORD=2; _fuselite; echo ${COMPREPLY[@]}"
    )
    out = subprocess.run(["bash", "-c", check], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert out == "benchmark\n--html\n"


def test_manual_page(tool, tmp_path):
    page = tmp_path / "fuselite.1"
    page.write_text(tool("man"))
    assert page.read_text().startswith(".TH FUSELITE 1")
    if shutil.which("man") is None:
        pytest.skip("man is not installed")
    shown = subprocess.run(
        ["man", "--warnings", "-l", str(page)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "100"},
    )
    assert shown.stderr == "" and "--num_threads" in shown.stdout and "benchmark" in shown.stdout
