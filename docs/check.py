"""Check an exported surepick log on its own: python check.py log.json

`surepick export --to log.json` writes the log. This program needs NumPy alone and shares no code with
surepick. It checks the chain of checksums, recomputes the wealth of every batch from the recorded leaders,
counts and values, and prints the guarantee (exit code 0), or what fails or is not covered (exit code 1).
Covered: the best plan of a list, and keep or replace; arms measured by themselves, with noise of a stated
size, of bounded variance or of unknown size; extra and removed values, a smaller delta, and a final batch
unless the noise is unknown. Everything else is not covered, and then it says so.
Why that is enough. Leader, rivals, counts, bet sizes and stakes of a batch are functions of what came before.
A bet multiplies the wealth of its row by a factor whose mean is at most 1 if the row's hypothesis is true:
"plan j is the best"; keep "j is better than the incumbent by more than epsilon"; replace "the challenger is no
better". So the wealth against the truth starts at 1 and never rises on average: it ever reaches 1/delta with
probability at most delta (Ville). Trusted: the assumption that is printed; values recorded as they were
measured; a log that was not rewritten as a whole (compare its last checksum with a copy).
"""

# fmt: off
# ruff: noqa: E501
import hashlib
import json
import math
import sys
from pathlib import Path
from statistics import NormalDist

import numpy as np

GRID = 2.0 * 0.5 ** (np.arange(15) / 2)  # bet sizes, in standard deviations of a gap after one value of each arm
QUANTILES = np.array([NormalDist().inv_cdf((k + 0.5) / 12) for k in range(12)])
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
    return -0.5 * x * x - math.log(-x) - 0.5 * math.log(2 * math.pi) + math.log1p(-x**-2 + 3 * x**-4 - 15 * x**-6)

# Log factors of bets of sizes g on a gap that the batch estimates by D with variance v. With unknown noise D has a
# column for each of G equal replicates, and v is a guess: a bad one costs measurements, never correctness.
def sub_gaussian(D, v, g):
    return (g * D[:, None] - 0.5 * g * g) / v[:, None]

def bounded_variance(D, v, g):
    up = np.maximum(1 + g * (D / v)[:, None], 0)
    return np.log((0.5 + 0.5 * up * up) / (1 + 0.5 * g * g / v[:, None]))

def student(D, v, g):
    """exp(-G d^2/2) E exp(d r chi_G), r = sum / length of the replicates: fair for every size of the noise."""
    G, d, D = D.shape[1], np.minimum(g / np.sqrt(v)[:, None], 10.0), D / np.abs(D).max(axis=1)[:, None]
    a = d * (D.sum(axis=1) / np.sqrt((D * D).sum(axis=1)))[:, None]
    top = 0.5 * (a + np.sqrt(a * a + 4 * G))
    width = 1 / np.sqrt(top * top + G)
    s = np.log(top)[..., None] + width[..., None] * np.arange(-40, 26) * 0.4  # the trapezoid rule in log chi
    logs = log_sum(G * s + np.exp(s) * (a[..., None] - 0.5 * np.exp(s))) + np.log(0.4 * width)
    return logs - (0.5 * G - 1) * math.log(2) - math.lgamma(0.5 * G) - 0.5 * G * d * d - 1e-9

def mixture(factor, D, v, centre, prior):
    """Return the log of the mean factor over g ~ N(centre, prior) given g > 0, or over twelve quantiles of it."""
    if factor is not sub_gaussian:
        g = centre[:, None] + np.sqrt(prior)[:, None] * QUANTILES
        logs = np.where(g > 0, factor(D, v, np.maximum(g, 0)), -np.inf)
        return log_sum(logs) - np.log((g > 0).sum(axis=1))
    post = 1 / (1 / prior + 1 / v)
    mode = post * (centre / prior + D / v)
    exponent = 0.5 * np.log(post / prior) + mode**2 / (2 * post) - centre**2 / (2 * prior)
    return exponent + log_normal_cdf(mode / np.sqrt(post)) - log_normal_cdf(centre / np.sqrt(prior))

