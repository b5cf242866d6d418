"""Where randomness comes from: everything is derived from (seed, stream, round), so that nothing is kept."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import IntArray

POLICY_STREAM, ENVIRONMENT_STREAM = 0, 1


def round_rng(seed: int, n_round: int) -> np.random.Generator:
    """The generator of this round's decision: derived from (seed, round), so nothing has to be kept.

    >>> round_rng(7, 3).random() == round_rng(7, 3).random()
    True
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(POLICY_STREAM, n_round)))


def round_entropy(seed: int) -> IntArray:
    """What compiled code needs to draw as `round_rng` does: see `round_words.first_words`."""
    from surepick.kernels.round_words import entropy_of

    return entropy_of(seed, POLICY_STREAM)


def environment_rng(seed: int) -> np.random.Generator:
    """The generator of a simulation's measurements."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(ENVIRONMENT_STREAM,)))
