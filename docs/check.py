"""Check an exported surepick log on its own: python check.py log.json

`surepick export -o log.json` writes the log. This program needs NumPy alone and shares no code with
surepick. It checks the chain of checksums, recomputes the wealth of every batch from the recorded leaders,
counts and values, and prints the guarantee (exit code 0), or what fails or is not covered (exit code 1).

Covered: lists of plans whose arms are measured one by one; the best plan, a plan within epsilon, keep or
replace; noise of a stated size, of bounded variance, of unknown size, or readings between bounds; known arms,
prior data, plans and arms that arrive, extra and removed values, a smaller delta, and a final batch unless
the noise is unknown. Everything else is not covered, and then it says so.

Why that is enough. Leader, rivals, counts, bet sizes and stakes of a batch are functions of what came before.
A bet multiplies the wealth of its row by a factor whose mean is at most 1 if the row's hypothesis is true:
"plan j is the best"; within epsilon "j is the best, and i is worse by more than epsilon"; keep "j is better
than the incumbent by more than epsilon"; replace "the challenger is no better". All that counts against the
truth is staked from one amount of 1, so that it never rises on average: it ever reaches 1/delta with
probability at most delta (Ville's inequality). Prior data guide the bets and never settle one.

Trusted: the assumption that is printed; values recorded as they were measured; a log that was not rewritten
as a whole (compare its last checksum with a copy).
"""

import hashlib
import json
import math
import sys
from pathlib import Path
from statistics import NormalDist

import numpy as np

GRID = 2.0 * 0.5 ** (np.arange(15) / 2)  # bet sizes, in deviations of a gap after one value of each arm
QUANTILES = np.array([NormalDist().inv_cdf((k + 0.5) / 12) for k in range(12)])
EMPTY, CERTAIN = (
    -1e300,
    700.0,
)  # log of nothing; evidence against a plan that is surely no better than another
FEW = 64  # plans: with more, within epsilon, leaders have accounts; see also `correction`
CAP, YOUNG_CAP = 0.75, 0.5  # the most that one bounded reading may take of a bet
POWERS = np.arange(1, 7)
SERIES = (-1.0) ** (POWERS - 1) / POWERS  # of log(1 + z); its last term keeps it below for z >= -CAP
SERIES[5] = (np.log1p(-CAP) + (CAP ** POWERS[:5] / POWERS[:5]).sum()) / CAP**6
np.seterr(divide="ignore", invalid="ignore")  # a gap without values has infinite variance, and no bet


def need(holds, words, verdict="FAILED"):
    if not holds:
        raise SystemExit(f"{verdict}: {words}")


def log_sum(x):
    top = x.max(axis=-1)
    return top + np.log(np.exp(x - top[..., None]).sum(axis=-1))


@np.vectorize
def log_normal_cdf(x):
    if x > -30:
        return math.log(0.5 * math.erfc(-x / math.sqrt(2)))
    series = math.log1p(-(x**-2) + 3 * x**-4 - 15 * x**-6)
    return -0.5 * x * x - math.log(-x) - 0.5 * math.log(2 * math.pi) + series


# Log factors of bets of sizes g on gaps. A batch shows S: of each gap a row with its estimate, with one for
# each of G equal replicates (unknown noise), or with what the lemma on bounded readings needs. v is the
# variance of the estimate; a guess where it is learned, and a bad one costs measurements, never correctness.


def sub_gaussian(S, v, g, cap):
    return (g * S - 0.5 * g * g) / v[:, None]


def bounded_variance(S, v, g, cap):
    up = np.maximum(1 + g * S / v[:, None], 0)
    return np.log((0.5 + 0.5 * up * up) / (1 + 0.5 * g * g / v[:, None]))


def student(S, v, g, cap):
    """exp(-G d^2/2) E exp(d r chi_G), r = sum / length of the replicates: fair for every size of noise."""
    G, d, S = S.shape[1], np.minimum(g / np.sqrt(v)[:, None], 10.0), S / np.abs(S).max(axis=1)[:, None]
    a = d * (S.sum(axis=1) / np.sqrt((S * S).sum(axis=1)))[:, None]
    top = 0.5 * (a + np.sqrt(a * a + 4 * G))
    width = 1 / np.sqrt(top * top + G)
    s = np.log(top)[..., None] + width[..., None] * np.arange(-40, 26) * 0.4  # the trapezoid rule in log chi
    logs = log_sum(G * s + np.exp(s) * (a[..., None] - 0.5 * np.exp(s))) + np.log(0.4 * width)
    return logs - (0.5 * G - 1) * math.log(2) - math.lgamma(0.5 * G) - 0.5 * G * d * d - 1e-9


def bounded(S, v, g, cap):
    """exp(lam base) prod (1 + lam w (x - c)), by its series; S is base, reach, and six power sums."""
    lam = np.minimum(g / v[:, None], cap / S[:, 1, None])
    powers = lam[..., None] ** POWERS * SERIES * S[:, None, 2:]
    return lam * S[:, 0, None] + powers.sum(axis=2)


