"""Plans that are added to a session while it runs, or after its answer: what is allowed, and the event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surepick.core.arrays import Numbers
from surepick.core.frames import amounts_in
from surepick.core.new_arms import GivenArms, NewArm, settled
from surepick.core.problem import Problem
from surepick.errors import ParameterError, SessionError, suggestion
from surepick.sessions.settings import Body, Setup
from surepick.simulation.outcome import Status

if TYPE_CHECKING:
    from surepick.sessions.ledger import Ledger

ADDED = "plan-added"


def additions(ledger: Ledger, plans: Mapping[str, Numbers | str], new_arms: GivenArms) -> list[Body]:
    """The bodies of the events that add these plans, and with the first of them the arms that are new."""
    setup, arms = ledger.setup, settled(growing(ledger), new_arms)
    bodies: list[Body] = []
    for name, plan in plans.items():
        assert isinstance(setup.problem, Problem)
        body: Body = {} if bodies or not arms else {"new_arms": [arm.to_json() for arm in arms]}
        problem = setup.problem if bodies else setup.problem.with_arms(arms)
        _refuse_unknown(name, plan, problem)
        row = problem.with_plan(name, plan).vector(problem.n_plans)
        body["name"], body["n_ahead"] = name, ledger.tapes.n_ahead
        body["amounts"] = [[int(arm), float(row[arm])] for arm in np.flatnonzero(row)]
        setup = lengthened(setup, body)
        bodies.append(body)
    if not bodies:
        raise ParameterError("there is no plan to add; a table needs a row for each", field="plan")
    used = {arm for body in bodies for arm, _ in body["amounts"]}
    for place, arm in enumerate(arms, setup.problem.n_arms - len(arms)):
        if place not in used:
            raise ParameterError(
                f"no new plan uses the new arm {arm.name!r}; leave it out until one does", field="new_arms"
            )
    return bodies


def _refuse_unknown(name: str, plan: Numbers | str, problem: Problem) -> None:
    """Refuse a plan with an arm that is neither known nor said to be new: it may be a slip of the pen."""
    named = amounts_in(name, plan, problem.arm_names) if isinstance(plan, str) else plan
    if not isinstance(named, Mapping):
        return
    for arm in map(str, named):
        if arm not in problem.arm_names:
            raise ParameterError(
                f"the plan {name!r} uses {arm!r}, which is an unknown arm; "
                f"{suggestion(arm, problem.arm_names)}. If it is a new arm, say so: new_arms=[{arm!r}], or "
                "--new-arm on the command line",
                field="plan",
            )


def lengthened(before: Setup, body: Body) -> Setup:
    """What a session goes on with after this event."""
    return with_added(before, body)


def with_added(setup: Setup, body: Body) -> Setup:
    """The same with this plan as the last one."""
    problem = setup.problem
    if not isinstance(problem, Problem):
        raise SessionError("plans are added to a list of plans, and this problem has none")
    problem = problem.with_arms(map(NewArm.from_json, body.get("new_arms", ())))
    row = np.zeros(problem.n_arms)
    for arm, amount in body["amounts"]:
        row[arm] = amount
    past = None if setup.past is None else setup.past.lengthened(problem.n_arms)
    return replace(setup, problem=problem.with_plan(body["name"], row), past=past)


def growing(ledger: Ledger) -> Problem:
    """The problem of a session that takes a plan now; refused in words if it does not."""
    problem = ledger.setup.problem
    if not isinstance(problem, Problem):
        raise ParameterError("plans are added to a list of plans, and this problem has none", field="plan")
    if problem.probes is not None:
        raise ParameterError(
            "plans are added where arms are measured by themselves, and this session measures probes; begin "
            "a new session with all plans, and with probes that can tell them apart",
            field="plan",
        )
    if not ledger.run.can_grow:
        raise ParameterError(
            f"{ledger.setup.policy.name} cannot add plans here; BetGapE can. Begin a new session with all "
            "plans",
            field="plan",
        )
    if ledger.run.called is not None:
        raise SessionError("after the last call no plan can be added; begin a new session", field="plan")
    if ledger.status not in (None, Status.CONFIDENT, Status.DONE):
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
