"""Changed models: ours neither dies where LiteRT lives, nor refuses without a reason, nor computes anything else.

FUSELITE_MUTATED_MODELS says how many (300), FUSELITE_MUTATED_SEED the first one's seed (3000). mutated_models_run.py does the same as a
script, with models of a folder too.
"""

import os
import pathlib

import mutated_models_run


def test_changed_models_do_what_litert_does(delegate_path):
    seed, count = int(os.environ.get("FUSELITE_MUTATED_SEED", 3000)), int(os.environ.get("FUSELITE_MUTATED_MODELS", 300))
    failures = []
    tally, failed = mutated_models_run.run(pathlib.Path(delegate_path), count, seed, None, None, failures.append)
    print(dict(tally))
    assert failures == [] and failed == 0
    assert tally["runs"] >= 0.1 * count and tally["refused"] >= 0.3 * count


def test_verdicts_are_compared():
    runs, refused, died = {"verdict": "runs"}, {"verdict": "refused", "message": "why"}, {"died": "invoke", "how": "11"}
    fault = mutated_models_run.fault
    assert fault("delegate", runs, runs, True, True) == ""
    assert fault("delegate", died, runs, False, False).startswith("died: 11")
    assert fault("own", died, died, False, False).startswith("died: 11")
    assert fault("delegate", died, died, False, False) == ""
    assert fault("delegate", refused, runs, True, True).endswith("instead of {'verdict': 'runs'}")
    assert fault("delegate", refused, runs, False, True) == ""
    assert fault("delegate", runs, refused, True, False) == ""
    assert "instead of" in fault("delegate", runs, refused, True, True)
