"""A study: families of problems x methods x budgets x seeds, as cases; and what their rows say.

Every method of a family meets the same instances and the same noise.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeAlias

from surepick.core.policy import check_delta, start
from surepick.errors import ParameterError, SurepickError, all_names
from surepick.experiments.cases import Case, Row, prepared
from surepick.experiments.rows import read_rows
from surepick.experiments.running import CasesFailedError, Report, Tally, run_cases
from surepick.experiments.specs import ALL_PLANS, Spec, instance_from_spec, policy_kind, policy_spec
from surepick.experiments.summary import Summary, summarize
from surepick.policies import parse_policy

NOISE_SEEDS = 10**6  # the noise of instance i has seed NOISE_SEEDS + i, apart from the seeds of instances
REPEAT_SEEDS = 10**7  # between the noise seeds of two runs on one instance
NEVER = 10**15  # a budget that ends no run
Pace: TypeAlias = Literal["phases", "steps", "draws"]
# A method of "phases" is simulated at the same price however long a phase is; one of "steps" costs about a
# microsecond a measurement; one of "draws" samples before each measurement.
Rule: TypeAlias = Callable[["Method", Spec, float], int]  # method, problem, delta -> budget


@dataclass(frozen=True)
class Family:
    """Problems of one kind: another instance for each run, unless the problem is given in full."""

    name: str  # on the command line
    label: str
    problem: Spec = field(hash=False)  # all but the seed
    runs: int = 30
    quick: int = 4  # runs with --quick
    plans: str = "any"  # what its plans are; a method must take them (`Method.takes`)
    question: str = ""  # what is asked; families of one question stand together
    drawn: bool = True  # False: the same problem in every run
    repeats: int = 1  # runs on each instance, with different noise
    times: tuple[float, float] = (
        0.0,
        math.inf,
    )  # T* per relevant arm at least, and T* below: others are skipped
    first_seed: int = 0
    epsilon: float = 0.0
    printed: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)  # mean, deviation
    weight: float = 1.0  # how long a run takes beside `Method.seconds`


@dataclass(frozen=True)
class Method:
    """A policy as it enters a study."""

    name: str  # on the command line
    label: str
    policy: Spec = field(hash=False)
    pace: Pace = "steps"
    takes: tuple[str, ...] = ("any",)
    questions: tuple[str, ...] = ("",)
    seconds: float = 0.1  # that a run takes, roughly: for the order and the first estimate
    slow_on: tuple[str, ...] = ()  # families that it enters only if it is named
    note: str = ""
    all_plans: bool = False  # decides between all plans of the instance, not between the listed ones
    named_only: bool = False  # enters only if it is named
    guest: bool = False  # not on the study's list: it enters wherever it can start


@dataclass(frozen=True)
class Study:
    """A table to make: what to run, and which columns to print."""

    name: str
    title: str
    families: tuple[Family, ...]
    methods: tuple[Method, ...]
    columns: tuple[str, ...]  # see `tables.COLUMNS`
    budgets: Mapping[str, Rule] = field(hash=False)  # by label
    quick_budgets: Mapping[str, Rule] | None = field(default=None, hash=False)
    reference: str | None = None  # ratios are to this method, which always runs
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settings:
    """What to run of a study; None is all of it, or the usual number."""

    runs: int | None = None
    policies: tuple[str, ...] | None = None
    families: tuple[str, ...] | None = None  # names of families or of questions
    budget: int | None = None
    seed: int = 0
    delta: float = 0.05
    quick: bool = False

    def __post_init__(self) -> None:
        check_delta(self.delta)
        for name, least in (("runs", 1), ("budget", 1), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ParameterError(f"{name} is {least} or more, got {value}", field=name)


Place: TypeAlias = tuple[str, str, str]  # names of family, method and budget
# What a method takes includes more special kinds of plans: one for any list of plans takes single arms too.
_INCLUDES = {
    "sets": ("any",),
    "matroid": ("any", "sets"),
    "single": ("any", "sets", "matroid"),
    "whole plans": ("vectors",),
}


def chosen_families(study: Study, settings: Settings) -> tuple[Family, ...]:
    """Return the families that the settings name, by family or by question, whatever the case."""
    if settings.families is None:
        return study.families
    known = dict.fromkeys(name for f in study.families for name in (f.name, f.question) if name)
    asked = {name.lower() for name in settings.families}
    if unknown := asked - {name.lower() for name in known}:
        bad = sorted(unknown)[0]
        raise ParameterError(
            f"no family named {bad!r} in {study.name}; {all_names(bad, known)}", field="families"
        )
    return tuple(f for f in study.families if {f.name.lower(), f.question.lower()} & asked)


def chosen_methods(study: Study, settings: Settings) -> tuple[Method, ...]:
    """Return the methods that the settings name, the study's own and guests; the reference always runs.

    A guest is any policy with settings, of surepick or of another package: "CombGapE:radius=heuristic".
    """
    if settings.policies is None:
        return study.methods
    listed = {method.name.lower(): method for method in study.methods}
    always = [] if study.reference is None else [listed[study.reference.lower()]]
    named = [listed.get(name.lower()) or _guest(name) for name in settings.policies]
    return tuple(dict.fromkeys([*always, *named]))


def _guest(text: str) -> Method:
    try:
        policy = parse_policy(text)
    except ParameterError as error:
        raise ParameterError(str(error), field="policy") from None
    spec = {name: x for name, x in policy_spec(policy).items() if name not in ("delta", "epsilon", "zone")}
    return Method(text, text, spec, guest=True)


def enters(method: Method, family: Family, settings: Settings) -> bool:
    """Return whether the method can take this family, and should without being named."""
    if method.guest:
        return refusal(method, family) is None
    fits = set(method.takes) & {family.plans, *_INCLUDES.get(family.plans, ())}
    by_default = not method.named_only and family.name not in method.slow_on
    return (
        bool(fits) and family.question in method.questions and (by_default or settings.policies is not None)
    )


@functools.lru_cache(maxsize=256)
def refusal(method: Method, family: Family) -> str | None:
    """Return why a guest cannot enter this family, found by starting it there; None if it can."""
    settings = {setting.name for setting in dataclasses.fields(policy_kind(method.policy))}  # type: ignore[arg-type]
    if family.epsilon and not {"epsilon", "zone"} & settings:
        return "it has neither epsilon nor zone"
    problem = {**family.problem, "seed": family.first_seed} if family.drawn else family.problem
    try:
        start(parse_policy(method.name), instance_from_spec(problem).problem)
    except SurepickError as error:
        return str(error)
    return None


def study_cases(study: Study, settings: Settings) -> dict[Place, list[Case]]:
    """Return the cases of each cell of the study.

    >>> from surepick.experiments.studies import STUDIES
    >>> cells = study_cases(STUDIES["knapsack"], Settings(runs=2, policies=("Uniform",)))
    >>> [(place, len(cases)) for place, cases in cells.items()][0]
    (('d5', 'CombGapE', ''), 2)
    """
    budgets = (study.quick_budgets if settings.quick else None) or study.budgets
    if settings.budget is not None:
        if len(budgets) > 1:
            raise ParameterError(f"{study.name} has budgets of its own; leave it out", field="budget")
        budgets = {label: lambda *_: settings.budget or NEVER for label in budgets}
    cells: dict[Place, list[Case]] = {}
    for family in chosen_families(study, settings):
        methods = [m for m in chosen_methods(study, settings) if enters(m, family, settings)]
        trials = list(_trials(family, settings)) if methods else []
        for problem, seed in trials:  # the outer loop: a rule may need the limit, which is kept for a while
            for method in methods:
                asked = {**problem, "plans": ALL_PLANS} if method.all_plans else problem
                policy = _policy(method, family, settings.delta)
                for label, rule in budgets.items():
                    case = Case(asked, policy, seed, rule(method, problem, settings.delta))
                    cells.setdefault((family.name, method.name, label), []).append(case)
    if not cells:
        raise ParameterError("no policy that was named takes a family that was named", field="policy")
    return cells


def _trials(family: Family, settings: Settings) -> Iterator[tuple[Spec, int]]:
    """Yield problems and noise seeds: the first instances from the family's seed on that are as it says."""
    n, least, most = settings.runs or (family.quick if settings.quick else family.runs), *family.times
    found, first = 0, family.first_seed + settings.seed
    for seed in count(first):
        if found == n:
            return
        problem = {**family.problem, "seed": seed} if family.drawn else family.problem
        if family.times != (0.0, math.inf):
            limit = prepared(problem).limit
            if not least * limit.once.n <= limit.time.value < most:
                continue
        found += 1
        for repeat in range(min(2, family.repeats) if settings.quick else family.repeats):
            yield problem, NOISE_SEEDS + seed + REPEAT_SEEDS * repeat


