"""Check an exported surepick log on its own: python check.py log.json

`surepick export -o log.json` writes the log. This program needs NumPy alone and shares no code with
surepick. It checks the chain of checksums, multiplies the wealth of the recorded bets by what the values of
their batch are worth, and prints the guarantee (exit code 0), or what fails or is not covered (exit code 1).

Covered: lists of plans, measured arm by arm or by probes; the best plan, a plan within epsilon, keep or
replace; noise of a stated size, of bounded variance, of unknown size, or readings between bounds; known arms,
prior data, plans and arms that arrive, extra and removed values, a smaller delta, a final batch. Not covered:
plans behind an oracle, which this program does not have, and polytopes; several readings of one use, unless
their noise is independent or its covariance stated.

Why that is enough. Counts, bets and stakes are recorded before the values of their batch; how they were
chosen does not matter. A bet multiplies the wealth of its row by a factor whose mean is at most 1 if the
row's hypothesis is true: "plan j is the best"; within epsilon "j is the best, and i is worse by more than
epsilon"; keep "j is better than the incumbent by more than epsilon"; replace "the challenger is no better".
All that counts against the truth is staked from one amount of 1, so that it never rises on average: it ever
reaches 1/delta with probability at most delta (Ville's inequality).

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

GRID = 2.0 * 0.5 ** (np.arange(15) / 2)  # fixed bet sizes, in deviations of a gap after one value of each arm
QUANTILES = np.array([NormalDist().inv_cdf((k + 0.5) / 12) for k in range(12)])
EMPTY, CERTAIN = -1e300, 700.0  # log of nothing; evidence against a plan that is surely no better
COMMON, WAITING, FEW = "common", "waiting", 64  # accounts; the most plans of which all pairs bet
GOLDEN = 0.618033988749895  # its multiples are weights of values in a sum that every value moves
CAP = 0.75  # the most that one bounded reading may take of a bet
POWERS = np.arange(1, 7)
SERIES = (-1.0) ** (POWERS - 1) / POWERS  # of log(1 + z); its last term keeps it below for z >= -CAP
SERIES[5] = (np.log1p(-CAP) + (CAP ** POWERS[:5] / POWERS[:5]).sum()) / CAP**6
np.seterr(divide="ignore", invalid="ignore")  # a gap without values has infinite variance, and no bet


def need(holds, words, verdict="FAILED"):
    if not holds:
        raise SystemExit(f"{verdict}: {words}")


def steps(numbers, n, least=-16000):
    """Return n sizes that are recorded as sixteenths of an octave."""
    is_whole = len(numbers) == n and all(type(k) is int and least <= k <= 16000 for k in numbers)
    need(is_whole, "its bets are not those of its rivals")
    return np.exp2(np.array(numbers) / 16)


def log_sum(x):
    top = x.max(axis=-1)
    return top + np.log(np.exp(x - top[..., None]).sum(axis=-1))


@np.vectorize
def log_normal_cdf(x):
    if x > -30:
        return math.log(0.5 * math.erfc(-x / math.sqrt(2)))
    series = math.log1p(-(x**-2) + 3 * x**-4 - 15 * x**-6)
    return -0.5 * x * x - math.log(-x) - 0.5 * math.log(2 * math.pi) + series


def log_student_tail(t, f):
    """Return log P(T > t), t > 0, of Student's T with f degrees of freedom, by the trapezoid rule."""
    s = 0.1 * np.arange(-400, 401)
    log_x = np.log(t)[:, None] + np.log1p(np.exp(s))
    logs = np.log(t)[:, None] + s - 0.5 * (f + 1) * np.logaddexp(0, 2 * log_x - math.log(f))
    constant = math.lgamma(0.5 * (f + 1)) - math.lgamma(0.5 * f) - 0.5 * math.log(f * math.pi)
    return log_sum(logs) + math.log(0.1) + constant


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
    """Return the log of a p-value for "the gap is at most 0"."""
    if factor is bounded:  # 1 / the mean of a few factors
        logs = bounded(S, v, np.sqrt(v)[:, None] * np.array([1.5, 2.25, 3.0, 4.0]), CAP)
        return -np.maximum(log_sum(logs) - math.log(4), 0)
    if factor is student:
        t = S.mean(axis=1) * math.sqrt(S.shape[1]) / S.std(axis=1, ddof=1)
        return np.where(t > 0, log_student_tail(np.clip(t, 1e-9, 1e9), S.shape[1] - 1), 0.0)
    D = S[:, 0]
    tail = log_normal_cdf(-D / np.sqrt(v)) if gaussian else -0.5 * D * D / v
    return np.where(D > 0, -np.log1p(D * D / v) if factor is bounded_variance else tail, 0.0)


