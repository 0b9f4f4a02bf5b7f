"""Recurrent cells."""

import graphs
import numpy as np


def weights_of(c, shape, form):
    """float32, or 8 bits of one scale in the hybrid forms."""
    if form == "float":
        return c.g.constant(c.values(shape, np.float32, -0.4, 0.4))  # larger ones amplify roundings
    data = c.rng.integers(-127, 128, shape).astype(np.int8)
    value = c.g.constant(data, 1 / 300, 0)
    if form == "hybrid uint8":  # holds int8 too
        c.g.tensors[value.index].type = graphs.TYPES[np.dtype(np.uint8)]
    return value


def legacy_conv(c):
    c.exact, c.tolerance = False, 0.02
    n, size, inputs, outputs, k = c.int(1, 2), c.int(3, 9), c.int(1, 9), c.int(1, 9), c.int(1, 3)
    x = c.input((n, size, size, inputs), np.float32)
    weights = weights_of(c, (outputs, k, k, inputs), "hybrid uint8")
    bias = c.g.constant(c.values((outputs,), np.float32))
    return c.g.op(
        "CONV_2D",
        [x, weights, bias],
        (n, size, size, outputs),
        "Conv2DOptions",
        2,
        padding=0,
        strideH=1,
        strideW=1,
        fusedActivationFunction=c.pick([0, 1]),
    )


def legacy_dense(c):
    c.exact, c.tolerance = False, 0.02
    rows, inputs, outputs = c.int(1, 4), c.int(1, 40), c.int(1, 20)
    weights = weights_of(c, (outputs, inputs), "hybrid uint8")
    bias = c.g.constant(c.values((outputs,), np.float32))
    return c.g.op(
        "FULLY_CONNECTED", [c.input((rows, inputs), np.float32), weights, bias], (rows, outputs), "FullyConnectedOptions", 3
    )


def legacy_lstm(c):
    c.exact, c.tolerance = False, 0.02
    batch, steps, width, cells = c.int(1, 3), c.int(1, 4), c.int(1, 20), c.int(1, 12)
    form = "hybrid uint8"
    inputs = [c.input((batch, steps, width), np.float32)]
    inputs += [weights_of(c, (cells, width), form) for _ in range(4)]
    inputs += [weights_of(c, (cells, cells), form) for _ in range(4)] + [None] * 3
    inputs += [c.g.constant(c.values((cells,), np.float32)) for _ in range(4)] + [None] * 2
    inputs += [c.g.variable((batch, cells)), c.g.variable((batch, cells))] + [None] * 4
    return c.g.op(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        inputs,
        (batch, steps, cells),
        "UnidirectionalSequenceLSTMOptions",
        2,
        fusedActivationFunction=4,
        timeMajor=False,
        cellClip=0.0,
        projClip=0.0,
    )


def float_lstm(name):
    """Of floats, or with weights of int8, in every form: coupled gates, peepholes, projection, layer normalization."""

    def case(c):
        sequence, form = name != "LSTM", c.pick(["float", "hybrid"])
        coupled, peephole, project, normalize = (c.chance(p) for p in (0.3, 0.4, 0.4, 0.3))
        # LiteRT's reference kernels have none for int8 weights, whose values a last bit may move by a step.
        c.exact, c.reference = False, form == "float"
        c.tolerance = 2e-5 if form == "float" else 0.05 if normalize else 0.02
        batch, steps, width, cells = c.int(1, 3), c.int(1, 4), c.int(1, 20), c.int(1, 24)
        # LiteRT reads peepholes beyond their end where there are more outputs than cells.
        outputs = c.int(1, cells if peephole else 30) if project else cells
        time_major = sequence and c.chance(0.5)
        rows = ((steps, batch) if time_major else (batch, steps)) if sequence else (batch,)

        def floats(shape, low=-0.4):
            return c.g.constant(c.values(shape, np.float32, low, 0.4))

        def gates(make, there=True):
            return [make() if there and not (coupled and gate == 0) else None for gate in range(4)]

        inputs = [c.input((*rows, width), np.float32, -1, 1)]
        inputs += [*gates(lambda: weights_of(c, (cells, width), form)), *gates(lambda: weights_of(c, (cells, outputs), form))]
        peepholes = gates(lambda: weights_of(c, (cells,), form), peephole)
        inputs += [peepholes[0], peepholes[1], peepholes[3], *gates(lambda: floats((cells,)))]
        inputs.append(weights_of(c, (outputs, cells), form) if project else None)
        inputs.append(floats((outputs,)) if project and c.chance(0.7) else None)
        inputs += [c.g.variable((batch, outputs)), c.g.variable((batch, cells))]
        inputs += gates(lambda: floats((cells,), 0.1), normalize)
        options = "UnidirectionalSequenceLSTMOptions" if sequence else "LSTMOptions"
        fields = {"timeMajor": time_major} if sequence else {}
        return c.g.op(
            name,
            inputs,
            (*rows, outputs),
            options,
            3 if sequence else 4,
            fusedActivationFunction=4,
            cellClip=c.pick([0.0, 0.8]),
            projClip=c.pick([0.0, 0.4]) if project else 0.0,
            asymmetricQuantizeInputs=c.chance(0.5),
            **fields,
        )

    return case


