"""Runs the command line and reads what it writes."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from fuselite import _library
from fuselite._delegate import Delegate, as_text


@contextlib.contextmanager
def model_file(model: Any) -> Iterator[str]:
    """The path of `model`: a path, or a model's bytes, which go to a file for as long as the context lives."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        with tempfile.TemporaryDirectory(prefix="fuselite-") as folder:
            path = pathlib.Path(folder) / "model.tflite"
            path.write_bytes(model)
            with _told_as({str(path): "the model"}):
                yield str(path)
    else:
        yield os.fspath(model)


@contextlib.contextmanager
def input_files(model: str, inputs: Any) -> Iterator[list[str]]:
    """Arguments that name the inputs: an array, a list of them in the model's order, or a dictionary by name.

    Instead of an array, the path of a .npy file or of an image.
    """
    import numpy as np

    if inputs is None:
        given: list[tuple[Any, Any]] = []
    elif isinstance(inputs, dict):
        given = list(inputs.items())
    else:
        given = list(enumerate(inputs if isinstance(inputs, (list, tuple)) else [inputs]))
    with tempfile.TemporaryDirectory(prefix="fuselite-") as folder:
        arguments, names = [], {}
        for i, (key, value) in enumerate(given):
            if isinstance(value, (str, os.PathLike)):
                path = os.fspath(value)
            else:
                path = os.path.join(folder, f"{i}.npy")
                names[path] = f"array {key!r}"
                np.save(path, _as_array(value, model, key))
            arguments += ["--input", f"{key}={path}" if isinstance(inputs, dict) else path]
        with _told_as(names):
            yield arguments


@contextlib.contextmanager
def _told_as(names: dict[str, str]) -> Iterator[None]:
    """What the command line says of our temporary files, with the names that the caller knows."""
    try:
        yield
    except ToolError as error:
        text = str(error)
        for path, name in names.items():
            text = text.replace(path, name)
        raise ToolError(text) from None


def _as_array(value: Any, model: str, key: int | str) -> Any:
    """`value` in the order and with the bytes that the command line reads."""
    import numpy as np

    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"fuselite: array {key!r}: {error}") from None
    if not hasattr(value, "dtype"):
        array = _as_type(array, _type_of(model, key))
    return array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)


def _as_type(array: Any, wanted: Any) -> Any:
    """Python's numbers, which have no type, as those of an input; as they are where that has other ones."""
    import numpy as np

    if wanted is None or not (np.issubdtype(array.dtype, np.number) and np.issubdtype(wanted, np.number)):
        return array
    if np.issubdtype(array.dtype, np.inexact):
        return array.astype(wanted) if np.can_cast(array.dtype, wanted, "same_kind") else array
    converted = array.astype(wanted)
    return converted if np.array_equal(converted, array) else array


def _type_of(model: str, key: int | str) -> Any:
    """The type of the input of that place or name; None where there is none, of which the command line tells."""
    from fuselite._own import OwnInterpreter

    try:
        interpreter = OwnInterpreter(model)
    except (RuntimeError, ValueError):
        return None
    by_signature = interpreter._library.FuseliteInterpreterSignatureInput(interpreter._handle, None, str(key).encode())
    for place, detail in enumerate(interpreter.get_input_details()):
        if key in (place, detail["name"]) or detail["index"] == by_signature:
            return detail["dtype"]
    return None


def option_arguments(options: dict[str, Any]) -> list[str]:
    """Options of the delegate as flags; another one raises ValueError, which names the nearest."""
    Delegate(**options)
    return [f"--{key}={as_text(value)}" for key, value in options.items() if value is not None]


class ToolError(RuntimeError):
    """The command line failed; the message is its own."""


def run(*arguments: str, fails_with: tuple[int, ...] = ()) -> str:
    """The standard output of the command. What takes longer than a second shows its progress.

    A wrong option raises ValueError, another failure ToolError; not the exit statuses `fails_with` of a command that gave
    its report.
    """
    process = subprocess.Popen(
        [_library.tool_path(), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "FUSELITE_PROGRESS": "always" if _shows_progress() else "never"},
    )
    # Both pipes are emptied while the command runs, or it would wait for us.
    output: list[bytes] = []
    reader = threading.Thread(target=lambda: output.append(process.stdout.read()))  # type: ignore[union-attr]
    reader.start()
    errors = _forward_progress(process.stderr)
    reader.join()
    process.wait()
    text = output[0].decode(errors="replace")
    if process.returncode != 0 and not (text and process.returncode in fails_with):
        message = errors.strip() or f"fuselite: the command {arguments[0]} ended with status {process.returncode}"
        raise ValueError(message) if process.returncode == 2 else ToolError(message)
    return text


def _shows_progress() -> bool:
    """On a terminal, and in a notebook."""
    return sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)


def _forward_progress(stream: Any) -> str:
    """Passes on the progress, which begins with a carriage return; what else the command said."""
    errors = b""
    while chunk := stream.read1(65536):
        for part in chunk.replace(b"\r", b"\n\r").split(b"\n"):
            if part.startswith(b"\r"):
                sys.stderr.write(part.decode(errors="replace"))
                sys.stderr.flush()
            elif part:
                errors += part + b"\n"
    return errors.decode(errors="replace")