def mixture(factor, S, v, centre, prior, cap):
    """Return the log of the mean factor over g ~ N(centre, prior), g > 0, or over twelve quantiles."""
    if factor is not sub_gaussian:
        g = centre[:, None] + np.sqrt(prior)[:, None] * QUANTILES
        logs = np.where(g > 0, factor(S, v, np.maximum(g, 0), cap), -np.inf)
        return log_sum(logs) - np.log((g > 0).sum(axis=1))
    post = 1 / (1 / prior + 1 / v)
    mode = post * (centre / prior + S[:, 0] / v)
    exponent = 0.5 * np.log(post / prior) + mode**2 / (2 * post) - centre**2 / (2 * prior)
    return exponent + log_normal_cdf(mode / np.sqrt(post)) - log_normal_cdf(centre / np.sqrt(prior))


class Account:
    """Rows of log wealth in components: fixed bet sizes first, and a mixture last where there is one."""

    def __init__(self, rows, k, now=0.0):
        self.parts, self.now, self.peak = np.full((rows, k), EMPTY), np.full(rows, now), np.zeros(rows)
        self.next_stake = 0.0

    def add(self, amount, rows=slice(None), k=slice(None)):
        self.parts[rows, k] = np.logaddexp(self.parts[rows, k], amount)

    def stake(self, cash, first, share, n_measured):
        """Invest cash, on all rows alike, whenever measurements have grown by 40%; return what is left."""
        if n_measured < self.next_stake:
            return cash
        part = first if self.next_stake == 0 else 0.3
        share = share if self.next_stake == 0 else 0.0
        if share:
            self.add(cash + math.log(part) + math.log(share / 15), k=slice(15))
        self.add(cash + math.log(part) + math.log1p(-share), k=slice(-1, None))
        self.next_stake = 1.4 * n_measured
        return cash + math.log1p(-part)

    def grow(self, n, amount):
        """Add rows whose components hold this in equal parts."""
        k = self.parts.shape[1]
        self.parts = np.vstack(
            [self.parts, np.full((n, k), amount - math.log(k) if amount > EMPTY / 2 else EMPTY)]
        )
        self.now, self.peak = np.append(self.now, np.zeros(n)), np.append(self.peak, np.zeros(n))

    def least(self):
        return float(log_sum(self.parts).min())


def count(rows, cash, *accounts):
    """Update wealth and peak of the last account, whose answers may use the cash and all of these."""
    logs = np.hstack([each.parts[rows] for each in accounts] + [np.full((len(rows), 1), cash)])
    accounts[-1].now[rows] = log_sum(logs)
    accounts[-1].peak[rows] = np.maximum(accounts[-1].peak[rows], accounts[-1].now[rows])


class Best:
    """Row j of the common account bets against "plan j is the best", whichever plan leads."""

    first_share = property(lambda self: max(0.2, 0.7 - 0.06 * math.log(len(self.data.P))))

    def __init__(self, data):
        self.data, self.cash, self.led, self.first_led = data, 0.0, -1, {}
        self.common = Account(len(data.P), 16)

    def accounts(self):
        return [self.common]

    def evidence(self, leader):
        return np.where(self.data.is_out, CERTAIN, self.common.peak)

    def numbers(self, leader):
        """Return the mean log wealth and the least evidence against a rival, which every value moves."""
        mean = np.concatenate([each.now for each in self.accounts()]).mean() if self.accounts() else 0.0
        return mean, 0.0 if leader < 0 else min(
            np.delete(self.evidence(leader), leader).min(initial=CERTAIN), CERTAIN
        )

    def proof(self, plan):
        return self.numbers(plan)[1]

    def bets(self, decision, rows):
        """Return bets: account, rows, contrasts, shift, sizes, centres and variances of mixtures."""
        leader, is_final = decision["leader"], decision["final"]
        self.lead(leader)
        Y, constant, sizes, gap, prior = self.data.contrasts(leader, rows)
        if not is_final:
            self.cash = self.common.stake(self.cash, 0.73, self.first_share, self.data.n_measured)
        found = [(self.common, rows, Y, constant, sizes, gap - self.correction(leader, Y, prior), prior)]
        if not is_final and len(rows) == 1:  # one rival is left: bet against the leader too
            found.append((self.common, np.array([leader]), -Y, -constant, sizes, np.zeros(1), prior))
        return found

    def lead(self, leader):
        if leader != self.led:
            self.led = leader
            self.first_led.setdefault(leader, self.data.counts)
            need(len(self.first_led) <= 64, "more than 64 leaders", "NOT COVERED")

    def correction(self, leader, Y, prior):
        """Return how far below the estimate mixtures are centred: a leader was chosen for it."""
        data, first = self.data, self.first_led[leader]
        if data.own is None:
            old = 1 - np.minimum(prior / data.gap_variance(Y, data.counts - first), 1)
            return (0.3 * math.log(len(data.P)) * np.sqrt(old) + 0.15) * np.sqrt(prior)
        arm = data.own[leader]  # many plans of one arm each: that of the leader alone was selected
        uses = data.counts[arm] + data.extra[arm]
        old = 1 - min((data.counts[arm] - first[arm]) / uses, 1)
        error = abs(data.P[leader, arm]) * math.sqrt(data.variance[arm] / uses)
        return max(0.3 * math.log(len(data.P)) - 1, 0) * math.sqrt(old) * error + 0.15 * np.sqrt(prior)

    def count(self, rows, account):
        count(rows, self.cash, self.common)

    def grow(self, n):
        """Let new plans begin with the least wealth of all: no more than the best plan had."""
        self.common.grow(n, self.common.least())
        count(np.arange(len(self.data.P) - n, len(self.data.P)), self.cash, self.common)
        pad = len(self.data.counts)
        self.first_led = {
            plan: np.pad(first, (0, pad - len(first))) for plan, first in self.first_led.items()
        }
        if self.data.has_changed_form:
            self.led, self.first_led = -1, {}


