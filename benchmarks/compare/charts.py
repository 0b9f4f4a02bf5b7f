"""Charts of a comparison, as SVG."""

import html
import math

from figures import KINDS, decimal, gain, peak_share
from names import DESCRIPTIONS

WIDTH, LABEL, RIGHT, BAR, GAP = 860, 250, 70, 13, 7
GAIN_TITLE = "Times as fast as the better of XNNPACK and OpenVINO"
CHART_STYLE = """
:root { --back: #fff; --text: #1c1e21; --line: #c9ccd1; --soft: #61666d; }
@media (prefers-color-scheme: dark) { :root { --back: #16181b; --text: #e6e7e9; --line: #3c4046; --soft: #9ba1a9; } }
svg text { font-size: 11px; fill: var(--text); } svg .value { fill: var(--soft); } svg .title { font-size: 14px; }
svg line { stroke: var(--text); stroke-dasharray: 3 3; } svg .back { fill: var(--back); }
.float, .fuselite { fill: #2a78b5; background: #2a78b5; } .dynamic-range, .openvino { fill: #8a5fb5; background: #8a5fb5; }
.int8, .fuselite-xnnpack { fill: #2f9e6e; background: #2f9e6e; } .uint8, .xnnpack { fill: #d08a2e; background: #d08a2e; }
"""


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


def _bars(groups, scale, base, mark, top):
    """SVG elements of horizontal bars from `top` on down, and where they end; the rest as in bars()."""
    lines, y = [], top
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
        lines.append(f'<line x1="{scale(mark):.1f}" x2="{scale(mark):.1f}" y1="{top - 4}" y2="{y}"/>')
    return "".join(lines), y


def bars(groups, scale, base=None, mark=None):
    """SVG of horizontal bars: groups of (label, [(value, class, text)]), from `base` on, with a line at `mark`."""
    lines, end = _bars(groups, scale, base, mark, 4)
    return f'<svg viewBox="0 0 {WIDTH} {end}" role="img">{lines}</svg>'


def _class(name):
    return name.replace(" ", "-").replace("+", "-")


def _key(names):
    return '<p class="key">' + " ".join(f'<span class="{_class(n)}"></span>{html.escape(n)}' for n in names) + "</p>"


def _ordered(rows):
    return sorted(rows, key=lambda row: (KINDS.index(row["arithmetic"]), row["model"]))


def _gains(rows):
    """The gains as groups of bars, their scale and the kinds of arithmetic among them."""
    gains = [(row, g) for row in _ordered(rows) if (g := gain(row))]
    groups = [(row["model"], [(g, _class(row["arithmetic"]), f"{g:.2f}")]) for row, g in gains]
    kinds = [kind for kind in KINDS if any(row["arithmetic"] == kind for row, _ in gains)]
    return groups, Scale([g for _, g in gains] or [1.0], log=True, start=1.0), kinds


def gain_chart(rows):
    """What the page shows of the gains; nothing where no peer ran."""
    groups, scale, kinds = _gains(rows)
    if not groups:
        return ""
    return f"<h3>{GAIN_TITLE}</h3>{_key(kinds)}{bars(groups, scale, base=1.0, mark=1.0)}"


def gain_picture(rows, machine, threads):
    """The same as a picture of its own, which a Markdown page can show: an SVG file with title, key and colours of its own."""
    groups, scale, kinds = _gains(rows)
    subtitle = f"{threads} thread{'s' * (threads > 1)}, {machine.partition(' (')[0]}; logarithmic"
    key = "".join(
        f'<rect class="{_class(kind)}" x="{LABEL + 110 * place}" y="46" width="10" height="10"/>'
        f'<text x="{LABEL + 110 * place + 15}" y="55">{html.escape(kind)}</text>'
        for place, kind in enumerate(kinds)
    )
    lines, end = _bars(groups, scale, 1.0, 1.0, 74)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {end + 4}" font-family="system-ui, sans-serif" role="img">'
        f"<style>{CHART_STYLE}</style><title>{GAIN_TITLE}</title>"
        f'<rect class="back" width="{WIDTH}" height="{end + 4}"/>'
        f'<text class="title" x="{LABEL}" y="18">{GAIN_TITLE}</text><text class="value" x="{LABEL}" y="36">{html.escape(subtitle)}</text>'
        f"{key}{lines}</svg>\n"
    )


def peak_chart(rows):
    """What the page shows of the parts of the peak."""
    shares = [(row, share) for row in _ordered(rows) if (share := peak_share(row))]
    if not shares:
        return ""
    groups = [(row["model"], [(share * 100, _class(row["arithmetic"]), f"{share:.0%}")]) for row, share in shares]
    return ("<h3>Part of what the machine's peaks allow</h3><p>Operations at the measured peak of their kind, or bytes at the "
            f"measured bandwidth, whichever is slower, against the time.</p>{bars(groups, Scale([100.0]))}")  # fmt: skip


def cold_chart(rows, key, title, unit):
    """What the page shows of one figure of the engines' starts."""
    groups, values = [], []
    for row in _ordered(rows):
        figures = [(name, max(row["cold"][name][key], 0.01)) for name in DESCRIPTIONS if name in row["cold"]]
        values += [value for _, value in figures]
        groups.append((row["model"], [(value, _class(name), f"{decimal(value)} {unit}") for name, value in figures]))
    if not values:
        return ""
    names = [name for name in DESCRIPTIONS if any(name in row["cold"] for row in rows)]
    return f"<h3>{title}</h3>{_key(names)}{bars(groups, Scale(values, log=True))}"
