"""Makes fuselite the default of the interpreters of other packages, in this process."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import inspect
import logging
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fuselite import _hosts, _library
from fuselite._delegate import Delegate

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from fuselite._delegate import Options

_log = logging.getLogger("fuselite")

# A program that asks for these wants an interpreter without default delegates: ours is one.
_RESOLVERS_WITHOUT_DEFAULTS = {"BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"}


class _Default:
    """What is on while fuselite is the default."""

    def __init__(self) -> None:
        self.options: dict[str, Any] | None = None  # None: off
        self.originals: dict[type, Any] = {}  # constructors that were replaced, by class
        self.finder = _Finder()


class _Finder(importlib.abc.MetaPathFinder):
    """Replaces the constructor in a host's module that the program imports later."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _hosts.MODULES.values():
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if _default.options is not None:
                _replace(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


_default = _Default()


def _replace(module: ModuleType) -> None:
    """Makes `module`'s Interpreter, in whatever names the program holds it, apply the delegate."""
    interpreter = module.Interpreter
    if interpreter in _default.originals:
        return
    original = interpreter.__init__
    parameters = inspect.signature(original)
    if "experimental_delegates" not in parameters.parameters:
        _log.warning("%s takes no delegates and is left as it is", module.__name__)
        return

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        options = _default.options
        try:
            call = parameters.bind(self, *args, **kwargs)
        except TypeError:
            original(self, *args, **kwargs)  # which says what is wrong
            return
        if options is not None and _wants_default(call.arguments):
            delegates = [*(call.arguments.get("experimental_delegates") or ()), Delegate(**options)]
            call.arguments["experimental_delegates"] = delegates
        original(*call.args, **call.kwargs)

    _default.originals[interpreter] = original
    interpreter.__init__ = __init__
    _log.info("fuselite is the default of %s", module.__name__)


def _wants_default(given: dict[str, Any]) -> bool:
    resolver = given.get("experimental_op_resolver_type")
    if getattr(resolver, "name", None) in _RESOLVERS_WITHOUT_DEFAULTS:
        return False
    return not any(isinstance(delegate, Delegate) for delegate in given.get("experimental_delegates") or ())


def enable(**options: Unpack[Options]) -> None:
    """Makes fuselite the default of ai_edge_litert, tflite_runtime and tf.lite in this process.

    From then on each ``Interpreter`` of theirs is made with the delegate, whether they are imported already or later.
    Not those that the program makes with an ``experimental_op_resolver_type`` without default delegates, which is how it
    asks for plain kernels. Calling it again changes the options. A wrong option raises ValueError.
    """
    Delegate(**options)  # tells of a wrong option here, not in the host's constructor
    _enable(dict(options))


def _enable(options: dict[str, Any]) -> None:
    _default.options = options
    if _default.finder not in sys.meta_path:
        sys.meta_path.insert(0, _default.finder)
    for name in _hosts.MODULES.values():
        if name in sys.modules:
            _replace(sys.modules[name])


def disable() -> None:
    """Undoes enable(), and ends the threads that wait for work. Interpreters made meanwhile keep the delegate."""
    _default.options = None
    if _default.finder in sys.meta_path:
        sys.meta_path.remove(_default.finder)
    for interpreter, original in _default.originals.items():
        interpreter.__init__ = original
    _default.originals.clear()
    if _library.loaded():
        _library.load().FuseliteReleaseThreads()


def is_enabled() -> bool:
    """Whether fuselite is the default in this process."""
    return _default.options is not None