class Many(Best):
    """Within epsilon, many plans: a fifth of the cash as in `Best`; the rest waits for leaders."""

    def __init__(self, data):
        super().__init__(data)
        n = len(data.P)
        self.cash, self.next_stake = math.log(0.2), np.zeros(n)
        self.waiting, self.own = Account(n, 1), {}  # by leader, the one that led last at the end
        self.waiting.add(math.log(0.8))

    def accounts(self):
        return [self.common, self.waiting, *self.own.values()]

    def evidence(self, leader):
        peak, own, rows = self.common.peak, self.own.get(leader), np.arange(len(self.data.P))
        if own is not None:
            peak = np.maximum(peak, own.peak)
            if leader != self.led:  # the common account may have grown since this plan led
                logs = np.hstack([each.parts for each in (self.waiting, self.common, own)])
                peak = np.maximum(peak, np.logaddexp(log_sum(logs[rows]), self.cash))
        return np.where(self.data.is_out, CERTAIN, peak)

    def lead(self, leader):
        if leader == self.led:
            return
        super().lead(leader)
        n = len(self.data.P)
        if leader not in self.own:
            self.next_stake = np.zeros(n)
            if len(self.own) >= 24:  # forgetting only loses wealth
                del self.own[next(iter(self.own))]
        self.own[leader] = self.own.pop(leader, None) or Account(n, 1)
        self.count(np.arange(n), self.own[leader])

    def bets(self, decision, rows):
        data, epsilon = self.data, self.data.epsilon
        exact = super().bets(decision, rows)
        _, _, Y, constant, _, centre, prior = exact[0]
        within = self.own[decision["leader"]], rows, Y, constant + epsilon, None, centre + epsilon, prior
        if decision["final"]:
            return [within]
        ahead = (data.contrasts(decision["leader"], rows)[3] + epsilon) / np.sqrt(prior)
        is_ready = ahead > 1 if data.own is not None else np.full(len(rows), ahead.min() > 1.8)
        at = rows[is_ready & (data.n_measured >= self.next_stake[rows])]
        self.own[decision["leader"]].add(self.waiting.parts[at] + math.log(0.35), at)
        self.waiting.parts[at] += math.log1p(-0.35)
        self.next_stake[at] = 1.4 * data.n_measured
        return [*exact, within]

    def count(self, rows, account):
        count(rows, self.cash, self.waiting, self.common)
        count(rows, self.cash, self.waiting, self.common, self.own[self.led])

    def grow(self, n):
        least, led = self.waiting.least(), self.led
        super().grow(n)
        self.waiting.grow(n, least)
        for account in self.own.values():
            account.grow(n, EMPTY)
        self.next_stake = np.append(self.next_stake, np.zeros(n))
        rows = np.arange(len(self.data.P))
        count(rows[-n:], self.cash, self.waiting, self.common)
        need(
            led in self.own and self.led == led,
            "plans that arrive before a leader, or with shared arms",
            "NOT COVERED",
        )
        count(rows, self.cash, self.waiting, self.common, self.own[led])


