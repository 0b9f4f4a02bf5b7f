"""Vectors (vectors.py) through our own interpreter, without a delegate.

FUSELITE_CONFORMANCE=FOLDER .venv/bin/python -m pytest -s tests/python/test_interpreter_conformance.py
"""

import collections

import own_interpreter
import vectors


def run(folder, row):
    """(verdict, note) of one vector: passed, unsupported or failed."""
    inputs, expected = vectors.load(folder, row)
    try:
        interpreter = own_interpreter.Interpreter(folder / f"{row['name']}.tflite")
        outputs = interpreter.run(inputs)
    except own_interpreter.Error as error:
        verdict = "unsupported" if error.status == own_interpreter.UNSUPPORTED else "failed"
        return verdict, str(error)
    notes = [vectors.difference(y, e, row) for y, e in zip(outputs, expected, strict=True)]
    notes = [f"output {i}: {note}" for i, note in enumerate(notes) if note]
    return ("failed", "; ".join(notes)) if notes else ("passed", "")


def test_every_vector_passes(conformance):
    rows = vectors.rows(conformance)
    verdicts = {row["name"]: run(conformance, row) for row in rows}
    counts = collections.Counter(verdict for verdict, _ in verdicts.values())
    print(f"{counts['passed']} of {len(rows)} passed")
    assert [f"{name}: {note}" for name, (verdict, note) in verdicts.items() if verdict != "passed"] == []
