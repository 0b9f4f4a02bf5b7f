"""Runs a model in other ways than one sample after another: in batches, by several interpreters, at a steady rate.

The loads, as `compare --loads` names them:

    batch=4          samples in one run, with the threads asked for; the figure is samples per second
    interpreters=2   as many interpreters (OpenVINO: streams of one compiled model), each with one thread and called by a
                     thread of its own; the figure is runs per second of all of them
    rate=30          a run begins every 1/30 second and the program sleeps in between, as a camera lets it: caches and
                     threads are cold; the figures are the median and the 95th percentile of a run in milliseconds
"""

import statistics
import threading
import time

import engines
import names


def runs_per_second(runners, seconds):
    """How often all of them run in a second, each in a thread of its own."""
    counts, begin = [0] * len(runners), threading.Barrier(len(runners) + 1)
    end = float("inf")

    def work(i):
        begin.wait()
        while time.perf_counter() < end:
            runners[i]()
            counts[i] += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(runners))]
    for thread in threads:
        thread.start()
    start = time.perf_counter()
    end = start + seconds
    begin.wait()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - start)


class Batch:
    """`number` samples in each run."""

    def __init__(self, request, name, number):
        self.engine, self.number = _make(request, name, batch=number), number
        if any(shape[:1] != [number] for shape in self.engine.output_shapes()):
            raise RuntimeError(f"its outputs do not grow with a batch of {number}")

    def measure(self, seconds):
        return {"per_second": self.number * runs_per_second([self.engine.run], seconds)}


class Interpreters:
    """`number` callers at once, each with one thread."""

    def __init__(self, request, name, number):
        if name == "openvino":
            self.runners = engines.OpenVINO(request["model"], number, streams=number).fed_runners(number)
        else:
            single = request | {"threads": 1}
            self.engines = [_make(single, name) for _ in range(number)]
            self.runners = [engine.run for engine in self.engines]

    def measure(self, seconds):
        return {"per_second": runs_per_second(self.runners, seconds)}


class Rate:
    """A run every 1/`number` second."""

    def __init__(self, request, name, number):
        self.engine, self.period = _make(request, name), 1 / number

    def measure(self, seconds):
        times, due = [], time.perf_counter()
        for _ in range(max(round(seconds / self.period), 3)):
            due += self.period
            time.sleep(max(due - time.perf_counter(), 0))
            start = time.perf_counter()
            self.engine.run()
            times.append((time.perf_counter() - start) * 1e3)
        return {"median_ms": statistics.median(times), "p95_ms": statistics.quantiles(times, n=20)[-1]}


def _make(request, name, batch=1):
    """An engine with values in its inputs, after its first run."""
    made = engines.make(name, request["model"], request["threads"], request["delegate"], request["options"], batch)
    made.feed(engines.random_values(made.input_types()))
    made.run()
    return made


def measure(request):
    """The figures of each engine under request["load"], medians over the rounds, and why others have none."""
    kind, number = names.parse_load(request["load"])
    load_of = {"batch": Batch, "interpreters": Interpreters, "rate": Rate}[kind]
    opened, failed = engines.open_each(request["engines"], lambda name: load_of(request, name, number))
    taken = {name: [] for name in opened}
    for _ in range(request["rounds"]):  # in turns, so that a drift of the machine meets all of them
        for name, load in opened.items():
            taken[name].append(load.measure(request["seconds"]))
    figures = {name: {key: statistics.median(f[key] for f in all_) for key in all_[0]} for name, all_ in taken.items()}
    return {"engines": figures, "failed": failed}