class Few(Best):
    """Within epsilon, few plans: row (i, j) bets that j is not better than i by more than epsilon."""

    def __init__(self, data):
        super().__init__(data)
        self.pairs, self.sizes, self.next_stake = None, None, 0.0

    def accounts(self):
        return [] if self.pairs is None else [self.pairs]

    def evidence(self, leader):
        n = len(self.data.P)
        peak = np.zeros(n) if self.pairs is None else self.pairs.peak.reshape(n, n)[leader]
        return np.where(self.data.is_out, CERTAIN, peak)

    def bets(self, decision, rows):
        data, n = self.data, len(self.data.P)
        ahead, behind = np.divmod(np.arange(n * n), n)
        all_pairs = np.flatnonzero(ahead != behind)
        if not decision["final"] and data.n_measured >= self.next_stake:
            self.stake(decision["leader"], ahead[all_pairs], behind[all_pairs], all_pairs)
        at = decision["leader"] * n + rows if decision["final"] else all_pairs
        Y, constant, *_ = data.contrasts(ahead[at], behind[at])
        return [(self.pairs, at, Y, constant + data.epsilon, np.tile(self.sizes, (len(at), 1)), None, None)]

    def stake(self, leader, ahead, behind, all_pairs):
        """Stake against every plan j, in parts on the other plans i that sum to at most the stake."""
        data, n = self.data, len(self.data.P)
        if self.pairs is None:
            Y = data.P[ahead] - data.P[behind]
            octaves = max(
                math.log(math.sqrt(data.gap_variance(Y, np.ones(Y.shape[1])).max()) / data.epsilon), 0
            )
            k = min(8, 1 + int(octaves / math.log(1.5)))
            self.sizes = data.epsilon * (1.5 if k < 8 else math.exp(octaves / 7)) ** np.arange(k)
            self.pairs = Account(n * n, k)
        weight = np.ones(n)
        if leader >= 0:
            _, _, _, gap, variance = data.contrasts(np.full(n, leader), np.arange(n))
            z = np.where(variance > 0, gap / np.sqrt(variance), 0.0)
            weight = np.maximum(np.exp(-(np.maximum(z, 0) ** 2)), 1e-12)
        others = np.array([np.delete(weight, j).sum() for j in range(n)])
        share = 0.8 if self.cash == 0 else 0.3
        tilt = POWERS[0] / np.sqrt(np.arange(1, len(self.sizes) + 1))
        part = np.log(weight[ahead] / others[behind])[:, None] + np.log(tilt / tilt.sum())
        self.pairs.add(self.cash + math.log(share) + part, all_pairs)
        self.cash, self.next_stake = self.cash + math.log1p(-share), max(1.0, 1.4 * data.n_measured)

    def count(self, rows, account):
        count(rows, self.cash, self.pairs)

    def grow(self, n_new):
        """Let new plans begin with the cash alone."""
        n, self.next_stake = len(self.data.P), 0.0
        if self.pairs is not None:
            k, old = self.pairs, Account(n * n, len(self.sizes), self.cash)
            at = (np.arange(n - n_new)[:, None] * n + np.arange(n - n_new)).ravel()
            old.parts[at], old.now[at], old.peak[at] = k.parts, k.now, k.peak
            self.pairs = old


class KeepOrReplace(Best):
    """Two books at delta/2: keep the incumbent, which leads throughout; or replace it by a challenger."""

    first_share = 0.5

    def __init__(self, data, incumbent):
        super().__init__(data)
        self.keep, self.challengers, self.challenger_cash = incumbent, {}, 0.0

    def accounts(self):
        return [self.common, *self.challengers.values()]

    def proof(self, plan):
        if plan == self.keep:
            return self.numbers(plan)[1]
        return self.challengers[plan].peak[0] if plan in self.challengers else -math.inf

    def lead(self, leader):
        need(leader == self.keep, "the incumbent does not lead")

    def correction(self, leader, Y, prior):
        return 0.15 * np.sqrt(prior)

    def bets(self, decision, rows):
        keep, challenger, data = super().bets(decision, rows)[0], decision["challenger"], self.data
        account, rows, Y, constant, sizes, centre, prior = keep
        bets = [(account, rows, Y, constant + data.epsilon, sizes, centre + data.epsilon, prior)]
        if challenger < 0:
            return bets
        account = self.challengers.setdefault(challenger, Account(1, 16, self.challenger_cash))
        Y, constant, sizes, gap, prior = data.contrasts(np.array([challenger]), np.array([self.keep]))
        replace = account, np.zeros(1, dtype=int), Y, constant, sizes, gap - 0.5 * np.sqrt(prior), prior
        if decision["final"]:
            return [replace] if decision["replaces"] else bets
        self.challenger_cash = account.stake(self.challenger_cash, 0.5, 0.5, data.n_measured)
        return [*bets, replace]

    def count(self, rows, account):
        count(rows, self.cash if account is self.common else self.challenger_cash, account)


