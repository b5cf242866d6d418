"""What a budget buys: how often the plan that looks best at its end is wrong, and what that costs.

Every method gets the same instances, noise seeds and budgets, .25 to 4 times T*. T* is the unit because the
limit of a proved answer at delta = .05 is 2.65 T*: these are budgets at which nothing can be proved yet.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np

from surepick.core.wording import how_many
from surepick.errors import ParameterError, all_names
from surepick.experiments.cases import Case, Row, prepared
from surepick.experiments.paper import NOISE_SEEDS, Settings
from surepick.experiments.rows import read_rows
from surepick.experiments.running import CasesFailedError, Report, run_cases
from surepick.experiments.specs import Spec, policy_from_spec
from surepick.experiments.summary import error_rate
from surepick.sessions import codec

MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of T*
FRESH_SEEDS = 70_000  # instances that nothing was tuned on
LONGEST = 150_000  # T* beyond which an instance is left out, for the time it takes
SEEDS_PER_INSTANCE = 1000  # noise seeds
RUNS_A_TURN = 4  # of an instance, before the next one has its turn
FEWEST_PER_ARM = 4  # T* at least this many measurements of each arm, so that a quarter measures each once


@dataclass(frozen=True)
class BudgetFamily:
    """Instances to try budgets on: some of each problem, and some runs on each instance."""

    name: str
    label: str
    problems: tuple[Spec, ...] = field(hash=False)  # all but the seed
    instances: int  # of each problem
    repeats: int  # runs on each instance
    quick: tuple[int, int]  # the same with --quick


@dataclass(frozen=True)
class BudgetMethod:
    """A policy as it enters the comparison; `only` names the families that it is for, None: all."""

    name: str
    label: str
    spec: Spec = field(hash=False)
    only: tuple[str, ...] | None = None
    note: str = ""


BUDGET_FAMILIES = (
    BudgetFamily(
        "knapsack",
        "knapsacks of 5, 7 and 9 items",
        tuple({"kind": "knapsack", "n_items": n} for n in (5, 7, 9)),
        25,
        16,
        (4, 2),
    ),
    BudgetFamily(
        "three-of-ten", "three of ten arms", ({"kind": "top_k", "n_arms": 10, "k": 3},), 20, 12, (4, 3)
    ),
    BudgetFamily("ten-arms", "one of ten arms", ({"kind": "top_k", "n_arms": 10, "k": 1},), 20, 8, (4, 3)),
    BudgetFamily("transport", "optimal transport, 81 routes", ({"kind": "transport"},), 12, 8, (2, 2)),
)
UNIFORM = BudgetMethod(
    "Uniform",
    "Uniform",
    {"policy": "Uniform", "delta": 1e-9},
    note="Uniform measures all arms equally often; its delta of 1e-9 keeps it from stopping early.",
)
BUDGET_METHODS = (
    BudgetMethod("Pick", "Pick", {"policy": "Pick"}),
    BudgetMethod(
        "BetGapE",
        "BetGapE, stopped",
        {"policy": "BetGapE", "delta": 0.05},
        note="BetGapE has delta = .05 and is stopped by the budget; the other methods promise nothing.",
    ),
    UNIFORM,
    BudgetMethod("CSA", "CSA", {"policy": "CSA"}),
    BudgetMethod(
        "CSAR",
        "CSAR",
        {"policy": "CSAR"},
        ("three-of-ten", "ten-arms"),
        note="CSAR is for sets of arms and decides as CSA does there.",
    ),
    BudgetMethod("MinimaxCombSAR", "Minimax-CombSAR", {"policy": "MinimaxCombSAR"}),
    BudgetMethod(
        "LinearOCBA",
        "OCBA, linear plans",
        {"policy": "LinearOCBA"},
        note="OCBA for linear plans is reconstructed: the same goal, climbed one measurement at a time.",
    ),
    BudgetMethod("OCBA", "OCBA", {"policy": "OCBA"}, ("ten-arms",), note="OCBA is for single arms."),
)


@dataclass(frozen=True)
class BudgetCell:
    """One method at one budget of one family."""

    runs: int
    wrong: int
    low: float  # exact 95% interval of the rate of wrong leads
    high: float
    loss: float  # mean value lost, in units of the gap to the second best plan
    loss_error: float  # its standard error
    cpu_seconds: float  # median

    @property
    def rate(self) -> float:
        """The share of wrong leads."""
        return self.wrong / self.runs if self.runs else math.nan

    @property
    def error(self) -> float:
        """The standard error of that share."""
        return math.sqrt(self.rate * (1.0 - self.rate) / self.runs) if self.runs else math.nan


@dataclass(frozen=True)
class FamilyResult:
    """A family's cells by method name and multiple, and how large its instances are."""

    family: BudgetFamily
    cells: Mapping[tuple[str, float], BudgetCell]
    n_instances: int
    times: tuple[float, float]  # the least and the largest T*


