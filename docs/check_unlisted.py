"""Check answers about plans that are not listed. check.py imports this file where a log asks for it.

It has the questions, and the factor of noise of unknown size behind an oracle. All else is that of check.py,
which explains it. Where plans are listed, each has a row of wealth. Here something has to be shown of all
plans at once:

- the best plan of a polytope: the edges at its vertex are the rows;
- a polytope within epsilon: the certificate has a tree of boxes. Only its splits and prices are taken from
  there, which may be any numbers; the wealth against the plans of a box is computed here;
- behind an oracle: a search through boxes of plans, where the oracle finds the plan that is hardest to rule
  out. You have to trust that it returns the best plan for any weights: it may be your own function, or a few
  lines that you write. Without it the program checks all but that no other plan is left, and says so.

Not covered: whole plans as probes behind an oracle; noise of unknown size on a polytope within epsilon, of
plans of whole numbers behind an oracle, or with a smaller delta there; noise of bounded variance for either.
"""

import copy
import csv
import json
import math
import runpy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from check import (
    CAP,
    CERTAIN,
    COMMON,
    EMPTY,
    GOLDEN,
    GRID,
    Bet,
    Book,
    Data,
    Question,
    bounded,
    log_normal_cdf,
    log_sum,
    need,
    numbers_in,
    steps,
    sub_gaussian,
)


def averages(data):
    """Return the means of arms in a batch, and variances; 0 of an arm that it does not have."""
    is_measured, n = (data.n > 0) & ~data.is_known, np.maximum(data.n, 1)
    means = np.where(is_measured, data.sums[:, 0] / n, data.known_means)
    return means, np.where(is_measured, data.variance / n, 0.0)


def named(arms, plan):
    """Return a plan by its amounts."""
    amounts = [f"{x:.4g} x {arm}" for arm, x in zip(arms, plan, strict=True) if abs(x) > 1e-9]
    return " + ".join(amounts) or "nothing"


# POLYTOPES: all amounts within linear limits

ROUNDING = 2.0**-40  # more than the error of a sum of 4,000 products, as a share of their sizes


def row_bounds(A, right, low, high):
    """Return bounds that follow for each variable from single rows of A z = right and the other bounds."""
    for a, b in [(A, right), (-A, -right)] * 16:  # a_j z_j is at most b less the least of all other terms
        least = np.where(a == 0, 0.0, np.where(a > 0, a * low, a * high))
        is_endless = np.isinf(least)
        finite = np.where(is_endless, 0.0, least)
        most = b + ROUNDING * (np.abs(b) + np.abs(finite).sum(axis=1))
        most = most[:, None] - (finite.sum(axis=1)[:, None] - finite)
        most = np.where(is_endless.sum(axis=1)[:, None] > is_endless, np.inf, most) / a
        high = np.minimum(high, np.where(a > 0, most, np.inf).min(axis=0, initial=np.inf))
        low = np.maximum(low, np.where(a < 0, most, -np.inf).max(axis=0, initial=-np.inf))
    return low, high


class Claim:
    """That W(x) >= target for every plan x, with L = a + b.x, Q = c - 2 d.x + e.x^2, and

        W = log(exp(cash) + sum_j exp(stake + g_j L - g_j^2 Q / 2)),

    which is convex in (L, Q). Without rates g it is that L >= target sqrt(Q).
    """

    def __init__(self, batches, epsilon, target, cash=-np.inf, stake=0.0, rates=()):
        """Take batches (leader, weight, means, variances); weights are shares of their sum."""
        x, h, m, v = (np.array(part) for part in zip(*batches, strict=True))
        h = h / h.sum()
        self.a = h @ (x * m).sum(axis=1) + epsilon - ROUNDING * (h @ np.abs(x * m).sum(axis=1) + epsilon)
        v = h[:, None] ** 2 * v
        self.b, self.c, self.d, self.e = -h @ m, (v * x * x).sum(), (v * x).sum(axis=0), v.sum(axis=0)
        self.target, self.cash, self.stake, self.rates = target, cash, stake, np.array(rates)

    def logs(self, L, Q):
        return np.append(self.stake + self.rates * (L - 0.5 * self.rates * Q), self.cash)

    def log_wealth(self, x):
        return log_sum(self.logs(self.a + self.b @ x, self.c - 2 * self.d @ x + self.e @ (x * x)))

    def tangent(self, L, Q):
        """Return (slope, least) such that L(x) - slope Q(x) >= least implies the claim, for any L and Q.

        W lies above its tangent, of slope E g in L and -E g^2 / 2 in Q, E by the shares of the terms of W;
        sqrt(Q) lies below its own.
        """
        if not len(self.rates):
            return 0.5 * self.target / math.sqrt(Q), 0.5 * self.target * math.sqrt(Q) * (1 + 1e-9)
        logs = self.logs(L, Q)
        W = log_sum(logs)
        p = np.exp(logs - W)[:-1]
        rate = p @ self.rates
        slope = 0.5 * (p @ self.rates**2) / rate
        size = abs(L) + slope * abs(Q) + (abs(self.target) + abs(W)) / rate
        return slope, L - slope * Q + (self.target - W + 1e-9) / rate + ROUNDING * size

    def cut(self, at, y, A, right, low, high):
        """Return the part of a box that may hold plans against the claim, by prices y of A z = right.

        On the box x^2 <= (low + high) x - low high, so that L - slope Q is at least constant + costs.x. And
        costs.z = y.right + r.z with r = costs - y A, at least the sum of the lower ends of all r_j z_j.
        If that reaches the tangent no plan of the box is against the claim. If it lacks `missing`, plans that
        are have no r_j z_j further than that from its end. Without a tangent it is about the plans alone.
        """
        n, far = len(self.b), np.maximum(np.abs(low), np.abs(high))
        costs, sizes = np.zeros((2, len(low)))
        constant = size = least = 0.0
        if at is not None:
            slope, least = self.tangent(*at)
            corners = self.e * low[:n] * high[:n]
            constant = self.a - slope * (self.c - corners.sum())
            costs[:n] = self.b - slope * (self.e * (low + high)[:n] - 2 * self.d)
            size = abs(self.a) + slope * (abs(self.c) + np.abs(corners).sum())
            sizes[:n] = np.abs(self.b) + slope * (2 * self.e * far[:n] + 2 * np.abs(self.d))
        r = costs - y @ A
        size += np.abs(y) @ np.abs(right) + (sizes + np.abs(y) @ np.abs(A)) @ far
        bound = constant + y @ right + np.minimum(r * low, r * high).sum() - ROUNDING * size
        missing = least - bound
        if missing < 0:
            return low + np.inf, high
        reach = missing / np.abs(r) * (1 + ROUNDING) + ROUNDING * far
        return np.where(r < 0, np.fmax(low, high - reach), low), np.where(
            r > 0, np.fmin(high, low + reach), high
        )


