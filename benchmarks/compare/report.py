"""The figures of a comparison as a Markdown table and as a page with charts that needs nothing from elsewhere."""

import html
import json
import math
import statistics

from names import DESCRIPTIONS, LOADS, OURS, PEERS, parse_load

KINDS = ("float", "dynamic range", "int8", "uint8")


def peer_ms(row):
    """The time of the faster peer; None where none runs the model."""
    return min((row["engines"][name]["ms"] for name in PEERS if name in row["engines"]), default=None)


def gain(row, engine=OURS):
    """How many times as fast as the better peer."""
    peer = peer_ms(row)
    return peer / row["engines"][engine]["ms"] if peer and engine in row["engines"] else None


def _number(value, digits=3):
    """Three significant digits, without an exponent; a dash for nothing."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def _error(value):
    return "–" if value is None else f"{value:.2g}"


def _share(row):
    return row["roofline"] and row["roofline"]["share"]


def _summary(rows):
    """(name, geometric mean, least) of the gains, by arithmetic and of all."""
    for kind in (*KINDS, "all"):
        gains = [g for row in rows if kind in (row["arithmetic"], "all") and (g := gain(row))]
        if gains:
            yield kind, len(gains), statistics.geometric_mean(gains), min(gains)


def _load_gain(figures, key):
    """How many times as good as the better peer: more in a second, or fewer milliseconds."""
    better = max if key == "per_second" else min
    peers = [figures[name][key] for name in PEERS if name in figures]
    if not peers or OURS not in figures:
        return None
    peer, ours = better(peers), figures[OURS][key]
    return ours / peer if better is max else peer / ours


def _load_rows(row, names):
    """The lines of the model's loads: a figure of each engine and the gain."""
    for load, told in row.get("loads", {}).items():
        for key, unit in LOADS[parse_load(load)[0]].items() if told["engines"] else ():
            values = [_number(told["engines"].get(name, {}).get(key)) for name in names]
            gain_ = _load_gain(told["engines"], key)
            yield [row["model"], load, unit, *values, f"{gain_:.2f}x" if gain_ else "–"]


def _loads_table(rows, names):
    """Markdown: what each engine does under the loads; nothing where none were asked for."""
    lines = [cells for row in rows for cells in _load_rows(row, names)]
    if not lines:
        return []
    head = ["model", "load", "figure", *names, "gain"]
    failed = [f"{row['model']} with {load}: {told['failed'][OURS]}" for row in rows for load, told in row.get("loads", {}).items()
              if OURS in told["failed"]]  # fmt: skip
    return ["Under loads:", "", *(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines)), "", *failed]


