"""benchmarks/cliffs runs, names what it measured, and says by its exit status whether there are cliffs."""

import csv
import os
import subprocess
import sys

import conftest

CLIFFS = conftest.ROOT / "benchmarks" / "cliffs"


def cliffs(delegate_path, *arguments):
    command = [sys.executable, CLIFFS, "--delegate", delegate_path, "--rounds", "1", "--block", "0.1", *arguments]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)


def test_every_operator_of_its_table_makes_a_model(delegate_path, tmp_path):
    table = tmp_path / "cases.csv"
    result = cliffs(delegate_path, "--operators", "TRANSPOSE,SELECT_V2,CONV_2D", "--csv", table, "--ratio", "0")
    assert result.returncode == 0, result.stderr
    rows = list(csv.DictReader(table.open()))
    assert {row["operator"] for row in rows} == {"TRANSPOSE", "SELECT_V2", "CONV_2D"}
    for row in rows:
        assert float(row["ours"]) > 0, row


def test_slow_ones_are_listed(delegate_path, tmp_path):
    slow = ["--operators", "TRANSPOSE", "--types", "float32", "--ratio", "1e9", "--random-only", "--save", tmp_path / "found"]
    result = cliffs(delegate_path, *slow)
    assert result.returncode == 1, result.stderr
    assert "| TRANSPOSE | float32:" in result.stdout
    assert "1 cliffs in 1 cases" in result.stdout
    assert (tmp_path / "found" / "TRANSPOSE-1.tflite").stat().st_size > 0


def test_operators_are_cut_out_of_models(delegate_path, networks):
    model, last = ("kws_int8", "SOFTMAX") if os.environ.get("FUSELITE_MODELS") else ("mobilenet_v1_int8", "MEAN")
    result = cliffs(delegate_path, "--cut", networks / f"{model}.tflite", "--all", "--ratio", "0")
    assert result.returncode == 0, result.stderr
    for name in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", last):
        assert f"| {name} | int8:" in result.stdout
