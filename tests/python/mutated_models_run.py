#!/usr/bin/env python3
"""Changes models at random and gives them to LiteRT, to LiteRT with the delegate, and to our own interpreter without and with it.

    tests/python/mutated_models_run.py --count 5000 --seed 0 --models FOLDER

Model i of the run has seed `seed + i`: one of the folder's files of at most 64 KiB, or a random graph where no folder is
named or by chance, with one to some changes (mutate_model.py). Each host is a process that is replaced when it dies. A
failure is a host of ours that dies or takes 20 s where LiteRT's reference kernels do not, a refusal without a clear line,
and outputs that differ, of models that say what they compute. What is left with --strict and with outputs is to be read:
LiteRT's kernels do not look at types that lie. The last line counts; the exit status is 1 where there was a failure.
--save keeps the files of failures.
"""

import argparse
import collections
import json
import os
import pathlib
import resource
import signal
import struct
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import random_graphs_run  # noqa: E402

HOSTS = ["litert", "delegate", "own", "own_delegate"]
SECONDS, MEMORY = 20, 6 << 30
MOST_ELEMENTS = 1 << 22


# Refusals of LiteRT that are none of ours, by a part of the message.
LITERTS_OWN = {
    "Didn't find op for builtin opcode": "LiteRT has no kernel of so old a version",
    "quantized_dimension must be in range": "the dimension of a single scale is not read",
    "codec can't decode": "the name of a tensor or signature, which Python reads",
    "Invalid tensor size": "an output whose shape is known at run time is read by its old one",
}


class Refused(Exception):
    """The model, its shapes or its run is refused: (stage, message)."""


class TooLarge(Exception):
    """An input that is too large to be filled."""