def integer_lstm(name):
    """int8 with a cell state of int16, in every form: coupled gates, peepholes, projection, layer normalization."""

    def case(c):
        sequence = name != "LSTM"
        batch, steps, width, cells = c.int(1, 3), c.int(1, 4), c.int(1, 20), c.int(1, 24)
        coupled, peephole, project, normalize = (c.chance(p) for p in (0.3, 0.4, 0.4, 0.4))
        # LiteRT reads peepholes beyond their end where there are more outputs than cells.
        outputs = c.int(1, cells if peephole else 30) if project else cells
        time_major = sequence and c.chance(0.5)

        def weights(shape, dtype=np.int8, scale=None):
            data = c.rng.integers(-np.iinfo(dtype).max, np.iinfo(dtype).max, shape, dtype, endpoint=True)
            return c.g.constant(data, scale or c.rng.uniform(0.002, 0.02), 0)

        def gates(there, shape, *more):
            return [weights(shape, *more) if there and not (coupled and i == 0) else None for i in range(4)]

        rows = ((steps, batch) if time_major else (batch, steps)) if sequence else (batch,)
        x = c.input((*rows, width), np.int8, scale=c.rng.uniform(0.004, 0.02), zero_point=c.int(-128, 127))
        out = {"scale": c.rng.uniform(0.004, 0.02), "zero_point": c.int(-128, 127)}
        inputs = [x, *gates(True, (cells, width)), *gates(True, (cells, outputs))]
        peepholes = gates(peephole, (cells,), np.int16, 2.0**-15)
        inputs += [peepholes[0], peepholes[1], peepholes[3]]
        biases = [c.g.constant(c.values((cells,), np.int32, -9000, 9000), 2.0**-12, 0) for _ in range(4)]
        inputs += [None if coupled else biases[0], *biases[1:]]
        inputs.append(weights((outputs, cells)) if project else None)
        bias = project and c.chance(0.7)
        inputs.append(c.g.constant(c.values((outputs,), np.int32, -9000, 9000), 1e-4, 0) if bias else None)
        inputs += [c.g.variable((batch, outputs), np.int8, **out), c.g.variable((batch, cells), np.int16, 2.0 ** -c.int(9, 15))]
        inputs += gates(normalize, (cells,), np.int16, 2.0**-15)
        between = [(2.0**-12 * c.rng.uniform(0.5, 2), 0) for _ in range(4)]
        between.append((c.rng.uniform(0.003, 0.012), c.int(-128, 127)))
        options = "UnidirectionalSequenceLSTMOptions" if sequence else "LSTMOptions"
        fields = {"timeMajor": time_major} if sequence else {}
        return c.g.op(
            name,
            inputs,
            (*rows, outputs),
            options,
            1 if sequence else 2,
            **out,
            intermediates=between,
            fusedActivationFunction=4,
            cellClip=c.pick([0.0, 0.5]),
            projClip=c.pick([0.0, 0.4]),
            **fields,
        )

    return case


def byte_lstm(c):
    """int8 whose sums are rounded to int8: no input gate, normalized, projected."""
    batch, width, cells, outputs = c.int(1, 3), c.int(1, 20), c.int(1, 24), c.int(1, 20)
    both = c.chance(0.3)  # LiteRT does not look at the input gate's weights

    def weights(shape, dtype=np.int8, scale=None):
        limit = np.iinfo(dtype).max
        return c.g.constant(c.values(shape, dtype, -limit, limit), scale or c.rng.uniform(0.002, 0.02), 0)

    def gates(shape, *more):
        return [weights(shape, *more) if both or i else None for i in range(4)]

    x = c.input((batch, width), np.int8, scale=c.rng.uniform(0.004, 0.02), zero_point=c.int(-128, 127))
    out = {"scale": c.rng.uniform(0.004, 0.02), "zero_point": c.int(-128, 127)}
    biases = [c.g.constant(c.values((cells,), np.int32, -90000, 90000), 2.0**-20, 0) for _ in range(4)]
    inputs = [x, *gates((cells, width)), *gates((cells, outputs)), None, None, None]
    inputs += [biases[0] if both else None, *biases[1:], weights((outputs, cells))]
    inputs += [
        c.g.constant(c.values((outputs,), np.int32, -9000, 9000), 1e-4, 0),
        c.g.variable((batch, outputs), np.int8, **out),
        c.g.variable((batch, cells), np.int16, 2.0**-15),
    ]
    inputs += gates((cells,), np.int16, 2.0**-15)
    between = [(c.rng.uniform(0.01, 0.05) / (16 if i % 3 == 0 else 1), c.int(-128, 127)) for i in range(12)]
    return c.g.op(
        "LSTM",
        inputs,
        (batch, outputs),
        "LSTMOptions",
        2,
        **out,
        intermediates=between,
        fusedActivationFunction=4,
        cellClip=c.pick([0.0, 0.5, 2.0]),
        projClip=c.pick([0.0, 0.4]),
    )


