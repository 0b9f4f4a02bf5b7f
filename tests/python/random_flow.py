"""Random graphs inside of a branch or a loop, and beside resource variables.

A graph that grows as others do becomes one branch of an IF, whose other branch is the same with other constants, or the
body of a WHILE, whose turns compute its outputs anew from inputs that they hand on. With state, what such a graph or a
plain one gives goes into variables, from which the next invoke reads it.
"""

import graphs
import numpy as np
from ai_edge_litert import schema_py_generated as schema


def declare(graph, value, like_graph, like):
    """Gives the tensor of `value` the shape, type and quantization of another graph's."""
    to, like = graph.tensors[value.index], like_graph.tensors[like.index]
    to.shape, to.type, to.quantization = like.shape, like.type, like.quantization
    return value


def input_like(graph, like_graph, like):
    return declare(graph, graph.input((), np.float32), like_graph, like)


def scale_constants(graph, factor):
    for tensor in graph.tensors:
        if not tensor.buffer or tensor.type != schema.TensorType.FLOAT32:
            continue
        data = np.frombuffer(graph.buffers[tensor.buffer].data.tobytes(), np.float32) * np.float32(factor)
        graph.buffers[tensor.buffer] = schema.BufferT()
        graph.buffers[tensor.buffer].data = np.frombuffer(data.tobytes(), np.uint8)


def known_when_prepared(graph):
    """The tensors that constants and shapes decide. Where a branch gives one of them, LiteRT's IF gives what was in
    memory, and dies in the end."""
    names = [name for name, _ in graph.codes]
    known = {i for i, tensor in enumerate(graph.tensors) if tensor.buffer}
    for operator in graph.operators:
        if names[operator.opcodeIndex] in ("SHAPE", "RANK") or known.issuperset(operator.inputs):
            known.update(operator.outputs)
    return known


def handle(g, name):
    return g.op(
        "VAR_HANDLE",
        [],
        (),
        "VarHandleOptions",
        dtype=np.int32,
        tensor_type=schema.TensorType.RESOURCE,
        container="",
        sharedName=name,
    )


def add_state(g, outputs, initializer, rng):
    """Some outputs go into variables, which CALL_ONCE has filled: what the last invoke has put there is an output too,
    and a float is added to it."""
    once = graphs.Graph()
    g.op("CALL_ONCE", [], [], "CallOnceOptions", dtype=np.int32, initSubgraphIndex=initializer)
    results = list(outputs)
    for i, output in enumerate(outputs):
        if i and rng.random() < 0.5:
            continue
        tensor, name = g.tensors[output.index], f"state {i}"
        dtype = {code: dtype for dtype, code in graphs.TYPES.items()}[tensor.type]
        first = once.constant(rng.integers(0, 2, tensor.shape).astype(dtype))
        once.op("ASSIGN_VARIABLE", [handle(once, name), declare(once, first, g, output)], [])
        place = handle(g, name)
        before = declare(g, g.op("READ_VARIABLE", [place], (), dtype=dtype), g, output)
        if tensor.type == schema.TensorType.FLOAT32:
            output = g.op("ADD", [before, output], tuple(tensor.shape), "AddOptions", dtype=np.float32)
            results[i] = output
        g.op("ASSIGN_VARIABLE", [place, output], [])
        if tensor.shape and rng.random() < 0.5:  # of rank 0 the shape counts as unknown
            results.append(declare(g, g.op("READ_VARIABLE", [place], (), dtype=dtype), g, output))
        results.append(before)
    return results, (once, [])


