"""Where plays are made: plans behind an oracle, or listed with `probes="plan arms"`; the same to a method."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.oracle_problem import AnyProblem
from surepick.core.plan_sets import plan_set, spanned
from surepick.core.plays import Plays, play_finder
from surepick.core.policy import known_noise_scale
from surepick.core.probes import Probes
from surepick.core.run import Answer, Measure
from surepick.errors import ProblemError

_NEEDED = 'plays whole plans and reads every arm of a play: give the problem probes="plan arms"'


class Ground:
    """The plans of a problem as plays of zeros and ones; weights are such that larger is better."""

    def __init__(self, problem: AnyProblem, method: str) -> None:
        self._probes = problem.probes
        self._probe_of: dict[bytes, int] = {}
        if problem.plays:
            self.variance = known_noise_scale(problem, plays=True) ** 2
        elif problem.probes is not None and problem.probes.is_diagonal:
            self.variance, self._probe_of = _listed(problem.probes, problem.n_arms)
        else:
            raise ProblemError(f"{method} {_NEEDED}")
        self.sign, self.n_arms = problem.sign, problem.n_arms
        self._plans = plan_set(problem)
        self._box, _ = spanned(self._plans)
        self.best = play_finder(self._plans, self._box)  # for weights of any sign

    @property
    def relevant(self) -> BoolArray:
        """The arms in which plans differ."""
        return np.asarray(self._box.lower < self._box.upper)

    def answer(self, play: FloatArray) -> Answer:
        """What this plan is called in a result."""
        return self._plans.answer(self.sign * play + 0.0)

    def best_but(self, lead: FloatArray, weights: FloatArray) -> FloatArray:
        """The best play other than this one: by the exchange that loses least, or by trying every arm."""
        play = self.best(weights)
        if (play != lead).any():
            return play
        inside, plan, box = self.sign * weights, self.sign * play + 0.0, self._box
        losses = self._plans.losses(inside, box, plan)
        if losses is None:
            return max(self.exchanges(lead, weights), key=lambda other: float(weights @ other))
        arm = int(box.free[np.argmin(losses[box.free])])
        (part,) = box.apart(arm, float(plan[arm]), self._plans.step)
        found = self._plans.best(inside, part)
        assert found is not None
        return np.abs(found)

    def exchanges(self, lead: FloatArray, weights: FloatArray) -> list[FloatArray]:
        """For every arm the best play that differs from this one there."""
        inside, plan, box = self.sign * weights, self.sign * lead + 0.0, self._box
        parts = [part for s in box.free for part in box.apart(int(s), float(plan[s]), self._plans.step)]
        return [np.abs(other) for part in parts if (other := self._plans.best(inside, part)) is not None]

    def request(self, plays: Plays) -> Measure:
        """These plays, as a request."""
        if self._probes is None:
            return Measure(plays.counts, plays)
        counts = np.zeros(len(self._probes), dtype=np.int64)
        for play, n in zip(plays.plans, plays.uses.tolist(), strict=True):
            counts[self._probe_of[play.tobytes()]] += n
        return Measure(counts)

    def readings(self, counts: IntArray, sums: FloatArray) -> tuple[IntArray, FloatArray]:
        """What was measured, as counts and sums of each arm."""
        if self._probes is None:
            return counts, sums
        arms, n = self._probes.rows.indices, len(self.variance)
        each = np.bincount(arms, counts[self._probes.owner], minlength=n)
        return each.astype(np.int64), np.asarray(np.bincount(arms, sums, minlength=n), dtype=float)


def _listed(probes: Probes, n_arms: int) -> tuple[FloatArray, dict[bytes, int]]:
    """The variance of a reading of each arm, and which probe reads the arms of each play."""
    arms = probes.rows.indices
    variance = np.zeros(n_arms)
    variance[arms] = probes.noise_scale**2
    if (variance[arms] != probes.noise_scale**2).any() or (probes.rows.data != 1).any():
        raise ProblemError("readings of one arm must have the same noise scale in all plays")
    reads = np.zeros((len(probes), n_arms))
    reads[probes.owner, arms] = 1.0
    return variance, {row.tobytes(): k for k, row in enumerate(reads)}