def rnn_cell(c, batch, width, units, form):
    """Weights, recurrent weights, bias and state of a cell."""
    return [
        weights_of(c, (units, width), form),
        weights_of(c, (units, units), form),
        c.g.constant(c.values((units,), np.float32)),
        c.g.variable((batch, units)),
    ]


def rnn_form(c):
    """Also sets the tolerance: LiteRT's sums have another order, and in the hybrid forms a step of a quantized input
    may come out differently."""
    form = c.pick(["float", "hybrid", "hybrid uint8"])
    c.exact, c.tolerance = False, 1e-5 if form == "float" else 0.02
    hybrid = {} if form == "float" else {"asymmetricQuantizeInputs": c.chance(0.5)}
    return form, {"fusedActivationFunction": c.pick([4, 1, 0 if form == "float" else 4]), **hybrid}


def rnn(c):
    form, options = rnn_form(c)
    batch, width, units = c.int(1, 3), c.int(1, 20), c.int(1, 12)
    inputs = [c.input((batch, width), np.float32), *rnn_cell(c, batch, width, units, form)]
    return c.g.op("RNN", inputs, (batch, units), "RNNOptions", 3, **options)


def sequence_rnn(c):
    form, options = rnn_form(c)
    batch, steps, width, units, time_major = c.int(1, 3), c.int(1, 4), c.int(1, 20), c.int(1, 12), c.chance(0.5)
    rows = (steps, batch) if time_major else (batch, steps)
    inputs = [c.input((*rows, width), np.float32), *rnn_cell(c, batch, width, units, form)]
    return c.g.op("UNIDIRECTIONAL_SEQUENCE_RNN", inputs, (*rows, units), "SequenceRNNOptions", 3, timeMajor=time_major, **options)


def bidirectional_rnn(c):
    """Without an auxiliary input, with one for the backward cell, or with one that has weights."""
    form, options = rnn_form(c)
    batch, steps, width, time_major, merge = c.int(1, 3), c.int(1, 4), c.int(1, 20), c.chance(0.5), c.chance(0.5)
    merge &= form == "float" or not time_major  # LiteRT's hybrid kernel dies
    rows = (steps, batch) if time_major else (batch, steps)
    kind = c.pick(["none", "none", "weights"] + (["other input"] if form == "float" else []))  # dies in LiteRT
    forward, backward = c.int(1, 8), c.int(1, 8)
    inputs = [c.input((*rows, width), np.float32), *rnn_cell(c, batch, width, forward, form)]
    inputs += rnn_cell(c, batch, width, backward, form)
    inputs += [None if kind == "none" else c.input((*rows, width), np.float32)]
    inputs += [weights_of(c, (n, width), form) if kind == "weights" else None for n in (forward, backward)]
    shapes = [(*rows, forward + backward)] if merge else [(*rows, forward), (*rows, backward)]
    return c.g.op(
        "BIDIRECTIONAL_SEQUENCE_RNN",
        inputs,
        shapes,
        "BidirectionalSequenceRNNOptions",
        3,
        timeMajor=time_major,
        mergeOutputs=merge,
        **options,
    )


def svdf(c):
    form, options = rnn_form(c)
    batch, width, rank, outputs, memory = c.int(1, 3), c.int(1, 20), c.int(1, 3), c.int(1, 8), c.int(1, 9)
    filters = rank * outputs
    inputs = [c.input((batch, width), np.float32), weights_of(c, (filters, width), form), weights_of(c, (filters, memory), form)]
    inputs += [c.g.constant(c.values((outputs,), np.float32)) if c.chance(0.7) else None]
    inputs += [c.g.variable((batch, memory * filters))]
    return c.g.op("SVDF", inputs, (batch, outputs), "SVDFOptions", 4, rank=rank, **options)


