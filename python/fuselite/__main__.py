"""``python -m fuselite``, and the command ``fuselite``.

::

    python -m fuselite run app.py args...      # a Python program, with fuselite as the default of its interpreters
    python -m fuselite run -m package args...
    python -m fuselite benchmark model.tflite  # everything else is the command line

``run --num_threads=2 app.py`` or ``run --num_threads 2 app.py``: options of the delegate stand before the program.
"""

from __future__ import annotations

import os
import runpy
import sys
from typing import Any

from fuselite import _library
from fuselite._delegate import Delegate, Options


def _python_program(arguments: list[str]) -> tuple[list[str], list[str]] | None:
    """The options, as ``--key=value``, and the Python program in the arguments of ``run``; None where they name a model."""
    options: list[str] = []
    rest = list(arguments)
    while rest and not _is_program(rest[0]):
        if not rest[0].startswith("-"):
            return None
        options.append(rest.pop(0))
        takes_next = options[-1].removeprefix("--") in Options.__annotations__
        if takes_next and rest and not rest[0].startswith("-") and not _is_program(rest[0]):
            options[-1] += f"={rest.pop(0)}"
    return (options, rest) if rest else None


def _is_program(argument: str) -> bool:
    """Whether Python runs it: -m, what is named .py, and files that say so, as the commands that pip installs do."""
    if argument.startswith("-"):
        return argument == "-m"
    if argument.endswith(".py"):
        return True
    try:
        with open(argument, "rb") as file:
            first = file.readline(256)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first


def _read_options(arguments: list[str]) -> dict[str, Any]:
    """The delegate's options that stand before the program; a wrong one raises ValueError."""
    given: dict[str, Any] = {}
    for argument in arguments:
        key, equals, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--"):
            raise ValueError(f"fuselite: '{argument}' is no option: --num_threads=2")
        if not equals and key in Options.__annotations__:
            raise ValueError(f"fuselite: {argument} has no value; write {argument}=VALUE before the program")
        given[key] = value
    Delegate(**given)  # tells of what is unknown
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
    found = _python_program(arguments[1:]) if arguments[:1] == ["run"] else None
    try:
        if found is None:
            tool = _library.tool_path()
            sys.stdout.flush()
            os.execv(tool, ["fuselite", *arguments])
        options, program = _read_options(found[0]), found[1]
        if program == ["-m"]:
            raise ValueError("fuselite: a module's name is missing after -m")
        if program[0] != "-m" and not os.path.isfile(program[0]):
            raise ValueError(f"fuselite: {program[0]}: no such file")
    except (ImportError, ValueError) as error:
        sys.exit(str(error))
    _run_program(options, program)


if __name__ == "__main__":
    main()
