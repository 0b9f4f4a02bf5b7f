"""Random operators in our own interpreter: for the same seeds the numbers of LiteRT, run after run."""

import graphs
import numpy as np
import own_interpreter
import pytest
import running
from ai_edge_litert import interpreter as litert


def numbers(name, shape, seeds, fed):
    g = graphs.Graph()
    operand = g.input((len(shape),), np.int32) if fed else g.constant(np.array(shape, np.int32))
    y = g.op(name, [operand], shape, "RandomOptions", dtype=np.float32, seed=seeds[0], seed2=seeds[1])
    return g.build([y]), [np.array(shape, np.int32)] if fed else []


def classes(rows, count, samples, seeds, wide):
    g = graphs.Graph()
    x, n = g.input((rows, count)), g.constant(np.array(samples, np.int32))
    y = g.op(
        "MULTINOMIAL",
        [x, n],
        (rows, samples),
        "RandomOptions",
        dtype=np.int64 if wide else np.int32,
        seed=seeds[0],
        seed2=seeds[1],
    )
    logits = np.random.default_rng(seeds[0]).normal(0, 2, (rows, count)).astype(np.float32)
    return g.build([y]), [logits]


CASES = {
    **{
        f"{name} {seeds} {'fed' if fed else 'constant'}": numbers(name, (3, 7), seeds, fed)
        for name in ("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL")
        for seeds in ((1, 0), (0, 5), (123456, 789))
        for fed in (False, True)
    },
    **{
        f"MULTINOMIAL {rows}x{count}": classes(rows, count, 9, (rows, count), rows > 1)
        for rows, count in ((1, 1), (1, 6), (3, 20))
    },
}


@pytest.mark.parametrize("name", CASES)
def test_has_the_numbers_of_litert(name):
    model, inputs = CASES[name]
    host = litert.Interpreter(model_content=model, experimental_op_resolver_type=running.Resolver.BUILTIN_REF)
    host.allocate_tensors()
    own = own_interpreter.Interpreter(model)
    for _ in range(3):
        [expected], [actual] = running.run(host, inputs), own.run(inputs)
        assert actual.dtype == expected.dtype and actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


def test_without_seeds_every_interpreter_draws_its_own():
    model, _ = numbers("RANDOM_UNIFORM", (100,), (0, 0), False)
    [first], [second] = (own_interpreter.Interpreter(model).run([]) for _ in range(2))
    assert not np.array_equal(first, second)
    assert first.min() >= 0 and first.max() < 1
