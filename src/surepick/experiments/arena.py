"""The arena: every method on the same instances, one table for each question.

Questions: *exact*, which plan is the best; *vectors*, the same where mixes of arms are measured; *plays*,
where whole plans are played and each of their arms is read; *epsilon*, a plan that is worse than the best by
at most epsilon, or the best if it is better by the zone; *budget*, which plan looks best after a budget
(`budgets`). Methods enter where they can (`arena_entrants`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surepick.core.policy import check_delta
from surepick.core.promise import Promise
from surepick.core.wording import how_many
from surepick.errors import ParameterError, all_names
from surepick.experiments.arena_entrants import (
    ARENA_FAMILIES,
    BELOW,
    ENTRANTS,
    QUESTIONS,
    ArenaFamily,
    Entrant,
)
from surepick.experiments.arena_guests import guest, is_policy, refusal
from surepick.experiments.budgets import (
    BUDGET_FAMILIES,
    BUDGET_METHODS,
    BudgetResult,
    budget_cases,
    summarize_budget,
)
from surepick.experiments.cases import Case, Row, prepared
from surepick.experiments.paper import Settings
from surepick.experiments.rows import read_rows
from surepick.experiments.running import CasesFailedError, Report, run_cases
from surepick.experiments.specs import TOLD, Spec, policy_from_spec
from surepick.experiments.summary import MethodSummary, summarize
from surepick.policies import policy_named
from surepick.sessions import codec

FRESH_SEEDS = 80_000  # instances that nothing was tuned on
NOISE_SEEDS = 3 * 10**6
CUT_OFF = 60  # times the limit: where a method that measures one by one is cut off
ENDLESS = 10**15  # phases are simulated at the same price however long they are
LONGEST = 20_000  # T* beyond which an instance is left out, for the time it takes
EPSILON = 0.3
_LISTED = list(dict.fromkeys(one.name for one in (*ENTRANTS, *BUDGET_METHODS)))
BUDGET_INSTANCES = 8  # of each problem of a family of budgets; `reproduce budget` has more


@dataclass(frozen=True)
class ArenaSettings:
    """How to run the arena; what is None is everything, or the usual number of runs."""

    questions: tuple[str, ...] | None = None
    families: tuple[str, ...] | None = None
    policies: tuple[str, ...] | None = None
    runs: int | None = None
    seed: int = 0
    delta: float = 0.05
    quick: bool = False

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if self.runs is not None and self.runs < 1:
            raise ParameterError(f"runs must be 1 or more, got {self.runs}", field="runs")
        _check_names("question", self.questions, list(QUESTIONS))
        _check_names("family", self.families, [family.name for family in (*ARENA_FAMILIES, *BUDGET_FAMILIES)])
        for name in self.policies or ():
            if not is_policy(name):
                _check_names("policy", (name,), _LISTED)
        _ = self.guests  # their settings are checked, too

    @property
    def guests(self) -> tuple[Entrant, ...]:
        """The policies that are named and not on the arena's list: of other packages, or otherwise set."""
        return tuple(guest(name) for name in self.policies or () if not is_named(name, _LISTED))

    @property
    def of_budgets(self) -> Settings | None:
        """The part that tries budgets, if it is asked for."""
        if not is_named("budget", self.questions):
            return None
        families = tuple(f.name for f in BUDGET_FAMILIES if is_named(f.name, self.families))
        methods = tuple(m.name for m in BUDGET_METHODS if is_named(m.name, self.policies))
        if not families or not methods:
            return None
        runs = self.runs or (None if self.quick else BUDGET_INSTANCES)
        # quick: few runs on each instance
        return Settings(runs, methods, seed=self.seed, delta=self.delta, quick=True, families=families)


def is_named(name: str, names: Sequence[str] | None) -> bool:
    """Whether it is among these names, whatever their case; None is all."""
    return names is None or name.lower() in {one.lower() for one in names}


def _check_names(what: str, names: tuple[str, ...] | None, known: list[str]) -> None:
    known = list(dict.fromkeys(known))
    for name in names or ():
        if not is_named(name, known):
            raise ParameterError(
                f"there is no {what} named {name!r} in the arena; {all_names(name, known)}",
                field=what,
            )


@dataclass(frozen=True)
class Placing:
    """What a method did on a family."""

    entrant: Entrant
    summary: MethodSummary
    cpu_seconds: float  # median of a run
    proved: bool  # whether its stop has a proof


@dataclass(frozen=True)
class ArenaTable:
    """All methods on one family, the fewest measurements first."""

    family: ArenaFamily
    placings: tuple[Placing, ...]
    n_instances: int


