"""The settings that a session begins with: checked once, kept in the first event of its log."""

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
from surepick.core.given.arms import NewArm
from surepick.core.oracle_problem import AnyProblem, Best, OracleProblem
from surepick.core.policy import Policy
from surepick.core.prior_data import PriorData, fitting
from surepick.core.problem import Problem
from surepick.core.wording import shortened
from surepick.errors import MissingFunctionError, ParameterError, SessionError
from surepick.sessions import codec
from surepick.sessions.codec import VersionError
from surepick.store.log import LEASE

MOST_BUDGET = 10**15  # measurements; more would not be whole numbers to those who reckon with them

Body = dict[str, Any]


@dataclass(frozen=True)
class Setup:
    """The settings of a session as it was created, or extended; `prior` is prior data."""

    problem: AnyProblem
    policy: Policy
    seed: int = 0
    budget: int | None = None
    prior: PriorData | None = None
    name: str = ""
    lease: float = LEASE

    def checked(self) -> Setup:
        """Return the settings of a new session as they are kept; refuse those that it cannot have."""
        problem, prior, budget = self.problem, self.prior, self.budget
        if not isinstance(problem, Problem | OracleProblem):
            raise ParameterError(
                f"a session needs a Problem or an OracleProblem, got {type(problem).__name__}"
            )
        if not isinstance(self.name, str) or not self.name.strip():
            raise ParameterError(f"a session needs a name, got {self.name!r}", field="name")
        if budget is not None:
            budget = whole("budget", "a number of measurements", budget, least=1, most=MOST_BUDGET)
        if prior is None and self.policy.takes_prior:
            prior = PriorData.of_problem(problem)
        return replace(
            self,
            problem=problem if isinstance(problem, Problem) else problem.without_asked_plays(),
            seed=whole("seed", "a whole number", self.seed, least=0),
            budget=budget,
            prior=fitting(problem, prior),
            lease=seconds("lease", self.lease),
        )

    def question(self) -> Body:
        """Return the settings on which decisions depend, as JSON: no name, lease or text for display."""
        return {
            "problem": codec.problem_to_json(self.problem),
            "policy": codec.policy_to_json(self.policy),
            "seed": self.seed,
            "budget": self.budget,
            "prior": None if self.prior is None else self.prior.to_json(),
        }

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the question as JSON text; it can be made public before anything is measured."""
        return codec.fingerprint(self.question())

    def to_json(self) -> Body:
        """Return the body of the first event of the log."""
        about = self.problem.about.to_json()
        if self.problem.guess is not None:  # shown where nothing is measured, because all plans have it alike
            about["guess"] = self.problem.guess.tolist()
        body = {**self.question(), "name": self.name, "lease": self.lease, "surepick": __version__}
        return {**body, "about": about} if about else body

    @classmethod
    def from_json(cls, body: Mapping[str, Any], oracle: Best | OracleProblem | None = None) -> Setup:
        """The setup in the first event of a log; a function that it does not hold comes as `oracle`."""
        policy, prior = codec.policy_from_json(body["policy"]), body["prior"]
        shown = dict(body.get("about") or {})
        guess = shown.pop("guess", None)
        problem = codec.problem_from_json(body["problem"], oracle)
        return cls(
            problem.with_about(**vars(About.from_json(shown))).with_settings(guess=guess),
            policy,
            body["seed"],
            body["budget"],
            None if prior is None else PriorData.from_json(prior),
            body["name"],
            body["lease"],
        )

    def extended(self, delta: float, budget: int | None) -> Setup:
        """Return the same with another delta and budget."""
        policy = self.policy
        if delta != policy.delta:
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
        prior = None if self.prior is None else self.prior.lengthened(problem.n_arms)
        return replace(self, problem=problem.with_plan(name, row), prior=prior)


def refuse_other(name: str, begun: Setup, given: Body) -> None:
    """Refuse to continue a session that was begun with another problem, policy or setting than given."""
    mine, theirs = replace(begun, **given).question(), begun.question()
    for key in given:
        if mine[key] != theirs[key]:
            shown = "" if key == "problem" else f": {getattr(begun, key)!r}, got {given[key]!r}"
            raise SessionError(
                f"session {name!r} was begun with another {key}{shown}; leave it out, choose another name, "
                "or load the session as it is with Session.load",
                field=key,
            )


def whole(name: str, what: str, value: object, *, least: int, most: int | None = None) -> int:
    """Return the value as an int; raise ParameterError unless it is whole and within these limits.

    Whole numbers of NumPy are fine.
    """
    try:
        number = operator.index(cast(Any, value))
    except TypeError:
        number = least - 1  # not whole: refused as if it were too small
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


def checked_setup(body: Body, oracle: Best | OracleProblem | None) -> Setup:
    """Return the settings in the first event of a log; refuse settings that no new session would write.

    A missing function and a policy of another version are no forgery: their own errors are raised.
    """
    try:
        setup = Setup.from_json(body, oracle)
        written = {**setup.checked().to_json(), "surepick": body["surepick"]}
    except (MissingFunctionError, VersionError):
        raise
    except Exception as error:  # any JSON may stand there
        raise SessionError(f"no session begins with its settings: {type(error).__name__}: {error}") from None
    if not is_version(body["surepick"]):
        raise SessionError("it does not say which surepick began the session", field="surepick")
    for name in sorted({*written, *body}):
        if not (name in written and name in body and codec.dumps(written[name]) == codec.dumps(body[name])):
            raise SessionError(f"no session begins with its {name}", field=name)
    return setup


def is_version(text: object) -> bool:
    """Return whether this may be the version of a surepick, which may be older or newer than this one.

    >>> is_version("0.1.0"), is_version("1.2.3.dev4+x"), is_version("x")
    (True, True, False)
    """
    return isinstance(text, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)+[a-z0-9.+]{0,60}", text) is not None
