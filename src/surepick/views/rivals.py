"""The lead against each rival: how far ahead, how well that is known, and how much speaks for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surepick.core.estimates import between
from surepick.core.plan_words import has_own_name, value_of
from surepick.core.run import Answer
from surepick.core.wording import shortened
from surepick.simulation.outcome import Status
from surepick.views.gaps import Weight, exp
from surepick.views.look import Look

LONGEST_NAME = 36  # letters; of plans with longer names the label says what is different


@dataclass(frozen=True)
class Rival:
    """A plan that is not the lead, by the measurements that were used.

    `gap` is how far it is behind by the estimates (negative: it looks better), `error` the standard deviation
    of that, and `low` to `high` the interval in the policy's own terms: it is wholly above -epsilon about
    when the policy rules the rival out, which shows that it is at most epsilon better. `times` is the
    evidence, `toward` its share of what is needed.
    """

    plan: int | None  # None where plans are not listed
    name: str
    value: float | None  # by the estimates; None while an arm of it is unmeasured
    label: str  # the name, or where that is long what the rival has more of than the lead
    gap: float
    error: float
    low: float
    high: float
    log_evidence: float
    times: float  # evidence that it is not more than epsilon better
    toward: float  # between 0 and 1, on the scale of logarithms
    ruled_out: bool  # it is not more than epsilon better than the lead; with epsilon 0, it is not the best
    role: str = ""  # "closest rival", "runner-up", or both; others have none


@dataclass(frozen=True)
class Rivals:
    """The rivals from place `first` on, those with the least evidence against them first.

    The runner-up is among the first ones, as the last of them where it would come later. `n_rivals` is how
    many there are in all.
    """

    lead: int | None
    lead_name: str | None
    n_rivals: int
    n_ruled_out: int
    needed: float  # the evidence at which a rival is ruled out: 1/delta where it is proved
    proved: bool  # whether the evidence is valid at any moment, by the policy's own proof
    first: int
    rows: tuple[Rival, ...]
    epsilon: float = 0.0
    trusted: bool = True  # whether nothing contradicts the assumption that the evidence rests on

    def ruled_out_words(self, unit: str = "") -> str:
        """Return what is proved of a rival that is ruled out; with epsilon that is less than being worse.

        >>> Rivals(0, "road", 2, 1, 20.0, True, 0, (), epsilon=2.0).ruled_out_words("min")
        'at most 2 min better'
        """
        words = f"at most {self.epsilon:g} {unit}".rstrip() + " better" if self.epsilon else "ruled out"
        return words if self.trusted else f"{words} (not proved)"


def rivals(look: Look, *, first: int = 0, n: int = 10) -> Rivals:
    """The rivals of the lead, `n` of them from place `first` on.

    >>> import surepick as sp
    >>> from surepick.views import look
    >>> problem = sp.Problem([[1, 0], [0, 1]], plan_names=["road", "rail"], noise=1, goal="largest")
    >>> session = sp.Session.create("memory://", "trips", problem, policy=sp.CombGapE(radius="published"))
    >>> for value in (3.0, 1.0):
    ...     _ = session.tell(session.ask()[0], value)
    >>> seen = rivals(look(session))
    >>> seen.lead_name, seen.rows[0].name, seen.rows[0].gap, round(seen.rows[0].times, 2)
    ('road', 'rail', 2.0, 2.72)
    """
    weight = look.weigh()
    if look.n_used == 0:  # a plan may be ahead by what was thought before, and no gap is known
        return Rivals(
            None,
            None,
            max(0, (look.problem.n_plans or 1) - 1),
            0,
            exp(_needed(look, weight)),
            False,
            0,
            (),
            look.epsilon,
            not look.doubts,
        )
    if look.gaps is None:
        return _one_rival(look, weight)
    proved = look.log_evidence is not None
    needed = _needed(look, weight)
    gap, error, order = look.gaps.gap, look.gaps.error, look.rival_order
    known = look.gaps.log_evidence(look.epsilon) if look.log_evidence is None else look.log_evidence
    rows = tuple(
        _row(look, int(k), (float(gap[k]), float(error[k])), float(known[k]), needed)
        for k in _shown(look, first, n)
    )
    n_ruled_out = int((known[order] >= needed).sum())
    lead = look.lead if isinstance(look.lead, int) else None
    names, claim = (lead, look.name_of(lead)), (look.epsilon, not look.doubts)
    return Rivals(*names, len(order), n_ruled_out, exp(needed), proved, first, rows, *claim)


def _shown(look: Look, first: int, n: int) -> list[int]:
    """The places in the list; on the first page the runner-up is not left out."""
    shown: list[int] = look.rival_order[first : first + n].tolist()
    if first == 0 and len(shown) > 1 and look.runner_up is not None and look.runner_up not in shown:
        shown[-1] = look.runner_up
    return shown


def _role(look: Look, plan: Answer) -> str:
    return " and ".join(
        role
        for other, role in ((look.rival, "closest rival"), (look.runner_up, "runner-up"))
        if other is not None and plan == other
    )


def _one_rival(look: Look, weight: Weight | None) -> Rivals:
    """Where plans are not listed, the policy knows one rival at a time."""
    lead, rival = look.lead, look.standing.rival
    needed = _needed(look, weight)
    n_plans = None if look.problem.is_listed else look.problem.n_plans
    rows: tuple[Rival, ...] = ()
    if lead is not None and rival is not None and rival != lead and weight is not None:
        apart = between(look.problem, lead, rival, look.evidence)
        rows = (_row(look, rival, apart, weight.log_evidence, needed),)
    proved = weight is not None and weight.proved
    n_rivals = max(len(rows), (n_plans or 1) - 1)
    is_sure = look.status is Status.CONFIDENT and look.promise.proved  # which rules out all of them at once
    n_out = n_rivals if is_sure else 0
    return Rivals(
        None, look.name_of(lead), n_rivals, n_out, exp(needed), proved, 0, rows, look.epsilon, not look.doubts
    )


def _row(look: Look, plan: Answer, apart: tuple[float, float], log_evidence: float, needed: float) -> Rival:
    """A rival that is this far apart from the lead, give or take an error."""
    gap, error = apart
    radius = error * math.sqrt(2 * needed)
    log_evidence = max(log_evidence, 0.0)
    return Rival(
        plan=plan if isinstance(plan, int) else None,
        name=look.name_of(plan) or "",
        value=None if (known := value_of(look.problem, plan, look.evidence)) is None else known[0],
        label=_label(look, plan),
        gap=gap,
        error=error,
        low=gap - radius,
        high=gap + radius,
        log_evidence=log_evidence,
        times=exp(log_evidence),
        toward=min(1.0, log_evidence / needed),
        ruled_out=log_evidence >= needed,
        role=_role(look, plan),
    )


def _label(look: Look, plan: Answer) -> str:
    name = look.name_of(plan) or ""
    if has_own_name(look.problem, plan) and (len(name) <= LONGEST_NAME or look.lead is None):
        return name
    if look.lead is None:
        return look.called(plan) or ""
    more = np.flatnonzero(look.vector(plan) > look.vector(look.lead))
    words = "with " + (", ".join(look.problem.arm_names[s] for s in more) or "less")
    return shortened(words if has_own_name(look.problem, plan) else f"{name} {words}", LONGEST_NAME)


def _needed(look: Look, weight: Weight | None) -> float:
    return math.log(1 / look.delta) if weight is None else weight.needed
