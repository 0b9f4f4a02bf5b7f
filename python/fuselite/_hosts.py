"""Which packages with an interpreter are installed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType

# The module of each package that defines its Interpreter, the one to prefer first.
MODULES = {
    "ai_edge_litert": "ai_edge_litert.interpreter",
    "tflite_runtime": "tflite_runtime.interpreter",
    "tensorflow": "tensorflow.lite.python.interpreter",
}
OWN = "fuselite"


def installed() -> list[str]:
    """The names of the packages that are there, the one that would be taken first. Imports none of them."""
    return sorted(
        (name for name in MODULES if name in sys.modules or importlib.util.find_spec(name) is not None),
        key=lambda name: MODULES[name] not in sys.modules,  # what the program uses already
    )


def load(name: str | None) -> tuple[str, ModuleType | None]:
    """The host's name and module: the one asked for, or else the first that can be imported, or else our own."""
    if name is not None:
        if name == OWN:
            return OWN, None
        if name not in MODULES:
            raise ValueError(f"fuselite: there is no host '{name}'; write {', '.join(MODULES)} or {OWN}")
        return name, importlib.import_module(MODULES[name])
    for candidate in installed():
        try:
            return candidate, importlib.import_module(MODULES[candidate])
        except ImportError:
            continue  # a package of another Python or CPU
    return OWN, None