class Data:
    """Plans, what was measured, and what it says: for planning, and the noise of the next batch."""

    def __init__(self, problem, parameters, past):
        n_arms, self.epsilon = len(problem["arm_names"]), parameters["epsilon"]
        self.learns, self.bounds = problem["noise_scale"] is None, problem.get("bounds")
        self.stated = np.square(problem["noise_scale"] or np.ones(n_arms))
        self.variance, self.largest, self.own = self.stated, 0.0, None
        kinds = {True: bounded_variance, self.learns: student, self.bounds is not None: bounded}
        self.factor = kinds[True] if "noise" in problem or self.learns or self.bounds else sub_gaussian
        self.counts, self.sums, self.squares, self.freedom = np.zeros((4, n_arms))
        self.extra, self.extra_sums, self.middle_sums, self.middle_squares = np.zeros((4, n_arms))
        if past:
            self.extra = np.array(past["worth"], dtype=float)
            self.extra_sums = self.extra * past["means"]
        self.sign, self.has_changed_form = 1 - 2 * problem["minimize"], False
        known = [problem.get("known", {}).get(name, (-math.inf, math.inf)) for name in problem["arm_names"]]
        self.know(known, dense(problem["plans"]))

    def know(self, known, plans):
        """Take these plans, oriented so that larger is better; arms with known means become constants."""
        self.known, self.given, had = (
            np.array(known, dtype=float),
            np.array(plans, dtype=float),
            self.own is not None,
        )
        is_known, oriented = self.known[:, 0] == self.known[:, 1], self.sign * self.given
        self.P, self.constants = (
            np.where(is_known, 0.0, oriented),
            oriented @ np.where(is_known, self.known[:, 0], 0),
        )
        self.is_out = ~self.contenders()
        used = self.P != 0
        one_each = len(self.P) > FEW and (used.sum(axis=1) == 1).all() and used.sum(axis=0).max() == 1
        self.own = np.argmax(used, axis=1) if one_each else None
        self.has_changed_form = had != (self.own is not None)

    def contenders(self):
        """Return which plans may be the only best one, whatever the means are."""
        n, low, high = len(self.P), *np.where(np.isfinite(self.known), self.known, 0).T
        stays, free = np.ones(n, dtype=bool), ~np.isfinite(self.known).all(axis=1)
        for i in range(n) if np.isfinite(self.known).any() else ():
            difference = self.P[i] - self.P
            gap = self.constants[i] - self.constants
            same = ~difference.any(axis=1)
            first = same & ((gap > 0) | ((gap == 0) & (np.arange(n) > i)))
            least = np.minimum(difference * low, difference * high).sum(axis=1) + gap
            stays &= ~(first | (~difference[:, free].any(axis=1) & ~same & (least > 1e-12) & stays[i]))
        return stays

    n_measured = property(lambda self: float((self.counts + self.extra).sum()))

    def gap_variance(self, Y, counts):
        return np.where(Y != 0, Y * Y * self.variance / counts, 0.0).sum(axis=1)

    def contrasts(self, ahead, behind):
        """Return contrasts, what known arms add, bet sizes, and estimated gaps with their variances."""
        uses, Y = self.counts + self.extra, self.P[ahead] - self.P[behind]
        constant = self.constants[ahead] - self.constants[behind]
        sizes = np.sqrt(np.maximum(self.gap_variance(Y, np.ones(len(uses))), 1e-300))[:, None] * GRID
        means = np.clip((self.sums + self.extra_sums) / np.where(uses > 0, uses, 1), *self.known.T)
        return Y, constant, sizes, Y @ means + constant, self.gap_variance(Y, uses)

    def show(self, Y, shift, uses, means, values):
        """Return what a batch shows of gaps, their variances, and which of them it shows at all."""
        v, shift = self.gap_variance(Y, uses), np.broadcast_to(shift, len(Y))[:, None]
        shown = np.isfinite(v) & (v > 0)
        if self.factor is not bounded:
            S = Y @ means
            if self.learns:
                shown &= np.ptp(S, axis=1) > 1e-12 * np.abs(S).max(axis=1)
            return S + shift, v, shown
        centres, W = self.centres(), np.where(uses > 0, Y / np.maximum(uses, 1), 0.0)
        low, high = np.transpose(self.bounds)
        reach = (np.abs(W) * np.maximum(centres - low, high - centres)).max(axis=1)
        powers = [[((x - c) ** p).sum() for x, c in zip(values, centres, strict=True)] for p in POWERS]
        sums = [W**p @ of for p, of in zip(POWERS, powers, strict=True)]
        base = W @ (uses * centres) + shift[:, 0]
        return np.column_stack([base, np.maximum(reach, 1e-300), *sums]), v, shown

    def centres(self):
        return np.mean(self.bounds, axis=1) + self.middle_sums / (self.counts + 8)

    def mixture_cap(self):
        return YOUNG_CAP if self.counts[self.counts > 0].min(initial=np.inf) < 30 else CAP

    def learn(self, uses, means, values):
        """Learn noise of unknown size by replicates, and that of bounded readings by themselves."""
        if self.learns:
            n = means.shape[1]
            self.squares = self.squares + uses * ((means - means.mean(axis=1)[:, None]) ** 2).sum(axis=1)
            self.freedom, self.largest = (
                self.freedom + (uses > 0) * (n - 1),
                max(self.largest, np.abs(means).max()),
            )
            common = max(self.squares.sum() / self.freedom.sum(), 1e-24 * self.largest**2, 1e-280)
            self.variance = (self.squares + 10 * common) / (self.freedom + 10)
        elif self.factor is bounded:
            middle = np.mean(self.bounds, axis=1)
            self.middle_sums = self.middle_sums + [(x - m).sum() for x, m in zip(values, middle, strict=True)]
            squares = [((x - m) ** 2).sum() for x, m in zip(values, middle, strict=True)]
            self.middle_squares = self.middle_squares + squares
            n, widest = self.counts + uses, np.diff(self.bounds, axis=1)[:, 0] ** 2 / 4
            around = np.maximum(self.middle_squares - self.middle_sums**2 / np.maximum(n, 1), 0)
            freedom = np.maximum(n - 1, 0)
            common = ((around / widest).sum() + 2) / (freedom.sum() + 2)
            self.variance = (around + 2 * common * widest) / (freedom + 2)

    def add_plan(self, body):
        """Add a plan, and the arms that come with it."""
        new = body.get("new_arms", [])
        self.bounds = (
            None if self.bounds is None else [*self.bounds, *((arm["low"], arm["high"]) for arm in new)]
        )
        self.variance = np.append(self.variance, np.square([arm.get("noise", 1.0) for arm in new]))
        for name in (
            "counts",
            "sums",
            "squares",
            "freedom",
            "extra",
            "extra_sums",
            "middle_sums",
            "middle_squares",
        ):
            setattr(self, name, np.append(getattr(self, name), np.zeros(len(new))))
        row = np.zeros(len(self.counts))
        row[[arm for arm, _ in body["amounts"]]] = [amount for _, amount in body["amounts"]]
        known = np.vstack([self.known, np.tile([-np.inf, np.inf], (len(new), 1))])
        self.know(known, np.vstack([np.pad(self.given, ((0, 0), (0, len(new)))), row]))
        if self.bounds is not None and new:
            self.learn(np.zeros(len(row)), None, [np.zeros(0)] * len(row))


