"""Measures one model in this process and prints the figures as one line of JSON. `compare` runs it in the peers' environment.

    worker.py warm REQUEST     every engine in turns: milliseconds of a run, errors
    worker.py cold REQUEST     one engine: milliseconds to the first output, growth of the peak memory in MiB
    worker.py load REQUEST     every engine in turns under a load (loads.py)

REQUEST is JSON: model, threads, engines, delegate, options, rounds, seconds; load.
"""

import json
import resource
import statistics
import sys
import time

import engines
import loads
import numpy as np

# Shorter runs are timed in blocks: a call of the clock takes about 50 ns.
SHORT_SECONDS, BLOCK = 20e-6, 1000


def fastest_run(engine, seconds):
    """The fastest of the runs, or of the blocks of runs, that fit in `seconds`; at least three."""
    fastest, count, block = float("inf"), 0, 1
    end = time.perf_counter() + seconds
    while count < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(block):
            engine.run()
        took = (time.perf_counter() - start) / block
        fastest, count = min(fastest, took), count + 1
        if block == 1 and count == 3 and fastest < SHORT_SECONDS:
            fastest, count, block = float("inf"), 0, BLOCK
    return fastest


def error_of(outputs, expected):
    """The largest difference of any element; None where the shapes differ."""
    worst = 0.0
    for actual, wanted in zip(outputs, expected):
        if actual.size != wanted.size:
            return None
        difference = np.abs(actual.astype(np.float64).ravel() - wanted.astype(np.float64).ravel())
        worst = max(worst, float(np.max(difference, initial=0)))
    return worst


def warm(request):
    reference = engines.reference(request["model"])
    values = engines.random_values(reference.input_types())
    reference.feed(values)
    reference.reset()
    reference.run()
    expected = reference.outputs()

    def open_one(name):
        engine = engines.make(name, request["model"], request["threads"], request["delegate"], request["options"])
        engine.feed(values)
        engine.run()
        engine.reset()
        engine.run()
        return engine, error_of(engine.outputs(), expected)

    opened, failed = engines.open_each(request["engines"], open_one)
    times = {name: [] for name in opened}
    for _ in range(request["rounds"]):  # in turns, so that a drift of the machine meets all of them
        for name, (engine, _) in opened.items():
            times[name].append(fastest_run(engine, request["seconds"]) * 1e3)
    figures = {name: {"ms": statistics.median(times[name]), "error": error} for name, (_, error) in opened.items()}
    return {"engines": figures, "failed": failed, "arithmetic": engines.arithmetic(request["model"])}


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def cold(request):
    (name,) = request["engines"]
    engines.import_package(name)
    engines.random_values([([1], np.dtype(np.float32))])  # NumPy's first generator takes longer than a small model
    before, start = peak_mib(), time.perf_counter()
    engine = engines.make(name, request["model"], request["threads"], request["delegate"], request["options"])
    engine.feed(engines.random_values(engine.input_types()))
    engine.run()
    return {"first_output_ms": (time.perf_counter() - start) * 1e3, "memory_mib": peak_mib() - before}


if __name__ == "__main__":
    what, text = sys.argv[1:]
    print(json.dumps({"warm": warm, "cold": cold, "load": loads.measure}[what](json.loads(text))))
