"""Error rates of BetGapE on hard families, and the cheat that the same test must catch.

benchmarks/soundness.py is the same with 2,000 runs and more a family.
"""

import pytest

from hard_families import FAMILIES, Peeking, count_errors, is_refuted
from surepick.policies.betting.bet_gap_e import BetGapE

RUNS = 40


@pytest.mark.parametrize("name", FAMILIES)
def test_keeps_its_promise(name):
    wrong, _ = count_errors(FAMILIES[name], BetGapE, RUNS)
    assert not is_refuted(wrong, RUNS, FAMILIES[name].delta)


def test_bets_chosen_after_the_batch_are_caught():
    family = FAMILIES["two arms, gap .02, delta .05"]
    wrong, _ = count_errors(family, Peeking, RUNS)
    assert is_refuted(wrong, RUNS, family.delta)
