"""Arrays of strings, and the table in which the library holds them: their number, where each begins, where the last one ends,
all int32, then their bytes."""

from __future__ import annotations

import numpy as np

_WORD = 4


def to_table(array: np.ndarray) -> np.ndarray:
    """The table of an array of bytes or text, of which that becomes UTF-8. Anything else raises ValueError."""
    strings = [item.encode() if isinstance(item, str) else item for item in array.reshape(-1).tolist()]
    for item in strings:
        if not isinstance(item, bytes):
            raise ValueError(f"fuselite: a string is bytes or text, not {item!r}")
    ends = np.cumsum([_WORD * (len(strings) + 2), *map(len, strings)], dtype=np.int64)
    if ends[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"fuselite: these strings take {ends[-1]} bytes, more than 2 GiB")
    words = np.array([len(strings), *ends], np.int32)
    return np.frombuffer(words.tobytes() + b"".join(strings), np.uint8)


def from_table(table: bytes, shape: tuple[int, ...]) -> np.ndarray | None:
    """An array of bytes objects, as LiteRT gives it; None where the table has not as many as the shape."""
    count = int(np.prod(shape, dtype=np.int64))
    if not table and count == 0:
        return np.empty(shape, object)
    if len(table) < _WORD * (count + 2):
        return None
    number, *offsets = np.frombuffer(table, np.int32, count + 2).tolist()
    if number != count:
        return None
    return np.array([table[begin:end] for begin, end in zip(offsets, offsets[1:])], object).reshape(shape)
