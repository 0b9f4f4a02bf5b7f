"""What README.md and docs/ tell a reader to write: the code runs, the commands are taken."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
import test_tools

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"


def text_of(document):
    return (ROOT / document).read_text()


def blocks(document, language):
    """The code of a document's fenced blocks."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text_of(document), re.M | re.S)


@pytest.fixture(scope="module")
def folder(tool, tmp_path_factory):
    """Files of the names that the documents use."""
    folder = tmp_path_factory.mktemp("reader")
    tool("zoo", "mobilenet_v2", "-o", folder / "model.tflite")
    tool("zoo", "decoder", "-o", folder / "decoder.tflite")
    np.save(folder / "x.npy", np.zeros((1, 224, 224, 3), np.float32))
    (folder / "cat.jpg").write_bytes(test_tools.grey_jpeg())
    for name in ("first.so", "last.so", "other.so"):
        (folder / name).symlink_to(BUILD / "partitioner" / "libfuselite_delegate.so")
    (folder / "fuselite").symlink_to(tool.path)
    return folder


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Where the package is installed."""
    prefix = tmp_path_factory.mktemp("installed")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, stdout=subprocess.PIPE)
    return prefix


# --- Python ---


@pytest.mark.parametrize("document", ["README.md", "docs/python.md"])
def test_python_runs(document, folder):
    """All blocks of a document, one after the other, as in one program."""
    code = blocks(document, "python")
    assert code
    program = "\n".join(["import numpy as np, fuselite", "image = np.zeros((1, 224, 224, 3), np.float32)", *code])
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "way",
    [
        "fuselite.Interpreter(path, num_threads=4)",
        "Interpreter(path, experimental_delegates=[fuselite.load_delegate()])",
        'fuselite.load_delegate(isa="avx2", jit=False,\nops_deny=["SOFTMAX"])',
    ],
)
def test_python_in_sentences_runs(way, folder):
    assert f"`{way}`" in text_of("docs/python.md")
    program = f"import fuselite\nfrom ai_edge_litert.interpreter import Interpreter\npath = 'model.tflite'\n{way}"
    subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, check=True
    )


# --- C and C++ ---


def program_of(block, before=""):
    """A program whose main() is the block; includes and functions' declarations go before it."""
    outside = [line for line in block.splitlines() if line.startswith(("#include", "static "))]
    inside = [line for line in block.splitlines() if line not in outside]
    return "\n".join([*outside, before, "int main(void) {", *inside, "return 0; }"]) + "\n"


@pytest.mark.parametrize("document", ["README.md", "docs/c-and-cpp.md"])
def test_cpp_runs(document, prefix, folder, tmp_path):
    (code,) = blocks(document, "cpp")
    source = tmp_path / "program.cc"
    source.write_text("#include <algorithm>\n" + program_of(code, 'static const char* path = "model.tflite";'))
    (library,) = prefix.glob("lib*/**/libfuselite.so")
    subprocess.run(
        [
            "c++",
            *("-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror"),
            *("-Wno-unused-variable", "-Wno-unused-but-set-variable"),
            "-o",
            tmp_path / "program",
            source,
            f"-I{prefix}/include",
            f"-L{library.parent}",
            "-lfuselite",
            f"-Wl,-rpath,{library.parent}",
        ],
        check=True,
    )
    subprocess.run([tmp_path / "program"], cwd=folder, check=True)


# What stands for the headers that the reader has.
TENSORFLOW_LITE = """
typedef struct TfLiteDelegate TfLiteDelegate;
typedef struct TfLiteInterpreterOptions TfLiteInterpreterOptions;
TfLiteInterpreterOptions* TfLiteInterpreterOptionsCreate(void);
void TfLiteInterpreterOptionsAddDelegate(TfLiteInterpreterOptions* options, TfLiteDelegate* delegate);
"""
DUMMY_DELEGATE = """
#include "runtime/tflite/abi.h"
fuselite::tflite::TfLiteDelegate* MakeDummyDelegate();
void DeleteDummyDelegate(fuselite::tflite::TfLiteDelegate*);
"""


