"""Random graphs in LiteRT: the delegate against LiteRT's reference kernels, integers to the bit.

FUSELITE_RANDOM_GRAPHS says how many graphs (600), FUSELITE_SEED the first one's seed (0). random_graphs_run.py does the
same as a script, on several processes.
"""

import os

import random_graphs_run
import requantization

TYPES = ["int8", "uint8", "int16", "float", "hybrid", "integer", "rare"]


def test_random_graphs_have_the_references_outputs(delegate_path):
    seed, count = int(os.environ.get("FUSELITE_SEED", 0)), int(os.environ.get("FUSELITE_RANDOM_GRAPHS", 600))
    tally = random_graphs_run.run(delegate_path, count, seed, TYPES, workers=2)
    print(tally.summary())
    assert "\n".join(tally.failures) == ""
    assert tally.compared.total() == count
    assert tally.refused.total() + len(tally.died) <= 0.1 * count
    assert tally.delegated >= 0.9 * count
    assert tally.single >= 0.1 * count
    assert tally.coverage["replays that differ"] == 0  # the counts below are those of LiteRT's own arithmetic
    assert [branch for branch in requantization.BRANCHES if not tally.coverage[branch]] == []


def test_shapes_from_values_control_flow_and_state_change_no_outputs(delegate_path):
    seed, count = int(os.environ.get("FUSELITE_SEED", 0)), int(os.environ.get("FUSELITE_RANDOM_GRAPHS", 600)) // 4
    tally = random_graphs_run.run(delegate_path, count, seed, ["shapes", "flow", "state"], workers=2)
    print(tally.summary())
    assert "\n".join(tally.failures) == ""
    assert tally.compared.total() == count
    assert tally.delegated >= 0.4 * count  # in LiteRT's main graph; the subgraphs of control flow are others


def test_a_worker_that_dies_is_a_failure_and_is_replaced(tmp_path):
    broken = tmp_path / "delegate.so"
    broken.write_bytes(b"no library")
    tally = random_graphs_run.run(broken, 3, 0, ["int8"])
    assert len(tally.failures) >= 3 and all("died in delegate" in text for text in tally.failures)


def test_a_graph_on_which_the_reference_dies_is_no_failure():
    tally = random_graphs_run.Tally()
    tally.add(7, "int8", {"died": "reference", "how": "status -6: aborted"})
    assert (tally.failures, len(tally.died)) == ([], 1)
