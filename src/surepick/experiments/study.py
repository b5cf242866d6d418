"""A study: families of problems x methods x budgets x seeds, as cases; and what their rows say.

Every method of a family meets the same instances and the same noise.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Literal, TypeAlias

from surepick.core.policy import start
from surepick.errors import ParameterError, SurepickError, suggestion
from surepick.experiments.cases import Case, Row, policy_of
from surepick.experiments.instances import Spec, instance_from_spec
from surepick.experiments.running import CasesFailedError, RunProgress, read_rows, run_cases
from surepick.experiments.summary import Summary, summarize
from surepick.policies import parse_policy, parse_settings, policy_named

NOISE_SEEDS = 10**6  # the noise of instance i has seed NOISE_SEEDS + i, apart from the seeds of instances
REPEAT_SEEDS = 10**7  # between the noise seeds of two runs on one instance
NEVER = 10**15  # a budget that ends no run
SLOW = (0.5, 5.0)  # seconds a run: methods above run later; above the last, not with --quick unless named
Pace: TypeAlias = Literal["phases", "steps", "draws"]
# A method of "phases" is simulated at the same price however long a phase is; one of "steps" costs about a
# microsecond a measurement; one of "draws" samples before each measurement.
Rule: TypeAlias = Callable[["Method", Spec, float], int]  # method, problem, delta -> budget
Place: TypeAlias = tuple[str, str, str]  # names of family, method and budget


@dataclass(frozen=True)
class Family:
    """Problems of one kind: another instance for each run, unless the problem is given in full."""

    name: str  # on the command line
    label: str
    problem: Spec = field(hash=False)  # all but the seed
    runs: int = 30
    quick: int = 4  # runs with --quick
    question: str = ""  # what is asked; families of one question stand together
    drawn: bool = True  # False: the same problem in every run
    repeats: int = 1  # runs on each instance, with different noise
    times: tuple[float, float] = (0.0, math.inf)  # T* per relevant arm at least, T* below; else skipped
    first_seed: int = 0
    epsilon: float = 0.0
    printed: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)  # mean, deviation
    weight: float = 1.0  # how long a run takes beside `Method.seconds`
    named_only: bool = False  # runs only if it is named


@dataclass(frozen=True)
class Method:
    """A policy as it enters a study: every family of its questions on which it can start."""

    name: str  # on the command line and in tables
    policy: str = ""  # with its settings; the name, unless given
    pace: Pace = "steps"
    questions: tuple[str, ...] | None = ("",)  # None: all
    seconds: float = 0.1  # that a run takes, roughly: for the order and the first estimate
    slow_on: tuple[str, ...] = ()  # families that it enters only if it is named
    named_only: bool = False  # enters only if it is named
    problem: Spec = field(default_factory=dict, hash=False)  # entries in place of the family's

    @property
    def text(self) -> str:
        """The policy with its settings, as cases have it."""
        return self.policy or self.name

    @property
    def has_zone(self) -> bool:
        """Whether it has an indifference zone in place of an epsilon."""
        return hasattr(policy_named(parse_settings(self.text)[0]), "zone")


@dataclass(frozen=True)
class Study:
    """A table to make: what to run, and which columns to print."""

    name: str
    title: str
    families: tuple[Family, ...]
    methods: tuple[Method, ...]
    columns: tuple[str, ...]  # see `tables.COLUMNS`
    budgets: Mapping[str, Rule] = field(hash=False)  # by label
    reference: str | None = None  # ratios are to this method, which always runs
    notes: str = ""  # paragraphs
    delta: float = 0.05


@dataclass(frozen=True)
class Settings:
    """What to run of a study; None is all of it, or the usual number."""

    runs: int | None = None
    policies: tuple[str, ...] | None = None
    families: tuple[str, ...] | None = None  # names of families or of questions
    seed: int = 0
    quick: bool = False

    def __post_init__(self) -> None:
        for name, least in (("runs", 1), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ParameterError(f"{name} is {least} or more, got {value}", field=name)


def chosen(study: Study, settings: Settings) -> Study:
    """Return the study with those families and methods alone that the settings name."""
    return replace(study, families=_families(study, settings), methods=_methods(study, settings))


def _families(study: Study, settings: Settings) -> tuple[Family, ...]:
    """Return the families that the settings name, by family or by question, whatever the case."""
    if settings.families is None:
        return tuple(family for family in study.families if not family.named_only)
    known = dict.fromkeys(name for f in study.families for name in (f.name, f.question) if name)
    asked = {name.lower() for name in settings.families}
    for name in sorted(asked - {name.lower() for name in known}):
        hint = suggestion(name, known)
        raise ParameterError(f"no family {name!r} in {study.name}; {hint}", field="families")
    return tuple(f for f in study.families if {f.name.lower(), f.question.lower()} & asked)


def _methods(study: Study, settings: Settings) -> tuple[Method, ...]:
    """Return the methods that the settings name, the study's own and guests; the reference always runs.

    A guest is any policy with settings, of surepick or of another package: "CombGapE:radius=heuristic".
    """
    if settings.policies is None:
        fast = [m for m in study.methods if not (settings.quick and m.seconds > SLOW[-1])]
        return tuple(method for method in fast if not method.named_only)
    listed = {method.name.lower(): method for method in study.methods}
    always = [] if study.reference is None else [listed[study.reference.lower()]]
    named = [listed.get(name.lower()) or Method(name, questions=None) for name in settings.policies]
    for name in settings.policies:
        if name.lower() not in listed:
            parse_policy(name)  # refuses an unknown name or setting
    return tuple(dict.fromkeys([*always, *named]))


def enters(method: Method, family: Family, settings: Settings) -> bool:
    """Return whether the method takes this family, and should without being named."""
    if settings.policies is None and family.name in method.slow_on:
        return False
    asked = method.questions is None or family.question in method.questions
    return asked and refusal(method, family) is None


@functools.lru_cache(maxsize=1024)
def refusal(method: Method, family: Family) -> str | None:
    """Return why a method cannot enter this family, found by starting it there; None if it can."""
    if method.has_zone and not family.epsilon:
        return "it needs an indifference zone"
    problem = {**family.problem, "seed": family.first_seed} if family.drawn else family.problem
    text, epsilon = _policy(method, family)
    try:
        found = instance_from_spec({**problem, **method.problem})
        start(policy_of(text, found, delta=0.05, epsilon=epsilon), found.problem)
    except SurepickError as error:
        return str(error)
    return None


def _policy(method: Method, family: Family) -> tuple[str, float]:
    """Return the policy of a method in this family, and its epsilon: a zone is stated as a setting."""
    if method.has_zone:
        return f"{method.text}:zone={family.epsilon!r}", 0.0
    return method.text, family.epsilon


def study_cases(study: Study, settings: Settings) -> dict[Place, list[Case]]:
    """Return the cases of each cell of the study; those of one family stand in the same order in all cells.

    >>> from surepick.experiments.studies import STUDIES
    >>> cells = study_cases(STUDIES["knapsack"], Settings(runs=2, policies=("Uniform",)))
    >>> [(place, len(cases)) for place, cases in cells.items()][0]
    (('d5', 'CombGapE:radius=published', ''), 2)
    """
    cells: dict[Place, list[Case]] = {}
    study = chosen(study, settings)
    for family in study.families:
        methods = [method for method in study.methods if enters(method, family, settings)]
        # trials are the outer loop: a rule may need the limit, which is kept for the last few instances
        for problem, seed in _trials(family, settings) if methods else ():
            for method in methods:
                text, epsilon = _policy(method, family)
                for label, rule in study.budgets.items():
                    budget = rule(method, problem, study.delta)
                    case = Case({**problem, **method.problem}, text, seed, budget, study.delta, epsilon)
                    cells.setdefault((family.name, method.name, label), []).append(case)
    if not cells:
        raise ParameterError("no policy that was named takes a family that was named", field="policy")
    return cells


def _trials(family: Family, settings: Settings) -> Iterator[tuple[Spec, int]]:
    """Yield problems and noise seeds: the first instances from the family's seed on that are as it says."""
    n, least, most = settings.runs or (family.quick if settings.quick else family.runs), *family.times
    found = 0
    for seed in count(family.first_seed + settings.seed):
        if found == n:
            return
        problem = {**family.problem, "seed": seed} if family.drawn else family.problem
        if family.times != (0.0, math.inf):
            limit = instance_from_spec(problem).limit
            if not least * limit.once.n <= limit.time.value < most:
                continue
        found += 1
        for repeat in range(min(2, family.repeats) if settings.quick else family.repeats):
            yield problem, NOISE_SEEDS + seed + REPEAT_SEEDS * repeat


