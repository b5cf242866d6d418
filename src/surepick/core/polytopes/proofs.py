"""Proofs about polytopes, as certificates state them, and their checks by arithmetic alone.

**A vertex is best.** The proof names the variables that are not basic and, for each, how the plan moves when
it leaves its bound by 1 (an edge), with the log of the evidence that this does not improve. The edges solve
the equations, and on the variables that are not basic they are the identity, so that
x - v = sum_j |x_j - v_j| e_j for every plan x: they span every plan.

**An average of leaders is within epsilon of all plans.** A series of batches gives each plan x two sums, its
gain L and its variance Q, and from them the log wealth W of the bets against x (docs/theory.md):

    L(x) = gain + gains.x,     Q(x) = square - 2 crosses.x + sum_s squares_s x_s^2,
    W(x) = log(cash + sum_j exp(log_stakes_j + rates_j L(x) - rates_j^2 Q(x) / 2)).

The proof shows W(x) >= target for every plan at once. It is a tree of boxes: each box is bounded by *cuts*
and then ruled out, or split in two. A cut is a point (L0, Q0) and prices of the rows, any numbers whatever:
W is convex in (L, Q) and lies above its tangent at that point, Q(x) lies below its secants on the box, and
what is then left is linear, bounded by the prices (Neumaier and Shcherbina 2004). The bound rules out the
box, or else says how far each variable can be from its bounds in a plan that is not ruled out.

After a final batch the plan that was tested comes with two such trees: W(x) >= log_wealth for every plan
before that batch, and by the means of that batch alone the plan is ahead of every other one by z standard
errors, epsilon included. Together they are worth log_wealth - log p(z).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.polytopes.polytope import Polytope
from surepick.core.polytopes.standard_form import AT_LOWER, BASIC, ROUNDING, StandardForm, implied_bounds
from surepick.core.run import Answer

NATS = 1e-9  # what logarithms and exponentials may err by
_MET = 1e-8  # how far an equation, a row or a bound may be missed; amounts are near 1
_PASSES = 6  # of finding bounds that follow from rows


def objections(
    problem: Polytope, plan: Answer, proof: Mapping[str, Any], delta: float, epsilon: float = 0.0
) -> list[str]:
    """Return what is wrong with a proof that no plan beats this one by more than epsilon; empty if it holds.

    There are three kinds, as at the top of this module: by the edges of a vertex, by a series of batches, or
    by the test of a final batch, after a series or without. Only a test needs `epsilon`; a series includes it
    in its sums. A series has to show `target`, the log wealth against every plan: log(1/delta), or before a
    test the wealth that the test starts from.
    """
    if "edges" in proof:
        return _vertex_objections(problem, plan, proof, delta)
    vector = problem.vector(plan)
    average = np.array(proof["average"], dtype=float)
    target = -math.log(delta)
    found = {
        "the answer is not the average of the leaders": not (
            np.abs(vector - average).max() <= _MET * problem.form.unit
        ),
        "the answer is no plan": not problem.keeps(vector),
    }
    if "test" in proof:
        found |= _test_objections(problem, vector / problem.form.unit, proof, target, epsilon)
        target = float(proof["log_wealth"])
    if proof["series"] is None:
        # without a series the wealth is the cash, which began at 1
        found["more wealth is needed than the cash"] = not target <= NATS
    else:
        inequality, is_shown = _is_shown(problem, proof["series"])
        rates, squares = inequality.rates, inequality.squares
        # the log of all stakes and the cash together, which began at 1
        log_total = np.logaddexp.reduce(np.append(inequality.log_stakes, inequality.log_cash))
        found |= {
            "the evidence asked for is not enough": not inequality.target >= target,
            "stakes or squares are not positive": not (len(rates) and min(rates) > 0 and min(squares) >= 0),
            "more was staked than there was": not log_total <= NATS,
            "the boxes do not rule out all plans": not is_shown,
        }
    return [words for words, wrong in found.items() if wrong]


def variable_names(problem: Polytope) -> list[str]:
    """Return the names of the arms, then of the slack of every row of A_ub."""
    return [*problem.arm_names, *(f"slack of row {k}" for k in range(problem.form.n_slacks))]


def vertex_proof(
    problem: Polytope, at: IntArray, directions: FloatArray, log_evidence: FloatArray
) -> dict[str, Any]:
    """Return the proof that a vertex is best, as JSON values.

    `at` is its basis. `directions` and `log_evidence` have one row for each variable that is not basic.
    """
    names = variable_names(problem)
    edges = []
    moving = np.flatnonzero(at != BASIC).tolist()
    for j, direction, known in zip(moving, directions, log_evidence.tolist(), strict=True):
        if not direction.any():
            continue
        arms = direction[: problem.n_arms]
        edges.append(
            {
                "leaves": names[j],
                "bound": "lower" if at[j] == AT_LOWER else "upper",
                "moves": {problem.arm_names[s]: float(arms[s]) for s in np.flatnonzero(arms).tolist()},
                "log_evidence": known if arms.any() else None,  # a step that moves no arm changes no value
            }
        )
    return {"edges": edges}


def _vertex_objections(problem: Polytope, plan: Answer, proof: Mapping[str, Any], delta: float) -> list[str]:
    """Return what is wrong with a proof that this plan is best; empty if it holds."""
    form = problem.form
    edges = proof["edges"]
    n_arms = problem.n_arms
    numbers = {name: j for j, name in enumerate(variable_names(problem))}
    leaving = [numbers.get(edge["leaves"], -1) for edge in edges]
    if len({*leaving} - {-1}) != len(edges):
        return ["the edges are not those of a basis"]
    steps = np.zeros((len(edges), len(form.lower)))
    for k, edge in enumerate(edges):
        for arm, amount in edge["moves"].items():
            steps[k, problem.arm(arm)] = amount
    steps[:, n_arms:] = -steps[:, :n_arms] @ form.matrix[: form.n_slacks, :n_arms].T
    if not _spans(form, steps, leaving):
        return ["the edges are not those of a basis"]
    values = form.variables(problem.vector(plan))
    is_low = np.array([edge["bound"] == "lower" for edge in edges])
    ends = np.where(is_low, form.lower[leaving], form.upper[leaving])
    unit_steps = np.diag(np.where(is_low, 1.0, -1.0))
    weak = []  # edges that may improve: neither known means alone nor the evidence say that they do not
    for edge, step in zip(edges, steps[:, :n_arms], strict=True):
        is_worse = (edge["log_evidence"] or 0.0) >= -math.log(delta)
        if not step[~problem.is_known].any():
            gains = problem.sign * step * problem.known_means
            is_worse = float(gains.sum()) <= ROUNDING * float(np.abs(gains).sum())
        if edge["moves"] and not is_worse:
            weak.append(edge["leaves"])
    found = {
        "the plan does not keep the rows": np.abs(form.matrix @ values - form.right),
        "the plan does not keep the bounds": np.maximum(form.lower - values, values - form.upper),
        "a variable that leaves its bound is not at it": np.abs(values[leaving] - ends),
        "an edge leaves the rows": np.abs(steps @ form.matrix.T),
        "an edge moves a variable that should stay at its bound": np.abs(steps[:, leaving] - unit_steps),
    }
    wrong = [words for words, missed in found.items() if not missed.max(initial=0.0) <= _MET]
    return [*wrong, *(f"the evidence on the edge of {name!r} is not enough" for name in weak[:1])]


def _spans(form: StandardForm, steps: FloatArray, leaving: list[int]) -> bool:
    """Return whether the columns of A that neither leave a bound nor are fixed have full column rank.

    Then A w = 0 forces w = 0 for w = x - v - sum_j |x_j - v_j| e_j, so every plan x is v plus non-negative
    steps along the edges. w is 0 on the variables that leave a bound, and on fixed ones that no edge moves.
    """
    still = (form.upper <= form.lower) & ~steps.any(axis=0)
    still[leaving] = True
    others = form.matrix[:, ~still]
    rank = int(np.linalg.matrix_rank(others)) if others.size else 0
    return rank == int(others.shape[1])


class Inequality(NamedTuple):
    """The claim that W(x) >= target for every plan x, with L, Q and W as at the top of this module.

    Without rates it is the claim of a test with z = target: L(x) >= target sqrt(Q(x)).
    """

    gain: float
    gains: FloatArray  # (n_arms,)
    square: float
    crosses: FloatArray  # (n_arms,)
    squares: FloatArray  # (n_arms,) not negative
    target: float
    log_cash: float
    log_stakes: FloatArray  # (n_rates,)
    rates: FloatArray  # (n_rates,) positive

    def sums(self, plans: FloatArray) -> tuple[Any, Any]:
        """Return L and Q of each of these plans."""
        gain = self.gain + plans @ self.gains
        return gain, self.square - 2 * plans @ self.crosses + plans**2 @ self.squares

    def log_wealth(self, plans: FloatArray) -> FloatArray:
        """Return W of each of these plans, (n_plans,)."""
        gain, square = self.sums(plans)
        z = self.log_stakes + gain[:, None] * self.rates - 0.5 * square[:, None] * self.rates**2
        return np.asarray(np.logaddexp(np.logaddexp.reduce(z, axis=1), self.log_cash))

    def at(self, gain: float, square: float) -> tuple[float, float, float]:
        """Return W at (L, Q), and the means of the rates and of their squares under its terms."""
        z = self.log_stakes + self.rates * (gain - 0.5 * square * self.rates)
        top = max(float(z.max()), self.log_cash)
        e = np.exp(z - top)
        total = float(e.sum()) + math.exp(self.log_cash - top)
        return top + math.log(total), float(e @ self.rates) / total, float(e @ self.rates**2) / total

    def tangent(self, gain: float, square: float, allowed: float) -> tuple[float, float]:
        """Return (slope, need) such that L - slope Q >= need implies the claim: its tangent at this L and Q.

        W is convex in (L, Q), so it lies above its tangent at (L0, Q0). Its derivatives are dW/dL = E[rate]
        and dW/dQ = -E[rate^2] / 2, with expectations over the terms of W. So W >= target follows from

            W0 + E[rate] (L - L0) - E[rate^2] / 2 (Q - Q0) >= target.

        Divide by E[rate] and collect the constants. Logarithms may err by NATS, and these sums by ROUNDING of
        the sizes of their terms: a point may be so far away that only the rounding of its sums is left.
        `allowed` multiplies both.

        Without rates and for target > 0, sqrt(Q) lies below its tangent (sqrt(Q0) + Q / sqrt(Q0)) / 2.
        """
        if not len(self.rates):
            root = math.sqrt(square)
            return self.target / (2 * root), self.target * root / 2 * (1 + allowed * NATS)
        log_wealth, mean_rate, mean_square = self.at(gain, square)
        slope = mean_square / (2 * mean_rate)
        size = abs(gain) + slope * abs(square) + (abs(self.target) + abs(log_wealth)) / mean_rate
        lacking = (self.target - log_wealth + allowed * NATS) / mean_rate
        return slope, gain - slope * square + lacking + allowed * ROUNDING * size


def errors_ahead(
    plan: FloatArray,
    means: FloatArray,
    variance: FloatArray,
    epsilon: float,
    *,
    rounded: bool = False,
) -> Inequality:
    """Return the claim that this plan plus epsilon is ahead of every plan by `target` standard errors.

    - plan: its amounts, in units of the standard form.
    - means, variance: by arm, with signs such that larger is better.
    - rounded: whether L is lowered by the largest rounding error.

    The caller sets the target, which is 0 here.
    """
    gain = float(plan @ means) + epsilon
    if rounded:
        gain -= ROUNDING * (float(np.abs(plan) @ np.abs(means)) + epsilon)
    return Inequality(
        gain=gain,
        gains=-means,
        square=float(variance @ plan**2),
        crosses=variance * plan,
        squares=variance,
        target=0.0,
        log_cash=0.0,
        log_stakes=np.zeros(0),
        rates=np.zeros(0),
    )


class System(NamedTuple):
    """The rows and bounds of a polytope, and one more variable t = gains.x, a part of L."""

    matrix: FloatArray  # (m + 1, n + 1)
    right: FloatArray
    lower: FloatArray
    upper: FloatArray


def system_of(form: StandardForm, inequality: Inequality) -> System:
    """Return the polytope with its tightest bounds and one more variable t, with the row gains.x - t = 0.

    t is L(x) without its constant. With it as a variable, a box of plans can be split at a value of L.
    """
    low, high = tight_bounds(form)
    m, n = form.matrix.shape
    matrix = np.zeros((m + 1, n + 1))
    matrix[:m, :n] = form.matrix
    matrix[m, : form.n_arms] = inequality.gains
    matrix[m, n] = -1.0
    # The bounds of t over the box: each term gains_s x_s is least and largest at an end of its interval.
    # Wider bounds are bounds, too: the margin covers the rounding errors of both sums. 1e-300 keeps it
    # positive when both are 0.
    ends = inequality.gains * np.array([low[: form.n_arms], high[: form.n_arms]])
    least = float(ends.min(axis=0).sum())
    most = float(ends.max(axis=0).sum())
    margin = NATS * (abs(least) + abs(most) + 1e-300)
    return System(
        matrix=matrix,
        right=np.append(form.right, 0.0),
        lower=np.append(low, least - margin),
        upper=np.append(high, most + margin),
    )


def tight_bounds(form: StandardForm) -> tuple[FloatArray, FloatArray]:
    """Return bounds of all variables that follow from single rows, moved outwards by the rounding error."""
    matrix = np.vstack([form.matrix, -form.matrix])
    right = np.append(form.right, -form.right)
    bounds = np.array([form.lower, form.upper])
    for _ in range(_PASSES):
        low, high = implied_bounds(matrix, right, bounds)
        bounds = np.array([np.maximum(bounds[0], low), np.minimum(bounds[1], high)])
    return bounds[0], np.maximum(*bounds)


class Cut(NamedTuple):
    """Prices of the rows, and the point (L, Q) of a tangent; without one it bounds the plans alone."""

    at: tuple[float, float] | None
    unit: float  # prices are whole multiples of it
    prices: tuple[int, ...]  # (m + 1,)


class Node(NamedTuple):
    """A box: its cuts, and where it is split then; a box that is not split is ruled out by its last cut."""

    cuts: list[Cut]
    split: tuple[int, float] | None  # the number of a variable, and a value


def is_covered(inequality: Inequality, system: System, nodes: list[Node]) -> bool:
    """Return whether this tree of boxes, depth first, rules out every plan."""
    boxes: list[tuple[FloatArray, FloatArray] | None] = [(system.lower, system.upper)]
    for node in nodes:
        if not boxes:
            return False
        box = boxes.pop()
        for cut in node.cuts:
            if box is not None:
                missing, low, high = cut_box(inequality, system, *box, cut)
                box = None if missing < 0 or (low > high).any() else (low, high)
        if node.split is None:
            if box is not None:
                return False
        else:
            boxes += [None, None] if box is None else list(halves(*box, *node.split))
            boxes = [half if half is None or (half[0] <= half[1]).all() else None for half in boxes]
    return not boxes


def halves(low: FloatArray, high: FloatArray, variable: int, value: float) -> Iterator[Any]:
    """Yield both parts of a box, split at a value of one variable: first the part above it, then below."""
    raised_low = low.copy()
    raised_low[variable] = max(low[variable], value)
    yield raised_low, high
    lowered_high = high.copy()
    lowered_high[variable] = min(high[variable], value)
    yield low, lowered_high


def cut_box(
    inequality: Inequality, system: System, low: FloatArray, high: FloatArray, cut: Cut, allowed: float = 1.0
) -> tuple[float, FloatArray, FloatArray]:
    """Return how much a cut lacks to rule out the box, and tighter bounds of the plans it leaves.

    The cut rules out the box if it lacks less than 0, or if a new lower bound exceeds an upper one.
    `allowed` multiplies the allowance for rounding: a search allows more than the check of its proof.
    """
    costs = np.zeros(len(low))
    const = size = need = 0.0
    if cut.at is not None:
        n = len(inequality.gains)
        slope, need = inequality.tangent(*cut.at, allowed)
        costs[:n], const, size = secants(inequality, slope, low[:n], high[:n])
    prices = np.array(cut.prices, dtype=float) * cut.unit
    reduced = costs - prices @ system.matrix
    ends = np.minimum(reduced * low, reduced * high)
    size += float(np.abs(prices) @ np.abs(system.right))
    sizes = np.abs(costs) + np.abs(prices) @ np.abs(system.matrix)
    size += float(sizes @ np.maximum(np.abs(low), np.abs(high)))
    rounding = allowed * ROUNDING
    missing = need - (const + float(prices @ system.right) + float(ends.sum()) - rounding * size)
    if not math.isfinite(missing):  # prices or a tangent beyond what numbers can hold
        return math.inf, low, high
    if missing < 0:  # not at 0: without a tangent and without prices nothing is shown
        return missing, low, high
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        reach = np.where(reduced != 0, missing / np.abs(reduced), np.inf)
    new_high = np.where(reduced > 0, np.minimum(high, low + reach + rounding * (np.abs(low) + reach)), high)
    new_low = np.where(reduced < 0, np.maximum(low, high - reach - rounding * (np.abs(high) + reach)), low)
    return missing, new_low, new_high


def secants(
    inequality: Inequality, slope: float, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, float, float]:
    """Return costs, constant and size of a linear function below L - slope Q on a box of plans.

    On the box each x_s^2 lies below its secant (low_s + high_s) x_s - low_s high_s. `size` adds up the
    absolute values of all terms; the rounding error is at most a fixed share of it.
    """
    gains, crosses, squares = inequality.gains, inequality.crosses, inequality.squares
    products = slope * squares * low * high
    costs = gains - slope * (squares * (low + high) - 2 * crosses)
    const = inequality.gain - slope * inequality.square + float(products.sum())
    parts = np.abs(gains) + slope * (squares * (np.abs(low) + np.abs(high)) + 2 * np.abs(crosses))
    size = abs(inequality.gain) + slope * abs(inequality.square) + float(np.abs(products).sum())
    return costs, const, size + float(parts @ np.maximum(np.abs(low), np.abs(high)))


def shown(inequality: Inequality, nodes: list[Node]) -> dict[str, Any]:
    """Return an inequality and the boxes that prove it, as JSON values."""
    numbers = {
        name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in inequality._asdict().items()
    }
    boxes = [{"cuts": [list(cut) for cut in node.cuts], "split": node.split} for node in nodes]
    return {**numbers, "boxes": boxes}


def _is_shown(problem: Polytope, given: Mapping[str, Any]) -> tuple[Inequality, bool]:
    """Read an inequality in the form that `shown` writes; return it, and whether its boxes prove it."""
    numbers = {name: np.array(x, dtype=float) for name, x in given.items() if name != "boxes"}
    if not all(np.isfinite(x).all() for x in numbers.values()):
        raise ValueError("a number is not finite")
    values: dict[str, Any] = {name: x if x.ndim else x.item() for name, x in numbers.items()}
    inequality = Inequality(**values)
    nodes = [Node([Cut(*cut) for cut in box["cuts"]], box["split"]) for box in given["boxes"]]
    return inequality, is_covered(inequality, system_of(problem.form, inequality), nodes)


def _test_objections(
    problem: Polytope, x: FloatArray, proof: Mapping[str, Any], target: float, epsilon: float
) -> dict[str, bool]:
    """Return, by objection, whether it applies to the final test that plan x is within epsilon of the best.

    The test compares x with every plan by the means of the final batch alone; x and the log wealth are
    fixed before it. If x lies more than epsilon behind a best plan, x is z standard errors ahead of that
    plan with probability at most p(z). So the evidence is log_wealth - log p(z), which must reach `target`.
    """
    inequality, is_shown = _is_shown(problem, proof["test"])
    z = inequality.target
    log_wealth = float(proof["log_wealth"])
    log_p = -0.5 * z * z  # the bound for sub-Gaussian noise
    if proof["gaussian"]:
        log_p = math.log(max(0.5 * math.erfc(z / math.sqrt(2.0)), 1e-300))
    # the sums must be those of x: compute them again from the stated means and variances
    variance, means = inequality.squares, -inequality.gains
    expected = errors_ahead(x, means, variance, epsilon)
    rounding = _MET * (float(np.abs(x) @ np.abs(means)) + epsilon)
    is_about_x = (
        not len(inequality.rates)
        and (variance >= 0).all()
        and inequality.gain <= expected.gain + rounding
        and (np.abs(inequality.crosses - expected.crosses) <= _MET * variance).all()
        and abs(inequality.square - expected.square) <= _MET * float(variance.sum())
    )
    is_enough = z > 0 and log_wealth - log_p >= target - NATS
    return {
        "the test is not about the answer": not is_about_x,
        "the evidence of the test is not enough": not is_enough,
        "the boxes of the test do not rule out all plans": not is_shown,
    }
