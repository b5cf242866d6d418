"""Check answers about plans that are not listed. check.py imports this file where a log asks for it.

It has the questions alone: factors, wealth, measurements and the log are those of check.py, which explains
them. Where plans are listed, each has a row of wealth. Here something has to be shown of all plans at once:

- the best plan of a polytope: the edges at its vertex are the rows;
- a polytope within epsilon: the certificate has a tree of boxes. Only its splits and prices are taken from
  there, which may be any numbers; the wealth against the plans of a box is computed here;
- behind an oracle: a search through boxes of plans, where the oracle finds the plan that is hardest to rule
  out. You have to trust that it returns the best plan for any weights: it may be your own function, or a few
  lines that you write. Without it the program checks all but that no other plan is left, and says so.

Not covered: whole plans as probes behind an oracle; noise of unknown size or of bounded variance behind an
oracle, or on a polytope within epsilon.
"""

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
    NOT_PROVED,
    POWERS,
    SERIES,
    Bet,
    Book,
    Data,
    Question,
    bounded,
    log_normal_cdf,
    log_p,
    log_sum,
    mixture,
    need,
    numbers_in,
)

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
        n, costs, sizes, constant, size, least = (
            len(self.b),
            np.zeros(len(low)),
            np.zeros(len(low)),
            0.0,
            0.0,
            0.0,
        )
        far = np.maximum(np.abs(low), np.abs(high))
        if at is not None:
            slope, least = self.tangent(*at)
            corner = self.e @ (low[:n] * high[:n])
            constant = self.a - slope * (self.c - corner)
            costs[:n] = self.b - slope * (self.e * (low + high)[:n] - 2 * self.d)
            size = abs(self.a) + slope * (abs(self.c) + self.e @ np.abs(low[:n] * high[:n]))
            sizes[:n] = np.abs(self.b) + slope * (2 * self.e * far[:n] + 2 * np.abs(self.d))
        r = costs - y @ A
        size += np.abs(y) @ np.abs(right) + (sizes + np.abs(y) @ np.abs(A)) @ far
        bound = constant + y @ right + np.minimum(r * low, r * high).sum() - ROUNDING * size
        missing = least - bound
        if missing < 0:
            return low + np.inf, high
        reach = missing / np.abs(r) * (1 + ROUNDING)
        room = ROUNDING * far
        is_less = np.isfinite(reach)
        new_high = np.where(is_less & (r > 0), np.minimum(high, low + reach + room), high)
        return np.where(is_less & (r < 0), np.maximum(low, high - reach - room), low), new_high


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
        need(is_best, NOT_PROVED)
        return f"{self.named(plan)} is {self.goal}"


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
        means = np.where(is_measured, data.sums[:, 0] / np.maximum(data.n, 1), data.known_means)
        variance = np.where(is_measured, data.variance / np.maximum(data.n, 1), 0.0)
        return leader, float(data.n @ self.costs), self.sign * np.where(self.moves, means, 0.0), variance

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
            need(np.allclose(tested, plan, rtol=1e-9, atol=1e-9) and shown is not None, NOT_PROVED)
            need(z > 0 and level - log_p >= least, NOT_PROVED)
            need(self.holds(Claim([shown], self.epsilon, z), box, proof["test"]["boxes"]), NOT_PROVED)
            is_level = level <= self.cash or self.holds(self.claim(k, level), box, proof["series"]["boxes"])
        else:
            is_level = any(
                np.allclose(self.average(k), plan, rtol=1e-9, atol=1e-9)
                and self.holds(self.claim(k, least), box, proof["series"]["boxes"])
                for k, own in enumerate(self.series)
                if own[0] < len(self.batches)
            )
        need(is_level, NOT_PROVED)
        return f"{self.named(plan)} is {self.goal}"

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
N_COMMON = len(BY_GAP) + len(FIXED)
ACCOUNTS = 8  # within epsilon: accounts of leaders that are kept
BIAS, SHRINKAGE = 0.35 * math.log(300.0), 0.15  # mixtures are centred so many standard errors lower
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

    def slack(self, weights, low, high):
        """Return what the value of `best` may miss by rounding."""
        size = np.abs(weights) @ np.maximum(np.abs(low), np.abs(high))
        return ROUNDING * (size if self.within else size * (1 + 2 * len(low)))


