"""A model of one operator that is measured."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    operator: str  # "CONV_2D"
    text: str  # types, shapes, parameters
    model: bytes
