"""`make bench` runs every benchmark with arguments that it takes; results are tables alone."""

import argparse
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RECIPE = (ROOT / "Makefile").read_text(encoding="utf-8").partition("bench: $(READY)")[2]
ENTRIES = shlex.split(re.search(r"for one in (.*?); do", RECIPE, re.S)[1].replace("\\\n", " "))


def test_make_bench_runs_every_script():
    assert {entry.split()[0] for entry in ENTRIES} == {p.stem for p in (ROOT / "benchmarks").glob("*.py")}


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_benchmark_takes_the_arguments_of_make_bench(entry, monkeypatch):
    name, *words = entry.split()
    script = str(ROOT / "benchmarks" / f"{name}.py")
    parse = argparse.ArgumentParser.parse_args

    def parse_and_end(parser):
        parse(parser)
        raise SystemExit(name)

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_and_end)
    monkeypatch.setattr(sys, "argv", [script, *words])
    monkeypatch.setattr(sys, "path", list(sys.path))
    if name == "paper_errors":  # takes names of errors alone
        assert set(words) <= set(runpy.run_path(script)["SHOWN"])
        return
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(script, run_name="__main__")
    assert ended.value.code == name


def test_results_are_one_folder_of_tables_and_the_timings_that_are_replayed():
    kept = {path.name for path in (ROOT / "benchmarks" / "results").rglob("*") if path.suffix != ".md"}
    assert kept == {"timings.npy"}
