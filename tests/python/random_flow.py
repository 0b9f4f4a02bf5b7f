"""Random graphs inside of a branch or a loop.

A graph that grows as others do becomes one branch of an IF, whose other branch is the same with other constants, or the
body of a WHILE, whose turns compute its outputs anew from inputs that they hand on.
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


class RandomFlow:
    """`make(seed)` gives the graph inside."""

    def __init__(self, seed, make):
        rng = np.random.default_rng([seed, 7])
        self.seed, self.make, self.steps = seed, make, ()
        self.loop, self.turns, self.condition = bool(rng.random() < 0.5), int(rng.integers(1, 4)), rng.random() < 0.5

    def grow(self, *steps):
        self.steps = steps
        inner = self._inner()
        self.dtype, self.exact = inner.dtype, inner.exact
        self.g, self.feeds = graphs.Graph(), {}
        self._add_inputs(self.g, inner)
        self.g.operators, self.g.text = inner.g.operators, [f"{'WHILE' if self.loop else 'IF'} around:", *inner.g.text]
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
        if not self.loop:
            self.feeds[g.input((), np.bool_).index] = np.array(self.condition)
        for value in inner.g.inputs:
            copy = input_like(g, inner.g, value)
            if value.index in inner.feeds:
                self.feeds[copy.index] = inner.feeds[value.index]

    def model(self, change=None):
        """`change` is for graphs without control flow: what is inside keeps its constants."""
        g, inner = graphs.Graph(), self._inner()
        self._add_inputs(g, inner)
        return self._loop(g, inner) if self.loop else self._branch(g, inner)

    def _branch(self, g, inner):
        other = self._inner()
        scale_constants(other.g, 0.5)
        outputs = g.op("IF", g.inputs, [()] * len(inner.outputs), "IfOptions", thenSubgraphIndex=1, elseSubgraphIndex=2)
        for output, like in zip(outputs, inner.outputs, strict=True):
            declare(g, output, inner.g, like)
        return g.build(outputs, None, [(inner.g, inner.outputs), (other.g, other.outputs)])

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
        return g.build(results[1 + len(given) :], None, [(condition, [more]), (body, [following, *given, *inner.outputs])])
