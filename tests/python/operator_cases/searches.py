"""Operators that look for something."""

import graphs
import numpy as np


def unique(c):
    """Of a constant: the number of values is known then."""
    dtype, count = c.pick([np.float32, np.int8, np.uint8, np.int16, np.int32, np.int64]), c.int(1, 20)
    data, index = c.rng.integers(0, 9, count).astype(dtype), c.pick([np.int32, np.int64])
    values, places = c.g.op(
        "UNIQUE",
        [c.g.constant(data)],
        [(len(set(data)),), (count,)],
        "UniqueOptions",
        dtype=dtype,
        idxOutType=graphs.TYPES[np.dtype(index)],
    )
    c.g.tensors[places.index].type = graphs.TYPES[np.dtype(index)]
    x = c.input((count,), index, 0, 9)
    return [c.g.op("ADD", [graphs.Value(places.index, (count,), index, None, 0), x], (count,), "AddOptions"), values]


def non_max_suppression(c):
    """Boxes in groups, so that many overlap."""
    count, soft = c.int(1, 40), c.chance(0.5)
    corner = c.rng.integers(0, 4, (count, 2)) + c.rng.uniform(0, 0.6, (count, 2))
    boxes = np.concatenate([corner, corner + c.rng.uniform(0.2, 1.2, (count, 2))], 1)
    boxes = boxes[:, [2, 1, 0, 3]] if c.chance(0.3) else boxes
    most = c.int(1, 20)
    numbers = [c.rng.uniform(0.1, 0.7), c.pick([0.0, 0.3, -1.0])] + ([c.pick([0.0, 0.5])] if soft else [])
    inputs = [c.feed(boxes.astype(np.float32)), c.input((count,), np.float32, 0, 1)]
    inputs += [c.g.constant(np.array(most, np.int32))] + [c.either(np.array(v, np.float32)) for v in numbers]
    version = 5 if soft else 4
    outputs = c.g.op(
        f"NON_MAX_SUPPRESSION_V{version}",
        inputs,
        [(most,)] + ([(most,)] if soft else []) + [()],
        f"NonMaxSuppressionV{version}Options",
        dtype=np.int32,
    )
    if soft:
        c.g.tensors[outputs[1].index].type = graphs.TYPES[np.dtype(np.float32)]
    return outputs


def hashtable_lookup(c):
    rows, count = c.int(1, 8), c.int(1, 9)
    keys = np.sort(c.rng.choice(20, rows, replace=False)).astype(np.int32)
    table = c.input((rows, *c.shape(0, 2, 4)), c.pick([np.float32, np.int32, np.uint8, np.int8]))
    lookups = c.input((count,), np.int32, 0, 20)
    values, hits = c.g.op("HASHTABLE_LOOKUP", [lookups, c.either(keys), table], [(count, *table.shape[1:]), (count,)], like=table)
    c.g.tensors[hits.index].type = graphs.TYPES[np.dtype(np.uint8)]
    return [values, hits]


def embedding_lookup_sparse(c):
    rows, width, places, count = c.int(1, 8), c.int(1, 9), c.shape(1, 2, 4), c.int(1, 9)
    indices = np.stack([c.rng.integers(0, d, count) for d in places] + [np.arange(count)], 1)
    indices = indices[np.lexsort(indices.T[::-1])].astype(np.int32)
    shape = c.g.constant(np.array([*places, count], np.int32))
    inputs = [c.input((count,), np.int32, 0, rows - 1), c.feed(indices), shape]
    inputs += [c.input((count,), np.float32, 0.1, 2), c.input((rows, width), np.float32)]
    return c.g.op(
        "EMBEDDING_LOOKUP_SPARSE", inputs, (*places, width), "EmbeddingLookupSparseOptions", like=inputs[3], combiner=c.int(0, 2)
    )


def lsh_projection(c):
    """Items of every length that the hash function tells apart."""
    sparse, hashes, bits, items = c.chance(0.5), c.int(1, 4), c.int(1, 20), c.int(1, 6)
    item = c.pick([(), (c.int(1, 40),), c.shape(0, 3)])
    x = c.input((items, *item), c.pick([np.int8, np.int32, np.float32, np.int64]))
    inputs = [c.either(c.values((hashes, bits), np.float32)), x]
    inputs += [c.either(c.values((items,), np.float32))] if c.chance(0.5) else []
    return c.g.op(
        "LSH_PROJECTION",
        inputs,
        (hashes if sparse else hashes * bits,),
        "LSHProjectionOptions",
        dtype=np.int32,
        type=1 if sparse else 2,
    )


CASES = {
    "EMBEDDING_LOOKUP_SPARSE": embedding_lookup_sparse,
    "HASHTABLE_LOOKUP": hashtable_lookup,
    "LSH_PROJECTION": lsh_projection,
    "NON_MAX_SUPPRESSION": non_max_suppression,
    "UNIQUE": unique,
}
