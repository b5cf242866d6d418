"""Benchmarks are run by `make bench`, and results are tables alone."""

from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_make_bench_runs_every_script():
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("bench: $(READY)")[2]
    words = set(recipe.partition("clean:")[0].replace('"', " ").split())
    assert {path.stem for path in (ROOT / "benchmarks").glob("*.py")} <= words


def test_results_are_one_folder_of_tables_and_the_timings_that_are_replayed():
    kept = {path.name for path in (ROOT / "benchmarks" / "results").rglob("*") if path.suffix != ".md"}
    assert kept == {"timings.npy"}
