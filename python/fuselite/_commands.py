"""The commands as functions: each runs the command line and gives its report."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
import tempfile
from typing import TYPE_CHECKING, Any

from fuselite import _tool
from fuselite._interpreter import Interpreter
from fuselite._reports import Benchmark, Difference, Explanation, OutputDifference, Profile, ProfileRow

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from fuselite._delegate import Options


def explain(model: str | os.PathLike[str] | bytes | Interpreter, **options: Unpack[Options]) -> Explanation:
    """What becomes of each operator of a model (its path or bytes), or of an interpreter's.

    A model that `max_memory` or `max_multiply_adds` refuses is explained, too: its partition has the reason as `error`.
    """
    if isinstance(model, Interpreter):
        return model.explain()
    with _tool.model_file(model) as path:
        flags = _tool.option_arguments(dict(options))
        return Explanation.from_json(_tool.run("explain", path, "--format", "json", *flags, fails_with=(1,)))


def profile(model: str | os.PathLike[str] | bytes, inputs: Any = None, *, runs: int = 20, **options: Unpack[Options]) -> Profile:
    """Runs a model and says where its time goes.

    `inputs`: an array, the path of a .npy file or of an image, a list of these, or a dictionary by name; else random.
    """
    with _tool.model_file(model) as path, _tool.input_files(path, inputs) as given, tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace.json"
        text = _tool.run(
            "profile", path, "--format", "json", "--num_runs", str(runs), "--chrome-trace", str(trace), *given,
            *_tool.option_arguments(dict(options)),
        )  # fmt: skip
        data = json.loads(text)
        rows = tuple(ProfileRow(**row) for row in data["rows"])
        return Profile(rows, data["threads"], json.loads(trace.read_text()))


def diff(
    model: str | os.PathLike[str] | bytes,
    inputs: Any = None,
    *,
    layers: bool = False,
    runs: int = 1,
    tolerance: float | None = None,
    **options: Unpack[Options],
) -> Difference:
    """Compares a model's results with those of the reference kernels.

    `layers`: also finds the first tensor that differs; `runs`: with so many random inputs; `tolerance`: the greatest
    difference allowed, instead of the one for the output's type.
    """
    with _tool.model_file(model) as path, _tool.input_files(path, inputs) as given:
        more = ["--layers"] if layers else []
        if tolerance is not None:
            more += ["--tolerance", repr(float(tolerance))]
        flags = _tool.option_arguments(dict(options))
        text = _tool.run("diff", path, "--format", "json", "--runs", str(runs), *more, *given, *flags, fails_with=(1,))
        data = json.loads(text)
        for output in data["outputs"]:
            output.update({key: math.inf for key in ("max", "mean") if output[key] is None})
        return Difference(tuple(OutputDifference(**output) for output in data["outputs"]), data.get("first_layer", ""))


def benchmark(
    model: str | os.PathLike[str] | bytes,
    inputs: Any = None,
    *,
    runs: int = 50,
    min_seconds: float = 1.0,
    warmup_seconds: float = 0.5,
    **options: Unpack[Options],
) -> Benchmark:
    """Measures a model, in our own interpreter: at least so many runs and at least so long."""
    with _tool.model_file(model) as path, _tool.input_files(path, inputs) as given, tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        _tool.run(
            "benchmark", "--graph", path, "--num_runs", str(runs), "--min_secs", str(min_seconds),
            "--warmup_min_secs", str(warmup_seconds), "--result_file_path", str(result), *given,
            *_tool.option_arguments(dict(options)),
        )  # fmt: skip
        data = json.loads(result.read_text())["delegate"]
        return Benchmark(**{field.name: data[field.name] for field in dataclasses.fields(Benchmark)})
