"""The run that all sequential gap policies share: the compiled race, one measurement at a time or many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.evidence import Evidence
from surepick.core.policy import Measure, Standing, Stop, known_noise_scale
from surepick.core.problem import Problem
from surepick.errors import ParameterError
from surepick.policies.gap import radius as radii

if TYPE_CHECKING:
    from surepick.kernels.feed import Feed
    from surepick.policies.gap.rounds import Race

ARM_RULES = {"gap": 0, "naive": 1, "cycle": 2, "ratio": 3}  # as in kernels: GAP, NAIVE, CYCLE, RATIO


@dataclass(frozen=True)
class GapRule:
    """What tells one gap policy from another: when to stop, and which arm to measure."""

    delta: float
    epsilon: float
    radius: radii.Radius
    arm_rule: str
    every_arm_first: bool  # also the arms on which all plans agree, as the paper does
    norm_bound: float = 0.0  # on the true means in units of the noise scales, for the ridge radius


class GapRun:
    """A run of a gap policy: each arm once, then lead, rival and arm by `kernels`.

    The state is mutable and belongs to whoever started the run. `drive` is the compiled twin of
    decide-measure-absorb; both end in the same machine code and take the same decisions.
    """

    def __init__(self, problem: Problem, rule: GapRule) -> None:
        from surepick.kernels import feed
        from surepick.policies.gap import rounds as kernels

        kernels.warm_up()
        self._kernels = kernels
        self._problem = problem
        self._rule = rule
        scale = known_noise_scale(problem)
        every = np.ones(problem.n_arms, dtype=bool) if rule.every_arm_first else problem.relevant
        arms = np.flatnonzero(every).astype(np.int64)
        base = radii.support_base(rule.radius, problem.n_plans, _largest_support(problem), rule.delta)
        self._field = kernels.make_field(problem, scale**2, arms, base)
        self._race = kernels.make_race(
            problem,
            code=rule.radius.code,
            rule=ARM_RULES[rule.arm_rule],
            delta=rule.delta,
            epsilon=rule.epsilon,
            norm_bound=rule.norm_bound,
        )
        zeros, ones, none = np.zeros(problem.n_arms), np.ones(problem.n_arms), np.zeros(0)
        self._as_is = feed.Feed(feed.AFFINE, zeros, ones, none, np.zeros(1, dtype=np.int64))

    @property
    def started(self) -> bool:
        """Whether the first measurement of every arm is in."""
        return bool(self._race.integers[self._kernels.MEASURED])

    @property
    def evidence(self) -> Evidence:
        """All that the run has absorbed."""
        return Evidence(self._race.counts.copy(), self._race.sums.copy())

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """Every arm once at first; then the one arm that the compiled loop chose, or the stop."""
        integers, kernels = self._race.integers, self._kernels
        if integers[kernels.STOPPED]:
            return Stop(int(integers[kernels.LEAD]))
        counts = np.zeros(self._problem.n_arms, dtype=np.int64)
        counts[integers[kernels.ARM] if self.started else self._field.arms] = 1
        return Measure(counts)

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in measurements; one measurement costs one pass over the plans."""
        arm = self._race.integers[self._kernels.ARM]
        if self.started and counts[arm] == 1 and counts.sum() == 1:
            self.drive(self._as_is, np.array([sums[arm]], dtype=float))
            return
        self.recall(counts, sums)
        if not self.started:
            raise ParameterError("the first answer must hold a measurement of every arm that was asked for")

    @property
    def recalls_unasked(self) -> bool:
        """Every radius holds for all counts at once, however the arms were chosen: see docs/guarantees.md."""
        return True

    def recall(self, counts: IntArray, sums: FloatArray) -> None:
        """Pool any measurements with the others, and decide if every arm has one."""
        race, kernels = self._race, self._kernels
        race.counts[:] += counts
        race.sums[:] += sums
        if race.counts[self._field.arms].all():
            race.integers[kernels.MEASURED] = race.counts.sum()
            race.integers[kernels.STOPPED] = 0  # a stop is decided anew, with all that is known
            kernels.settle(self._field, race, self._problem.n_plans)

    def drive(self, feed: Feed, draws: FloatArray) -> int:
        """Measure and decide in compiled code, one draw a round; how many draws were used."""
        return int(self._kernels.advance(self._field, self._race, feed, draws, self._problem.n_plans))

    def standing(self) -> Standing:
        """The lead, the rival, the estimated gap and its radius; for the mixture radii also the risk."""
        race, kernels = self._race, self._kernels
        if not self.started:
            return Standing()
        lead, rival = int(race.integers[kernels.LEAD]), int(race.integers[kernels.RIVAL])
        gap = float(race.value[lead] - race.value[rival])
        radius = float(race.floats[kernels.SCORE] - race.value[rival])
        return Standing(lead, rival, gap, radius, self._risk(lead))

    def state(self) -> dict[str, Any]:
        """The race."""
        return race_state(self._race)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with this race."""
        refill(self._race, state)

    def _risk(self, lead: int) -> float | None:
        """The smallest delta at which the rule would stop now: valid at any time, for the mixture radii."""
        evidence = self.log_evidence()
        if evidence is None:
            return None
        evidence[lead] = np.inf
        return float(min(1.0, np.exp(-evidence.min())))

    def log_evidence(self) -> FloatArray | None:
        """log(1/delta) at the smallest delta that would rule out each plan now, for the mixture radii."""
        mixtures = (radii.NORMAL_MIXTURE, radii.NORMAL_MIXTURE_JOINT)
        if not self.started or self._rule.radius.code not in mixtures:
            return None
        lead = int(self._race.integers[self._kernels.LEAD])
        race, kernels, n_plans = self._race, self._kernels, self._problem.n_plans
        spread = race.spread[:n_plans] + race.floats[kernels.OFF_SPREAD]
        threshold = race.pair[:n_plans] + race.floats[kernels.OFF_PAIR] + race.floats[kernels.LEVEL]
        gap = np.maximum(race.value[lead] - race.value[:n_plans] + self._rule.epsilon, 0.0)
        known = np.divide(gap**2, 2.0 * spread, out=np.zeros(n_plans), where=spread > 0)
        return np.asarray(known - threshold - np.log(self._rule.delta))


def race_state(race: Race) -> dict[str, Any]:
    """The arrays of a race without its scratch."""
    return arrays_of(race, [name for name in race._fields if name != "support"])


def arrays_of(record: Any, names: Sequence[str]) -> dict[str, Any]:
    """Copies of these arrays of a record."""
    return {name: getattr(record, name).copy() for name in names}


def refill(record: Any, state: Mapping[str, Any]) -> None:
    """Put the arrays that `arrays_of` gave back into a record of the same shapes."""
    for name, array in state.items():
        held = getattr(record, name)
        if held.shape != array.shape:
            raise ValueError(f"{name} has shape {array.shape} in the state and {held.shape} in the run")
        held[...] = array


def _largest_support(problem: Problem) -> int:
    """An upper bound on how many arms two plans can differ in."""
    if isinstance(problem.plans, np.ndarray):
        return problem.n_arms
    return min(problem.n_arms, 2 * int(np.diff(problem.plans.indptr).max()))