def table(results):
    """Markdown: a table of the models, one of the gains and one of the loads, for each number of threads."""
    text = [f"Machine: {results['machine']}.", ""]
    names = [name for name in DESCRIPTIONS if any(name in row["engines"] for row in results["rows"])]
    for threads in sorted({row["threads"] for row in results["rows"]}):
        rows = [row for row in results["rows"] if row["threads"] == threads]
        text += [f"Milliseconds with {threads} thread{'s' * (threads > 1)}:", ""]
        head = ["model", "arithmetic", *names, "gain", "part of the peak", "fuselite's error", "XNNPACK's error"]
        text += [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for row in rows:
            times = [_number(row["engines"].get(name, {}).get("ms")) if name not in row["failed"] else "fails" for name in names]
            errors = [_error(row["engines"].get(name, {}).get("error")) for name in (OURS, "xnnpack")]
            share = _share(row)
            cells = [row["model"], row["arithmetic"], *times, f"{g:.2f}x" if (g := gain(row)) else "–",
                     f"{share:.0%}" if share else "–", *errors]  # fmt: skip
            text.append(f"| {' | '.join(cells)} |")
        text += ["", "| gain over the better peer | models | geometric mean | least |", "|---|---|---|---|"]
        text += [f"| {kind} | {count} | {mean:.2f}x | {least:.2f}x |" for kind, count, mean, least in _summary(rows)]
        text += ["", *_loads_table(rows, names)]
    text += [f"Left out, LiteRT cannot run it: {name}: {why}" for name, why in results["passed_over"].items()]
    return "\n".join(text)


# --- charts ---

WIDTH, LABEL, RIGHT, BAR, GAP = 860, 250, 70, 13, 7


class Scale:
    """From values to pixels; `log` where they span orders of magnitude."""

    def __init__(self, values, log=False, start=0.0):
        self.log = log
        self.low, self.high = (min([*values, start or min(values)]), max(values)) if log else (0.0, max([*values, start]))
        if log:
            self.low, self.high = self.low / 1.15, self.high * 1.15

    def __call__(self, value):
        room = WIDTH - LABEL - RIGHT
        if self.log:
            return LABEL + room * math.log(value / self.low) / math.log(self.high / self.low)
        return LABEL + room * value / (self.high or 1)


def bars(groups, scale, base=None, mark=None):
    """SVG of horizontal bars: groups of (label, [(value, class, text)]), from `base` on, with a line at `mark`."""
    lines, y = [], 4
    for label, values in groups:
        middle = y + len(values) * BAR / 2 + 4
        lines.append(f'<text x="{LABEL - 8}" y="{middle:.0f}" text-anchor="end">{html.escape(label)}</text>')
        for value, kind, text in values:
            start = scale(base) if base else LABEL
            left, right = sorted((start, scale(value)))
            lines.append(
                f'<rect class="{kind}" x="{left:.1f}" y="{y}" width="{max(right - left, 1):.1f}" height="{BAR - 2}"/>'
                f'<text class="value" x="{max(right, start) + 5:.1f}" y="{y + 9}">{html.escape(text)}</text>'
            )
            y += BAR
        y += GAP
    if mark:
        lines.append(f'<line x1="{scale(mark):.1f}" x2="{scale(mark):.1f}" y1="0" y2="{y}"/>')
    return f'<svg viewBox="0 0 {WIDTH} {y}" role="img">{"".join(lines)}</svg>'


def _class(name):
    return name.replace(" ", "-").replace("+", "-")


def _key(names):
    return '<p class="key">' + " ".join(f'<span class="{_class(n)}"></span>{html.escape(n)}' for n in names) + "</p>"


def _ordered(rows):
    return sorted(rows, key=lambda row: (KINDS.index(row["arithmetic"]), row["model"]))


def _gain_chart(rows):
    gains = [(row, g) for row in _ordered(rows) if (g := gain(row))]
    if not gains:
        return ""
    scale = Scale([g for _, g in gains], log=True, start=1.0)
    groups = [(row["model"], [(g, _class(row["arithmetic"]), f"{g:.2f}")]) for row, g in gains]
    kinds = [kind for kind in KINDS if any(row["arithmetic"] == kind for row, _ in gains)]
    return ("<h3>Times as fast as the better of XNNPACK and OpenVINO</h3>"
            f"{_key(kinds)}{bars(groups, scale, base=1.0, mark=1.0)}")  # fmt: skip


def _peak_chart(rows):
    shares = [(row, share) for row in _ordered(rows) if (share := _share(row))]
    if not shares:
        return ""
    groups = [(row["model"], [(share * 100, _class(row["arithmetic"]), f"{share:.0%}")]) for row, share in shares]
    return ("<h3>Part of what the machine's peaks allow</h3><p>Operations at the measured peak of their kind, or bytes at the "
            f"measured bandwidth, whichever is slower, against the time.</p>{bars(groups, Scale([100.0]))}")  # fmt: skip


def _cold_chart(rows, key, title, unit):
    groups, values = [], []
    for row in _ordered(rows):
        figures = [(name, max(row["cold"][name][key], 0.01)) for name in DESCRIPTIONS if name in row["cold"]]
        values += [value for _, value in figures]
        groups.append((row["model"], [(value, _class(name), f"{_number(value)} {unit}") for name, value in figures]))
    if not values:
        return ""
    names = [name for name in DESCRIPTIONS if any(name in row["cold"] for row in rows)]
    return f"<h3>{title}</h3>{_key(names)}{bars(groups, Scale(values, log=True))}"


STYLE = """
:root { --back: #fff; --text: #1c1e21; --line: #c9ccd1; --soft: #61666d; }
@media (prefers-color-scheme: dark) { :root { --back: #16181b; --text: #e6e7e9; --line: #3c4046; --soft: #9ba1a9; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2em auto; padding: 0 1em; background: var(--back);
  color: var(--text); }
svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: var(--text); } svg .value { fill: var(--soft); }
svg line { stroke: var(--text); stroke-dasharray: 3 3; }
.key span { display: inline-block; width: .8em; height: .8em; margin: 0 .4em 0 1em; border-radius: 2px; }
.float, .fuselite { fill: #2a78b5; background: #2a78b5; } .dynamic-range, .openvino { fill: #8a5fb5; background: #8a5fb5; }
.int8, .fuselite-xnnpack { fill: #2f9e6e; background: #2f9e6e; } .uint8, .xnnpack { fill: #d08a2e; background: #d08a2e; }
table { border-collapse: collapse; font-size: 13px; } td, th { padding: 3px 10px 3px 0; border-bottom: 1px solid var(--line);
  text-align: left; } .wide { overflow-x: auto; }
"""


def _html_tables(markdown):
    """The tables of the Markdown, as HTML; other lines as paragraphs."""
    parts, rows = [], []
    for line in [*markdown.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([html.escape(cell.strip()) for cell in line.strip("|").split("|")])
            continue
        if rows:
            head, body = rows[0], rows[2:]
            cells = [f"<tr>{''.join(f'<td>{c}</td>' for c in row)}</tr>" for row in body]
            parts.append(f'<div class="wide"><table><tr>{"".join(f"<th>{c}</th>" for c in head)}</tr>{"".join(cells)}</table></div>')
            rows = []
        if line:
            parts.append(f"<p>{html.escape(line)}</p>")
    return "".join(parts)


def page(results):
    """The whole page."""
    parts = ["<h1>fuselite beside XNNPACK and OpenVINO</h1>", "<ul>"]
    parts += [f"<li>{html.escape(name)}: {html.escape(what)}</li>" for name, what in DESCRIPTIONS.items()]
    parts.append("</ul>")
    for threads in sorted({row["threads"] for row in results["rows"]}):
        rows = [row for row in results["rows"] if row["threads"] == threads]
        parts.append(f"<h2>{threads} thread{'s' * (threads > 1)}</h2>")
        parts += [
            _gain_chart(rows),
            _peak_chart(rows),
            _cold_chart(rows, "first_output_ms", "From the file to the first output, in a fresh process", "ms"),
            _cold_chart(rows, "memory_mib", "Growth of the process's peak memory by it", "MiB"),
        ]
    parts += ["<h2>Figures</h2>", _html_tables(table(results))]
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>fuselite</title><style>{STYLE}</style></head>'
            f"<body>{''.join(parts)}</body></html>\n")  # fmt: skip


def write(results, folder):
    """table.md, page.html and figures.json."""
    (folder / "figures.json").write_text(json.dumps(results, indent=1))
    (folder / "table.md").write_text(table(results) + "\n")
    (folder / "page.html").write_text(page(results))
