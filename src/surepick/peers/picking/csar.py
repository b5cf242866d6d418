"""CSAR: accept or reject one arm a phase, the one whose other fate would cost most.

Paper: Chen, Lin, King, Lyu & Chen (2014), Combinatorial Pure Exploration of Multi-Armed Bandits, for sets of
arms: Combinatorial Successive Accept Reject. On plans of zeros and ones, to fix an arm at the lead's amount
is to accept or to reject it, so that a run is one of CSA (`csa`), its extension to real plans.

Assumption, proof status, deviations and cost of a phase: those of CSA.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surepick.core.problem import Problem
from surepick.core.zeros_and_ones import check_zeros_and_ones
from surepick.peers.picking.csa import AssigningRun
from surepick.peers.picking.phases import BudgetPolicy


@dataclass(frozen=True)
class CSAR(BudgetPolicy):
    """Combinatorial Successive Accept Reject, for plans that are sets of arms.

    `budget` is divided over the phases; without one it is what the loop or the session has.

    >>> import surepick as sp
    >>> problem = sp.problems.top_k(["a", "b", "c", "d"], 2, noise_scale=1)
    >>> truth = sp.Gaussian([1.0, 0.9, 0.1, 0.0])
    >>> sp.simulate(problem, sp.policies.CSAR(), truth, budget=400).lead_name
    'a + b'
    """

    name: ClassVar[str] = "CSAR"

    def start(self, problem: Problem) -> AssigningRun:
        """A fresh run on this problem, whose plans must be sets of arms."""
        check_zeros_and_ones(
            problem, self.name, "an arm is accepted or rejected; use CSA, which takes any numbers"
        )
        return AssigningRun(problem, self.name, self.budget)
