"""What a comparison's rows say: gains over the peers, parts of the peak, and how a figure is written."""

import math
import statistics

from names import OURS, PEERS

KINDS = ("float", "dynamic range", "int8", "uint8")


def peer_ms(row):
    """The time of the faster peer; None where none runs the model."""
    return min((row["engines"][name]["ms"] for name in PEERS if name in row["engines"]), default=None)


def gain(row, engine=OURS):
    """How many times as fast as the better peer."""
    peer = peer_ms(row)
    return peer / row["engines"][engine]["ms"] if peer and engine in row["engines"] else None


def decimal(value, digits=3):
    """Three significant digits, without an exponent; a dash for nothing."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def brief(value):
    return "–" if value is None else f"{value:.2g}"


def peak_share(row):
    return row["roofline"] and row["roofline"]["share"]


def summary(rows):
    """(name, geometric mean, least) of the gains, by arithmetic and of all."""
    for kind in (*KINDS, "all"):
        gains = [g for row in rows if kind in (row["arithmetic"], "all") and (g := gain(row))]
        if gains:
            yield kind, len(gains), statistics.geometric_mean(gains), min(gains)


def load_gain(figures, key):
    """How many times as good as the better peer: more in a second, or fewer milliseconds."""
    better = max if key == "per_second" else min
    peers = [figures[name][key] for name in PEERS if name in figures]
    if not peers or OURS not in figures:
        return None
    peer, ours = better(peers), figures[OURS][key]
    return ours / peer if better is max else peer / ours
