"""Cash and accounts: stakes move wealth, and create none."""

import math

import numpy as np
import pytest

from surepick.inference.wealth import COMMON, EMPTY, Wealth

ROWS = np.arange(3)


def test_a_stake_changes_no_wealth():
    wealth = Wealth(3.0)
    account = wealth.account(COMMON, 3, 4)
    account.stake(wealth.withdraw(0.7) - math.log(4))
    wealth.count(ROWS, account)
    assert account.current == pytest.approx(np.zeros(3), abs=1e-12)
    account.components[1] += math.log(10.0)
    wealth.count(ROWS, account)
    assert np.exp(account.current) == pytest.approx([1.0, 7.3, 1.0])


def test_the_peak_stays_and_the_wealth_falls():
    wealth = Wealth(3.0)
    account = wealth.account(COMMON, 3, 1)
    account.stake(wealth.withdraw(0.5))
    for step in (2.0, -4.0):
        account.components += step
        wealth.count(ROWS, account)
    assert np.exp(account.current) == pytest.approx(np.full(3, 0.5 + 0.5 * math.exp(-2)))
    assert np.exp(account.peak) == pytest.approx(np.full(3, 0.5 + 0.5 * math.exp(2)))


def test_answers_that_may_use_two_accounts_have_the_wealth_of_both():
    wealth = Wealth(3.0)
    common, own = wealth.account(COMMON, 3, 1), wealth.account(0, 3, 1)
    amount = wealth.withdraw(0.6)
    common.stake(amount + math.log(0.5))
    own.stake(amount + math.log(0.5))
    own.components[2] += math.log(3.0)
    wealth.count(ROWS, common, own)
    assert np.exp(own.current) == pytest.approx([1.0, 1.0, 1.6])


def test_the_least_recently_used_account_is_forgotten_and_the_common_one_never():
    wealth = Wealth(3.0, most_accounts=3)
    for key in (COMMON, 0, 1, 0, 2):
        wealth.account(key, 1, 1)
    assert set(wealth.accounts) == {COMMON, 0, 2}


def test_new_rows_hold_what_they_are_given():
    wealth = Wealth(3.0)
    account = wealth.account(COMMON, 2, 5)
    account.stake(math.log(0.2))
    account.append(1, account.least_staked())
    account.append(1, EMPTY)
    assert np.exp(account.components).sum(axis=1) == pytest.approx([1.0, 1.0, 1.0, 0.0])