class Ledger:
    """One amount of 1: the cash that is not invested, and accounts of log wealth with a row for each plan.

    The columns of an account are components: fixed bet sizes first, and a mixture last where there is one.
    The answer i may use the cash and the accounts WAITING (of no bets yet), COMMON and i.
    """

    def __init__(self, n):
        self.n, self.cash, self.accounts, self.peaks = n, 0.0, {}, {}

    def add(self, key, amount, k, rows=slice(None), columns=slice(None)):
        parts = self.accounts.setdefault(key, np.full((self.n, k), EMPTY))
        parts[rows, columns] = np.logaddexp(parts[rows, columns], amount)

    def withdraw(self, share):
        need(type(share) is float and 0 < share < 1, "a stake of more than there is")
        amount, self.cash = self.cash + math.log(share), self.cash + math.log1p(-share)
        return amount

    def stake(self, key, stake, rows=slice(None)):
        """Invest a share of the cash on all these rows alike, a part of it on the fixed sizes."""
        amount, fixed = self.withdraw(stake[0]), stake[1]
        need(0 <= fixed <= 1, "a stake of more than there is")
        self.add(key, amount + np.log(fixed / len(GRID)), len(GRID) + 1, rows, slice(len(GRID)))
        self.add(key, amount + np.log(1 - fixed), len(GRID) + 1, rows, slice(-1, None))

    def total(self, key, rows=slice(None)):
        """Return the log wealth against plans that the answer `key` may use, now."""
        keys = [k for k in dict.fromkeys((WAITING, COMMON, key)) if k in self.accounts]
        cash = np.full((self.n, 1), self.cash)
        return log_sum(np.hstack([cash, *(self.accounts[k] for k in keys)])[rows])

    def count(self, key, rows=slice(None)):
        """Let the evidence be the largest wealth so far."""
        peak = self.peaks.setdefault(key, np.zeros(self.n))
        peak[rows] = np.maximum(peak[rows], self.total(key, rows))

    def evidence(self, key):
        peaks = [self.peaks[k] for k in (COMMON, key) if k in self.peaks]
        return np.max([*peaks, self.total(key), np.zeros(self.n)], axis=0)

    def grow(self, n):
        """Let new plans begin with no more than the best plan had: the least of all, or nothing."""
        self.n += n
        for key, parts in self.accounts.items():
            least = log_sum(parts).min() if key in (COMMON, WAITING) else EMPTY
            each = least - math.log(parts.shape[1]) if least > EMPTY / 2 else EMPTY
            self.accounts[key] = np.vstack([parts, np.full((n, parts.shape[1]), each)])
        self.peaks = {key: np.append(peak, np.zeros(n)) for key, peak in self.peaks.items()}


class Bet:
    """Bets that plans `ahead` are better than plans `behind`, less a shift, on these rows of an account.

    They are recorded as centres and errors of mixtures, and the units of fixed sizes unless arms give them.
    """

    def __init__(self, data, ledger, key, rows, ahead, behind, shift, recorded=None, centre_shift=0.0):
        self.ledger, self.key, self.rows, self.sizes, self.centre = ledger, key, rows, None, None
        self.Y = data.P[ahead] - data.P[behind]
        self.shift = shift + data.constants[ahead] - data.constants[behind]
        if recorded is not None:
            steps(recorded[0], len(rows), least=-1)
            self.error = steps(recorded[1], len(rows))
            self.centre = np.array(recorded[0]) / 16 * self.error + centre_shift
            unit = np.sqrt(self.Y**2 @ data.variance) if data.is_plain else steps(recorded[2], len(rows))
            self.sizes = np.maximum(unit, 1e-150)[:, None] * GRID


def dense(rows):
    """Return a matrix, which may be stored as a sparse one."""
    if rows.get("kind") == "dense":
        return np.array(rows["rows"], dtype=float)
    need(rows["shape"][0] * rows["shape"][1] <= 2e7, "a list of this size", "NOT COVERED")
    found, starts = np.zeros(rows["shape"]), rows["indptr"]
    for k in range(len(found)):
        here = slice(starts[k], starts[k + 1])
        np.add.at(found[k], rows["indices"][here], rows["data"][here])
    return found


