"""The run that all sequential gap policies share: leader, rival, arm; one measurement at a time, or many."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense, divided
from surepick.core.evidence import Evidence
from surepick.core.policy import known_noise_scale
from surepick.core.problem import Problem
from surepick.core.run import Measure, Run, Standing, Stop
from surepick.errors import ParameterError
from surepick.kernels import Feed, unchanged
from surepick.policies.gap import radius as radii

if TYPE_CHECKING:
    from surepick.policies.sound import WithinPolicy


class GapRun(Run):
    """A run of a gap policy: each arm once, then leader, rival and arm by `rounds`.

    - radius, arm_rule: when to stop, and which arm to measure ("gap", "naive" or "cycle").
    - every_arm_first: also measure the arms on which all plans agree, as the paper does.

    It is changed by `absorb` and `drive` alone. `drive` takes many simulated measurements at once,
    with the decisions that decide-measure-absorb takes.
    """

    def __init__(
        self,
        problem: Problem,
        policy: WithinPolicy,
        radius: radii.Radius,
        arm_rule: str,
        *,
        every_arm_first: bool = False,
    ) -> None:
        """Set out the plans, the arms and the rule as arrays and numbers that compiled loops take."""
        from surepick.policies.gap import rounds  # imports Numba, which takes half a second

        self._rounds, self._policy, self._radius = rounds, policy, radius
        n, code = problem.n_arms, radius.code
        # the arms that are measured at all
        self._used: IntArray = np.flatnonzero(problem.relevant | every_arm_first).astype(np.int64)
        # all entries, both ways round, so that compiled loops read either along memory
        self._rows: FloatArray = np.ascontiguousarray(as_dense(problem.oriented), dtype=float)
        self._columns: FloatArray = np.ascontiguousarray(self._rows.T)
        n_plans, n_differ = problem.n_plans, int(problem.relevant.sum())
        self._base = radii.support_base(radius, n_plans, n_differ, policy.delta)
        # how many events the union bound of the level is over: arms, plans, or pairs with the best plan
        n_events = {radii.RECTANGLE: n_differ, radii.PUBLISHED: n_plans}.get(code, n_plans - 1)
        self._rule = rounds.Rule(
            code=code,
            arm_rule=rounds.ARM_RULES.index(arm_rule),
            mixture=code in (radii.NORMAL_MIXTURE, radii.NORMAL_MIXTURE_JOINT),
            paired=code in (radii.NORMAL_MIXTURE, radii.KAUFMANN_KOOLEN),
            epsilon=float(policy.epsilon),
            log_delta=math.log(policy.delta),
            log_union=math.log(n_events),
        )
        self._arms = rounds.Arms(
            counts=np.zeros(n, dtype=np.int64),
            total=np.zeros(n),
            mean=np.zeros(n),
            weight=np.zeros(n),
            term=np.zeros(n),
            gain=np.zeros(n),
            variance=known_noise_scale(problem) ** 2,
            cost=problem.costs.astype(float),
            reach=np.abs(self._rows).max(axis=0),
        )
        self._rivals = rounds.Rivals(*np.zeros((3, n_plans)))
        # no leader, rival or arm yet, and nothing measured
        self._now = rounds.Now(-1, -1, -1, False, 0, 0, 0, 0.0, 0.0, 0.0)
        self._no_change = unchanged(n)  # the feed for draws that are measurements already

    @property
    def is_started(self) -> bool:
        """Whether the first measurement of every arm is in."""
        return self._now.n_measured > 0

    @property
    def evidence(self) -> Evidence:
        """All that the run has absorbed."""
        return Evidence(self._arms.counts.copy(), self._arms.total.copy())

    # deciding

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """Return every arm once at first; then the arm to measure, or the answer."""
        if self._now.is_stopped:
            return Stop(int(self._now.leader))
        counts = np.zeros(len(self._arms.counts), dtype=np.int64)
        counts[self._now.arm if self.is_started else self._used] = 1
        return Measure(counts)

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Add measurements; a single one of the arm that was asked for costs one pass over the plans."""
        arm = self._now.arm
        if self.is_started and counts[arm] == 1 and counts.sum() == 1:
            self.drive(self._no_change, np.array([sums[arm]], dtype=float))
            return
        self._arms.counts[:] += counts
        self._arms.total[:] += sums
        if not self._arms.counts[self._used].all():
            raise ParameterError("the first answer must hold a measurement of every arm that was asked for")
        self._now = self._now._replace(n_measured=int(self._arms.counts.sum()), is_stopped=False)
        self._compare_all(recompute=True)

    def drive(self, feed: Feed, draws: FloatArray) -> int:
        """Measure and decide, one draw a round, until the stop; return how many draws were used."""
        n_used = 0
        while n_used < len(draws) and not self._now.is_stopped:
            self._now, n, is_due = self._rounds.play_rounds(
                self._columns,
                self._rows,
                self._used,
                self._arms,
                self._rivals,
                self._rule,
                self._now,
                feed,
                draws[n_used:],
            )
            n_used += int(n)
            is_refresh_due = self._now.n_measured >= self._now.refresh_at
            if is_due or is_refresh_due:
                self._compare_all(recompute=is_refresh_due)
        return n_used

    def _compare_all(self, *, recompute: bool) -> None:
        """Set leader, rival, arm and stop by one pass over all plans.

        The plan with the largest estimate leads, and its rival is the plan with the largest upper bound. The
        run stops if that bound is within epsilon of the leader. With `recompute`, means and estimates are
        first computed from counts and sums. A stop needs that: accumulated rounding must not cause it.
        """
        rounds, rule, arms, rivals = self._rounds, self._rule, self._arms, self._rivals
        if recompute:
            self._refresh()
        now = self._now
        leader = int(rivals.value.argmax())
        rounds.compare(self._columns, self._rows[leader], arms, rivals, rule)
        if self._base.any():  # base(|supp y|) of the threshold, which `compare` leaves out
            support_sizes = (self._columns != self._rows[leader][:, None]).sum(axis=0)
            rivals.threshold[:] += self._base[support_sizes]
        level = float(rounds.level_of(rule, now.n_measured, now.joint, now.lam))
        _, rival = rounds.score(level, rivals, leader, rule)
        width = float(rounds.radius_of(rule, rivals, rival, level))
        excess = rounds.rival_excess(arms, self._used, rivals, rule, leader, rival, width)
        stops = bool(excess <= rule.epsilon)
        if stops and not recompute:
            self._compare_all(recompute=True)
            return
        arm = int(rounds.choose_arm(arms, self._used, self._rows[leader], self._rows[rival], rule))
        self._now = now._replace(
            leader=leader, rival=int(rival), arm=arm, is_stopped=stops, level=level, radius=width
        )

    def _refresh(self) -> None:
        """Compute arms and values from the counts and sums, and choose the next time to do so."""
        n, n_used = self._now.n_measured, len(self._used)
        lam = radii.lam_index(n / n_used)
        joint = float(self._rounds.update_arms(self._arms, self._used, self._rule, lam))
        refresh_at = n + self._rounds.REFRESH
        if self._rule.mixture:  # lam_index rounds half-way between two powers of 4
            next_lam_at = int(radii.COUNTS_PER_LAM * n_used * 2.0 * radii.lam_value(lam)) + 1
            refresh_at = min(refresh_at, next_lam_at)
        self._now = self._now._replace(lam=lam, joint=joint, refresh_at=refresh_at)
        # added up arm by arm: the same on every machine
        self._rivals.value[:] = (self._columns * self._arms.mean[:, None]).sum(axis=0)

    # looking, which changes nothing

    def standing(self) -> Standing:
        """Return leader, rival, estimated gap and its radius; for the mixture radii also the risk."""
        if not self.is_started:
            return Standing()
        now, value = self._now, self._rivals.value
        leader, rival = int(now.leader), int(now.rival)
        gap = float(value[leader] - value[rival])
        remaining = self._remaining(leader) if self._radius.sound else None
        good = remaining if remaining is not None and len(remaining) == 1 else ()
        return Standing(leader, rival, gap, float(now.radius), self._risk(leader), remaining, good)

    def _remaining(self, leader: int) -> tuple[int, ...]:
        """Return the plans whose gap to the leader is within its radius; sound radii hold for all pairs."""
        value, variance, threshold = self._rivals
        if self._rule.code == radii.RECTANGLE:
            width = math.sqrt(2.0 * self._now.level) * variance
        else:
            width = np.sqrt(np.maximum(2.0 * variance * (threshold + self._now.level), 0.0))
        gathered = self._rounds.gathered_rounding(self._arms, self._used)
        width = width + np.where(gathered > self._rounds.NEGLIGIBLE * width, gathered, 0.0)
        stays = value + width - value[leader] > self._policy.epsilon
        stays[leader] = True
        return tuple(np.flatnonzero(stays).tolist())

    def _risk(self, leader: int) -> float | None:
        """Return the smallest delta at which the rule would stop now: valid at any time, by mixture radii."""
        evidence = self.log_evidence()
        if evidence is None:
            return None
        evidence[leader] = np.inf
        return float(min(1.0, np.exp(-evidence.min())))

    def log_evidence(self) -> FloatArray | None:
        """Return log(1/delta) at the smallest delta that rules out each plan now, for the mixture radii."""
        if not (self.is_started and self._rule.mixture):
            return None
        value, variance, threshold = self._rivals
        gathered = self._rounds.gathered_rounding(self._arms, self._used)
        gap = value[self._now.leader] - value + self._policy.epsilon
        gap = np.maximum(gap - np.where(gathered > self._rounds.NEGLIGIBLE * gap, gathered, 0.0), 0.0)
        known = divided(gap**2, 2.0 * variance)
        return np.asarray(known - (threshold + self._now.level) + math.log(1.0 / self._policy.delta))

    # state

    @property
    def _changing(self) -> list[Any]:
        """All arrays that measurements change."""
        arms = self._arms
        return [arms.counts, arms.total, arms.mean, arms.weight, arms.term, arms.gain, *self._rivals]

    def state(self) -> dict[str, Any]:
        """Return copies of all that changes."""
        return {"arrays": [array.copy() for array in self._changing], "now": list(self._now)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that `state` returned."""
        for own, kept in zip(self._changing, state["arrays"], strict=True):
            if own.shape != kept.shape:
                raise ValueError(f"an array of the state has shape {kept.shape}, and {own.shape} in the run")
            own[...] = kept
        self._now = self._rounds.Now(*state["now"])
