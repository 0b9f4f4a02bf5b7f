"""The combinations of hosts and options in which a model must give the same outputs, and runs in them."""

import itertools
import os
import platform

import own_interpreter
import running
from ai_edge_litert import interpreter as litert

HOSTS = ["litert", "own"]
ISAS = (
    ["scalar", "ssse3", "sse4", "avx2", "avxvnni", "avx512", "avx512vnni", "avx512bf16", "amx"]
    if platform.machine() in ("x86_64", "AMD64")
    else ["scalar", "neon"]
)
SWITCH = ["on", "off"]
# Four columns of which any two hold every pair of values; with the rows' opposites, in every ISA both values of each.
PATTERNS = [(0, 0, 0, 0), (0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1, 0)]


def full():
    """Every (host, options)."""
    return [
        (host, {"num_threads": threads, "isa": isa, "jit": jit, "fusion": fusion})
        for host, threads, isa, jit, fusion in itertools.product(HOSTS, (1, 2), ISAS, SWITCH, SWITCH)
    ]


def pairwise():
    """Of those a few that hold every pair of values of two of the five factors; every ISA twice."""
    rows = []
    for i, isa in enumerate(ISAS):
        for flip in (0, 1):
            host, threads, jit, fusion = (bit ^ flip for bit in PATTERNS[i % len(PATTERNS)])
            options = {"num_threads": 1 + threads, "isa": isa, "jit": SWITCH[jit], "fusion": SWITCH[fusion]}
            rows.append((HOSTS[host], options))
    return rows


def combinations(quick):
    """All of them for models that run in a few milliseconds, or where FUSELITE_MATRIX=full asks for them."""
    return full() if quick or os.environ.get("FUSELITE_MATRIX") == "full" else pairwise()


class Runner:
    """The model with the delegate in one host; run(inputs) gives the outputs with variables at zero."""

    def __init__(self, host, model, delegate_path, options):
        self.host = host
        if host == "own":
            self.interpreter = own_interpreter.Interpreter(model, own_interpreter.Delegate(delegate_path, **options))
        else:
            delegate = litert.load_delegate(str(delegate_path), options)
            self.interpreter = running.delegated(model, delegate)

    def run(self, inputs):
        if self.host == "own":
            self.interpreter.reset_variables()
            return self.interpreter.run(inputs)
        return running.run(self.interpreter, inputs)