class BestVertex(Question):
    """Which plan of a polytope is best? An account for each basis, row j: "the edge of variable j improves".

    With a slack for each inequality, plans are A z = b, low <= z <= high. A basis says which variables are
    basic (2) and which are at a bound (0, 1); every plan is its vertex plus lambda_j >= 0 times the edge of
    each j that is not basic. So if no edge improves, the vertex is best. All rows are staked alike.
    """

    def __init__(self, data, problem, settings):
        rows, self.arms = problem["oracle"], problem["arm_names"]
        self.data, self.sign = data, -1.0 if problem["minimize"] else 1.0
        self.epsilon = settings["epsilon"]
        m, n, n_ub = len(rows["right"]), len(self.arms), len(rows["right"]) - rows["n_equal"]
        A, right, self.size = np.zeros((m, n)), np.array(rows["right"]), np.ones(m)
        for k, entries in enumerate(rows["rows"]):
            A[k, [j for j, _ in entries]] = [x for _, x in entries]
        if (np.rint(A) != A).any() or np.abs(A).max(initial=0) > 2**20:  # slacks are counted in these sizes
            self.size = np.exp2(np.floor(np.log2(np.abs(A).max(axis=1))))
        low = [-np.inf if x is None else x for x in rows["lower"]]
        high = [np.inf if x is None else x for x in rows["upper"]]
        self.A, self.right = np.hstack([A / self.size[:, None], np.eye(m)[:, :n_ub]]), right / self.size
        self.low, self.high = np.append(low, np.zeros(n_ub)), np.append(high, np.full(n_ub, np.inf))
        self.book = self.second = Book(len(self.low))

    def edges(self, basis):
        """Return the vertex of a basis, and what is lost along each edge, one row per variable."""
        at, A = np.array([*basis], dtype=int), self.A
        is_basic, z = at == 2, np.where(at == 1, self.high, np.where(at == 0, self.low, 0.0))
        basic, steps = A[:, is_basic], np.diag(np.where(at == 0, 1.0, -1.0))
        is_basis = len(at) == len(self.low) and {*basis} <= {*"012"} and np.isfinite(z).all()
        need(is_basis and np.linalg.matrix_rank(basic) == is_basic.sum(), "its leader is no basis")
        steps[is_basic | (self.low == self.high)] = 0.0
        z[is_basic] = np.linalg.lstsq(basic, self.right - A @ z, rcond=None)[0]
        steps[:, is_basic] = -np.linalg.lstsq(basic, A @ steps.T, rcond=None)[0].T
        room = 1e-8 * (1 + np.abs(z).max())
        is_plan = (z >= self.low - room).all() and (z <= self.high + room).all()
        is_plan &= (np.abs(A @ z - self.right) <= room).all() and (np.abs(A @ steps.T) <= 1e-8).all()
        need(is_plan, "its leader is no plan")
        losses = -self.sign * np.where(np.abs(steps) < 1e-11, 0.0, steps)[:, : len(self.arms)]
        return z[: len(self.arms)], losses

    def bets(self, d):
        basis, rows = d["leader"], numbers_in(d["rivals"], len(self.low))
        losses = self.edges(basis)[1][rows]
        need(losses.any(axis=1).all(), "its rivals are no edges")
        self.book.lead(basis)
        if "stake" in d:
            self.book.stake(d["stake"], {basis: np.ones((len(self.low), 1))})
        bet = Bet(self.book, basis, rows, losses, 0.0)
        if not d["final"]:
            bet.mix(d["bets"])
        return [bet]

    def mean_wealth(self, leader):
        if isinstance(leader, list):  # an answer: its vertex may have several bases
            return None
        is_edge = self.edges(leader)[1].any(axis=1)
        return self.book.total(leader)[is_edge].mean() if is_edge.any() else CERTAIN

    def proved(self, plan, least):
        """Return that this plan is best, by a basis of its vertex all of whose edges are ruled out."""
        is_best = False
        for basis in self.book.peaks.keys() - {COMMON}:
            vertex, losses = self.edges(basis)
            is_measured = losses[:, ~self.data.is_known].any(axis=1)  # an edge of other arms than known ones
            is_worse = losses @ self.data.known_means >= 0
            is_out = np.where(is_measured, self.book.evidence(basis) >= least, is_worse)
            is_best |= is_out.all() and np.allclose(vertex, plan, rtol=1e-9, atol=1e-9)
        need(is_best)
        return f"{named(self.arms, plan)} is {self.goal}"


