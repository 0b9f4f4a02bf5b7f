"""Finds operators that run far slower than in XNNPACK or in LiteRT's own kernels.

    python3 -m venv .venv && .venv/bin/pip install -r tests/python/requirements.txt
    .venv/bin/python benchmarks/cliffs                                  # what was a cliff once; operators x types x random shapes
    .venv/bin/python benchmarks/cliffs --seed 2 --random 5              # five random shapes of each
    .venv/bin/python benchmarks/cliffs --cut model.tflite ...           # the operators of these models
    .venv/bin/python benchmarks/cliffs --operators TRANSPOSE,GATHER     # only those
    .venv/bin/python benchmarks/cliffs --save found                     # the cliffs' models, for `fuselite explain`

Each case is a model of one operator, which LiteRT runs with XNNPACK (`xnnpack`), with its own kernels (`builtin`) and with
the delegate alone (`ours`). The three take turns in one process; a time is the median over the rounds of each round's
fastest block of invokes, in microseconds. A cliff is a case where `ours` has less than half of the speed of the better of
the other two (--ratio), or is left to the host. Prints the cliffs, worst first, then a summary for each operator; --all prints
every case, --csv writes them. Exit status 1 where there are cliffs.
"""

import argparse
import csv
import itertools
import os
import pathlib
import statistics
import sys
import time

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
PLAIN = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES


class Engine:
    def __init__(self, model, threads, **more):
        self.interpreter = Interpreter(model_content=model, num_threads=threads, **more)
        self.interpreter.allocate_tensors()
        self.count = 1

    def feed(self, make, integers):
        rng = np.random.default_rng(0)
        for detail in self.interpreter.get_input_details():
            self.interpreter.set_tensor(detail["index"], make(detail, rng, integers))

    def claimed(self):
        return any(op["op_name"] == "DELEGATE" for op in self.interpreter._get_ops_details())

    def block(self):
        """Seconds for one invoke, in a block of `count`."""
        invoke = self.interpreter.invoke
        start = time.perf_counter()
        for _ in range(self.count):
            invoke()
        return (time.perf_counter() - start) / self.count

    def calibrate(self, seconds):
        self.block()
        self.count = max(1, min(1000, int(seconds / self.block())))


def measure(case, arguments):
    """Microseconds for each engine, or the word that says why there is none."""
    from cut import seeded

    options = dict(pair.split("=", 1) for pair in arguments.option)
    delegate = load_delegate(arguments.delegate, {"num_threads": arguments.threads, **options})
    made = {
        "xnnpack": {},
        "builtin": {"experimental_op_resolver_type": PLAIN},
        "ours": {"experimental_op_resolver_type": PLAIN, "experimental_delegates": [delegate]},
    }
    engines, times = {}, {}
    for name, more in made.items():
        try:
            engines[name] = Engine(case.model, arguments.threads, **more)
            engines[name].feed(seeded, case.integers)
            engines[name].calibrate(arguments.block / 1000)
        except (RuntimeError, ValueError):
            engines.pop(name, None)
            times[name] = "fails"
    if "ours" in engines and not engines["ours"].claimed():
        times["ours"] = "left to the host"
        del engines["ours"]
    rounds = {name: [] for name in engines}
    for _ in range(arguments.rounds):
        for name, engine in engines.items():
            rounds[name].append(min(engine.block() for _ in range(3)))
    times.update({name: statistics.median(r) * 1e6 for name, r in rounds.items()})
    return times


def gain(times):
    """The better peer's time over ours; 0 where ours does not run, None where no peer does."""
    peers = [t for name, t in times.items() if name != "ours" and not isinstance(t, str)]
    if not peers:
        return None
    return 0.0 if isinstance(times["ours"], str) else min(peers) / times["ours"]


def shown(value):
    return value if isinstance(value, str) else f"{value:.1f}"


def line(case, times):
    ratio = gain(times)
    return f"| {case.operator} | {case.text} | " + " | ".join(
        [shown(times[name]) for name in ("xnnpack", "builtin", "ours")] + ["-" if ratio is None else f"{ratio:.2f}"]
    )


