"""Measures fuselite beside XNNPACK and OpenVINO, and makes a table and a page with charts of it.

    python3 benchmarks/compare                                      # the networks of `fuselite demo`
    python3 benchmarks/compare --models FOLDER --threads 1,2        # every .tflite file in it
    python3 benchmarks/compare a.tflite b.tflite --rounds 9         # these
    python3 benchmarks/compare --loads batch=4,batch=32,interpreters=2,rate=30 --threads 2    # throughput, and a steady rate

The first call makes a virtual environment with the peers in build/peers (--peers names another one, which has the packages
of benchmarks/compare/requirements.txt). For each model and number of threads the engines take turns in one process; a time
is the median over the rounds of each round's fastest run. Starts and memory are measured in fresh processes, one for each
engine. Under loads, medians over the rounds: the samples per second of batches, the runs per second of interpreters with one
thread each, the milliseconds of a run (median, 95th percentile) that begins so many times a second. The part of the peak is
that of `fuselite benchmark --roofline`. Writes table.md, page.html, figures.json and a picture of the gains for each number of
threads (gains-1.svg) to build/compare (--output), after each model, and prints the table. Exit status 1 where fuselite could
not run a model.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import report
from names import ENGINES, OURS, parse_load

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILT = ROOT / "build" / "release"


def peers(folder):
    """The Python of the environment in which the engines are; made where it is not there."""
    python, requirements = folder / "bin" / "python", HERE / "requirements.txt"
    made = folder / "made-for"
    if folder == ROOT / "build" / "peers" and not (made.exists() and made.read_text() == requirements.read_text()):
        print(f"making {folder} with {', '.join(requirements.read_text().split())}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements]
        subprocess.run(pip, check=True)
        made.write_text(requirements.read_text())
    if not python.exists():
        sys.exit(f"compare: {python} is not there")
    return python


def zoo(tool):
    """Files of the networks that `fuselite demo` runs, which writes them."""
    folder = ROOT / "build" / "compare" / "zoo"
    subprocess.run([tool, "demo", "--seconds=0", "--directory", folder], stdout=subprocess.DEVNULL, check=True)
    return sorted(folder.glob("*.tflite"))


class Measurer:
    """Runs the workers and the command line, each in a process of its own."""

    def __init__(self, arguments):
        self.arguments, self.python = arguments, peers(arguments.peers)

    def _worker(self, what, **request):
        a = self.arguments
        options = dict(option.split("=", 1) for option in a.option)
        request = {"delegate": str(a.delegate), "options": options, "rounds": a.rounds, "seconds": a.seconds} | request
        command = [self.python, HERE / "worker.py", what, json.dumps(request)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise RuntimeError(lines[-1])
        return json.loads(done.stdout.splitlines()[-1])

    def warm(self, model, threads):
        return self._worker("warm", model=str(model), threads=threads, engines=self.arguments.engines)

    def load(self, model, threads, load):
        """Figures of the engines, and why some have none."""
        seconds = self.arguments.load_seconds
        try:
            return self._worker(
                "load", model=str(model), threads=threads, engines=self.arguments.engines, load=load, seconds=seconds
            )
        except RuntimeError as error:
            return {"engines": {}, "failed": {"all": str(error)[:200]}}

    def cold(self, model, threads, engines):
        figures = {}
        for engine in engines:
            try:
                tries = [
                    self._worker("cold", model=str(model), threads=threads, engines=[engine])
                    for _ in range(self.arguments.cold_rounds)
                ]
            except RuntimeError as error:
                print(f"compare: {model.stem}, start of {engine}: {error}", file=sys.stderr)
                continue
            if tries:
                figures[engine] = {key: statistics.median(t[key] for t in tries) for key in tries[0]}
        return figures

    def roofline(self, model, threads):
        """What share of the run is spent at the machine's limit, and the times of its steps; None where it cannot be told."""
        with tempfile.TemporaryDirectory() as folder:
            result = pathlib.Path(folder) / "result.json"
            command = [self.arguments.tool, "benchmark", model, "--roofline", f"--num_threads={threads}", "--num_runs=30",
                       "--min_secs=0.5", "--max_secs=10", f"--result_file_path={result}"]  # fmt: skip
            command += [f"--{option}" for option in self.arguments.option]
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            if done.returncode != 0:
                return None
            told = json.loads(result.read_text())["delegate"].get("roofline")
        return told and {"share": told["least_us"] / told["run_us"], "run_us": told["run_us"], "least_us": told["least_us"]}

    def measure(self, model, threads):
        figures = {"model": model.stem, "threads": threads, **self.warm(model, threads)}
        figures["loads"] = {load: self.load(model, threads, load) for load in self.arguments.loads}
        figures["cold"] = self.cold(model, threads, figures["engines"])
        figures["roofline"] = self.roofline(model, threads)
        return figures