def _policy(method: Method, family: Family, delta: float) -> dict[str, Any]:
    """Return the method's spec with the study's delta and the family's epsilon, where it has such."""
    known = {setting.name for setting in dataclasses.fields(policy_kind(method.policy))}  # type: ignore[arg-type]
    spec = dict(method.policy)
    if "delta" in known:
        spec.setdefault("delta", delta)
    if family.epsilon:
        spec["epsilon" if "epsilon" in known else "zone"] = family.epsilon
    return spec


@dataclass(frozen=True)
class Result:
    """What a study has shown: rows and summaries by place, and what is missing."""

    study: Study
    settings: Settings
    families: tuple[Family, ...]
    methods: tuple[Method, ...]
    rows: Mapping[Place, tuple[Row, ...]]
    cells: Mapping[Place, Summary]  # only places with rows
    n_missing: int = 0
    failures: tuple[str, ...] = ()


def run_study(
    study: Study,
    settings: Settings,
    path: str | Path,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Report | None = None,
    announce: Callable[[int, int, float], object] | None = None,
) -> Result:
    """Run what is missing into the row file and summarize all of it; see `run_cases` for the options.

    `announce` is called once before anything runs with the runs to make, those that are done, and the
    seconds that one process will take. An interrupt (Ctrl-C) returns the result of what is finished.
    """
    cells = study_cases(study, settings)
    expected = _expected_seconds(study, settings, cells)
    order = _running_order(cells, expected)
    done = {row.case: row for row in read_rows(path).rows}
    if announce is not None:
        tally = Tally(dict(done), order, None, expected.__getitem__)
        announce(len(order), tally.resumed, tally.seconds_left() or 0.0)
    failures: tuple[str, ...] = ()
    try:
        run_cases(order, path, jobs=jobs, cluster=cluster, progress=progress, expected=expected.__getitem__)
    except CasesFailedError as error:
        failures = tuple(f"{f.case.key}: {f.reason}" for f in error.failures)
    except KeyboardInterrupt:
        pass  # the result counts what is missing
    rows = {row.case: row for row in read_rows(path).rows}
    return result_of(study, settings, rows, cells=cells, failures=failures)


