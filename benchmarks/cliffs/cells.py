"""Functions that make a recurrent cell, of one turn or of a sequence: as in families.py."""

import graphs
import numpy as np
from draw import FLOAT, INT8, INT16, UINT8

TANH = 4


class _Form:
    """Weights of floats, or of bytes beside floats (`hybrid`)."""

    def __init__(self, d, hybrid):
        self.d, self.hybrid = d, hybrid

    def weights(self, *shape):
        if self.hybrid:
            return self.d.g.constant(self.d.rng.integers(-127, 128, shape).astype(np.int8), 1 / 300, 0)
        return self.d.g.constant(self.d.rng.uniform(-0.4, 0.4, shape).astype(np.float32))

    def bias(self, count):
        return self.d.g.constant(np.zeros(count, np.float32))

    def lstm(self, width, cells):
        inputs = [self.weights(cells, width) for _ in range(4)] + [self.weights(cells, cells) for _ in range(4)]
        return [*inputs, None, None, None, *[self.bias(cells) for _ in range(4)], None, None]

    def whole_lstm(self, batch, width, cells):
        """All operands but the first of a cell with peepholes, a projection and layer normalization, each there or not, and
        the size of its output."""
        d = self.d
        peepholes, projection, normalization = (d.pick([False, True]) for _ in range(3))
        outputs = d.size(4, cells) if projection else cells
        inputs = [self.weights(cells, width) for _ in range(4)] + [self.weights(cells, outputs) for _ in range(4)]
        inputs += [self.weights(cells) if peepholes else None for _ in range(3)] + [self.bias(cells) for _ in range(4)]
        inputs += [self.weights(outputs, cells) if projection else None, None]
        inputs += [d.g.variable((batch, outputs)), d.g.variable((batch, cells))]
        inputs += [d.g.constant(np.full(cells, 0.3, np.float32)) if normalization else None for _ in range(4)]
        return inputs, outputs

    def rnn(self, batch, width, cells):
        state = self.d.g.variable((batch, cells))
        return [self.weights(cells, width), self.weights(cells, cells), self.bias(cells), state]


def _sizes(d):
    """Batch, turns, width of the input, cells: one in four has weights that no second cache holds."""
    most = d.pick([300, 300, 300, 1024])
    return d.pick([1, 1, 4]), d.size(2, 50), d.size(4, 300), d.size(4 if most == 300 else 300, most)


def lstm(sequence, hybrid=False, whole=False):
    """`whole`: with all that a cell can have."""

    def make(d, dtype):
        batch, turns, width, cells = _sizes(d)
        rows = (batch, turns) if sequence else (batch,)
        inputs, outputs = [d.g.input((*rows, width), FLOAT)], cells
        if whole:
            more, outputs = _Form(d, hybrid).whole_lstm(batch, width, cells)
            inputs += more
        else:
            inputs += _Form(d, hybrid).lstm(width, cells)
            inputs += [d.g.variable((batch, cells)), d.g.variable((batch, cells)), *[None] * 4]
        name, options = "LSTM", "LSTMOptions"
        if sequence:
            name, options = "UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTMOptions"
        fields = {"fusedActivationFunction": TANH, "asymmetricQuantizeInputs": hybrid}
        return d.g.op(name, inputs, (*rows, outputs), options, 3 if sequence else 4, **fields)

    return make


def lstm_of_bytes(whole=False):
    """As converters quantize a sequence: a cell state of int16. `whole`: with all that a cell can have."""

    def make(d, dtype):
        batch, turns, width, cells = _sizes(d)
        peepholes, projection, normalization = (whole and d.pick([False, True]) for _ in range(3))
        outputs = d.size(4, cells) if projection else cells
        out = {"scale": 1 / 128, "zero_point": 0}

        def weights(*shape):
            return d.g.constant(d.rng.integers(-127, 128, shape).astype(np.int8), 0.005, 0)

        def coefficients():
            return d.g.constant(d.rng.integers(-9000, 9000, cells).astype(np.int16), 2.0**-15, 0)

        x = d.g.input((batch, turns, width), INT8, 1 / 128, 0)
        inputs = [x, *[weights(cells, width) for _ in range(4)], *[weights(cells, outputs) for _ in range(4)]]
        inputs += [coefficients() if peepholes else None for _ in range(3)]
        inputs += [d.g.constant(np.zeros(cells, np.int32), 2.0**-12, 0) for _ in range(4)]
        inputs += [weights(outputs, cells) if projection else None, None]
        inputs += [d.g.variable((batch, outputs), INT8, **out), d.g.variable((batch, cells), INT16, 2.0**-11)]
        inputs += [coefficients() if normalization else None for _ in range(4)]
        between = [(2.0**-12, 0) for _ in range(4)] + [(1 / 128, 0)]
        fields = {"fusedActivationFunction": TANH, "intermediates": between}
        options = "UnidirectionalSequenceLSTMOptions"
        return d.g.op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, (batch, turns, outputs), options, 1, **out, **fields)

    return make


