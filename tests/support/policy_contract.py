"""Every policy of the package as cases of the contract. A new policy adds its cases to `CASES`.

Policies that take no list of plans are `OF_POLYTOPES`, which the contract gives hulls of the same plans.
"""

import itertools

import numpy as np

import surepick as sp
from surepick.core.policy import Policy
from surepick.policies import CLUCB, RAGE, Challenge, GenTSExplore, LinGapE, Peace, Pick, TSExplore, Uniform
from surepick.testing import PolicyContract

CASES: list[Policy] = [
    sp.BetGapE(delta=0.1),
    sp.BetGapE(delta=0.1, max_batch=3),
    sp.BetGapE(delta=0.1, epsilon=0.05),
    sp.CombGapE(delta=0.1),
    sp.CombGapE(delta=0.1, radius="normal-mixture-joint"),
    sp.CombGapE(delta=0.1, radius="kaufmann-koolen"),
    sp.CombGapE(delta=0.1, radius="published"),
    sp.CombGapE(delta=0.1, radius="heuristic"),
    sp.CombGapE(delta=0.1, arm_rule="naive"),
    Uniform(delta=0.1),
    sp.policies.SignRace(delta=0.1),
    sp.policies.Tied(delta=0.1, epsilon=0.05),
    CLUCB(delta=0.1),
    LinGapE(delta=0.1, norm_bound=3.0),
    GenTSExplore(delta=0.1),
    RAGE(delta=0.1),
    RAGE(delta=0.1, variant="authors"),
    TSExplore(delta=0.1),
    Peace(delta=0.1),
    Peace(delta=0.1, max_gap=5.0),
    sp.policies.FWS(delta=0.1, radius="heuristic"),
    sp.policies.LinGame(delta=0.1, radius="heuristic"),
    sp.policies.XYAdaptive(delta=0.1),
]


# For plans that are sets of arms.
OF_SETS: list[Policy] = [sp.policies.GenLUCB(delta=0.1), sp.policies.NaiveGapElim(delta=0.1)]
# For plans that are the bases of a matroid.
OF_MATROIDS: list[Policy] = [sp.policies.ExactExpGap(delta=0.1)]
# For plans that are single arms.
OF_SINGLE_ARMS: list[Policy] = [
    sp.policies.EBTCI(delta=0.1),
    sp.policies.KN(delta=0.1, zone=0.05, first=5),
    sp.policies.LUCB(delta=0.1),
    sp.policies.PolyALBA(delta=0.1),  # or where plans are measured
    sp.policies.Rinott(delta=0.1, zone=0.05, first=5),
    sp.policies.TTTS(delta=0.1, radius="heuristic"),
    sp.policies.TTUCB(delta=0.1, radius="normal-mixture"),
    sp.policies.TrackAndStop(delta=0.1),
    sp.policies.UGapE(delta=0.1),
]
# For plans that are played; each of their arms is read.
OF_PLAYS: list[Policy] = [sp.policies.PFWS(delta=0.1), sp.policies.CombGame(delta=0.1)]
# Which measures single arms too.
PLAYING_TOO: list[Policy] = [sp.BetGapE(delta=0.1), sp.BetGapE(delta=0.1, epsilon=0.05, max_batch=3)]
# Only a budget ends their runs, the session's or their own.
WITHOUT_DELTA: list[Policy] = [
    Pick(),
    Pick(epsilon=0.1, max_batch=3),
    sp.policies.CSA(budget=300),
    sp.policies.CSAR(budget=300),
    sp.policies.MinimaxCombSAR(budget=300),
    sp.policies.OCBA(),
    sp.policies.SuccessiveRejects(budget=300),
]
# They need an incumbent and may answer with a better plan that is not the best: see test_challenge.py.
OF_INCUMBENTS: list[Policy] = [Challenge(0, delta=0.1), Challenge(0, delta=0.1, epsilon=0.05, max_batch=3)]
OF_POLYTOPES: list[Policy] = [
    sp.BetGapE(delta=0.12),  # a delta of their own tells them from those for lists
    sp.BetGapE(delta=0.12, max_batch=3),
    sp.BetGapE(delta=0.12, epsilon=0.05),
    sp.policies.CTnS(delta=0.1, radius="heuristic"),
    sp.policies.CGE(delta=0.1, radius="heuristic"),
]


FOR_MATROIDS = tuple(policy.name for policy in OF_MATROIDS)
FOR_SETS = ("CSAR", "TSExplore", *(policy.name for policy in OF_SETS), *FOR_MATROIDS)
FOR_PLAYS = tuple(policy.name for policy in OF_PLAYS)
FOR_SINGLE_ARMS = ("OCBA", "SuccessiveRejects", *(policy.name for policy in OF_SINGLE_ARMS))


def two_of(n):
    """All pairs of n arms, which are the bases of a matroid."""
    return np.array([[float(s in pair) for s in range(n)] for pair in itertools.combinations(range(n), 2)])


WITH_A_ZONE = ("KN", "Rinott")
BY_POSITION = (
    *("Uniform", "RAGE", "CSA", "CSAR", "GenLUCB", "FWS", "LinGame", "PolyALBA", "CTnS", "CGE"),
    "XYAdaptive",
)
# Peers are compared with, not offered as answers. Laws that are about the engine, or that their shared loops
# already show for one of them, are left to the package's own policies.
NOT_FOR_PEERS = {
    "test_the_same_seed_gives_the_same_outcome_and_step_by_step_too",
    "test_a_restored_run_continues_as_if_it_had_not_stopped",
    "test_an_unknown_noise_scale_is_a_clear_error",
}


def is_peer(policy):
    """Whether this policy, or class of one, is a method of others."""
    kind = policy if isinstance(policy, type) else type(policy)
    return kind.__module__.startswith("surepick.peers")


class OwnContract(PolicyContract):
    """What the package's policies cannot do, and which laws matter for a peer."""

    def seeds(self, policy):
        return (0,) if is_peer(policy) else super().seeds(policy)

    def has_law(self, policy, law):
        return not (is_peer(policy) and law in NOT_FOR_PEERS)

    def instance(self, seed, policy):
        if policy.name not in FOR_MATROIDS:
            return super().instance(seed, policy)
        rng = np.random.default_rng([7, seed])
        return rng.permutation(two_of(4)), rng.normal(size=4)

    def allowed(self, policy):
        """What each may do; draws go by position, as do turns, equal counts, parts of a batch, last bits."""
        name, found = policy.name, set()
        batches = getattr(policy, "max_batch", None) or (
            policy in OF_POLYTOPES and getattr(policy, "epsilon", 0.0)
        )
        by_turns = policy.randomized or name in BY_POSITION or getattr(policy, "arm_rule", "") == "naive"
        found |= {"order of arms"} if batches or by_turns else set()
        found |= {"order of plans"} if name in ("SignRace", "TTTS", "TrackAndStop") else set()
        found |= {"sets"} if name in FOR_SETS else set()
        found |= {"single arms"} if name in FOR_SINGLE_ARMS else set()
        found |= {"ties"} if name in WITH_A_ZONE else set()
        found |= {"shared arms"} if getattr(policy, "radius", "") == "published" else set()  # as the paper
        return found
