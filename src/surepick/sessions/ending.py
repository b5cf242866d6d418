"""How a session ends: the last call, closing by hand, and the outcome that it then has."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from surepick.core.past import Past
from surepick.core.policy import takes_past
from surepick.core.sensitivity import named_ranging
from surepick.core.tables import count_in
from surepick.errors import ParameterError, SessionError
from surepick.sessions.certify import promised
from surepick.sessions.ledger import Ledger, NewEvent
from surepick.sessions.replica import Change
from surepick.sessions.settings import whole
from surepick.simulation.outcome import Outcome, Status

MOST_CALLED = 10**12  # a block of more could not be divided among the arms, so the session could not go on


def calling(ledger: Ledger, n: int | None, *, gaussian: bool) -> Change:
    """The last call of so many measurements, or of the rest of the budget, if there can be one now."""
    if ledger.is_over:
        raise SessionError(f"this session has ended: {ledger.status}; there is no last call")
    ledger.run.check_last_call()
    wanted = check_last_call(ledger, n)
    body = {"n": wanted, "gaussian": bool(gaussian), "n_ahead": ledger.tapes.n_ahead}
    return Change([NewEvent("called", body, ledger.calling_key())])


def check_last_call(ledger: Ledger, n: int | None) -> int:
    """Return the measurements of a last call: more than the open round waits for, within the budget.

    What was recorded of the open round is spent as well.
    """
    budget, n_missing = ledger.setup.budget, ledger.tapes.n_missing
    spent = ledger.n_measurements + ledger.tapes.n_told_of_round
    left = None if budget is None else budget - spent
    if n is None and left is None:
        raise ParameterError(
            "a last call needs the number of measurements that are still to come: the session has no budget",
            field="n",
        )
    still_to_come = "the number of measurements that are still to come"
    wanted = whole("n", still_to_come, left if n is None else n, least=1, most=MOST_CALLED)
    if left is not None and wanted > left:
        raise ParameterError(
            f"a last call of {wanted} measurements is more than the {left} that the budget leaves; call "
            f"{left}, or extend the budget first",
            field="n",
        )
    if wanted <= n_missing:
        raise ParameterError(
            f"the open round waits for {n_missing} measurements, so a last call needs more than that, got "
            f"{wanted}; finish the round first, or close the session",
            field="n",
        )
    return wanted


def closing(ledger: Ledger, reason: str) -> Change:
    """The end by hand; nothing where the session has ended, or its answer is only not written down yet."""
    closed = NewEvent("closed", {"reason": str(reason)}, ledger.closing_key())
    return Change([] if ledger.is_over or ledger.is_due else [closed])


def epoch_of(ledger: Ledger) -> Any:
    """The settings of a session that goes on from here with other means: seed, budget left, and a past."""
    setup, evidence = ledger.setup, ledger.evidence
    left = None if setup.budget is None else max(setup.budget - ledger.n_measurements, 1)
    past = None
    if takes_past(setup.policy) and setup.problem.arms_alone and evidence.counts.any():
        past = Past.from_history(setup.problem, evidence.counts, np.nan_to_num(evidence.means))
    return {"seed": setup.seed, "budget": left, "prior": past}


def next_name(name: str, taken: Iterable[str]) -> str:
    """A name for the next epoch of this session that no other has.

    >>> next_name("trips", ["trips"]), next_name("trips-2", ["trips", "trips-2", "trips-3"])
    ('trips-2', 'trips-4')
    """
    stem, _, number = name.rpartition("-")
    before = count_in(number) if stem else None
    stem, first = (name, 2) if before is None else (stem, before + 1)
    known = set(taken)
    return next(new for n in itertools.count(first) if (new := f"{stem}-{n}") not in known)


def outcome_of(ledger: Ledger, seconds: float) -> Outcome:
    """Return where the session stands, or how it ended, this long after it began."""
    problem, evidence, setup = ledger.estimated_problem, ledger.evidence, ledger.setup
    standing = ledger.standing()
    lead = standing.lead if ledger.plan is None else ledger.plan
    return Outcome(
        plan=ledger.plan,
        plan_name=problem.name_of(ledger.plan),
        status=ledger.status or Status.RUNNING,
        lead=lead,
        lead_name=problem.name_of(lead),
        n_measurements=ledger.n_measurements,
        n_rounds=ledger.n_rounds,
        cost=problem.spent(evidence.cost(problem.costs), ledger.n_rounds),
        counts=evidence.counts,
        means=evidence.means,
        standing=standing,
        policy=setup.policy,
        guarantee=promised(ledger).text,
        seed=setup.seed,
        seconds=seconds,
        noise_scale=problem.noise_scale,
        problem=problem,
        ranging=named_ranging(problem, ledger.plan, evidence),
        doubts=ledger.doubts(),
    )
