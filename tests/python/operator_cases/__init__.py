"""Random models of one operator each, for operators that the random graphs do not grow by.

A case draws a model from a seed: `outputs` are its values, `feeds` the inputs by the tensor's index. Each family of
operators is a file, whose CASES are functions that grow a model.
"""

from operator_cases import (
    case,
    elementwise,
    functions,
    moved,
    movement,
    operands,
    products,
    recurrent,
    reductions,
    rows,
    searches,
    stablehlo,
)

CASES = {}
for family in (elementwise, functions, moved, movement, operands, products, recurrent, reductions, rows, searches, stablehlo):
    CASES |= family.CASES


def Case(name, seed):
    return case.Case(name, CASES[name], seed)
