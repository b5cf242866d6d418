"""Check an exported surepick log on its own: python check.py log.json

`surepick export -o log.json` writes the log. This program needs NumPy alone and shares no code with
surepick. It checks the chain of checksums, multiplies the wealth of the recorded bets by what the values of
their batch are worth, and prints the guarantee (exit code 0), or what fails or is not covered (exit code 1).

Covered: lists of plans, measured arm by arm or by probes; the best plan, a plan within epsilon, keep or
replace; noise of a stated size, of bounded variance, of unknown size, or readings between bounds; known arms,
prior data, plans and arms that arrive, extra and removed values, a smaller delta, a final batch. Not covered:
plans behind an oracle, which this program does not have, polytopes, and policies that do not bet; several
readings of one use, unless their noise is independent or its covariance stated; a final batch with noise of
unknown size.

Why that is enough (docs/theory.md). Counts, bets and stakes are recorded before the values of their batch;
how they were chosen does not matter. A bet multiplies the wealth of its row by a factor whose mean is at most
1 if the row's hypothesis is true: "plan j is the best"; within epsilon "j is the best, and i is worse by more
than epsilon"; keep "j is better than the incumbent by more than epsilon"; replace "the challenger is no
better". All that counts against the truth is staked from one amount of 1, so that it never rises on average:
it ever reaches 1/delta with probability at most delta (Ville's inequality).

Trusted: the assumptions that are printed; values recorded as they were measured; a log that was not rewritten
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
    """Return the log of a p-value for "the gap is at most 0"."""
    if factor is bounded:  # 1 / the mean of a few factors
        logs = bounded(S, v, np.sqrt(v)[:, None] * np.array([1.5, 2.25, 3.0, 4.0]), CAP)
        return -np.maximum(log_sum(logs) - math.log(4), 0)
    D = S[:, 0]
    tail = log_normal_cdf(-D / np.sqrt(v)) if gaussian else -0.5 * D * D / v
    return np.where(D > 0, -np.log1p(D * D / v) if factor is bounded_variance else tail, 0.0)


class Ledger:
    """One amount of 1: the cash that is not invested, and accounts of log wealth with a row for each plan.

    The columns of an account are components: fixed bet sizes first, and a mixture last where there is one.
    The answer i may use the cash and the accounts WAITING (of no bets yet), COMMON and i.
    """

    def __init__(self, n):
        self.n, self.cash, self.accounts, self.peaks = n, 0.0, {}, {COMMON: np.zeros(n)}

    def add(self, key, amount):
        parts = self.accounts.get(key, np.full(amount.shape, EMPTY))
        self.accounts[key] = np.logaddexp(parts, np.maximum(amount, EMPTY))

    def stake(self, share, parts):
        """Invest these parts of a share of the cash in accounts, by key; those of a row sum to at most 1."""
        is_fair = all((part >= 0).all() for part in parts.values())
        is_fair &= sum(part.sum(axis=1) for part in parts.values()).max() <= 1 + 1e-9
        need(type(share) is float and 0 < share < 1 and is_fair, "a stake of more than there is")
        for key, part in parts.items():
            self.add(key, self.cash + math.log(share) + np.log(part))
        self.cash += math.log1p(-share)

    def total(self, key):
        """Return the log wealth against plans that the answer `key` may use, now."""
        keys = [k for k in dict.fromkeys((WAITING, COMMON, key)) if k in self.accounts]
        return log_sum(np.hstack([np.full((self.n, 1), self.cash), *(self.accounts[k] for k in keys)]))

    def evidence(self, key):
        """Return the largest log wealth that there was after a batch."""
        return np.maximum(self.peaks[COMMON], self.peaks.get(key, 0.0))

    def grow(self, n):
        """Let new plans begin with no more than the best plan had: the least of all, or nothing."""
        self.n += n
        for key, parts in self.accounts.items():
            least = log_sum(parts).min() if key in (COMMON, WAITING) else EMPTY
            each = least - math.log(parts.shape[1]) if least > EMPTY / 2 else EMPTY
            self.accounts[key] = np.vstack([parts, np.full((n, parts.shape[1]), each)])
        self.peaks = {key: np.append(peak, np.zeros(n)) for key, peak in self.peaks.items()}


def steps(numbers, n, least=-16000):
    """Return n sizes that are recorded as sixteenths of an octave."""
    is_whole = len(numbers) == n and all(type(k) is int and least <= k <= 16000 for k in numbers)
    need(is_whole, "its bets are not those of its rivals")
    return np.exp2(np.array(numbers) / 16)


def numbers_in(ranges, n):
    found = np.array([j for begin, end in ranges for j in range(begin, end)], dtype=int)
    need((np.diff(found) > 0).all() and (found >= 0).all() and (found < n).all(), "no ranges of plans")
    return found


def dense(rows):
    """Return a matrix, which may be stored as a sparse one."""
    if rows.get("kind") == "dense":
        return np.array(rows["rows"], dtype=float)
    need(rows["shape"][0] * rows["shape"][1] <= 2e7, "a list of this size", "NOT COVERED")
    found, line = np.zeros(rows["shape"]), np.repeat(np.arange(rows["shape"][0]), np.diff(rows["indptr"]))
    np.add.at(found, (line, rows["indices"]), rows["data"])
    return found


class Bet:
    """Bets that plans `ahead` are better than plans `behind`, less a shift, on these rows of an account.

    They are recorded as centres and errors of mixtures, and the units of fixed sizes unless arms give them.
    """

    def __init__(self, run, ledger, key, rows, ahead, behind, shift, recorded=None, centre_shift=0.0):
        self.ledger, self.key, self.rows, self.sizes, self.centre = ledger, key, rows, None, None
        self.Y = run.P[ahead] - run.P[behind]
        self.shift = shift + run.constants[ahead] - run.constants[behind]
        if recorded is not None:
            steps(recorded[0], len(rows), least=-1)
            self.error = steps(recorded[1], len(rows))
            self.centre = np.array(recorded[0]) / 16 * self.error + centre_shift
            unit = np.sqrt(self.Y**2 @ run.variance) if run.is_plain else steps(recorded[2], len(rows))
            self.sizes = np.maximum(unit, 1e-150)[:, None] * GRID


class Run:
    """Plans, readings and their noise, and the bets on them from the first batch on."""

    def __init__(self, problem, epsilon, incumbent):
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
            is_odd = "dependent" in probes or ((self.learns or self.bounds) and max(readings) > 1)
            need(not is_odd, "several readings of one use with noise like this", "NOT COVERED")
        self.variance = np.square(problem["noise_scale"] or np.ones(len(self.owner)))
        known = [problem.get("known", {}).get(name, (-math.inf, math.inf)) for name in names]
        self.know(np.array(known, dtype=float), self.sign * dense(problem["plans"]))
        self.keep = problem["plan_names"].index(incumbent) if isinstance(incumbent, str) else incumbent
        n, self.is_within = len(self.P), bool(epsilon) and self.keep is None
        self.ledger, self.replace = Ledger(n), Ledger(n)  # the second one: "the challenger is no better"
        self.is_few, self.sizes, self.is_over, self.value_sum = self.is_within and n <= FEW, None, False, 0.0
        if self.is_within and not self.is_few:  # most of the cash waits for leaders, plan by plan
            self.ledger.cash = math.log(0.2)
            self.ledger.add(WAITING, np.full((n, 1), math.log(0.8)))

    def know(self, known, plans):
        """Take these plans, of which larger is better; arms with known means become constants."""
        self.known, self.plans, is_known = known, plans, known[:, 0] == known[:, 1]
        means = np.where(is_known, known[:, 0], 0.0)
        self.P, self.constants = np.where(is_known, 0.0, plans), plans @ means
        self.rows, self.part = np.where(is_known, 0.0, self.mix), self.mix @ means

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
        self.know(known, np.vstack([np.pad(self.plans, ((0, 0), (0, len(new)))), self.sign * row]))
        self.ledger.grow(1)
        self.replace.grow(1)

    def compare(self, recorded, leader):
        """Check the two numbers of a decision that every value moves."""
        found = {"value_sum": self.value_sum}
        if leader is not None and leader >= 0 and not np.isfinite(self.known).any():
            rivals = np.delete(self.ledger.total(leader), leader)
            found["wealth"] = np.minimum(rivals, CERTAIN).mean() if len(rivals) else CERTAIN
        for name, x in found.items():
            words = f"its {name} is {recorded[name]!r}, and the values before it give {x!r}"
            need(abs(recorded[name] - x) <= 1e-6 * max(1.0, abs(x)), words)

    def least_gap(self, plan):
        """Return how much better than each plan this one surely is, by the means that are known."""
        gap = (self.plans[plan] - self.plans)[..., None]
        return np.where(gap == 0, 0.0, gap * self.known).min(axis=2).sum(axis=1)

    def proof(self, plan):
        """Return the log evidence for this answer; what rules a plan out rules out all that are no better."""
        if self.keep not in (None, plan):
            is_sure = self.least_gap(plan)[self.keep] > 0
            return CERTAIN if is_sure else self.replace.evidence(plan)[plan]
        found = self.ledger.evidence(plan)
        found[plan] = CERTAIN
        for k in range(len(found)) if np.isfinite(self.known).any() else ():
            found = np.where(self.least_gap(k) >= 0, np.maximum(found, found[k]), found)
        return found.min()

    def bets(self, d):
        """Stake as the decision says, and return its bets."""
        ledger, leader, recorded, n = self.ledger, d["leader"], d.get("bets"), self.ledger.n
        rows, is_final, epsilon = numbers_in(d["rivals"], n), d["final"], self.epsilon
        need(self.keep in (None, leader), "its leader is not the incumbent")
        need(leader < 0 or len(rows), "it has no rivals")
        if self.is_few:  # row j of account i bets that j is not better by more than epsilon
            others = [np.delete(np.arange(n), i) for i in range(n)]
            if "stake" in d:
                self.sizes = steps(d["sizes"], len(d["sizes"])) if self.sizes is None else self.sizes
                tilt, weight = 1 / np.sqrt(np.arange(1, len(self.sizes) + 1)), steps(d["weights"], n)
                pairs = weight[:, None] * (1 - np.eye(n)) / [weight[rest].sum() for rest in others]
                ledger.stake(d["stake"], {i: pairs[i][:, None] * tilt / tilt.sum() for i in range(n)})
            pairs = [(leader, rows)] if is_final else enumerate(others)
            bets = [Bet(self, ledger, i, rest, i, rest, epsilon) for i, rest in pairs]
            for bet in bets:
                bet.sizes = np.tile(self.sizes, (len(bet.rows), 1))
            return bets
        if "stake" in d:
            ledger.stake(d["stake"][0], {COMMON: self.divided(d["stake"][1])})
        shift = 0.0 if self.keep is None else epsilon  # centres are recorded of the gap + epsilon
        bets = [Bet(self, ledger, COMMON, rows, leader, rows, shift, recorded, shift - epsilon)]
        if self.keep is None and len(rows) == 1 and not is_final:  # bet against the leader too
            one = np.array([leader])
            bets.append(Bet(self, ledger, COMMON, one, rows, one, 0.0, recorded))
            bets[-1].centre = np.zeros(1)
        if self.is_within:  # move a share of what waits for some plans to the account of the leader
            share, shares = d.get("waiting", (0.0, [])), np.zeros((n, 1))
            need(0 <= share[0] < 1, "a stake of more than there is")
            shares[numbers_in(share[1], n)] = share[0]
            ledger.add(leader, ledger.accounts[WAITING] + np.log(shares))
            ledger.accounts[WAITING] += np.log1p(-shares)
            bets.append(Bet(self, ledger, leader, rows, leader, rows, epsilon, recorded))
            bets[-1].sizes = None
        if d.get("challenger", -1) >= 0:
            plan = np.array([d["challenger"]])
            if "challenge_stake" in d:
                share, fixed = d["challenge_stake"]
                part = np.where(np.arange(n)[:, None] == plan, self.divided(fixed), 0.0)
                self.replace.stake(share, {d["challenger"]: part})
            what = d["challenger"], plan, plan, np.array([leader]), 0.0, d.get("challenge")
            bets.append(Bet(self, self.replace, *what))
        tested = bets[-1:] if self.is_within or d.get("replaces") else bets[:1]
        return tested if is_final else bets

    def divided(self, fixed):
        """Return parts of a stake for each row: so much for all fixed sizes together, the rest mixes."""
        return np.tile([*[fixed / len(GRID)] * len(GRID), 1 - fixed], (self.ledger.n, 1))

    def batch(self, d, uses, gaussian):
        """Fix the bets of a batch, and settle them with its uses by probe; one that was removed is None."""
        G, n, counts = d["replicates"], len(self.owner), np.zeros(int(self.owner[-1]) + 1)
        counts[[probe for probe, _ in d["uses"]]] = [k for _, k in d["uses"]]
        need(not self.is_over and (G >= 2 if self.learns else G == 1), "a batch that there cannot be")
        need(not (self.learns and d["final"]), "a final batch with unknown noise", "NOT COVERED")
        self.is_over, bets, self.cap = d["final"], [], d.get("cap", CAP)
        if d["leader"] >= 0 or "stake" in d:
            if self.learns or self.bounds:  # bets are sized by the noise that was learned
                self.variance = steps(d["noise"], n) ** 2
            if self.bounds:
                at = np.array(d["centres"]) / 2**12
                is_sane = len(at) == n and at.min() >= 0 and at.max() <= 1 and 0 < self.cap <= CAP
                need(is_sane, "centres beyond the bounds, or bets of more than there is")
                self.low, self.high = np.transpose(self.bounds) - self.part
                self.centres = self.low + at * (self.high - self.low)
            bets = self.bets(d)
        parts = [{o: x[g * len(x) // G : (g + 1) * len(x) // G] for o, x in uses.items()} for g in range(G)]
        if self.learns:  # whole replicates count, two at least
            parts = [part for part in parts if not any(None in x for x in part.values())]
            if len(parts) < 2:
                return
        first, readings = np.searchsorted(self.owner, self.owner), []
        for r, o in enumerate(self.owner):  # its values by replicate, without what known arms add
            each = [[use[r - first[r]] for use in part.get(o, ()) if use is not None] for part in parts]
            low, high = self.bounds[r] if self.bounds else (-math.inf, math.inf)
            need(all(low <= x <= high for own in each for x in own), "a value beyond its bounds")
            readings.append([np.array(x, dtype=float) - self.part[r] for x in each])
            counts[o] = len(each[0])
        weights = 1 + np.modf(GOLDEN * np.arange(1, n + 1))[0]
        self.value_sum += float(weights @ [sum(map(np.sum, each)) for each in readings])
        for bet in bets:
            self.settle(bet, counts[self.owner], readings, d["final"], gaussian)
        for ledger in () if d["final"] else (self.ledger, self.replace):
            for key in {COMMON, *ledger.accounts} - {WAITING}:
                ledger.peaks[key] = np.maximum(ledger.evidence(key), ledger.total(key))

    def weights(self, Y, n):
        """Return weights w of one use, with y = sum n w x over readings x; variances; and what is shown."""
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

    def settle(self, bet, n, readings, is_final, gaussian):
        """Multiply wealth by the factors of a bet, or divide it by the p-value of a final batch."""
        W, v, on = self.weights(bet.Y, n)
        if self.factor is bounded:
            far = np.maximum(self.centres - self.low, self.high - self.centres)
            away = [each[0] - c for each, c in zip(readings, self.centres, strict=True)]
            reach = np.maximum((np.abs(W) * far).max(axis=1), 1e-300)
            powers = [W**p @ [(x**p).sum() for x in away] for p in POWERS]
            S = np.column_stack([W @ (n * self.centres) + bet.shift, reach, *powers])
        else:
            S = W @ [[math.fsum(x) for x in each] for each in readings]
            on &= not self.learns or np.ptp(S, axis=1) > 1e-12 * np.abs(S).max(axis=1)
            S = S + bet.shift[:, None]
        on &= v > 0
        S, v, at, ledger, factor = S[on], v[on], bet.rows[on], bet.ledger, self.factor
        if is_final:
            peak = ledger.peaks[bet.key] = ledger.evidence(bet.key)
            peak[at] = np.maximum(peak[at], ledger.total(bet.key)[at] - log_p(factor, S, v, gaussian))
            return
        parts = ledger.accounts[bet.key]
        if bet.sizes is not None:
            parts[at, : bet.sizes.shape[1]] += factor(S, v, bet.sizes[on], CAP)
        if bet.centre is not None and (ok := bet.centre[on] >= 0).any():
            given = bet.centre[on][ok], bet.error[on][ok], self.cap
            parts[at[ok], -1] += mixture(factor, S[ok], v[ok], *given)


class Log:
    """The events of a log: which values each batch has used. `steps` are settled once all are read."""

    def __init__(self, created):
        problem, policy = created["problem"], created["policy"]
        odd = [name for name in ("oracle", "plays") if name in problem]
        is_covered = policy["name"] in ("BetGapE", "Challenge") and not odd
        need(is_covered, f"{policy['name']} with {odd}", "NOT COVERED")
        self.delta, self.epsilon = (policy["parameters"][name] for name in ("delta", "epsilon"))
        self.run = Run(problem, self.epsilon, policy["parameters"].get("incumbent"))
        self.names, self.steps, self.arrived = [*problem["plan_names"]], [], []
        self.open, self.round, self.called, self.gaussian, self.answer = None, [], False, False, None
        self.values, self.cursor, self.last = {}, {}, {}  # by place; by probe the last place used, recorded
        self.removed, self.skipped, self.assumed = set(), set(), set()
        if "known" in problem:
            self.assumed.add("the means that are called known")

    def use_round(self):
        """Take the next values of each probe that were asked for last; they may complete the batch."""
        decision, places = self.open
        for probe, n in self.round:
            for _ in range(n):
                at = self.cursor.get(probe, -1) + 1
                while (probe, at) in self.skipped:  # lost, or removed before it was used
                    at += 1
                need((probe, at) in self.values, "decided before the batch was complete")
                self.cursor[probe] = at
                places.setdefault(probe, []).append((probe, at))
        wanted = {probe: n * decision["replicates"] for probe, n in decision["uses"]}
        is_sane = all(len(at) <= wanted.get(probe, 0) for probe, at in places.items())
        need(is_sane, "other values than those of the batch")
        if all(len(places.get(probe, ())) == n for probe, n in wanted.items()):
            self.steps.append(("batch", decision, places))
            self.open = None

    def decide(self, body):
        """Take a decision: the next round of a batch, another batch, or an answer."""
        need(self.answer is None, "decided after the answer")
        if self.open is not None:
            self.use_round()
        decision, self.round = body.get("decision"), body.get("counts", [])
        need((decision is None and "counts" in body) == (self.open is not None), "a decision within a batch")
        if self.open is not None:
            return
        self.steps += [("add_plan", plan) for plan in self.arrived]
        self.arrived, self.answer, leader = [], body.get("plan"), body.get("plan")
        if decision is not None:
            leader = decision["leader"]
            need(decision["final"] == (self.called and leader >= 0), "no such batch")
            need(0 < sum(n for _, n in decision["uses"]) <= 10**6, "a batch of no sane size")
            if any(at > self.cursor.get(probe, -1) for probe, at in self.last.items()):
                self.assumed.add("decisions were made without values recorded ahead")
            self.open = decision, {}
        keep = self.run.keep
        self.steps.append(("compare", decision or body, leader if keep is None or decision else keep))

    def event(self, kind, body):
        place = body.get("probe"), body.get("index")
        if kind in ("asked", "stopped"):
            self.decide(body)
        elif kind == "measured":
            need(place not in self.values and place not in self.skipped, "recorded twice")
            need(place[1] > self.cursor.get(place[0], -1), "recorded after its batch")
            if body["request"] != "{}.{}".format(*place):
                self.assumed.add("extra values were recorded whatever they were")
            if None in body["values"]:
                self.skipped.add(place)
                self.assumed.add("values were lost whatever they would have been")
                return
            need(all(map(math.isfinite, body["values"])), "a value that is no number")
            self.values[place], self.last[place[0]] = body["values"], place[1]
        elif kind == "removed":
            need(place in self.values and place not in self.removed | self.skipped, "nothing to remove")
            self.assumed.add("removed values were no measurements")
            if place[1] > self.cursor.get(place[0], -1):  # no batch has used it
                self.skipped.add(place)
                return
            self.removed.add(place)
            self.answer, self.steps = None, [step for step in self.steps if step[0] != "compare"]
        elif kind == "plan-added":
            need(not self.called, "a plan after the call for a final batch")
            self.answer, self.arrived = None, [*self.arrived, body]
            self.names.append(body["name"])
            self.assumed.add("plans were added without values recorded ahead")
        elif kind == "extended":
            is_fair = 0 < body["delta"] <= self.delta and not self.called
            need(is_fair, "delta may only fall, and not after the call for a final batch")
            if body["delta"] < self.delta:
                self.answer, self.delta = None, body["delta"]
                self.assumed.add("a smaller delta was chosen without values recorded ahead")
        elif kind == "final-batch":
            self.called, self.gaussian = True, body["gaussian"]
            self.assumed.add("the final batch was called without values recorded ahead")
            self.assumed |= {"Gaussian noise"} if body["gaussian"] else set()

    def settled(self):
        """Settle all bets; return the guarantee in words."""
        run, left = self.run, self.values.keys() - self.removed
        for name, *what in self.steps:
            if name == "batch":
                decision, places = what
                uses = {o: [self.values[x] if x in left else None for x in at] for o, at in places.items()}
                what = decision, uses, self.gaussian
            getattr(run, name)(*what)
        need(self.answer is not None, "no answer is proved")
        is_proved = run.proof(self.answer) >= -math.log(self.delta / (1 if run.keep is None else 2)) * (
            1 - 1e-9
        )
        need(is_proved, f"plan {self.answer} is not proved")
        claim = f"is within {self.epsilon:g} of the best plan" if self.epsilon else "is the best plan"
        if run.keep is not None:
            claim = "is to be kept" if self.answer == run.keep else f"is better than {self.names[run.keep]!r}"
        noise = {
            student: "independent noise, Gaussian and of one unknown size for each arm",
            bounded: "readings between the bounds, each with the mean of its arm given those before it",
        }
        told = [noise.get(run.factor, "independent noise as the problem states it"), *sorted(self.assumed)]
        return (
            f"HOLDS: {self.names[self.answer]!r} {claim}, wrong with probability at most {self.delta:g}.\n"
            f"Assumed: {'; '.join(told)}. {len(self.values)} values."
        )


def read(log):
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
        state = state or Log(body)
        state.event(e["kind"], body)
    need((n, before) == (log["position"], log["checksum"]), "the log does not end where it says")
    return state


def check(log):
    """Return the guarantee in words, or end the program with what fails or is not covered."""
    try:
        return read(log).settled()
    except Exception as error:  # a log may hold any JSON
        raise SystemExit(f"FAILED: {type(error).__name__} {error}") from None


if __name__ == "__main__":
    found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(check(found.get("log", found)))
