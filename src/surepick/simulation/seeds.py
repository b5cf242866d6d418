"""Where randomness comes from: everything is derived from (seed, stream, round), so that nothing is kept."""

from __future__ import annotations

import numpy as np

POLICY_STREAM, ENVIRONMENT_STREAM = 0, 1


def round_rng(seed: int, n_round: int) -> np.random.Generator:
    """Return the generator of this round's decision: derived from (seed, round), so nothing has to be kept.

    >>> round_rng(7, 3).random() == round_rng(7, 3).random()
    True
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(POLICY_STREAM, n_round)))


def environment_rng(seed: int) -> np.random.Generator:
    """Return the generator of a simulation's measurements."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(ENVIRONMENT_STREAM,)))
