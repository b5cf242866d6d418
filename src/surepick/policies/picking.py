"""Pick: use a budget, without a guarantee, where the leader's expected loss falls fastest.

Ours, after the expected-loss rules of ranking and selection (Chick & Inoue 2001), for plans that share arms.

With T_s measurements of arm s, a flat prior makes the gap of the leader to plan j normal around its
estimate gap_j with variance v_j = sum_s y_s^2 R_s^2 / T_s, y = leader - plan j. The loss of taking the leader
although j is better is sqrt(v_j) psi(z_j), z_j = (gap_j + epsilon) / sqrt(v_j), psi(z) = phi(z) - z Phi(-z).
The sum over all plans bounds the expected loss; its fall for one more measurement of arm s is proportional to

    a_s / (T_s (T_s + 1) cost_s),     a_s = R_s^2 sum_j w_j y_js^2,     w_j = phi(z_j) / sqrt(v_j),

and the next measurement goes where that is largest. A block of 1% of the measurements so far is filled one
by one with the weights of its beginning. Weights over *all* plans matter: a rule that looks at one rival gets
stuck where a rival's gap was overestimated.

Where plans cannot be listed, the rivals are the plans that posterior draws find best: a few draws from
N(mean, R^2 / count) after each block, each with one call of the oracle. The distinct plans of the last 64
stand for all plans. The draws are a function of what was measured, so that the same measurements give the
same decisions.

Assumption: none is needed; with a noise scale per arm that is wrong by a common factor it measures the same.

Proof status: none. The plan that looks best is the answer, and `outcome.chance` estimates how likely it is
the best one.

Cost of a block: two passes over the plans, and one over the arms for each of its measurements; behind an
oracle five calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, Plans
from surepick.core.evidence import ArmEstimates, Evidence
from surepick.core.guarantee import Guarantee
from surepick.core.oracle_problem import AnyProblem
from surepick.core.plan_sets import plan_set
from surepick.core.policy import check_epsilon, known_deviation
from surepick.core.prior_data import PriorData
from surepick.core.problem import Problem
from surepick.core.run import Measure, Run, Standing, Stop
from surepick.policies.sound import Starting, check_max_batch

BLOCK_SHARE = 0.01  # of the measurements so far
DRAWS, FIRST_DRAWS, KEPT = 4, 32, 64  # draws after each block, at first, and how many are kept
_FAR = 40.0  # nats: plans whose weight is smaller than exp of minus this count as none


class PickingPolicy(Starting):
    """Base of the policies without a guarantee; `_answers_with` says what their answer is."""

    delta = 0.05  # the level that displayed evidence is compared with; no decision depends on it
    _answers_with: ClassVar[str] = "the plan that looks best after the budget; estimates say how good it is"

    @property
    def guarantee(self) -> Guarantee:
        """That there is no guarantee."""
        return Guarantee.none(self._answers_with)


class PooledRun(Run):
    """Counts and sums, and what is left of a budget. It changes by `absorb` and `allow`."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._variance = known_deviation(problem) ** 2
        self.evidence = Evidence.none_of(problem)  # all that the run has absorbed
        self._left: int | None = None

    def allow(self, left: int) -> None:
        """Ask for no more than this many from now on."""
        self._left = left

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Pool what was measured."""
        self.evidence = self.evidence + Evidence(counts, sums)

    def _block_size(self, *limits: int | None) -> int:
        """Return 1% of the measurements so far, or what is left or allowed if that is less; at least 1."""
        n = max(1, int(BLOCK_SHARE * self.evidence.n_measurements))
        return min([n, *(limit for limit in (self._left, *limits) if limit is not None and limit > 0)])


class PickRun(PooledRun):
    """A run of Pick: counts and sums, and prior data. Mutable; owned by its caller."""

    def __init__(self, problem: Problem, policy: Pick) -> None:
        super().__init__(problem)
        self._policy = policy
        self._worth, self._thought = np.zeros(problem.n_arms), np.zeros(problem.n_arms)  # prior data

    @cached_property
    def _squares(self) -> Plans:
        return self._problem.oriented**2

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """Ask for one measurement of each relevant arm first, then for the next batch; never stop."""
        missing = self._problem.relevant & (self.evidence.counts + self._worth == 0)
        if missing.any():
            return Measure(missing.astype(np.int64))
        return Measure(self._fill(self._block_size(self._policy.max_batch)))

    def _fill(self, n: int) -> IntArray:
        """Return n measurements, one by one to the arm that takes most off the loss; the first of equals."""
        gains, seen = self._gains() / self._problem.costs, self._counts()
        # scores fall along each row, so that one by one takes the n largest of all
        now = seen[:, None] + np.arange(n)
        score = gains[:, None] / (now * (now + 1.0))  # (n_arms, n)
        least = np.partition(score, -n, axis=None)[-n]
        block = (score > least).sum(axis=1)
        equal = (score == least).sum(axis=1)
        spare = n - int(block.sum()) - (np.cumsum(equal) - equal)  # what is left for this arm and later ones
        return np.asarray(block + np.clip(spare, 0, equal), dtype=np.int64)

    def remember(self, prior: PriorData) -> None:
        """Pool what was thought before; nothing is proved that it could spoil."""
        self._worth, self._thought = prior.worth, prior.worth * prior.means

    def standing(self) -> Standing:
        """The leader, the plan that is most worth comparing it with, and their gap."""
        if not self._is_started:
            return Standing()
        lead, gap, weight = self._compare()
        rival = int(np.argmax(weight))
        return Standing(lead, rival, float(gap[rival]))

    @property
    def _is_started(self) -> bool:
        """Whether something is known of every arm that matters."""
        return bool((self.evidence.counts + self._worth > 0)[self._problem.relevant].all())

    def scores(self) -> FloatArray:
        """Return how much measuring each arm once reduces the expected loss per cost, up to a factor."""
        return self._gains() / (self._counts() * (self._counts() + 1.0) * self._problem.costs)

    def _counts(self) -> FloatArray:
        known = self.evidence.counts + self._worth
        return np.where(known > 0, known, 1.0)  # arms that do not matter have no gain

    def _compare(self) -> tuple[int, FloatArray, FloatArray]:
        """The leader, its gap to every plan, and the weight of each plan relative to the largest."""
        means, variance = self._estimates()
        lead = int(np.argmax(np.asarray(self._problem.oriented @ means)))
        gap, error = ArmEstimates(means, variance).behind(self._problem, lead, self._squares)
        error[lead] = 0.0
        return lead, gap, self._weights(gap, error)

    def _estimates(self) -> tuple[FloatArray, FloatArray]:
        """The mean of each arm and its variance, with prior data."""
        known = self._counts()
        return (self.evidence.sums + self._thought) / known, self._variance / known

    def _weights(self, gap: FloatArray, error: FloatArray) -> FloatArray:
        """The weight w_j of each rival relative to the largest; none where there is no error."""
        differs = error > 0
        error = np.where(differs, error, 1.0)
        log_weight = -0.5 * ((gap + self._policy.epsilon) / error) ** 2 - np.log(error)
        log_weight[~differs] = -np.inf
        log_weight -= log_weight.max()
        return np.where(log_weight > -_FAR, np.exp(log_weight), 0.0)

    def _gains(self) -> FloatArray:
        """a_s, with the square (lead - plan)^2 multiplied out over all plans."""
        lead, _, weight = self._compare()
        plans, row = self._problem.oriented, self._problem.vector(lead) * self._problem.sign
        across = float(weight.sum()) * row**2 - 2.0 * row * np.asarray(weight @ plans)
        gains = self._variance * (across + np.asarray(weight @ self._squares))
        return np.where(self._problem.relevant, np.maximum(gains, 0.0), 0.0)


class OraclePickRun(PickRun):
    """A run of Pick that asks an oracle."""

    def __init__(self, problem: AnyProblem, policy: Pick) -> None:
        super().__init__(cast(Any, problem), policy)  # it asks for no list
        self._plans = plan_set(problem)
        self._lead = np.zeros(problem.n_arms)
        self._drawn = np.zeros((0, problem.n_arms))  # the best plans of the last draws

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Pool what was measured, and draw rivals."""
        super().absorb(counts, sums)
        if self._is_started:
            n = DRAWS if len(self._drawn) else FIRST_DRAWS
            rng = np.random.default_rng(self.evidence.n_measurements)
            means, variance = self._estimates()
            worlds = means + np.sqrt(variance) * rng.standard_normal((n, len(means)))
            self._drawn = np.vstack([self._drawn, self._plans.best_of_each(worlds)])[-KEPT:]
            self._lead = self._plans.best_of_all(means)

    def _rivals(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Lead minus each distinct rival, their gaps, and their weights relative to the largest."""
        contrasts = self._lead - np.unique(self._drawn, axis=0)
        contrasts = contrasts[(contrasts != 0).any(axis=1)]
        means, variance = self._estimates()
        gap, error = contrasts @ means, np.sqrt(contrasts**2 @ variance)
        return contrasts, gap, self._weights(gap, error) if len(contrasts) else gap

    def _gains(self) -> FloatArray:
        """a_s over the rivals; where no draw has found one, as if every arm mattered alike."""
        contrasts, _, weight = self._rivals()
        return self._variance * (weight @ contrasts**2 if len(contrasts) else np.ones(len(self._variance)))

    def standing(self) -> Standing:
        """The leader, the rival that is most worth comparing it with, and their gap."""
        if not len(self._drawn):
            return Standing()
        contrasts, gap, weight = self._rivals()
        lead = self._plans.answer(self._lead)
        if not len(contrasts):
            return Standing(lead)
        k = int(np.argmax(weight))
        return Standing(lead, self._plans.answer(self._lead - contrasts[k]), float(gap[k]))


@dataclass(frozen=True)
class Pick(PickingPolicy):
    """The best use of a budget that cannot prove anything: the plan that looks best at its end.

    It has no delta and never stops by itself: give `simulate` or the session a budget. With `epsilon` above 0
    plans that are better by less hardly matter. `max_batch` limits how many measurements are asked for at
    once.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest")
    >>> outcome = sp.simulate(problem, [1.0, 0.0], policy=sp.policies.Pick(), seed=1, budget=30)
    >>> outcome.plan, outcome.leader, outcome.n_measured
    (None, 0, 30)
    """

    epsilon: float = 0.0
    max_batch: int | None = None

    takes_prior: ClassVar[bool] = True
    takes_oracle: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_max_batch(self.max_batch)

    def start(self, problem: AnyProblem) -> PickRun:
        """Return a fresh run on this problem."""
        return PickRun(problem, self) if problem.is_listed else OraclePickRun(problem, self)
