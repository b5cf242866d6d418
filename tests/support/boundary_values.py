"""Every policy given the largest and the smallest numbers that a session takes; run in a process of its own.

`python boundary_values.py BetGapE ...` prints a line before each case, so that a crash names its case.
"""

import itertools
import json
import sys

import numpy as np

import surepick as sp
from policy_contract import FOR_MATROIDS, FOR_SETS, FOR_SINGLE_ARMS
from surepick.core.given.numbers import LARGEST, MOST_SCALES, SMALLEST
from surepick.errors import SurepickError
from surepick.policies import parse_policy, policy_named

REFUSED = (1e155, -1e155, 1e308, -1e308, 1.7976931348623157e308, float("inf"), float("nan"))
# Noise scale and size of the plans: the middle and the corners.
SIZES = ((1.0, 1.0), *itertools.product((SMALLEST, LARGEST), repeat=2))
BUDGET, PHASED_BUDGET = 30, 2_000
PHASED = ("RAGE", "Peace", "NaiveGapElim", "PolyALBA", "XYAdaptive")  # they ask for thousands at once


def taken(scale):
    """Cycles of values that are allowed at this noise scale."""
    far = MOST_SCALES * scale
    yield [far, 0.0, -far, scale, 5e-324]
    yield [far, far, np.nextafter(far, 0.0)]
    yield [0.0, 5e-324, -5e-324]


def drive(session, cycle, scale):
    """Tell the cycle until the session ends; values beyond the limit are refused and change nothing."""
    values, n_refused = itertools.cycle(cycle), 0
    for request in iter(lambda: next(iter(session.ask()), None), None):
        for beyond in (*REFUSED, MOST_SCALES * scale * 1.001):
            if n_refused >= 2 * len(REFUSED):
                break
            for what in (request, 0):
                try:
                    session.tell(what, beyond, sure=True)
                except SurepickError:
                    n_refused += 1
                else:
                    raise AssertionError(f"{beyond} was taken at scale {scale}")
        session.tell(request, list(itertools.islice(values, max(1, request.wanted))), sure=True)
        session.state().standing()
    return n_refused


def main():
    """All cases of the policies that are named."""
    tried = refused = 0
    for text, (scale, factor) in itertools.product(sys.argv[1:], SIZES):
        name = text.split(":")[0]
        if name in FOR_SETS and factor != 1.0:
            continue  # plans of zeros and ones
        is_peer = policy_named(name).__module__.startswith("surepick.peers")
        for cycle in itertools.islice(taken(scale), 1 if is_peer else None):
            print(text, scale, factor, cycle, flush=True)
            plans = factor * np.array(
                [[1, 0, 0], [0, 1, 0], [0, name not in FOR_SINGLE_ARMS + FOR_MATROIDS, 1]]
            )
            problem = sp.Problem(plans, noise=scale, goal="largest")
            try:
                policy, budget = (
                    parse_policy(text, delta=0.01),
                    PHASED_BUDGET if text.startswith(PHASED) else BUDGET,
                )
                session = sp.Session.create("memory://", "s", problem, policy=policy, budget=budget)
            except SurepickError as error:
                print("  refused:", error)
                continue
            refused += drive(session, cycle, scale)
            outcome = session.outcome
            assert outcome is not None
            assert session.verify().holds
            json.dumps(session.certificate().to_json())
            if outcome.plan is not None and outcome.risk is not None:
                assert outcome.risk <= outcome.policy.delta * (1 + 1e-9)
            tried += 1
    print(json.dumps({"tried": tried, "refused": refused}))


if __name__ == "__main__":
    main()
