"""What the Python tests share: the built delegate, LiteRT, and the folders of models that the environment names."""

import os
import pathlib
import re
import subprocess

import pytest
import vectors
from ai_edge_litert import interpreter as litert

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Tests of files that only the folders of these variables have. What they are about is tested elsewhere, too, with networks
# that `fuselite zoo` writes and what the tests draw.
NEEDS = {"test_digits.py": ["FUSELITE_MODELS", "FUSELITE_EVAL"]}
LEFT_OUT = {file: [name for name in needs if not os.environ.get(name)] for file, needs in NEEDS.items()}
collect_ignore = [file for file, missing in LEFT_OUT.items() if missing]


def pytest_report_header():
    return [f"{file} is left out: {', '.join(missing)} not set" for file, missing in LEFT_OUT.items() if missing]


def folder_from_environment(name):
    """The folder that the variable names; the test is skipped where it is not set."""
    value = os.environ.get(name)
    if not value:
        pytest.skip(f"{name} is not set")
    folder = pathlib.Path(value)
    if not folder.is_dir():
        pytest.fail(f"{name} names {folder}, which is no folder")
    return folder


@pytest.fixture(scope="session")
def delegate_path():
    """The delegate's library: FUSELITE_DELEGATE, else the release build's."""
    built = ROOT / "build" / "release" / "partitioner" / "libfuselite_delegate.so"
    path = pathlib.Path(os.environ.get("FUSELITE_DELEGATE") or built)
    if not path.is_file():
        pytest.fail(f"{path} is not there; build it (cmake --build --preset release) or set FUSELITE_DELEGATE")
    return path


@pytest.fixture(scope="session")
def load_delegate(delegate_path):
    """Loads the delegate into LiteRT: load_delegate(num_threads=2, jit="off")."""

    def load(**options):
        return litert.load_delegate(str(delegate_path), options)

    return load


@pytest.fixture(scope="session")
def tool():
    """tool("run", "model.tflite"): runs build/release/tools/fuselite, or what FUSELITE_TOOL names."""
    path = pathlib.Path(os.environ.get("FUSELITE_TOOL") or ROOT / "build" / "release" / "tools" / "fuselite")
    if not path.is_file():
        pytest.fail(f"{path} is not there; build it (cmake --build --preset release) or set FUSELITE_TOOL")

    def run(*arguments, status=0, stdout=subprocess.PIPE, warns=False):
        command = [path, *map(str, arguments)]
        result = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
        assert result.returncode == status, result.stderr
        if status:
            # One line that says what is wrong.
            assert re.fullmatch(r"fuselite: .+\n", result.stderr), result.stderr
            return result.stderr
        if warns:
            return result.stderr
        assert result.stderr == ""
        return result.stdout

    run.path = path
    return run


@pytest.fixture(scope="session")
def models():
    return folder_from_environment("FUSELITE_MODELS")


# What `fuselite zoo` writes for machines without models: networks of floats, and other forms of these.
ZOO_FLOAT = ["mobilenet_v1", "mobilenet_v2", "transformer"]
ZOO_INTEGER = ["mobilenet_v1_int8", "mobilenet_v1_uint8", "mobilenet_v2_int8", "transformer_int8"]
ZOO_HYBRID = ["mobilenet_v1_dynamic", "mobilenet_v2_float16", "transformer_dynamic"]


@pytest.fixture(scope="session")
def networks(tool, tmp_path_factory):
    """The folder of FUSELITE_MODELS; where it is not set, one of the zoo's networks."""
    if os.environ.get("FUSELITE_MODELS"):
        return folder_from_environment("FUSELITE_MODELS")
    folder = tmp_path_factory.mktemp("zoo")
    for name in ZOO_FLOAT + ZOO_INTEGER + ZOO_HYBRID:
        tool("zoo", name, "-o", folder / f"{name}.tflite")
    return folder


@pytest.fixture(scope="session")
def small_networks(networks):
    """small_networks(1_000_000): the networks of at most so many bytes; of the zoo all, which are few."""

    def chosen(most):
        paths = sorted(networks.glob("*.tflite"))
        return [path for path in paths if not os.environ.get("FUSELITE_MODELS") or path.stat().st_size <= most]

    return chosen


@pytest.fixture(scope="session")
def conformance(tmp_path_factory):
    """The folder of FUSELITE_CONFORMANCE; where it is not set, vectors that are drawn (vectors.py)."""
    if os.environ.get("FUSELITE_CONFORMANCE"):
        return folder_from_environment("FUSELITE_CONFORMANCE")
    folder = tmp_path_factory.mktemp("vectors")
    vectors.draw(folder)
    return folder


@pytest.fixture(scope="session")
def evaluation():
    return folder_from_environment("FUSELITE_EVAL")


@pytest.fixture(scope="session")
def mobilenet(tool, tmp_path_factory):
    """The file of the zoo's MobileNetV2, in float."""
    path = tmp_path_factory.mktemp("zoo") / "mobilenet_v2.tflite"
    tool("zoo", "mobilenet_v2", "-o", path)
    return path
