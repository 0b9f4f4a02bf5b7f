"""Holds the sources to the arrows of docs/design.md: who may include whom, and what lives in one place only.

Run without arguments (ctest does); prints every offending line.
"""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What each room may include besides itself. tests/, benchmarks/ and examples/ may include any room.
MAY_INCLUDE = {
    "runtime": set(),
    "kernels": {"runtime"},
    "jit": {"kernels", "runtime"},
    "fusion": {"jit", "kernels", "runtime"},
    "partitioner": {"fusion", "jit", "kernels", "runtime"},
    "interpreter": {"kernels", "runtime"},
    "tools": {"interpreter", "partitioner", "fusion", "kernels", "runtime"},
    "include": set(),  # the public headers: every room may include fuselite/..., they include nothing else
}
SOURCE_SUFFIXES = {".h", ".cc", ".c", ".inc"}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
# FlexBuffers, in which custom operators have their options, are no part of it.
SCHEMA = re.compile(r"(^|/)flatbuffers/(?!flexbuffers\.h)|_generated\.h$")
OPENMP = re.compile(r"^\s*#\s*pragma\s+omp\b|_Pragma\s*\(\s*\"omp\b|^\s*#\s*include\s*<omp\.h>")
TFLITE_STRUCT = re.compile(r"\bk?TfLite[A-Z]\w*")


def may_use_schema(path):
    """interpreter/ reads models, the writers write them; tests look at what was written."""
    return path.parts[0] in ("interpreter", "tests") or re.search("writer|zoo", str(path))


def may_name_tflite(path):
    """An operator's import and field files translate from TFLite's structs; its contract does not know them."""
    return re.search("import|fields", path.name)