def svdf_integer(c):
    batch, width, rank, outputs, memory = c.int(1, 3), c.int(1, 20), c.int(1, 3), c.int(1, 8), c.int(1, 9)
    filters = rank * outputs
    x = c.input((batch, width), np.int8, scale=c.scale(), zero_point=c.int(-50, 50))
    features = c.g.constant(c.values((filters, width), np.int8, -127, 127), 1 / 128, 0)
    state = c.g.variable((batch, memory * filters), np.int16, x.scale / 128 * width * 8, 0)
    time = c.g.constant(c.values((filters, memory), np.int16, -3000, 3000), 1 / 4096, 0)
    bias = c.g.constant(c.values((outputs,), np.int32, -9000, 9000), state.scale / 4096) if c.chance(0.7) else None
    scale = state.scale / 4096 * memory * rank * 4e4
    return c.g.op(
        "SVDF",
        [x, features, time, bias, state],
        (batch, outputs),
        "SVDFOptions",
        3,
        rank=rank,
        fusedActivationFunction=1,
        dtype=np.int8,
        scale=scale,
        zero_point=c.int(-100, 50),
    )


def bidirectional_lstm(c):
    """Without an auxiliary input, with one for the backward cell, or with one that has weights."""
    c.exact = False
    hybrid, coupled, peephole, projection = c.chance(0.3), c.chance(0.3), c.chance(0.3), c.chance(0.3)
    c.tolerance = 0.02 if hybrid else 1e-5
    form = "hybrid" if hybrid else "float"
    batch, steps, width, time_major, merge = c.int(1, 3), c.int(1, 4), c.int(1, 12), c.chance(0.5), c.chance(0.5)
    rows = (steps, batch) if time_major else (batch, steps)
    merge &= time_major or batch == 1  # LiteRT's kernel finds the states of further rows beyond their end
    kind = c.pick(["none", "none"] + ([] if hybrid else ["other input", "weights"]))
    inputs, states, aux, sizes = [c.input((*rows, width), np.float32)], [], [], []
    cells = c.int(1, 8)
    outputs = c.int(1, 8) if projection else cells
    for _ in range(2):
        gates = [None if coupled and gate == 0 else gate for gate in range(4)]
        inputs += [None if g is None else weights_of(c, (cells, width), form) for g in gates]
        inputs += [None if g is None else weights_of(c, (cells, outputs), form) for g in gates]
        inputs += [weights_of(c, (cells,), form) if peephole and gates[g] is not None else None for g in (0, 1, 3)]
        inputs += [None if g is None else c.g.constant(c.values((cells,), np.float32)) for g in gates]
        inputs += [weights_of(c, (outputs, cells), form) if projection else None, None]
        states += [c.g.variable((batch, outputs)), c.g.variable((batch, cells))]
        aux += [weights_of(c, (cells, width), form) if kind == "weights" and g is not None else None for g in gates]
        sizes.append(outputs)
    inputs += [*states, None if kind == "none" else c.input((*rows, width), np.float32), *aux]
    shapes = [(*rows, sum(sizes))] if merge else [(*rows, size) for size in sizes]
    return c.g.op(
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        inputs,
        shapes,
        "BidirectionalSequenceLSTMOptions",
        3,
        fusedActivationFunction=4,
        timeMajor=time_major,
        mergeOutputs=merge,
        cellClip=c.pick([0.0, 1.0]),
        projClip=0.0,
    )


CASES = {
    "CONV_2D of legacy weights": legacy_conv,
    "FULLY_CONNECTED of legacy weights": legacy_dense,
    "UNIDIRECTIONAL_SEQUENCE_LSTM of legacy weights": legacy_lstm,
    "BIDIRECTIONAL_SEQUENCE_LSTM": bidirectional_lstm,
    "LSTM": float_lstm("LSTM"),
    "LSTM of integers": integer_lstm("LSTM"),
    "LSTM of sums of 8 bits": byte_lstm,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": float_lstm("UNIDIRECTIONAL_SEQUENCE_LSTM"),
    "UNIDIRECTIONAL_SEQUENCE_LSTM of integers": integer_lstm("UNIDIRECTIONAL_SEQUENCE_LSTM"),
    "BIDIRECTIONAL_SEQUENCE_RNN": bidirectional_rnn,
    "RNN": rnn,
    "SVDF of integers": svdf_integer,
    "SVDF": svdf,
    "UNIDIRECTIONAL_SEQUENCE_RNN": sequence_rnn,
}