@dataclass(frozen=True)
class Arena:
    """What the arena has seen."""

    settings: ArenaSettings
    tables: tuple[ArenaTable, ...]
    budget: BudgetResult | None
    footnotes: tuple[str, ...]
    failures: tuple[str, ...] = ()
    n_missing: int = 0  # cases that have no row, since the run was interrupted or they failed


def chosen_families(settings: ArenaSettings) -> tuple[ArenaFamily, ...]:
    """The families that were asked for; those of budgets are apart."""
    return tuple(
        family
        for family in ARENA_FAMILIES
        if is_named(family.name, settings.families) and is_named(family.question, settings.questions)
    )


def entrants_for(family: ArenaFamily, settings: ArenaSettings) -> tuple[Entrant, ...]:
    """The methods that can take this family and answer its question.

    >>> family = next(family for family in ARENA_FAMILIES if family.name == "knapsack")
    >>> "KN" in {entrant.name for entrant in entrants_for(family, ArenaSettings())}
    False
    """
    listed = tuple(
        entrant
        for entrant in ENTRANTS
        if set(entrant.takes) & set(BELOW[family.plans])
        and family.question in entrant.questions
        and is_named(entrant.name, settings.policies)
        and (settings.policies is not None or family.name not in entrant.slow_on)
    )
    return listed + tuple(entrant for entrant in settings.guests if refusal(entrant, family) is None)


def arena_cases(settings: ArenaSettings) -> dict[tuple[str, str], list[Case]]:
    """The cases of each cell, by family and method; every method meets the same instances and noise."""
    cells: dict[tuple[str, str], list[Case]] = {}
    for family in chosen_families(settings):
        runs = settings.runs or (family.quick if settings.quick else family.runs)
        entrants = entrants_for(family, settings)
        problems = _problems(family, runs, settings) if entrants else []
        for entrant in entrants:
            cells[family.name, entrant.name] = [
                _case(family, entrant, trial, NOISE_SEEDS + settings.seed + run, settings.delta)
                for run, trial in enumerate(problems)
            ]
    return cells


Trial = tuple[Spec, float]  # a problem, and how few measurements any method needs


def _problems(family: ArenaFamily, runs: int, settings: ArenaSettings) -> list[Trial]:
    """One for each run: another instance each, or the same one where it is given."""
    if not family.is_drawn:
        return [(family.problem, prepared(family.problem).limit.measurements(settings.delta))] * runs
    found: list[Trial] = []
    seed = FRESH_SEEDS + settings.seed
    while len(found) < runs:
        problem = {**family.problem, "seed": seed}
        least = prepared(problem).limit
        if least.characteristic_time < LONGEST:
            found.append((problem, least.measurements(settings.delta)))
        seed += 1
    return found


def _case(family: ArenaFamily, entrant: Entrant, trial: Trial, seed: int, delta: float) -> Case:
    problem, least = trial
    kind = policy_named(entrant.spec["policy"])
    policy: dict[str, Any] = {**entrant.spec, "delta": delta}
    if family.question == "epsilon":
        known = {setting.name for setting in dataclasses.fields(kind)}  # type: ignore[arg-type]
        policy["epsilon" if "epsilon" in known else "zone"] = EPSILON
    fixed = {name: value for name, value in policy.items() if value not in TOLD}
    policy["version"] = policy_from_spec(fixed).version
    budget = ENDLESS if entrant.in_phases else math.ceil(CUT_OFF * least)
    return Case(problem, policy, seed, budget)


def run_arena(
    settings: ArenaSettings,
    path: str | Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Report | None = None,
) -> Arena:
    """Run what is missing into the row file, and summarize all of it.

    If it is interrupted, what is finished is summarized, and a note says how much that is.
    """
    cells = arena_cases(settings)
    budgets = {} if settings.of_budgets is None else budget_cases(settings.of_budgets)
    if not cells and not budgets:
        why = "; ".join(_refused(settings)) or "docs/arena.md says which methods are for which plans"
        raise ParameterError(f"no policy that was named takes a family that was named: {why}", field="policy")
    failures: tuple[str, ...] = ()
    try:
        every = in_turns([*cells.values(), *budgets.values()])
        run_cases(every, path, workers=workers, cluster=cluster, progress=progress)
    except CasesFailedError as error:
        failures = tuple(f"{codec.dumps(f.case.to_json())}: {f.reason}" for f in error.failures)
    except KeyboardInterrupt:
        pass  # all families and methods take turns, so that a table of part of the runs has seen everything
    rows = {row.case: row for row in read_rows(path).rows}
    return summarize_arena(settings, (cells, budgets), rows, failures)


