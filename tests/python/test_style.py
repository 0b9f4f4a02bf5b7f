"""The Python sources have the format and none of the mistakes that ruff knows; those in C++ are ctest's to check."""

import subprocess

import conftest


def test_python_is_formatted_and_clean():
    done = subprocess.run([conftest.ROOT / "scripts" / "lint", "--python"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