class WithinPolytope(BestVertex):
    """Which plan of a polytope is within epsilon of the best? The average of the leaders of a series.

    A batch has a leader x, a weight h (its cost), and means m with variances v. A series, staked from the
    cash, bets in all batches since it began. Against a plan b its wealth is the sum over its rates g of

        stake exp(g L - g^2 Q / 2),  L = sum h ((x - b).m + epsilon),  Q = sum h^2 v.(x - b)^2.

    The average of its leaders is proved when this and the cash have reached 1/delta against every plan b at
    one time. A final batch tests one plan, which is named before it.
    """

    def __init__(self, data, problem, settings):
        super().__init__(data, problem, settings)
        self.costs, self.cash = np.array(problem["costs"]), 0.0
        self.batches, self.series, self.tested = [], [], None
        may_differ = np.flatnonzero(self.low < self.high)
        A = self.A[:, may_differ]
        moves = np.zeros(len(self.low), dtype=bool)  # the variables that are not the same in all plans
        moves[may_differ] = np.diag(np.eye(len(may_differ)) - np.linalg.pinv(A) @ A) > 1e-9
        self.moves = moves[: len(self.arms)]

    def take(self, proof, plans):
        self.proof = proof

    def bets(self, d):
        """Begin a series if the decision does; return the leader, or the plan that a final batch tests."""
        leader = self.edges(d["leader"])[0]
        if d["final"]:
            need(d["series"] in range(-1, len(self.series)), "a test of no series")
            return [(leader if d["series"] < 0 else self.average(d["series"]), d["series"])]
        rates = np.array(d["rates"], dtype=float)
        if len(rates):
            share, is_size = d["stake"], (rates > 0) & (rates < np.inf)
            need(0 < share < 1 and is_size.all(), "a stake of more than there is")
            self.series.append((len(self.batches), self.cash + math.log(share / len(rates)), rates))
            self.cash += math.log1p(-share)
        return [leader]

    def shown(self, leader):
        """Return what a batch shows: leader, weight, means and variances; 0 of arms alike in all plans."""
        data, is_measured = self.data, self.moves & ~self.data.is_known
        if (data.n[is_measured] == 0).any():
            return None
        means, variance = np.where(self.moves, averages(data), 0.0)
        return leader, float(data.n @ self.costs), self.sign * means, variance

    def settle(self, leader):
        self.batches += [batch] if (batch := self.shown(leader)) else []

    def test(self, tested, gaussian):
        plan, series = tested
        self.tested = plan, series, self.shown(plan), gaussian

    def look(self):
        """There is no peak: all plans are ruled out at one time."""

    def average(self, k):
        leaders, weights = map(np.array, list(zip(*self.batches[self.series[k][0] :], strict=True))[:2])
        return weights @ leaders / weights.sum()

    def claim(self, k, target):
        """Return the claim that series k and the cash have reached the target against every plan."""
        begun, stake, rates = self.series[k]
        weight = sum(batch[1] for batch in self.batches[begun:])
        return Claim(self.batches[begun:], self.epsilon, target, self.cash, stake, rates * weight)

    def mean_wealth(self, leader):
        """Return the wealth of the last series with a batch against one point, which is no plan."""
        begun = [k for k, own in enumerate(self.series) if own[0] < len(self.batches)]
        point = np.modf(GOLDEN * np.arange(1, len(self.arms) + 1))[0]
        return self.claim(begun[-1], 0.0).log_wealth(point) if begun else self.cash

    def proved(self, plan, least):
        proof = self.proof
        need(proof is not None, "the proof about all plans, which needs the certificate", "NOT COVERED")
        box = self.box(proof["ends"])
        if "test" in proof:
            tested, k, shown, gaussian = self.tested
            z, level = proof["test"]["target"], proof["log_wealth"]
            log_p = float(log_normal_cdf(-z)) if gaussian else -0.5 * z * z
            need(np.allclose(tested, plan, rtol=1e-9, atol=1e-9) and shown is not None)
            need(z > 0 and level - log_p >= least)
            need(self.holds(Claim([shown], self.epsilon, z), box, proof["test"]["boxes"]))
            is_level = level <= self.cash or self.holds(self.claim(k, level), box, proof["series"]["boxes"])
        else:
            is_level = any(
                np.allclose(self.average(k), plan, rtol=1e-9, atol=1e-9)
                and self.holds(self.claim(k, least), box, proof["series"]["boxes"])
                for k, own in enumerate(self.series)
                if own[0] < len(self.batches)
            )
        need(is_level)
        return f"{named(self.arms, plan)} is {self.goal}"

    def box(self, ends):
        """Return finite bounds of all variables that hold for every plan.

        Where bounds and single rows leave an end open, `ends` has prices y of the rows: with c = 1 or -1 on
        the arm, c.z >= y.right + r.z for r = c - y A. If M bounds the arms with open ends, those add at least
        -rho M, rho the sum of their sizes in r; so M <= C + rho M, with C from all other terms. (It has a
        bound: a direction in which plans go on without end would have a largest entry of at most rho times
        itself.)
        """
        low, high = row_bounds(self.A, self.right, self.low, self.high)
        is_open, found = np.isinf(low) | np.isinf(high), []
        is_open[len(self.arms) :] = False  # a slack ends where its row does
        if not is_open.any():
            return low, high
        for side, arm, prices in ends:
            c, y = np.zeros(len(low)), np.array(prices) * self.size
            c[arm] = 1 - 2 * side
            r = c - y @ self.A
            least = np.where(is_open | (r == 0), 0.0, np.where(r > 0, r * low, r * high))
            size = np.abs(y) @ np.abs(self.right) + np.abs(least).sum()
            found.append(
                (side, arm, y @ self.right + least.sum() - ROUNDING * size, np.abs(r[is_open]).sum())
            )
        named = {(side, arm) for side, arm, *_ in found}
        open_ends = [*zip(*np.nonzero(np.isinf([low, high])[:, : len(self.arms)]), strict=True)]
        rho, ends = max(own[3] for own in found), np.array([low[is_open], high[is_open]])
        M = max([abs(own[2]) for own in found] + [*np.abs(ends[np.isfinite(ends)])]) / (1 - rho)
        need(named >= {*open_ends} and rho < 0.5 and np.isfinite(M), "an amount without an end")
        for side, arm, least, rho in found:
            if side == 0:
                low[arm] = max(low[arm], least - rho * M)
            else:
                high[arm] = min(high[arm], rho * M - least)
        return row_bounds(self.A, self.right, low, high)

    def holds(self, claim, box, tree):
        """Return whether a tree of boxes shows this claim for every plan.

        Its numbers are those of amounts in units of `unit`, and of some of the rows. One more variable,
        t = b.x, is a part of L, so that a box can be split at a value of L.
        """
        (m, n), k, unit = self.A.shape, len(self.arms), self.proof["unit"]
        A, right = np.zeros((m + 1, n + 1)), np.append(self.right, 0.0)
        A[:m, :n], A[m, :k], A[m, n] = self.A, claim.b, -1.0
        ends = claim.b * np.array(box)[:, :k]
        least, most = ends.min(axis=0).sum(), ends.max(axis=0).sum()
        room = 1e-9 * (abs(least) + abs(most) + 1e-300)
        boxes = [(np.append(box[0], least - room), np.append(box[1], most + room))]
        for node in tree:
            low, high = boxes.pop()
            for at, step, prices in node["cuts"]:
                y = np.zeros(m + 1)
                y[self.proof["rows"]] = np.array(prices[:-1], dtype=float) * step / unit
                y[m] = prices[-1] * step
                low, high = claim.cut(at, y, A, right, low, high)
            if node["split"] is not None:
                j, value = node["split"]
                value = value if j == n else value * unit
                above, below = low.copy(), high.copy()
                above[j], below[j] = max(low[j], value), min(high[j], value)
                boxes += [(above, high), (low, below)]
            elif (low <= high).all():
                return False
        return not boxes


