"""The accelerator for LiteRT 2's CompiledModel, in the real one."""

import ctypes
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import running

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import fuselite  # noqa: E402
from fuselite import _library, _litert  # noqa: E402

compiled_model = pytest.importorskip("ai_edge_litert.compiled_model")
from ai_edge_litert.cpu_options import CpuOptions  # noqa: E402
from ai_edge_litert.options import Options  # noqa: E402


@pytest.fixture(scope="module")
def mobilenet(tmp_path_factory):
    path = tmp_path_factory.mktemp("zoo") / "mobilenet_v2.tflite"
    subprocess.run([_library.tool_path(), "zoo", "mobilenet_v2", "-o", path], check=True, stdout=subprocess.PIPE)
    return path


def open_model(path, **options):
    more = {"options": Options(cpu_options=CpuOptions(**options))} if options else {}
    return compiled_model.CompiledModel.from_file(str(path), environment=fuselite.environment(), **more)


def run(model, inputs):
    signature = model.get_signature_by_index(0)
    given, made = model.create_input_buffers(0), model.create_output_buffers(0)
    for buffer, value in zip(given, inputs, strict=True):
        buffer.write(np.ascontiguousarray(value))
    model.run_by_index(0, given, made)
    key = next(iter(model.get_signature_list()))
    details = model.get_output_tensor_details(key)
    results = []
    for name, buffer in zip(signature["outputs"], made, strict=True):
        shape, dtype = details[name]["shape"], np.dtype(details[name]["dtype"])
        results.append(buffer.read(int(np.prod(shape)), dtype).reshape(shape))
    return results


def explanation(monkeypatch, tmp_path, path, **options):
    """What became of the nodes, as the delegate tells it."""
    file = tmp_path / "explain.json"
    monkeypatch.setenv("FUSELITE_EXPLAIN_FILE", str(file))
    model = open_model(path, **options)
    return model, running.explanation(file)


def by_delegate(path, inputs, **options):
    interpreter = fuselite.Interpreter(path, **options)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def inputs_of(path):
    interpreter = fuselite.Interpreter(path)
    interpreter.allocate_tensors()
    return running.random_inputs(interpreter, seed=11)


@pytest.mark.parametrize("threads", [1, 2])
def test_it_takes_the_whole_model_with_the_threads_of_the_options(mobilenet, monkeypatch, tmp_path, threads):
    model, told = explanation(monkeypatch, tmp_path, mobilenet, num_threads=threads)
    assert all(node["claimed"] for node in told["nodes"])
    inputs = inputs_of(mobilenet)
    (result,) = run(model, inputs)
    assert {p["threads"] for p in running.explanation(tmp_path / "explain.json")["partitions"]} == {threads}
    assert np.array_equal(result, by_delegate(mobilenet, inputs, num_threads=threads)[0])


def test_models_of_which_a_part_is_ours(mobilenet, monkeypatch, tmp_path):
    """Nodes of ours, of XNNPACK and of LiteRT's kernels share tensors."""
    inputs = inputs_of(mobilenet)
    expected = by_delegate(mobilenet, inputs)[0]
    for deny in ("DEPTHWISE_CONV_2D", "ADD", "CONV_2D", "SOFTMAX"):
        monkeypatch.setenv("FUSELITE_OPS_DENY", deny)
        model, told = explanation(monkeypatch, tmp_path, mobilenet)
        left = {node["op"] for node in told["nodes"] if not node["claimed"]}
        assert deny in left and any(node["claimed"] for node in told["nodes"])
        for _ in range(3):
            (result,) = run(model, inputs)
            assert np.allclose(result, expected, atol=1e-6), deny


def test_small_models_have_the_delegates_bits(small_networks):
    compared = 0
    for path in small_networks(1_500_000):
        inputs = inputs_of(path)
        told = fuselite.explain(path)
        # What CompiledModel's buffers cannot be read as from Python is left out.
        outputs = {np.dtype(d["dtype"]).name for d in fuselite.Interpreter(path).get_output_details()}
        if told.claimed < len(told.nodes) or not outputs <= {"float32", "int32", "int8", "uint8"}:
            continue
        try:
            compiled_model.CompiledModel.from_file(str(path))
        except RuntimeError:
            continue  # LiteRT itself does not load it
        compared += 1
        for actual, expected in zip(run(open_model(path), inputs), by_delegate(path, inputs), strict=True):
            assert np.array_equal(actual, expected), path.name
    assert compared >= 5


def test_kernel_modes_other_than_the_delegates_are_left_to_litert(mobilenet, monkeypatch, tmp_path):
    from ai_edge_litert.cpu_kernel_mode import CpuKernelMode

    file = tmp_path / "explain.json"
    monkeypatch.setenv("FUSELITE_EXPLAIN_FILE", str(file))
    open_model(mobilenet, kernel_mode=CpuKernelMode.BUILTIN)
    assert not file.exists()


class Header(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint16) for name in ("struct_size", "major", "minor", "reserved")]


class Runtime(ctypes.Structure):
    _fields_ = [("header", Header), ("functions", ctypes.c_void_p * 18)]


@pytest.mark.parametrize("header, reason", [((408, 2, 0, 0), "version 2.0"), ((80, 1, 0, 0), "80 bytes")])
def test_unknown_hosts_are_refused_with_a_reason(capfd, header, reason):
    library = ctypes.CDLL(str(pathlib.Path(_litert.accelerator_directory()) / "libLiteRtGpuAccelerator.so"))
    definition = (ctypes.c_void_p * 25).in_dll(library, "LiteRtAcceleratorImpl")
    create = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 5)(definition[5])
    runtime, wrapper = Runtime(Header(*header)), ctypes.c_void_p()
    assert create(ctypes.byref(runtime), None, None, None, ctypes.byref(wrapper)) == 8  # wrong version
    assert reason in capfd.readouterr().err and not wrapper


def test_wrong_options_of_the_environment_are_told(mobilenet, monkeypatch, capfd):
    monkeypatch.setenv("FUSELITE_ISA", "avx1024")
    with pytest.raises((RuntimeError, ValueError)):
        open_model(mobilenet)
    assert "avx1024" in capfd.readouterr().err


def test_litert_benchmark_takes_the_directory(mobilenet, tmp_path):
    """LiteRT's own tool, with what docs/python.md says."""
    tool, file = pathlib.Path(sys.executable).parent / "litert-benchmark", tmp_path / "explain.json"
    if not tool.is_file():
        pytest.skip("this ai-edge-litert has no litert-benchmark")
    command = [tool, "--model", mobilenet, "--runtime_path", _litert.accelerator_directory(), "--num_threads", "2", "--num_runs", "3",
               "--require_full_delegation"]  # fmt: skip
    result = subprocess.run(command, env={**os.environ, "FUSELITE_EXPLAIN_FILE": str(file)}, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, check=False, timeout=120)  # fmt: skip
    assert result.returncode == 0, result.stdout
    told = running.explanation(file)
    assert all(node["claimed"] for node in told["nodes"]) and {p["threads"] for p in told["partitions"]} == {2}
