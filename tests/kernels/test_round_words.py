import numba
import numpy as np
import pytest
from scipy.stats import kstest

from surepick.kernels.round_words import entropy_of, first_words, normal, words_of
from surepick.simulation.seeds import POLICY_STREAM, round_rng


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32 + 5, 2**64 - 1, 2**130 + 17])
@pytest.mark.parametrize("n_round", [0, 1, 99_999, 2**32 - 1, 2**32, 2**40 + 3])
def test_the_words_are_those_of_numpys_generator(seed, n_round):
    out = np.zeros(4, dtype=np.uint64)
    first_words(entropy_of(seed, POLICY_STREAM), n_round, out)
    assert out.tolist() == words_of(round_rng(seed, n_round)).tolist()


@numba.njit
def _normals(words, n):
    out = np.empty(n)
    for i in range(n):
        out[i] = normal(words)
    return out


def test_normal_numbers_are_normal_out_to_the_tail():
    drawn = _normals(words_of(np.random.default_rng(1)), 2_000_000)
    assert kstest(drawn, "norm").pvalue > 1e-4
    tail = drawn[np.abs(drawn) > 3.6]
    assert abs(len(tail) - 2_000_000 * 3.182e-4) < 5 * np.sqrt(2_000_000 * 3.182e-4)
