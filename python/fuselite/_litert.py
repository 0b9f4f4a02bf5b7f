"""LiteRT 2's CompiledModel."""

from __future__ import annotations

import os
import pathlib
from typing import Any

from fuselite import _library

_LIBRARY = "libLiteRtGpuAccelerator.so"  # the name that LiteRT looks for


def environment(**arguments: Any) -> Any:
    """The ``environment`` of a CompiledModel that fuselite accelerates.

    ::

        from ai_edge_litert.compiled_model import CompiledModel
        model = CompiledModel.from_file("model.tflite", environment=fuselite.environment())

    Threads are those of the CPU options (``options=Options(cpu_options=CpuOptions(num_threads=2))``), other options come
    from the environment variables (FUSELITE_ISA=avx2). `arguments` go to ``Environment.create``. In this environment
    LiteRT has no GPU. Raises RuntimeError with the reason where the installed LiteRT cannot take an accelerator.
    """
    try:
        from ai_edge_litert.environment import Environment
    except ImportError as error:
        raise RuntimeError(f"fuselite: CompiledModel is of ai-edge-litert 2.3 and newer: {error}") from error
    return Environment.create(runtime_path=accelerator_directory(), **arguments)


def accelerator_directory() -> str:
    """The directory of the accelerator's library: ``litert-benchmark --runtime_path``."""
    here = pathlib.Path(__file__).resolve().parent
    named = os.environ.get("FUSELITE_LITERT")
    for folder in [pathlib.Path(named)] if named else [here / "litert", here.parents[1] / "build" / "release" / "litert"]:
        if (folder / _LIBRARY).is_file():
            _library.load()  # the accelerator is made of it: what is wrong with it is told here
            return str(folder)
    raise RuntimeError(f"fuselite: {_LIBRARY} is not part of this installation")
