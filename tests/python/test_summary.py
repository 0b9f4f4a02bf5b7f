"""scripts/test-summary: what it counts, names and returns."""

import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "test-summary"

CTEST = """<testsuite>
  <testcase name="conv_test" status="run"/>
  <testcase name="crash_test" status="fail"><failure message="SEGFAULT"/></testcase>
  <testcase name="leak_test" status="fail"><failure message="Failed"/></testcase>
  <testcase name="format_test" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
    <system-out>not installed</system-out></testcase>
  <testcase name="layering_test" status="run"/>
</testsuite>"""

CONV = """<testsuites><testsuite>
  <testcase name="Small" status="run" result="completed" classname="Conv"/>
  <testcase name="Models" status="run" result="skipped" classname="Conv"><skipped message="x.cc:1&#10;no folder"/></testcase>
  <testcase name="Wrong" status="run" result="completed" classname="Conv"><failure message="expected 1"/></testcase>
  <testcase name="DISABLED_Slow" status="notrun" result="suppressed" classname="Conv"/>
</testsuite></testsuites>"""

LEAK = '<testsuites><testcase name="A" status="run" result="completed" classname="Leak"/></testsuites>'

PYTEST = """<testsuites><testsuite>
  <testcase classname="test_x" name="test_a"/>
  <testcase classname="test_x" name="test_b"><skipped message="no folder"/></testcase>
  <testcase classname="test_x" name="test_c"><error message="set-up failed"/></testcase>
</testsuite></testsuites>"""


def summary(*arguments):
    run = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True)
    return run.returncode, run.stdout.splitlines()


def test_counts_cases_and_names_what_did_not_pass(tmp_path):
    for name, text in {"ctest": CTEST, "conv_test": CONV, "leak_test": LEAK, "python": PYTEST}.items():
        (tmp_path / f"{name}.xml").write_text(text)
    status, lines = summary("--ctest", tmp_path / "ctest.xml", "--pytest", tmp_path / "python.xml")
    assert status == 1
    # Passed: Conv.Small, Leak.A, layering_test, test_a.
    assert lines[-1] == "4 passed, 4 failed, 4 skipped"
    assert sorted(line.split(maxsplit=1)[1] for line in lines if line.startswith("FAILED")) == [
        "conv_test: Conv.Wrong: expected 1",
        "crash_test: SEGFAULT",
        "leak_test: the program failed though no case did",
        "test_x.test_c: set-up failed",
    ]
    assert "skipped       no folder [conv_test: Conv.Models, test_x.test_b]" in lines
    assert "skipped       not installed [format_test]" in lines


def test_all_passed(tmp_path):
    (tmp_path / "ctest.xml").write_text('<testsuite><testcase name="a" status="run"/></testsuite>')
    assert summary("--ctest", tmp_path / "ctest.xml") == (0, ["1 passed, 0 failed, 0 skipped"])


def test_absent_and_empty_results_are_failures(tmp_path):
    (tmp_path / "ctest.xml").write_text("<testsuite/>")
    status, lines = summary("--ctest", tmp_path / "ctest.xml", "--pytest", tmp_path / "python.xml")
    assert status == 1
    assert lines[-1] == "0 passed, 2 failed, 0 skipped"
