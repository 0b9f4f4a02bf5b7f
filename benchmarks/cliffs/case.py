"""A model of one operator that is measured."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    operator: str  # "CONV_2D"
    text: str  # types, shapes, parameters
    model: bytes
    # The integers of 32 and 64 bits that its inputs hold: 0 where they may be indices.
    integers: tuple[int, int] = (0, 1)