def numbers_in(ranges, n):
    found = np.array([j for begin, end in ranges for j in range(begin, end)], dtype=int)
    need((np.diff(found) > 0).all() and (found >= 0).all() and (found < n).all(), "no ranges of plans")
    return found


class Data:
    """Plans, readings and their noise, and what a batch shows of gaps between plans."""

    def __init__(self, problem, epsilon):
        probes, names = problem.get("probes", {}), problem["arm_names"]
        self.epsilon, self.sign, self.is_plain = epsilon, 1 - 2 * problem["minimize"], not probes
        self.bounds, self.covariances = problem.get("bounds"), probes.get("covariances", {})
        self.learns = problem["noise_scale"] is None or "unknown" in probes
        self.factor = bounded_variance if "noise" in problem else sub_gaussian
        self.factor = bounded if self.bounds else student if self.learns else self.factor
        self.mix, self.owner = np.eye(len(names)), np.arange(len(names))  # by reading: arms, and its probe
        if probes:
            self.mix, readings = dense(probes["rows"]), [len(own) for own in probes["reading_names"]]
            self.owner = np.repeat(np.arange(len(readings)), readings)
            is_odd = (self.learns or self.bounds) and max(readings) > 1
            need(not is_odd, "several readings of one use with noise like this", "NOT COVERED")
        self.variance = np.square(problem["noise_scale"] or np.ones(len(self.owner)))
        known = [problem.get("known", {}).get(name, (-math.inf, math.inf)) for name in names]
        self.know(np.array(known, dtype=float), dense(problem["plans"]))

    def know(self, known, plans):
        """Take these plans, oriented so that larger is better; arms with known means become constants."""
        self.known, self.plans, oriented = known, plans, self.sign * plans
        is_known = known[:, 0] == known[:, 1]
        means = np.where(is_known, known[:, 0], 0.0)
        self.P, self.constants, self.part = (
            np.where(is_known, 0.0, oriented),
            oriented @ means,
            self.mix @ means,
        )
        self.rows, self.is_out = np.where(is_known, 0.0, self.mix), ~self.contenders()

    def contenders(self):
        """Return which plans may be the only best one, whatever the means are."""
        n, low, high = len(self.P), *np.where(np.isfinite(self.known), self.known, 0).T
        stays, free = np.ones(n, dtype=bool), ~np.isfinite(self.known).all(axis=1)
        for i in range(n) if np.isfinite(self.known).any() else ():
            difference, gap = self.P[i] - self.P, self.constants[i] - self.constants
            same = ~difference.any(axis=1)
            first = same & ((gap > 0) | ((gap == 0) & (np.arange(n) > i)))
            least = np.minimum(difference * low, difference * high).sum(axis=1) + gap
            stays &= ~(first | (~difference[:, free].any(axis=1) & ~same & (least > 1e-12) & stays[i]))
        return stays

    def add_plan(self, body):
        """Add a plan, and the arms that come with it."""
        new, n = body.get("new_arms", []), len(self.known) + len(body.get("new_arms", []))
        need(self.is_plain or not new, "arms that arrive beside probes", "NOT COVERED")
        self.variance = np.append(self.variance, np.square([arm.get("noise", 1.0) for arm in new]))
        self.bounds = self.bounds and [*self.bounds, *([arm["low"], arm["high"]] for arm in new)]
        self.mix, self.owner = (np.eye(n), np.arange(n)) if self.is_plain else (self.mix, self.owner)
        row = np.zeros(n)
        row[[arm for arm, _ in body["amounts"]]] = [amount for _, amount in body["amounts"]]
        known = np.vstack([self.known, np.tile([-np.inf, np.inf], (len(new), 1))])
        self.know(known, np.vstack([np.pad(self.plans, ((0, 0), (0, len(new)))), row]))

    def take_noise(self, decision):
        """Take the noise that bets are sized by, where it is learned, and centres of bounded readings."""
        n, self.cap = len(self.owner), decision.get("cap", CAP)
        if self.learns or self.bounds:
            self.variance = steps(decision["noise"], n) ** 2
        if self.bounds:
            parts = np.array(decision["centres"]) / 2**12
            is_sane = len(parts) == n and parts.min() >= 0 and parts.max() <= 1 and 0 < self.cap <= CAP
            need(is_sane, "centres beyond the bounds, or bets of more than there is")
            self.low, self.high = np.transpose(self.bounds) - self.part
            self.centres = self.low + parts * (self.high - self.low)

    def weights(self, Y, uses):
        """Return weights w of one use, with y = sum n w x over readings x; variances; and what is shown."""
        n = uses[self.owner]
        if self.is_plain:
            W = np.where(n > 0, Y / np.maximum(n, 1), 0.0)
            return W, W**2 @ (n * self.variance), ~(Y * (n == 0)).any(axis=1)
        whiten = np.diag(1 / np.sqrt(self.variance))
        for probe, covariance in self.covariances.items():
            here = np.flatnonzero(self.owner == int(probe))
            whiten[np.ix_(here, here)] = np.linalg.inv(np.linalg.cholesky(np.array(covariance)))
        white = whiten @ self.rows
        V = Y @ np.linalg.pinv(np.sqrt(n)[:, None] * white, rcond=1e-9) / np.sqrt(np.maximum(n, 1))
        rest = np.linalg.norm(Y - (V * n) @ white, axis=1)
        return V @ whiten, V**2 @ n, rest <= 1e-9 * np.linalg.norm(Y, axis=1)

    def by_reading(self, uses):
        """Return the values of each reading, by the uses of probes, without what known arms add."""
        first = np.searchsorted(self.owner, self.owner)  # readings of a probe stand together
        each = [[use[r - first[r]] for use in uses.get(o, ())] for r, o in enumerate(self.owner)]
        return [np.array(x, dtype=float) - part for x, part in zip(each, self.part, strict=True)]

    def show(self, bet, uses, readings):
        """Return what a batch shows of gaps, their variances, and which of them it shows at all.

        `readings` are those of the batch by replicate and reading, without what known arms add.
        """
        W, v, shown = self.weights(bet.Y, uses)
        shown = shown & (v > 0)
        if self.factor is not bounded:
            S = W @ [[math.fsum(one[r]) for one in readings] for r in range(len(self.owner))]
            if self.learns:
                shown &= np.ptp(S, axis=1) > 1e-12 * np.abs(S).max(axis=1)
            return S + bet.shift[:, None], v, shown
        centres, far = self.centres, np.maximum(self.centres - self.low, self.high - self.centres)
        powers = [
            W**p @ [((x - c) ** p).sum() for x, c in zip(*readings, centres, strict=True)] for p in POWERS
        ]
        reach = np.maximum((np.abs(W) * far).max(axis=1), 1e-300)
        return np.column_stack([W @ (uses * centres) + bet.shift, reach, *powers]), v, shown


