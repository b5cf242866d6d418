"""Wealth of bets: uninvested cash, and accounts whose rows hold components. The theorem is in `inference`.

All amounts are logs. The wealth of a row is cash + its components, in the accounts that an answer may use;
its largest value so far, the peak, is the evidence against the row (Ville's inequality bounds the peak).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.inference.factors import log_sum_exp

EMPTY = -1e300  # log of an empty component: finite, so that differences of logs stay numbers


@dataclass(eq=False)
class Account:
    """Rows of components. Changed by stakes, by factors and by `Wealth.count`."""

    components: FloatArray  # (n_rows, n_components), logs; the last one is the adaptive mixture
    current: FloatArray  # (n_rows,) log wealth now, with cash and the accounts it is counted with
    peak: FloatArray  # (n_rows,) the largest log wealth so far
    next_stake: float = 0.0  # measurements at which it may be staked again; 0 before the first stake

    @classmethod
    def empty(cls, n_rows: int, n_components: int) -> Account:
        """Return an account in which nothing is staked."""
        return cls(np.full((n_rows, n_components), EMPTY), np.zeros(n_rows), np.zeros(n_rows))

    def stake(self, log_amount: FloatArray | float, columns: slice = slice(None)) -> None:
        """Add this amount, one for all rows or by row and component, to these components."""
        self.components[:, columns] = np.logaddexp(self.components[:, columns], log_amount)

    def least_staked(self) -> float:
        """Return the log of the least that the components of any row hold."""
        return float(log_sum_exp(self.components).min())

    def append(self, n: int, log_amount: float) -> None:
        """Add n rows whose components hold this amount in equal parts."""
        k = self.components.shape[1]
        each = log_amount - math.log(k) if log_amount > EMPTY / 2 else EMPTY
        self.components = np.vstack([self.components, np.full((n, k), each)])
        self.current, self.peak = np.append(self.current, np.zeros(n)), np.append(self.peak, np.zeros(n))


@dataclass(eq=False)
class Wealth:
    """The uninvested cash and the accounts that are staked from it."""

    threshold: float  # log(1 / delta)
    most_accounts: int = 10**9  # the least recently used one is forgotten, which only loses wealth
    log_cash: float = 0.0
    accounts: dict[str | int, Account] = field(default_factory=dict)

    def account(self, key: str | int, n_rows: int, n_components: int) -> Account:
        """Return this account, opened if there is none, as the most recently used."""
        found = self.accounts.pop(key, None)
        if found is None:
            found = Account.empty(n_rows, n_components)
            if len(self.accounts) >= self.most_accounts:
                del self.accounts[next(name for name in self.accounts if name not in KEPT)]
        self.accounts[key] = found
        return found

    def withdraw(self, share: float) -> float:
        """Take this share of the cash, to be staked; return the log of the amount."""
        amount = self.log_cash + math.log(share)
        self.log_cash += math.log1p(-share)
        return amount

    def count(self, rows: IntArray, *accounts: Account) -> None:
        """Update wealth and peak of these rows of the last account, for answers that may use all of these."""
        total, last = self.total(rows, *accounts), accounts[-1]
        last.current[rows] = total
        last.peak[rows] = np.maximum(last.peak[rows], total)

    def total(self, rows: IntArray, *accounts: Account) -> FloatArray:
        """Return the log of the cash and the components of these rows in all of these accounts."""
        parts = [account.components[rows] for account in accounts]
        logs = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        top = np.maximum(logs.max(axis=1), self.log_cash)
        return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1) + np.exp(self.log_cash - top)))


COMMON = "common"  # the account that answers with any leader may use
WAITING = "waiting"  # cash of each row that waits to be staked on a leader
KEPT = (COMMON, WAITING)  # never forgotten
