"""How a problem was read, how many measurements to expect, and what would save some; and how it is begun.

The command line prints it, the page of a new session shows it, programs get it as JSON values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.given.numbers import scale_and_bounds
from surepick.core.oracle_problem import AnyProblem
from surepick.core.prior_data import PriorData
from surepick.errors import ParameterError
from surepick.policies import BetGapE, policy_for
from surepick.problems.truth import Truth
from surepick.sessions.session import Session
from surepick.simulation.forecast import Choice, Forecast, Rehearsals
from surepick.store import Store
from surepick.store.log import HAND_LEASE
from surepick.views.look import roles_of
from surepick.views.numbers import span, value

USUAL = {"delta": 0.05, "epsilon": 0.0, "budget": None}
MOST_NAMED = 200  # plans
ASK_LIMITS = (
    "Is there a number that no value is below, and one that no value is above? State them as low and "
    "high, for each arm if you can: then nothing is assumed about the noise. Narrow limits save measurements."
)


@dataclass(frozen=True)
class Check:
    """A problem as it was read, with its forecast; None where a guess or a rough noise is missing."""

    loaded: Truth
    asked: Mapping[str, Any]  # delta, epsilon and budget
    forecast: Forecast | None = None
    choices: tuple[Choice, ...] = ()

    @property
    def arms_by_role(self) -> dict[str, list[str]]:
        """The arms that are measured, known, the same in all plans, or in no plan."""
        problem = self.loaded.problem
        found: dict[str, list[str]] = {"measured": [], "known": [], "same in all plans": [], "in no plan": []}
        for name, role in zip(problem.arm_names, roles_of(problem), strict=True):
            is_limited = name in self.loaded.limited and role != "known"
            found["measured" if is_limited else role].append(name)
        return found

    @property
    def all_plans(self) -> str:
        """The number of plans in the words of the problem, "6 routes"; "all plans" if it is unknown."""
        problem = self.loaded.problem
        return "all plans" if problem.n_plans is None else problem.about.plans(problem.n_plans)

    @property
    def noise_text(self) -> str:
        """A sentence on the noise: bounded, unknown or stated, and what the guarantee assumes."""
        problem = self.loaded.problem
        unit = problem.about.unit
        if problem.bounds is not None:
            low, high = value(float(problem.bounds.min())), value(float(problem.bounds.max()), unit)
            return f"Every value is between {low} and {high}: nothing is assumed about the noise."
        if not problem.knows_noise or problem.noise_scale is None:
            return "Unknown: learned while measuring, assumed to be normal."
        scale = span(problem.noise_scale.min(), problem.noise_scale.max(), unit)
        return f"{scale}, stated. If it is larger, nothing is guaranteed."

    @property
    def missing(self) -> str:
        """What the file lacks for a forecast, in words; empty if there is a forecast."""
        if self.forecast is not None:
            return ""
        if self.loaded.limited:
            return "a file without a measured limit (surepick simulate rehearses one)"
        if self.loaded.guess is None and self.loaded.means is None:
            return "a guess of each arm, with its spread"
        return "a spread, or the noise" if self.loaded.problem.probes is None else "the noise"

    def choice_words(self, one: Choice) -> tuple[str, str]:
        """Return what a choice is, and the option, or the key of the file, that makes it."""
        amount = value(one.value, self.loaded.problem.about.unit)
        if one.setting == "epsilon":
            what = f"within {amount} of the best" if one.value else "the very best plan"
            return what, f"--epsilon {one.value or 0:g}"
        if one.setting == "limits":
            return f"limits about {amount} apart", "low and high"
        if one.setting == "noise":
            return f"a noise of {amount} stated", "noise"
        return ("without your guess", "no guess") if one.value is None else ("with a guess", "guess")

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        problem = self.loaded.problem
        noise = problem.noise_scale
        roles = self.arms_by_role
        found = self.forecast
        fields = ("median", "low", "high", "confident", "shares")
        return {
            "title": self.loaded.title,
            "kind": self.loaded.kind,
            "goal": "smallest" if problem.sign < 0 else "largest",
            "unit": problem.about.unit,
            "n_plans": problem.n_plans,
            "all_plans": self.all_plans,
            "plans": list(problem.plan_names[:MOST_NAMED]) if problem.is_listed else [],
            "n_arms": problem.n_arms,
            "measured": roles["measured"],
            "not_measured": {role: arms for role, arms in roles.items() if role != "measured" and arms},
            "noise": None if noise is None or not problem.knows_noise else noise.tolist(),
            "limits": None if problem.bounds is None else problem.bounds.tolist(),
            "noise_text": self.noise_text,
            "asks_limits": asks_limits(problem),
            "merged": [list(pair) for pair in problem.duplicates] if problem.is_listed else [],
            "has_guess": self.loaded.guess is not None,
            "has_truth": self.loaded.means is not None,
            "forecast": None if found is None else {name: getattr(found, name) for name in fields},
            "missing": self.missing,
            "epsilon": self.asked["epsilon"],
            "choices": [{**asdict(one), "text": self.choice_words(one)[0]} for one in self.choices],
        }


def check(
    loaded: Truth,
    given: Mapping[str, Any],
    *,
    rehearsals: int = 20,
    seconds: float = math.inf,
    progress: Callable[[int, int], object] | None = None,
) -> Check:
    """Rehearse a decision with the delta, epsilon and budget that are given, else those of the file.

    No choice is tried after these seconds.
    """
    asked = {**USUAL, **asked_of(loaded, given)}
    centre = loaded.means if loaded.guess is None else loaded.guess
    noise = _rough_noise(loaded)
    if centre is None or noise is None or loaded.limited:
        return Check(loaded, asked)
    stage = Rehearsals.around(
        loaded.problem,
        centre,
        0.0 if loaded.spread is None else loaded.spread,
        noise=noise if loaded.problem.probes is None else None,  # probes have their own, per reading
        budget=asked["budget"],
        rehearsals=rehearsals,
        progress=progress,
    )
    policy = BetGapE(asked["delta"], asked["epsilon"])
    found, choices = stage.advise(loaded.problem, policy, loaded.prior, seconds=seconds)
    return Check(loaded, asked, found, tuple(choices))


def _rough_noise(loaded: Truth) -> FloatArray | None:
    """Return a standard deviation to rehearse with: stated, else half of the spread, else by the limits."""
    problem = loaded.problem
    if problem.probes is not None:
        return problem.noise_scale if problem.knows_noise else None
    if problem.bounds is None and problem.noise_scale is not None:
        return problem.noise_scale
    if loaded.noise_scale is not None:  # of the truth
        return loaded.noise_scale
    if loaded.spread is not None and (loaded.spread > 0).any():
        return np.asarray(np.maximum(loaded.spread / 2, loaded.spread.max() / 20))
    return problem.noise_scale  # with limits half their width, else None


def asks_limits(problem: AnyProblem) -> bool:
    """Return whether low and high would spare an assumption about the noise."""
    return problem.bounds is None and problem.probes is None and not problem.knows_noise


def with_limits(loaded: Truth, low: float | None, high: float | None) -> Truth:
    """Return the problem with these limits in place of its noise; unchanged if none is given."""
    if low is None and high is None:
        return loaded
    if loaded.problem.probes is not None:
        raise ParameterError("limits of readings of probes are rows of the file: low and high", field="low")
    problem = loaded.problem
    problem = problem.with_noise(*scale_and_bounds(None, low, high, problem.arm_names))
    spread = loaded.spread
    prior = loaded.prior
    if loaded.guess is not None and spread is not None and spread.any() and problem.arms_alone:
        prior = PriorData.from_guess(problem, loaded.guess, spread)
    return replace(loaded, problem=problem, prior=prior)


def begin(
    store: str | Store,
    name: str,
    loaded: Truth,
    given: Mapping[str, Any],
    *,
    is_new: bool = True,
    lease: float = HAND_LEASE,
) -> Session:
    """Begin a session about this problem; settings that are not given are those of the file.

    The guess is prior data where the policy can use it. Without `is_new` a session of this name is continued.
    """
    chosen = {"lease": lease, **asked_of(loaded, given)}
    chosen["policy"] = loaded.policy(given.get("policy"))
    if policy_for(chosen["policy"]).takes_prior:
        chosen["prior"] = loaded.prior
    make = Session.create if is_new else Session.open
    return make(store, name, loaded.problem, **chosen)


def asked_of(loaded: Truth, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return delta, epsilon, budget and so on: those that are given, else those of the file."""
    return {**loaded.settings, **{name: value for name, value in given.items() if value is not None}}
