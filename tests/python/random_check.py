"""One random graph: the outputs of the delegate against those of LiteRT's reference kernels, integers to the bit."""

import dataclasses
import re

import numpy as np
import own_interpreter
import random_flow
import random_graphs
import random_integers
import random_rare
import requantization
import running
from ai_edge_litert import interpreter as litert


def with_values_for_shapes(seed):
    """Graphs some of whose axes, sizes and shapes are known at run time only."""
    kinds = ["float", "int8", "integer", "uint8", "int16"]
    graph = TYPES[kinds[seed % len(kinds)]](seed)
    graph.run_time = 0.4
    return graph


# What makes the graph of a seed.
TYPES = {
    "int8": lambda seed: random_graphs.RandomGraph(seed, np.int8),
    "uint8": lambda seed: random_graphs.RandomGraph(seed, np.uint8),
    "int16": lambda seed: random_graphs.RandomGraph(seed, np.int16),
    "float": lambda seed: random_graphs.RandomGraph(seed, np.float32),
    "fast": lambda seed: random_graphs.RandomGraph(seed, np.float32),
    "hybrid": lambda seed: random_graphs.RandomGraph(seed, np.float32, True),
    "integer": random_integers.RandomIntegers,
    "rare": random_rare.RandomRare,
    "shapes": with_values_for_shapes,
    "flow": lambda seed: random_flow.RandomFlow(seed, with_values_for_shapes),
    "state": lambda seed: random_flow.RandomFlow(seed, with_values_for_shapes, state=True),
}
HOSTS = ["litert", "litert", "own"]
ISAS = ["scalar", "ssse3", "sse4", "avx2", "avxvnni", "avx512", "avx512vnni"]
# A part of a float output's largest element: chains of up to eight patterns add up the errors of each.
FLOAT_BOUND = 2e-5
# Where that is exceeded the graph may amplify errors (a softmax turns the absolute error of large scores into a
# relative one). The bound is then CONDITION times the change of LiteRT's own outputs when each input and constant
# changes by a random part of PERTURBATION: sixteen roundings.
PERTURBATION, CONDITION = 2.0**-20, 4
# The same for graphs of the type `fast`, whose operands are rounded to bfloat16: a rounding is 2^-9 of a value.
FAST_BOUND, FAST_PERTURBATION = 0.05, 2.0**-8


@dataclasses.dataclass
class Result:
    """What became of a graph: `problems` is empty where nothing differs, `refused` holds LiteRT's reason."""

    problems: list
    operators: int = 0
    delegated: bool = False
    own_host: int = 0  # 1 where the delegate ran in our own interpreter too
    ill_conditioned: bool = False
    refused: str = ""
    coverage: dict = dataclasses.field(default_factory=dict)


def own_outputs(model, inputs, delegate_path, options):
    """Of the second of two invokes in our own interpreter; None where it lacks an operator that the delegate left."""
    try:
        interpreter = own_interpreter.Interpreter(model, own_interpreter.Delegate(delegate_path, **options))
    except own_interpreter.Error as error:
        if error.status == own_interpreter.UNSUPPORTED:
            return None
        raise
    interpreter.run(inputs)
    return interpreter.run(inputs)


def outputs_of(interpreter, inputs):
    """Of the second of two invokes."""
    running.run(interpreter, inputs)
    return running.run(interpreter, inputs)


def random_inputs(graph, interpreter, rng):
    """Over the whole range; in some graphs only the ends of it, or one value: what saturates."""
    kind = rng.random()
    inputs = []
    for value, detail in zip(graph.g.inputs, interpreter.get_input_details(), strict=True):
        shape, dtype = detail["shape"], detail["dtype"]
        if value.index in graph.feeds:
            inputs.append(graph.feeds[value.index])
            continue
        if np.issubdtype(dtype, np.floating):
            inputs.append(rng.uniform(-1, 1, shape).astype(dtype))
            continue
        low, high = (0, 1) if dtype == np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if kind < 0.1:
            value = rng.choice([low, high], shape)
        elif kind < 0.15:
            value = np.full(shape, rng.integers(low, high + 1))
        else:
            value = rng.integers(low, high + 1, shape)
        inputs.append(value.astype(dtype))
    return inputs


def reason(error):
    """LiteRT's message without the number of the node."""
    return re.sub(r"Node number \d+ \((\w+)\).*", r" (\1)", str(error).split("\n")[0])


def settings_of(type_name, rng):
    """Hosts and options: the default ones, and others drawn at random."""
    host, threads = HOSTS[rng.integers(len(HOSTS))], {"num_threads": int(rng.integers(1, 3))}
    fusion = {"fusion": ["on", "off"][rng.integers(2)]}
    if type_name == "fast":
        fast = {"precision": "fast"}
        return [("litert", fast), (host, fast | threads | fusion)]
    emission = {"isa": ISAS[rng.integers(len(ISAS))], "jit": ["on", "off"][rng.integers(2)]}
    return [("litert", {}), (host, emission | fusion | threads)]


