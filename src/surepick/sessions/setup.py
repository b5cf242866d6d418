"""What a session begins with: checked once, kept in the first event of its log, and read from there."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from surepick._version import __version__
from surepick.core.about import About
from surepick.core.oracle_problem import AnyProblem, Best, OracleProblem
from surepick.core.past import Past, fitting
from surepick.core.policy import Policy, delta_of, takes_past
from surepick.core.problem import NewArm, Problem
from surepick.core.wording import shortened
from surepick.errors import MissingFunctionError, ParameterError, SessionError, SurepickError
from surepick.sessions import codec
from surepick.store.log import LEASE

MOST_BUDGET = 10**15  # measurements; more would not be whole numbers to those who reckon with them

Body = dict[str, Any]


@dataclass(frozen=True)
class Setup:
    """What a session was created with, or extended to."""

    problem: AnyProblem
    policy: Policy
    seed: int
    budget: int | None
    past: Past | None = None  # what was thought of the arms before

    def to_json(self) -> Body:
        """Return this as JSON values."""
        return {
            "problem": codec.problem_to_json(self.problem),
            "policy": codec.policy_to_json(self.policy),
            "seed": self.seed,
            "budget": self.budget,
            "past": None if self.past is None else self.past.to_json(),
        }

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the question: problem, policy and what else decides, as JSON text.

        It can be made public before anything is measured. Names of sessions, leases and drawings are no part.
        """
        return codec.fingerprint(self.to_json())

    @classmethod
    def from_json(cls, body: Mapping[str, Any], oracle: Best | OracleProblem | None = None) -> Setup:
        """The setup in the first event of a log; a function that it does not hold comes as `oracle`."""
        policy, past = _policy_of(body["policy"]), body["past"]
        return cls(
            codec.problem_from_json(body["problem"], oracle).with_about(
                **vars(About.from_json(body.get("about")))
            ),
            policy,
            body["seed"],
            body["budget"],
            None if past is None else Past.from_json(past),
        )

    def extended(self, delta: float, budget: int | None) -> Setup:
        """Return the same with another delta and budget."""
        policy = self.policy
        if delta != delta_of(policy):
            policy = cast(Policy, replace(cast(Any, policy), delta=delta))
        return replace(self, policy=policy, budget=budget)

    def with_plan(self, name: str, amounts: list[Any], new_arms: list[Any]) -> Setup:
        """Return the same with this plan as the last one, and with the arms that are new with it."""
        problem = self.problem
        if not isinstance(problem, Problem):
            raise SessionError("plans are added to a list of plans, and this problem has none", field="plan")
        problem = problem.with_arms(NewArm(**arm) for arm in new_arms)
        row = np.zeros(problem.n_arms)
        for arm, amount in amounts:
            row[arm] = amount
        past = None if self.past is None else self.past.lengthened(problem.n_arms)
        return replace(self, problem=problem.with_plan(name, row), past=past)


@dataclass(frozen=True)
class NewSession:
    """The settings of a session that is to begin, all of them checked.

    | setting | what it is | unless given |
    |---|---|---|
    | problem | a `Problem` or an `OracleProblem` | |
    | policy | which measurements to ask for, and when to stop | |
    | name | the session's name in its store | |
    | seed | fixes the policy's own randomness; a whole number, 0 or more | 0 |
    | budget | measurements after which it gives up | no limit |
    | lease | seconds until a request without a value is handed out again | 3600 |
    | past | prior data or guesses; they guide, and never count as evidence | none |
    """

    problem: AnyProblem
    policy: Policy
    name: str
    seed: int = 0
    budget: int | None = None
    lease: float = LEASE
    past: Past | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.problem, Problem | OracleProblem):
            raise ParameterError(
                f"a session needs a Problem or an OracleProblem, got {type(self.problem).__name__}"
            )
        if not isinstance(self.name, str) or not self.name.strip():
            raise ParameterError(f"a session needs a name, got {self.name!r}", field="name")
        checked: Body = {"seed": whole("seed", "a whole number", self.seed, least=0)}
        if not self.problem.is_listed:
            checked["problem"] = self.problem.without_asked_plays()
        if self.budget is not None:
            what = "a number of measurements"
            checked["budget"] = whole("budget", what, self.budget, least=1, most=MOST_BUDGET)
        checked["lease"] = seconds("lease", self.lease)
        past = self.past
        if past is None and takes_past(self.policy):
            past = Past.of_problem(self.problem)
        checked["past"] = fitting(self.problem, past)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def setup(self) -> Setup:
        """The settings that affect decisions: all but the name and the lease."""
        return Setup(self.problem, self.policy, self.seed, self.budget, self.past)

    def to_json(self) -> Body:
        """The body of the first event of the log."""
        body = {**self.setup.to_json(), "name": self.name, "lease": self.lease, "surepick": __version__}
        if about := self.problem.about.to_json():
            body["about"] = about
        return body


