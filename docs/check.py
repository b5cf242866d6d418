"""Check an exported surepick log on its own.

    python check.py log.json                       a list of plans, or the best plan of a polytope
    python check.py log.json certificate.json      a polytope within epsilon
    python check.py log.json --oracle best.py      behind an oracle: best(weights), as the session had it
    python check.py log.json --plans plans.csv     the same, by a list of them with a column for each arm

`surepick export -o log.json` writes the log, and -o certificate.json the certificate. This program needs
NumPy alone and shares no code with surepick. Where plans are a list, this file is all that you have to
trust. For a polytope or an oracle it imports check_unlisted.py, which has to lie beside it. It checks the
chain of checksums, computes from the values how much wealth each recorded bet won or lost, and compares the
wealth with 1/delta. It prints the guarantee of the answer (exit code 0), or what fails or is not covered
(exit code 1).

Why this is enough (docs/theory.md): counts, bets and stakes are fixed before the values of their batch, so
it does not matter how they were chosen. Every hypothesis, such as "plan j is the best", has a row of
wealth. A bet multiplies the wealth of its row by a factor; if the hypothesis is true, the mean of the
factor is at most 1. All wealth against the truth comes from one amount of 1, so it never rises on average.
By Ville's inequality it ever reaches 1/delta with probability at most delta. Each question below names its
hypotheses and says what its answer needs.

How to read it in twenty minutes: FACTORS (the one of your noise), WEALTH (who may bet how much),
MEASUREMENTS (what a batch shows of a gap), then your question, and THE LOG last (nothing is bet after it is
seen).

Covered: probes on lists; noise of a stated size, of bounded variance or of unknown size, and readings
between bounds; known means, prior data, plans and arms that arrive, extra and removed values, a smaller
delta, a final batch.

Not covered: policies that do not bet in batches; arms that arrive beside probes; lists of more than 2e7
amounts; what check_unlisted.py names; a log without an answer, such as one whose budget is spent: "no
answer is proved" (use `surepick verify`).

You have to trust the assumptions that are printed, that values were recorded as they were measured, and
that the log was not rewritten as a whole (compare its last checksum with a copy). A decision also repeats
two numbers that follow from the values before it. No guarantee rests on them; they reveal a log that was
changed in parts.
"""

import argparse
import functools
import hashlib
import itertools
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np

GRID = 2.0 * 0.5 ** (np.arange(15) / 2)  # fixed bet sizes, in deviations of a gap after one value of each arm
QUANTILES = np.array([NormalDist().inv_cdf((k + 0.5) / 12) for k in range(12)])
EMPTY, CERTAIN = -1e300, 700.0  # log of nothing; evidence against what is surely no better
COMMON, WAITING, OUT, KEEP, BREAK = "common", "waiting", "out", "keep", "break"  # accounts
FEW = 64  # the most plans of which all pairs bet for one within epsilon
LEADERS = 24  # accounts of leaders that are kept; forgetting one only lowers wealth
GOLDEN = 0.618033988749895  # its multiples are weights of values in a sum that every value moves
CAP = 0.75  # the most that one use with bounded readings may take of a bet
POWERS = np.arange(1, 7)
SERIES = (-1.0) ** (POWERS - 1) / POWERS  # of log(1 + z); its last term keeps it below for z >= -CAP
SERIES[5] = (np.log1p(-CAP) + (CAP ** POWERS[:5] / POWERS[:5]).sum()) / CAP**6
np.seterr(divide="ignore", invalid="ignore")  # a gap without values has infinite variance, and no bet


def need(holds, words="its answer is not proved", verdict="FAILED"):
    if not holds:
        raise SystemExit(f"{verdict}: {words}")


def log_sum(x):
    top = x.max(axis=-1)
    return top + np.log(np.exp(x - top[..., None]).sum(axis=-1))


# FACTORS: the log of what a bet of size g on "this gap is above 0" is worth; the mean factor is at most 1 if
# the gap is at most 0. A batch shows S: of each gap a row with its estimate, with one for each of G equal
# replicates (unknown noise), or with what the lemma on bounded readings needs. v is the variance of the
# estimate; a guess where it is learned, and a bad one costs measurements, never correctness.


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
    """exp(lam base) prod (1 + lam w.(x - c)), by its series; S is base, reach, and six power sums."""
    lam = np.minimum(g / v[:, None], cap / S[:, 1, None])
    return lam * S[:, 0, None] + (lam[..., None] ** POWERS * SERIES * S[:, None, 2:]).sum(axis=2)


def mixture(factor, S, v, centre, error, cap):
    """Return the log of the mean factor over g ~ N(centre, error^2), g > 0, or over twelve quantiles."""
    if factor is not sub_gaussian:
        g = centre[:, None] + error[:, None] * QUANTILES
        logs = np.where(g > 0, factor(S, v, np.maximum(g, 0), cap), -np.inf)
        return log_sum(logs) - np.log((g > 0).sum(axis=1))
    prior = error * error
    post = 1 / (1 / prior + 1 / v)
    mode = post * (centre / prior + S[:, 0] / v)
    exponent = 0.5 * np.log(post / prior) + mode**2 / (2 * post) - centre**2 / (2 * prior)
    return exponent + log_normal_cdf(mode / np.sqrt(post)) - log_normal_cdf(centre / error)