# PLANS BEHIND AN ORACLE: no list of them, but a function that finds the best one

BY_GAP, FIXED = [0.15, 0.5, 1.5], [0.5**k for k in range(6)]  # common bets, in two recorded sizes
COLUMNS = len(GRID) + len(BY_GAP) + len(FIXED) + 1  # bets on one plan of fixed sizes, common bets, a mixture
COMMON_BETS = slice(len(GRID), -1)
ACCOUNTS = 8  # within epsilon: accounts of leaders that are kept
BIAS, SHRINKAGE = 0.35 * math.log(300.0), 0.15  # standard errors by which mixtures are centred lower
MOST_CALLS = 10**6  # of an oracle, for one claim


class Plans:
    """All plans, by a function best(weights); for whole numbers also best_within(weights, lower, upper).

    They return the best plan of all, or within bounds (None if there is none). Here larger is better: where
    the goal is the smallest total plans are the negated vectors, so that the weights are the user's own.
    """

    def __init__(self, best, best_within, sign):
        self.of_all, self.within, self.sign, self.n_calls = best, best_within, sign, 0

    def best(self, weights, low, high):
        """Return a plan of the box with the largest value, or None where the box has none."""
        self.n_calls += 1
        need(self.n_calls < MOST_CALLS, "the search through all plans has no end")
        if self.within is not None and np.isfinite([low, high]).any():
            ends = (low, high) if self.sign > 0 else (-high, -low)
            plan = self.within(weights.copy(), *ends)
        elif self.within is not None:
            plan = self.of_all(weights.copy())
        else:  # zeros and ones: a pinned entry is worth more than all others together
            towards = low + high - self.sign
            large = 2 * np.abs(weights) @ (high - low) or 1.0
            plan = self.of_all(weights * (high - low) + large * towards)
        if plan is None:
            return None
        plan = self.sign * np.array(plan, dtype=float)
        need(plan.shape == low.shape and (np.rint(plan) == plan).all(), "the oracle returns no plan")
        is_inside = (plan >= low).all() and (plan <= high).all()
        need(is_inside or self.within is None, "the oracle returns a plan beyond the bounds")
        return plan if is_inside else None


def are_whole(oracle):
    """Return whether plans are of whole numbers, not of zeros and ones alone."""
    return "best_within" in oracle or oracle["kind"] in ("knapsack", "production")


RATE = 0.05  # of g - 1 in a mixture that bounds the noise
EXCESS = np.exp(np.arange(-20.0, 6.0, 0.05))  # g - 1
EXCESS_WEIGHTS = EXCESS * np.exp(-RATE * EXCESS) / (EXCESS * np.exp(-RATE * EXCESS)).sum()
SHARE = 0.2  # of delta, for all bounds on unknown noise
NO_BOUND = 2.0**899  # no bet is made with this much noise


def learned(S, v, g, cap):
    """Gaussian noise of unknown size: exp(lam D - k lam^2 q / 2), for sums D of readings x with weights w.

    S is D; q, the sum of w^2 (x - c)^2 about centres c that are fixed before; and the largest w U, U at least
    the noise of a reading. By the Gaussian integral the log of the mean is at most lam times the gap and, for
    each reading, (v - log(1 + k v)) / 2 with v = (lam w noise)^2. That is convex in v, is 0 at 0, and at
    (lam w U)^2 at most 0: so it is in between.
    """
    lam = np.minimum(g / v[:, None], 1 / S[:, 2, None])
    return lam * S[:, 0, None] - kappa((lam * S[:, 2, None]) ** 2) * lam**2 * S[:, 1, None] / 2


