"""Error rates of BetGapE on hard families, and the cheat that the same test must catch.

`tests/nets/test_soundness.py` has near ties of every question; benchmarks/soundness.py has all of these
families with 2,000 runs and more.
"""

import pytest

from hard_families import FAMILIES, Peeking, count_errors, is_refuted
from surepick.policies.betting.bet_gap_e import BetGapE

RUNS = 40
NOT_IN_THE_NET = ["coin tosses", "very unequal scales", "leads that change often", "epsilon and many leads"]


@pytest.mark.parametrize("name", NOT_IN_THE_NET)
def test_keeps_its_promise(name):
    wrong, _ = count_errors(FAMILIES[name], BetGapE, RUNS)
    assert not is_refuted(wrong, RUNS, FAMILIES[name].delta)


def test_bets_chosen_after_the_batch_are_caught():
    family = FAMILIES["two arms, gap .02, delta .05"]
    wrong, _ = count_errors(family, Peeking, RUNS)
    assert is_refuted(wrong, RUNS, family.delta)
