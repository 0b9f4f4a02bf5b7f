"""benchmarks/compare measures, and writes a table, figures and a page; with the engines that the tests' environment has."""

import html.parser
import json
import re
import subprocess
import sys
import xml.etree.ElementTree

import conftest

COMPARE = conftest.ROOT / "benchmarks" / "compare"
TOOL = conftest.ROOT / "build" / "release" / "tools" / "fuselite"


class Balanced(html.parser.HTMLParser):
    """Fails where elements do not end as they began."""

    def __init__(self):
        super().__init__()
        self.open, self.counts = [], {}

    def handle_starttag(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def run(folder, delegate_path, *more):
    command = [sys.executable, COMPARE, "--engines", "xnnpack,fuselite", "--peers", sys.prefix, "--delegate", delegate_path,
               "--tool", TOOL, "--rounds", "2", "--seconds", "0.05", "--output", folder / "out", *more]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_it_writes_a_table_and_a_page(delegate_path, tmp_path):
    model = tmp_path / "a & b.tflite"
    subprocess.run([TOOL, "zoo", "transformer", "-o", model], stdout=subprocess.DEVNULL, check=True)
    (tmp_path / "broken.tflite").write_bytes(b"no model")
    done = run(tmp_path, delegate_path, "--models", tmp_path, "--cold-rounds", "1", "--threads", "1,2")
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^\| a & b \| float \| [\d.]+ \| [\d.]+ \| [\d.]+x \| \d+% \|", done.stdout, re.M)) == 2
    assert "Left out, LiteRT cannot run it: broken" in done.stdout
    figures = json.loads((tmp_path / "out" / "figures.json").read_text())
    assert [row["threads"] for row in figures["rows"]] == [1, 2]
    for row in figures["rows"]:
        assert set(row["engines"]) == set(row["cold"]) == {"xnnpack", "fuselite"}
        assert row["engines"]["fuselite"]["error"] < 1e-5 and 0 < row["roofline"]["share"] <= 1
    page = Balanced()
    page.feed((tmp_path / "out" / "page.html").read_text())
    assert page.open == [] and page.counts["svg"] == 8 and page.counts["rect"] == 2 * (1 + 1 + 2 + 2)
    for threads in (1, 2):
        picture = xml.etree.ElementTree.parse(tmp_path / "out" / f"gains-{threads}.svg").getroot()
        texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
        assert f"{threads} thread" in texts[1] and texts[-2] == "a & b" and float(texts[-1]) > 0


def test_it_measures_loads(delegate_path, tmp_path):
    model = tmp_path / "keyword.tflite"
    subprocess.run([TOOL, "zoo", "keyword", "-o", model], stdout=subprocess.DEVNULL, check=True)
    more = ["--cold-rounds", "0", "--load-seconds", "0.2", "--threads", "2", "--loads", "batch=3,interpreters=2,rate=50"]
    done = run(tmp_path, delegate_path, model, *more)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "out" / "figures.json").read_text())["rows"]
    assert {load: told["failed"] for load, told in row["loads"].items()} == {"batch=3": {}, "interpreters=2": {}, "rate=50": {}}
    for told in row["loads"].values():
        assert set(told["engines"]) == {"xnnpack", "fuselite"}
        assert all(value > 0 for figures in told["engines"].values() for value in figures.values())
    rate = row["loads"]["rate=50"]["engines"]["fuselite"]
    assert rate["median_ms"] <= rate["p95_ms"]
    for load, unit in (("batch=3", "samples per second"), ("rate=50", "ms, 95th percentile")):
        assert re.search(rf"^\| keyword \| {load} \| {unit} \| [\d.]+ \| [\d.]+ \| [\d.]+x \|$", done.stdout, re.M)


def test_what_it_does_not_know_is_refused(delegate_path, tmp_path):
    for more, line in (
        (["--engines", "ours"], "engine 'ours' is none of xnnpack, openvino, fuselite, fuselite+xnnpack"),
        (["--loads", "batch=0"], "load 'batch=0' is none of batch=NUMBER, interpreters=NUMBER, rate=NUMBER"),
        (["--loads", "batch"], "load 'batch' is none of"),
    ):
        done = run(tmp_path, delegate_path, *more)
        assert done.returncode == 2 and line in done.stderr