def are_whole(oracle):
    """Return whether plans are of whole numbers, not of zeros and ones alone."""
    return "best_within" in oracle or oracle["kind"] in ("knapsack", "production")


class Account:
    """Stakes and bets against all plans, none of them listed; `low` and `high` hold those not ruled out.

    A component of the wealth is a stake (before which batch, log, column): columns are common bets, then
    fixed sizes, then the mixture. Claims say that a box of plans has been ruled out at a time.
    """

    def __init__(self, low, high, cash=EMPTY):
        self.low, self.high, self.cash = low.copy(), high.copy(), cash
        self.stakes, self.batches, self.claims, self.final = [], [], [], (None, False)

    def common(self, begun, end, column):
        """Return a common bet on these batches as constant, slope and curve of a plan."""
        parts, nothing = [batch.common for batch in self.batches[begun:end]], np.zeros(len(self.low))
        return [
            sum((part[k][column] for part in parts), start) for k, start in enumerate((0.0, nothing, nothing))
        ]


@dataclass
class PlanBatch:
    """What was fixed before a batch, and what it shows of the arms."""

    leader: np.ndarray
    sizes: np.ndarray  # of the common bets
    means: np.ndarray  # before the batch, with their variances, and those by what came since the leader led
    prior: np.ndarray
    fresh: np.ndarray
    seen: np.ndarray = None  # arms that the batch measures, or whose means are known
    shown: tuple = ()  # averages; for bounded readings centres, uses, furthest readings and power sums
    variance: np.ndarray = None  # of the averages
    common: tuple = ()
    cash: float = 0.0

    @property
    def tested(self):
        return self.leader, self.shown[0], self.variance


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

    assumed = ("the oracle returns the best plan for any weights, or the list has all plans",)

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
        self.threshold = -math.log(settings["delta"])
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
        return float(np.logaddexp(self.cash, account.cash))

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
        need(not self.must_show(account, leader).any(), NOT_PROVED)

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
        amount, begun = self.cash_of(account) + math.log(share), len(account.batches)
        self.cash, account.cash = self.cash + math.log1p(-share), account.cash + math.log1p(-share)
        n = N_COMMON if is_first else len(BY_GAP)
        parts = [0.35 / n] * n + [0.0] * (N_COMMON - n) + [0.65 * fixed / len(GRID)] * len(GRID)
        for column, part in enumerate([*parts, 0.65 * (1 - fixed)]):
            if part:
                account.stakes.append((begun, amount + math.log(part), column))

    def settle(self, bet):
        account, batch = bet
        data, leader = self.data, batch.leader
        if (self.must_show(account, leader) & (data.n == 0)).any():
            return  # an arm that may matter is not measured, which the counts say beforehand
        n = np.maximum(data.n, 1)
        is_measured = (data.n > 0) & ~data.is_known
        batch.seen = is_measured | data.is_known
        batch.variance = np.where(is_measured, data.variance / n, 0.0)
        if data.factor is bounded:
            batch.shown = self.power_sums(n, is_measured)
            ends = self.everything[0][0], self.everything[1][0]
            far = np.maximum(np.abs(leader - ends[0]), np.abs(leader - ends[1]))
            eta = np.minimum(batch.sizes, CAP / max((far * batch.shown[2] / n).max(), 1e-300))
            at_low, at_high = (self.by_arm(eta, leader - end, batch.shown) for end in ends)
            constant = at_low.sum(axis=1) - (at_high - at_low).sum(axis=1) * ends[0] + eta * self.epsilon
            batch.common = constant, at_high - at_low, np.zeros_like(at_low)
        else:
            means = np.where(is_measured, data.sums[:, 0] / n, data.known_means)
            batch.shown, v, eta = (means,), batch.variance, batch.sizes
            batch.common = self.affine(eta, leader, means, v)
        account.batches.append(batch)
        batch.cash = self.cash_of(account)

    def affine(self, eta, leader, means, v):
        """Return constant, slope and curve of log exp(eta (y.m + epsilon) - eta^2 / 2 sum v y^2), by size."""
        half = 0.5 * eta**2
        constant = eta * (leader @ means + self.epsilon) - half * (v @ leader**2)
        return constant, np.outer(half, 2 * v * leader) - np.outer(eta, means), np.outer(half, v)

    def power_sums(self, n, is_measured):
        """Return centres, uses, furthest readings from the centres and power sums of bounded readings."""
        data, powers = self.data, np.zeros((len(POWERS), len(n)))
        for arm, values in data.values.items():
            powers[:, arm] = ((values - data.centres[arm]) ** POWERS).sum(axis=0)
        far = np.maximum(data.centres - data.low, data.high - data.centres)
        by_use = np.where(is_measured, np.vstack([far, powers]), 0.0)
        centres = np.where(is_measured, data.centres, data.known_means)
        return centres, n, by_use[0], by_use[1:]

    def by_arm(self, eta, y, shown):
        """Return the log factors of bounded readings by arm, a row for each size."""
        centres, n, _, powers = shown
        each = np.outer(eta, y / n)
        series = sum(a * each**p * sums for a, p, sums in zip(SERIES, POWERS, powers, strict=True))
        return np.outer(eta, y * centres) + series

    def test(self, bet, gaussian):
        account, batch = bet
        self.settle(bet)
        if self.data.factor is not bounded and batch.seen is not None:
            account.final = account.batches.pop(), gaussian

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
        if account is None:
            return self.cash
        logs = [self.cash_of(account)]
        for begun, stake, column in account.stakes:
            if column < N_COMMON:
                constant, slope, curve = account.common(begun, None, column)
                logs.append(stake + constant + np.dot(slope, point) - np.dot(curve, point**2))
        return float(log_sum(np.array(logs)))

    def evidence(self, account, plan):
        """Return the largest log wealth that there has been against this plan."""
        batches, times = account.batches, np.arange(len(account.batches) + 1)
        if not batches:
            return 0.0
        table = np.zeros((len(batches), N_COMMON + len(GRID) + 1))
        for k, batch in enumerate(batches):
            if not (batch.seen | (batch.leader == plan)).all():
                continue  # it does not show the gap to this plan
            y, (constant, slope, curve) = batch.leader - plan, batch.common
            table[k, :N_COMMON] = constant + slope @ plan - curve @ plan**2
            S, v = self.gap(batch, y)
            if not v > 0:
                continue
            sizes = math.sqrt(y**2 @ self.noise) * GRID
            table[k, N_COMMON:-1] = self.data.factor(S, np.array([v]), sizes[None], CAP)[0]
            prior, fresh = y**2 @ batch.prior, y**2 @ batch.fresh
            is_new = min(max(prior / fresh, 0.0), 1.0) if fresh > 0 else 0.0
            low = BIAS * math.sqrt(1 - is_new) + SHRINKAGE
            centre = y @ batch.means + self.epsilon - low * math.sqrt(prior)
            if centre >= 0 and prior > 0:
                found = np.array([v]), np.array([centre]), np.array([math.sqrt(prior)])
                table[k, -1] = mixture(self.data.factor, S, *found, 0.5)[0]
        since = np.vstack([np.zeros(table.shape[1]), np.cumsum(table, axis=0)])
        logs = [np.array([0.0, *(batch.cash for batch in batches)])]
        for begun, stake, column in account.stakes:
            own = stake + since[:, column] - since[begun, column]
            logs.append(np.where(times >= begun, own, EMPTY))
        wealth = log_sum(np.array(logs).T)
        most = wealth[1:].max()
        batch, gaussian = account.final
        if batch is not None:
            S, v = self.gap(batch, batch.leader - plan)
            if v > 0 and (batch.seen | (batch.leader == plan)).all():
                most = max(most, wealth[-1] - log_p(self.data.factor, S, np.array([v]), gaussian)[0])
        return float(most)

    def gap(self, batch, y):
        """Return what a batch shows of the gap y and its variance, as factors take them."""
        v = y**2 @ batch.variance
        base = y @ batch.shown[0] + self.epsilon
        if self.data.factor is not bounded:
            return np.array([[base]]), v
        _, n, far, powers = batch.shown
        sums = [(y / n) ** p @ own for p, own in zip(POWERS, powers, strict=True)]
        return np.array([[base, max((np.abs(y) / n * far).max(), 1e-300), *sums]]), v

    def rules_out(self, account, claim):
        """Return whether all plans of a box have had enough wealth against them: branch and bound."""
        end, n_stakes, cash, least, (final, _), low, high = claim
        box = np.maximum(low, self.ends[0]), np.minimum(high, self.ends[1])
        common = [own for own in account.stakes[:n_stakes] if own[2] < N_COMMON]
        parts = [account.common(begun, end, column) for begun, _, column in common]
        nothing = np.zeros(len(self.arms))
        constant = np.array([cash] + [own[1] + part[0] for own, part in zip(common, parts, strict=True)])
        slope = np.array([nothing] + [part[1] for part in parts])
        curve = np.array([nothing] + [part[2] for part in parts])
        boxes, p, g, is_out = [box], np.eye(len(constant))[0], 0.0, {}
        while boxes:
            low, high = boxes.pop()
            seen, lowest = {}, np.inf  # plans that are worst for some p
            far = np.maximum(np.abs(low), np.abs(high))
            for _ in range(15):
                test = self.affine(np.array([g]), *final.tested) if final else (0.0, 0.0, 0.0)
                a = constant + test[0] + (curve + test[2]) @ (low * high)  # a + b.plan is below each log
                b = slope + test[1] - (curve + test[2]) * (low + high)
                log_shares = np.log(p, where=p > 0, out=np.zeros(len(p)))
                plan = self.plans.best(-p @ b, low, high)
                if plan is None:
                    break
                rounding = ROUNDING * (p @ np.abs(a) + p @ np.abs(b) @ far)
                rounding += self.plans.slack(p @ b, low, high)
                if p @ (a + b @ plan - log_shares) - rounding >= least:
                    plan = None
                    break
                key = tuple(plan)
                if key in seen:
                    break
                if key not in is_out:
                    is_out[key] = self.evidence(account, plan) >= least
                if not is_out[key]:
                    return False
                logs = a + b @ plan
                seen[key] = log_sum(logs)
                if seen[key] < lowest:
                    lowest, worst, p = seen[key], plan, np.exp(logs - seen[key])
                if final:
                    S, v = self.gap(final, final.leader - plan)
                    g = max(float(S[0, 0]), 0.0) / v if v > 0 else 0.0
            if plan is not None:  # one plan is out, and the rest of the box is in parts
                for s in np.flatnonzero(low < high):
                    boxes += others(low, high, s, worst[s])
                    low, high = low.copy(), high.copy()
                    low[s] = high[s] = worst[s]
        return True

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
        need(self.threshold >= least, NOT_PROVED)
        self.fix_all(account, leader)
        what = "that no other plan is left, which needs --plans or --oracle; all else is as it should be"
        need(plans is not None, what, "NOT COVERED")
        for one in [leader, *map(np.array, self.led)]:
            need(np.array_equal(plans.best(0 * one, one, one), one), "a leader that is no plan")
        is_alike = (self.ends[0] == leader) & (self.ends[1] == leader)
        need(is_alike[self.is_alike].all(), "plans differ on an arm that was never measured")
        for one in (*self.done, account):
            need(all(self.rules_out(one, claim) for claim in one.claims), NOT_PROVED)
        best = plans.best(self.data.known_means, account.low, account.high)
        need((best - leader) @ self.data.known_means <= 1e-9, NOT_PROVED)
        return f"{self.named(plan)} is {self.goal}"


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
    if kind is BestVertex:
        return kind(Data(problem), problem, settings)
    # bets are sums over arms
    is_stated = problem["noise_scale"] is not None and "noise" not in problem
    need(is_stated, "this noise behind an oracle, or on a polytope within epsilon", "NOT COVERED")
    learns_variance = kind is BehindOracle and not are_whole(problem["oracle"])
    return kind(Data(problem, learns_variance=learns_variance), problem, settings)


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