def log_p(factor, S, v, gaussian):
    """Return the log of a p-value for "the gap is at most 0": a final batch tests in place of betting."""
    if factor is bounded:  # 1 / the mean of a few factors
        logs = bounded(S, v, np.sqrt(v)[:, None] * np.array([1.5, 2.25, 3.0, 4.0]), CAP)
        return -np.maximum(log_sum(logs) - math.log(4), 0)
    D = S.mean(axis=1)
    if factor is student:
        tail = log_t_tail(D * math.sqrt(S.shape[1]) / S.std(axis=1, ddof=1), S.shape[1] - 1)
    elif factor is bounded_variance:  # Cantelli
        tail = -np.log1p(D * D / v)
    else:
        tail = log_normal_cdf(-D / np.sqrt(v)) if gaussian else -0.5 * D * D / v
    return np.where(D > 0, tail, 0.0)


@functools.partial(np.vectorize, otypes=[float])
def log_normal_cdf(x):
    if x > -30:
        return math.log(0.5 * math.erfc(-x / math.sqrt(2)))
    series = math.log1p(-(x**-2) + 3 * x**-4 - 15 * x**-6)
    return -0.5 * x * x - math.log(-x) - 0.5 * math.log(2 * math.pi) + series


def log_t_tail(t, n):
    """Return log P(T > t) of Student's T with n degrees of freedom, with T = sqrt(n) sinh(u).

    The density of u is cosh(u)^-n up to a constant: 40 / n further on nothing is left.
    """
    nodes, weights = np.polynomial.legendre.leggauss(100)
    u = np.arcsinh(np.minimum(t, 1e9) / math.sqrt(n))[:, None] + 20 / n * (nodes + 1)
    logs = log_sum(np.log(20 / n * weights) - n * (np.logaddexp(u, -u) - math.log(2)))
    return logs + math.lgamma(0.5 * n + 0.5) - math.lgamma(0.5 * n) - 0.5 * math.log(math.pi)


# WEALTH


class Book:
    """One amount of 1: the cash that is not invested, and accounts of log wealth with a row per hypothesis.

    The columns of an account are components: fixed bet sizes first, and a mixture last where there is one.
    An answer may add to the cash what `shared` accounts and one of its own have; `peaks` are the largest sums
    after a batch, and count as evidence.
    """

    def __init__(self, n_rows):
        self.n, self.cash, self.accounts, self.peaks = n_rows, 0.0, {}, {}
        self.shared = WAITING, COMMON

    def add(self, key, amount):
        parts = self.accounts.get(key, np.full(amount.shape, EMPTY))
        self.accounts[key] = np.logaddexp(parts, np.maximum(amount, EMPTY))

    def stake(self, share, parts):
        """Invest these parts of a share of the cash, by account; those of a row sum to at most 1."""
        is_fair = all((part >= 0).all() for part in parts.values())
        is_fair &= sum(part.sum(axis=1) for part in parts.values()).max() <= 1 + 1e-9
        need(type(share) is float and 0 < share < 1 and is_fair, "a stake of more than there is")
        for key, part in parts.items():
            self.add(key, self.cash + math.log(share) + np.log(part))
        self.cash += math.log1p(-share)

    def lead(self, key):
        """Make this account of a leader the one that was used last."""
        leaders = [own for own in self.accounts if own not in self.shared]
        if key not in leaders and len(leaders) >= LEADERS:
            del self.accounts[leaders[0]]
        self.accounts[key] = self.accounts.pop(key, np.full((self.n, 1), EMPTY))

    def total(self, key):
        """Return the log wealth against each row that the answer `key` may use, now."""
        keys = (WAITING, KEEP) if key == KEEP else dict.fromkeys((*self.shared, key))
        parts = [self.accounts[own] for own in keys if own in self.accounts]
        return log_sum(np.hstack([np.full((self.n, 1), self.cash), *parts]))

    def evidence(self, key):
        """Return the largest log wealth so far against each row."""
        return np.maximum(self.peaks.get(COMMON, 0.0), self.peaks.get(key, np.zeros(self.n)))

    def look(self):
        """Keep the largest log wealth, after a batch."""
        for key in self.accounts.keys() - {WAITING}:
            self.peaks[key] = np.maximum(self.evidence(key), self.total(key))

    def grow(self):
        """Let a new plan begin with no more than the best plan had: the least of all, or nothing."""
        self.n += 1
        for key, parts in self.accounts.items():
            least = log_sum(parts).min() if key in self.shared else EMPTY
            each = least - math.log(parts.shape[1]) if least > EMPTY / 2 else EMPTY
            self.accounts[key] = np.vstack([parts, np.full((1, parts.shape[1]), each)])
        self.peaks = {key: np.append(peak, 0.0) for key, peak in self.peaks.items()}


@dataclass
class Bet:
    """Bets that vectors @ means + shift is above 0, on these rows of an account, fixed before the batch."""

    book: Book
    key: object
    rows: np.ndarray
    vectors: np.ndarray  # (n, n_arms)
    shift: float
    sizes: np.ndarray | None = None  # (n, k) on the first components
    centre: np.ndarray | None = None  # of mixtures, on the last component; no bet where it is below 0
    error: np.ndarray | None = None

    def mix(self, recorded, shift=0.0):
        """Take mixtures that are recorded by their centres, in sixteenths of an error, and their errors."""
        steps(recorded[0], len(self.rows), least=-1)
        self.error = steps(recorded[1], len(self.rows))
        self.centre = np.array(recorded[0]) / 16 * self.error + shift


