"""The installed package, as a C or C++ project takes it: the examples are built against it, not against the tree."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import graphs
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
HEADERS = {"common.h", "custom_operators.h", "delegate.h", "fuselite.hpp", "interpreter.h"}


def output(*command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    assert result.returncode == 0, result.stdout
    return result.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Where the package is installed, after having been moved: nothing in it may know where it was made."""
    folder = tmp_path_factory.mktemp("installed")
    output("cmake", "--install", BUILD, "--prefix", folder / "first")
    return (folder / "first").rename(folder / "prefix")


@pytest.fixture(scope="module")
def libraries(prefix):
    (library,) = prefix.glob("lib*/**/libfuselite.so")
    return library.parent


@pytest.fixture(scope="module")
def mobilenet(prefix, tmp_path_factory):
    path = tmp_path_factory.mktemp("zoo") / "mobilenet_v2.tflite"
    output(prefix / "bin" / "fuselite", "zoo", "mobilenet_v2", "-o", path)
    return path


@pytest.fixture(scope="module")
def build_example(prefix, tmp_path_factory):
    def build(name):
        folder = tmp_path_factory.mktemp(name)
        shutil.copytree(ROOT / "examples" / name, folder / "source")  # nothing beside it may be found
        output("cmake", "-S", folder / "source", "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
        output("cmake", "--build", folder / "build")
        return folder / "build"

    return build


def test_the_package_holds_what_is_public(prefix, libraries):
    headers = {path.name for path in (prefix / "include" / "fuselite").iterdir()}
    assert headers == HEADERS
    for name in (
        "libfuselite.so",
        "libfuselite.a",
        "libfuselite_delegate.so",
        "pkgconfig/fuselite.pc",
        "pkgconfig/fuselite-delegate.pc",
    ):
        assert (libraries / name).exists(), name
    assert output(prefix / "bin" / "fuselite", "--version").strip() == (ROOT / "VERSION").read_text().strip()


@pytest.mark.parametrize("name, pattern", [
    ("libfuselite.so", r"Fuselite\w+|tflite_plugin_\w+"),
    ("libfuselite_delegate.so", r"Fuselite\w+|tflite_plugin_\w+"),
    ("libfuselite_custom_operators.so", r"TfLite\w+"),
])  # fmt: skip
def test_libraries_export_their_interface_alone(libraries, name, pattern):
    names = [line.split()[-1] for line in output("nm", "-D", "--defined-only", libraries / name).splitlines()]
    assert names and all(re.fullmatch(pattern, symbol) for symbol in names), names


def test_every_function_of_the_headers_is_exported(prefix, libraries):
    declared = set()
    for header in (prefix / "include" / "fuselite").glob("*.h"):
        declared |= set(re.findall(r"^FUSELITE_EXPORT [^;(]*?(\w+)\(", header.read_text(), re.M))
    exported = set()
    for name in ("libfuselite.so", "libfuselite_custom_operators.so"):
        exported |= set(output("nm", "-D", "--defined-only", libraries / name).split())
    assert len(declared) > 80 and declared <= exported


@pytest.mark.parametrize("example, program", [("c", "run_model"), ("c", "run_model_static"), ("cpp", "run_model")])
def test_examples_run_against_the_package(build_example, mobilenet, example, program):
    path = build_example(example) / program
    assert re.fullmatch(r"largest output: \d+, 0\.\d+\n", output(path, mobilenet))
    failed = subprocess.run([path, "/nowhere"], stderr=subprocess.PIPE, text=True, check=False)
    assert (failed.returncode, failed.stderr) == (1, "run_model: /nowhere: no such file\n")


def test_a_host_loads_the_delegate_by_its_path(build_example, mobilenet, libraries):
    host = build_example("dlopen") / "host"
    library = libraries / "libfuselite_delegate.so"
    assert re.fullmatch(r"\S+: 4000 bytes\n", output(host, mobilenet, library, "num_threads=2"))
    wrong = subprocess.run([host, mobilenet, library, "num_thread=2"], stderr=subprocess.PIPE, text=True, check=False)
    assert wrong.returncode == 1
    assert wrong.stderr == ("host: fuselite: no delegate: option num_thread is unknown; the nearest valid one is num_threads\n")


def test_the_custom_operator_runs_between_partitions(build_example, tmp_path, prefix):
    """x + 1, its arc tangent, times 2: the delegate's before and after the application's."""
    length = 30000  # shorter ones are not worth a change of hands
    graph = graphs.Graph()
    x = graph.input([length])
    added = graph.op("ADD", [x, graph.constant(np.ones(1, np.float32))], (length,), "AddOptions")
    tangent = graph.op("custom Atan", [added], (length,))
    result = graph.op("MUL", [tangent, graph.constant(np.full(1, 2, np.float32))], (length,), "MulOptions")
    model = tmp_path / "atan.tflite"
    model.write_bytes(graph.build([result]))
    values = np.array([-2, 0, 0.5, 3], np.float32)
    explain = tmp_path / "explain.json"
    printed = output(
        build_example("custom_operator") / "run_with_atan",
        model,
        *map(str, values),
        env={**os.environ, "FUSELITE_EXPLAIN_FILE": str(explain)},
    ).split()
    expected = 2 * np.arctan(np.pad(values, (0, length - 4)) + 1)
    assert np.allclose(np.array(printed, np.float32), expected, atol=1e-5)
    nodes = json.loads(explain.read_text())["graphs"][0]["nodes"]
    assert [node["claimed"] for node in nodes] == [True, False, True]
    unknown = subprocess.run([prefix / "bin" / "fuselite", "run", model], stderr=subprocess.PIPE, text=True, check=False)
    assert "custom operator Atan" in unknown.stderr and "docs/custom-operators.md" in unknown.stderr


def test_pkg_config_tells_what_a_compiler_needs(prefix, libraries, mobilenet, tmp_path):
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    environment = {"PATH": "/usr/bin:/bin", "PKG_CONFIG_PATH": str(libraries / "pkgconfig")}
    flags = output("pkg-config", "--cflags", "--libs", "fuselite", env=environment).split()
    program = tmp_path / "run_model"
    output("c++", "-std=c++17", ROOT / "examples" / "cpp" / "run_model.cc", "-o", program, *flags, f"-Wl,-rpath,{libraries}")
    assert output(program, mobilenet).startswith("largest output: ")


def test_another_project_takes_the_sources_in(tmp_path):
    """add_subdirectory, which FetchContent ends in: no test or benchmark of ours, and the names of the package."""
    (tmp_path / "main.cc").write_text("int main() { return 0; }\n")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(consumer CXX C)\n"
        f"add_subdirectory({ROOT} fuselite)\n"
        "add_executable(program main.cc)\n"
        "target_link_libraries(program PRIVATE fuselite::interpreter fuselite::delegate)\n"
        "if(FUSELITE_TESTS OR FUSELITE_BENCHMARKS OR FUSELITE_WERROR)\n  message(FATAL_ERROR options)\nendif()\n"
    )
    output("cmake", "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "build")
    plan = output("ninja", "-C", tmp_path / "build", "-t", "commands", "program")
    assert "libfuselite.so" in plan and "libfuselite_delegate.so" in plan and "_test" not in plan


def test_a_debian_package_is_made(tmp_path):
    missing = [tool for tool in ("dpkg-deb", "dpkg-shlibdeps", "file") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"cpack needs {' and '.join(missing)}, not installed here (scripts/install-deps --tests)")
    output("cpack", "-B", tmp_path, cwd=BUILD)
    (package,) = tmp_path.glob("*.deb")
    version = (ROOT / "VERSION").read_text().strip()
    assert package.name.startswith(f"fuselite_{version}")
    assert re.search(r"^ Depends: .*libc6", output("dpkg-deb", "--info", package), re.M)
    files = output("dpkg-deb", "--contents", package)
    for name in ("/usr/bin/fuselite", "/usr/include/fuselite/fuselite.hpp", "/usr/lib/libfuselite.so"):
        assert f".{name}" in files, name
