#!/usr/bin/env python3
"""Compares random graphs in LiteRT: the delegate against LiteRT's reference kernels, integers to the bit.

    random_graphs_run.py --count 20000 --seed 0 --types int8,uint8,int16,float,fast,hybrid,integer,rare,shapes,flow,state

Graph i of the run has seed `seed + i // types` and the types in turn; --steps names those that graphs grow by. Each runs in a worker process that is replaced
when it dies: where LiteRT's reference died the graph is counted, where the delegate did it has failed. The last line
counts; the exit status is 1 where a graph differed, each of which is printed with the command that repeats it. With --save such
a graph is shrunk to the operators that still differ and written with its inputs: DIRECTORY/TYPE-SEED.tflite and .npz.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import selectors
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILT = HERE.parents[1] / "build" / "release" / "partitioner" / "libfuselite_delegate.so"
LIMIT_S = 120  # of one graph; the slowest takes about 2


class Worker:
    """A child that answers a request of two words, here to compare one graph, with stages and a result."""

    def __init__(self, delegate, steps):
        self.arguments = [str(HERE / "random_graphs_run.py"), "--worker", "--delegate", str(delegate), "--steps", steps]
        self.child = None

    def compare(self, seed, type_name):
        """The graph's random_check.Result as a dictionary, or with `died`: the stage at which the process ended."""
        if self.child is None:
            self._start()
        self.child.stdin.write(f"{seed} {type_name}\n".encode())
        self.child.stdin.flush()
        stage, deadline = "generator", time.monotonic() + LIMIT_S
        while True:
            line = self._line(deadline)
            if not line:
                return {"died": stage, "how": self._end()}
            answer = json.loads(line)
            if "stage" not in answer:
                return answer
            stage = answer["stage"]

    def close(self):
        if self.child is not None:
            self.child.stdin.close()
            self.child.wait()

    def _start(self):
        self.errors = tempfile.TemporaryFile()
        self.child = subprocess.Popen(
            [sys.executable, *self.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )
        self.ready = selectors.DefaultSelector()
        self.ready.register(self.child.stdout, selectors.EVENT_READ)
        self.pending, self.late = b"", False

    def _line(self, deadline):
        """The next line; nothing where the child has ended or takes too long, and is killed then."""
        while b"\n" not in self.pending:
            if not self.ready.select(max(0, deadline - time.monotonic())):
                self.late = True
                self.child.kill()
            more = os.read(self.child.stdout.fileno(), 65536)
            if not more:
                return b""
            self.pending += more
        line, _, self.pending = self.pending.partition(b"\n")
        return line

    def _end(self):
        code = self.child.wait()
        status = f"stopped after {LIMIT_S} s" if self.late else f"status {code}"
        self.errors.seek(0)
        lines = [line for line in self.errors.read().decode(errors="replace").splitlines() if line.strip()]
        self.child = None
        return f"{status}: {lines[-1] if lines else 'no message'}"


def work(delegate, steps):
    """The child: a line `SEED TYPE` in; lines of stages and one of the result out."""
    import random_check

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the libraries print must not get between
    for line in sys.stdin:
        seed, name = line.split()
        result = random_check.check(
            int(seed),
            name,
            delegate,
            steps.split(",") if steps else (),
            at=lambda stage: answers.write(json.dumps({"stage": stage}) + "\n"),
        )
        answers.write(json.dumps(vars(result)) + "\n")


class Tally:
    """Counts of a run; `failures` are texts that tell how to repeat them."""

    def __init__(self, steps=""):
        self.steps = f" --steps {steps}" if steps else ""
        self.compared = collections.Counter()  # by type
        self.single = self.delegated = self.own_host = self.ill_conditioned = 0
        self.failures, self.refused, self.died = [], collections.Counter(), []
        self.failed = []  # (seed, type) of each failure
        self.coverage = collections.Counter()

    def add(self, seed, type_name, answer):
        name = f"--count 1 --seed {seed} --types {type_name}{self.steps}"
        if "died" in answer:
            text = f"{name}: died in {answer['died']}: {answer['how']}"
            if "reference" in answer["died"]:
                self.died.append(text)
            else:
                self._fail(seed, type_name, text)
            return
        if answer["refused"]:
            self.refused[answer["refused"]] += 1
            return
        self.compared[type_name] += 1
        self.single += answer["operators"] == 1
        self.delegated += answer["delegated"]
        self.own_host += answer["own_host"]
        self.ill_conditioned += answer["ill_conditioned"]
        self.coverage.update(answer["coverage"])
        if answer["problems"]:
            self._fail(seed, type_name, "\n  ".join([name, *answer["problems"]]))

    def _fail(self, seed, type_name, text):
        self.failures.append(text)
        self.failed.append((seed, type_name))

    def summary(self):
        by_type = ", ".join(f"{count} {name}" for name, count in self.compared.items())
        coverage = ", ".join(f"{count} {name}" for name, count in sorted(self.coverage.items()))
        return (
            f"{self.compared.total()} graphs compared ({by_type}; {self.single} of a single operator; "
            f"{self.delegated} delegated; {self.own_host} in our own host too), {len(self.failures)} different; "
            f"{self.refused.total()} refused by LiteRT, "
            f"{len(self.died)} died in LiteRT, {self.ill_conditioned} ill-conditioned; coverage: {coverage}"
        )


def run(delegate, count, seed, types, workers=1, progress=None, steps=""):
    """Compares `count` graphs and returns the Tally. Graphs that LiteRT refuses are replaced by further ones."""
    tally, pool = Tally(steps), [Worker(delegate, steps) for _ in range(workers)]
    started, asked, shown = time.monotonic(), 0, 0.0
    with concurrent.futures.ThreadPoolExecutor(workers) as executor:
        running = {}

        def ask(worker):
            nonlocal asked
            graph = (seed + asked // len(types), types[asked % len(types)])
            asked += 1
            running[executor.submit(worker.compare, *graph)] = (worker, graph)

        for worker in pool:
            ask(worker)
        while running:
            for future in concurrent.futures.wait(running, return_when="FIRST_COMPLETED").done:
                worker, graph = running.pop(future)
                tally.add(*graph, future.result())
                if tally.compared.total() + len(running) < count and asked < 2 * count + 100:
                    ask(worker)
            if progress and time.monotonic() - shown > 10:
                shown = time.monotonic()
                seconds = f"{shown - started:.0f} s"
                progress(f"{tally.compared.total()} of {count}, {len(tally.failures)} different, {seconds}")
    for worker in pool:
        worker.close()
    return tally


def save_shrunk(tally, arguments):
    import random_shrink

    steps = arguments.steps.split(",") if arguments.steps else ()
    for seed, type_name in tally.failed:
        left = random_shrink.shrink_graph(seed, type_name, arguments.delegate, steps, arguments.save)
        print(f"--seed {seed} --types {type_name}: {left}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--types", default="int8,uint8,int16,float,fast,hybrid,integer,rare,shapes,flow,state")
    parser.add_argument("--steps", default="")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--delegate", type=pathlib.Path, default=BUILT)
    parser.add_argument("--save", type=pathlib.Path, metavar="DIRECTORY")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return work(arguments.delegate, arguments.steps)
    started = time.monotonic()
    types = arguments.types.split(",")
    tally = run(arguments.delegate, arguments.count, arguments.seed, types, arguments.workers, print, arguments.steps)
    for reason, count in tally.refused.most_common():
        print(f"refused {count} times: {reason}")
    for text in tally.died:
        print(f"died in LiteRT: {text}")
    for text in tally.failures:
        print(f"DIFFERENT: {text}")
    if arguments.save and tally.failed:
        save_shrunk(tally, arguments)
    print(f"{tally.summary()}; {time.monotonic() - started:.0f} s")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
