"""Times .tflite models in LiteRT: with its default delegate (XNNPACK) and with fuselite, side by side.

    python3 -m venv .venv && .venv/bin/pip install -r tests/python/requirements.txt
    .venv/bin/python benchmarks/compare_litert.py --threads 1 model.tflite ...

Both engines run in one process and take turns, so that a drift of the machine meets both. A time is the median over the
rounds of each round's fastest invoke, in milliseconds. The error is the largest difference of any output from LiteRT's
reference kernels, in quantization steps for quantized outputs. Prints a Markdown table.
"""

import argparse
import pathlib
import statistics
import time

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate

ROOT = pathlib.Path(__file__).resolve().parent.parent


def open_model(path, threads, **more):
    interpreter = Interpreter(str(path), num_threads=threads, **more)
    interpreter.allocate_tensors()
    return interpreter


def feed(interpreter):
    rng = np.random.default_rng(0)
    for detail in interpreter.get_input_details():
        shape, dtype = detail["shape"], np.dtype(detail["dtype"])
        if dtype == np.float32:
            value = rng.uniform(-1, 1, shape).astype(dtype)
        elif dtype.kind in "iu" and dtype.itemsize == 1:
            info = np.iinfo(dtype)
            value = rng.integers(info.min, info.max + 1, shape).astype(dtype)
        else:
            value = np.zeros(shape, dtype)
        interpreter.set_tensor(detail["index"], value)


def outputs(interpreter):
    return [interpreter.get_tensor(d["index"]).astype(np.float64) for d in interpreter.get_output_details()]


def fastest_ms(interpreter, seconds):
    begin, fastest, count = time.perf_counter(), float("inf"), 0
    while time.perf_counter() - begin < seconds or count < 3:
        start = time.perf_counter()
        interpreter.invoke()
        fastest = min(fastest, time.perf_counter() - start)
        count += 1
    return fastest * 1e3


def measure(path, arguments):
    reference = open_model(path, 1, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    fuselite = load_delegate(arguments.delegate, {"num_threads": arguments.threads})
    plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    engines = {
        "xnnpack": open_model(path, arguments.threads),
        "fuselite": open_model(
            path, arguments.threads, experimental_delegates=[fuselite], experimental_op_resolver_type=plain
        ),
    }
    for interpreter in (reference, *engines.values()):
        feed(interpreter)
        interpreter.invoke()
    expected = outputs(reference)
    errors = {
        name: max(float(np.max(np.abs(a - e), initial=0)) for a, e in zip(outputs(i), expected))
        for name, i in engines.items()
    }
    times = {name: [] for name in engines}
    for _ in range(arguments.rounds):
        for name, interpreter in engines.items():
            times[name].append(fastest_ms(interpreter, arguments.seconds))
    return {name: (statistics.median(t), errors[name]) for name, t in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--delegate", default=str(ROOT / "build/release/partitioner/libfuselite_delegate.so"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="per engine and round")
    arguments = parser.parse_args()
    print("| model | XNNPACK ms | fuselite ms | speed-up | XNNPACK's error | fuselite's error |\n|---|---|---|---|---|---|")
    gains = []
    for model in arguments.models:
        row = measure(model, arguments)
        (their_ms, their_error), (our_ms, our_error) = row["xnnpack"], row["fuselite"]
        gains.append(their_ms / our_ms)
        name = pathlib.Path(model).stem
        print(
            f"| {name} | {their_ms:.3f} | {our_ms:.3f} | {gains[-1]:.2f}x | {their_error:.2g} | {our_error:.2g} |",
            flush=True,
        )
    print(f"\ngeometric mean of the speed-ups: {statistics.geometric_mean(gains):.2f}x")


if __name__ == "__main__":
    main()