class RandomFlow:
    """`make(seed)` gives the graph inside; `state`: beside variables, in half of the graphs without any control flow."""

    def __init__(self, seed, make, state=False):
        rng = np.random.default_rng([seed, 7])
        self.seed, self.make, self.steps, self.state = seed, make, (), state
        self.plain = bool(state and seed % 2)
        self.loop, self.turns, self.condition = bool(rng.random() < 0.5), int(rng.integers(1, 4)), rng.random() < 0.5

    def grow(self, *steps):
        self.steps = steps
        inner = self._inner()
        self.dtype, self.places = inner.dtype, inner.places
        self.g, self.feeds = graphs.Graph(), {}
        self._add_inputs(self.g, inner)
        around = "variables beside:" if self.plain else f"{'WHILE' if self.loop else 'IF'} around:"
        self.g.operators, self.g.text = inner.g.operators, [around, *inner.g.text]
        return self

    def _inner(self):
        inner = self.make(self.seed)
        inner.grow(*self.steps)
        known = known_when_prepared(inner.g)
        inner.outputs = [value for value in inner.outputs if value.index not in known]
        if not inner.outputs:
            x = inner.g.inputs[0]
            inner.outputs = [inner.g.op("CAST", [x], x.shape, "CastOptions", dtype=np.float32)]
        return inner

    def _add_inputs(self, g, inner):
        """The condition of an IF and the inputs of the graph inside."""
        if not self.loop and not self.plain:
            self.feeds[g.input((), np.bool_).index] = np.array(self.condition)
        for value in inner.g.inputs:
            copy = input_like(g, inner.g, value)
            if value.index in inner.feeds:
                self.feeds[copy.index] = inner.feeds[value.index]

    def model(self, change=None):
        """`change` is for graphs without control flow: what is inside keeps its constants."""
        g, inner = graphs.Graph(), self._inner()
        if self.plain:
            return self._build(inner.g, inner.outputs, [])
        self._add_inputs(g, inner)
        return self._loop(g, inner) if self.loop else self._branch(g, inner)

    def _build(self, g, outputs, others):
        if self.state:
            outputs, once = add_state(g, outputs, 1 + len(others), np.random.default_rng([self.seed, 8]))
            others.append(once)
        return g.build(outputs, None, others)

    def _branch(self, g, inner):
        other = self._inner()
        scale_constants(other.g, 0.5)
        outputs = g.op("IF", g.inputs, [()] * len(inner.outputs), "IfOptions", thenSubgraphIndex=1, elseSubgraphIndex=2)
        for output, like in zip(outputs, inner.outputs, strict=True):
            declare(g, output, inner.g, like)
        return self._build(g, outputs, [(inner.g, inner.outputs), (other.g, other.outputs)])

    def _loop(self, g, inner):
        """The loop's values: a count, the inputs, the outputs, which begin as zeros."""
        body, given = inner.g, list(inner.g.inputs)
        values = [g.constant(np.array(0, np.int32)), *g.inputs]
        for output in inner.outputs:
            tensor = body.tensors[output.index]
            bits = {code: dtype for dtype, code in graphs.TYPES.items()}[tensor.type]
            values.append(declare(g, g.constant(np.zeros(tensor.shape, bits)), body, output))
        results = g.op("WHILE", values, [()] * len(values), "WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2)
        condition = graphs.Graph()
        for result, value in zip(results, values, strict=True):
            declare(g, result, g, value)
            input_like(condition, g, value)
        limit = condition.constant(np.array(self.turns, np.int32))
        more = condition.op("LESS", [condition.inputs[0], limit], (), "LessOptions", dtype=np.bool_)
        body.inputs = []
        count = body.input((), np.int32)
        unread = [input_like(body, body, output) for output in inner.outputs]
        body.inputs = [count, *given, *unread]
        following = body.op("ADD", [count, body.constant(np.array(1, np.int32))], (), "AddOptions")
        others = [(condition, [more]), (body, [following, *given, *inner.outputs])]
        # What is handed on unchanged is read by nodes alone, which LiteRT treats apart.
        kept = [r for r in results[1 : 1 + len(given)] if g.tensors[r.index].type == graphs.TYPES[np.dtype(np.float32)]]
        negated = [g.op("NEG", [r], tuple(g.tensors[r.index].shape), dtype=np.float32) for r in kept if self.seed % 2]
        return self._build(g, [*results[1 + len(given) :], *negated], others)
