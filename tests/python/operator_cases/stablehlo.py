"""STABLEHLO operators, among them those whose function is another subgraph of one operator."""

import graphs
import numpy as np

FUNCTIONS = ["STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"]
LOGICAL = {"LOGICAL_AND": "LogicalAndOptions", "LOGICAL_OR": "LogicalOrOptions"}
SCATTERED = [
    np.float16,
    np.float32,
    np.float64,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
    np.bool_,
]
WINDOWED = [np.float32, np.float64, np.int8, np.uint8, np.int16, np.int32, np.int64]


def region(name, dtype):
    """A subgraph of one operator; of none for the second of its inputs."""
    g = graphs.Graph()
    x, y = g.input((), dtype), g.input((), dtype)
    return g, [g.op(name, [x, y], (), LOGICAL.get(name)) if name else y]


def small(c, shape, dtype):
    """Few enough, and small enough, that products of many are numbers."""
    return c.input(shape, dtype, *(() if np.dtype(dtype).kind in "fb" else (0, 5)))


def scatter(c):
    dtype, index = c.pick(SCATTERED), c.pick([np.int32, np.int64])
    operand = c.shape(1, 4, 5)
    rank = len(operand)
    inserted = sorted(d for d in range(rank) if c.chance(0.4))
    window = [c.int(1, operand[d]) for d in range(rank) if d not in inserted]
    batch = c.shape(0, 2, 3)
    mapped = list(c.rng.permutation(rank)[: c.int(1, rank)])
    dims = sorted(c.rng.permutation(len(window) + len(batch))[: len(window)].tolist())
    windows, batches = iter(window), iter(batch)
    updates = tuple(next(windows) if d in dims else next(batches) for d in range(len(window) + len(batch)))
    axis = c.int(0, len(batch))
    indices = np.stack([c.rng.integers(0, operand[d] + 1, batch) for d in mapped], axis)
    name = c.pick([None, *FUNCTIONS])
    c.others = [region(name, dtype)]
    inputs = [small(c, operand, dtype), c.either(indices.astype(index)), small(c, updates, dtype)]
    return c.g.op(
        "STABLEHLO_SCATTER",
        inputs,
        operand,
        "StablehloScatterOptions",
        updateWindowDims=dims,
        insertedWindowDims=inserted,
        scatterDimsToOperandDims=[int(d) for d in mapped],
        indexVectorDim=axis,
        updateComputationSubgraphIndex=1,
    )


def reduce_window(c):
    shape = c.shape(1, 4, 6)
    dtype, function = c.pick(WINDOWED), c.pick(FUNCTIONS)
    if c.chance(0.2):
        dtype, function = np.bool_, c.pick(list(LOGICAL))
    c.exact = np.dtype(dtype).kind != "f"
    base = [c.pick([1, 1, 2, 3]) for _ in shape]
    pads = [[c.int(-1, 2), c.int(-1, 2)] if c.chance(0.5) else [0, 0] for _ in shape]
    spread = [(d - 1) * b + 1 for d, b in zip(shape, base)]
    pads = [p if s + sum(p) > 0 else [0, 0] for s, p in zip(spread, pads)]
    padded = [s + sum(p) for s, p in zip(spread, pads)]
    size, dilation = [c.int(1, min(3, d)) for d in padded], [c.pick([1, 1, 2]) for _ in shape]
    stride = [c.int(1, 3) for _ in shape]
    reach = [(w - 1) * d + 1 for w, d in zip(size, dilation)]
    out = tuple((p - r) // s + 1 if p >= r else 0 for p, r, s in zip(padded, reach, stride))
    c.others = [region(function, dtype)]
    initial = c.either(c.values((), dtype) if np.dtype(dtype).kind in "bf" else np.array(c.int(0, 3), dtype))
    return c.g.op(
        "STABLEHLO_REDUCE_WINDOW",
        [small(c, shape, dtype), initial],
        out,
        "StablehloReduceWindowOptions",
        windowDimensions=size,
        windowStrides=stride,
        baseDilations=base,
        windowDilations=dilation,
        padding=[n for p in pads for n in p],
        bodySubgraphIndex=1,
    )


def random_bits(c):
    algorithm = c.int(0, 2)
    count = 2 if algorithm == 2 else c.int(2, 3)
    state, bits = c.g.op(
        "STABLEHLO_RNG_BIT_GENERATOR",
        [c.feed(c.rng.integers(0, 2**64, count, np.uint64) | np.uint64(c.int(0, 1) * 0xFFFFFFFF))],
        [(count,), c.shape(0, 3, 9)],
        "StablehloRngBitGeneratorOptions",
        dtype=np.uint64,
        algorithm=algorithm,
    )
    c.g.tensors[bits.index].type = graphs.TYPES[np.dtype(c.pick([np.int32, np.int64, np.uint32, np.uint64]))]
    return [state, bits]


CASES = {
    "STABLEHLO_REDUCE_WINDOW": reduce_window,
    "STABLEHLO_RNG_BIT_GENERATOR": random_bits,
    "STABLEHLO_SCATTER": scatter,
}