def code_lines(text):
    """(number, line) of each line, without comments."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    for number, line in enumerate(text.split("\n"), 1):
        yield number, re.sub(r"(^|\s)//.*", "", line)


def offences(path, text):
    """The broken rules of one file: (line number, line, reason) each."""
    room = path.parts[0]
    found = []
    for number, line in code_lines(text):
        reasons = []
        include = INCLUDE.match(line)
        if include:
            target = include.group(1)
            target_room = target.split("/")[0]
            if room in MAY_INCLUDE and target_room in {*MAY_INCLUDE, "tests", "benchmarks", "examples"}:
                if target_room != room and target_room not in MAY_INCLUDE[room]:
                    reasons.append(f"{room}/ may not include {target_room}/")
            if target.startswith("."):
                reasons.append("includes are written from the repository root")
            if SCHEMA.search(target) and not may_use_schema(path):
                reasons.append("only interpreter/ and the writers know the schema")
        if OPENMP.search(line) and not str(path).startswith("runtime/threads/parallel"):
            reasons.append("OpenMP is used by runtime/threads/parallel* only")
        if room == "kernels" and path.suffix == ".h" and not may_name_tflite(path):
            if TFLITE_STRUCT.search(line):
                reasons.append("kernel contracts do not mention TFLite's structs")
        found += [(number, line.strip(), reason) for reason in reasons]
    return found


def place(path):
    """What stands in circles or not: a folder of a room, or a file that lies in none."""
    return "/".join(path.parts[:-1]) if len(path.parts) > 2 else str(path)


def included(path, text):
    """The files of the repository that one includes."""
    targets = (INCLUDE.match(line) for _, line in code_lines(text))
    return [pathlib.PurePosixPath(t.group(1)) for t in targets if t and (ROOT / t.group(1)).is_file()]


def circles(arrows):
    """The groups of places that can all be reached from each other; `arrows` has where each leads."""
    index, low, stack, found = {}, {}, [], []

    def visit(at):
        index[at] = low[at] = len(index)
        stack.append(at)
        for to in sorted(arrows[at]):
            if to not in index:
                visit(to)
            if to in stack:
                low[at] = min(low[at], low[to])
        if low[at] == index[at]:
            group = stack[stack.index(at) :]
            del stack[len(stack) - len(group) :]
            if len(group) > 1:
                found.append(sorted(group))

    for at in sorted(arrows):
        if at not in index:
            visit(at)
    return found


def source_files():
    for folder in (*MAY_INCLUDE, "tests", "benchmarks", "examples"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SOURCE_SUFFIXES:
                yield path.relative_to(ROOT)


class RulesTest(unittest.TestCase):
    """The rules themselves, on lines made for them."""

    def reasons(self, path, text):
        return [reason for _, _, reason in offences(pathlib.PurePosixPath(path), text)]

    def assert_offends(self, path, text, reason):
        self.assertEqual(self.reasons(path, text), [reason])

    def assert_fine(self, path, text):
        self.assertEqual(self.reasons(path, text), [])

    def test_arrows(self):
        self.assert_fine("fusion/plan.cc", '#include "jit/matmul.h"\n#include <vector>\n')
        self.assert_fine("tests/runtime/x_test.cc", '#include "partitioner/delegate.h"\n')
        self.assert_offends("runtime/a.h", '#include "kernels/b.h"', "runtime/ may not include kernels/")
        self.assert_offends("jit/a.cc", '  #  include "fusion/b.h"', "jit/ may not include fusion/")
        self.assert_offends("interpreter/a.cc", '#include "fusion/b.h"', "interpreter/ may not include fusion/")
        self.assert_offends("tools/a.cc", '#include "tests/b.h"', "tools/ may not include tests/")
        self.assert_offends("kernels/conv/a.cc", '#include "../b.h"', "includes are written from the repository root")

    def test_comments_do_not_count(self):
        self.assert_fine("runtime/a.h", '// #include "kernels/b.h"\n/*\n#include "kernels/b.h"\n*/\n')

    def test_schema(self):
        reason = "only interpreter/ and the writers know the schema"
        self.assert_fine("interpreter/file/loader.cc", '#include "interpreter/schema_generated.h"')
        self.assert_fine("tools/model_writer.cc", "#include <flatbuffers/flatbuffers.h>")
        self.assert_offends("kernels/a.cc", "#include <flatbuffers/flatbuffers.h>", reason)
        self.assert_fine("kernels/a.cc", "#include <flatbuffers/flexbuffers.h>")
        self.assert_offends("tools/benchmark.cc", '#include "interpreter/schema_generated.h"', reason)

    def test_openmp(self):
        self.assert_fine("runtime/threads/parallel_openmp.cc", "#pragma omp parallel\n#include <omp.h>")
        self.assert_offends("kernels/a.cc", "  #pragma omp simd", "OpenMP is used by runtime/threads/parallel* only")

    def test_contracts(self):
        reason = "kernel contracts do not mention TFLite's structs"
        self.assert_fine("kernels/conv/import.h", "const TfLiteConvParams& params;")
        self.assert_fine("kernels/conv/conv.h", "// As TfLiteConvParams has it.")
        self.assert_offends("kernels/conv/conv.h", "void F(TfLiteTensor* t);", reason)

    def test_circles(self):
        self.assertEqual(circles({"a": {"b"}, "b": {"c"}, "c": set()}), [])
        self.assertEqual(circles({"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set()}), [["a", "b", "c"]])
        self.assertEqual(place(pathlib.PurePosixPath("kernels/conv2d/a.h")), "kernels/conv2d")
        self.assertEqual(place(pathlib.PurePosixPath("kernels/a.h")), "kernels/a.h")


class SourcesTest(unittest.TestCase):
    def test_sources_keep_the_rules(self):
        lines = []
        paths = list(source_files())
        self.assertIn(pathlib.Path("runtime/support/status.h"), paths)
        for path in paths:
            for number, line, reason in offences(path, (ROOT / path).read_text(encoding="utf-8")):
                lines.append(f"{path}:{number}: {reason}: {line}")
        self.assertFalse(lines, "\n" + "\n".join(lines))

    def test_no_includes_lead_in_circles(self):
        """Neither from file to file nor from folder to folder; a file that lies in a room itself is a place of its own."""
        files, folders = {}, {}
        for path in source_files():
            if path.parts[0] not in MAY_INCLUDE:
                continue
            targets = included(path, (ROOT / path).read_text(encoding="utf-8"))
            files[str(path)] = {str(target) for target in targets} - {str(path)}
            folders.setdefault(place(path), set()).update({place(target) for target in targets} - {place(path)})
        for arrows in (files, folders):
            for targets in arrows.values():
                targets &= arrows.keys()  # public headers are generated, some of them
            self.assertFalse(circles(arrows))


if __name__ == "__main__":
    unittest.main()
