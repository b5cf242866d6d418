"""Which command is fastest: rounds until sure, false winners on A/A, and hyperfine beside it.

    python benchmarks/timing.py             # replays results/timings.npy, about two minutes
    python benchmarks/timing.py --beside    # real commands, surepick and hyperfine in turn, five minutes
    python benchmarks/timing.py --record    # records timings anew, about a minute

The recorded timings are 2,000 rounds of five commands, each round in random order. A replay draws rounds
with replacement; `drift` multiplies all commands of a moment by waves and bursts of load. The control
measures each command 50 times in a row instead of in rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import beta

import surepick as sp
from surepick.core.run import Stop
from surepick.measure.timing import CommandTimer
from surepick.policies import SignRace

KEPT = Path(__file__).parent / "results" / "timings.npy"
RECORDED = (
    "gzip -5 -c text",
    "gzip -6 -c text",
    "gzip -4 -c text",
    "sort text",
    "sort --parallel=1 -S 1M text",
)
DELTA, MOST, RUNS = 0.05, 1500, 200
COMPARISONS = {
    "gzip levels": ["gzip -1 -c text", "gzip -4 -c text", "gzip -9 -c text"],
    "compressors": ["gzip -6 -c text", "bzip2 -c text", "xz -1 -c text"],
    "checksums": ["md5sum big", "sha1sum big", "sha512sum big"],
    "sorting numbers": ["sort -n lines", "sort lines", "sort -g lines"],
    "counting lines": ["wc -l big", "grep -c '' big", "awk 'END {print NR}' big"],
    "Python sums": [f"{sys.executable} -c 'sum({x})'" for x in ("range(10**6)", "[i for i in range(10**6)]")],
    "close gzip levels": ["gzip -5 -c text", "gzip -6 -c text"],
}


def answer(times: np.ndarray, margin: float = 0.0) -> tuple[int | None, int, int]:
    """Return the answer on these rounds, the rounds, and the runs; None without an answer."""
    run, runs = SignRace(DELTA, margin).start(sp.Problem(np.eye(times.shape[1]), goal="smallest")), 0
    for n, row in enumerate(times):
        decision = run.decide(np.random.default_rng(0))
        if isinstance(decision, Stop):
            return int(str(decision.plan)), n, runs
        runs += decision.n_measurements
        run.absorb(decision.counts, decision.counts * row)
    return None, len(times), runs


def load_of(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return how slow the machine is at n moments: a wave of 30% and a burst of 50%."""
    slow = 1 + 0.3 * np.sin(np.linspace(0, 6 * np.pi, n) + rng.uniform(0, 6))
    slow[n // 3 : n // 2] *= 1.5
    return np.asarray(slow)


def drawn(factors: dict[int, list[float]], order: str) -> Callable[[np.random.Generator], np.ndarray]:
    """Return a function that draws rounds of these recorded commands, each slowed down by its factors."""
    kept = np.load(KEPT)
    columns = [(command, factor) for command, list_ in factors.items() for factor in list_]

    def draw(rng: np.random.Generator) -> np.ndarray:
        times = np.stack([factor * rng.choice(kept[:, command], MOST) for command, factor in columns], axis=1)
        if order == "rounds":
            return times
        slow = load_of(rng, times.size)
        if order == "drift":
            return np.asarray(times * rng.permuted(slow.reshape(times.shape), axis=1))
        in_a_row = slow.reshape(-1, len(columns), 50).swapaxes(1, 2).reshape(times.shape)
        return np.asarray(times * in_a_row)

    return draw


def replay() -> None:
    """Print rounds until sure, and false winners on A/A."""
    print("| commands | order | rounds, median | 90% | runs, median | undecided | other answers |")
    print("|---|---|---|---|---|---|---|")
    cases: list[tuple[str, dict[int, list[float]], float]] = [
        *((f"gzip, {100 * x:.0f}% slower", {0: [1.0, 1 + x]}, 0.0) for x in (0.01, 0.02, 0.05)),
        *((f"sort, {100 * x:.0f}% slower", {3: [1.0, 1 + x]}, 0.0) for x in (0.01, 0.02, 0.05)),
        ("sort, five of them, 2% apart", {3: [1.0, 1.02, 1.04, 1.06, 1.08]}, 0.0),
        ("sort against itself, margin 2%", {3: [1.0, 1.0]}, 0.02),
    ]
    for name, factors, margin in cases:
        for order in ("rounds", "drift"):
            found = [
                answer(drawn(factors, order)(np.random.default_rng([7, k])), margin) for k in range(RUNS)
            ]
            plans, rounds, runs = zip(*found, strict=True)
            other = "-" if margin else sum(plan not in (0, None) for plan in plans)
            middle = f"{np.median(rounds):.0f} | {np.quantile(rounds, 0.9):.0f} | {np.median(runs):.0f}"
            print(f"| {name} | {order} | {middle} | {plans.count(None)} | {other} |", flush=True)
    print(f"\nA/A: two equal commands, {MOST} rounds, delta {DELTA:g} for each of them, {RUNS} runs\n")
    print(
        "| command | order | the second is named | 95% bounds | one of them is named |\n|---|---|---|---|---|"
    )
    for command in (0, 3):
        for order in ("rounds", "drift", "50 in a row (control)"):
            draw = drawn({command: [1.0, 1.0]}, order)
            plans = [answer(draw(np.random.default_rng([8, k])))[0] for k in range(RUNS)]
            n, either = plans.count(1), RUNS - plans.count(None)
            low = beta.ppf(0.025, n, RUNS - n + 1) if n else 0.0
            high = beta.ppf(0.975, n + 1, RUNS - n) if n < RUNS else 1.0
            shown = f"{n} of {RUNS} | {low:.3f} to {high:.3f} | {either}"
            print(f"| {RECORDED[command]} | {order} | {shown} |", flush=True)


def write_files(folder: Path) -> None:
    """Write what the commands read."""
    rng = np.random.default_rng(0)
    rows = [" ".join(map(str, rng.integers(0, 10**6, 12))) for _ in range(700)]
    (folder / "text").write_text("\n".join(rows))
    (folder / "lines").write_text("\n".join(map(str, rng.integers(0, 10**6, 20_000))))
    (folder / "big").write_text("\n".join(rows * 60))


def record(n: int = 2000) -> None:
    """Time the recorded commands anew."""
    rng = np.random.default_rng(0)
    timer = CommandTimer({name: shlex.split(name) for name in RECORDED})
    times = np.zeros((n, len(RECORDED)), dtype=np.float32)
    for row in times:
        for k in rng.permutation(len(RECORDED)):
            row[k] = timer.time(RECORDED[k])
    np.save(KEPT, times)


def truth(commands: list[str], n: int = 60) -> str:
    """Return the command that wins most of n rounds in random order against each other, measured apart."""
    rng, timer = np.random.default_rng(1), CommandTimer({name: shlex.split(name) for name in commands})
    times = np.zeros((n, len(commands)))
    for row in times:
        for k in rng.permutation(len(commands)):
            row[k] = timer.time(commands[k])
    return commands[
        int(np.argmax([(times[:, [k]] < times).mean(axis=0).sum() for k in range(len(commands))]))
    ]


def surepick_time(commands: list[str], *more: str) -> tuple[str | None, float, int]:
    """Return surepick's answer, the seconds it took, and the runs."""
    begin = time.monotonic()
    words = [sys.executable, "-m", "surepick", "time", *commands, "--json", *more]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    view = json.loads(done.stdout)["view"]
    return view["plan"], time.monotonic() - begin, view["n_measured"]


def hyperfine(commands: list[str]) -> tuple[str, float, int, bool]:
    """Return hyperfine's fastest command, its seconds and runs, and whether means are two errors apart."""
    begin = time.monotonic()
    subprocess.run(
        ["hyperfine", "-N", "--warmup", "1", "--style", "none", "--export-json", "h.json", *commands],
        check=True,
        capture_output=True,
    )
    taken, found = time.monotonic() - begin, json.loads(Path("h.json").read_text())["results"]
    means = np.array([one["mean"] for one in found])
    errors = np.array([one["stddev"] / np.sqrt(len(one["times"])) for one in found])
    first, second = np.argsort(means)[:2]
    is_apart = means[second] - means[first] > 2 * np.hypot(errors[first], errors[second])
    return commands[int(first)], taken, sum(len(one["times"]) for one in found), bool(is_apart)


def beside(n_same: int) -> None:
    """Print answers and times of both on real commands, and how often each names a winner on A/A."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start\n")
    print("| comparison | truth | surepick | s | runs | hyperfine | s | runs |")
    print("|---|---|---|---|---|---|---|---|")
    spent = np.zeros(2)
    for name, commands in COMPARISONS.items():
        right = truth(commands)
        mine, mine_taken, n_mine = surepick_time(commands)
        theirs, their_taken, n_theirs, _ = hyperfine(commands)
        spent += (mine_taken, their_taken)
        said = "none" if mine is None else "right" if mine == right else "wrong"
        named = f"{name} | `{right.replace(sys.executable, 'python')}`"
        own = f"{said} | {mine_taken:.1f} | {n_mine}"
        other = f"{'right' if theirs == right else 'wrong'} | {their_taken:.1f} | {n_theirs}"
        print(f"| {named} | {own} | {other} |", flush=True)
    print(f"\nAll together: surepick {spent[0]:.1f} s, hyperfine {spent[1]:.1f} s.")
    same = ["gzip -1 -c text"] * 2
    named = sum(surepick_time(same, "--budget", "400")[0] is not None for _ in range(n_same))
    apart = sum(hyperfine(same)[3] for _ in range(n_same // 5))
    print(
        f"A/A, live: surepick names either in {named} of {n_same} (at most 400 runs); "
        f"hyperfine's means are more than two standard errors apart in {apart} of {n_same // 5}."
    )
    print(f"Load at the end: {os.getloadavg()[0]:.1f}.")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--same", type=int, default=50, help="A/A comparisons of --beside")
    options = parser.parse_args()
    if not (options.record or options.beside):
        replay()
        return
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        os.chdir(folder)
        if options.record:
            record()
        else:
            beside(options.same)


if __name__ == "__main__":
    main()