def steps(numbers, n, least=-16000):
    """Return n sizes that are recorded as sixteenths of an octave."""
    is_whole = len(numbers) == n and all(type(k) is int and least <= k <= 16000 for k in numbers)
    need(is_whole, "its bets are not those of its rivals")
    return np.exp2(np.array(numbers) / 16)


def numbers_in(ranges, n):
    """Return the numbers below n in ranges [begin, end)."""
    need(ranges and all(0 <= begin < end <= n for begin, end in ranges), "it has no rivals")
    found = np.concatenate([np.arange(begin, end) for begin, end in ranges])
    need((np.diff(found) > 0).all(), "its rivals are not in order")
    return found


# MEASUREMENTS


def dense(rows):
    """Return a matrix, which may be stored as a sparse one."""
    if rows.get("kind") == "dense":
        return np.array(rows["rows"], dtype=float)
    need(rows["shape"][0] * rows["shape"][1] <= 2e7, "a list of this size", "NOT COVERED")
    found, line = np.zeros(rows["shape"]), np.repeat(np.arange(rows["shape"][0]), np.diff(rows["indptr"]))
    np.add.at(found, (line, rows["indices"]), rows["data"])
    return found


class Data:
    """What is measured, its noise, and what the values of one batch show of gaps."""

    assumed = "independent noise as the problem states it"

    def __init__(self, problem):
        probes, names = problem.get("probes", {}), problem["arm_names"]
        self.is_plain, self.value_sum, self.cap = not probes, 0.0, CAP
        self.mix, self.owner = np.eye(len(names)), np.arange(len(names))  # by reading: arms, and its probe
        if probes:
            readings = [len(own) for own in probes["reading_names"]]
            self.mix, self.owner = dense(probes["rows"]), np.repeat(np.arange(len(readings)), readings)
        m, bounds, scale = len(self.owner), problem.get("bounds"), problem["noise_scale"]
        self.learns = scale is None or "unknown" in probes
        self.factor = bounded_variance if "noise" in problem else sub_gaussian
        self.factor = student if self.learns else self.factor
        self.factor = bounded if bounds else self.factor
        self.bounds = np.array(bounds or [(-np.inf, np.inf)] * m)
        self.variance = np.square(scale or np.ones(m))
        covariances = probes.get("covariances", {}).items()
        self.factors = {int(probe): np.linalg.cholesky(np.array(own)) for probe, own in covariances}
        known = [problem.get("known", {}).get(name, (-np.inf, np.inf)) for name in names]
        self.know(np.array(known, dtype=float))

    def know(self, known):
        """Take the lowest and highest mean of each arm; one that is known exactly is never estimated."""
        self.known, self.is_known = known, known[:, 0] == known[:, 1]
        self.known_means = np.where(self.is_known, known[:, 0], 0.0)
        self.mixed, self.known_part = np.where(self.is_known, 0.0, self.mix), self.mix @ self.known_means

    def add_arms(self, arms):
        need(self.is_plain or not arms, "arms that arrive beside probes", "NOT COVERED")
        if arms:
            self.variance = np.append(self.variance, np.square([arm.get("noise", 1.0) for arm in arms]))
            ends = [(arm.get("low", -np.inf), arm.get("high", np.inf)) for arm in arms]
            self.bounds = np.vstack([self.bounds, ends])
            self.mix, self.owner = np.eye(len(self.bounds)), np.arange(len(self.bounds))
            self.know(np.vstack([self.known, [(-np.inf, np.inf)] * len(arms)]))

    def learn(self, d):
        """Take the noise that a decision records where it is learned: it sizes the bets."""
        if self.factor in (student, bounded):
            self.variance = steps(d["noise"], len(self.owner)) ** 2
            self.factors = {probe: np.array(rows, dtype=float) for probe, rows in d.get("factors", ())}
        if self.factor is bounded:
            at, self.cap = np.array(d["centres"]) / 2**12, d["cap"]
            is_sane = len(at) == len(self.owner) and at.min() >= 0 and at.max() <= 1 and 0 < self.cap <= CAP
            need(is_sane, "centres beyond the bounds, or bets of more than there is")
            self.low, self.high = self.bounds.T - self.known_part
            self.centres = self.low + at * (self.high - self.low)

    def read(self, G, uses):
        """Take the uses of a batch by probe, None for one that was removed; return whether they count."""
        parts = [{o: x[g * len(x) // G : (g + 1) * len(x) // G] for o, x in uses.items()} for g in range(G)]
        if self.learns:  # whole replicates count, two at least
            parts = [part for part in parts if not any(None in own for own in part.values())]
            if len(parts) < 2:
                return False
        self.values, self.n = {}, np.zeros(len(self.owner))
        self.sums = np.zeros((len(self.owner), len(parts)))
        for (g, part), o in itertools.product(enumerate(parts), uses):
            here = np.flatnonzero(self.owner == o)
            own = [use for use in part[o] if use is not None]
            own = np.array(own, dtype=float).reshape(len(own), len(here))
            low, high = self.bounds[here].T
            inside = np.clip(own, low, high)
            need(np.allclose(own, inside, rtol=1e-9, atol=0), "a value beyond its bounds")
            self.values[o] = inside - self.known_part[here]
            self.sums[here, g], self.n[here] = self.values[o].sum(axis=0), len(own)
        weights = 1 + np.modf(GOLDEN * np.arange(1, len(self.n) + 1))[0]
        self.value_sum += float(weights @ self.sums.sum(axis=1))
        return True

    def weights(self, Y):
        """Return weights w of one use, with y = sum n w x over readings x; variances; and what is shown."""
        n = self.n
        if self.is_plain:
            W = np.where(n > 0, Y / np.maximum(n, 1), 0.0)
            return W, W**2 @ (n * self.variance), ~(Y * (n == 0)).any(axis=1)
        whiten = np.diag(1 / np.sqrt(self.variance))
        for probe, factor in self.factors.items():
            here = np.flatnonzero(self.owner == probe)
            whiten[np.ix_(here, here)] = np.linalg.inv(factor)
        white = whiten @ self.mixed
        V = Y @ np.linalg.pinv(np.sqrt(n)[:, None] * white, rcond=1e-9) / np.sqrt(np.maximum(n, 1))
        rest = np.linalg.norm(Y - (V * n) @ white, axis=1)
        return V @ whiten, V**2 @ n, rest <= 1e-9 * np.linalg.norm(Y, axis=1)

    def show(self, bet):
        """Return S and v of each gap of a bet, and of which the batch shows anything."""
        W, v, on = self.weights(np.where(self.is_known, 0.0, bet.vectors))
        shift = bet.shift + bet.vectors @ self.known_means
        if self.factor is not bounded:
            S = W @ self.sums
            on &= not self.learns or np.ptp(S, axis=1) > 1e-12 * np.abs(S).max(axis=1)
            return S + shift[:, None], v, on & (v > 0)
        # readings of one use may depend in any way: a use is one factor, whatever it reads
        far = np.abs(W) * np.maximum(self.centres - self.low, self.high - self.centres)
        reach, powers = np.full(len(W), 1e-300), np.zeros((len(W), len(POWERS)))
        for o, values in self.values.items():
            here = self.owner == o
            reach = np.maximum(reach, far[:, here].sum(axis=1))
            away = (values - self.centres[here]) @ W[:, here].T
            powers += np.stack([(away**p).sum(axis=0) for p in POWERS], axis=1)
        return np.column_stack([W @ (self.n * self.centres) + shift, reach, powers]), v, on & (v > 0)

    def settle(self, bet):
        """Multiply wealth by the factors of a bet."""
        S, v, on = self.show(bet)
        S, v, at, parts = S[on], v[on], bet.rows[on], bet.book.accounts[bet.key]
        if bet.sizes is not None:
            parts[at, : bet.sizes.shape[1]] += self.factor(S, v, bet.sizes[on], CAP)
        if bet.centre is not None and (ok := bet.centre[on] >= 0).any():
            centre, error = bet.centre[on][ok], bet.error[on][ok]
            parts[at[ok], -1] += mixture(self.factor, S[ok], v[ok], centre, error, self.cap)

    def test(self, bet, gaussian):
        """Raise the evidence to wealth / p, by the p-value of a final batch."""
        S, v, on = self.show(bet)
        peak, at = bet.book.evidence(bet.key), bet.rows[on]
        tested = bet.book.total(bet.key)[at] - log_p(self.factor, S[on], v[on], gaussian)
        peak[at] = np.maximum(peak[at], tested)
        bet.book.peaks[bet.key] = peak


# QUESTIONS: their hypotheses, the bets of a decision, and what an answer needs


class Question:
    """What all questions share. `claims` divide delta; `book` is of the first, `second` of the other."""

    claims, takes_changes = 1, True  # whether plans may arrive, and a final batch be called
    takes_smaller_delta = True
    unless_same = "FAILED"  # the verdict where a recorded number is not found again
    is_over, assumed = False, ()

    @property
    def goal(self):
        return f"within {self.epsilon:g} of the best plan" if self.epsilon else "the best plan"

    def batch(self, d, uses, gaussian):
        """Fix the bets of a batch, and settle them with its values; a final batch tests the last of them."""
        data, is_final, G = self.data, d["final"], d["replicates"]
        need(not self.is_over and (self.takes_changes or not is_final), "a batch that there cannot be")
        need(G >= 2 if data.learns else G == 1, "a batch without its replicates")
        self.is_over, bets = is_final, []
        if d["leader"] != -1 or "stake" in d:
            data.learn(d)
            bets = self.bets(d)
        if data.read(G, uses):
            for bet in bets if not is_final else ():
                self.settle(bet)
            self.look()
            if is_final:
                self.test(bets[-1], gaussian)

    def take(self, proof, plans):
        """Take what was given beside the log: the proof of a certificate, an oracle."""

    def begin(self, d):
        """Take a decision, before its numbers are compared."""

    def settle(self, bet):
        self.data.settle(bet)

    def test(self, bet, gaussian):
        self.data.test(bet, gaussian)

    def look(self):
        self.book.look()
        self.second.look()

    def as_leader(self, plan):
        """Return an answer as a decision names a leader."""
        return plan

    def compare(self, recorded):
        """Check the two numbers of a decision that every value moves."""
        found = {"value_sum": self.data.value_sum}
        leader = recorded["leader"] if "leader" in recorded else self.as_leader(recorded["plan"])
        if leader is not None:
            found["wealth"] = 0.0 if leader == -1 else self.mean_wealth(leader)
        for name, x in found.items():
            words = f"its {name} is {recorded[name]!r}, and the values before it give {x!r}"
            is_same = x is None or abs(recorded[name] - x) <= 1e-6 * max(1.0, abs(x))
            need(is_same, words, self.unless_same)


class Best(Question):
    """Which plan of a list is best? Row j of one account: "j is the best", whichever plan leads."""

    shift = 0.0

    def __init__(self, data, problem, settings):
        self.data, self.sign = data, -1.0 if problem["minimize"] else 1.0
        self.plans = self.sign * dense(problem["plans"])  # larger is better
        self.names, self.epsilon = [*problem["plan_names"]], settings["epsilon"]
        self.book, self.second = Book(self.n), Book(self.n)

    @property
    def n(self):
        return len(self.plans)

    def others(self, plan):
        return np.delete(np.arange(self.n), plan)

    def add_plan(self, body):
        """Add a plan, and the arms that come with it."""
        self.data.add_arms(body["new_arms"])
        row = np.zeros(len(self.data.known))
        row[[arm for arm, _ in body["amounts"]]] = [amount for _, amount in body["amounts"]]
        self.plans = np.pad(self.plans, ((0, 0), (0, len(body["new_arms"]))))
        self.plans, self.names = np.vstack([self.plans, self.sign * row]), [*self.names, body["name"]]
        self.book.grow()

    def bet(self, key, rows, ahead, behind, shift, sizes=None, book=None):
        """Return bets that plans `ahead` are better than plans `behind`, less a shift."""
        sizes = None if sizes is None else np.tile(sizes, (len(rows), 1))
        return Bet(book or self.book, key, rows, self.plans[ahead] - self.plans[behind], shift, sizes)

    def size(self, bet, recorded, shift=0.0):
        """Give a bet its mixtures, and fixed sizes in units that are recorded unless arms give them."""
        if recorded is not None:
            bet.mix(recorded, shift)
            rows, variance = np.where(self.data.is_known, 0.0, bet.vectors), self.data.variance
            is_plain = self.data.is_plain
            unit = np.sqrt(rows**2 @ variance) if is_plain else steps(recorded[2], len(rows))
            bet.sizes = np.maximum(unit, 1e-150)[:, None] * GRID
        return bet

    def divided(self, fixed, n_rows):
        """Return parts of a stake for each row: so much for all fixed sizes together, the rest mixes."""
        return np.tile([*[fixed / len(GRID)] * len(GRID), 1 - fixed], (n_rows, 1))

    def bets(self, d):
        """Stake as the decision says, and return its bets."""
        leader, rows, recorded = d["leader"], numbers_in(d["rivals"], self.n), d.get("bets")
        need((recorded is None) == d["final"], "it has no bets")
        if "stake" in d:
            share, fixed = d["stake"]
            self.book.stake(share, {COMMON: self.divided(fixed, self.n)})
        bet = self.bet(COMMON, rows, leader, rows, self.shift)
        bets = [self.size(bet, recorded, self.shift - self.epsilon)]  # centres are of the gap + epsilon
        if self.shift == 0 and len(rows) == 1:  # against the leader too, which is fair if it is the best
            own = self.size(self.bet(COMMON, np.array([leader]), rows, [leader], 0.0), recorded)
            own.centre = np.zeros(1)
            bets.insert(0, own)
        return bets

    def mean_wealth(self, leader):
        """Return the number that a decision records of the wealth before it."""
        rivals = np.delete(self.book.total(leader), leader)
        second = sum(self.second.total(key).mean() for key in self.second.accounts)
        return (rivals.mean() if len(rivals) else CERTAIN) + second

    def least_gap(self, plan):
        """Return how much better than each plan this one surely is, by the means that are known."""
        gap = (self.plans[plan] - self.plans)[..., None]
        return np.where(gap == 0, 0.0, gap * self.data.known).min(axis=2).sum(axis=1)

    def proved(self, plan, least):
        """Return what is proved of an answer. What rules a plan out rules out all that are no better."""
        found = self.book.evidence(plan)
        found[plan] = CERTAIN
        for k in range(self.n) if np.isfinite(self.data.known).any() else ():
            found = np.where(self.least_gap(k) >= 0, np.maximum(found, found[k]), found)
        need(found.min() >= least)
        return f"{self.names[plan]!r} is {self.goal}"


class WithinMany(Best):
    """Which plan is within epsilon of the best? Beside the common account one for each leader i.

    Row j of it: "j is the best, and i is more than epsilon worse". It is staked from what waits for j.
    """

    def __init__(self, *problem):
        super().__init__(*problem)
        self.book.stake(0.8, {WAITING: np.ones((self.n, 1))})

    def bets(self, d):
        leader, bets, shares = d["leader"], super().bets(d), np.zeros((self.n, 1))
        if "waiting" in d:
            share, ranges = d["waiting"]
            need(0 < share < 1, "a stake of more than there is")
            shares[numbers_in(ranges, self.n)] = share
        self.book.lead(leader)
        self.book.add(leader, self.book.accounts[WAITING] + np.log(shares))
        self.book.accounts[WAITING] += np.log1p(-shares)
        own = self.bet(leader, bets[-1].rows, leader, bets[-1].rows, self.epsilon)
        if not d["final"]:
            own.mix(d["bets"])
        return [*bets, own]


class WithinFew(Best):
    """Which plan is within epsilon of the best? Account i, row j: "j is best, i more than epsilon worse"."""

    sizes = None

    def bets(self, d):
        leader, every = d["leader"], range(self.n)
        rows = numbers_in(d["rivals"], self.n) if leader >= 0 else None
        if d["final"]:
            return [self.bet(leader, rows, leader, rows, self.epsilon)]
        if "stake" in d:
            self.sizes = steps(d["sizes"], len(d["sizes"])) if self.sizes is None else self.sizes
            tilt, weight = 1 / np.sqrt(np.arange(1, len(self.sizes) + 1)), steps(d["weights"], self.n)
            # of what is staked against j, weight i / the sum over all others than j goes to (i, j)
            pairs = weight[:, None] * (1 - np.eye(self.n)) / [weight[self.others(j)].sum() for j in every]
            self.book.stake(d["stake"], {i: pairs[i][:, None] * tilt / tilt.sum() for i in every})
        return [self.bet(i, self.others(i), i, self.others(i), self.epsilon, self.sizes) for i in every]


class AllWithin(WithinFew):
    """Which plans are within epsilon of the best? In: as above. Out, row i: "i is worse by at most `near`".

    A plan is out when the mean wealth of every set of plans with it has reached 2 / delta: the set of all
    plans that are so near is one of them (closed testing).
    """

    claims, takes_changes = 2, False

    def __init__(self, data, problem, settings):
        super().__init__(data, problem, settings)
        grey = self.epsilon / 2 if settings["grey"] is None else settings["grey"]
        self.near, self.out = self.epsilon - grey, np.zeros(self.n)

    def bets(self, d):
        bets, leader = super().bets(d), d["leader"]
        if leader < 0:
            return bets
        if OUT not in self.second.accounts:
            self.second.stake(0.9, {OUT: np.full((self.n, len(self.sizes)), 1 / len(self.sizes))})
        rest = self.others(leader)
        return [*bets, self.bet(OUT, rest, leader, rest, -self.near, self.sizes, self.second)]

    def look(self):
        """Keep the least mean wealth of a set with each plan: that with the least wealths of others."""
        super().look()
        wealth = np.exp(np.minimum(self.second.total(OUT), 600.0))
        for i in range(self.n):
            sums = np.cumsum([wealth[i], *np.sort(wealth[self.others(i)])])
            self.out[i] = max(self.out[i], np.log((sums / np.arange(1, self.n + 1)).min()))

    def proved(self, plan, least):
        is_in = [self.book.evidence(i)[self.others(i)].min() >= least for i in range(self.n)]
        need(is_in[plan] and (is_in | (self.out >= least)).all())
        named = [name for name, is_named in zip(self.names, is_in, strict=True) if is_named]
        others = f"every other plan is worse by more than {self.near:g}"
        return f"{named} are within {self.epsilon:g} of the best plan, {others}"


class WithinLimit(WithinFew):
    """Which plan with a load of at most a limit is best? Let b be the best plan that keeps it.

    Pairs as above, for j = b. Row j of BREAK: "j keeps the limit". Row i of KEEP: "the load of i is above the
    limit and its tolerance"; half of what waits goes to each plan that leads for the first time.
    """

    takes_changes = False

    def __init__(self, data, problem, settings):
        super().__init__(data, problem, settings)
        self.loads = np.array(settings["loads"], dtype=float)
        self.limit, self.tolerance = settings["at_most"], settings["tolerance"]
        self.tilt = 1 / np.arange(1, 7) / (1 / np.arange(1, 7)).sum()
        self.book.stake(0.25, {BREAK: np.tile(self.tilt, (self.n, 1))})
        self.book.stake(1 / 3, {WAITING: np.ones((self.n, 1))})
        self.book.accounts[KEEP], self.book.shared = np.full((self.n, 6), EMPTY), (BREAK,)

    def bets(self, d):
        leader, keep, waiting = d["leader"], self.book.accounts[KEEP], self.book.accounts[WAITING]
        if leader >= 0 and keep[leader].max() <= EMPTY:
            waiting -= math.log(2)
            keep[leader] = waiting[0] + np.log(self.tilt)
        every, sizes = np.arange(self.n), np.tile(0.7 * 2.0 ** np.arange(6) * self.tolerance, (self.n, 1))
        kept = Bet(self.book, KEEP, every, -self.loads, self.limit + self.tolerance, sizes)
        broken = Bet(self.book, BREAK, every, self.loads, -self.limit, sizes)
        return [*super().bets(d), kept, broken]

    def proved(self, plan, least):
        if plan is None:
            need(self.book.evidence(BREAK).min() >= least)
            return f"no plan has a load of at most {self.limit:g}"
        rivals = self.book.evidence(plan)[self.others(plan)]
        need(min(rivals.min(), self.book.evidence(KEEP)[plan]) >= least)
        better = f"no plan with at most {self.limit:g} is better by more than {self.epsilon:g}"
        return f"{self.names[plan]!r} has a load of at most {self.limit + self.tolerance:g}, and {better}"


class KeepOrReplace(Best):
    """Is a plan better than the incumbent? Each claim has delta / 2.

    Keep, row j: "j is better than the incumbent by more than epsilon". Replace, in the second book, an
    account for each challenger i: "i is no better".
    """

    claims = 2

    def __init__(self, data, problem, settings):
        super().__init__(data, problem, settings)
        incumbent, self.shift, self.second = settings["incumbent"], self.epsilon, Book(1)
        self.incumbent = self.names.index(incumbent) if isinstance(incumbent, str) else incumbent

    def bets(self, d):
        leader, challenger = d["leader"], d["challenger"]
        need(leader == self.incumbent, "its leader is not the incumbent")
        bets = super().bets(d)[-1:]
        if challenger < 0 or (d["final"] and not d["replaces"]):
            return bets
        if "challenge_stake" in d:
            share, fixed = d["challenge_stake"]
            self.second.stake(share, {challenger: self.divided(fixed, 1)})
        bet = self.bet(challenger, np.zeros(1, dtype=int), [challenger], [leader], 0.0, book=self.second)
        return [*bets, self.size(bet, d.get("challenge"))]

    def mean_wealth(self, leader):
        return super().mean_wealth(self.incumbent)

    def proved(self, plan, least):
        old = self.names[self.incumbent]
        if plan == self.incumbent:
            super().proved(plan, least)
            return f"no plan is better than {old!r} by more than {self.epsilon:g}"
        is_sure = self.least_gap(plan)[self.incumbent] > 0
        need(is_sure or self.second.evidence(plan)[0] >= least)
        return f"{self.names[plan]!r} is better than {old!r}"


def question(problem, policy):
    """Return the question that a policy asks about a problem."""
    name, settings = policy["name"], policy["parameters"]
    kinds = {"BetGapE": Best, "Challenge": KeepOrReplace, "Tied": AllWithin, "Limited": WithinLimit}
    need(name in kinds, name, "NOT COVERED")
    if "oracle" in problem:
        import check_unlisted

        need(kinds[name] in (Best, KeepOrReplace), f"{name} without a list of plans", "NOT COVERED")
        return check_unlisted.question(problem, settings)
    kind = kinds[name]
    if kind is Best and settings["epsilon"]:
        kind = WithinFew if len(problem["plan_names"]) <= FEW else WithinMany
    return kind(Data(problem), problem, settings)


# THE LOG


class Log:
    """The events of a log, and which values each batch has used. `steps` are replayed once all are read."""

    def __init__(self, created, proof, plans):
        self.proof, self.plans, self.removed = proof, plans, set()
        self.problem, self.policy = created["problem"] | {"prior": created["prior"]}, created["policy"]
        self.steps = []
        self.delta, run = self.policy["parameters"]["delta"], self.question()
        self.takes_changes, self.takes_smaller_delta = run.takes_changes, run.takes_smaller_delta
        self.n_compared, self.arrived = 0, []
        self.open, self.used, self.round, self.n_decisions = None, {}, [], 0
        self.called, self.gaussian, self.answer = False, False, None
        self.values, self.cursor, self.last = {}, {}, {}  # by place; by probe the last place used, recorded
        self.recorded, self.skipped, self.assumed = set(), set(), set()
        if "known" in self.problem:
            self.assumed.add("the means that are called known")

    def question(self):
        used = {probe for _, _, uses in self.steps for probe in uses or ()}
        run = question(self.problem | {"used": [*used], "has_removed": bool(self.removed)}, self.policy)
        run.take(self.proof, self.plans)
        return run

    def wanted(self, probe):
        """Return the places that the last request waits for: the next ones that are not lost or removed."""
        places = itertools.count(self.cursor.get(probe, -1) + 1)
        free = (at for at in places if (probe, at) not in self.skipped)
        return list(itertools.islice(free, dict(self.round).get(probe, 0)))

    def decide(self, body):
        """Take a decision: more of the open batch, the next batch, or an answer."""
        self.n_decisions += 1
        need(self.answer is None and body["number"] == self.n_decisions, "decided out of order")
        for probe, _ in self.round:  # what was asked for last is used now
            places = [(probe, at) for at in self.wanted(probe)]
            need(self.values.keys() >= {*places}, "decided before the batch was complete")
            self.used.setdefault(probe, []).extend(places)
            self.cursor[probe] = places[-1][1]
        decision, self.round = body.get("decision"), body.get("counts", [])
        if decision is None and self.round and self.open is not None:
            return
        if self.open is not None:
            uses = {probe: n * self.open["replicates"] for probe, n in self.open["uses"]}
            need(uses == {o: len(at) for o, at in self.used.items()}, "other values than those of the batch")
            self.steps.append(("batch", self.open, self.used))
        self.steps += self.arrived
        self.steps.append(("decision", decision or body, None))
        self.arrived, self.used, self.open = [], {}, decision
        if decision is None:
            self.answer = body if body["status"] == "confident" else None
            return
        need(decision["final"] == (self.called and decision["leader"] != -1), "no such batch")
        need(0 < sum(n for _, n in decision["uses"]) <= 10**6, "a batch of no sane size")
        if any(at > self.cursor.get(probe, -1) for probe, at in self.last.items()):
            self.assumed.add("decisions were made without values recorded ahead of them")

    def measure(self, body):
        """Take a value; one that was asked for may come ahead of its batch, at the place of its request."""
        probe, index = place = body["probe"], body["index"]
        is_next = place not in self.recorded and body["number"] == len(self.recorded) + 1
        need(is_next and index > self.cursor.get(probe, -1), "recorded twice, or out of order")
        self.recorded.add(place)
        if body["request"] != f"{probe}.{index}":
            # appended to its stream: were its place free, it could be chosen by the value
            behind = max([self.cursor.get(probe, -1), self.last.get(probe, -1), *self.wanted(probe)])
            need(index == behind + 1, "an extra value that is not the next of its stream")
            self.assumed.add("extra values were recorded whatever they were")
        self.last[probe] = max(index, self.last.get(probe, -1))
        if None in body["values"]:
            self.skipped.add(place)
            self.assumed.add("values were lost whatever they would have been")
            return
        need(all(map(math.isfinite, body["values"])), "a value that is no number")
        self.values[place] = body["values"]

    def remove(self, place):
        """Take a value out; its batch is settled again without it, and later bets stay as they were."""
        is_there = place in self.values and place not in self.removed | self.skipped
        need(is_there and not self.called, "nothing to remove, or a final batch that would be tested twice")
        self.assumed.add("removed values were no measurements")
        if place[1] > self.cursor.get(place[0], -1):  # no batch has used it
            self.skipped.add(place)
            return
        self.replay()  # the decisions so far were made with it
        self.removed.add(place)
        self.answer = None

    def event(self, kind, body):
        if kind in ("asked", "stopped"):
            self.decide(body)
        elif kind == "measured":
            self.measure(body)
        elif kind == "removed":
            self.remove((body["probe"], body["index"]))
        elif kind == "plan-added":
            need(not self.called and self.takes_changes, "a plan where none may be added")
            self.answer, self.arrived = None, [*self.arrived, ("plan", body, None)]
            self.assumed.add("plans were added without values recorded ahead of them")
        elif kind == "extended":
            is_fair = 0 < body["delta"] <= self.delta and not self.called
            need(is_fair, "delta may only fall, and not after the call for a final batch")
            if body["delta"] < self.delta:
                need(self.takes_smaller_delta, "a smaller delta for this question", "NOT COVERED")
                self.answer, self.delta = None, body["delta"]
                self.assumed.add("a smaller delta was chosen without values recorded ahead of it")
        elif kind == "final-batch":
            self.called, self.gaussian = True, body["gaussian"]
            self.assumed.add("the final batch was called without values recorded ahead of it")
            self.assumed |= {"Gaussian noise"} if body["gaussian"] else set()

    def replay(self):
        """Return the question after all bets so far; the numbers of each decision are compared once."""
        run, kept = self.question(), self.values | dict.fromkeys(self.removed)
        for k, (kind, body, used) in enumerate(self.steps):
            if kind == "plan":
                run.add_plan(body)
            elif kind == "batch":
                run.batch(body, {o: [kept[place] for place in at] for o, at in used.items()}, self.gaussian)
            else:
                run.begin(body)
                if k >= self.n_compared:
                    run.compare(body)
        self.n_compared = len(self.steps)
        return run

    def guarantee(self):
        """Settle all bets; return the guarantee in words."""
        run = self.replay()
        need(self.answer is not None, "no answer is proved")
        claim = run.proved(self.answer["plan"], -math.log(self.delta / run.claims) * (1 - 1e-9))
        noise = {
            student: "independent noise, Gaussian and of one unknown size for each arm",
            bounded: "readings between the bounds, each with the mean of its arm given those before it",
        }
        assumed = noise.get(run.data.factor, run.data.assumed)
        assumed = "; ".join([assumed, *sorted({*self.assumed, *run.assumed})])
        guarantee = f"{claim}; wrong with probability at most {self.delta:g}"
        return f"HOLDS: {guarantee}.\nAssumed: {assumed}. {len(self.values)} values."


def read(log, proof=None, plans=None):
    """Check the chain of checksums, and return the log that was read."""
    before, time, keys, state, n = "0" * 64, -math.inf, set(), None, 0
    for n, e in enumerate(log["events"], 1):
        parts = [before, n, *(e[name] for name in ("kind", "key", "time", "body"))]
        line = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
        is_whole = e["position"] == n and hashlib.sha256(line.encode()).hexdigest() == e["checksum"]
        is_new = e["time"] >= time and e["key"] not in keys and (e["kind"] == "created") == (n == 1)
        need(is_whole and is_new, f"event {n}: the chain is broken")
        before, time, body = e["checksum"], e["time"], json.loads(e["body"])
        keys |= {e["key"]} - {None}
        state = state or Log(body, proof, plans)
        state.event(e["kind"], body)
    need((n, before) == (log["position"], log["checksum"]), "the log does not end where it says")
    return state


def check(log, certificate=None, plans=None):
    """Return the guarantee in words, or end the program with what fails or is not covered.

    `plans` are the functions best and best_within of all plans, the second may be None.
    """
    try:
        return read(log, (certificate or {}).get("proof"), plans).guarantee()
    except Exception as error:  # a log may hold any JSON
        raise SystemExit(f"FAILED: {type(error).__name__} {error}") from None


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("log")
    parser.add_argument("certificate", nargs="?", help="for a polytope within epsilon")
    parser.add_argument("--oracle", help="a Python file with best(weights), as the session was given it")
    parser.add_argument("--plans", help="a CSV file of all plans, with a column for each arm")
    given = parser.parse_args()
    files = [
        json.loads(Path(name).read_text(encoding="utf-8")) for name in (given.log, given.certificate) if name
    ]
    log, plans = files[0].get("log", files[0]), None
    if given.oracle or given.plans:
        from check_unlisted import functions_in, functions_of_list

        plans = functions_of_list(given.plans, log) if given.plans else functions_in(given.oracle)
    print(check(log, files[-1], plans))


if __name__ == "__main__":
    sys.modules["check"] = sys.modules["__main__"]  # check_unlisted imports this program, no second copy
    main()
