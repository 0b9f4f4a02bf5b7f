"""A model's file is in memory once: what is packed of it, or replaced by rewrites, leaves the process.

Looked up as a stranger would, in what the system tells of a process of its own that holds the model.
"""

import os
import pathlib
import re
import subprocess
import sys

import model_matrix
import pytest


def resident_part(model):
    """Of the mapped bytes of the file, the part that lies in this process's pages."""
    size = resident = 0
    of_model = False
    for line in pathlib.Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            of_model = line.endswith(os.path.realpath(model))
        elif of_model and line.startswith("Size:"):
            size += int(line.split()[1])
        elif of_model and line.startswith("Rss:"):
            resident += int(line.split()[1])
    return resident / size


def hold(host, model, delegate):
    """Prints the part of the model that this process holds once it is open, and behind a run."""
    runner = model_matrix.Runner(host, pathlib.Path(model), delegate, {"num_threads": 1})
    opened = resident_part(model)
    runner.interpreter.invoke()
    print(opened, resident_part(model))


@pytest.mark.parametrize("host", model_matrix.HOSTS)
@pytest.mark.parametrize(
    ("name", "most"),
    # A float classifier reads its weights where they lie: 4 of 17 MB.
    [("keras_mobilenet_v1_float", 0.35), ("keras_mobilenet_v1_int8", 0.25), ("keras_mobilenet_v2_fp16", 0.35)]
    if os.environ.get("FUSELITE_MODELS")
    else [("mobilenet_v1", 0.35), ("mobilenet_v1_int8", 0.25)],
)
def test_what_is_packed_leaves_the_process(host, name, most, networks, delegate_path):
    arguments = [host, str(networks / f"{name}.tflite"), str(delegate_path)]
    output = subprocess.run([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, check=True).stdout
    opened, behind_run = map(float, output.split()[-2:])
    assert opened < most
    assert behind_run < most


if __name__ == "__main__":
    hold(*sys.argv[1:])
