"""The wheel, installed into fresh virtual environments: with LiteRT, and without.

FUSELITE_WHEEL names it, else it is the newest of dist/ (scripts/make-wheel). With FUSELITE_PYPI=off nothing is fetched.
"""

import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEWEST_GLIBC = (2, 35)  # Ubuntu 22.04
NEWEST_LIBSTDCXX = (3, 4, 30)
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def wheel():
    named = os.environ.get("FUSELITE_WHEEL")
    found = [pathlib.Path(named)] if named else sorted(
        (ROOT / "dist").glob("fuselite-*_x86_64.whl"), key=lambda path: path.stat().st_mtime
    )  # fmt: skip
    if not found:
        pytest.skip("there is no wheel in dist/: scripts/make-wheel --prebuilt build/release")
    return found[-1]


def run(*command, **environment):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("FUSELITE", "PYTHON"))}
    result = subprocess.run(
        command, env={**clean, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=600
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory):
    """A Python with the wheel and numpy, which this Python lends."""
    return make_environment(tmp_path_factory.mktemp("bare"), wheel, ["numpy"])


@pytest.fixture(scope="module")
def hosted(wheel, tmp_path_factory):
    """The same with LiteRT."""
    return make_environment(
        tmp_path_factory.mktemp("hosted"),
        wheel,
        ["numpy", "ai_edge_litert", "flatbuffers", "google", "tqdm", "typing_extensions", "backports", "ml_dtypes"],
    )


def make_environment(folder, wheel, packages):
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    (site,) = folder.glob("lib/python*/site-packages")
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        folder / "bin" / "python",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-index",
        wheel,
    )
    for package in packages:
        for place in map(pathlib.Path, sys.path):
            for path in [*place.glob(package), *place.glob(f"{package}.py"), *place.glob(f"{package}.libs")]:
                if "site-packages" in str(path) and not (site / path.name).exists():
                    (site / path.name).symlink_to(path)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def mobilenet(bare, tmp_path_factory):
    path = tmp_path_factory.mktemp("zoo") / "mobilenet_v2.tflite"
    run(bare.parent / "fuselite", "zoo", "mobilenet_v2", "-o", path)
    return path


def test_its_name_size_and_files(wheel):
    assert re.fullmatch(r"fuselite-[\d.]+-py3-none-manylinux_2_\d+_x86_64\.whl", wheel.name)
    assert wheel.stat().st_size <= 5 * MEGABYTE
    names = zipfile.ZipFile(wheel).namelist()
    for name in (
        "fuselite/py.typed",
        "fuselite/lib/libfuselite.so.0",
        "fuselite/bin/fuselite",
        "fuselite-enable.pth",
        "fuselite/litert/libLiteRtGpuAccelerator.so",
    ):
        assert name in names, name
    assert not any("gomp" in name for name in names)  # the machine's own is loaded where there is one


def test_it_asks_for_no_newer_libraries(wheel, tmp_path):
    """Symbol versions of every binary in it, and the libraries that they need from the system."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    binaries = [path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    assert len(binaries) == 3
    for path in binaries:
        symbols = run("objdump", "-T", path)
        for version in re.findall(r"GLIBC_([\d.]+)", symbols):
            assert tuple(map(int, version.split("."))) <= NEWEST_GLIBC, (path.name, version)
        for version in re.findall(r"GLIBCXX_([\d.]+)", symbols):
            assert tuple(map(int, version.split("."))) <= NEWEST_LIBSTDCXX, (path.name, version)
        needed = set(re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", path)))
        bundled = {other.name for other in binaries}
        system = {
            "libc.so.6",
            "libm.so.6",
            "libstdc++.so.6",
            "libgcc_s.so.1",
            "libdl.so.2",
            "libpthread.so.0",
            "ld-linux-x86-64.so.2",
        }
        assert needed <= bundled | system, (path.name, needed)


def test_one_copy_of_the_kernels(wheel):
    sizes = {info.filename: info.file_size for info in zipfile.ZipFile(wheel).infolist()}
    assert sizes["fuselite/bin/fuselite"] < 100_000 and sizes["fuselite/litert/libLiteRtGpuAccelerator.so"] < 100_000


SCRIPT = """
import numpy as np, sys
{first_line}
interpreter = {interpreter}
interpreter.allocate_tensors()
for d in interpreter.get_input_details():
    interpreter.set_tensor(d["index"], np.random.default_rng(5).uniform(-1, 1, d["shape"]).astype(d["dtype"]))
interpreter.invoke()
print([hash(interpreter.get_tensor(d["index"]).tobytes()) for d in interpreter.get_output_details()])
"""
PLAIN = {"first_line": "from ai_edge_litert.interpreter import Interpreter", "interpreter": "Interpreter(model_path=sys.argv[1])"}
LOADED = {
    "first_line": "from ai_edge_litert.interpreter import Interpreter, load_delegate; import fuselite",
    "interpreter": "Interpreter(sys.argv[1], experimental_delegates=[load_delegate(fuselite.library_path())])",
}
OURS = {"first_line": "from fuselite import Interpreter", "interpreter": PLAIN["interpreter"]}


def test_one_line_changed_or_none_gives_the_bits_of_load_delegate(hosted, mobilenet, small_networks):
    for path in [mobilenet, *small_networks(3_000_000)]:
        results = [
            run(hosted, "-c", SCRIPT.format(**which), path, PYTHONHASHSEED="0", **environment)
            for which, environment in ((LOADED, {}), (OURS, {}), (PLAIN, {"FUSELITE_ENABLE": "1"}))
        ]
        assert results[0] == results[1] == results[2], path.name


def test_the_environment_makes_it_the_default_or_not(hosted, mobilenet):
    code = (
        "from ai_edge_litert.interpreter import Interpreter; import sys; i = Interpreter(sys.argv[1]); "
        "print(sum(op['op_name'] == 'DELEGATE' for op in i._get_ops_details()), 'fuselite' in sys.modules)"
    )
    assert run(hosted, "-c", code, mobilenet, FUSELITE_ENABLE="1") == "1 True\n"
    assert run(hosted, "-c", code, mobilenet, FUSELITE_ENABLE="0").split()[0] == "0"
    assert run(hosted, "-c", code, mobilenet) == "0 False\n"


def test_without_a_host_it_runs_on_its_own(bare, mobilenet):
    code = (
        "import fuselite, sys, numpy as np; i = fuselite.Interpreter(sys.argv[1], num_threads=2); r = i.get_signature_runner(); "
        "out = r(image=np.ones((2, 224, 224, 3), np.float32)); print(i.host, out['output'].shape, i.explain().threads)"
    )
    assert run(bare, "-c", code, mobilenet) == "fuselite (2, 1000) 2\n"
    assert run(bare, "-c", SCRIPT.format(**OURS), mobilenet)


def test_the_command_is_the_command_line(bare, mobilenet):
    tool = bare.parent / "fuselite"
    assert run(tool, "--version").strip() == (ROOT / "VERSION").read_text().strip()
    assert "CONV_2D" in run(tool, "explain", mobilenet)
    assert "output" in run(bare, "-m", "fuselite", "run", mobilenet)