def kappa(V):
    """Return the least k for which log(1 + k V) is V."""
    return np.where(V > 0, np.expm1(V) / np.where(V > 0, V, 1.0), 1.0)


class LearnedData(Data):
    """Gaussian noise of unknown size, which a decision bounds by all values before it."""

    assumed = "independent noise, Gaussian and of one unknown size for each arm"

    def __init__(self, problem, delta):
        super().__init__(problem)
        n = len(self.owner)
        self.factor, self.learns, self.level = learned, False, SHARE * delta / (2 * n)
        self.centres, self.past = np.zeros(n), [[] for _ in range(n)]  # values by arm and batch

    def learn(self, d):
        n = len(self.owner)
        self.variance, self.most = steps(d["noise"], n) ** 2, steps(d["bounds"], n)
        self.centres = np.array(d["centres"], dtype=float) / 2**12 * self.most
        need(self.centres.shape == (n,) and np.isfinite(self.centres).all(), "centres that are no numbers")

    def read(self, G, uses):
        super().read(G, uses)
        self.squares = np.zeros(len(self.owner))
        for arm, own in self.values.items():
            self.squares[arm] = ((own - self.centres[arm]) ** 2).sum()
            self.past[arm] += [own] if len(own) else []
        return True

    def check_bounds(self, bounds):
        """Check that the values of each arm are too rare for noise above its bound, in one of two ways.

        Let S be a sum of n squares about their mean, and u = S / 2 noise^2. Of all values, at all times:
        g^((n-1)/2) exp(-(g-1) u) has a mean of 1 for each g > 1, so that a mixture ever reaches 1/level with
        probability at most `level`. Of the first batch: 2 u is chi-square, and the series of its distribution
        function is at most a geometric one.
        """
        for values, bound in zip(self.past, steps(bounds, len(self.past)), strict=True):
            if bound >= NO_BOUND:
                continue
            first, every = values[0], np.concatenate(values)
            u = ((every - every.mean()) ** 2).sum() / (2 * bound**2)
            logs = np.log(EXCESS_WEIGHTS) + 0.5 * (len(every) - 1) * np.log1p(EXCESS) - EXCESS * u
            a, u = 0.5 * (len(first) - 1), ((first - first.mean()) ** 2).sum() / (2 * bound**2)
            log_p = a * np.log(u) - u - math.lgamma(a + 1) - np.log1p(-u / (a + 1))  # nan if u is above a + 1
            is_rare = log_p <= math.log(self.level) or log_sum(logs) >= -math.log(self.level)
            need(is_rare, "a bound on the noise that is too low")

    def show(self, bet):
        S, v, on = super().show(bet)
        if self.factor is learned:
            W = self.weights(np.where(self.is_known, 0.0, bet.vectors))[0]
            reach = np.maximum((np.abs(W) * self.most).max(axis=1), 1e-300)
            S = np.column_stack([S[:, 0], W**2 @ self.squares, reach])
        return S, v, on


class Account:
    """Stakes and bets against all plans, none of them listed; `low` and `high` hold those not ruled out.

    Stakes are before which batch, and logs by column. Claims say that a box of plans was ruled out at a time.
    """

    def __init__(self, low, high, cash=EMPTY):
        self.low, self.high, self.cash = low.copy(), high.copy(), cash
        self.stakes, self.batches, self.claims, self.final = [], [], [], None

    def common(self, cash, n_batches=None, n_stakes=None):
        """Return rows whose products with (1, plan, plan^2) are the logs of cash and of all common bets."""
        rows = [np.append(cash, np.zeros((1, 2 * len(self.low))))[None]]
        for begun, logs in self.stakes[:n_stakes]:
            own = sum((batch.common for batch in self.batches[begun:n_batches]), np.zeros((1, 1)))
            rows.append(own + np.outer(logs[COMMON_BETS], np.eye(rows[0].shape[1])[0]))
        return np.vstack(rows)


@dataclass
class PlanBatch:
    """What was fixed before a batch, and what it shows of the arms."""

    leader: np.ndarray
    sizes: np.ndarray  # of the common bets
    means: np.ndarray  # before the batch, with their variances, and those by what came since the leader led
    prior: np.ndarray
    fresh: np.ndarray
    data: Data = None  # with the values of the batch
    common: np.ndarray = None  # rows of its common bets
    cash: float = 0.0