def in_turns(cells: Sequence[Sequence[Case]]) -> list[Case]:
    """A run of every family and method first, then the next, so that a run cut short has seen all."""
    longest = max(map(len, cells), default=0)
    found = [cases[turn] for turn in range(longest) for cases in cells if turn < len(cases)]
    return list(dict.fromkeys(found))


Cells = tuple[Mapping[tuple[str, str], Sequence[Case]], Mapping[tuple[str, str, float], Sequence[Case]]]


def summarize_arena(
    settings: ArenaSettings, cells: Cells, rows: Mapping[Case, Row], failures: tuple[str, ...] = ()
) -> Arena:
    """The tables that these rows make; cases without a row are left out."""
    tables = []
    for family in chosen_families(settings):
        found = {
            entrant: [rows[case] for case in cells[0][family.name, entrant.name] if case in rows]
            for entrant in entrants_for(family, settings)
        }
        if not found:
            continue  # nobody who was named takes it
        placings = [_placing(entrant, some) for entrant, some in found.items() if some]
        instances = {row.instance for some in found.values() for row in some}
        tables.append(ArenaTable(family, tuple(sorted(placings, key=_order)), len(instances)))
    asked = settings.of_budgets
    budget = None if asked is None else summarize_budget(asked, cells[1], rows)
    notes = [*_notes(settings, tables, failures), *_cut_short(cells[0], rows)]
    every = [case for part in cells for some in part.values() for case in some]
    n_missing = sum(case not in rows for case in every)
    return Arena(settings, tuple(tables), budget, tuple(notes), failures, n_missing)


def _cut_short(cells: Mapping[tuple[str, str], Sequence[Case]], rows: Mapping[Case, Row]) -> list[str]:
    """How much of the runs there is, if not all; what a budget buys says it by itself."""
    every = [case for some in cells.values() for case in some]
    done = sum(case in rows for case in every)
    if done == len(every):
        return []
    return [f"cut short: {done:,} of {len(every):,} runs; the same command goes on from here."]


def _placing(entrant: Entrant, rows: Sequence[Row]) -> Placing:
    ranked = sorted(row.cpu_seconds or 0.0 for row in rows)
    return Placing(
        entrant,
        summarize(entrant.label, rows, rows),
        ranked[len(ranked) // 2],
        all(Promise.read(row.guarantee).proved for row in rows),
    )


def _order(placing: Placing) -> float:
    multiple = placing.summary.multiple
    return math.inf if multiple is None else multiple.mean.number


_LIMIT_NOTE = (
    "× limit: measurements over max(T* kl(delta, 1 - delta), (1 - 2 delta) arms), which no method that keeps "
    "its promise can undercut on average; within epsilon, where less may do, it is the same unit."
)
_READING = (
    _LIMIT_NOTE,
    f"≥: runs that were cut off at {CUT_OFF} times the limit count as what they used.",
    "wrong: of the runs that answered, with the exact (Clopper-Pearson) 95% interval of the error rate.",
    "proof: whether the stop has one; a method without one may need less because it promises nothing.",
    "CPU: median seconds of a run, noise included; compiled where a method has compiled loops.",
)


def _notes(settings: ArenaSettings, tables: Sequence[ArenaTable], failures: Sequence[str]) -> tuple[str, ...]:
    seeds = (
        f"delta = {settings.delta:g}. Instances from seed {FRESH_SEEDS + settings.seed} on with T* below "
        f"{LONGEST:,}, another one for each run where they are drawn; noise N(0, 1). All methods of a family "
        "meet the same instances and noise seeds."
    )
    present = {placing.entrant for table in tables for placing in table.placings}
    return (
        seeds,
        *_READING,
        *(entrant.note for entrant in ENTRANTS if entrant in present and entrant.note),
        *_refused(settings),
        *_broken(settings, tables),
        *([f"{how_many(len(failures), 'case')} failed: {failures[0]}"] if failures else []),
    )


def _refused(settings: ArenaSettings) -> list[str]:
    """Where guests were not, and why."""
    return [
        f"{entrant.label} is not on {family.label}: {why}"
        for entrant in settings.guests
        for family in chosen_families(settings)
        if (why := refusal(entrant, family)) is not None
    ]


def _broken(settings: ArenaSettings, tables: Sequence[ArenaTable]) -> list[str]:
    """Who was wrong more often than delta allows, beyond chance."""
    return [
        f"{placing.entrant.label} was wrong more often than delta allows on {table.family.label}: "
        f"{placing.summary.errors.wrong} of {placing.summary.errors.answers} answers."
        for table in tables
        for placing in table.placings
        if placing.summary.errors.answers and placing.summary.errors.low > settings.delta
    ]