def _engines(text):
    names = text.split(",")
    for name in names:
        if name not in ENGINES:
            raise argparse.ArgumentTypeError(f"engine '{name}' is none of {', '.join(ENGINES)}")
    return names


def _loads(text):
    listed = text.split(",") if text else []
    for load in listed:
        try:
            parse_load(load)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
    return listed


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="MODEL")
    parser.add_argument("--models", type=pathlib.Path, help="a folder: every .tflite file in it")
    parser.add_argument("--threads", default="1", help="numbers of threads: 1,2")
    parser.add_argument("--engines", type=_engines, default=",".join(ENGINES), help=f"some of {','.join(ENGINES)}")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="of the delegate: isa=avx2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each engine and round")
    parser.add_argument("--loads", type=_loads, default="", help="of batch=N, interpreters=N, rate=N, with commas")
    parser.add_argument("--load-seconds", type=float, default=2, help="for each engine, round and load")
    parser.add_argument("--cold-rounds", type=int, default=5, help="fresh processes for each engine; 0: none")
    parser.add_argument("--peers", type=pathlib.Path, default=ROOT / "build" / "peers", help="their virtual environment")
    parser.add_argument("--delegate", type=pathlib.Path, default=BUILT / "partitioner" / "libfuselite_delegate.so")
    parser.add_argument("--tool", type=pathlib.Path, default=BUILT / "tools" / "fuselite")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build" / "compare")
    return parser.parse_args()


def machine(tool):
    """What `fuselite info` says of the CPU."""
    told = subprocess.run([tool, "info"], stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = dict(line.split(None, 1) for line in told.splitlines() if len(line.split(None, 1)) == 2)
    return ", ".join(lines.get(key, "unknown") for key in ("cpu", "isa", "cores"))


def main():
    arguments = parse()
    for path in (arguments.delegate, arguments.tool):
        if not path.exists():
            sys.exit(f"compare: {path} is not there: cmake --build --preset release")
    models = [*arguments.files, *sorted(arguments.models.glob("*.tflite") if arguments.models else [])]
    models = models or zoo(arguments.tool)
    arguments.output.mkdir(parents=True, exist_ok=True)
    results = {"machine": machine(arguments.tool), "options": arguments.option, "rows": [], "passed_over": {}}
    measurer, broken = Measurer(arguments), False
    for threads in map(int, arguments.threads.split(",")):
        for model in models:
            print(f"{model.stem}, threads: {threads}", file=sys.stderr)
            try:
                row = measurer.measure(model, threads)
            except RuntimeError as error:  # LiteRT itself cannot run it
                results["passed_over"][model.stem] = str(error)[:200]
                continue
            broken |= OURS in row["failed"]
            results["rows"].append(row)
            report.write(results, arguments.output)
    print(report.table(results))
    print(f"{arguments.output / 'page.html'}", file=sys.stderr)
    sys.exit(1 if broken or not results["rows"] else 0)


if __name__ == "__main__":
    main()