def draw(shape, dtype, rng):
    if np.prod(shape, dtype=np.float64) > MOST_ELEMENTS:
        raise TooLarge
    if np.issubdtype(dtype, np.floating):
        return rng.uniform(-1, 1, shape).astype(dtype)
    if np.issubdtype(dtype, np.complexfloating):
        return (rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype(dtype)
    return rng.integers(0, 3, shape).astype(dtype)


def resized(shapes, rng):
    """(input, shape) of a change that a caller may ask for; None where it does not."""
    if not shapes or rng.random() < 0.7:
        return None
    i = int(rng.integers(len(shapes)))
    shape = [int(rng.choice([d, 0, 1, 2, 5])) if rng.random() < 0.4 else int(d) for d in shapes[i]]
    return i, shape


def run_in_litert(path, delegate, seed):
    from ai_edge_litert import interpreter as litert

    delegates, stage = [litert.load_delegate(delegate)] if delegate else [], "load"
    rng = np.random.default_rng(seed)
    try:
        interpreter = litert.Interpreter(
            model_content=pathlib.Path(path).read_bytes(),
            experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF,
            experimental_delegates=delegates,
            num_threads=1,
        )
        stage = "allocate"
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()
        change = resized([detail["shape"] for detail in details], rng)
        if change:
            stage = "resize"
            interpreter.resize_tensor_input(details[change[0]]["index"], change[1])
            interpreter.allocate_tensors()
        for detail in interpreter.get_input_details():
            if detail["dtype"] not in (np.bytes_, np.object_, str):
                interpreter.set_tensor(detail["index"], draw(detail["shape"], detail["dtype"], rng))
        stage = "invoke"
        interpreter.invoke()
        stage = "read"
        return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    except (RuntimeError, ValueError, MemoryError, KeyError, TypeError) as error:
        raise Refused(stage, str(error)) from error


def run_in_ours(path, delegate, seed):
    import own_interpreter

    rng, stage, file = np.random.default_rng(seed), "file", pathlib.Path(path).read_bytes()
    try:
        own_interpreter.check_model(file)
        stage = "allocate"
        delegate = own_interpreter.Delegate(delegate) if delegate else None
        interpreter = own_interpreter.Interpreter(file, delegate)
        change = resized([np.array(tensor.shape) for tensor in interpreter.inputs()], rng)
        if change:
            stage = "resize"
            interpreter.resize(*change)
            interpreter.allocate()
        for i, tensor in enumerate(interpreter.inputs()):
            if tensor.type in own_interpreter.TYPES:
                interpreter.set_input(i, draw(tensor.shape, own_interpreter.TYPES[tensor.type], rng))
        stage = "invoke"
        interpreter.invoke()
        stage = "read"
        return [
            interpreter.output(i) if tensor.type in own_interpreter.TYPES else None
            for i, tensor in enumerate(interpreter.outputs())
        ]
    except own_interpreter.Error as error:
        if error.status == own_interpreter.UNSUPPORTED:
            stage = "unsupported"
        if "\n" in str(error) or not str(error):
            stage = "unclear"
        raise Refused(stage, str(error)) from error


def work(host, delegate):
    """The child: a line `PATH SEED` in; a line of the stage and one of the verdict out, the outputs as PATH.HOST.npz."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    run = run_in_ours if host.startswith("own") else run_in_litert
    for line in sys.stdin:
        path, seed = line.split()
        answers.write(json.dumps({"stage": host}) + "\n")
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of CPU time: ends the process
        try:
            outputs = run(path, delegate if "delegate" in host else None, int(seed))
            kept = {str(i): value for i, value in enumerate(outputs) if value is not None and value.dtype != object}
            np.savez(f"{path}.{host}.npz", **kept)
            answer = {"verdict": "runs", "outputs": len(outputs)}
        except Refused as refused:
            answer = {"verdict": "refused", "stage_of": refused.args[0], "message": refused.args[1]}
        except TooLarge:
            answer = {"verdict": "too large"}
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(json.dumps(answer) + "\n")


class Host(random_graphs_run.Worker):
    """A child that runs one model per request."""

    def __init__(self, host, delegate):
        super().__init__(delegate, "")
        self.arguments = [str(HERE / "mutated_models_run.py"), "--worker", host, "--delegate", str(delegate)]


def same(actual, expected):
    """What differs; empty where nothing does. Floats may differ by rounding, beside NaN and infinity."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"{actual.dtype}{list(actual.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if actual.dtype.kind not in "fc":
        wrong = int((actual != expected).sum())
        return f"{wrong} of {actual.size} elements differ" if wrong else ""
    with np.errstate(all="ignore"):
        finite = np.isfinite(expected)
        if not np.array_equal(np.isnan(actual), np.isnan(expected)):
            return "other NaN"
        largest = np.abs(expected[finite]).max(initial=1)
        error = np.abs(actual[finite] - expected[finite]).max(initial=0)
        return "" if error <= 1e-3 * largest else f"off by {error:g} of {largest:g}"


def judge(path, answers, strict):
    """The failures of one model as (host, what), from the hosts' answers. `strict`: other verdicts are some, too."""
    wanted, known = answers["litert"], sound_outputs(path)
    failures = []
    for host in HOSTS[1:]:
        given = answers.get(host)
        if given is None:
            continue
        what = fault(host, given, wanted, bool(known), strict)
        if what:
            failures.append((host, what))
        elif given.get("verdict") == wanted.get("verdict") == "runs":
            failures += [(host, what) for what in differences(path, host, known)]
    return failures


def fault(host, given, wanted, sound, strict):
    """What is wrong with a host's verdict beside LiteRT's; empty where nothing is."""
    if "died" in given:
        # A process that LiteRT's own kernels end says nothing about ours.
        return "" if "died" in wanted and host == "delegate" else f"died: {given['how']} (litert: {wanted})"
    if given.get("stage_of") == "unclear":
        return f"unclear message: {given['message']!r}"
    if "died" in wanted or "too large" in (given["verdict"], wanted["verdict"]):
        return ""
    if given["verdict"] == wanted["verdict"] or given.get("stage_of") in ("unsupported", "file"):
        return ""
    theirs = any(part in wanted.get("message", "") for part in LITERTS_OWN)
    # LiteRT runs nodes in no order and values that nobody made, in the order of the file; partitions cannot.
    unordered = wanted["verdict"] == "runs" and not sound
    return "" if not strict or theirs or unordered else f"{given} instead of {wanted}"


def sound_outputs(path):
    import mutate_model

    try:
        return mutate_model.known_outputs(pathlib.Path(path).read_bytes())
    except (IndexError, TypeError, ValueError, struct.error):  # bytes that are no model
        return []


def differences(path, host, known):
    mine, theirs = (np.load(f"{path}.{name}.npz") for name in (host, "litert"))
    for i in map(str, known):
        wrong = same(mine[i], theirs[i]) if i in mine and i in theirs else ""
        if wrong:
            yield f"output {i}: {wrong}"


def subjects(folder, seed):
    """The changed model of a seed, and what it was."""
    import mutate_model
    import random_check

    rng = np.random.default_rng([seed, 77])
    files = sorted(path for path in folder.rglob("*.tflite") if path.stat().st_size <= 1 << 16) if folder else []
    if files and rng.random() < 0.7:
        path = files[rng.integers(len(files))]
        return mutate_model.changed(path.read_bytes(), rng), path.name
    name = list(random_check.TYPES)[rng.integers(len(random_check.TYPES))]
    graph = random_check.TYPES[name](seed)
    graph.grow()
    return mutate_model.changed(graph.model(), rng), f"random {name} graph"


def run(delegate, count, seed, folder, save, report, strict=False):
    """Runs `count` models; a Counter of verdicts and the number of failures."""
    tally, failed = collections.Counter(), 0
    hosts = {host: Host(host, delegate) for host in HOSTS}
    with tempfile.TemporaryDirectory() as scratch:
        for i in range(seed, seed + count):
            path = f"{scratch}/{i}.tflite"
            try:
                file, origin = subjects(folder, i)
            except (TypeError, ValueError, IndexError) as error:
                tally[f"not made: {type(error).__name__}"] += 1
                continue
            pathlib.Path(path).write_bytes(file)
            answers = {"litert": hosts["litert"].compare(path, i)}
            endless = "SIGPROF" in answers["litert"].get("how", "") or "status -27" in answers["litert"].get("how", "")
            if not endless:
                answers.update((host, hosts[host].compare(path, i)) for host in HOSTS[1:])
            tally["litert died" if "died" in answers["litert"] else answers["litert"]["verdict"]] += 1
            failures = judge(path, answers, strict)
            failed += bool(failures)
            for host, what in failures:
                report(f"FAILED --seed {i} ({origin}) {host}: {what}")
            if failures and save:
                save.mkdir(parents=True, exist_ok=True)
                (save / f"{i}.tflite").write_bytes(file)
            for left in pathlib.Path(scratch).iterdir():
                left.unlink()
    for host in hosts.values():
        host.close()
    return tally, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--delegate", type=pathlib.Path, default=random_graphs_run.BUILT)
    parser.add_argument("--save", type=pathlib.Path, metavar="DIRECTORY")
    parser.add_argument(
        "--strict", action="store_true", help="to refuse what LiteRT runs, or run what it refuses, is a failure, too"
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return work(arguments.worker, str(arguments.delegate))
    tally, failed = run(
        arguments.delegate,
        arguments.count,
        arguments.seed,
        arguments.models,
        arguments.save,
        lambda line: print(line, flush=True),
        arguments.strict,
    )
    print(f"{failed} of {arguments.count} failed; {', '.join(f'{count} {name}' for name, count in tally.most_common())}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
