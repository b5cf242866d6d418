"""BetGapE: bet against every plan but the best one, until the bets have made a fortune.

Ours. The theorem is in `surepick.inference`, the proof for each question in docs/theory.md.

Assumption: measurements are independent and sub-Gaussian with the noise scale of the problem (Gaussian, or
bounded with half the width of the range as the scale); or, with `noise="bounded variance"`, of a standard
deviation that is at most the noise scale; or, where the noise is unknown, Gaussian and the same in every use
of a probe; or, where readings have bounds, they lie between them and each has its mean given all before it.

Proof status: wrong with probability at most delta, at any time and under any stop, without a union over
plans, arms or time. For every plan j a wealth bets against "j is best". Under that hypothesis it is a
non-negative supermartingale from 1, so it ever reaches 1/delta with probability at most delta (Ville's
inequality). j is ruled out when it does; the answer is the leader when no rival is left.

Cost of a batch: a few passes over the plans that are left. Its measurements can be made in any order and by
many workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from surepick.core.oracle_problem import AnyProblem, OracleProblem
from surepick.core.policy import known_noise_scale
from surepick.core.polytopes.polytope import Polytope
from surepick.core.problem import Problem
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.best import Best, WithinMany
from surepick.policies.betting.within import MOST_PLANS, WithinFew
from surepick.policies.sound import BettingPolicy


@dataclass(frozen=True)
class BetGapE(BettingPolicy):
    """The best plan with few measurements, and wrong with probability at most `delta`.

    With `epsilon` above 0 the answer may be up to that much worse than the best plan, and ties end.
    `max_batch` limits how many measurements are asked for at once; larger batches are asked for in parts.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest")
    >>> sp.simulate(problem, sp.simulation.Gaussian([1.0, 0.0]), policy=sp.BetGapE(delta=0.05), seed=1).plan
    0
    """

    delta: float = 0.05
    epsilon: float = 0.0
    max_batch: int | None = None

    name: ClassVar[str] = "BetGapE"
    version: ClassVar[int] = 5
    takes_oracle: ClassVar[bool] = True
    takes_plays: ClassVar[bool] = True
    takes_prior: ClassVar[bool] = True
    takes_known: ClassVar[bool] = True

    def start(self, problem: AnyProblem) -> BatchRun:
        """Return a fresh run on this problem."""
        if isinstance(problem, Problem):
            return BatchRun(problem, self, question_for(problem, self.delta, self.epsilon))
        return unlisted_run(problem, self)


def unlisted_run(problem: OracleProblem, policy: BettingPolicy) -> BatchRun:
    """Return a run that finds the best plan of those behind an oracle, or of a polytope."""
    from surepick.policies.betting.learned_scale_run import LearnedScalePlanRun, LearnedScaleRun
    from surepick.policies.oracles.plan_probes import PlanProbeRun

    delta, epsilon = policy.delta, policy.epsilon
    needs_scale = not isinstance(problem, Polytope) or (epsilon > 0 and problem.relevant.any())
    if problem.noise_scale is None and needs_scale:
        kind = LearnedScalePlanRun if problem.plays else LearnedScaleRun
        return kind(problem, policy, lambda delta: question_for(problem, delta, epsilon))
    run = PlanProbeRun if problem.plays else BatchRun
    return run(problem, policy, question_for(problem, delta, epsilon))


def question_for(problem: AnyProblem, delta: float, epsilon: float) -> Any:
    """Return the question that a run bets on: which plan is best, or which is within epsilon of the best?"""
    if isinstance(problem, Problem):
        if epsilon == 0:
            return Best(problem.oriented, delta)
        kind = WithinFew if problem.n_plans <= MOST_PLANS else WithinMany
        return kind(problem.oriented, delta, epsilon)
    if not isinstance(problem, Polytope):
        from surepick.policies.oracles.oracle_best import OracleBest

        return OracleBest(problem, delta, epsilon)
    if epsilon == 0 or not problem.relevant.any():
        from surepick.policies.betting.best_vertex import BestVertex  # imports linear programs

        return BestVertex(problem, delta)
    from surepick.policies.betting.within_polytope import WithinPolytope

    if problem.noise_scale is not None:
        known_noise_scale(problem)  # refuses noise of bounded variance
    return WithinPolytope(problem, delta, epsilon)
