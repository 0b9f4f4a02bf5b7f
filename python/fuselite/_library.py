"""The library libfuselite.so, through ctypes: where it is, and its functions with their types."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
from typing import NoReturn

_HERE = pathlib.Path(__file__).resolve().parent

_POINTER, _SIZE, _TEXT, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_int32
REPORT_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_char_p)


class InterpreterOptions(ctypes.Structure):
    """FuseliteInterpreterOptions."""

    _fields_ = [("struct_size", _SIZE), ("num_threads", _INT), ("preserve_tensors", _INT), ("signature", _TEXT)]


class Tensor(ctypes.Structure):
    """FuseliteTensor."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("rank", _INT),
        ("dims", _INT * 16),
        ("scale", ctypes.c_float),
        ("zero_point", _INT),
        ("name", _TEXT),
        ("data", _POINTER),
        ("bytes", _SIZE),
        ("scale_count", _SIZE),
        ("scales", ctypes.POINTER(ctypes.c_float)),
        ("zero_points", ctypes.POINTER(_INT)),
        ("quantized_dimension", _INT),
        ("dims_signature", _INT * 16),
        ("is_variable", _INT),
        ("is_constant", _INT),
    ]


# Results and arguments of the functions of include/fuselite.
_FUNCTIONS = {
    "FuseliteVersion": (_TEXT, []),
    "FuseliteFree": (None, [_POINTER]),
    "FuseliteReleaseThreads": (None, []),
    "FuseliteLastError": (_TEXT, []),
    "FuseliteLastStatus": (ctypes.c_int, []),
    "FuseliteDelegateExplain": (_POINTER, [_POINTER, _TEXT]),
    "FuseliteDelegateCancel": (None, [_POINTER]),
    "FuseliteModelLoadFile": (_POINTER, [_TEXT]),
    "FuseliteModelLoadMemory": (_POINTER, [_POINTER, _SIZE]),
    "FuseliteModelDelete": (None, [_POINTER]),
    "FuseliteModelSignatureCount": (_SIZE, [_POINTER]),
    "FuseliteModelSignatureKey": (_TEXT, [_POINTER, _SIZE]),
    "FuseliteModelSignatureInputName": (_TEXT, [_POINTER, _SIZE, _SIZE]),
    "FuseliteModelSignatureOutputName": (_TEXT, [_POINTER, _SIZE, _SIZE]),
    "FuseliteInterpreterCreate": (_POINTER, [_POINTER, ctypes.POINTER(InterpreterOptions)]),
    "FuseliteInterpreterDelete": (None, [_POINTER]),
    "FuseliteInterpreterApplyDelegate": (ctypes.c_int, [_POINTER, _POINTER]),
    "FuseliteInterpreterInputCount": (_SIZE, [_POINTER]),
    "FuseliteInterpreterOutputCount": (_SIZE, [_POINTER]),
    "FuseliteInterpreterTensorCount": (_SIZE, [_POINTER]),
    "FuseliteInterpreterInput": (_INT, [_POINTER, _SIZE]),
    "FuseliteInterpreterOutput": (_INT, [_POINTER, _SIZE]),
    "FuseliteInterpreterSignatureInput": (_INT, [_POINTER, _TEXT, _TEXT]),
    "FuseliteInterpreterSignatureOutput": (_INT, [_POINTER, _TEXT, _TEXT]),
    "FuseliteInterpreterTensor": (ctypes.c_int, [_POINTER, _INT, ctypes.POINTER(Tensor)]),
    "FuseliteInterpreterResizeInput": (ctypes.c_int, [_POINTER, _SIZE, ctypes.POINTER(_INT), _SIZE]),
    "FuseliteInterpreterAllocate": (ctypes.c_int, [_POINTER]),
    "FuseliteInterpreterInvoke": (ctypes.c_int, [_POINTER]),
    "FuseliteInterpreterResetVariables": (None, [_POINTER]),
    "FuseliteInterpreterCopyIn": (ctypes.c_int, [_POINTER, _SIZE, _POINTER, _SIZE]),
    "tflite_plugin_create_delegate": (_POINTER, [ctypes.POINTER(_TEXT), ctypes.POINTER(_TEXT), _SIZE, REPORT_ERROR]),
    "tflite_plugin_destroy_delegate": (None, [_POINTER]),
}


class Owner:
    """What owns memory of the library, which no second object may own, in this process or another."""

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        raise TypeError(f"fuselite: cannot pickle or duplicate {name} objects: make another one, in the other process")


def _find(what: str, variable: str, installed: str, built: str) -> pathlib.Path:
    """The file that the environment names, else the package's, else the one built in the checkout of this file."""
    named = os.environ.get(variable)
    candidates = [pathlib.Path(named)] if named else [_HERE / installed, _HERE.parents[1] / "build" / "release" / built]
    for path in candidates:
        if path.is_file():
            return path
    raise ImportError(
        f"fuselite: {what} is not at {' or '.join(map(str, candidates))}: "
        "install the wheel, or build the checkout (cmake --build --preset release)"
    )


def library_path() -> str:
    """The path of the shared library, for whoever loads external delegates by their path.

    ``benchmark_model --external_delegate_path=...``, LiteRT's ``load_delegate(path, options)``, or a C++ program.
    ``FUSELITE_LIBRARY`` names another one.
    """
    return str(_find("libfuselite.so", "FUSELITE_LIBRARY", "lib/libfuselite.so.0", "lib/libfuselite.so"))


def tool_path() -> str:
    """The path of the command line's program. ``FUSELITE_TOOL`` names another one."""
    return str(_find("the program fuselite", "FUSELITE_TOOL", "bin/fuselite", "tools/fuselite"))


@functools.cache
def load() -> ctypes.CDLL:
    """The loaded library. Calls release the GIL."""
    library = ctypes.CDLL(library_path())
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def loaded() -> bool:
    """Whether this process has loaded the library yet."""
    return load.cache_info().currsize > 0


def last_error(library: ctypes.CDLL) -> str:
    """What the last failing call of this thread said."""
    return str(library.FuseliteLastError().decode(errors="replace"))
