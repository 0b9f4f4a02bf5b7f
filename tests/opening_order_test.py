"""The functions that opening models runs are in cmake/opening_order.txt: those that it lacks lie all over the library, and each
costs the memory and the time of a page. After larger changes scripts/opening-order writes the list anew."""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ("mobilenet_v1", "transformer", "decoder_small")


def main(build):
    if os.uname().machine != "x86_64":
        print("skipped: the list is of x86-64")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"{name}.tflite") for name in MODELS]
        for name, path in zip(MODELS, paths):
            subprocess.run([f"{build}/tools/fuselite", "zoo", name, "-o", path], check=True, stdout=subprocess.DEVNULL)
        script = [sys.executable, str(ROOT / "scripts/opening-order"), "--check", str(ROOT / "cmake/opening_order.txt")]
        done = subprocess.run([*script, build, *paths], capture_output=True, text=True)
    if "PermissionError" in done.stderr:
        print("skipped: no process may be traced here")
        return 77
    print(done.stdout + (done.stderr if done.returncode else ""))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
