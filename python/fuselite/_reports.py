"""What the commands tell, as Python objects that print as tables."""

from __future__ import annotations

import dataclasses
import html
import json
import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any


def _text_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [list(map(str, header)), *(list(map(str, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def _html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    def line(cells: Iterable[object], tag: str) -> str:
        return "<tr>" + "".join(f'<{tag} style="text-align:left">{html.escape(str(c))}</{tag}>' for c in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><caption>{html.escape(caption)}</caption><thead>{line(header, 'th')}</thead><tbody>{body}</tbody></table>"


@dataclasses.dataclass(frozen=True)
class Node:
    """One operator of the model."""

    node: int
    op: str
    outputs: str  # shapes
    claimed: bool
    reason: str = ""  # why it was not taken


@dataclasses.dataclass(frozen=True)
class Step:
    """What one or more operators were fused to."""

    ops: str
    kernel: str
    nodes: tuple[int, ...]
    output_shape: str
    multiply_adds: int
    weight_bytes: int


@dataclasses.dataclass(frozen=True)
class Partition:
    """Operators that run as one node of the host."""

    nodes: tuple[int, ...]
    compiled: bool
    threads: int
    compile_ms: float
    steps: tuple[Step, ...]
    error: str = ""  # why it could not be compiled


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What became of each operator: taken, or why not; and what the taken ones were compiled to.

    `nodes` and `partitions` are those of the main graph; `data` is everything, as ``fuselite explain --format json`` has it.
    """

    data: dict[str, Any] = dataclasses.field(repr=False)
    nodes: tuple[Node, ...]
    partitions: tuple[Partition, ...]

    @classmethod
    def from_json(cls, text: str) -> Explanation:
        """From the JSON of the command line or of the C interface."""
        data = json.loads(text)
        main = data["graphs"][0] if data["graphs"] else {"nodes": [], "partitions": []}
        nodes = tuple(Node(n["node"], n["op"], str(n["outputs"]), n["claimed"], n.get("reason", "")) for n in main["nodes"])
        partitions = tuple(
            Partition(
                tuple(p["nodes"]),
                p["compiled"],
                p.get("threads", 0),
                p.get("compile_ms", 0.0),
                tuple(
                    Step(s["ops"], s["kernel"], tuple(s["nodes"]), str(s["output_shape"]), s["multiply_adds"], s["weight_bytes"])
                    for s in p.get("steps", [])
                ),
                p.get("error", ""),
            )
            for p in main["partitions"]
        )
        return cls(data, nodes, partitions)

    @property
    def isa(self) -> str:
        """The instruction set that is used."""
        return str(self.data["isa"])

    @property
    def threads(self) -> int:
        """Threads of one run; 0 before allocate_tensors() and where nothing was taken."""
        return max((partition.threads for partition in self.partitions), default=0)

    @property
    def claimed(self) -> int:
        """How many nodes were taken."""
        return sum(node.claimed for node in self.nodes)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all partitions, in running order."""
        return tuple(step for partition in self.partitions for step in partition.steps)

    def _summary(self) -> str:
        threads = f", threads: {self.threads}" if self.threads else ""
        return (
            f"{self.claimed} of {len(self.nodes)} nodes taken, partitions: {len(self.partitions)}, "
            f"steps: {len(self.steps)}, isa: {self.isa}{threads}"
        )

    def _rows(self) -> list[tuple[object, ...]]:
        place = {node: step for step in self.steps for node in step.nodes}
        rows: list[tuple[object, ...]] = []
        for node in self.nodes:
            step = place.get(node.node)
            fate = f"{step.ops} [{step.kernel}]" if step else "taken" if node.claimed else f"left: {node.reason}"
            rows.append((node.node, node.op, node.outputs, fate))
        return rows

    _HEADER = ("node", "operator", "outputs", "runs as")

    def __str__(self) -> str:
        return f"{self._summary()}\n{_text_table(self._HEADER, self._rows())}"

    def _repr_html_(self) -> str:
        return _html_table(self._summary(), self._HEADER, self._rows())


@dataclasses.dataclass(frozen=True)
class ProfileRow:
    """The time of one step, or of one operator that the host runs."""

    name: str
    ops: str
    kernel: str
    avg_us: float
    min_us: float
    max_us: float
    share: float  # of the run, from 0 to 1
    runs: int


@dataclasses.dataclass(frozen=True)
class Profile:
    """Where a run's time went, in running order."""

    rows: tuple[ProfileRow, ...]
    threads: int
    trace: dict[str, Any] = dataclasses.field(repr=False)

    def to_chrome_trace(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """The steps of each thread over the last runs, for https://ui.perfetto.dev or chrome://tracing."""
        if path is not None:
            pathlib.Path(path).write_text(json.dumps(self.trace))
        return self.trace

    _HEADER = ("avg us", "min us", "max us", "%", "runs as")

    def _cells(self) -> list[tuple[object, ...]]:
        return [
            (f"{r.avg_us:.1f}", f"{r.min_us:.1f}", f"{r.max_us:.1f}", f"{100 * r.share:.1f}",
             f"{r.ops} [{r.kernel}]" if r.kernel else r.ops)
            for r in self.rows
        ]  # fmt: skip

    def __str__(self) -> str:
        return _text_table(self._HEADER, self._cells())

    def _repr_html_(self) -> str:
        return _html_table(f"{len(self.rows)} steps, threads: {self.threads}", self._HEADER, self._cells())

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Any:
        return iter(self.rows)


@dataclasses.dataclass(frozen=True)
class OutputDifference:
    """How far an output is from the reference kernels' one."""

    run: int
    output: str
    dtype: str
    max: float  # infinite where one of the two is no number, or has another shape
    mean: float
    allowed: float
    within: bool


@dataclasses.dataclass(frozen=True)
class Difference:
    """A comparison with the reference kernels. True where every output is within its bound."""

    outputs: tuple[OutputDifference, ...]
    first_layer: str = ""  # the first tensor beyond its bound, where layers were asked for

    def __bool__(self) -> bool:
        return all(output.within for output in self.outputs) and not self.first_layer

    @property
    def max(self) -> float:
        """The largest difference of all outputs."""
        return max((output.max for output in self.outputs), default=0.0)

    _HEADER = ("output", "type", "max", "mean", "allowed", "verdict")

    def _rows(self) -> list[tuple[object, ...]]:
        return [
            (o.output, o.dtype, f"{o.max:.3g}", f"{o.mean:.3g}", f"{o.allowed:.3g}", "within" if o.within else "beyond")
            for o in self.outputs
        ]

    def __str__(self) -> str:
        return _text_table(self._HEADER, self._rows()) + (f"\n{self.first_layer}" if self.first_layer else "")

    def _repr_html_(self) -> str:
        return _html_table(self.first_layer or "difference from the reference kernels", self._HEADER, self._rows())


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """How long a model takes, in microseconds."""

    avg_us: float
    median_us: float
    min_us: float
    max_us: float
    p5_us: float
    p95_us: float
    std_us: float
    runs: int
    first_us: float
    init_us: float
    init_mb: float
    overall_mb: float

    def __str__(self) -> str:
        return (
            f"{self.avg_us:.1f} us on average over {self.runs} runs (median {self.median_us:.1f}, min {self.min_us:.1f}, "
            f"p95 {self.p95_us:.1f}); first {self.first_us:.1f}, init {self.init_us:.1f}"
        )
