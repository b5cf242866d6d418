"""The closest call at a plan of a polytope: the neighbour that is hardest to tell from it.

The plan is best if and only if no neighbouring vertex is better, and where one of them ties, or nearly does,
the exact question does not end, or takes very long. Nothing here is proved; it is for people to look at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.evidence import Evidence
from surepick.core.gaps import arm_means, mean_variance
from surepick.core.oracle_problem import AnyProblem
from surepick.core.polytope import Polytope
from surepick.core.run import Answer
from surepick.core.wording import counted

_EASIER = 10.0  # times as many measurements as half of the neighbours take make a call close
_ROUNDING = 1e-12  # of the sizes of what is added up: a loss below this is none
_LEAST = 1e-9  # amounts are near 1: steps below this lead nowhere
_ERRORS = 2.0  # standard errors within which an estimate may be nothing
_DIGITS = 4  # of amounts


@dataclass(frozen=True)
class CloseCall:
    """What another plan does instead, what it loses, and the epsilon that would end the question."""

    more: str  # what it has more of than the plan
    less: str
    loss: float  # against the plan, by the means at hand
    error: float  # standard error of the loss; 0 where the means are given
    epsilon: float | None  # None where no epsilon stands out

    @property
    def is_tie(self) -> bool:
        """Whether the two are the same by means that are given."""
        return self.loss == 0.0 and self.error == 0.0

    @property
    def change(self) -> str:
        """What the other plan does."""
        return f"{self.more} instead of {self.less}"

    def sentence(self, unit: str = "") -> str:
        """In words.

        >>> CloseCall("4 x rail", "4 x road", 0.0, 0.0, 2.1).sentence()
        '4 x rail instead of 4 x road changes nothing: a tie, which epsilon = 2.1 would end'
        >>> CloseCall("rail", "road", 0.3, 0.9, 2.1).sentence("h")
        'rail instead of road loses 0.3 ± 0.9 h by the estimates, maybe nothing; epsilon = 2.1 would end it'
        """
        unit, change = f" {unit}" if unit else "", self.change
        end = "" if self.epsilon is None else f"epsilon = {_plain(self.epsilon)} would end"
        if self.is_tie:
            return f"{change} changes nothing: a tie{end and f', which {end}'}"
        said = f"{change} loses {self.loss:.3g}{unit}"
        if self.error:
            said = f"{change} loses {self.loss:.3g} ± {self.error:.2g}{unit} by the estimates"
            said += ", maybe nothing" * (abs(self.loss) <= _ERRORS * self.error)
        return f"{said}{end and f'; {end} it'}"


def _plain(number: float) -> str:
    """Two digits, without powers of ten where that can be."""
    return f"{float(f'{number:.2g}'):,g}"


def call_data(call: CloseCall | None) -> dict[str, Any] | None:
    """As JSON values."""
    return None if call is None else {"change": call.change, "loss": call.loss, "epsilon": call.epsilon}


def close_call(
    problem: Polytope, plan: Answer, neighbours: FloatArray, means: FloatArray
) -> CloseCall | None:
    """The neighbour of the best plan that any method needs most measurements for, under means that are given.

    The epsilon is what the nearest of the easier half of its neighbours loses; None where the closest one
    takes less than ten times what that half does.
    """
    if not len(neighbours):
        return None
    away = neighbours - problem.vector(plan)
    loss, sizes = -problem.sign * away @ means, np.abs(away) @ np.abs(means)
    loss = np.where(np.abs(loss) <= _ROUNDING * sizes, 0.0, np.maximum(loss, 0.0))
    scale = np.ones(len(means)) if problem.noise_scale is None else problem.noise_scale
    with np.errstate(divide="ignore"):
        need = (np.abs(away) @ scale / loss) ** 2
    k = int(np.argmax(need))
    middle = float(np.sort(need)[(len(need) - 1) // 2])
    easy = loss[(need <= middle) & (loss > loss[k])] if need[k] >= _EASIER * middle else loss[:0]
    epsilon = float(f"{easy.min():.2g}") if len(easy) else None
    return _named(problem, away[k], float(loss[k]), 0.0, epsilon)


def estimated_call(problem: AnyProblem, plan: Answer | None, evidence: Evidence) -> CloseCall | None:
    """The neighbour of a vertex that the estimates tell worst from it; None where that is not known.

    The epsilon is the most that the two differ by, up to two standard errors.
    """
    if not isinstance(problem, Polytope) or plan is None or problem.noise_scale is None:
        return None
    if not evidence.counts[problem.relevant].all():
        return None
    neighbours = _neighbours(problem, problem.vector(plan))
    if not len(neighbours):
        return None
    away = neighbours - problem.vector(plan)
    variance = np.where(evidence.counts > 0, mean_variance(problem, evidence), 0.0)
    loss, error = -problem.sign * away @ arm_means(problem, evidence), np.sqrt(away**2 @ variance)
    k = int(np.argmin(loss / np.maximum(error, 1e-300)))
    most = abs(float(loss[k])) + _ERRORS * float(error[k])
    return _named(problem, away[k], float(loss[k]), float(error[k]), most)


def _named(
    problem: Polytope, away: FloatArray, loss: float, error: float, epsilon: float | None
) -> CloseCall:
    digits = _DIGITS - 1 - math.floor(math.log10(max(float(np.abs(away).max()), 1e-300)))
    more = np.round(away, digits) + 0.0
    names = problem.arm_names
    gained, lost = counted(names, np.maximum(more, 0.0)), counted(names, np.maximum(-more, 0.0))
    return CloseCall(gained, lost, loss, error, epsilon)


def _neighbours(problem: Polytope, vertex: FloatArray) -> FloatArray:
    """The vertices next to this one by the edges of one basis; none where it is no vertex."""
    form = problem.form
    basis, at = form.basis_near(vertex)
    values = form.vertex(basis, at)
    if not np.allclose(form.plan(values), vertex, rtol=0, atol=1e-9 * form.unit):
        return np.zeros((0, problem.n_arms))
    steps = form.directions(basis, at)
    room = np.where(steps > 0, form.upper - values, values - form.lower)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(np.abs(steps) > _LEAST, room / np.abs(steps), np.inf).min(axis=1, initial=np.inf)
    found = [form.plan(values + t * step) for t, step in zip(far, steps, strict=True) if _LEAST < t < np.inf]
    return np.array(found).reshape(len(found), problem.n_arms)