def refuse_other(name: str, begun: Setup, problem: AnyProblem | None, settings: Body) -> None:
    """Refuse to continue a session that was begun with another problem, policy or setting than given."""
    hint = "choose another name, or load the session as it is with Session.load"
    if problem is not None and codec.problem_to_json(begun.problem) != codec.problem_to_json(problem):
        raise SessionError(
            f"session {name!r} is about another problem than the one given; {hint}", field="problem"
        )
    policy = settings.get("policy")
    if policy is not None and codec.policy_to_json(policy) != codec.policy_to_json(begun.policy):
        raise SessionError(
            f"session {name!r} runs with {begun.policy!r}, got {policy!r}; give the same policy, or {hint}",
            field="policy",
        )
    for key, of in (("seed", begun.seed), ("budget", begun.budget), ("prior", begun.past)):
        if key in settings and settings[key] != of:
            raise SessionError(
                f"session {name!r} was begun with {key} = {of!r}, got {settings[key]!r}; "
                f"leave {key} out, or {hint}",
                field=key,
            )


def whole(name: str, what: str, value: object, *, least: int, most: int | None = None) -> int:
    """The value as an int; numbers of NumPy are fine, fractions and what is too small or large are not."""
    try:
        number = operator.index(cast(Any, value))
    except TypeError:
        number = least - 1
    if number < least:
        raise ParameterError(f"{name} is {what}, {least} or more, got {value!r}", field=name)
    if most is not None and number > most:
        raise ParameterError(
            f"{name} is {what}, at most {most:,}, got {shortened(str(number), 40)}", field=name
        )
    return number


def seconds(name: str, value: Any) -> float:
    """The value as a float, if it is a time that goes by.

    >>> seconds("lease", 5)
    5.0
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (number > 0 and math.isfinite(number)):
        raise ParameterError(
            f"{name} is a number of seconds, more than 0, got {shortened(repr(value), 60)}", field=name
        )
    return number


def _policy_of(kept: Mapping[str, Any]) -> Policy:
    """The policy that a session was begun with; refused if this surepick has it in another version."""
    try:
        policy = codec.policy_from_json(kept)
        if policy.version == kept["version"]:
            return policy
    except SurepickError:
        if codec.version_now(kept) == kept["version"]:
            raise
    raise SessionError(
        f"this session was begun with {kept['name']} version {kept['version']}, and this surepick has "
        f"version {codec.version_now(kept)}, which may decide otherwise; nothing was changed: go on with the "
        "surepick that began it, or export the measurements and import them into a new session"
    )


# With the suffixes of Python packages: builds before, after and beside a release can have written it.
VERSION = re.compile(
    r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?:(?:a|b|rc)[0-9]{1,9})?(?:\.post[0-9]{1,9})?"
    r"(?:\.dev[0-9]{1,9})?(?:\+[a-z0-9]{1,40}(?:\.[a-z0-9]{1,40}){0,3})?"
)


class ForgedError(SessionError):
    """The first event of a log is not one that a session writes."""


def checked_setup(body: Body, oracle: Best | OracleProblem | None) -> Setup:
    """Return the settings in the first event of a log; refuse settings that no new session would write.

    A missing function and a policy of another version are no forgery: their own errors are raised.
    """
    try:
        setup = Setup.from_json(body, oracle)
        new = NewSession(
            setup.problem,
            setup.policy,
            body["name"],
            setup.seed,
            setup.budget,
            body["lease"],
            setup.past,
        ).to_json()
    except MissingFunctionError:
        raise
    except SurepickError as error:
        if _is_of_another_version(body):
            raise
        raise ForgedError(f"its settings are none that a session begins with: {error}") from None
    except Exception as error:  # any JSON may stand there
        raise ForgedError(f"its settings cannot be read: {type(error).__name__}: {error}") from None
    if version_of(body.get("surepick")) is None:
        raise ForgedError("it does not say which surepick began the session", field="surepick")
    written = {**new, "surepick": body["surepick"]}
    differing = [name for name in sorted({*written, *body}) if not _same(written, body, name)]
    if differing:
        raise ForgedError(f"no session begins with its {', '.join(differing)}", field=differing[0])
    return setup


def version_of(text: object) -> tuple[int, ...] | None:
    """The numbers of a version of surepick; None if it is none.

    >>> version_of("0.1.0"), version_of("1.2.3.dev4"), version_of("0.1.0x")
    ((0, 1, 0), (1, 2, 3), None)
    """
    found = VERSION.fullmatch(text) if isinstance(text, str) else None
    return None if found is None else tuple(map(int, found.groups()))


def _is_of_another_version(body: Body) -> bool:
    try:
        return bool(body["policy"]["version"] != codec.version_now(body["policy"]))
    except Exception:  # any JSON may stand there
        return False


def _same(a: Mapping[str, Any], b: Mapping[str, Any], name: str) -> bool:
    return name in a and name in b and codec.dumps(a[name]) == codec.dumps(b[name])
