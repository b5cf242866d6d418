"""Plans that are added to a session while it runs, or after its answer: what is allowed, and the event."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surepick.core.arrays import Numbers
from surepick.core.problem import Problem
from surepick.errors import ParameterError, SessionError
from surepick.sessions.settings import Body, Setup
from surepick.simulation.outcome import Status

if TYPE_CHECKING:
    from surepick.sessions.ledger import Ledger

ADDED = "plan-added"


def addition(ledger: Ledger, name: str, plan: Numbers | str) -> Body:
    """The body of the event that adds this plan; refused where that cannot be."""
    problem = growing(ledger)
    row = problem.with_plan(name, plan).vector(problem.n_plans)
    amounts = [[int(arm), float(row[arm])] for arm in np.flatnonzero(row)]
    body = {"name": name, "amounts": amounts, "n_ahead": ledger.tapes.n_ahead}
    lengthened(ledger, body)
    return body


def lengthened(ledger: Ledger, body: Body) -> Setup:
    """What a session goes on with after this event; refused where a pilot has not looked at an arm."""
    before = growing(ledger)
    setup = with_added(ledger.setup, body)
    new = setup.problem.relevant & ~before.relevant
    if setup.pilot is not None and new.any():
        arm = before.arm_names[int(np.argmax(new))]
        raise SessionError(
            f"the plan {body['name']!r} makes {arm!r} matter, whose noise the pilot has not learned; begin a "
            "new session with it",
            field="plan",
        )
    return setup


def with_added(setup: Setup, body: Body) -> Setup:
    """The same with this plan as the last one."""
    problem = setup.problem
    if not isinstance(problem, Problem):
        raise SessionError("plans are added to a list of plans, and this problem has none")
    row = np.zeros(problem.n_arms)
    for arm, amount in body["amounts"]:
        row[arm] = amount
    return replace(setup, problem=problem.with_plan(body["name"], row))


def growing(ledger: Ledger) -> Problem:
    """The problem of a session that takes a plan now; refused in words if it does not."""
    problem = ledger.setup.problem
    if not isinstance(problem, Problem):
        raise ParameterError("plans are added to a list of plans, and this problem has none", field="plan")
    if not ledger.run.can_grow:
        raise ParameterError(
            f"{ledger.setup.policy.name} cannot take in plans that arrive; of those that there are BetGapE "
            "can, so begin a new session",
            field="plan",
        )
    if ledger.run.is_piloting:
        raise SessionError(
            "the noise scale is being learned; add the plan when the pilot is over", field="plan"
        )
    if ledger.run.called is not None:
        raise SessionError("after the last call no plan can be added; begin a new session", field="plan")
    if ledger.status not in (None, Status.CONFIDENT):
        raise SessionError(
            f"this session has ended: {ledger.status}; extend its budget first, then add the plan",
            field="plan",
        )
    return problem


def refuse_starting_over(arrived: list[Body], what: str) -> None:
    """Refuse what would start the policy over with plans that were chosen by looking at its measurements."""
    if arrived:
        raise SessionError(
            f"plans were added to this session, so {what} is not possible any more: the policy would start "
            "over, and bet on plans with measurements that they may have been chosen by; begin a new session"
        )


def added_assumption(arrived: list[Body]) -> str:
    """What has to be assumed of plans that were added while values had been told ahead."""
    n: Any = max((body["n_ahead"] for body in arrived), default=0)
    if not n:
        return ""
    return "; which plans were added, and when, did not depend on values that were told ahead of the round"
