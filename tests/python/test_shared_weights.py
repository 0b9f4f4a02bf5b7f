"""Packed weights are the process's: a second interpreter of a model does not allocate them again.

Measured as a stranger would: the anonymous memory of a process of its own, before and after each of three
interpreters, every one with a delegate of its own. The first packs the weights; the others need an arena and code.
"""

import json
import os
import pathlib
import subprocess
import sys

import model_matrix
import pytest
import running


def anonymous_bytes():
    for line in pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) * 1024
    raise OSError("no line Anonymous in smaps_rollup")


def grow(host, model, small, delegate, explain):
    """Prints by how much each of three interpreters of `model` makes this process grow, and its packed bytes."""
    options = {"num_threads": 1, "explain_file": explain}
    kept = [model_matrix.Runner(host, small, delegate, options)]
    kept[0].interpreter.invoke()  # loads what any model needs
    growth = []
    for _ in range(3):
        before = anonymous_bytes()
        kept.append(model_matrix.Runner(host, model, delegate, options))
        kept[-1].interpreter.invoke()
        growth.append(anonymous_bytes() - before)
    steps = running.explanation(pathlib.Path(explain))["partitions"][0]["steps"]
    packed = sum(step["weight_bytes"] for step in steps if "unpacked" not in step["kernel"])
    print(json.dumps([growth, packed]))


@pytest.mark.parametrize("host", model_matrix.HOSTS)
@pytest.mark.parametrize(
    "name",
    [
        "keras_mobilenet_v1_dynrange",
        "keras_mobilenet_v1_float",
        "keras_mobilenet_v1_int8",
        "mobilenet_v2_1.0_224_quant",
    ]
    if os.environ.get("FUSELITE_MODELS")
    else ["mobilenet_v1_dynamic", "mobilenet_v1", "mobilenet_v1_int8", "mobilenet_v2_int8"],
)
def test_further_interpreters_do_not_pack_again(host, name, networks, delegate_path, tmp_path):
    small = "digits_int8" if os.environ.get("FUSELITE_MODELS") else "transformer_int8"
    paths = [networks / f"{model}.tflite" for model in (name, small)]
    explain = tmp_path / "explain.json"
    output = subprocess.run(
        [sys.executable, __file__, host, *map(str, paths), str(delegate_path), str(explain)],
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    growth, packed = json.loads(output.splitlines()[-1])
    assert packed > 3_000_000
    assert growth[0] > packed
    assert max(growth[1:]) < growth[0] - 0.8 * packed


if __name__ == "__main__":
    grow(*sys.argv[1:])
