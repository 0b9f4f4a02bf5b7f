"""What the README and the examples say works as it is printed."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"


@pytest.fixture(scope="session")
def mobilenet(tmp_path_factory):
    path = tmp_path_factory.mktemp("zoo") / "mobilenet_v2.tflite"
    subprocess.run([BUILD / "tools" / "fuselite", "zoo", "mobilenet_v2", "-o", path], check=True, stdout=subprocess.PIPE)
    return path


def output(*command, **environment):
    environment = {**os.environ, **environment}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def test_the_python_example_runs(mobilenet):
    example = ROOT / "examples" / "python" / "run_model.py"
    text = output(sys.executable, example, mobilenet, PYTHONPATH=str(ROOT / "python"))
    assert re.search(r"^\d+\.\d\d ms$", text, re.M) and "(1, 1000)" in text


@pytest.mark.parametrize("name, arguments", [
    ("run_model.py", "MODEL.tflite"),
    ("generate.py", "DECODER.tflite TOKEN,TOKEN,... STEPS"),
])  # fmt: skip
def test_a_python_example_without_arguments_says_how_it_is_called(name, arguments):
    example = ROOT / "examples" / "python" / name
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    called = subprocess.run([sys.executable, example], capture_output=True, text=True, check=False, env=environment)
    assert (called.returncode, called.stdout, called.stderr) == (2, "", f"usage: {name} {arguments}\n")


def test_the_example_that_generates_makes_what_the_tool_makes():
    path = ROOT.parent / "shared" / "models"
    model = pathlib.Path(os.environ.get("FUSELITE_MODELS", path)) / "torch" / "llm_llama_q8_ekv256.tflite"
    if not model.exists():
        pytest.skip(f"{model} is not there")
    prompt = ",".join(str(token) for token in range(1, 80))
    example = ROOT / "examples" / "python" / "generate.py"
    python = output(sys.executable, example, model, prompt, "8", PYTHONPATH=str(ROOT / "python")).splitlines()
    tool = output(BUILD / "tools" / "fuselite", "generate", model, "--tokens", prompt, "--steps", "8").splitlines()
    assert tool[0] == "tokens  " + python[0] and python[1].endswith("tokens/s")
    assert [line.split()[0] for line in tool] == ["tokens", "prefill", "decode", "limit"]


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)


def test_the_readme_shows_the_example_in_cpp():
    (block,) = blocks("cpp")
    example = (ROOT / "examples" / "cpp" / "run_model.cc").read_text()
    code = [line.strip() for line in block.splitlines() if line.strip()]
    lines = [line.strip() for line in example.splitlines()]
    places = [lines.index(line) for line in code]  # every line is there, in this order
    assert places == sorted(places)


def test_the_readme_lines_in_python_work(mobilenet):
    (block,) = blocks("python")
    code = block.replace("model.tflite", str(mobilenet)) + "print(interpreter.explain().threads)"
    assert output(sys.executable, "-c", code, PYTHONPATH=str(ROOT / "python")) == "2\n"


def test_the_readme_names_commands_that_there_are():
    text = (ROOT / "README.md").read_text()
    known = output(BUILD / "tools" / "fuselite", "--help")
    for command in re.findall(r"^    fuselite (\w+)", text, re.M):
        assert re.search(rf"^  {command} ", known, re.M), command
    for path in re.findall(r"\]\(([^)h][^)]*)\)", text):
        assert (ROOT / path).exists(), path
