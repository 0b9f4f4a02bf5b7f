"""The Python package, from the checkout and its build; test_wheel.py has what only an installed wheel can show."""

import copy
import json
import multiprocessing
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import tempfile
import threading

import graphs
import numpy as np
import pytest
import running

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / "python"
sys.path.insert(0, str(PYTHON))

import fuselite  # noqa: E402
from ai_edge_litert import interpreter as litert  # noqa: E402
from fuselite import _default, _library, _tool  # noqa: E402

HOSTS = ["ai_edge_litert", "fuselite"]


@pytest.fixture(scope="module")
def mobilenet(tmp_path_factory):
    path = tmp_path_factory.mktemp("zoo") / "mobilenet_v2.tflite"
    subprocess.run([_library.tool_path(), "zoo", "mobilenet_v2", "-o", path], check=True, stdout=subprocess.PIPE)
    return path


@pytest.fixture
def enabled():
    yield fuselite.enable
    fuselite.disable()


def run_once(interpreter, value=0.5):
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], np.full(detail["shape"], value, detail["dtype"]))
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def partitions(interpreter):
    return sum(op["op_name"] == "DELEGATE" for op in interpreter._get_ops_details())


def python(code, *arguments, **environment):
    """The output of a Python program that finds the package in the checkout."""
    result = subprocess.run(
        [sys.executable, *arguments, "-c", code],
        env={**os.environ, "PYTHONPATH": str(PYTHON), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_readme_lines_work(mobilenet):
    interpreter = fuselite.Interpreter(mobilenet, num_threads=2)
    assert interpreter.host == "ai_edge_litert"
    assert run_once(interpreter).shape == (1, 1000)
    assert partitions(interpreter) == 1


@pytest.mark.parametrize("host", HOSTS)
def test_num_threads_are_used_and_told(mobilenet, host):
    for threads in (1, 2):
        interpreter = fuselite.Interpreter(mobilenet, num_threads=threads, host=host)
        run_once(interpreter)
        assert interpreter.explain().threads == threads
        assert f"threads: {threads}" in str(interpreter.explain())


@pytest.mark.parametrize("host", HOSTS)
def test_wrong_options_name_the_nearest_valid_one(mobilenet, host):
    with pytest.raises(ValueError, match="num_thread is unknown; the nearest valid one is num_threads"):
        fuselite.Interpreter(mobilenet, num_thread=2, host=host)
    with pytest.raises(ValueError, match="nearest valid value is fast"):
        fuselite.load_delegate(precision="fats")
    with pytest.raises(
        ValueError, match="there is no host 'litert'; write ai_edge_litert, tflite_runtime, tensorflow or fuselite$"
    ):
        fuselite.Interpreter(mobilenet, host="litert")
    # Flags of the command line are no options.
    for command in (fuselite.explain, fuselite.profile, fuselite.diff, fuselite.benchmark):
        with pytest.raises(ValueError, match="option jti is unknown; the nearest valid one is jit$"):
            command(mobilenet, jti=False)
        for flag in ({"html": "graph.html"}, {"help": 1}):
            with pytest.raises(ValueError, match=f"option {next(iter(flag))} is unknown; the options are num_threads, isa"):
                command(mobilenet, **flag)


def test_load_delegate_is_what_the_host_loads_by_its_path(mobilenet):
    ours = litert.Interpreter(str(mobilenet), experimental_delegates=[fuselite.load_delegate(jit=False, num_threads=1)])
    theirs = litert.load_delegate(fuselite.library_path(), {"jit": "off", "num_threads": "1"})
    hosted = litert.Interpreter(str(mobilenet), experimental_delegates=[theirs])
    assert np.array_equal(run_once(ours), run_once(hosted))


def test_paths_are_options_in_every_form(mobilenet, tmp_path):
    for i, form in enumerate((str, pathlib.Path, os.fsencode)):
        cache, told = tmp_path / f"cache{i}é", tmp_path / f"told{i}.json"
        run_once(fuselite.Interpreter(mobilenet, host="fuselite", cache_dir=form(cache), explain_file=form(told)))
        assert list(cache.iterdir()) and json.loads(told.read_text())["graphs"]
        assert fuselite.explain(mobilenet, explain_file=form(told)).claimed == 65


def test_delegates_and_interpreters_are_not_duplicated(mobilenet):
    delegate = fuselite.load_delegate()
    assert copy.copy(delegate) is delegate and copy.deepcopy({"delegate": delegate})["delegate"] is delegate
    interpreters = [fuselite.Interpreter(mobilenet, host=host) for host in HOSTS]
    own = interpreters[1]._interpreter
    for thing in (delegate, *interpreters, own, own.get_signature_runner()):
        with pytest.raises(TypeError, match="^fuselite: cannot pickle or duplicate .* make another one, in the other process$"):
            pickle.dumps(thing)
    for thing in (*interpreters, own):
        with pytest.raises(TypeError, match="^fuselite: cannot pickle or duplicate"):
            copy.copy(thing)


def test_every_option_of_the_library_has_its_type():
    """Options in _delegate.py has a member for each row of docs/options.md, so that editors know them."""
    rows = (ROOT / "docs" / "options.md").read_text().split("\n| option |")[1].split("\n\n")[0]
    names = {line.split("`")[1] for line in rows.splitlines() if line.startswith("| `")}
    typed = set((PYTHON / "fuselite" / "_delegate.py").read_text().split("class Options")[1].split("class Delegate")[0]
                .split('"""')[2].replace(":", "").split())  # fmt: skip
    assert names <= typed, f"add to Options in python/fuselite/_delegate.py: {names - typed}"


# --- the same class on our own interpreter ---


def test_calls_go_straight_to_the_host(mobilenet):
    """A run costs what it costs with load_delegate(): nothing of ours lies between the program and the host."""
    interpreter = fuselite.Interpreter(mobilenet)
    for name in ("invoke", "set_tensor", "get_tensor"):
        assert getattr(interpreter, name).__func__ is getattr(litert.Interpreter, name)


def test_both_hosts_tell_the_same(mobilenet):
    hosted, own = (fuselite.Interpreter(mobilenet, host=host) for host in HOSTS)
    for which in ("get_input_details", "get_output_details"):
        for theirs, ours in zip(getattr(hosted, which)(), getattr(own, which)(), strict=True):
            for key in ("name", "index", "dtype", "quantization"):
                assert ours[key] == theirs[key], key
            for key in ("shape", "shape_signature"):
                assert ours[key].tolist() == theirs[key].tolist()
                assert ours[key].dtype == theirs[key].dtype
    assert hosted.get_signature_list() == own.get_signature_list()


def test_both_hosts_give_the_same_bits(small_networks):
    for path in small_networks(2_000_000):
        hosted, own = (fuselite.Interpreter(path, host=host) for host in HOSTS)
        hosted.allocate_tensors()
        inputs = running.random_inputs(hosted, seed=7)
        results = []
        for interpreter in (hosted, own):
            interpreter.allocate_tensors()
            for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
                interpreter.set_tensor(detail["index"], value)
            interpreter.invoke()
            results.append([interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()])
        whole = hosted.explain().claimed == len(hosted.explain().nodes)
        for theirs, ours in zip(*results, strict=True):
            assert theirs.shape == ours.shape and theirs.dtype == ours.dtype, path.name
            if whole:
                assert np.array_equal(theirs, ours), path.name


def test_quantization_is_told_as_the_host_tells_it(small_networks):
    path = next(path for path in small_networks(5_000_000) if "int8" in path.name)
    hosted, own = (fuselite.Interpreter(path, host=host) for host in HOSTS)
    for theirs, ours in zip(hosted._interpreter.get_tensor_details(), own.get_tensor_details()):
        assert ours["name"] == theirs["name"] and ours["quantization"] == theirs["quantization"]
        for key in ("scales", "zero_points"):
            assert np.array_equal(ours["quantization_parameters"][key], theirs["quantization_parameters"][key])


@pytest.mark.parametrize("host", HOSTS)
def test_signatures_run_with_other_shapes(host, mobilenet):
    interpreter = fuselite.Interpreter(mobilenet, host=host)
    runner = interpreter.get_signature_runner("serving_default")
    assert list(runner.get_input_details()) == ["image"] and list(runner.get_output_details()) == ["output"]
    images = np.random.default_rng(3).uniform(-1, 1, (3, 224, 224, 3)).astype(np.float32)
    whole = runner(image=images)["output"]
    assert whole.shape == (3, 1000)
    for image, row in zip(images, whole):
        assert np.allclose(runner(image=image[None])["output"], row, atol=1e-6)
    with pytest.raises(ValueError):
        runner(nonsense=images)
    with pytest.raises(ValueError):
        interpreter.get_signature_runner("nonsense")


def test_a_model_without_signatures_says_so():
    graph = graphs.Graph()
    model = graph.build([graph.op("EXP", [graph.input((1, 4))], (1, 4), "ExpOptions")])
    interpreter = fuselite.Interpreter(model_content=model, host="fuselite")
    with pytest.raises(ValueError, match=r"^fuselite: the model has no signatures; use allocate_tensors\(\) and invoke\(\)$"):
        interpreter.get_signature_runner()


@pytest.mark.parametrize("host", HOSTS)
def test_inputs_are_resized(host, mobilenet):
    interpreter = fuselite.Interpreter(mobilenet, host=host)
    index = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(index, [2, 224, 224, 3])
    assert run_once(interpreter).shape == (2, 1000)
    with pytest.raises((ValueError, RuntimeError)):
        interpreter.resize_tensor_input(index, [3, 224, 224, 3], strict=True)


@pytest.mark.parametrize("host", HOSTS)
def test_wrong_values_are_refused(host, mobilenet):
    interpreter = fuselite.Interpreter(mobilenet, host=host)
    with pytest.raises(RuntimeError):
        interpreter.invoke()
    interpreter.allocate_tensors()
    index = interpreter.get_input_details()[0]["index"]
    with pytest.raises(ValueError):
        interpreter.set_tensor(index, np.zeros((1, 224, 224, 3), np.int32))
    with pytest.raises(ValueError):
        interpreter.set_tensor(index, np.zeros((1, 200, 224, 3), np.float32))
    with pytest.raises(ValueError):
        fuselite.Interpreter("/nowhere.tflite", host=host)
    with pytest.raises(ValueError):
        fuselite.Interpreter(model_content=b"no model", host=host)
    with pytest.raises(TypeError):
        fuselite.Interpreter(model_content="no model", host=host)
    # What a model cannot be prepared for is a RuntimeError in every host.
    for shape in ([1, 2], [1, 224, 224, 4]):
        interpreter.resize_tensor_input(index, shape)
        with pytest.raises(RuntimeError, match="CONV_2D"):
            interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match="max_memory allows 64 B"):
        fuselite.Interpreter(mobilenet, host=host, max_memory=64).allocate_tensors()


def test_wrong_calls_of_the_own_interpreter_are_said_in_one_line(mobilenet):
    code = (
        "import fuselite, sys\n"
        "try: fuselite.Interpreter(sys.argv[1], host='fuselite', experimental_nonsense=1)\n"
        "except TypeError as error: print(error)\n"
        "try: fuselite.Interpreter(model_content='text', host='fuselite')\n"
        "except TypeError as error: print(error)\n"
        "interpreter = fuselite.Interpreter(sys.argv[1], host='fuselite')\n"
        "try: interpreter.resize_tensor_input(interpreter.get_input_details()[0]['index'], [2**31, 1, 1, 3])\n"
        "except ValueError as error: print(error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(PYTHON)}
    command = [sys.executable, "-c", code, mobilenet]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert told.stderr == "", "no exception is left to the collector"
    unexpected, content, huge = told.stdout.splitlines()
    assert "experimental_nonsense" in unexpected
    assert content == "fuselite: model_content is the bytes of a .tflite file, not a str"
    assert huge == "fuselite: [2147483648, 1, 1, 3] has a dimension of more than 2147483647"


def test_indices_that_no_tensor_has_are_refused(mobilenet):
    interpreter = fuselite.Interpreter(mobilenet, host="fuselite")
    run_once(interpreter)
    count, index = len(interpreter.get_tensor_details()), np.int64(interpreter.get_output_details()[0]["index"])
    assert interpreter.get_tensor(index).shape == interpreter.tensor(index)().shape == (1, 1000)
    calls = [interpreter.get_tensor, interpreter.tensor, lambda i: interpreter.set_tensor(i, np.zeros(1, np.float32))]
    for call in calls:
        for beyond in (-1, count, 2**31, 2**32, 2**40):
            with pytest.raises(ValueError, match=f"^fuselite: there is no tensor {beyond}, the model has {count}$"):
                call(beyond)
        for wrong in ("a", 0.0, None):
            with pytest.raises(TypeError, match=f"^fuselite: a tensor's index is a whole number, not {wrong!r}$"):
                call(wrong)
    for wrong in (2**32, 2**40, "a"):
        with pytest.raises(ValueError, match=f"^fuselite: tensor {wrong} is no input$"):
            interpreter.resize_tensor_input(wrong, [1, 224, 224, 3])
    for call in (interpreter.get_tensor_details, lambda subgraph: interpreter.get_tensor(0, subgraph)):
        with pytest.raises(ValueError, match="^fuselite: only subgraph 0, the one that runs, can be looked at, not 1$"):
            call(1)


@pytest.mark.parametrize("host", HOSTS)
def test_views_look_into_memory_and_are_watched(host, mobilenet):
    interpreter = fuselite.Interpreter(mobilenet, host=host)
    expected = run_once(interpreter)
    output = interpreter.tensor(interpreter.get_output_details()[0]["index"])
    view = output()
    assert np.array_equal(view, expected)
    with pytest.raises(RuntimeError):
        interpreter.invoke()
    del view
    interpreter.invoke()


# --- the default of other packages ---


def test_enable_and_disable(mobilenet, enabled):
    before = litert.Interpreter.__init__
    from_before = litert.Interpreter
    enabled(num_threads=2)
    assert fuselite.is_enabled()
    interpreter = from_before(str(mobilenet))  # a name that the program took earlier
    run_once(interpreter)
    assert partitions(interpreter) == 1
    assert partitions(litert.Interpreter(str(mobilenet), None)) == 1
    with_bytes = litert.InterpreterWithCustomOps([], model_content=mobilenet.read_bytes())
    assert partitions(with_bytes) == 1
    fuselite.disable()
    assert litert.Interpreter.__init__ is before
    assert not any(isinstance(finder, _default._Finder) for finder in sys.meta_path)
    assert not fuselite.is_enabled()


def test_enable_leaves_plain_kernels_and_wrong_calls_to_the_host(mobilenet, enabled):
    enabled()
    resolver = litert.OpResolverType
    for kind in (resolver.BUILTIN_REF, resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
        assert partitions(litert.Interpreter(str(mobilenet), experimental_op_resolver_type=kind)) == 0
    with pytest.raises(TypeError):
        litert.Interpreter(nonsense=1)
    with pytest.raises(ValueError, match="nearest valid one is num_threads"):
        fuselite.enable(num_thread=1)
    assert partitions(fuselite.Interpreter(mobilenet)) == 1  # not twice


def test_enable_before_the_host_is_imported(mobilenet):
    code = (
        "import fuselite, sys; fuselite.enable()\n"
        "assert 'ai_edge_litert' not in sys.modules\n"
        "from ai_edge_litert.interpreter import Interpreter\n"
        f"i = Interpreter({str(mobilenet)!r})\n"
        "print(sum(op['op_name'] == 'DELEGATE' for op in i._get_ops_details()))"
    )
    assert python(code) == "1\n"


def test_a_program_runs_unchanged(mobilenet, tmp_path):
    app = tmp_path / "app.py"
    app.write_text(
        "import sys, helper\nfrom ai_edge_litert.interpreter import Interpreter\n"
        "i = Interpreter(sys.argv[1])\n"
        "print(__name__, sys.argv[1:], sum(op['op_name'] == 'DELEGATE' for op in i._get_ops_details()))"
    )
    (tmp_path / "helper.py").write_text("")  # beside it, as the program expects
    command = [sys.executable, "-m", "fuselite", "run", "--num_threads=2", app, mobilenet, "--flag"]
    environment = {**os.environ, "PYTHONPATH": str(PYTHON)}
    out = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert out == f"__main__ ['{mobilenet}', '--flag'] 1\n"
    apart = [*command[:4], "--num_threads", "2", "--jit", "off", *command[5:]]
    assert subprocess.run(apart, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout == out
    script = tmp_path / "app"  # as pip installs commands
    script.write_text(f"#!{sys.executable}\n{app.read_text()}")
    command[5] = script
    assert subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout == out
    for wrong, message in (
        ("--num_thread=2", "no delegate: option num_thread is unknown; the nearest valid one is num_threads"),
        ("--verbos", "no delegate: option verbos is unknown; the nearest valid one is verbose"),
        ("--verbose", "--verbose has no value; write --verbose=VALUE before the program"),
        ("-v", "'-v' is no option: --num_threads=2"),
    ):
        command[4] = wrong
        failed = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
        assert (failed.returncode, failed.stderr) == (1, f"fuselite: {message}\n")


def test_the_module_is_the_command_line_too(mobilenet):
    command = [sys.executable, "-m", "fuselite"]
    environment = {**os.environ, "PYTHONPATH": str(PYTHON)}
    for arguments in (["info"], ["run", mobilenet, "--seed", "1"], ["run", "--num_threads", "2", mobilenet], ["--version"]):
        out = subprocess.run([*command, *arguments], env=environment, stdout=subprocess.PIPE, text=True, check=True)
        assert out.stdout


def test_nothing_is_left_behind(mobilenet):
    code = f"""
import threading, time, fuselite, sys
import numpy as np
def threads(): return int(next(l for l in open('/proc/self/status') if l.startswith('Threads:')).split()[1])
finders, before = list(sys.meta_path), threads()
fuselite.enable(num_threads=4)
i = fuselite.Interpreter({str(mobilenet)!r}, host='fuselite', num_threads=4)
i.allocate_tensors(); i.invoke()
during = threads()
del i
fuselite.disable()
end = time.monotonic() + 5
while threads() != before and time.monotonic() < end: time.sleep(0.01)
assert finders == sys.meta_path
print(before, during, threads())
"""
    before, during, after = map(int, python(code).split())
    assert during > before == after


# --- threads and processes ---


@pytest.mark.parametrize("host", HOSTS)
def test_eight_interpreters_in_eight_threads(mobilenet, host):
    expected = [run_once(fuselite.Interpreter(mobilenet, host=host), value / 8) for value in range(8)]
    results = [None] * 8

    def work(i):
        interpreter = fuselite.Interpreter(mobilenet, num_threads=2, host=host)
        for _ in range(5):
            results[i] = run_once(interpreter, i / 8)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result, wanted in zip(results, expected):
        assert np.array_equal(result, wanted)


def _in_child(path, host, queue):
    queue.put(run_once(fuselite.Interpreter(path, num_threads=2, host=host)))


@pytest.mark.filterwarnings("ignore:This process")
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("host", HOSTS)
def test_processes_after_a_first_invoke(mobilenet, method, host):
    expected = run_once(fuselite.Interpreter(mobilenet, num_threads=2, host=host))
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(str(mobilenet), host, queue))
    child.start()
    assert np.array_equal(queue.get(timeout=60), expected)
    child.join(10)
    assert child.exitcode == 0


def test_an_interpreter_goes_on_in_a_forked_child(mobilenet):
    interpreter = fuselite.Interpreter(mobilenet, num_threads=2, host="fuselite")
    expected = run_once(interpreter)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(run_once(interpreter), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


# --- reports ---


def test_explain(mobilenet):
    explanation = fuselite.explain(mobilenet, isa="scalar")
    assert explanation.isa == "scalar" and explanation.claimed == len(explanation.nodes) == 65
    assert {node for step in explanation.steps for node in step.nodes} <= {node.node for node in explanation.nodes}
    assert fuselite.explain(mobilenet.read_bytes()).claimed == 65
    denied = fuselite.explain(mobilenet, ops_deny=["SOFTMAX"])
    (left,) = (node for node in denied.nodes if not node.claimed)
    assert left.op == "SOFTMAX" and left.reason in str(denied)
    table = denied._repr_html_()
    assert table.startswith("<table>") and table.count("<tr>") == 66 and "SOFTMAX" in table
    (refused,) = fuselite.explain(mobilenet, max_memory=64).partitions
    assert not refused.compiled and "max_memory allows 64 B" in refused.error and explanation.partitions[0].error == ""


def test_profile(mobilenet, tmp_path):
    profile = fuselite.profile(mobilenet, runs=3, num_threads=2)
    assert profile.threads == 2 and len(profile) > 10
    assert abs(sum(row.share for row in profile) - 1) < 1e-6
    assert all(row.runs == 3 and row.min_us <= row.avg_us <= row.max_us for row in profile)
    assert "CONV_2D" in str(profile) and profile._repr_html_().startswith("<table>")
    profile.to_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert {"interpreter", "thread 0"} <= names
    steps = [event for event in events if event["ph"] == "X" and event["tid"] > 0]
    assert len(steps) >= 3 * len(profile) and all(event["ts"] >= 0 and event["dur"] >= 0 for event in steps)


def test_diff(mobilenet, tmp_path):
    difference = fuselite.diff(mobilenet)
    assert difference and difference.max < 1e-5
    image = np.full((1, 224, 224, 3), 0.25, np.float32)
    assert fuselite.diff(mobilenet, image) and fuselite.diff(mobilenet, {"image": image}, layers=True)
    picture = tmp_path / "grey.bmp"
    picture.write_bytes(b"BM" + struct.pack("<iiiiiiHHiiiiii", 58, 0, 54, 40, 1, 1, 1, 24, 0, 4, 0, 0, 0, 0) + b"\x80" * 4)
    assert fuselite.diff(mobilenet, picture) and fuselite.diff(mobilenet, {"image": str(picture)})
    beyond = fuselite.diff(mobilenet, tolerance=0.0)
    assert beyond.max == 0 or (not beyond and "beyond" in str(beyond))
    with pytest.raises(RuntimeError, match=r"^fuselite: /nowhere\.tflite: no such file$"):
        fuselite.diff("/nowhere.tflite")


@pytest.fixture(scope="module")
def two_inputs():
    """A model of a float32 input t0 of two dimensions, and an int32 one of none, t1, which a signature calls "count"."""
    graph = graphs.Graph()
    x, n = graph.input((2, 3)), graph.input((), np.int32)
    y = graph.op("NEG", [x], (2, 3), "NegOptions")
    m = graph.op("ADD", [n, graph.constant(np.int32(1))], (), "AddOptions", dtype=np.int32)
    return graphs.with_signature(graph.build([y, m]), "main", {"count": n}, {})


ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("x", [
    np.asfortranarray(ROWS), ROWS.astype(">f4"), np.repeat(ROWS, 2, axis=1)[:, ::2], ROWS.tolist(), list(ROWS),
    ROWS.astype(int).tolist(),
])  # fmt: skip
@pytest.mark.parametrize("n", [np.int32(7), np.array(7, ">i4"), 7])
def test_inputs_in_every_form(two_inputs, x, n):
    for inputs in ([x, n], {"t0": x, "t1": n}, {"t0": x, "count": n}):
        with _tool.model_file(two_inputs) as path, _tool.input_files(path, inputs) as arguments:
            arrays = [np.load(argument.split("=")[-1]) for argument in arguments[1::2]]
        for array, wanted in zip(arrays, (ROWS, np.array(7, np.int32)), strict=True):
            assert array.dtype.str == wanted.dtype.str and array.shape == wanted.shape and np.array_equal(array, wanted)
        assert fuselite.diff(two_inputs, inputs)
    assert len(fuselite.profile(two_inputs, [x, n], runs=1)) > 0
    assert fuselite.benchmark(two_inputs, [x, n], runs=1, min_seconds=0, warmup_seconds=0).runs > 0


@pytest.mark.parametrize("inputs, told", [
    ([ROWS.astype(float)], "array 0, which is float64 [2,3], does not fit input 't0', which is float32 [2,3]"),
    ({"t1": 0.5}, "array 't1', which is float64 [], does not fit input 't1', which is int32 []"),
    ([ROWS, 2**40], "array 1, which is int64 [], does not fit input 't1', which is int32 []"),
    ({"t0": [1, 2]}, "array 't0', which is [2], does not fit input 't0', which is float32 [2,3]"),
    ([ROWS, 1, 2], "array 2: one input too many; the model has t0, t1"),
    ({"t0": "text", "nonsense": 1}, "text: no such file"),
    ({"nonsense": 1}, "the model has no input 'nonsense'; it has t0, t1"),
    ([None], "array 0: its type '|O' is none of a tensor's"),
])  # fmt: skip
def test_wrong_inputs_are_told_by_their_names(two_inputs, inputs, told):
    for command in (fuselite.diff, fuselite.profile, fuselite.benchmark):
        with pytest.raises(RuntimeError) as raised:
            command(two_inputs, inputs)
        assert str(raised.value) == f"fuselite: the model: {told}"
    with pytest.raises(ValueError, match="^fuselite: array 0: setting an array element"):
        fuselite.diff(two_inputs, [[[1, 2], [3]]])


def test_the_folder_of_temporary_files_may_have_any_name(two_inputs, tmp_path, monkeypatch):
    folder = tmp_path / "t0=b, c:d"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert fuselite.diff(two_inputs, [ROWS, 7]) and fuselite.diff(two_inputs, {"t1": 7, "t0": ROWS})
    assert not list(folder.iterdir())


def test_benchmark(mobilenet):
    result = fuselite.benchmark(mobilenet, runs=3, min_seconds=0.05, warmup_seconds=0, num_threads=1)
    assert result.runs >= 3 and 0 < result.min_us <= result.median_us <= result.max_us
    assert "us on average" in str(result)


def test_import_is_quick_and_imports_nothing_it_need_not():
    code = (
        "import numpy, time, sys; start = time.process_time(); import fuselite; fuselite.Interpreter, fuselite.load_delegate\n"
        "elapsed = time.process_time() - start\n"
        "assert not {'ai_edge_litert', 'tensorflow', 'tflite_runtime'} & set(sys.modules)\n"
        "print(elapsed)"
    )
    assert min(float(python(code)) for _ in range(3)) < 0.1