def arguments_of_command():
    parser = argparse.ArgumentParser(prog="cliffs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cut", nargs="+", default=[], metavar="MODEL", help="the operators of these models instead")
    parser.add_argument("--operators", default="", help="names, with commas; default all")
    parser.add_argument("--groups", default="", help="of operators.py's table: movers,fed_layers,...; default all")
    parser.add_argument("--types", default="", help="of the first operand: float32,int8,...; default all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--random", type=int, default=1, metavar="N", help="random shapes of each operator and type")
    parser.add_argument("--random-only", action="store_true", help="without the cases of found.py")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--ratio", type=float, default=0.5, help="a case is a cliff below it")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--block", type=float, default=1.0, help="milliseconds of a block of invokes")
    parser.add_argument("--delegate", default=str(ROOT / "build/release/partitioner/libfuselite_delegate.so"))
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="of the delegate")
    parser.add_argument("--all", action="store_true", help="print every case as it is measured")
    parser.add_argument("--csv", help="a file for every case")
    parser.add_argument("--save", metavar="FOLDER", help="the model of each cliff: OPERATOR-1.tflite is the worst")
    return parser.parse_args()


def chosen(arguments):
    if arguments.cut:
        from cut import operators_of

        cases = operators_of(arguments.cut)
    else:
        from found import found_operators
        from operators import describe, random_operators

        groups = [name for name in arguments.groups.split(",") if name]
        found = [] if arguments.random_only or groups else found_operators(describe)
        cases = itertools.chain(found, random_operators(arguments.seed, arguments.random, groups))
    names = {name for name in arguments.operators.split(",") if name}
    types = {name for name in arguments.types.split(",") if name}
    return [case for case in cases if (not names or case.operator in names) and (not types or case.text.split(":")[0] in types)]


def summary(results):
    print("\n| operator | cases | cliffs | least gain | geometric mean |\n|---|---|---|---|---|")
    for name in sorted({case.operator for case, _ in results}):
        ratios = [gain(times) for case, times in results if case.operator == name]
        ratios = [r for r in ratios if r is not None]
        if ratios:
            mean = statistics.geometric_mean([max(r, 0.01) for r in ratios])
            cliffs = sum(r < ARGUMENTS.ratio for r in ratios)
            print(f"| {name} | {len(ratios)} | {cliffs} | {min(ratios):.2f} | {mean:.2f} |")


def save(cases, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for place, case in enumerate(cases, start=1):
        (folder / f"{case.operator}-{place}.tflite").write_bytes(case.model)


def main():
    results = []
    for case in chosen(ARGUMENTS):
        times = measure(case, ARGUMENTS)
        results.append((case, times))
        if ARGUMENTS.all:
            print(line(case, times), flush=True)
    if ARGUMENTS.csv:
        with open(ARGUMENTS.csv, "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["operator", "case", "xnnpack", "builtin", "ours", "gain"])
            for case, times in results:
                rows.writerow([case.operator, case.text, times["xnnpack"], times["builtin"], times["ours"], gain(times)])
    cliffs = [r for r in results if gain(r[1]) is not None and gain(r[1]) < ARGUMENTS.ratio]
    cliffs.sort(key=lambda r: gain(r[1]))
    print("\n| operator | case | xnnpack us | builtin us | ours us | gain |\n|---|---|---|---|---|---|")
    for case, times in cliffs:
        print(line(case, times))
    if ARGUMENTS.save:
        save([case for case, _ in cliffs], pathlib.Path(ARGUMENTS.save))
    summary(results)
    print(f"\n{len(cliffs)} cliffs in {len(results)} cases; {sum(gain(t) is None for _, t in results)} ran in no peer")
    return 1 if cliffs else 0


if __name__ == "__main__":
    ARGUMENTS = arguments_of_command()
    status = main()
    sys.stdout.flush()
    os._exit(status)  # closing thousands of interpreters takes seconds, and there is nothing to save