@pytest.mark.parametrize("document, before", [
    ("docs/c-and-cpp.md", ""),
    ("docs/custom-operators.md", "#include <fuselite/interpreter.h>\nconst FuseliteModel* model;"),
])  # fmt: skip
def test_c_compiles(document, before, prefix, tmp_path):
    header = tmp_path / "tensorflow" / "lite" / "c" / "c_api.h"
    header.parent.mkdir(parents=True)
    header.write_text(TENSORFLOW_LITE)
    (code,) = blocks(document, "c")
    source = tmp_path / "program.c"
    source.write_text(program_of(code, before))
    subprocess.run(
        ["cc", "-std=c11", "-c", "-o", tmp_path / "program.o", source, f"-I{prefix}/include", f"-I{tmp_path}"], check=True
    )


def test_a_provider_compiles(tmp_path):
    """The file that docs/delegates.md shows, beside those of tools/delegates."""
    (code,) = blocks("docs/delegates.md", "cpp")
    (tmp_path / "dummy.cc").write_text(code)
    (tmp_path / "dummy_delegate.h").write_text(DUMMY_DELEGATE)
    subprocess.run(
        ["c++", "-std=c++20", "-fsyntax-only", f"-I{ROOT}", f"-I{ROOT}/include", f"-I{BUILD}/generated", tmp_path / "dummy.cc"],
        check=True,
    )


def test_every_public_function_is_described():
    """A comment stands above each declaration, or above the group without empty lines that it belongs to."""
    for header in (ROOT / "include" / "fuselite").glob("*.h"):
        for group in header.read_text().split("\n\n"):
            if "\nFUSELITE_EXPORT" in f"\n{group}":
                assert re.match(r"\s*(/\*|//)", group), f"{header.name}: {group}"


# --- commands ---


def commands(document):
    """The indented lines that begin with fuselite, without their comments, lines that end in a backslash joined."""
    text = text_of(document).replace("\\\n", "")
    found = [shlex.split(line, comments=True) for line in re.findall(r"^    (fuselite [^:\n]*.*)$", text, re.M)]
    return [" ".join(words) for words in found if "..." not in words[-1] and "key:value;other:value" not in words]


LONG = {"stress"}  # test_tools.py has it


@pytest.mark.parametrize(
    "command",
    [command for document in ("README.md", "docs/delegates.md", "docs/performance.md") for command in commands(document)],
)
def test_commands_run(command, folder):
    words = command.split()
    if words[1] in LONG:
        words.append("--help")
    result = subprocess.run(
        [folder / "fuselite", *words[1:]],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr


def test_the_options_page_names_the_commands_that_take_them(tool):
    sentence = text_of("docs/options.md").split("as flags of ")[1].split("(")[0]
    every = re.findall(r"^  (\w+) ", tool("--help").split("Subcommands:")[1], re.M)
    assert set(re.findall(r"`(?:fuselite )?(\w+)`", sentence)) == {
        command for command in every if "--num_threads" in tool(command, "--help")
    }


def test_the_options_page_names_the_variables_of_the_environment():
    sources = [*(ROOT / "python").rglob("*.py"), *(ROOT / "tools").rglob("*.cc")]
    read = {name for path in sources for name in re.findall(r'(?:environ.*|getenv\(|, )"(FUSELITE_[A-Z_]+)"', path.read_text())}
    assert len(read) > 4 and read <= set(re.findall(r"^\| `(FUSELITE_\w+)` \|", text_of("docs/options.md"), re.M))


def test_the_explanations_page_has_each_rewrite():
    """By its words: operators' names stand for others there."""

    def words(text):
        return {word for word in re.findall(r"\w+", text) if not re.fullmatch(r"[A-Z0-9_]{3,}", word)}

    rows = [words(row) for row in re.findall(r"^\| (.*?) \|", text_of("docs/explain.md").split("## Rewrites")[1], re.M)]
    sources = [path.read_text() for path in (ROOT / "fusion").rglob("*.cc")]
    recorded = {name for text in sources for name in re.findall(r'Record\("([^"]+)"', text)}
    assert len(recorded) > 15
    missing = {name for name in recorded if not any(words(name) <= row for row in rows)}
    assert not missing, f"add to docs/explain.md: {missing}"


def test_every_page_is_reached_from_the_readme():
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    linked, unread = set(), {"README.md"}
    while unread:
        document = unread.pop()
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text_of(document)):
            path = ((ROOT / document).parent / target).resolve()
            assert path.exists(), f"{document} links to {target}"
            if path.suffix == ".md" and path.parent == ROOT / "docs" and path.name not in linked:
                linked.add(path.name)
                unread.add(f"docs/{path.name}")
    assert pages == linked