class Run:
    """The bets of one log, from its first event on."""

    def __init__(self, created):
        problem, parameters = created["problem"], created["policy"]["parameters"]
        self.data, incumbent = Data(problem, parameters["epsilon"]), parameters.get("incumbent")
        self.keep = problem["plan_names"].index(incumbent) if isinstance(incumbent, str) else incumbent
        n, is_odd = len(self.data.P), self.keep is not None and self.data.is_out[self.keep]
        need(not is_odd, "an incumbent that is surely no better than another plan", "NOT COVERED")
        self.ledger, self.replace = Ledger(n), Ledger(n)  # the second one: "the challenger is no better"
        self.is_within = bool(self.data.epsilon) and self.keep is None
        self.is_few, self.sizes, self.led = self.is_within and n <= FEW, None, -1
        self.is_over, self.gaussian, self.value_sum = False, False, 0.0
        if self.is_within and not self.is_few:  # most of the cash waits for leaders, plan by plan
            self.ledger.cash = math.log(0.2)
            self.ledger.add(WAITING, math.log(0.8), 1)

    def against_rivals(self, found, plan):
        """Return what is found against the rivals of this answer; some are out without a measurement."""
        return np.minimum(np.delete(np.where(self.data.is_out, CERTAIN, found), plan), CERTAIN)

    def wealth(self, leader):
        """Return the mean log wealth against the rivals of this leader, which a decision records."""
        found = self.against_rivals(self.ledger.total(leader), leader)
        return found.mean() if len(found) else CERTAIN

    def proof(self, plan):
        """Return the log evidence for this answer."""
        if self.keep not in (None, plan):
            return self.replace.evidence(plan)[plan]
        return self.against_rivals(self.ledger.evidence(plan), plan).min(initial=CERTAIN)

    def bets(self, d):
        """Stake as the decision says, and return its bets."""
        data, ledger, leader, recorded = self.data, self.ledger, d["leader"], d.get("bets")
        rows, is_final, epsilon = numbers_in(d["rivals"], ledger.n), d["final"], data.epsilon
        need(leader not in rows and self.keep in (None, leader), "its leader is a rival, or no incumbent")
        need(leader < 0 or len(rows), "it has no rivals")
        if self.is_few:
            return self.bets_on_pairs(d, rows)
        if "stake" in d:
            ledger.stake(COMMON, d["stake"])
        shift = 0.0 if self.keep is None else epsilon  # centres are recorded of the gap + epsilon
        bets = [Bet(data, ledger, COMMON, rows, leader, rows, shift, recorded, shift - epsilon)]
        if self.keep is None and len(rows) == 1 and not is_final:  # bet against the leader too
            bets.append(
                Bet(data, ledger, COMMON, np.array([leader]), rows, np.array([leader]), 0.0, recorded)
            )
            bets[-1].centre = np.zeros(1)
        if self.is_within:
            self.stake_on_leader(d)
            bets.append(Bet(data, ledger, leader, rows, leader, rows, epsilon, recorded))
            bets[-1].sizes = None
        if d.get("challenger", -1) >= 0:
            plan = np.array([d["challenger"]])
            if "challenge_stake" in d:
                self.replace.stake(d["challenger"], d["challenge_stake"], plan)
            what = d["challenger"], plan, plan, np.array([leader]), 0.0, d.get("challenge")
            bets.append(Bet(data, self.replace, *what))
        tested = bets[-1:] if self.is_within or d.get("replaces") else bets[:1]
        return tested if is_final else bets

    def stake_on_leader(self, d):
        """Within epsilon, many plans: move what waits for these plans to the account of the leader."""
        ledger, leader, (share, ranges) = self.ledger, d["leader"], d.get("waiting", (0.0, []))
        ledger.add(leader, EMPTY, 1)
        if leader != self.led:
            self.led = leader
            ledger.count(leader)
        at = numbers_in(ranges, ledger.n)
        need(0 <= share < 1, "a stake of more than there is")
        ledger.add(leader, ledger.accounts[WAITING][at] + np.log(share), 1, at)
        ledger.accounts[WAITING][at] += math.log1p(-share)

    def bets_on_pairs(self, d, rows):
        """Within epsilon, few plans: row j of account i bets that j is not better by more than epsilon.

        A stake against j goes in parts to the accounts of the others; the parts sum to at most the stake.
        """
        data, ledger, n = self.data, self.ledger, self.ledger.n
        others = [np.delete(np.arange(n), i) for i in range(n)]
        if "stake" in d:
            self.sizes = steps(d["sizes"], len(d["sizes"])) if self.sizes is None else self.sizes
            k, weight, amount = len(self.sizes), steps(d["weights"], n), ledger.withdraw(d["stake"])
            tilt, total = 1 / np.sqrt(np.arange(1, k + 1)), np.array([weight[rest].sum() for rest in others])
            for i in range(n):
                part = np.log(weight[i] / total[others[i]])[:, None] + np.log(tilt / tilt.sum())
                ledger.add(i, amount + part, k, others[i])
        pairs = [(d["leader"], rows)] if d["final"] else enumerate(others)
        bets = [Bet(data, ledger, i, at, i, at, data.epsilon) for i, at in pairs]
        for bet in bets:
            bet.sizes = np.tile(self.sizes, (len(bet.rows), 1))
        return bets

    def batch(self, d, values):
        """Stake, fix the bets of a batch, and settle them; a removed value is None and was no measurement."""
        data, G, uses = self.data, d["replicates"], np.zeros(int(self.data.owner[-1]) + 1)
        uses[[probe for probe, _ in d["uses"]]] = [n for _, n in d["uses"]]
        need(not self.is_over and (4 <= G <= 12 if data.learns else G == 1), "a batch that there cannot be")
        self.is_over, bets = d["final"], []
        if d["leader"] >= 0 or "stake" in d:
            data.take_noise(d)
            bets = self.bets(d)
        parts = [{o: x[g * len(x) // G : (g + 1) * len(x) // G] for o, x in values.items()} for g in range(G)]
        if data.learns:  # whole replicates count, two at least
            parts = [part for part in parts if not any(None in x for x in part.values())]
            if len(parts) < 2:
                return
        kept = [{o: [x for x in own if x is not None] for o, own in part.items()} for part in parts]
        uses[list(kept[0])] = [len(x) for x in kept[0].values()]
        readings = [data.by_reading(one) for one in kept]
        weights = 1 + np.modf(GOLDEN * np.arange(1, len(data.owner) + 1))[0]
        self.value_sum += float(weights @ [sum(map(np.sum, each)) for each in zip(*readings, strict=True)])
        for bet in bets:
            self.settle(bet, *data.show(bet, uses, readings), d["final"])
        for bet in [] if d["final"] else bets:
            bet.ledger.count(bet.key, bet.rows)

    def settle(self, bet, S, v, on, is_final):
        """Multiply wealth by the factors of a bet, or divide it by the p-value of a final batch."""
        factor, S, v, at, ledger = self.data.factor, S[on], v[on], bet.rows[on], bet.ledger
        if is_final:
            ledger.count(bet.key, at)
            evidence = ledger.total(bet.key, at) - log_p(factor, S, v, self.gaussian)
            ledger.peaks[bet.key][at] = np.maximum(ledger.peaks[bet.key][at], evidence)
            return
        parts = ledger.accounts[bet.key]
        if bet.sizes is not None:
            parts[at, : bet.sizes.shape[1]] += factor(S, v, bet.sizes[on], CAP)
        if bet.centre is not None and (ok := bet.centre[on] >= 0).any():
            given = bet.centre[on][ok], bet.error[on][ok], self.data.cap
            parts[at[ok], -1] += mixture(factor, S[ok], v[ok], *given)

    def grow(self, bodies):
        for body in bodies:
            self.data.add_plan(body)
        self.ledger.grow(len(bodies))
        self.replace.grow(len(bodies))


class Log:
    """The events of a log as far as they are read: values by probe and place, and the open batch."""

    def __init__(self, created):
        problem, policy = created["problem"], created["policy"]
        odd = [name for name in ("oracle", "plays") if name in problem]
        is_covered = policy["name"] in ("BetGapE", "Challenge") and not odd
        need(is_covered, f"{policy['name']} with {odd}", "NOT COVERED")
        self.names, self.arrived, self.round = [*problem["plan_names"]], [], []
        self.values, self.cursor, self.last = {}, {}, {}  # by place; by probe: the last place used, recorded
        self.removed, self.skipped, self.assumed = set(), set(), set()
        self.past, self.open = [], None  # batches and arrivals; a decision with the places that it has used
        self.run, self.created, self.called, self.answer = Run(created), created, False, None
        self.delta = policy["parameters"]["delta"]

    def step(self, decision, what):
        """Let the run take a batch, with these places by probe, or plans that arrive."""
        if decision is None:
            self.run.grow(what)
            return
        left = self.values.keys() - self.removed
        self.run.batch(
            decision, {o: [self.values[x] if x in left else None for x in at] for o, at in what.items()}
        )

    def use_round(self):
        """Take the next values of each probe that the last request asked for; settle a complete batch."""
        if self.open is None:
            return
        decision, places = self.open
        for probe, n in self.round:
            for _ in range(n):
                at = self.next_place(probe, self.cursor.get(probe, -1))
                need((probe, at) in self.values, "decided before the batch was complete")
                self.cursor[probe] = at
                places.setdefault(probe, []).append((probe, at))
        missing = {
            probe: n * decision["replicates"] - len(places.get(probe, ())) for probe, n in decision["uses"]
        }
        is_sane = all(0 <= n <= 10**6 for n in missing.values()) and places.keys() <= missing.keys()
        need(is_sane, "other values than those of the batch")
        if not any(missing.values()):
            self.past.append(self.open)
            self.open = self.step(*self.open)  # None

    def next_place(self, probe, at):
        """Return the first place after this one whose value was not lost or removed before it was used."""
        at += 1
        while (probe, at) in self.skipped:
            at += 1
        return at

    def decide(self, body):
        """Check the two numbers that every value moves, and that an answer is proved."""
        need(self.answer is None, "decided after the answer")
        self.use_round()
        self.round, decision, run, plan = (
            body.get("counts", []),
            body.get("decision"),
            self.run,
            body.get("plan"),
        )
        need((decision is None and "counts" in body) == (self.open is not None), "a decision within a batch")
        if self.open is not None:
            return
        if self.arrived:
            self.past.append((None, self.arrived))
            self.step(None, self.arrived)
        self.arrived, recorded = [], decision or body
        leader = decision["leader"] if decision else plan if run.keep is None else run.keep
        own = {} if leader is None or leader < 0 else {"wealth": run.wealth(leader)}
        for name, x in {"value_sum": run.value_sum, **own}.items():
            words = f"its {name} is {recorded[name]!r}, and the values before it give {x!r}"
            need(abs(recorded[name] - x) <= 1e-6 * max(1.0, abs(x)), words)
        if decision is not None:
            need(decision["final"] == (self.called and leader >= 0), "no such batch")
            need(0 < sum(n for _, n in decision["uses"]) <= 10**6, "a batch of no sane size")
            self.open = decision, {}
            return
        self.answer, threshold = plan, -math.log(self.delta / (1 if run.keep is None else 2))
        need(plan is None or run.proof(plan) >= threshold * (1 - 1e-9), f"plan {plan} is not proved")

    def event(self, kind, body):
        if kind in ("asked", "stopped"):
            self.decide(body)
        elif kind == "measured":
            self.record((body["probe"], body["index"]), body["values"], body["request"])
        elif kind == "removed":
            self.remove((body["probe"], body["index"]))
        elif kind == "plan-added":
            need(not self.called, "a plan after the call for a final batch")
            self.answer = None
            self.arrived.append(body)
            self.names.append(body["name"])
            self.assumed.add("plans were added without values recorded ahead")
        elif kind == "extended":
            need(not self.called, "an extension after the final batch")
            need(0 < body["delta"] <= self.delta, "delta may only fall")
            if body["delta"] < self.delta:
                self.answer, self.delta = None, body["delta"]
                self.assumed.add("a smaller delta was chosen without values recorded ahead")
        elif kind == "final-batch":
            self.called, self.run.gaussian = True, body["gaussian"]
            self.assumed |= {"the final batch was called without values recorded ahead"}
            self.assumed |= {"Gaussian noise"} if body["gaussian"] else set()

    def record(self, place, values, request):
        """Take the readings of one use, which must be numbers between their bounds."""
        probe, at = place
        need(place not in self.values and place not in self.skipped, "recorded twice")
        need(at > self.cursor.get(probe, -1), "recorded after its batch")
        if request != f"{probe}.{at}":  # behind the open batch and all that was recorded
            end = self.cursor.get(probe, -1)
            for _ in range(dict(self.round).get(probe, 0)):
                end = self.next_place(probe, end)
            need(
                at == max(end, self.last.get(probe, -1)) + 1, "an extra value is not at the end of its stream"
            )
            self.assumed.add("extra values were recorded whatever they were")
        self.last[probe] = max(at, self.last.get(probe, -1))
        if None in values:
            self.skipped.add(place)
            self.assumed.add("values were lost whatever they would have been")
            return
        data = self.run.data
        here = np.flatnonzero(data.owner == probe)  # of an arm that has just arrived there are none yet
        bounds = [data.bounds[r] for r in here] if data.bounds else [(-math.inf, math.inf)] * len(here)
        need(len(values) == max(len(here), 1) and all(map(math.isfinite, values)), "no readings of its probe")
        need(
            all(low <= x <= high for x, (low, high) in zip(values, bounds, strict=False)),
            "a value beyond its bounds",
        )
        self.values[place] = values

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
        for step in self.past:
            self.step(*step)

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
            state.event(e["kind"], body)
        except (SystemExit, Exception) as error:  # a log may hold any JSON
            words = str(error) if isinstance(error, SystemExit) else f"FAILED: {type(error).__name__} {error}"
            raise SystemExit(f"{words} (event {n}, {e['kind']})") from None
    need((n, before) == (log["position"], log["checksum"]), "the log does not end where it says")
    need(state.answer is not None, "no answer is proved")
    return state.words()


if __name__ == "__main__":
    found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(check(found.get("log", found)))
