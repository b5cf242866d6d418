"""The arena: every method on the same instances, one table for each question.

Questions: *exact*, which plan is the best; *within epsilon*, a plan that is worse than the best by at most
epsilon, or the best if it is better by the zone; *budget*, which plan looks best after a budget (`budgets`).
Methods enter where they can: some are for single arms, some for sets of arms.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from surepick.core.policy import check_delta
from surepick.core.promise import Promise
from surepick.core.wording import how_many
from surepick.errors import ParameterError, suggestion
from surepick.experiments.cases import Case, Row, prepared
from surepick.experiments.rows import read_rows
from surepick.experiments.running import CasesFailedError, Report, run_cases
from surepick.experiments.specs import LARGEST_GAP, Spec, policy_from_spec
from surepick.experiments.summary import MethodSummary, summarize
from surepick.policies import policy_named
from surepick.sessions import codec

Plans: TypeAlias = Literal["any", "sets", "single"]  # what a method can take, or what a family has

FRESH_SEEDS = 80_000  # instances that nothing was tuned on
NOISE_SEEDS = 3 * 10**6
CUT_OFF = 60  # times the limit: where a method that measures one by one is cut off
ENDLESS = 10**15  # phases are simulated at the same price however long they are
LONGEST = 20_000  # T* beyond which an instance is left out, for the time it takes
EPSILON = 0.3


@dataclass(frozen=True)
class ArenaFamily:
    """Problems of one kind; instances are drawn anew for each run unless the problem has no seed."""

    name: str
    label: str
    question: str  # "exact" or "epsilon"
    problem: Spec = field(hash=False)
    plans: Plans  # what its plans are
    runs: int = 40
    quick: int = 4


@dataclass(frozen=True)
class Entrant:
    """A method in the arena: `takes` says which plans it can take, `questions` which it answers."""

    name: str  # on the command line
    label: str
    spec: Spec = field(hash=False)
    takes: Plans = "any"
    questions: tuple[str, ...] = ("exact",)
    in_phases: bool = False  # whole phases at once: never cut off in the middle of one
    in_default: bool = True  # False: draws before every measurement, minutes a run; it must be named
    note: str = ""


def _single(means: Sequence[float]) -> dict[str, Any]:
    plans = [[float(s == k) for s in range(len(means))] for k in range(len(means))]
    return {"kind": "given", "plans": plans, "means": list(means)}


_TWO = (0.3, 0.0)
_SLIPPAGE = (0.3, *[0.0] * 9)
_MONOTONE = tuple(-0.3 * i for i in range(10))
ARENA_FAMILIES = (
    ArenaFamily("knapsack", "knapsacks of 7 items", "exact", {"kind": "knapsack", "n_items": 7}, "any", 30),
    ArenaFamily("transport", "optimal transport, 81 routes", "exact", {"kind": "transport"}, "any", 8, 2),
    ArenaFamily(
        "three-of-ten", "three of ten arms", "exact", {"kind": "top_k", "n_arms": 10, "k": 3}, "sets", 20
    ),
    ArenaFamily(
        "ten-arms", "one of ten arms", "exact", {"kind": "top_k", "n_arms": 10, "k": 1}, "single", 20
    ),
    ArenaFamily("slippage", "ten arms, one better by .3", "exact", _single(_SLIPPAGE), "single", 30),
    ArenaFamily("monotone", "ten arms, each worse by .3", "exact", _single(_MONOTONE), "single", 30),
    ArenaFamily("near-tie", "two arms that differ by .1", "exact", _single((0.1, 0.0)), "single", 60, 10),
    ArenaFamily("zone-two", "two arms that differ by .3", "epsilon", _single(_TWO), "single", 100, 20),
    ArenaFamily(
        "zone-slippage", "ten arms, one better by .3", "epsilon", _single(_SLIPPAGE), "single", 60, 6
    ),
    ArenaFamily(
        "zone-monotone", "ten arms, each worse by .3", "epsilon", _single(_MONOTONE), "single", 60, 6
    ),
)

BOTH = ("exact", "epsilon")
ENTRANTS = (
    Entrant("BetGapE", "BetGapE", {"policy": "BetGapE"}, questions=BOTH, in_phases=True),
    Entrant("CombGapE", "CombGapE", {"policy": "CombGapE"}, questions=BOTH),
    Entrant(
        "CombGapE-published",
        "CombGapE, published radius",
        {"policy": "CombGapE", "radius": "published"},
        questions=BOTH,
    ),
    Entrant("CombGapE-heuristic", "CombGapE, heuristic", {"policy": "CombGapE", "radius": "heuristic"}),
    Entrant("Uniform", "Uniform", {"policy": "Uniform"}, questions=BOTH),
    Entrant("CLUCB", "CLUCB", {"policy": "CLUCB"}),
    Entrant("RAGE", "RAGE", {"policy": "RAGE"}, in_phases=True),
    Entrant("RAGE-authors", "RAGE, authors' code", {"policy": "RAGE", "variant": "authors"}, in_phases=True),
    Entrant(
        "Peace",
        "Peace",
        {"policy": "Peace", "max_gap": LARGEST_GAP},
        in_phases=True,
        note="Peace is told the true largest gap of each instance, which nobody has in practice.",
    ),
    Entrant("GenTSExplore", "GenTS-Explore", {"policy": "GenTSExplore"}, in_default=False),
    Entrant("TSExplore", "TS-Explore", {"policy": "TSExplore"}, "sets", in_default=False),
    Entrant("GenLUCB", "GenLUCB", {"policy": "GenLUCB"}, "sets"),
    Entrant("NaiveGapElim", "NaiveGapElim", {"policy": "NaiveGapElim"}, "sets", in_phases=True),
    Entrant("TrackAndStop", "Track-and-Stop (D)", {"policy": "TrackAndStop"}, "single", BOTH),
    Entrant(
        "TrackAndStop-heuristic",
        "Track-and-Stop (D), heuristic",
        {"policy": "TrackAndStop", "radius": "heuristic"},
        "single",
    ),
    Entrant("TTUCB", "TTUCB", {"policy": "TTUCB"}, "single", BOTH),
    Entrant("TTUCB-heuristic", "TTUCB, heuristic", {"policy": "TTUCB", "radius": "heuristic"}, "single"),
    Entrant("EBTCI", "EB-TCI", {"policy": "EBTCI"}, "single", BOTH),
    Entrant("EBTCI-heuristic", "EB-TCI, heuristic", {"policy": "EBTCI", "radius": "heuristic"}, "single"),
    Entrant("TTTS-heuristic", "TTTS, heuristic", {"policy": "TTTS", "radius": "heuristic"}, "single"),
    Entrant("LUCB", "LUCB", {"policy": "LUCB"}, "single", BOTH),
    Entrant("LilUCB", "lil'UCB", {"policy": "LilUCB"}, "single"),
    Entrant(
        "LilUCB-heuristic",
        "lil'UCB, heuristic",
        {"policy": "LilUCB", "variant": "heuristic"},
        "single",
    ),
    Entrant(
        "KN",
        "KN",
        {"policy": "KN"},
        "single",
        ("epsilon",),
        note=(
            "KN, KN++ and Rinott do not know the noise scale and estimate it; their zone is .3, and an "
            "answer that is not the best arm counts as wrong. The others know it, have epsilon = .3, and are "
            "wrong if the answer is worse than the best by more than that."
        ),
    ),
    Entrant("KNPlusPlus", "KN++", {"policy": "KNPlusPlus"}, "single", ("epsilon",)),
    Entrant("Rinott", "Rinott", {"policy": "Rinott"}, "single", ("epsilon",)),
)


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
        _check_names("family", self.families, [family.name for family in ARENA_FAMILIES])
        _check_names("policy", self.policies, [entrant.name for entrant in ENTRANTS])


QUESTIONS = {"exact": "Which plan is the best?", "epsilon": "A plan within .3 of the best"}


def _check_names(what: str, names: tuple[str, ...] | None, known: list[str]) -> None:
    lower = {name.lower() for name in known}
    for name in names or ():
        if name.lower() not in lower:
            raise ParameterError(
                f"there is no {what} named {name!r} in the arena; {suggestion(name, known)} "
                f"(known: {', '.join(known)})",
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
    footnotes: tuple[str, ...]
    failures: tuple[str, ...] = ()


def chosen_families(settings: ArenaSettings) -> tuple[ArenaFamily, ...]:
    """The families that were asked for."""
    return tuple(
        family
        for family in ARENA_FAMILIES
        if (settings.families is None or family.name in _lower(settings.families))
        and (settings.questions is None or family.question in _lower(settings.questions))
    )


def entrants_for(family: ArenaFamily, settings: ArenaSettings) -> tuple[Entrant, ...]:
    """The methods that can take this family and answer its question.

    >>> family = next(family for family in ARENA_FAMILIES if family.name == "knapsack")
    >>> "KN" in {entrant.name for entrant in entrants_for(family, ArenaSettings())}
    False
    """
    fits = {"any": ("any",), "sets": ("any", "sets"), "single": ("any", "sets", "single")}[family.plans]
    return tuple(
        entrant
        for entrant in ENTRANTS
        if entrant.takes in fits and family.question in entrant.questions and _is_asked_for(entrant, settings)
    )


def _is_asked_for(entrant: Entrant, settings: ArenaSettings) -> bool:
    if settings.policies is None:
        return entrant.in_default
    return entrant.name.lower() in _lower(settings.policies)


def _lower(names: Sequence[str]) -> set[str]:
    return {name.lower() for name in names}


def arena_cases(settings: ArenaSettings) -> dict[tuple[str, str], list[Case]]:
    """The cases of each cell, by family and method; every method meets the same instances and noise."""
    cells: dict[tuple[str, str], list[Case]] = {}
    for family in chosen_families(settings):
        runs = settings.runs or (family.quick if settings.quick else family.runs)
        problems = _problems(family, runs, settings.seed)
        for entrant in entrants_for(family, settings):
            cells[family.name, entrant.name] = [
                _case(family, entrant, problem, NOISE_SEEDS + settings.seed + run, settings.delta)
                for run, problem in enumerate(problems)
            ]
    return cells


def _problems(family: ArenaFamily, runs: int, first: int) -> list[Spec]:
    """One for each run: another instance each, or the same one where it is given."""
    if family.problem["kind"] == "given":
        return [family.problem] * runs
    found: list[Spec] = []
    seed = FRESH_SEEDS + first
    while len(found) < runs:
        problem = {**family.problem, "seed": seed}
        if prepared(problem).limit.characteristic_time < LONGEST:
            found.append(problem)
        seed += 1
    return found


def _case(family: ArenaFamily, entrant: Entrant, problem: Spec, seed: int, delta: float) -> Case:
    kind = policy_named(entrant.spec["policy"])
    policy: dict[str, Any] = {**entrant.spec, "delta": delta}
    if family.question == "epsilon":
        known = {setting.name for setting in dataclasses.fields(kind)}  # type: ignore[arg-type]
        policy["epsilon" if "epsilon" in known else "zone"] = EPSILON
    fixed = {name: value for name, value in policy.items() if value != LARGEST_GAP}
    policy["version"] = policy_from_spec(fixed).version
    least = prepared(problem).limit.measurements(delta)
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
    """Run what is missing into the row file, and summarize all of it."""
    cells = arena_cases(settings)
    failures: tuple[str, ...] = ()
    try:
        run_cases(_in_turns(cells), path, workers=workers, cluster=cluster, progress=progress)
    except CasesFailedError as error:
        failures = tuple(f"{codec.dumps(f.case.to_json())}: {f.reason}" for f in error.failures)
    return summarize_arena(settings, cells, {row.case: row for row in read_rows(path).rows}, failures)


def _in_turns(cells: Mapping[tuple[str, str], Sequence[Case]]) -> list[Case]:
    """A run of every family and method first, then the next, so that a run cut short has seen all."""
    longest = max(map(len, cells.values()), default=0)
    return [cases[turn] for turn in range(longest) for cases in cells.values() if turn < len(cases)]


def summarize_arena(
    settings: ArenaSettings,
    cells: Mapping[tuple[str, str], Sequence[Case]],
    rows: Mapping[Case, Row],
    failures: tuple[str, ...] = (),
) -> Arena:
    """The tables that these rows make; cases without a row are left out."""
    tables = []
    for family in chosen_families(settings):
        found = {
            entrant: [rows[case] for case in cells[family.name, entrant.name] if case in rows]
            for entrant in entrants_for(family, settings)
        }
        placings = [_placing(entrant, some) for entrant, some in found.items() if some]
        instances = {row.instance for some in found.values() for row in some}
        tables.append(ArenaTable(family, tuple(sorted(placings, key=_order)), len(instances)))
    return Arena(settings, tuple(tables), _notes(settings, tables, failures), failures)


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
        *_broken(settings, tables),
        *([f"{how_many(len(failures), 'case')} failed: {failures[0]}"] if failures else []),
    )


def _broken(settings: ArenaSettings, tables: Sequence[ArenaTable]) -> list[str]:
    """Who was wrong more often than delta allows, beyond chance."""
    return [
        f"{placing.entrant.label} was wrong more often than delta allows on {table.family.label}: "
        f"{placing.summary.errors.wrong} of {placing.summary.errors.answers} answers."
        for table in tables
        for placing in table.placings
        if placing.summary.errors.answers and placing.summary.errors.low > settings.delta
    ]
