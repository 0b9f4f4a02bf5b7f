"""Holds the product's code to one definition for each name: a type, or an inline or template function with the same parameters,
that two files define in one named namespace is two things to a linker that keeps either.

Run without arguments (ctest does); prints the places of each name. It reads the files as clang-format leaves them: what begins a
line is at the level of a namespace.
"""

import collections
import re
import unittest

from layering_test import MAY_INCLUDE, ROOT, source_files

NAMESPACE = re.compile(r"(?:inline )?namespace\s*([\w:]*)\s*\{")
TYPE = re.compile(
    r"(?:template <.*> ?)?(?:class|struct|union|enum class|enum)\s+(?:alignas\(\w+\)\s+)?(\w+)(?: final)?(?:\s*:[^:].*)?\s*\{"
)
FUNCTION = re.compile(r"[\w:<>,*&\s]+?[\s*&](\w+)\((.*)\)[^()]*\{")
NO_FUNCTION = re.compile(r"(?:using|namespace|class|struct|enum|extern|template|static_assert|friend|return|#)")
INLINE = re.compile(r"\b(?:inline|constexpr|HWY_INLINE)\b")


def parameter_types(text):
    return re.sub(r"\s+", "", re.sub(r"\b\w+\s*(=[^,]*)?(,|$)", r"\2", text))


def definitions(text):
    """(line number, what is defined) of each type and each inline or template function in a named namespace."""
    lines, spaces = text.split("\n"), []
    for number, line in enumerate(lines):
        if entered := NAMESPACE.match(line):
            spaces.append(entered.group(1))
        elif re.match(r"\}\s*// namespace", line) and spaces:
            spaces.pop()
        elif "" not in spaces and (found := TYPE.match(line)):
            yield number + 1, f"{'::'.join(spaces)}::{found.group(1)}"
        elif "" not in spaces and re.match(r"[A-Za-z]", line) and not NO_FUNCTION.match(line):
            end = next((i for i in range(number, min(number + 8, len(lines))) if re.search(r"[;{]\s*$", lines[i])), number)
            found = FUNCTION.match(" ".join(part.strip() for part in lines[number : end + 1]))
            template = lines[number - 1].startswith("template")
            if found and (template or INLINE.search(line.split("(")[0])):
                kind = "template " if template else ""
                yield number + 1, f"{kind}{'::'.join(spaces)}::{found.group(1)}({parameter_types(found.group(2))})"


class OneDefinitionTest(unittest.TestCase):
    def names(self, text):
        return [name for _, name in definitions(text)]

    def test_definitions(self):
        self.assertEqual(
            self.names("namespace a {\nstruct B {\n};\nenum class C : int { kD };\n}  // namespace a"), ["a::B", "a::C"]
        )
        self.assertEqual(self.names("namespace a {\nnamespace {\nstruct B {\n};\n}  // namespace\n}  // namespace a"), [])
        self.assertEqual(self.names("namespace a {\ninline int F(int x,\n             const B& y) {\n"), ["a::F(int,constB&)"])
        self.assertEqual(self.names("namespace a {\ntemplate <class T>\nint F(T x) {\n"), ["template a::F(T)"])
        self.assertEqual(self.names("namespace a {\nint F(int x) {\nstruct B;\n"), [])

    def test_each_name_is_defined_once(self):
        places = collections.defaultdict(dict)
        for path in source_files():
            if path.parts[0] in MAY_INCLUDE and path.suffix != ".c":
                for number, name in definitions((ROOT / path).read_text(encoding="utf-8")):
                    places[name][str(path)] = f"{path}:{number}"
        twice = [f"{name}: {', '.join(at.values())}" for name, at in places.items() if len(at) > 1]
        self.assertFalse(twice, "\n" + "\n".join(twice))


if __name__ == "__main__":
    unittest.main()
