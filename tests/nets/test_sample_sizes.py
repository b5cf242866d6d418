"""No family needs more measurements than it did, beyond the error of the comparison."""

import json

import pytest

from sample_sizes import FAMILIES, KEPT, sample_size

STORED = json.loads(KEPT.read_text(encoding="utf-8"))


def test_every_family_is_stored():
    assert set(FAMILIES) == set(STORED)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_mean_cost_is_as_stored(name):
    """On the same tapes a change of method moves the mean by less than the spread over tapes does.

    Half of a standard error is noise of small changes; beyond it the cost, better or worse, is looked at and
    stored anew with `python tests/nets/sample_sizes.py --write`.
    """
    found, stored = sample_size(name), STORED[name]
    assert abs(found["mean"] - stored["mean"]) <= 0.5 * stored["error"]