@dataclass(frozen=True)
class BudgetResult:
    """The whole comparison."""

    settings: Settings
    methods: tuple[BudgetMethod, ...]
    families: tuple[FamilyResult, ...]
    footnotes: tuple[str, ...]
    failures: tuple[str, ...] = ()
    n_missing: int = 0  # cases that have no row, since the run was interrupted


def budget_methods_named(names: Sequence[str] | None) -> tuple[BudgetMethod, ...]:
    """The methods with these names, whatever their case, Uniform always among them; None: all.

    >>> [method.name for method in budget_methods_named(["pick"])]
    ['Pick', 'Uniform']
    """
    known = {method.name.lower(): method for method in BUDGET_METHODS}
    if names is None:
        return BUDGET_METHODS
    for name in names:
        if name.lower() not in known:
            told = [method.name for method in BUDGET_METHODS]
            raise ParameterError(
                f"there is no policy named {name!r} in this experiment; {all_names(name, told)}"
            )
    chosen = {name.lower() for name in names} | {UNIFORM.name.lower()}  # losses are relative to it
    return tuple(method for method in BUDGET_METHODS if method.name.lower() in chosen)


def budget_families_named(names: Sequence[str] | None) -> tuple[BudgetFamily, ...]:
    """The families with these names, whatever their case; None: all.

    >>> [family.name for family in budget_families_named(["transport", "Knapsack"])]
    ['knapsack', 'transport']
    """
    if names is None:
        return BUDGET_FAMILIES
    known = [family.name for family in BUDGET_FAMILIES]
    for name in names:
        if name.lower() not in known:
            raise ParameterError(
                f"there is no family named {name!r} in this experiment; {all_names(name, known)}",
                field="families",
            )
    return tuple(family for family in BUDGET_FAMILIES if family.name in {name.lower() for name in names})


def budget_cases(settings: Settings) -> dict[tuple[str, str, float], list[Case]]:
    """The cases of each cell, by family, method and multiple of T*; this builds all instances."""
    cells: dict[tuple[str, str, float], list[Case]] = {}
    for family in budget_families_named(settings.families):
        instances, repeats = family.quick if settings.quick else (family.instances, family.repeats)
        for problem in family.problems:
            for found in _instances(problem, settings.runs or instances, settings.seed):
                for method in budget_methods_named(settings.policies):
                    if method.only is None or family.name in method.only:
                        for multiple in MULTIPLES:
                            place = family.name, method.name, multiple
                            cells.setdefault(place, []).extend(_cases(found, method, multiple, repeats))
    return cells


def _instances(problem: Spec, n: int, first: int) -> Iterator[Spec]:
    """The first n instances, from the fresh seeds on, that are neither trivial nor endless."""
    found = 0
    for seed in count(FRESH_SEEDS + first):
        if found == n:
            return
        spec = {**problem, "seed": seed}
        limit = prepared(spec).limit
        if FEWEST_PER_ARM * limit.n_relevant <= limit.characteristic_time < LONGEST:
            found += 1
            yield spec


def _cases(problem: Spec, method: BudgetMethod, multiple: float, repeats: int) -> list[Case]:
    limit = prepared(problem).limit
    budget = max(math.ceil(multiple * limit.characteristic_time), limit.n_relevant + 1)
    policy = {**method.spec, "version": policy_from_spec(method.spec).version}
    first = NOISE_SEEDS + SEEDS_PER_INSTANCE * problem["seed"]
    return [Case(problem, policy, first + repeat, budget) for repeat in range(repeats)]


