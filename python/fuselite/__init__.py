"""Runs .tflite models fast on the CPU: a delegate for LiteRT, tflite_runtime and TensorFlow, or without them.

::

    import fuselite
    interpreter = fuselite.Interpreter("model.tflite", num_threads=4)

See docs/python.md. Nothing is imported or loaded before it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuselite._commands import benchmark, diff, explain, profile
    from fuselite._default import disable, enable, is_enabled
    from fuselite._delegate import Delegate, load_delegate
    from fuselite._interpreter import Interpreter
    from fuselite._library import library_path
    from fuselite._litert import environment
    from fuselite._reports import Benchmark, Difference, Explanation, Profile

__all__ = [
    "Benchmark",
    "Delegate",
    "Difference",
    "Explanation",
    "Interpreter",
    "Profile",
    "benchmark",
    "diff",
    "disable",
    "enable",
    "environment",
    "explain",
    "is_enabled",
    "library_path",
    "load_delegate",
    "profile",
]

_PLACES = {
    "_commands": ("benchmark", "diff", "explain", "profile"),
    "_default": ("disable", "enable", "is_enabled"),
    "_delegate": ("Delegate", "load_delegate"),
    "_interpreter": ("Interpreter",),
    "_library": ("library_path",),
    "_litert": ("environment",),
    "_reports": ("Benchmark", "Difference", "Explanation", "Profile"),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from fuselite._library import load

        return load().FuseliteVersion().decode()
    if name in _MODULE_OF:
        value = getattr(importlib.import_module(f"fuselite.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'fuselite' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__", *(name for name in globals() if name.startswith("__"))})
