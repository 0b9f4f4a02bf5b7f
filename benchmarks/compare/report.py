"""The figures of a comparison as a Markdown table and as a page with charts that needs nothing from elsewhere."""

import html
import json

import charts
from figures import brief, decimal, gain, load_gain, peak_share, summary
from names import DESCRIPTIONS, LOADS, OURS, parse_load


def _load_rows(row, names):
    """The lines of the model's loads: a figure of each engine and the gain."""
    for load, told in row.get("loads", {}).items():
        for key, unit in LOADS[parse_load(load)[0]].items() if told["engines"] else ():
            values = [decimal(told["engines"].get(name, {}).get(key)) for name in names]
            gain_ = load_gain(told["engines"], key)
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


def _by_threads(results):
    """(threads, the rows of so many), from the fewest on."""
    for threads in sorted({row["threads"] for row in results["rows"]}):
        yield threads, [row for row in results["rows"] if row["threads"] == threads]


def table(results):
    """Markdown: a table of the models, one of the gains and one of the loads, for each number of threads."""
    text = [f"Machine: {results['machine']}.", ""]
    names = [name for name in DESCRIPTIONS if any(name in row["engines"] for row in results["rows"])]
    for threads, rows in _by_threads(results):
        text += [f"Milliseconds with {threads} thread{'s' * (threads > 1)}:", ""]
        head = ["model", "arithmetic", *names, "gain", "part of the peak", "fuselite's error", "XNNPACK's error"]
        text += [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for row in rows:
            times = [decimal(row["engines"].get(name, {}).get("ms")) if name not in row["failed"] else "fails" for name in names]
            errors = [brief(row["engines"].get(name, {}).get("error")) for name in (OURS, "xnnpack")]
            share = peak_share(row)
            cells = [row["model"], row["arithmetic"], *times, f"{g:.2f}x" if (g := gain(row)) else "–",
                     f"{share:.0%}" if share else "–", *errors]  # fmt: skip
            text.append(f"| {' | '.join(cells)} |")
        text += ["", "| gain over the better peer | models | geometric mean | least |", "|---|---|---|---|"]
        text += [f"| {kind} | {count} | {mean:.2f}x | {least:.2f}x |" for kind, count, mean, least in summary(rows)]
        text += ["", *_loads_table(rows, names)]
    text += [f"Left out, LiteRT cannot run it: {name}: {why}" for name, why in results["passed_over"].items()]
    return "\n".join(text)


PAGE_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2em auto; padding: 0 1em; background: var(--back);
  color: var(--text); }
svg { width: 100%; height: auto; }
.key span { display: inline-block; width: .8em; height: .8em; margin: 0 .4em 0 1em; border-radius: 2px; }
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
            parts.append(
                f'<div class="wide"><table><tr>{"".join(f"<th>{c}</th>" for c in head)}</tr>{"".join(cells)}</table></div>'
            )
            rows = []
        if line:
            parts.append(f"<p>{html.escape(line)}</p>")
    return "".join(parts)


def page(results):
    """The whole page."""
    parts = ["<h1>fuselite beside XNNPACK and OpenVINO</h1>", "<ul>"]
    parts += [f"<li>{html.escape(name)}: {html.escape(what)}</li>" for name, what in DESCRIPTIONS.items()]
    parts.append("</ul>")
    for threads, rows in _by_threads(results):
        parts.append(f"<h2>{threads} thread{'s' * (threads > 1)}</h2>")
        parts += [
            charts.gain_chart(rows),
            charts.peak_chart(rows),
            charts.cold_chart(rows, "first_output_ms", "From the file to the first output, in a fresh process", "ms"),
            charts.cold_chart(rows, "memory_mib", "Growth of the process's peak memory by it", "MiB"),
        ]
    parts += ["<h2>Figures</h2>", _html_tables(table(results))]
    style = charts.CHART_STYLE + PAGE_STYLE
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>fuselite</title><style>{style}</style></head>'
            f"<body>{''.join(parts)}</body></html>\n")  # fmt: skip


def write(results, folder):
    """table.md, page.html, figures.json, and gains-THREADS.svg for each number of threads."""
    (folder / "figures.json").write_text(json.dumps(results, indent=1))
    (folder / "table.md").write_text(table(results) + "\n")
    (folder / "page.html").write_text(page(results))
    for threads, rows in _by_threads(results):
        (folder / f"gains-{threads}.svg").write_text(charts.gain_picture(rows, results["machine"], threads))