class Account:  # rows of log wealth in components, fixed sizes first and a mixture last, beside uninvested cash
    def __init__(self, rows, now=0.0):
        self.parts, self.next_stake, self.now, self.peak = np.full((rows, 16), -1e300), 0.0, np.full(rows, now), np.zeros(rows)
    def count(self, rows, log_cash):
        self.now[rows] = np.logaddexp(log_sum(self.parts[rows]), log_cash)
        self.peak[rows] = np.maximum(self.peak[rows], self.now[rows])
    def stake(self, cash, first, share, n_measured):
        """Invest cash, on all rows alike, whenever measurements have grown by 40%; return what is left."""
        if n_measured < self.next_stake:
            return cash
        is_first = self.next_stake == 0
        part, self.next_stake = first if is_first else 0.3, 1.4 * n_measured
        if is_first:
            self.parts[:, :15] = np.logaddexp(self.parts[:, :15], cash + math.log(part) + math.log(share / 15))
        self.parts[:, 15] = np.logaddexp(self.parts[:, 15], cash + math.log(part) + math.log1p(-share * is_first))
        return cash + math.log1p(-part)

class Run:  # the bets of one log, from its first event on
    def __init__(self, created):
        problem, parameters = created["problem"], created["policy"]["parameters"]
        names, n_arms = problem["plan_names"], len(problem["arm_names"])
        self.epsilon, self.gaussian, self.is_over = parameters["epsilon"], False, False
        self.keep = parameters.get("incumbent", -1)  # the incumbent, -1 where the best plan is asked for
        self.keep = names.index(self.keep) if isinstance(self.keep, str) else self.keep
        self.P = (1 - 2 * problem["minimize"]) * np.array(problem["plans"]["rows"], dtype=float)
        self.learns, self.variance = problem["noise_scale"] is None, np.square(problem["noise_scale"] or np.ones(n_arms))
        self.factor = student if self.learns else bounded_variance if "noise" in problem else sub_gaussian
        self.book, self.cash, self.challengers, self.challenger_cash = Account(len(names)), 0.0, {}, 0.0
        self.counts, self.sums, self.extra, self.extra_sums, self.squares, self.freedom = np.zeros((6, n_arms))
        self.first_led, self.batch, self.largest = {}, None, 0.0
    def gap_variance(self, Y, counts):
        return np.where(Y != 0, Y * Y * self.variance / counts, 0.0).sum(axis=1)
    def contrasts(self, ahead, behind):  # return leader minus rival, bet sizes, and the gap with its variance as estimated before
        uses, Y = self.counts + self.extra, self.P[ahead] - self.P[behind]
        sizes = np.sqrt(np.maximum(self.gap_variance(Y, np.ones(len(uses))), 1e-300))[:, None] * GRID
        gap = Y @ ((self.sums + self.extra_sums) / np.where(uses > 0, uses, 1))
        return Y, sizes, gap, self.gap_variance(Y, uses)
    def open(self, decision):  # stake, and fix the bets of the batch: (account, rows, Y, shift, sizes, centre, prior) of each
        leader, n_measured = decision["leader"], (self.counts + self.extra).sum()
        rows = np.array([j for begin, end in decision["rivals"] for j in range(begin, end)], dtype=int)
        bets, is_final, plan = [], decision["final"], decision.get("challenger", -1)
        if leader >= 0:
            Y, sizes, gap, prior = self.contrasts(leader, rows)
            shift, errors = (self.epsilon, 0.15) if self.keep >= 0 else (0.0, self.correction(leader, Y, prior))
            bets = [(self.book, rows, Y, shift, sizes, gap + shift - errors * np.sqrt(prior), prior)]
            share = 0.5 if self.keep >= 0 else max(0.2, 0.7 - 0.06 * math.log(len(self.P)))
            self.cash = self.book.stake(self.cash, 0.73, share, -1 if is_final else n_measured)
            if self.keep < 0 and not is_final and len(rows) == 1:  # one rival is left: bet against the leader too
                bets.append((self.book, np.array([leader]), -Y, 0.0, sizes, np.zeros(1), prior))
        if leader >= 0 and plan >= 0:
            book = self.challengers.setdefault(plan, Account(1, self.challenger_cash))
            Y, sizes, gap, prior = self.contrasts(np.array([plan]), np.array([self.keep]))
            replace = (book, np.zeros(1, dtype=int), Y, 0.0, sizes, gap - 0.5 * np.sqrt(prior), prior)
            self.challenger_cash = book.stake(self.challenger_cash, 0.5, 0.5, -1 if is_final else n_measured)
            bets = [*bets, replace] if not is_final else [replace] if decision["replaces"] else bets
        uses = np.zeros(len(self.counts))
        uses[[arm for arm, _ in decision["uses"]]] = [n for _, n in decision["uses"]]
        shape = decision["replicates"], len(uses)
        is_sane = 1 <= uses.sum() * shape[0] <= 10**6 and uses.min() >= 0 and (shape[0] > 1) == self.learns
        need(is_sane and not self.is_over, "a batch of no sane size, or after the final one")
        self.batch = uses, np.tile(uses, (shape[0], 1)), np.zeros(shape), np.zeros(shape), bets, is_final
    def correction(self, leader, Y, prior):
        """Return the errors below the estimate that mixtures are centred: a leader was chosen for it."""
        first = self.first_led.setdefault(leader, self.counts)
        need(len(self.first_led) <= 64, "more than 64 leaders", "NOT COVERED")
        old = 1 - np.minimum(prior / self.gap_variance(Y, self.counts - first), 1)
        return 0.3 * math.log(len(self.P)) * np.sqrt(old) + 0.15
    def measure(self, values, gone):  # take in the answer to a request: lists of values by arm, and how many of each were removed
        _, missing, removed, sums, _, _ = self.batch
        k = int(np.argmax(missing.any(axis=1)))
        for arm, found in values.items():
            sums[k, arm], removed[k, arm] = sums[k, arm] + math.fsum(found), removed[k, arm] + gone[arm]
            missing[k, arm] -= len(found) + gone[arm]
        need(missing.min() >= 0, "more values than the batch has")
        if not missing.any():
            self.batch = self.settle(*self.batch)  # None
    def settle(self, uses, _, removed, sums, bets, is_final):
        """Multiply wealth by what this batch alone has shown; of replicates whole ones count, two at least."""
        sums, uses = (sums[~removed.any(axis=1)], uses) if self.learns else (sums, uses - removed[0])
        if self.learns and len(sums) < 2:
            return
        means = (sums / np.maximum(uses, 1)).T
        for book, rows, Y, shift, sizes, centre, prior in bets:
            D, v = Y @ means, self.gap_variance(Y, uses)
            on = np.isfinite(v) & (v > 0) & (not self.learns or np.ptp(D, axis=1) > 1e-12 * np.abs(D).max(axis=1))
            D, v, at, c, p = ((D if self.learns else D[:, 0]) + shift)[on], v[on], rows[on], centre[on], prior[on]
            ok = np.isfinite(p) & (c >= 0)
            if is_final:
                book.peak[at] = np.maximum(book.peak[at], book.now[at] - self.log_p(D, v))
                continue
            book.parts[at, :15] += self.factor(D, v, sizes[on])
            if ok.any():
                book.parts[at[ok], 15] += mixture(self.factor, D[ok], v[ok], c[ok], p[ok])
        self.is_over = is_final
        for book, rows, *_ in [] if is_final else bets:
            book.count(rows, self.cash if book is self.book else self.challenger_cash)
        if self.learns:  # the variances guide the next bets
            self.squares = self.squares + uses * ((means - means.mean(axis=1)[:, None]) ** 2).sum(axis=1)
            self.freedom, self.largest = self.freedom + (uses > 0) * (len(sums) - 1), max(self.largest, np.abs(means).max())
            common = max(self.squares.sum() / self.freedom.sum(), 1e-24 * self.largest**2, 1e-280)
            self.variance = (self.squares + 10 * common) / (self.freedom + 10)
        self.counts, self.sums = self.counts + uses * len(sums), self.sums + sums.sum(axis=0)
    def log_p(self, D, v):
        need(not self.learns, "a final batch with unknown noise", "NOT COVERED")
        cantelli, tail = -np.log1p(D * D / v), log_normal_cdf(-D / np.sqrt(v)) if self.gaussian else -0.5 * D * D / v
        return np.where(D > 0, cantelli if self.factor is bounded_variance else tail, 0.0)
    def numbers(self, leader):  # return the mean log wealth and the least evidence against a rival, which every value moves
        rows = np.concatenate([book.now for book in [self.book, *self.challengers.values()]])
        return math.fsum(rows) / len(rows), 0.0 if leader < 0 else np.delete(self.book.peak, leader).min()