def dense(plans):
    if plans["kind"] == "dense":
        return plans["rows"]
    need(plans["shape"][0] * plans["shape"][1] <= 2e7, "a list of this size", "NOT COVERED")
    found, starts = np.zeros(plans["shape"]), plans["indptr"]
    for k in range(len(found)):
        here = slice(starts[k], starts[k + 1])
        found[k, plans["indices"][here]] = plans["data"][here]
    return found


class Run:
    """The bets of one log, from its first event on."""

    def __init__(self, created):
        problem, parameters = created["problem"], created["policy"]["parameters"]
        self.data = data = Data(problem, parameters, created["past"])
        incumbent, names = parameters.get("incumbent"), problem["plan_names"]
        self.keep = names.index(incumbent) if isinstance(incumbent, str) else incumbent
        kind = Best if not data.epsilon else Many if len(data.P) > FEW else Few
        self.question = kind(data) if incumbent is None else KeepOrReplace(data, self.keep)
        self.batch, self.is_over, self.gaussian = None, False, False

    def open(self, decision):
        """Stake, and fix the bets of the batch."""
        data, leader = self.data, decision["leader"]
        rows = np.array([j for begin, end in decision["rivals"] for j in range(begin, end)], dtype=int)
        is_blank = not data.n_measured and not data.learns and isinstance(self.question, Few)
        bets = self.question.bets(decision, rows) if leader >= 0 or is_blank else []
        uses = np.zeros(len(data.counts))
        uses[[arm for arm, _ in decision["uses"]]] = [n for _, n in decision["uses"]]
        shape, fewest = (decision["replicates"], len(uses)), 4 if data.learns else 1
        is_sane = (
            1 <= uses.sum() * shape[0] <= 10**6
            and uses.min() >= 0
            and fewest <= shape[0] <= 12 * fewest // 4 + 1
        )
        need(is_sane and not self.is_over, "a batch of no sane size, or after the final one")
        values = [[[] for _ in uses] for _ in range(shape[0])]
        self.batch = uses, np.tile(uses, (shape[0], 1)), np.zeros(shape), values, bets, decision["final"]

    def measure(self, found, gone):
        """Take in the answer to a request: lists of values by arm, and how many of each were removed."""
        _, missing, removed, values, _, _ = self.batch
        k = int(np.argmax(missing.any(axis=1)))
        for arm, new in found.items():
            values[k][arm] += new
            removed[k, arm] += gone[arm]
            missing[k, arm] -= len(new) + gone[arm]
        need(missing.min() >= 0, "more values than the batch has")
        if not missing.any():
            self.batch = self.settle(*self.batch)  # None

    def settle(self, uses, _, removed, values, bets, is_final):
        """Multiply wealth by what this batch alone has shown; whole replicates count, two at least."""
        data, question, sums = (
            self.data,
            self.question,
            np.array([[math.fsum(x) for x in row] for row in values]),
        )
        sums, uses = (sums[~removed.any(axis=1)], uses) if data.learns else (sums, uses - removed[0])
        if data.learns and len(sums) < 2:
            return
        means, values = (sums / np.maximum(uses, 1)).T, [np.array(x) for x in values[0]]
        for account, rows, Y, shift, sizes, centre, prior in bets:
            S, v, on = data.show(Y, shift, uses, means, values)
            S, v, at = S[on], v[on], rows[on]
            if is_final:
                question.count(at, account)  # other accounts may have taken cash since this one bet last
                account.peak[at] = np.maximum(account.peak[at], account.now[at] - self.log_p(S, v))
                continue
            if sizes is not None:
                account.parts[at, : sizes.shape[1]] += data.factor(S, v, sizes[on], CAP)
            if centre is not None:
                ok = np.isfinite(prior[on]) & (centre[on] >= 0)
                given = S[ok], v[ok], centre[on][ok], prior[on][ok], data.mixture_cap()
                account.parts[at[ok], -1] += mixture(data.factor, *given) if ok.any() else 0.0
        for account, rows, *_ in [] if is_final else bets:
            question.count(rows, account)
        self.is_over = is_final
        data.learn(uses, means, values)
        data.counts, data.sums = data.counts + uses * len(sums), data.sums + sums.sum(axis=0)

    def log_p(self, S, v):
        """Return the log of a p-value for "the gap is at most 0"."""
        need(not self.data.learns, "a final batch with unknown noise", "NOT COVERED")
        if self.data.factor is bounded:
            logs = bounded(S, v, np.sqrt(v)[:, None] * np.array([1.5, 2.25, 3.0, 4.0]), CAP)
            return -np.maximum(log_sum(logs) - math.log(4), 0)
        D = S[:, 0]
        tail = log_normal_cdf(-D / np.sqrt(v)) if self.gaussian else -0.5 * D * D / v
        return np.where(D > 0, -np.log1p(D * D / v) if self.data.factor is bounded_variance else tail, 0.0)

    def grow(self, bodies):
        for body in bodies:
            self.data.add_plan(body)
        self.question.grow(len(bodies))