class BehindOracle(Question):
    """Which plan behind an oracle is best, or within epsilon of the best? Rows are all plans, never listed.

    One account serves all leaders; within epsilon each leader has one. With y = leader - plan, averages m
    with variances v, a common bet of size eta multiplies the wealth against every plan by

        exp(eta (y.m + epsilon) - eta^2 / 2 sum v y^2).

    Plan bets are those of a list: fixed sizes, and a mixture around the gap estimated before. A decision says
    which arms are free: on the others all plans that are left agree with the leader, and they are measured no
    more. Each time that is a claim about boxes of plans. By Jensen's inequality the log wealth of a plan is
    at least H(p) + sum p_r l_r(plan), p any shares of cash and common bets; on a box that is at least an
    affine function, whose least value is one call of the oracle.
    """

    def __init__(self, data, problem, settings):
        self.data, self.sign = data, -1.0 if problem["minimize"] else 1.0
        self.arms, self.epsilon, self.oracle = problem["arm_names"], settings["epsilon"], problem["oracle"]
        n, prior = len(self.arms), problem["prior"] or {"worth": 0.0, "means": 0.0}
        self.is_whole = are_whole(self.oracle)
        self.noise = np.where(data.is_known, 0.0, data.variance)
        ends = (-np.inf, np.inf) if self.is_whole else (0.0, 1.0) if self.sign > 0 else (-1.0, 0.0)
        self.low, self.high = self.everything = np.full(n, ends[0]), np.full(n, ends[1])
        self.is_alike = ~data.is_known & ~np.isin(np.arange(n), problem["used"])  # in all plans, it is said
        self.counts = np.zeros(n)
        self.guides = np.zeros(n) + prior["worth"], np.zeros(n) + np.multiply(prior["worth"], prior["means"])
        self.cash, self.next_stake, self.accounts, self.led, self.done = 0.0, 0.0, {}, {}, []
        self.plans, self.has_removed = None, problem["has_removed"]
        self.threshold = -math.log(settings["delta"] * (1 - SHARE if data.factor is learned else 1))
        self.takes_smaller_delta = data.factor is not learned  # its bets begin anew: a second chance
        self.assumed = ["the oracle returns the best plan for any weights, or the list has all plans"]
        if self.has_removed and data.factor is learned:
            self.assumed.append("bounds on the noise hold though values that they rest on were removed")
        if self.has_removed:
            self.unless_same = "NOT COVERED: without the oracle it is not known what a removal opens again"

    def take(self, proof, plans):
        """Take the oracle, and find between which amounts all plans are."""
        if plans is None:
            return
        plans = Plans(*plans, self.sign)
        for trial in self.oracle.get("probes", ()):
            found = plans.best(np.array(trial["weights"]), *self.everything)
            need(np.allclose(found, self.sign * np.array(trial["plan"])), "the oracle is another one")
        self.plans, self.ends, n, self.unless_same = plans, self.everything, len(self.arms), "FAILED"
        if self.is_whole or self.is_alike.any():
            directions = np.vstack([-np.eye(n), np.eye(n)])
            extreme = np.array([plans.best(one, *self.everything) for one in directions])
            self.ends = extreme.min(axis=0), extreme.max(axis=0)

    def key(self, leader):
        own = tuple(leader)
        return own if self.epsilon or own in self.accounts else COMMON

    def begin(self, d):
        """Begin the next stage if the decision says so."""
        for plan, delta in d.get("stages", ())[len(self.done) :]:
            self.next_stage(np.array(plan), delta)

    def must_show(self, account, leader):
        """Return the arms on which the leader may differ from a plan that is left."""
        low, high = account.low, account.high
        return ~self.data.is_known & ((low < high) | (leader < low) | (leader > high))

    def cash_of(self, account):
        return np.logaddexp(self.cash, account.cash)

    def fix(self, account, leader, arms):
        """Claim that the plans that are left agree with the leader on these arms."""
        now = len(account.batches), len(account.stakes), self.cash_of(account), self.threshold, account.final
        for s in np.flatnonzero(self.must_show(account, leader) & arms):
            claims = [(*now, *box) for box in others(account.low, account.high, s, leader[s])]
            if self.plans and self.has_removed and not all(self.rules_out(account, one) for one in claims):
                continue  # what had ruled these plans out was removed
            account.claims += claims
            account.low[s] = account.high[s] = leader[s]

    def fix_all(self, account, leader):
        """Claim that no plan is left but the leader, or such as differ in arms of known means."""
        self.fix(account, leader, True)
        need(not self.must_show(account, leader).any())

    def bets(self, d):
        data, leader = self.data, np.array(d["leader"], dtype=float)
        need(leader.shape == self.low.shape and np.isfinite(leader).all(), "its leader is no plan")
        if not self.led:
            self.low, self.high = (np.where(self.is_alike, leader, end) for end in self.everything)
        if self.key(leader) not in self.accounts:
            self.next_stake = 0.0
        account = self.accounts.pop(self.key(leader), None) or Account(self.low, self.high)
        if len(self.accounts) >= ACCOUNTS:
            del self.accounts[next(iter(self.accounts))]
        self.accounts[self.key(leader)] = account
        first = self.led.setdefault(tuple(leader), self.counts.copy())
        self.fix(account, leader, ~np.isin(np.arange(len(leader)), d["free"]))
        uses, since = self.counts + self.guides[0], self.counts - first
        if not d["final"] and uses.sum() >= self.next_stake:
            self.next_stake = 1.6 * uses.sum()
            self.stake(account)
        means = np.where(uses > 0, self.guides[1] / np.maximum(uses, 1e-300), 0.0)
        means = np.where(data.is_known, data.known_means, np.clip(means, *data.known.T))
        prior, fresh = (np.where(n > 0, data.variance / np.maximum(n, 1e-300), 0.0) for n in (uses, since))
        sizes = np.append(np.multiply(BY_GAP, d["sizes"][0]), np.multiply(FIXED, d["sizes"][1]))
        need((sizes >= 0).all() and np.isfinite(sizes).all(), "its bets have no sizes")
        return [(account, PlanBatch(leader, sizes, means, prior, fresh))]

    def stake(self, account):
        """Stake the same against every plan: a part on common bets, the rest on plan bets."""
        is_first = not account.stakes and not self.epsilon
        share, fixed = (0.73, 0.48) if is_first else (0.3, 0.0)
        amount = self.cash_of(account) + math.log(share)
        self.cash, account.cash = self.cash + math.log1p(-share), account.cash + math.log1p(-share)
        parts, n = np.zeros(COLUMNS), len(BY_GAP) + len(FIXED) * is_first
        parts[: len(GRID)] = 0.65 * fixed / len(GRID)
        parts[len(GRID) : len(GRID) + n] = 0.35 / n
        parts[-1] = 0.65 * (1 - fixed)
        account.stakes.append((len(account.batches), np.maximum(amount + np.log(parts), EMPTY)))

    def settle(self, bet):
        account, batch = bet
        if (self.must_show(account, batch.leader) & (self.data.n == 0)).any():
            return  # an arm that may matter is not measured, which the counts say beforehand
        batch.data = copy.copy(self.data)
        batch.data.cap = 0.5  # of mixtures
        is_bounded = self.data.factor is bounded
        batch.common = self.chords(batch) if is_bounded else self.parabolas(batch.sizes, batch)
        account.batches.append(batch)
        batch.cash = self.cash_of(account)

    def parabolas(self, eta, batch):
        """Return rows of log exp(eta (y.m + epsilon) - eta^2 / 2 sum v y^2), by size."""
        x, data, (means, v) = batch.leader, batch.data, averages(batch.data)
        if data.factor is learned:
            n, is_used = np.maximum(data.n, 1), (data.n > 0) & ~data.is_known
            far = np.maximum(*(np.abs(x - end) for end in self.everything))
            reach = np.where(is_used, far * data.most / n, 0.0)
            eta = np.minimum(eta, 1 / max(reach.max(), 1e-300))
            v = kappa(np.outer(eta, reach) ** 2) * np.where(is_used, data.squares / n**2, 0.0)
        curve = 0.5 * eta[:, None] ** 2 * v
        constant = eta * (x @ means + self.epsilon) - curve @ x**2
        return np.column_stack([constant, 2 * curve * x - np.outer(eta, means), -curve])

    def chords(self, batch):
        """Return rows of common bets on bounded readings: lines through both amounts that an arm can have."""
        ends, n = (self.everything[0][0], self.everything[1][0]), len(self.arms)
        bets = [Bet(None, None, np.arange(n), np.diag(batch.leader - end), 0.0) for end in ends]
        shown = [batch.data.show(bet)[0] for bet in bets]
        eta = np.minimum(batch.sizes, CAP / max(S[:, 1].max() for S in shown))
        at_low, at_high = (bounded(S, np.ones(n), np.tile(eta, (n, 1)), CAP).T for S in shown)
        slope = (at_high - at_low) / (ends[1] - ends[0])
        constant = (at_low - slope * ends[0]).sum(axis=1) + eta * self.epsilon
        return np.column_stack([constant, slope, np.zeros_like(slope)])

    def test(self, bet, gaussian):
        account, batch = bet
        self.settle(bet)
        if self.data.factor is not bounded and batch.data is not None:
            account.final = account.batches.pop(), gaussian or self.data.factor is learned
            if self.data.factor is learned:  # the test takes the bounds
                batch.data.factor, batch.data.variance = sub_gaussian, batch.data.most**2

    def look(self):
        """Add a batch to what guides the next ones."""
        sums, n = self.data.sums.sum(axis=1), self.data.n
        self.counts, self.guides = self.counts + n, (self.guides[0], self.guides[1] + sums)

    def as_leader(self, plan):
        return (self.sign * np.array(plan)).tolist()

    def mean_wealth(self, leader):
        """Return the wealth of cash and common bets at one point, which is no plan."""
        account = self.accounts.get(self.key(leader))
        point = np.modf(GOLDEN * np.arange(1, len(self.arms) + 1))[0]
        return log_sum(account.common(self.cash_of(account)) @ features(point)) if account else self.cash

    def evidence(self, account, plan):
        """Return the largest log wealth that there has been against this plan, by a book of its row alone."""
        book = Book(1)
        wealth = book.accounts[COMMON] = np.full((1, COLUMNS), EMPTY)
        for k, batch in enumerate(account.batches):
            for begun, logs in account.stakes:
                if begun == k:
                    wealth[:] = np.logaddexp(wealth, logs)
            bet = self.plan_bet(book, batch, plan)
            if batch.data.show(bet)[2].all():
                wealth[0, COMMON_BETS] += batch.common @ features(plan)
            batch.data.settle(bet)
            book.cash = batch.cash
            book.look()
        if account.final:
            batch, gaussian = account.final
            book.cash = batch.cash
            batch.data.test(self.plan_bet(book, batch, plan), gaussian)
        return book.evidence(COMMON)[0]

    def plan_bet(self, book, batch, plan):
        """Return the bet that the leader of a batch is better than this plan, by more than -epsilon."""
        y = batch.leader - plan
        prior, fresh = y**2 @ batch.prior, y**2 @ batch.fresh
        is_new = min(max(prior / fresh, 0.0), 1.0) if fresh > 0 else 0.0
        lower = (BIAS * math.sqrt(1 - is_new) + SHRINKAGE) * math.sqrt(prior)
        centre = y @ batch.means + self.epsilon - lower
        bet = Bet(book, COMMON, np.zeros(1, dtype=int), y[None], self.epsilon)
        noise = batch.data.variance * ~self.data.is_known if self.data.factor is learned else self.noise
        bet.sizes = math.sqrt(y**2 @ noise) * GRID[None]
        bet.centre, bet.error = np.array([centre if prior > 0 else -1.0]), np.array([math.sqrt(prior)])
        return bet

    def rules_out(self, account, claim):
        """Return whether all plans of a box have had enough wealth against them: branch and bound.

        Shares p bound a box, and show the plan where it is least; the logs of that plan give new shares.
        If it is ruled out and the box is not, the rest of the box is searched in parts.
        """
        n_batches, n_stakes, cash, least, final, low, high = claim
        rows, test, is_out, n = account.common(cash, n_batches, n_stakes), 0.0, {}, len(self.arms)
        boxes, p = [(np.maximum(low, self.ends[0]), np.minimum(high, self.ends[1]))], np.eye(len(rows))[0]
        while boxes:
            low, high = boxes.pop()
            is_left, found = True, {}
            while len(found) < 15:
                a, b, curve = np.split(rows + test, [1, n + 1], axis=1)
                a = a[:, 0] - curve @ (low * high)  # each log is at least a + b.plan
                b = b + curve * (low + high)
                plan = self.plans.best(-p @ b, low, high)
                is_left = plan is not None and self.least(p, a, b, plan, low, high) < least
                if not is_left or tuple(plan) in found:
                    break
                key, logs = tuple(plan), a + b @ plan
                if key not in is_out:
                    is_out[key] = self.evidence(account, plan) >= least
                if not is_out[key]:
                    return False
                found[key] = log_sum(logs)
                if found[key] <= min(found.values()):
                    worst, p = plan, np.exp(logs - found[key])
                if final:
                    means, v = averages(final[0].data)
                    y = final[0].leader - plan
                    g = max(y @ means + self.epsilon, 0.0) / (y**2 @ v) if y**2 @ v > 0 else 0.0
                    test = self.parabolas(np.array([g]), final[0])
            for s in np.flatnonzero(low < high) if is_left else ():
                boxes += others(low, high, s, worst[s])
                low, high = low.copy(), high.copy()
                low[s] = high[s] = worst[s]
        return True

    def least(self, p, a, b, plan, low, high):
        """Return a bound on the log wealth of a box by shares p, if `plan` has its least p.(a + b.plan)."""
        far = np.maximum(np.abs(low), np.abs(high))
        size = p @ np.abs(a) + p @ np.abs(b) @ far
        size += np.abs(p @ b) @ far * (1 if self.plans.within else 1 + 2 * len(low))  # pinned entries
        log_shares = np.log(p, where=p > 0, out=np.zeros(len(p)))
        return p @ (a + b @ plan - log_shares) - ROUNDING * size

    def compare(self, recorded):
        super().compare(recorded)
        if "bounds" in recorded:
            self.data.check_bounds(recorded["bounds"])

    def next_stage(self, leader, delta):
        """Begin again with a smaller delta, when all plans but this one have had enough for the last one.

        Their wealth is known no further than that. For this plan alone it becomes what is not invested.
        """
        account = self.accounts[self.key(leader)]
        self.fix_all(account, leader)
        self.done.append(account)
        cash = self.threshold + math.log1p(-math.exp(self.cash - self.threshold))
        self.accounts, self.next_stake = {tuple(leader): Account(self.low, self.high, cash)}, 0.0
        self.threshold = -math.log(delta)

    def proved(self, plan, least):
        leader, plans = np.array(self.as_leader(plan)), self.plans
        account = self.accounts.get(self.key(leader)) or Account(self.low, self.high)
        need(self.threshold >= least)
        self.fix_all(account, leader)
        what = "that no other plan is left, which needs --plans or --oracle; all else is as it should be"
        need(plans is not None, what, "NOT COVERED")
        for one in [leader, *map(np.array, self.led)]:
            need(np.array_equal(plans.best(0 * one, one, one), one), "a leader that is no plan")
        is_alike = (self.ends[0] == leader) & (self.ends[1] == leader)
        need(is_alike[self.is_alike].all(), "plans differ on an arm that was never measured")
        for one in (*self.done, account):
            need(all(self.rules_out(one, claim) for claim in one.claims))
        best = plans.best(self.data.known_means, account.low, account.high)
        need((best - leader) @ self.data.known_means <= 1e-9)
        return f"{named(self.arms, plan)} is {self.goal}"