@dataclass(frozen=True)
class Result:
    """What a study has shown: summaries by place, and what is missing."""

    study: Study  # with the families and methods that were chosen
    settings: Settings
    cells: Mapping[Place, Summary]  # only places with rows
    versions: tuple[str, ...]
    n_done: int
    n_missing: int = 0
    failures: tuple[str, ...] = ()


def run_study(
    study: Study,
    settings: Settings,
    path: str | Path,
    *,
    jobs: int | str = 1,
    progress: Callable[[RunProgress], object] | None = None,
) -> Result:
    """Run what is missing into the row file and summarize all of it; see `run_cases` for the options.

    Slow methods run last, and among equally slow ones a run of every cell in turn: a study that is cut short
    has whole lines of quick methods, and something of every family. An interrupt (Ctrl-C) returns the result
    of what is finished.
    """
    study = chosen(study, settings)
    cells = study_cases(study, settings)
    expected = running_order(study, cells)
    failures: tuple[str, ...] = ()
    try:
        run_cases(expected, path, jobs=jobs, progress=progress, expected=expected)
    except CasesFailedError as error:
        failures = tuple(f"{case.key}: {reason}" for case, reason in error.failures)
    except KeyboardInterrupt:
        pass  # the result counts what is missing
    return result_of(study, settings, {row.case: row for row in read_rows(path)}, cells, failures)


