"""What waiting costs: CPU seconds of small commands, and of each policy's first run with nothing compiled.

python benchmarks/cold.py                      # the tables, about three minutes
python benchmarks/cold.py --only commands      # the small commands alone
python benchmarks/cold.py --only policies --policies BetGapE OBet

CPU seconds of a process and its children, so that a busy machine changes little; the least of `--repeats`
runs of a command, one run of each policy with an empty cache. Only the order of magnitude is another
machine's: compare figures of one machine.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROUTES = Path(__file__).parent.parent / "examples" / "routes.toml"
ALONE = {**os.environ, "OMP_NUM_THREADS": "1"}
ALONE.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
LISTED = [
    *("BetGapE", "CombGapE", "CLUCB", "LinGapE", "Uniform", "RAGE", "Peace", "GenTSExplore", "TSExplore"),
    *("OBet", "Pick"),
]


def cpu_seconds(words, folder, **environment):
    """CPU seconds that one command takes, and what it wrote beside its answer."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(
        [sys.executable, "-m", "surepick", *words],
        cwd=folder,
        env=ALONE | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.returncode not in (0, 1, 3):
        sys.exit(f"surepick {' '.join(words)} failed:\n{ran.stderr}")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, ran.stdout, ran.stderr


def show(name, seconds, note=""):
    print(f"| {name:<34} | {seconds:7.2f} | {note:<24} |", flush=True)


def head(title):
    print(f"\n| {title:<34} | seconds | {'':<24} |\n|---|---:|---|")


def commands(folder, repeats):
    """A session of hand entries: every small command by itself, with the machine code already there."""
    run = ["--store", "sqlite:///hand.db"]
    cpu_seconds(["new", str(ROUTES), *run], folder)  # compiles
    head("small command")
    steps = [["--help"], ["list", *run], ["status", *run], ["log", *run], ["ask", *run], ["export", *run]]
    for words in steps:
        show(words[0], min(cpu_seconds(words, folder)[0] for _ in range(repeats)))
    arms = ("ring road", "old bridge", "tunnel", "market street")  # of the first round, but for two
    show("tell, inside a round", min(cpu_seconds(["tell", arm, "20", *run], folder)[0] for arm in arms))
    (folder / "values.csv").write_text("arm,value\nferry,41\nharbour road,20\n")
    words = ["import", "values.csv", "--answers", "--yes", *run]
    show("import, which completes the round", cpu_seconds(words, folder)[0])
    show("close", cpu_seconds(["close", *run], folder)[0])
    show("status, ended", min(cpu_seconds(["status", *run], folder)[0] for _ in range(repeats)))


def policies(folder, names):
    """The first `simulate` of each policy, and `advise`, with nothing compiled yet."""
    head("first run, nothing compiled")
    for name in names:
        cache = folder / f"cache-{name}"
        words = ["simulate", str(ROUTES), "--policy", name, "--budget", "20000"]
        first, _, said = cpu_seconds(words, folder, NUMBA_CACHE_DIR=str(cache))
        again, _, _ = cpu_seconds(words, folder, NUMBA_CACHE_DIR=str(cache))
        times = said.count("compiling")
        show(f"simulate --policy {name}", first, f"again {again:.2f}, said {times}x")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", choices=["commands", "policies"], default=["commands", "policies"]
    )
    parser.add_argument("--policies", nargs="+", default=LISTED)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if "commands" in given.only:
            commands(Path(name), given.repeats)
        if "policies" in given.only:
            policies(Path(name), given.policies)


if __name__ == "__main__":
    main()