class Log:  # the events of a log as far as they are read: values by arm and place, and what the run is given
    def __init__(self, created):
        problem, policy = created["problem"], created["policy"]
        odd = [name for name in ("probes", "oracle", "polytope", "known", "bounds") if name in problem]
        odd += ["past"] if created["past"] else []
        odd += ["a sparse list"] if problem.get("plans", {}).get("kind") != "dense" else []
        is_best = policy["name"] == "BetGapE" and policy["parameters"]["epsilon"] == 0
        need((is_best or policy["name"] == "Challenge") and not odd, f"{policy['name']} {odd}", "NOT COVERED")
        self.names, self.values, self.cursor, self.round, self.waiting = problem["plan_names"], {}, {}, [], []
        self.removed, self.skipped, self.called, self.answer, self.assumed = set(), set(), False, None, set()
        self.steps, self.run, self.delta, self.created = [], Run(created), policy["parameters"]["delta"], created
    def take(self, kind, what, *, again=False):  # let the run take a step; removed values do not count, extra ones guide alone
        self.steps += [] if again else [(kind, what)]
        if kind == "values":
            kept = {a: [self.values[a, i] for i in at if (a, i) not in self.removed] for a, at in what.items()}
            self.run.measure(kept, {arm: len(at) - len(kept[arm]) for arm, at in what.items()})
        elif kind == "decision":
            self.run.open(what)
        elif what[0] not in self.removed:
            self.run.extra[what[1]] += 1
            self.run.extra_sums[what[1]] += what[2]
    def use_round(self):  # give the run the next values of each arm that the last request asked for
        used = {arm: [] for arm, _ in self.round}
        for arm, n in self.round:
            while len(used[arm]) < n:
                at = self.cursor[arm] = self.cursor.get(arm, -1) + 1
                if (arm, at) not in self.skipped:
                    need((arm, at) in self.values, "decided before the batch was complete")
                    used[arm].append(at)
        if used:
            self.take("values", used)
    def decide(self, body):  # check the two numbers that every value moves, and that an answer is proved
        need(self.answer is None, "decided after the answer")
        self.use_round()
        self.round, decision, run = body.get("counts", []), body.get("decision"), self.run
        need((decision is None and "counts" in body) == (run.batch is not None), "a decision in the middle of a batch")
        if run.batch is not None:
            return
        for extra in self.waiting:
            self.take("extra", extra)
        self.waiting, plan, numbers = [], body.get("plan"), decision or body
        leader = decision["leader"] if decision else run.keep if run.keep >= 0 else plan
        for name, x in zip(("wealth", "evidence"), run.numbers(-1 if leader is None else leader), strict=True):
            close = abs(numbers[name] - x) <= (1e-6 if run.learns else 1e-9) * max(1.0, abs(x))
            need(close or leader is None, f"its {name} is {numbers[name]!r}, and the values before it give {x!r}")
        if decision is None:
            self.answer, threshold = plan, -math.log(self.delta / (2 if run.keep >= 0 else 1)) * (1 - 1e-9)
            proof = run.challengers[plan].peak[0] if plan in run.challengers else run.numbers(plan or 0)[1]
            is_answer = run.keep in (-1, plan) or plan in run.challengers or plan is None
            need(is_answer and (plan is None or proof >= threshold), f"the evidence does not prove plan {plan}")
            return
        need(decision["final"] == (self.called and leader >= 0) and (run.keep < 0 or leader in (-1, run.keep)), "no such batch")
        self.take("decision", decision)
    def event(self, n, kind, body):
        need(kind != "plan-added", "plans that arrive", "NOT COVERED")
        if kind in ("asked", "stopped"):
            self.decide(body)
        elif kind == "measured":
            for place, value in zip(body.get("places", [body["index"]]), body.get("values", [body.get("value")]), strict=True):
                need((body["arm"], place) not in self.values and math.isfinite(value), "recorded twice, or no number")
                self.values[body["arm"], place] = value
        elif kind == "recorded" and not body.get("picked"):
            self.assumed.add("extra values were recorded whatever they were")
            if np.ptp(self.run.P[:, body["arm"]]) > 0:
                self.waiting.append((n, body["arm"], body["value"]))
        elif kind == "voided":
            self.remove(body["event"] if "event" in body else (body["arm"], body["index"]))
        elif kind == "extended":
            new, old = body["policy"]["parameters"], self.created["policy"]["parameters"]
            need(not self.called and new["epsilon"] == old["epsilon"], "a session that starts over", "NOT COVERED")
            need(0 < new["delta"] <= self.delta, "delta may only fall")
            if new["delta"] < self.delta:
                self.answer, self.delta = None, new["delta"]
                self.assumed.add("a smaller delta was chosen without values recorded ahead")
        elif kind == "called":
            self.called, self.run.gaussian = True, body["gaussian"]
            self.assumed.add("the final batch was called without values recorded ahead")
    def remove(self, place):  # settle everything again without this value, or skip it if no batch has used it
        need(isinstance(place, int) or place in self.values, "nothing to remove")
        if not isinstance(place, int) and place[1] > self.cursor.get(place[0], -1):
            self.skipped.add(place)
            return
        self.removed.add(place)
        self.assumed.add("removed values were no measurements")
        self.answer, self.run, self.waiting = None, Run(self.created), [x for x in self.waiting if x[0] != place]
        for step in self.steps:
            self.take(*step, again=True)
    def words(self):
        run, other = self.run, self.names[self.run.keep]
        claim = "is the best plan" if run.keep < 0 else "is to be kept" if self.answer == run.keep else f"is better than {other!r}"
        noise = "Gaussian and of one unknown size for each arm" if run.learns else "as the problem states it"
        return (f"HOLDS: {self.names[self.answer]!r} {claim}, wrong with probability at most {self.delta:g}.\n"
                f"Assumed: independent noise, {'; '.join([noise, *sorted(self.assumed)])}. {len(self.values)} values.")

def check(log):
    """Return the guarantee in words, or end the program with what fails or is not covered."""
    before, time, keys, state, n = "0" * 64, -math.inf, set(), None, 0
    for n, e in enumerate(log["events"], 1):
        line = json.dumps([before, n, *(e[x] for x in ("kind", "key", "time", "body"))], separators=(",", ":"), ensure_ascii=False)
        whole = e["position"] == n and hashlib.sha256(line.encode()).hexdigest() == e["checksum"] and e["time"] >= time
        need(whole and (e["kind"] == "created") == (n == 1) and e["key"] not in keys, f"event {n}: the chain is broken")
        before, time, body, keys = e["checksum"], e["time"], json.loads(e["body"]), keys | ({e["key"]} - {None})
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
