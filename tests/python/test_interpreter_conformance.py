"""The NN API's published vectors through our own interpreter, without a delegate.

FUSELITE_CONFORMANCE names a folder with index.csv, NAME.tflite and NAME.npz. A vector passes, or it names what is
not implemented: an operator, or a type or rank of one. Tolerances are the index's.
"""

import collections
import csv

import numpy as np

import own_interpreter


def difference(actual, expected, row):
    """What is wrong with an output; None where nothing is."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"{actual.dtype}{list(actual.shape)}, expected {expected.dtype}{list(expected.shape)}"
    if expected.size == 0:
        return None
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        off = np.where((a == e) | (np.isnan(a) & np.isnan(e)), 0.0, np.abs(a - e))
    if expected.dtype == np.float32:
        allowed = float(row["atol"]) + float(row["rtol"]) * np.abs(np.where(np.isfinite(e), e, 0))
    elif expected.dtype in (np.bool_, np.int32):
        allowed = 0
    else:
        allowed = float(row["qtol"])
    wrong = ~(off <= allowed)
    return f"{wrong.sum()} of {wrong.size} elements off, by up to {off.max():g}" if wrong.any() else None


def run(folder, row):
    """(verdict, note) of one vector: passed, unsupported or failed."""
    vectors = np.load(folder / f"{row['name']}.npz")
    try:
        interpreter = own_interpreter.Interpreter(folder / f"{row['name']}.tflite")
        outputs = interpreter.run([vectors[f"in{i}"] for i in range(len(interpreter.inputs()))])
    except own_interpreter.Error as error:
        verdict = "unsupported" if error.status == own_interpreter.UNSUPPORTED else "failed"
        return verdict, str(error)
    notes = [difference(output, vectors[f"out{i}"], row) for i, output in enumerate(outputs)]
    notes = [f"output {i}: {note}" for i, note in enumerate(notes) if note]
    return ("failed", "; ".join(notes)) if notes else ("passed", "")


def test_every_vector_passes_or_names_what_is_missing(conformance, record_property):
    rows = [row for row in csv.DictReader((conformance / "index.csv").open()) if row["litert_ref"] == "yes"]
    assert len(rows) > 500
    verdicts = {row["name"]: run(conformance, row) for row in rows}
    counts = collections.Counter(verdict for verdict, _ in verdicts.values())
    missing = collections.Counter(
        note.split(": ", 1)[-1] for verdict, note in verdicts.values() if verdict == "unsupported")
    for name, value in counts.items():
        record_property(name, value)
    print(dict(counts))
    for note, count in missing.most_common():
        print(f"{count:4}  {note}")
    failed = [f"{name}: {note}" for name, (verdict, note) in verdicts.items() if verdict == "failed"]
    assert not failed, "\n".join(failed)
    assert counts["passed"] >= 550