class Log:
    """The events of a log as far as they are read: values by arm and place, and what the run is given."""

    def __init__(self, created):
        problem, policy = created["problem"], created["policy"]
        odd = [name for name in ("probes", "oracle", "plays") if name in problem]
        odd += ["known"] if "known" in problem and policy["name"] != "BetGapE" else []
        is_covered = policy["name"] in ("BetGapE", "Challenge") and not odd
        need(is_covered, f"{policy['name']} with {odd}", "NOT COVERED")
        self.names, self.arrived, self.round = [*problem["plan_names"]], [], []
        self.values, self.cursor, self.removed, self.skipped, self.assumed = {}, {}, set(), set(), set()
        self.last = {}  # by arm, the last place with a value or a lost one
        self.steps, self.run, self.created = [], Run(created), created
        self.called, self.answer, self.delta = False, None, policy["parameters"]["delta"]

    def take(self, kind, what, *, again=False):
        """Let the run take a step; removed values do not count."""
        self.steps += [] if again else [(kind, what)]
        if kind == "values":
            kept = {
                a: [self.values[a, i] for i in at if (a, i) not in self.removed] for a, at in what.items()
            }
            self.run.measure(kept, {arm: len(at) - len(kept[arm]) for arm, at in what.items()})
        elif kind == "decision":
            self.run.open(what)
        else:
            self.run.grow(what)

    def use_round(self):
        """Give the run the next values of each arm that the last request asked for."""
        used = {arm: [] for arm, _ in self.round}
        for arm, n in self.round:
            while len(used[arm]) < n:
                at = self.cursor[arm] = self.cursor.get(arm, -1) + 1
                if (arm, at) not in self.skipped:
                    need((arm, at) in self.values, "decided before the batch was complete")
                    used[arm].append(at)
        if used:
            self.take("values", used)

    threshold = property(lambda self: -math.log(self.delta / (1 if self.run.keep is None else 2)))

    def decide(self, body):
        """Check the two numbers that every value moves, and that an answer is proved."""
        need(self.answer is None, "decided after the answer")
        self.use_round()
        self.round, decision, run = body.get("counts", []), body.get("decision"), self.run
        is_open = run.batch is not None
        need((decision is None and "counts" in body) == is_open, "a decision in the middle of a batch")
        if is_open:
            return
        if self.arrived:
            self.take("plans", self.arrived)
        self.arrived, plan, numbers = [], body.get("plan"), decision or body
        leader = decision["leader"] if decision else plan if run.keep is None else run.keep
        for name, x in zip(
            ("wealth", "evidence"), run.question.numbers(-1 if leader is None else leader), strict=True
        ):
            close = abs(numbers[name] - x) <= (1e-6 if run.data.learns else 1e-9) * max(1.0, abs(x))
            need(
                close or leader is None,
                f"its {name} is {numbers[name]!r}, and the values before it give {x!r}",
            )
        if decision is None:
            self.answer = plan
            is_proved = plan is None or run.question.proof(plan) >= self.threshold * (1 - 1e-9)
            need(is_proved, f"the evidence does not prove plan {plan}")
            return
        need(decision["final"] == (self.called and leader >= 0), "no such batch")
        if leader >= 0:
            is_rival = np.zeros(len(run.data.P), dtype=bool)
            is_rival[[j for begin, end in decision["rivals"] for j in range(begin, end)]] = True
            beyond = np.delete(
                (run.question.evidence(leader) - self.threshold) * np.where(is_rival, 1, -1), leader
            )
            need(
                is_rival.any() and not is_rival[leader] and beyond.max() <= 1e-6,
                "its rivals are not those that are left",
            )
        self.take("decision", decision)

    def event(self, n, kind, body):
        if kind in ("asked", "stopped"):
            self.decide(body)
        elif kind == "measured":
            place, (value,) = (body["probe"], body["index"]), body["values"]
            need(place not in self.values and place not in self.skipped, "recorded twice")
            need(place[1] > self.cursor.get(place[0], -1), "recorded after its batch")
            is_extra = body["request"] != f"{place[0]}.{place[1]}"
            at_end = not is_extra or place[1] == self.appended_at(place[0])
            need(at_end, "an extra value is not at the end of its stream")
            self.last[place[0]] = max(place[1], self.last.get(place[0], -1))
            if value is None:
                self.skipped.add(place)
                self.assumed.add("values were lost whatever they would have been")
                return
            self.values[place] = self.checked(place[0], value)
            if is_extra:
                self.assumed.add("extra values were recorded whatever they were")
        elif kind == "removed":
            self.remove((body["probe"], body["index"]))
        elif kind == "plan-added":
            need(not self.called, "a plan after the call for a final batch")
            self.answer = None
            need("known" not in self.created["problem"], "plans that arrive beside known arms", "NOT COVERED")
            self.arrived.append(body)
            self.names.append(body["name"])
            self.assumed.add("plans were added without values recorded ahead")
        elif kind == "extended":
            is_same = body["epsilon"] == self.created["policy"]["parameters"]["epsilon"]
            need(is_same and not self.called, "another epsilon, or an extension after the final batch")
            need(0 < body["delta"] <= self.delta, "delta may only fall")
            if body["delta"] < self.delta:
                self.answer, self.delta = None, body["delta"]
                self.assumed.add("a smaller delta was chosen without values recorded ahead")
        elif kind == "final-batch":
            self.called, self.run.gaussian = True, body["gaussian"]
            self.assumed.add("the final batch was called without values recorded ahead")

    def appended_at(self, arm):
        """Return the place of the next extra value: behind the open batch and all that was recorded."""
        at = self.cursor.get(arm, -1)
        for _ in range(dict(self.round).get(arm, 0)):
            at += 1
            while (arm, at) in self.skipped:
                at += 1
        return max(at, self.last.get(arm, -1)) + 1

    def checked(self, arm, value):
        """Return the value, which must be a number, and between the bounds of its arm."""
        bounds = self.run.data.bounds
        low, high = (-math.inf, math.inf) if bounds is None or arm >= len(bounds) else bounds[arm]
        need(math.isfinite(value) and low <= value <= high, f"{value!r} is no value of arm {arm}")
        return value

    def remove(self, place):
        """Settle everything again without this value, or skip it if no batch has used it."""
        need(place in self.values and place not in self.removed | self.skipped, "nothing to remove")
        self.assumed.add("removed values were no measurements")
        if place[1] > self.cursor.get(place[0], -1):
            self.skipped.add(place)
            return
        self.removed.add(place)
        gaussian, self.answer, self.run = self.run.gaussian, None, Run(self.created)
        self.run.gaussian = gaussian
        for step in self.steps:
            self.take(*step, again=True)

    def words(self):
        data, keep = self.run.data, self.run.keep
        claim = f"is within {data.epsilon:g} of the best plan" if data.epsilon else "is the best plan"
        if keep is not None:
            claim = "is to be kept" if self.answer == keep else f"is better than {self.names[keep]!r}"
        noise = {
            student: "independent noise, Gaussian and of one unknown size for each arm",
            bounded: "readings between the bounds, each with the mean of its arm given those before it",
        }
        told = [noise.get(data.factor, "independent noise as the problem states it"), *sorted(self.assumed)]
        told += ["the means that are called known"] if "known" in self.created["problem"] else []
        return (
            f"HOLDS: {self.names[self.answer]!r} {claim}, wrong with probability at most {self.delta:g}.\n"
            f"Assumed: {'; '.join(told)}. {len(self.values)} values."
        )