def basic_lstm(d, dtype):
    """LSTM's form of five inputs, whose other outputs hold what it computes on the way."""
    batch, _, width, cells = _sizes(d)
    byte = dtype == UINT8
    values, states = ((1 / 128, 128), (1 / 2048, 0)) if byte else ((None, 0), (None, 0))
    kept = INT16 if byte else FLOAT
    x, previous = d.g.input((batch, width), dtype, *values), d.g.variable((batch, cells), dtype, *values)
    shape = (4 * cells, width + cells)
    if byte:
        weights = d.g.constant(d.rng.integers(0, 256, shape).astype(UINT8), 0.004, 120)
        bias = d.g.constant(d.rng.integers(-9000, 9000, shape[:1]).astype(np.int32), 0.004 / 128, 0)
    else:
        weights = d.g.constant(d.rng.uniform(-0.4, 0.4, shape).astype(FLOAT))
        bias = d.g.constant(d.rng.uniform(-1, 1, shape[:1]).astype(FLOAT))
    inputs = [x, previous, weights, bias, d.g.variable((batch, cells), kept, *states)]
    shapes = [(batch, cells), (batch, cells), (batch, width + cells), (batch, 4 * cells)]
    outputs = d.g.op("LSTM", inputs, shapes, "LSTMOptions", 2, fusedActivationFunction=TANH, kernelType=1)
    kinds = [(dtype, values), (kept, states), (dtype, values), (kept, (1 / 4096, 0))]
    for output, (kind, (scale, zero_point)) in zip(outputs, kinds, strict=True):
        tensor = d.g.tensors[output.index]
        tensor.type, tensor.quantization = graphs.TYPES[np.dtype(kind)], None
        if byte:
            graphs.quantize(tensor, scale, zero_point)
    return outputs


def rnn(sequence, hybrid=False):
    def make(d, dtype):
        batch, turns, width, cells = _sizes(d)
        rows = (batch, turns) if sequence else (batch,)
        x = d.g.input((*rows, width), FLOAT)
        inputs = [x, *_Form(d, hybrid).rnn(batch, width, cells)]
        name, options = ("UNIDIRECTIONAL_SEQUENCE_RNN", "SequenceRNNOptions") if sequence else ("RNN", "RNNOptions")
        fields = {"fusedActivationFunction": TANH, "asymmetricQuantizeInputs": hybrid}
        return d.g.op(name, inputs, (*rows, cells), options, 3, **fields)

    return make


def bidirectional_rnn(d, dtype):
    batch, turns, width, cells = _sizes(d)
    form, x = _Form(d, False), d.g.input((batch, turns, width), FLOAT)
    inputs = [x, *form.rnn(batch, width, cells), *form.rnn(batch, width, cells), None, None, None]
    fields = {"fusedActivationFunction": TANH, "mergeOutputs": True}
    options = "BidirectionalSequenceRNNOptions"
    return d.g.op("BIDIRECTIONAL_SEQUENCE_RNN", inputs, [(batch, turns, 2 * cells)], options, 3, **fields)


def bidirectional_lstm(d, dtype):
    _, turns, width, cells = _sizes(d)
    form, inputs = _Form(d, False), [d.g.input((1, turns, width), FLOAT)]
    for _ in range(2):
        inputs += form.lstm(width, cells)
    inputs += [d.g.variable((1, cells)) for _ in range(4)] + [None] * 9
    fields = {"fusedActivationFunction": TANH, "mergeOutputs": True, "timeMajor": False}
    options = "BidirectionalSequenceLSTMOptions"
    return d.g.op("BIDIRECTIONAL_SEQUENCE_LSTM", inputs, [(1, turns, 2 * cells)], options, 3, **fields)


def svdf(hybrid=False):
    def make(d, dtype):
        batch, width, rank, cells, memory = d.pick([1, 1, 4]), d.size(8, 300), d.pick([1, 1, 2]), d.size(8, 300), d.size(4, 32)
        form, filters = _Form(d, hybrid), rank * cells
        inputs = [d.g.input((batch, width), FLOAT), form.weights(filters, width), form.weights(filters, memory)]
        inputs += [form.bias(cells), d.g.variable((batch, memory * filters))]
        fields = {"rank": rank, "fusedActivationFunction": 1, "asymmetricQuantizeInputs": hybrid}
        return d.g.op("SVDF", inputs, (batch, cells), "SVDFOptions", 4, **fields)

    return make


def svdf_of_bytes(d, dtype):
    batch, width, rank, cells, memory = d.pick([1, 1, 4]), d.size(8, 300), d.pick([1, 1, 2]), d.size(8, 300), d.size(4, 32)
    filters = rank * cells
    x = d.g.input((batch, width), INT8, 1 / 64, 0)
    features = d.g.constant(d.rng.integers(-127, 128, (filters, width)).astype(np.int8), 1 / 128, 0)
    time = d.g.constant(d.rng.integers(-3000, 3000, (filters, memory)).astype(np.int16), 1 / 4096, 0)
    state = d.g.variable((batch, memory * filters), INT16, width / 1024, 0)
    bias = d.g.constant(np.zeros(cells, np.int32), state.scale / 4096)
    scale = state.scale / 4096 * memory * rank * 4e4
    fields = {"rank": rank, "fusedActivationFunction": 1, "dtype": INT8, "scale": scale}
    return d.g.op("SVDF", [x, features, time, bias, state], (batch, cells), "SVDFOptions", 3, **fields)
