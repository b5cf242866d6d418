"""A value is taken in without the policy's compiled code, as long as it completes no round."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import surepick as sp
from surepick.sessions import codec
from surepick.sessions.ledger import Ledger
from surepick.simulation.outcome import Status

PROBLEM = sp.Problem([[1, 1, 0], [0, 1, 1], [1, 0, 1]], noise=0.5, goal="largest")
ASK_AND_TELL = """
import sys
import surepick as sp
session = sp.Session.load(sys.argv[1], "hand")
request, = session.ask(1)
session.tell(request, 0.5)
assert "numba" not in sys.modules, "compiled code was loaded to take in a value"
"""


def test_asking_and_telling_inside_a_round_loads_no_compiled_code(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/hand.db"
    session = sp.Session.create(url, "hand", PROBLEM, policy=sp.BetGapE(delta=0.1))
    assert sum(request.wanted for request in session.pending()) > 2, "the first round must be a long one"
    subprocess.run([sys.executable, "-c", ASK_AND_TELL, url], check=True)
    assert len(list(session.measurements())) == 1


def test_a_run_that_follows_late_is_the_one_that_followed_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    session = sp.Session.create(url, "x", PROBLEM, policy=sp.BetGapE(delta=0.1), budget=40)
    session.add_extra(0, 1.0)
    while requests := session.ask(1):
        session.tell(requests[0], [1.0, 0.4, 0.1][requests[0].arm])
    session.extend(budget=80)
    for _ in range(20):
        (request,) = session.ask(1)
        session.tell(request, [1.0, 0.4, 0.1][request.arm])
    at_once, late = session.ledger(), sp.Session.load(url, "x").ledger()
    assert late.n_rounds == at_once.n_rounds  # known before the run is there
    assert late.standing() == at_once.standing()
    assert late.to_json() == at_once.to_json()
    assert late.surprises == []


def test_a_decision_that_the_policy_would_not_make_is_a_surprise_once_the_run_follows() -> None:
    setup = sp.Session.create("memory://", "x", PROBLEM, policy=sp.Uniform(delta=0.1)).ledger().setup
    ledger, (first,) = Ledger(setup), Ledger(setup).decide()
    ledger.apply(first.kind, first.body)
    for arm, count in first.body["counts"]:
        assert count == 1
        ledger.apply("measured", {"arm": arm, "index": 0, "value": 0.3})
    ledger.apply("stopped", {"status": str(Status.CONFIDENT), "plan": 0})
    extended = codec.policy_to_json(sp.Uniform(delta=0.05))
    ledger.apply("extended", {"policy": extended, "budget": None, "n_ahead": 0})  # the policy starts over
    assert ledger.surprises == [1]
