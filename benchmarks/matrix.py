"""The matrix of questions: question x plan set x probes x noise, with the error rate of each on a near tie.

python benchmarks/matrix.py rows.jsonl                    # 2,000 runs a cell; continues where it was ended
python benchmarks/matrix.py rows.jsonl --table 1a2b3c4 > benchmarks/results/matrix.md
python benchmarks/matrix.py --runs 2 --only list          # a first look: prints the table, keeps no rows

The plans are all pairs of five arms, as a list, behind an oracle, or as the polytope that they span, so that
every cell asks the same of the same truth at delta = .2: two plans differ by 1e-9, or by a little more than
epsilon. A cell shows the wrong answers, the answers and the runs; "-" is a combination that is refused, with
the reason below. Controls must be refuted: so many errors have a probability below 1e-6 at error rate delta.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import surepick as sp
from hard_families import PeekingFactor
from surepick.policies import Challenge
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.best import GRID
from surepick.policies.oracles.oracle_best import OracleBest
from surepick.policies.oracles.plan_wealth import PlanWealth
from surepick.simulation import Bernoulli, Gaussian, UniformNoise

DELTA, EPSILON, SEED = 0.2, 0.3, 9_100_000
CONTROLS = 200  # runs of a control, which is caught by then or not at all
PAIRS = np.array([[float(s in pair) for s in range(5)] for pair in itertools.combinations(range(5), 2)])
TIE = np.array([0.5, 1e-9, 0.0, -0.5, -0.5])  # pairs (0, 1) and (0, 2) tie
JUST_MORE = np.array([0.5, EPSILON + 1e-4, 0.0, 0.0, -0.5])
SUMS = [[1, 1, 0, 0, 0], [0, 1, -1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1], [1, 0, 0, 0, 1]]
MIXED = np.vstack([np.eye(5)[:2], SUMS])
TIED_COINS = np.array([0.7, 0.5 + 1e-9, 0.5, 0.3, 0.3])
HALF_WIDTH = 0.6  # of uniform noise
COINS = np.array([0.7, 0.2 + EPSILON + 1e-4, 0.2, 0.2, 0.1])

GREY = 0.5  # of epsilon; and the tolerance of a limit of 0
LOADS = np.roll(PAIRS, 1, axis=1) - np.roll(PAIRS, 2, axis=1)
NEAR = (1 - GREY) * EPSILON
QUESTIONS = {
    "best": 0.0,
    "within epsilon": EPSILON,
    "all within epsilon": EPSILON,
    "best within a limit": EPSILON,
    "keep or replace": 0.0,
    "wins most rounds": 0.0,
}
SETS = ("list", "oracle", "polytope")
PROBES = ("arms", "mixed readings", "plan arms")
FIRST_PAIR = {"oracle": "a + b", "polytope": "'arm 0' + 'arm 1'"}  # as incumbents are written off lists
NOISES = ("known", "bounded variance", "unknown", "bounded readings")


@dataclass(frozen=True)
class Cell:
    """One combination; `control` replaces the factor by one that cheats."""

    question: str
    plans: str
    probes: str
    noise: str
    control: bool = False
    budget: int = 400


class PeekingWealth(PlanWealth):
    """A control behind an oracle, where bets against single plans have their own form.

    The size of every bet is chosen after the batch, by what the batch shows, as that of `PeekingFactor`.
    """

    def _plan_factors(self, account: Any, batches: Any, plans: Any) -> Any:
        leader, variance, averages = account.batches[batches].transpose(1, 0, 2)[[0, 4, 5]]
        y = leader - plans
        shown, known = self._shown(y, averages), (y * y * variance).sum(axis=1)
        best = np.maximum(shown, 0.0) ** 2 / (2 * np.maximum(known, 1e-12))
        return np.repeat(np.where(known > 0, best, 0.0)[:, None], len(GRID) + 1, axis=1)


class PeekingOracle(OracleBest):
    """The question of the best plan behind an oracle, with these bets."""

    wealth_kind = PeekingWealth


class PeekingBetGapE(sp.BetGapE):
    """BetGapE that cheats like this."""

    def start(self, problem: Any) -> Any:
        """Return a run that cheats."""
        if not problem.is_listed and not isinstance(problem, sp.Polytope):
            return BatchRun(problem, self, PeekingOracle(problem, self.delta, self.epsilon))
        run = super().start(problem)
        run._factor = PeekingFactor()
        return run


def problem_of(cell: Cell) -> Any:
    """Return the problem of a cell, or raise why there is none."""
    given: dict[str, Any] = {
        "known": {"noise": 1.0},
        "bounded variance": {"noise": 1.0},
        "unknown": {"noise": None},
        "bounded readings": {"low": 0.0, "high": 1.0},
    }[cell.noise]
    if cell.noise == "bounded readings" and cell.probes != "arms":
        given = {"low": -1.5, "high": 3.0}  # of sums and differences of arms, with noise of HALF_WIDTH
    if cell.probes == "mixed readings":
        given["measure"] = MIXED
    elif cell.probes == "plan arms":
        given["measure"] = "plan arms"
    if cell.plans == "list":
        problem: Any = sp.Problem(PAIRS, goal="largest", **given)
    elif cell.plans == "oracle":
        problem = sp.problems.top_k(list("abcde"), 2, goal="largest", list_plans=False, **given)
    else:
        whole = {"A_eq": np.ones((1, 5)), "b_eq": [2.0], "upper": np.ones(5)}
        problem = sp.Polytope(**whole, goal="largest", **given)
    return problem.with_settings(noise_kind=cell.noise) if cell.noise == "bounded variance" else problem


def policy_of(cell: Cell) -> Any:
    """Return the policy of a cell."""
    if cell.question == "keep or replace":
        return Challenge(0 if cell.plans == "list" else FIRST_PAIR[cell.plans], DELTA)
    if cell.question == "wins most rounds":
        return sp.policies.SignRace(DELTA)
    if cell.question == "best within a limit":
        return sp.policies.Limited(DELTA, EPSILON, 0.0, GREY, tuple(map(tuple, LOADS.tolist())))
    if cell.question == "all within epsilon":
        return sp.policies.Tied(DELTA, EPSILON, GREY * EPSILON)
    kind = PeekingBetGapE if cell.control else sp.BetGapE
    return kind(DELTA, QUESTIONS[cell.question])


def truth_of(cell: Cell) -> tuple[Any, np.ndarray]:
    """Return the environment and the means."""
    is_bounded, within = cell.noise == "bounded readings", cell.question == "within epsilon"
    if cell.question == "all within epsilon":  # one plan just outside of epsilon, others just near enough
        means = np.array([0.0, 0.0, -NEAR, -EPSILON - 1e-4, -1.0]) + (1.0 if is_bounded else 0.0)
    elif cell.question == "keep or replace":
        means = np.full(5, 0.5 if is_bounded else 0.0)
    elif is_bounded:
        means = COINS if within else TIED_COINS
    else:
        means = JUST_MORE if within else TIE
    if is_bounded and cell.probes != "arms":
        return UniformNoise(means, HALF_WIDTH), means
    return Bernoulli(np.clip(means, 0, 1)) if is_bounded else Gaussian(means, 1.0), means


def is_wrong(cell: Cell, problem: Any, means: np.ndarray, outcome: Any) -> bool:
    """Return whether this answer is wrong; of equal plans none may be named better than the first."""
    if cell.question == "keep or replace":
        return not np.allclose(problem.vector(outcome.plan), PAIRS[0])
    behind = (PAIRS @ means).max() - PAIRS @ means
    if cell.question == "all within epsilon":
        out = np.setdiff1d(np.arange(len(PAIRS)), outcome.remaining)  # also without an answer
        return bool((behind[list(outcome.good)] > EPSILON).any() or (behind[out] <= NEAR).any())
    if cell.question == "best within a limit":
        load, best = LOADS @ means, (PAIRS @ means)[LOADS @ means <= 1e-12].max(initial=-np.inf)
        too_bad = (PAIRS @ means)[outcome.plan] < best - EPSILON - 1e-12
        return bool(load[outcome.plan] > GREY + 1e-12 or too_bad)
    worst = QUESTIONS[cell.question] + 1e-12
    return bool((PAIRS @ means).max() - problem.vector(outcome.plan) @ means > worst)


def counts(cell: Cell, first: int, runs: int) -> tuple[int, int] | str:
    """Return wrong answers and answers of so many runs, or the reason why the combination is refused."""
    try:
        problem, policy = problem_of(cell), policy_of(cell)
        environment, means = truth_of(cell)
        wrong = answered = 0
        for seed in range(SEED + first, SEED + first + runs):
            outcome = sp.simulate(problem, environment, policy=policy, seed=seed, budget=cell.budget)
            answered += outcome.plan is not None
            if outcome.plan is not None or cell.question == "all within epsilon":
                wrong += is_wrong(cell, problem, means, outcome)
    except (sp.SurepickError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return wrong, answered


def cells() -> list[Cell]:
    """Return every combination, and the controls."""
    every = [Cell(*each) for each in itertools.product(QUESTIONS, SETS, PROBES, NOISES)]
    controls = [Cell("best", plans, "arms", "known", control=True, budget=3000) for plans in SETS]
    return every + controls


@dataclass
class Count:
    """What is known of a cell: runs so far, or why it is refused."""

    runs: int = 0
    wrong: int = 0
    answered: int = 0
    refused: str = ""

    def __str__(self) -> str:
        return (
            "-" if self.refused or not self.runs else f"{self.wrong} of {self.answered}, {self.runs:,} runs"
        )

    @property
    def refuting(self) -> int:
        """So many errors have a probability below 1e-6 at error rate delta."""
        return 1 + int(binom.isf(1e-6, max(self.runs, 1), DELTA))


def count_rows(path: Path) -> dict[Cell, Count]:
    """Return what the rows of a file say of each cell."""
    found: dict[Cell, Count] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        row = json.loads(line)
        count = found.setdefault(Cell(**row["cell"]), Count())
        count.refused = row["refused"]
        count.runs, count.wrong = count.runs + row["runs"], count.wrong + row["wrong"]
        count.answered += row["answered"]
    return found


def run_cells(path: Path, runs: int, chunk: int, only: str | None) -> None:
    """Add rows to the file, a few runs of every cell in turn, until each cell has so many."""
    found = count_rows(path)
    with path.open("a", encoding="utf-8") as file:
        for goal, cell in itertools.product(range(chunk, runs + chunk, chunk), cells()):
            count = found.setdefault(cell, Count())
            n = min(goal, runs, CONTROLS if cell.control else runs) - count.runs
            if n <= 0 or count.refused or only not in (None, cell.plans):
                continue
            answer = counts(cell, count.runs, n)
            row = {"cell": vars(cell), "runs": n, "wrong": 0, "answered": 0, "refused": ""}
            row |= {"refused": answer, "runs": 0} if isinstance(answer, str) else {}
            row |= {} if isinstance(answer, str) else {"wrong": int(answer[0]), "answered": int(answer[1])}
            count.refused, count.runs = row["refused"], count.runs + row["runs"]
            file.write(json.dumps(row) + "\n")
            file.flush()


def print_table(found: dict[Cell, Count], commit: str) -> None:
    """Print the table, the refusals and the controls."""
    n = [count.runs for cell, count in found.items() if count.runs and not cell.control]
    print(
        f"`python benchmarks/matrix.py`, at {commit}: wrong of all answers, {min(n)} to {max(n)} runs a cell,"
    )
    print("at delta = .2.\n")
    print(f"| question | plans | measured | {' | '.join(NOISES)} |\n|---|---|---|{'---|' * len(NOISES)}")
    refusals: dict[str, list[str]] = {}
    for question, plans, probes in itertools.product(QUESTIONS, SETS, PROBES):
        counted = [found.get(Cell(question, plans, probes, noise), Count()) for noise in NOISES]
        for noise, count in zip(NOISES, counted, strict=True):
            if count.refused:
                refusals.setdefault(count.refused, []).append(f"{question}, {plans}, {probes}, {noise}")
        print(f"| {question} | {plans} | {probes} | {' | '.join(map(str, counted))} |")
    kept = [count for cell, count in found.items() if not cell.control]
    refuted = sum(count.wrong >= count.refuting for count in kept)
    largest = max((count.wrong / count.runs for count in kept if count.runs), default=0.0)
    print(f"\nThe guarantee is refuted in {refuted} cells; the largest error rate is {largest:.3f}.")
    print("\nControls (bet sizes chosen after the batch):\n")
    for cell, count in found.items():
        if cell.control:
            print(f"- {cell.plans}: {count}, {'caught' if count.wrong >= count.refuting else 'NOT CAUGHT'}")
    print("\nRefused:\n")
    for reason, where in refusals.items():
        print(f"- {' '.join(reason.split())[:160]} ({len(where)} cells, such as {where[0]})")


def main() -> None:
    """Run what is missing, or print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", type=Path, nargs="?", help="file of rows, one for some runs of a cell")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--chunk", type=int, default=50, help="runs of a cell before the next one's turn")
    parser.add_argument("--only", choices=SETS)
    parser.add_argument("--table", metavar="COMMIT", help="run nothing and print the table")
    given = parser.parse_args()
    if given.table:
        print_table(count_rows(given.rows), given.table)
    elif given.rows:
        run_cells(given.rows, given.runs, given.chunk, given.only)
    else:
        with tempfile.TemporaryDirectory() as folder:
            rows = Path(folder) / "rows.jsonl"
            run_cells(rows, given.runs, given.chunk, given.only)
            print_table(count_rows(rows), "the present commit")


if __name__ == "__main__":
    main()
