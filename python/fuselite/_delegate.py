"""The delegate object that interpreters of every host take."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any, TypedDict

from fuselite import _library

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Options(TypedDict, total=False):
    """What may be asked of the delegate. docs/options.md describes each."""

    num_threads: int
    isa: str
    jit: bool
    fusion: bool
    precision: str
    max_partitions: int
    min_nodes_per_partition: int
    ops_deny: str | list[str]
    max_memory: int | str
    max_multiply_adds: float | str
    cache_dir: str | bytes | os.PathLike[str]
    cache_mode: str
    verbose: bool
    explain_file: str | bytes | os.PathLike[str]
    profile_file: str | bytes | os.PathLike[str]


def as_text(value: Any) -> str:
    """An option's value as the library reads it: True is "on", a list is joined by commas."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (bytes, os.PathLike)):
        return os.fsdecode(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(map(str, value))
    return str(value)


class Delegate(_library.Owner):
    """What ``experimental_delegates=[...]`` of LiteRT's, tflite_runtime's and TensorFlow's Interpreter takes.

    It serves any number of interpreters and is kept alive by them.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        self._pointer: int | None = None
        self._library = _library.load()
        given = {key: as_text(value) for key, value in options.items() if value is not None}
        keys, values = ((ctypes.c_char_p * len(given))(*map(os.fsencode, texts)) for texts in (given, given.values()))
        errors: list[str] = []
        report = _library.REPORT_ERROR(lambda message: errors.append(message.decode(errors="replace")))
        self._pointer = self._library.tflite_plugin_create_delegate(keys, values, len(given), report)
        if not self._pointer:
            raise ValueError("; ".join(errors) or "fuselite: the delegate could not be created")

    def _get_native_delegate_pointer(self) -> int:
        """What the hosts' interpreters ask a delegate for."""
        if not self._pointer:
            raise ValueError("fuselite: the delegate was not created")
        return self._pointer

    def __copy__(self) -> Delegate:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Delegate:
        return self

    def cancel(self) -> None:
        """Ends the runs under way at their next step; their invoke raises. For any thread."""
        self._library.FuseliteDelegateCancel(self._get_native_delegate_pointer())

    def explain_as(self, form: str) -> str:
        """What became of the models it was applied to, as "text", "json" or "dot"."""
        text = self._library.FuseliteDelegateExplain(self._get_native_delegate_pointer(), form.encode())
        if not text:
            raise ValueError(f"fuselite: there is no form '{form}': text, json or dot")
        try:
            return ctypes.string_at(text).decode(errors="replace")
        finally:
            self._library.FuseliteFree(text)

    def __del__(self) -> None:
        if getattr(self, "_pointer", None):
            self._library.tflite_plugin_destroy_delegate(self._pointer)
            self._pointer = None


def load_delegate(**options: Unpack[Options]) -> Delegate:
    """The delegate, for the interpreter of whichever package is installed.

    ::

        from ai_edge_litert.interpreter import Interpreter
        interpreter = Interpreter("model.tflite", experimental_delegates=[fuselite.load_delegate()])

    Raises ValueError for an option that does not exist, or a value that it does not take, naming the nearest one.
    """
    return Delegate(**options)