def _expected_seconds(
    study: Study, settings: Settings, cells: Mapping[Place, Sequence[Case]]
) -> dict[Case, float]:
    methods = {method.name: method for method in chosen_methods(study, settings)}
    families = {family.name: family for family in study.families}
    return {
        case: methods[method].seconds * families[family].weight
        for (family, method, _), cases in cells.items()
        for case in cases
    }


def _running_order(cells: Mapping[Place, Sequence[Case]], expected: Mapping[Case, float]) -> list[Case]:
    """Return all cases: slow methods last, and among equally slow ones a run of every cell in turn.

    A study that is cut short then has whole lines of quick methods, and something of every family. Cases of
    one instance are neighbours: a worker builds it once.
    """
    turns = [
        (sum(expected[case] > tier for tier in (0.5, 5.0)), turn, case)
        for cases in cells.values()
        for turn, case in enumerate(cases)
    ]
    return list(dict.fromkeys(case for _, _, case in sorted(turns, key=lambda found: found[:2])))


def result_of(
    study: Study,
    settings: Settings,
    rows: Mapping[Case, Row],
    *,
    cells: Mapping[Place, Sequence[Case]] | None = None,
    failures: tuple[str, ...] = (),
) -> Result:
    """Return what these rows say of the study; cases without a row are counted as missing."""
    cells = study_cases(study, settings) if cells is None else cells
    found = {place: tuple(rows[case] for case in cases if case in rows) for place, cases in cells.items()}
    summaries = {}
    for (family, method, budget), some in found.items():
        if some:
            reference = found.get((family, study.reference or "", budget), ())
            summaries[family, method, budget] = summarize(some, reference)
    n_missing = sum(case not in rows for cases in cells.values() for case in cases)
    return Result(
        study,
        settings,
        chosen_families(study, settings),
        chosen_methods(study, settings),
        found,
        summaries,
        n_missing,
        failures,
    )