def halves_apart(actual, expected):
    """The places between numbers of float16, given as float32; many where one is no such number."""

    def ordered(x):
        bits = x.astype(np.float16).view(np.int16).astype(np.int32)
        return np.where(bits < 0, -(bits & 0x7FFF), bits)

    is_half = actual == actual.astype(np.float16)
    return np.where(is_half, np.abs(ordered(actual) - ordered(expected)), 1 << 16)


def bound_of(options):
    """The bound of floats with these options, and how far what they round changes."""
    fast = options.get("precision") == "fast"
    return (FAST_BOUND, FAST_PERTURBATION) if fast else (FLOAT_BOUND, PERTURBATION)


def difference(actual, expected, slack=0.0, places=None, bound=FLOAT_BOUND):
    """What is wrong with one output; None where nothing is. `bound` is that of floats, a part of the largest, which
    `slack` widens; `places`: RandomValues."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"{actual.dtype}{list(actual.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if actual.dtype != np.float32 or places is not None:
        wrong = (halves_apart(actual, expected) > places if places else actual != expected).sum()
        return f"{wrong} of {actual.size} elements differ" if wrong else None
    finite = np.isfinite(expected)
    if not np.array_equal(np.nan_to_num(actual[~finite]), np.nan_to_num(expected[~finite])):
        return "other values that are not finite"
    largest = np.abs(expected[finite]).max(initial=1)
    error = np.abs(actual[finite].astype(np.float64) - expected[finite]).max(initial=0)
    return None if error <= max(bound * largest, slack) else f"off by {error:g} of {largest:g}"


def perturbed(graph, inputs, rng, perturbation):
    """The outputs of the graph and inputs after relative changes of at most `perturbation`."""

    def change(values):
        values = np.asarray(values)
        return (values * (1 + perturbation * rng.uniform(-1, 1, values.shape))).astype(np.float32)

    interpreter = running.interpret(graph.model(change))
    return outputs_of(interpreter, [change(x) if x.dtype == np.float32 else x for x in inputs])


def slacks(graph, inputs, expected, rng, perturbation):
    """Per output, what errors of rounding may amount to where the graph amplifies them."""
    changes = [perturbed(graph, inputs, rng, perturbation) for _ in range(3)]
    return [
        CONDITION * max(float(np.abs(c[i].astype(np.float64) - e).max(initial=0)) for c in changes)
        for i, e in enumerate(expected)
    ]


def compared(model, inputs, delegate_path, host, options):
    """(the delegate's outputs or None, whether it took part)."""
    if host == "own":
        return own_outputs(model, inputs, delegate_path, options), True
    interpreter = running.interpret(model, [litert.load_delegate(str(delegate_path), options)])
    return outputs_of(interpreter, inputs), running.delegate_kernels(interpreter) > 0


@dataclasses.dataclass
class Subject:
    """A graph of a seed, its inputs, LiteRT's outputs for them, and the hosts and options that are tried."""

    graph: object
    model: bytes
    reference: object
    inputs: list
    expected: list
    settings: list
    rng: np.random.Generator


def subject(seed, type_name, steps=()):
    """Of the seed and one of TYPES, of these steps if any are named. Raises what LiteRT refuses."""
    graph = TYPES[type_name](seed)
    graph.grow(*[steps] if steps else [])
    model, rng = graph.model(), np.random.default_rng([seed, 1])
    reference = running.interpret(model, experimental_preserve_all_tensors=True)
    inputs = random_inputs(graph, reference, rng)
    expected = outputs_of(reference, inputs)
    return Subject(graph, model, reference, inputs, expected, settings_of(type_name, rng), rng)


def check(seed, type_name, delegate_path, steps=(), at=lambda stage: None):
    """Compares the subject of these arguments; `at` is told what runs next, for whoever must know what died."""
    at("reference")
    try:
        s = subject(seed, type_name, steps)
    except (RuntimeError, ValueError) as error:
        return Result([], refused=reason(error))
    graph = s.graph
    at("replay")
    # The reference shows nothing of what is inside another subgraph.
    coverage = {} if type_name in ("flow", "state") else requantization.replay(graph.g, s.reference)
    result = Result([], operators=len(graph.g.operators), coverage=coverage)
    allowed = [0.0] * len(s.expected)

    def differences(actual, places):
        return [difference(a, e, slack, places, bound) for a, e, slack in zip(actual, s.expected, allowed, strict=True)]

    for host, options in s.settings:
        at(f"delegate in {host} {options}")
        actual, delegated = compared(s.model, s.inputs, delegate_path, host, options)
        if actual is None:
            continue
        result.delegated |= delegated and host == "litert"
        bound, perturbation = bound_of(options)
        wrong = differences(actual, graph.places)
        if graph.dtype == np.float32 and any(wrong) and not result.ill_conditioned:
            at("perturbed reference")
            result.ill_conditioned, allowed = True, slacks(graph, s.inputs, s.expected, s.rng, perturbation)
            wrong = differences(actual, None)
        for i, problem in enumerate(wrong):
            if problem:
                result.problems.append(f"{host} {options}, output {i} {list(s.expected[i].shape)}: {problem}")
        result.own_host += host == "own"
    if result.problems:
        result.problems += graph.g.text
    return result
