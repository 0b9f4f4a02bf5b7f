"""``python -m fuselite``, and the command ``fuselite``.

::

    python -m fuselite run app.py args...      # a Python program, with fuselite as the default of its interpreters
    python -m fuselite run -m package args...
    python -m fuselite benchmark model.tflite  # everything else is the command line

``run --num_threads=2 app.py``: options of the delegate stand before the program.
"""

from __future__ import annotations

import os
import runpy
import sys
from typing import Any

from fuselite import _library


def _python_program(arguments: list[str]) -> int | None:
    """Where the Python program stands in the arguments of ``run``; None where they name a model."""
    for place, argument in enumerate(arguments):
        if argument == "-m":
            return place
        if not argument.startswith("-"):
            return place if argument.endswith(".py") or _is_script(argument) else None
    return None


def _is_script(path: str) -> bool:
    """Whether the file says that Python runs it, as the commands that pip installs do."""
    try:
        with open(path, "rb") as file:
            first = file.readline(256)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first


def _read_options(arguments: list[str]) -> dict[str, Any]:
    """The delegate's options that stand before the program; a wrong one raises ValueError."""
    from fuselite._delegate import Delegate

    given: dict[str, Any] = {}
    for argument in arguments:
        key, equals, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--") or not equals:
            raise ValueError(f"fuselite: '{argument}' is no option: --num_threads=2")
        given[key] = value
    Delegate(**given)
    return given


def _run_program(options: dict[str, str], program: list[str]) -> None:
    """Runs it as ``python app.py`` would; Python processes that it starts have fuselite too."""
    from fuselite import _default

    os.environ.update({f"FUSELITE_{key.upper()}": value for key, value in options.items()}, FUSELITE_ENABLE="1")
    _default._enable({})
    if program[0] == "-m":
        sys.argv = program[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = program
        sys.path.insert(0, os.path.dirname(os.path.abspath(program[0])))
        runpy.run_path(program[0], run_name="__main__")


def main() -> None:
    """The console script."""
    arguments = sys.argv[1:]
    place = _python_program(arguments[1:]) if arguments[:1] == ["run"] else None
    try:
        if place is None:
            tool = _library.tool_path()
            sys.stdout.flush()
            os.execv(tool, ["fuselite", *arguments])
        options, program = _read_options(arguments[1 : 1 + place]), arguments[1 + place :]
        if program == ["-m"]:
            raise ValueError("fuselite: a module's name is missing after -m")
        if program[0] != "-m" and not os.path.isfile(program[0]):
            raise ValueError(f"fuselite: {program[0]}: no such file")
    except (ImportError, ValueError) as error:
        sys.exit(str(error))
    _run_program(options, program)


if __name__ == "__main__":
    main()
