"""What waiting costs: CPU seconds of small commands, and of each policy's first run with nothing compiled.

python benchmarks/cold.py                      # the tables, about six minutes
python benchmarks/cold.py --only commands      # the small commands alone
python benchmarks/cold.py --only policies --policies BetGapE CombGapE
python benchmarks/cold.py --only kinds         # the problem of each `surepick init`, and `advise`

CPU seconds of a process and its children, so that a busy machine changes little; the least of `--repeats`
runs of a command, one run of each policy with an empty cache. Only the order of magnitude is another
machine's: compare figures of one machine.
"""

import argparse
import json
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
    *("Pick", "Challenge:incumbent=0"),
]
KINDS = {  # of `surepick init`, with options
    "table": (),
    "table, within epsilon": ("--epsilon", "2"),
    "drives": (),
    "trees": (),
    "knapsack": (),
    "transport": (),
    "transport, within epsilon": ("--epsilon", "0.3"),
    "portfolio": (),
}
HAND = {"table": (), "trees": (), "transport": (), "drives": ()}


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


def sessions(folder, repeats):
    """The commands of one who enters by hand, for the policies of other kinds of problems."""
    head("small command, by kind of problem")
    for kind, options in HAND.items():
        run = ["--store", f"sqlite:///{kind}.db"]
        cpu_seconds(["init", kind], folder)
        cpu_seconds(["new", f"{kind}.toml", *options, *run], folder)
        least = {}
        for words in (["ask"], ["status"], ["list"], ["log"]):
            least[words[0]] = min(cpu_seconds([*words, *run], folder)[0] for _ in range(repeats))
        token = cpu_seconds(["ask", *run], folder)[1].split("\t")[0]
        least["tell"] = cpu_seconds(["tell", token, "3", "--yes", *run], folder)[0]
        show(kind, max(least.values()), ", ".join(f"{name} {spent:.2f}" for name, spent in least.items()))


def first_and_again(name, words, folder):
    """A command with nothing compiled, and once more."""
    cache = {"NUMBA_CACHE_DIR": tempfile.mkdtemp(dir=folder)}
    first, out, said = cpu_seconds([*words, "--json"], folder, **cache)
    again, _, _ = cpu_seconds([*words, "--json"], folder, **cache)
    own = json.loads(out).get("seconds")
    charged = "" if own is None else f", charged {own:.2f}"
    show(name, first, f"again {again:.2f}, said {said.count('compiling')}x{charged}")


def policies(folder, names):
    """The first `simulate` of each policy, with nothing compiled yet."""
    head("first run, nothing compiled")
    for name in names:
        words = ["simulate", str(ROUTES), "--policy", name, "--budget", "20000"]
        first_and_again(f"simulate --policy {name}", words, folder)


def kinds(folder):
    """The first `simulate` of each kind of problem with the policy that it gets, and `advise`."""
    head("first run, nothing compiled")
    for name, options in KINDS.items():
        kind = name.split(",")[0]
        cpu_seconds(["init", kind, "--force"], folder)
        words = ["simulate", f"{kind}.toml", *options, "--budget", "20000"]
        first_and_again(f"simulate {name}", words, folder)
    first_and_again("advise", ["advise", "table.toml", "--budget", "5000"], folder)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ["commands", "policies", "kinds"]
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--policies", nargs="+", default=LISTED)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if "commands" in given.only:
            commands(Path(name), given.repeats)
            sessions(Path(name), given.repeats)
        if "policies" in given.only:
            policies(Path(name), given.policies)
        if "kinds" in given.only:
            kinds(Path(name))


if __name__ == "__main__":
    main()
