"""The one suite of laws that every policy must pass. A new policy adds its cases to `CASES`."""

from dataclasses import dataclass, field

import numpy as np

import surepick as sp
from surepick.policy import Measure, Policy, Stop
from surepick.simulation import CompiledRun, SeededRun, round_rng

CASES: list[Policy] = [
    sp.BetGapE(delta=0.1),
    sp.BetGapE(delta=0.1, max_batch=3),
    sp.OBet(delta=0.1),
    sp.OBet(delta=0.1, max_batch=3),
    sp.CombGapE(delta=0.1),
    sp.CombGapE(delta=0.1, radius="normal-mixture-joint"),
    sp.CombGapE(delta=0.1, radius="kaufmann-koolen"),
    sp.CombGapE(delta=0.1, radius="published"),
    sp.CombGapE(delta=0.1, arm_rule="naive"),
    sp.Uniform(delta=0.1),
    sp.CLUCB(delta=0.1),
    sp.LinGapE(delta=0.1, norm_bound=3.0),
    sp.LinGapE(delta=0.1, norm_bound=3.0, arm_rule="ratio"),
    sp.GenTSExplore(delta=0.1),
    sp.RAGE(delta=0.1),
    sp.RAGE(delta=0.1, variant="authors"),
    sp.TSExplore(delta=0.1),
    sp.Peace(delta=0.1),
    sp.Peace(delta=0.1, max_gap=5.0),
]


@dataclass(eq=False)
class Tape:
    """Arm s gives its own fixed sequence of measurements, whatever is asked in between."""

    means: np.ndarray
    keys: list[int]  # arm s reads tape keys[s], so that a relabelled arm keeps its tape
    scale: float = 1.0
    place: dict[int, int] = field(default_factory=dict)

    def measure(self, counts, rng):
        sums = np.zeros(len(counts))
        for s in np.flatnonzero(counts):
            start = self.place.get(s, 0)
            self.place[s] = start + int(counts[s])
            noise = np.random.default_rng(self.keys[s]).standard_normal(self.place[s])[start:]
            sums[s] = counts[s] * self.means[s] + self.scale * noise.sum()
        return sums


class StepByStep:
    """An environment without its compiled form, so that the loop must go step by step."""

    def __init__(self, environment):
        self.means = environment.means
        self.measure = environment.measure


def decisions(policy, problem, environment, n_rounds, seed=0):
    """The first requests of a run as tuples of counts, ending with ("stop", plan) if it stops."""
    run, taken = policy.start(problem), []
    rng = np.random.default_rng(99)
    for n_round in range(n_rounds):
        decision = run.decide(round_rng(seed, n_round))
        if isinstance(decision, Stop):
            return [*taken, ("stop", decision.plan)]
        assert isinstance(decision, Measure)
        taken.append(tuple(decision.counts.tolist()))
        run.absorb(decision.counts, environment.measure(decision.counts, rng))
    return taken


def is_compiled(policy, problem):
    return isinstance(policy.start(problem), CompiledRun | SeededRun)


def depends_on_the_order_of_arms(policy):
    """Draws go to arms by position, as do turns, equal counts, parts of a batch, last bits of a design."""
    if getattr(policy, "max_batch", None):
        return True
    return (
        policy.randomized or policy.name in ("Uniform", "RAGE") or getattr(policy, "arm_rule", "") == "naive"
    )


def depends_on_the_order_of_plans(policy):
    """Draws go to plans by position where only the winner of many draws is drawn."""
    return getattr(policy, "draws", "") == "winner"


def needs_zeros_and_ones(policy):
    return policy.name == "TSExplore"
