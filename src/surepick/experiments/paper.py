"""The paper's two experiments: their instances, the methods compared, and the values that it prints.

Nakamura & Sugiyama, CombGapE, Tables 1 (knapsack) and 2 (optimal transport): mean and standard deviation of
each method's measurements relative to CombGapE's on the same instance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, TypeAlias

from surepick import plugins
from surepick.core.policy import check_delta
from surepick.errors import ParameterError, all_names
from surepick.experiments.cases import Case
from surepick.experiments.specs import ALL_PLANS, LARGEST_GAP, Spec, hours_spec, policy_from_spec
from surepick.policies import POLICIES
from surepick.problems.cities import KNOWN

Pace: TypeAlias = Literal["steps", "draws", "phases"]

# The noise of instance i has seed NOISE_SEEDS + i: apart from the seeds that instances are drawn with.
NOISE_SEEDS = 10**6


@dataclass(frozen=True)
class Method:
    """A policy as it enters a comparison.

    `pace` decides its budget: a method of "steps" costs about a microsecond a measurement, one of "draws"
    samples before each of them, and one of "phases" is simulated at the same price however long a phase is.
    """

    name: str  # on the command line
    label: str  # in tables
    spec: Spec = field(hash=False)
    pace: Pace = "steps"
    in_default: bool = True
    note: str = ""
    all_plans: bool = False  # of the instance, not the listed ones; where the experiment has such


REFERENCE = Method("CombGapE", "CombGapE", {"policy": "CombGapE", "radius": "published"})
METHODS = (
    REFERENCE,
    Method(
        "CombGapE-naive",
        "CombGapE (naive)",
        {"policy": "CombGapE", "radius": "published", "arm_rule": "naive"},
    ),
    Method("GenTSExplore", "GenTS-Explore", {"policy": "GenTSExplore"}, "draws"),
    Method("RAGE", "RAGE", {"policy": "RAGE"}, "phases"),
    Method(
        "Peace",
        "Peace",
        {"policy": "Peace", "max_gap": LARGEST_GAP},
        "phases",
        note="Peace is told B = the true largest gap of each instance, which nobody has in practice.",
    ),
    Method(
        "CombGapE-normal-mixture",
        "CombGapE (sound)",
        {"policy": "CombGapE", "radius": "normal-mixture"},
        note="CombGapE (sound) has the normal-mixture radius, which has a proof; it is not in the paper.",
    ),
    Method("BetGapE", "BetGapE", {"policy": "BetGapE"}, "phases", note="BetGapE is not in the paper."),
    Method(
        "PolyBet",
        "PolyBet, all plans",
        {"policy": "PolyBet"},
        "phases",
        note="PolyBet decides the same instances between all transports, without a list: its × limit is of "
        "that question, its ratio is to CombGapE's measurements for the best of the list. It is not in the "
        "paper.",
        all_plans=True,
    ),
    Method("RAGE-authors", "RAGE (authors' code)", {"policy": "RAGE", "variant": "authors"}, "phases", False),
    Method(
        "CombGapE-kaufmann-koolen",
        "CombGapE (K.-Koolen)",
        {"policy": "CombGapE", "radius": "kaufmann-koolen"},
        in_default=False,
    ),
    Method("CLUCB", "CLUCB", {"policy": "CLUCB"}, in_default=False),
    Method("LinGapE", "LinGapE", {"policy": "LinGapE"}, in_default=False),
    Method("Uniform", "Uniform", {"policy": "Uniform"}, in_default=False),
)


@dataclass(frozen=True)
class Column:
    """One column of a table: a family of instances, one for each seed, and what the paper prints for it."""

    label: str
    problem: Spec = field(hash=False)  # all but the seed
    printed: Mapping[str, tuple[float, float]] = field(hash=False)  # method name -> mean, deviation


@dataclass(frozen=True)
class Experiment:
    """A table of the paper, and how much of it to run."""

    name: str
    title: str
    columns: tuple[Column, ...]
    runs: int
    budgets: Mapping[Pace, int] = field(hash=False)
    quick_runs: int
    quick_budgets: Mapping[Pace, int] = field(hash=False)
    left_out: frozenset[str] = frozenset()  # methods that are run if they are named alone
    footnotes: tuple[str, ...] = ()
    has_all_plans: bool = False  # whether its instances can be decided between all plans, too


KNAPSACK = Experiment(
    name="knapsack",
    title="Table 1: knapsack",
    columns=tuple(
        Column(f"d = {n_items}", {"kind": "knapsack", "n_items": n_items}, printed)
        for n_items, printed in (
            (
                5,
                {
                    "CombGapE-naive": (2.6, 4.1),
                    "GenTSExplore": (65, 81),
                    "RAGE": (1.8e4, 3.5e4),
                    "Peace": (82, 96),
                },
            ),
            (
                7,
                {
                    "CombGapE-naive": (3.0, 3.3),
                    "GenTSExplore": (58, 45),
                    "RAGE": (8.4e3, 1.3e4),
                    "Peace": (39, 29),
                },
            ),
            (
                9,
                {
                    "CombGapE-naive": (2.2, 2.5),
                    "GenTSExplore": (74, 75),
                    "RAGE": (2.0e4, 4.0e4),
                    "Peace": (55, 49),
                },
            ),
        )
    ),
    runs=30,
    budgets={"steps": 10**8, "draws": 10**7, "phases": 10**15},
    quick_runs=10,
    quick_budgets={"steps": 10**6, "draws": 10**5, "phases": 10**15},
)

GREAT_CIRCLE_NOTE = (
    "The paper read travel hours from a map service on an unstated day; here they are great-circle "
    "kilometres x 1.25 / 95 (an open stand-in)."
)
FREEWAY_NOTE = (
    "The paper read travel hours from a map service on an unstated day; here they are freeway miles / 61.1 "
    "(an open stand-in). Roads share segments, so many plans tie and no method can tell them apart."
)

TRANSPORT = Experiment(
    name="transport",
    title="Table 2: optimal transport",
    columns=(
        Column(
            "d = 81",
            {"kind": "transport", "distances": "great-circle"},
            {"CombGapE-naive": (2.08, 1.55), "RAGE": (25.7, 16.6), "Peace": (29.7, 23.5)},
        ),
    ),
    runs=100,
    budgets={"steps": 10**7, "draws": 10**6, "phases": 10**15},
    left_out=frozenset({"GenTSExplore"}),  # many minutes an instance; the paper has none
    quick_runs=6,
    quick_budgets={"steps": 3 * 10**6, "draws": 2 * 10**4, "phases": 10**15},
    footnotes=(GREAT_CIRCLE_NOTE,),
    has_all_plans=True,
)

EXPERIMENTS = {experiment.name: experiment for experiment in (KNAPSACK, TRANSPORT)}


@dataclass(frozen=True)
class Settings:
    """How to run an experiment; what is None is as in the paper, or as in the quick version of it."""

    runs: int | None = None
    policies: tuple[str, ...] | None = None
    budget: int | None = None
    seed: int = 0
    delta: float = 0.05
    quick: bool = False
    families: tuple[str, ...] | None = None  # of the experiment with budgets; None: all

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if self.seed < 0:
            raise ParameterError(f"seed is 0 or more, got {self.seed}")
        for name in ("runs", "budget"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ParameterError(f"{name} must be 1 or more, got {value}")


def experiments_named(name: str) -> tuple[Experiment, ...]:
    """The experiment of this name, or all of them for "all".

    >>> [experiment.name for experiment in experiments_named("all")]
    ['knapsack', 'transport']
    """
    known = [*EXPERIMENTS, "all", "budget"]
    if name not in known:
        raise ParameterError(f"there is no experiment named {name!r}; {all_names(name, known)}")
    return tuple(EXPERIMENTS.values()) if name == "all" else (EXPERIMENTS[name],)


def available_methods() -> tuple[Method, ...]:
    """The methods whose policies this surepick has."""
    return tuple(method for method in METHODS if method.spec["policy"] in POLICIES)


def methods_named(names: Sequence[str] | None) -> tuple[Method, ...]:
    """The methods with these names, whatever their case, the reference first; None: the default ones.

    >>> [method.name for method in methods_named(["combgape-naive"])]
    ['CombGapE', 'CombGapE-naive']
    """
    methods = {method.name.lower(): method for method in available_methods()}
    if names is None:
        return tuple(method for method in methods.values() if method.in_default)
    for name in plugins.offered(plugins.POLICY_GROUP):  # policies of other packages
        methods.setdefault(name.lower(), Method(name, name, {"policy": name}, in_default=False))
    for name in names:
        if name.lower() not in methods:
            known = [method.name for method in methods.values()]
            raise ParameterError(
                f"there is no policy named {name!r} in this experiment; {all_names(name, known)}"
            )
    chosen = [methods[name.lower()] for name in names]
    return tuple(dict.fromkeys([REFERENCE, *chosen]))  # every ratio needs the reference


def methods_of(experiment: Experiment, settings: Settings) -> tuple[Method, ...]:
    """The methods that were asked for and that this experiment has instances for.

    >>> transport, knapsack = methods_of(TRANSPORT, Settings()), methods_of(KNAPSACK, Settings())
    >>> sorted({method.name for method in transport} ^ {method.name for method in knapsack})
    ['GenTSExplore', 'PolyBet']
    """
    left_out = experiment.left_out if settings.policies is None else frozenset()
    return tuple(
        method
        for method in methods_named(settings.policies)
        if (experiment.has_all_plans or not method.all_plans) and method.name not in left_out
    )


def with_distances(experiment: Experiment, distances: str) -> Experiment:
    """The transport experiment with other travel hours; other experiments are left as they are.

    `distances` is "great-circle", "freeway", or a CSV file: the header names the demanders, the first column
    the suppliers.

    >>> with_distances(TRANSPORT, "freeway").columns[0].problem["distances"]
    'freeway'
    """
    if experiment.name != "transport" or distances == "great-circle":
        return experiment
    freeway = distances == "freeway"
    hours: str | dict[str, Any] = distances if freeway else hours_spec(_hours_file(distances))
    note = FREEWAY_NOTE if freeway else f"Travel hours: those of {Path(distances).name}."
    columns = tuple(
        replace(column, problem={**column.problem, "distances": hours}) for column in experiment.columns
    )
    return replace(experiment, columns=columns, footnotes=(note,))


def _hours_file(distances: str) -> str:
    if not Path(distances).exists():
        raise ParameterError(
            f"there are no distances named {distances!r}, and no such file; {all_names(distances, KNOWN)}, "
            "or a CSV file of hours"
        )
    return distances


def seeds_of(experiment: Experiment, settings: Settings) -> range:
    """The seeds of the instances."""
    runs = settings.runs or (experiment.quick_runs if settings.quick else experiment.runs)
    return range(settings.seed, settings.seed + runs)


def cases_of(experiment: Experiment, settings: Settings) -> dict[tuple[str, str], list[Case]]:
    """The cases of each cell, by column label and method name; every method meets the same instances.

    >>> cells = cases_of(KNAPSACK, Settings(runs=2, policies=("CombGapE",)))
    >>> [(cell, len(cases)) for cell, cases in cells.items()][0]
    (('d = 5', 'CombGapE'), 2)
    """
    return {
        (column.label, method.name): [
            _case(column, method, seed, settings, _budget(experiment, method, settings))
            for seed in seeds_of(experiment, settings)
        ]
        for column in experiment.columns
        for method in methods_of(experiment, settings)
    }


def _budget(experiment: Experiment, method: Method, settings: Settings) -> int:
    if settings.budget is not None:
        return settings.budget
    return (experiment.quick_budgets if settings.quick else experiment.budgets)[method.pace]


def _case(column: Column, method: Method, seed: int, settings: Settings, budget: int) -> Case:
    version = policy_from_spec({k: v for k, v in method.spec.items() if v != LARGEST_GAP}).version
    policy: dict[str, Any] = {**method.spec, "version": version, "delta": settings.delta}
    problem = {**column.problem, "seed": seed, **({"plans": ALL_PLANS} if method.all_plans else {})}
    return Case(problem, policy, NOISE_SEEDS + seed, budget)


def running_order(cells: Mapping[tuple[str, str], Sequence[Case]]) -> list[Case]:
    """All cases, those of one instance next to each other, so that a worker builds it once."""
    columns: dict[str, list[Sequence[Case]]] = {}
    for (column, _), cases in cells.items():
        columns.setdefault(column, []).append(cases)
    return [
        case
        for rows in columns.values()
        for instance in zip_longest(*rows)  # a method may meet fewer instances than others
        for case in instance
        if case is not None
    ]
