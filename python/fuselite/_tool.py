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
from fuselite._delegate import as_text


@contextlib.contextmanager
def model_file(model: Any) -> Iterator[str]:
    """The path of `model`: a path, or a model's bytes, which go to a file for as long as the context lives."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        with tempfile.TemporaryDirectory(prefix="fuselite-") as folder:
            path = pathlib.Path(folder) / "model.tflite"
            path.write_bytes(model)
            yield str(path)
    else:
        yield os.fspath(model)


@contextlib.contextmanager
def input_files(inputs: Any) -> Iterator[list[str]]:
    """Arguments that name the inputs: an array, a list of them in the model's order, or a dictionary by name.

    Instead of an array, the path of a .npy file or of an image.
    """
    import numpy as np

    if inputs is None:
        named: list[tuple[str, Any]] = []
    elif isinstance(inputs, dict):
        named = [(f"{name}=", value) for name, value in inputs.items()]
    else:
        named = [("", value) for value in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
    with tempfile.TemporaryDirectory(prefix="fuselite-") as folder:
        arguments = []
        for i, (prefix, value) in enumerate(named):
            if isinstance(value, (str, os.PathLike)):
                path = pathlib.Path(value)
            else:
                path = pathlib.Path(folder) / f"{i}.npy"
                np.save(path, value)
            arguments += ["--input", f"{prefix}{path}"]
        yield arguments


def option_arguments(options: dict[str, Any]) -> list[str]:
    """Options of the delegate as flags."""
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