def check(log):
    """Return the guarantee in words, or end the program with what fails or is not covered."""
    before, time, keys, state, n = "0" * 64, -math.inf, set(), None, 0
    for n, e in enumerate(log["events"], 1):
        parts = [before, n, *(e[name] for name in ("kind", "key", "time", "body"))]
        line = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
        is_whole = e["position"] == n and hashlib.sha256(line.encode()).hexdigest() == e["checksum"]
        is_new = e["time"] >= time and e["key"] not in keys and (e["kind"] == "created") == (n == 1)
        need(is_whole and is_new, f"event {n}: the chain is broken")
        before, time, body, keys = (
            e["checksum"],
            e["time"],
            json.loads(e["body"]),
            keys | ({e["key"]} - {None}),
        )
        try:
            state = state or Log(body)
            state.event(n, e["kind"], body)
        except (SystemExit, Exception) as error:  # a log may hold any JSON
            words = str(error) if isinstance(error, SystemExit) else f"FAILED: {type(error).__name__} {error}"
            raise SystemExit(f"{words} (event {n}, {e['kind']})") from None
    need((n, before) == (log["position"], log["checksum"]), "the log does not end where it says")
    need(state.answer is not None, "no answer is proved")
    return state.words()


if __name__ == "__main__":
    found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(check(found.get("log", found)))
