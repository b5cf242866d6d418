"""A worker who knows all values and chooses how to record them, then extends or removes, gains nothing."""

import numpy as np
from scipy import stats

import surepick as sp
from common import largest
from surepick.sessions.session import Session

GAP, DELTA, RUNS = 0.4, 0.2, 20
BEST, WISHED = 0, 1  # the worker wants the second plan to be declared
PROBLEM = largest(np.eye(2))
BLOCK = 4  # values that were averaged when means could be recorded


def tapes_of(seed):
    """What the uses of each arm give, in their order; all of it known to the worker beforehand."""
    return np.array([[GAP], [0.0]]) + np.random.default_rng(seed).standard_normal((2, 4000))


def favours(arm, values, mean):
    """Whether these values of the arm speak for what the worker wishes."""
    return bool((values.mean() > mean) == (arm == WISHED))


def is_talked_into_it(tapes):
    """Whether the worker brings a session to declare the wrong plan, at any time."""
    session = Session.create("memory://", "s", PROBLEM, policy=sp.BetGapE(delta=DELTA))
    slip = session.ask()[0]
    session.tell(slip, 0.0)  # no measurement: it can be removed at any time, with a good reason
    removed = {slip.probe}
    delta = DELTA
    for _ in range(4):
        while requests := session.ask():
            arm, index = map(int, requests[0].token.split("."))
            first = index - (arm in removed)  # the place of the slip stays empty
            values = tapes[arm, first : first + requests[0].wanted]
            pleases = favours(arm, values, (GAP, 0.0)[arm])
            session.tell(requests[0], values.tolist() if pleases else float(values[0]))
        assert session.status != "running"
        if session.outcome.plan == WISHED:
            assert session.verify(session.certificate().to_json()).holds
            return True
        if delta == DELTA:
            session.remove(slip, "typed before it was measured")
        delta *= 0.9
        session.extend(delta=delta)
    return False


def is_misled_by_averages(tapes):
    """What means did: blocks that displease were recorded as means, which a run that starts over skipped."""
    kept = []
    for arm, tape in enumerate(tapes):
        blocks = tape.reshape(-1, BLOCK)
        kept.append([b for b in blocks if favours(arm, b, (GAP, 0.0)[arm])])
    rest = [iter(np.concatenate(blocks).tolist()) for blocks in kept]

    class Rest:
        means = np.array([GAP, 0.0])

        def measure(self, counts, rng):
            return np.array([sum(next(rest[a]) for _ in range(n)) for a, n in enumerate(counts)])

    return sp.simulate(PROBLEM, Rest(), policy=sp.BetGapE(delta=0.9 * DELTA)).plan == WISHED


def test_how_values_are_recorded_gives_no_power_over_the_answer():
    n_wrong = sum(is_talked_into_it(tapes_of(seed)) for seed in range(RUNS))
    assert stats.binom.sf(n_wrong - 1, RUNS, DELTA) > 0.01  # as many may be wrong with probability delta
    n_misled = sum(is_misled_by_averages(tapes_of(seed)) for seed in range(RUNS))
    assert stats.binom.sf(n_misled - 1, RUNS, DELTA) < 1e-6  # the control
