"""Extending a session: a smaller delta or epsilon, or a larger budget."""

from __future__ import annotations

from surepick.errors import ParameterError
from surepick.sessions import codec
from surepick.sessions.arriving import refuse_starting_over
from surepick.sessions.ledger import Ledger, NewEvent
from surepick.sessions.replica import Change


def extension(ledger: Ledger, delta: float | None, epsilon: float | None, budget: int | None) -> Change:
    """Return the event that extends the session; refuse an extension that would prove nothing more."""
    asked = {"delta": delta, "epsilon": epsilon}
    changes = {name: value for name, value in asked.items() if value is not None}
    if not changes and budget is None:
        raise ParameterError("extend needs a smaller delta, a smaller epsilon or a larger budget")
    setup = ledger.setup.extended(changes, budget)
    if setup.policy != ledger.setup.policy and not ledger.can_lower_delta(setup):
        refuse_starting_over(ledger.arrived, "another delta or epsilon")
    if ledger.run.called is not None and setup.policy == ledger.setup.policy:
        raise ParameterError(
            "the last call ended what this session can prove at its delta; extend it to a smaller "
            "delta or epsilon, for which it starts over, or begin a new one and record these "
            "measurements in it",
            field="budget",
        )
    body = {"policy": codec.policy_to_json(setup.policy), "budget": setup.budget}
    body["n_ahead"] = ledger.tapes.n_ahead
    return Change([NewEvent("extended", body)])