def running_order(study: Study, cells: Mapping[Place, Sequence[Case]]) -> dict[Case, float]:
    """Return all cases with the seconds that each may take, by slowness, then by turn.

    Cases of one instance are neighbours, to build it once.
    """
    methods = {method.name: method.seconds for method in study.methods}
    weights = {family.name: family.weight for family in study.families}
    turns = [
        (methods[method] * weights[family], turn, case)
        for (family, method, _), cases in cells.items()
        for turn, case in enumerate(cases)
    ]
    turns.sort(key=lambda found: (sum(found[0] > tier for tier in SLOW), found[1]))
    return {case: seconds for seconds, _, case in turns}


def result_of(
    study: Study,
    settings: Settings,
    rows: Mapping[Case, Row],
    cells: Mapping[Place, Sequence[Case]],
    failures: tuple[str, ...] = (),
) -> Result:
    """Return what these rows say of the study; cases without a row are counted as missing."""
    found = {place: [rows.get(case) for case in cases] for place, cases in cells.items()}
    summaries = {}
    for (family, method, budget), some in found.items():
        if any(some):
            reference = found.get((family, study.reference or "", budget), [])
            summaries[family, method, budget] = summarize(some, reference)
    every = [row for some in found.values() for row in some if row is not None]
    versions = {f"{name} {version}" for row in every for name, version in row.versions.items()}
    return Result(
        study=chosen(study, settings),
        settings=settings,
        cells=summaries,
        versions=tuple(sorted(versions)),
        n_done=len(every),
        n_missing=sum(row is None for some in found.values() for row in some),
        failures=failures,
    )