def features(plan):
    return np.concatenate([[1.0], plan, plan**2])


def others(low, high, s, value):
    """Return the boxes of the plans of a box with another whole number on arm s: those below, and above."""
    below, above = high.copy(), low.copy()
    below[s], above[s] = min(high[s], value - 1), max(low[s], value + 1)
    return [part for part in ((low.copy(), below), (above, high.copy())) if part[0][s] <= part[1][s]]


def question(problem, settings):
    """Return the question of a problem whose plans are not listed."""
    is_polytope = problem["oracle"]["kind"] == "polytope"
    kind = (WithinPolytope if settings["epsilon"] else BestVertex) if is_polytope else BehindOracle
    need(not problem.get("plays"), "whole plans as probes", "NOT COVERED")
    data = Data(problem)
    if kind is not BestVertex:  # bets are sums over arms
        are_amounts, is_unknown = kind is WithinPolytope or are_whole(problem["oracle"]), data.learns
        need("noise" not in problem, "noise of bounded variance for these plans", "NOT COVERED")
        need(not (is_unknown and are_amounts), "noise of unknown size for these plans", "NOT COVERED")
        if is_unknown:
            data = LearnedData(problem, settings["delta"])
        elif are_amounts:
            data.factor = sub_gaussian  # of readings between bounds too: half their distance is the noise
    return kind(data, problem, settings)


def functions_in(path):
    """Return the functions best and best_within of a Python file."""
    found = runpy.run_path(path)
    return found["best"], found.get("best_within")


def functions_of_list(path, log):
    """Return best and best_within for a list of all plans: a CSV file with a column for each arm."""
    problem = json.loads(log["events"][0]["body"])["problem"]
    with Path(path).open(newline="", encoding="utf-8") as file:
        plans = np.array([[float(row[arm]) for arm in problem["arm_names"]] for row in csv.DictReader(file)])
    sign = -1.0 if problem["minimize"] else 1.0

    def best_within(weights, lower, upper):
        inside = plans[((plans >= lower) & (plans <= upper)).all(axis=1)]
        return inside[np.argmax(sign * inside @ weights)] if len(inside) else None

    return lambda weights: best_within(weights, -np.inf, np.inf), best_within
