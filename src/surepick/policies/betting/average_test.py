"""The last block of a run within epsilon: a test of one plan against all of them at once.

Before the block a plan x is fixed, and a number that the wealth of the bets against every plan is proved to
be at least. The block's own means say how many standard errors x is ahead of each plan b, epsilon included;
`last_call` turns these into p_b. The evidence is the wealth divided by the largest p_b, and a search over
boxes of plans proves it for all. The proof that it is as rare as it says is in docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.average_proof import Node, Question, Test, proof_of_test
from surepick.core.polytope import Polytope
from surepick.policies.betting.last_call import GAUSSIAN_NOISE, errors_for, log_p
from surepick.policies.betting.prover import BELOW, Prover


class Claim(NamedTuple):
    """What the last block tests, fixed before it: a plan, and the least wealth against all plans."""

    plan: FloatArray  # (n_arms,)
    log_wealth: float
    series: int = -1  # whose wealth it is; -1: of the cash alone


class Rule(NamedTuple):
    """When a test is enough, and of what noise."""

    target: float  # log evidence
    tails: str

    def errors(self, level: float, before: float) -> float:
        """How many standard errors bring log wealth from `before` to `level`."""
        return errors_for(level - before, gaussian=self.tails == GAUSSIAN_NOISE)


def evidence_of(claim: Claim, asked: Question, plans: FloatArray, prover: Prover, rule: Rule) -> float:
    """The log of the evidence against all plans: of the test that was asked, and of the wealth before it.

    What the known plans allow is tried first, and a little less then.
    """
    before = claim.log_wealth
    gap = asked.gain + plans @ asked.gains
    error = np.sqrt((claim.plan - plans) ** 2 @ asked.squares)
    most = before - float(log_p(gap, error, rule.tails)[error > 0].max(initial=-np.inf))
    levels = [rule.target] * (most >= rule.target) + [most - below for below in BELOW]
    return prover.first_level(levels, before, lambda level: asked._replace(target=rule.errors(level, before)))


def proof_of_claim(
    problem: Polytope, claim: Claim, questions: tuple[Question | None, Question], prover: Prover, rule: Rule
) -> Mapping[str, Any]:
    """The proof that the evidence is enough: boxes for the wealth before the test, and for the test.

    `questions` are of the series whose wealth it is, None where it is the cash, and of the test.
    """
    series, asked = questions
    before, boxes = None, list[Node]()
    if series is not None:
        before = series._replace(target=claim.log_wealth)
        boxes = prover.prove(before, keep=True, glance=True).nodes
    question = asked._replace(target=rule.errors(rule.target, claim.log_wealth))
    found = prover.prove(question, keep=True)
    test = Test(question, found.nodes, rule.tails == GAUSSIAN_NOISE)
    plan = claim.plan * problem.form.unit
    return proof_of_test(problem, plan, (claim.log_wealth, before, boxes), test)