def reproduce_budget(
    settings: Settings,
    path: str | Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Report | None = None,
) -> BudgetResult:
    """Run what is missing of the comparison into the row file, and summarize all of it.

    If it is interrupted, what is finished is summarized, and a note says how much that is.
    """
    cells = budget_cases(settings)
    failures: tuple[str, ...] = ()
    order = sorted(dict.fromkeys(case for cases in cells.values() for case in cases), key=_turn)
    try:
        run_cases(order, path, workers=workers, cluster=cluster, progress=progress)
    except CasesFailedError as error:
        failures = tuple(f"{codec.dumps(f.case.to_json())}: {f.reason}" for f in error.failures)
    except KeyboardInterrupt:
        pass  # a table of part of the runs is worth something, and says so
    return summarize_budget(settings, cells, {row.case: row for row in read_rows(path).rows}, failures)


def _turn(case: Case) -> tuple[int, str]:
    """A few runs of every instance first, so that a run that is cut short has seen all of them.

    All budgets and methods of an instance stand next to each other: a worker builds it once for them.
    """
    return case.seed % SEEDS_PER_INSTANCE // RUNS_A_TURN, codec.dumps(dict(case.problem))


def summarize_budget(
    settings: Settings,
    cells: Mapping[tuple[str, str, float], Sequence[Case]],
    rows: Mapping[Case, Row],
    failures: tuple[str, ...] = (),
) -> BudgetResult:
    """The table that these rows make; cases without a row are left out and counted in a footnote."""
    methods = budget_methods_named(settings.policies)
    families = []
    for family in budget_families_named(settings.families):
        found = {
            (name, multiple): [rows[case] for case in cases if case in rows]
            for (of, name, multiple), cases in cells.items()
            if of == family.name
        }
        every = [row for some in found.values() for row in some]
        if not every and rows:
            continue  # an interrupted run has not come to it, and a note says so
        times = [row.characteristic_time[0] for row in every] or [math.nan]
        families.append(
            FamilyResult(
                family,
                {place: _cell(some) for place, some in found.items()},
                len({row.instance for row in every}),
                (min(times), max(times)),
            )
        )
    missing = [case for cases in cells.values() for case in cases if case not in rows]
    notes = (*_notes(settings, methods, failures), *_cut_short(cells, rows))
    return BudgetResult(settings, methods, tuple(families), notes, failures, n_missing=len(missing))


def _cut_short(
    cells: Mapping[tuple[str, str, float], Sequence[Case]], rows: Mapping[Case, Row]
) -> Iterator[str]:
    """What is missing of each family, in words."""
    for family in dict.fromkeys(name for name, _, _ in cells):
        cases = [case for (of, _, _), some in cells.items() if of == family for case in some]
        done = sum(case in rows for case in cases)
        if done < len(cases):
            yield (
                f"{family} was cut short: {done:,} of {len(cases):,} runs; the same command goes on from "
                "there."
            )


def _cell(rows: Sequence[Row]) -> BudgetCell:
    """Runs without a lead, which no family has at these budgets, would count as wrong."""
    errors = error_rate(sum(row.loss is None or row.loss > 0 for row in rows), len(rows))
    losses = np.array([_relative_loss(row) for row in rows])
    deviation = float(losses.std(ddof=1)) if len(losses) > 1 else math.nan
    return BudgetCell(
        runs=len(rows),
        wrong=errors.wrong,
        low=errors.low,
        high=errors.high,
        loss=float(losses.mean()) if len(losses) else math.nan,
        loss_error=deviation / math.sqrt(len(losses)) if len(losses) else math.nan,
        cpu_seconds=float(np.median([row.cpu_seconds or 0.0 for row in rows])) if rows else math.nan,
    )


def _relative_loss(row: Row) -> float:
    return (row.loss or 0.0) / row.second_gap if row.second_gap else math.nan


_READING = (
    "wrong: the plan that looks best to the method when the budget is spent is not the best one.",
    "±: one standard error over runs.",
    "loss: what that plan lacks, in units of the gap of the second best plan, over Uniform's loss.",
    "No method promises anything here: a wrong lead breaks no promise.",
)


def _notes(settings: Settings, methods: Sequence[BudgetMethod], failures: Sequence[str]) -> tuple[str, ...]:
    instances = (
        f"Instances: of each kind the first ones from seed {FRESH_SEEDS + settings.seed} on with T* of at "
        f"least {FEWEST_PER_ARM} measurements of each arm that matters and less than {LONGEST:,}; noise "
        "N(0, 1). All methods meet the same instances, noise seeds and budgets."
    )
    return (
        instances,
        *_READING,
        *(method.note for method in methods if method.note),
        *([f"{how_many(len(failures), 'case')} failed: {failures[0]}"] if failures else []),
    )
