"""Proofs about polytopes, as certificates state them, and their checks by arithmetic alone.

**A vertex is best.** The proof names the variables that are not basic and, for each, how the plan moves when
it leaves its bound by 1 (an edge), with the log of the evidence that this does not improve. The edges solve
the equations, and on the variables that are not basic they are the identity, so that
x - v = sum_j |x_j - v_j| e_j for every plan x: they span every plan.

**An average of leaders is within epsilon of all plans.** A series of batches knows of every plan x two
numbers, and of its bets against x one (docs/theory.md):

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
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.polytope import Polytope
from surepick.core.run import Answer
from surepick.core.standard_form import AT_LOWER, BASIC, ROUNDING, StandardForm

NATS = 1e-9  # what logarithms and exponentials may err by
_MET = 1e-8  # how far an equation, a row or a bound may be missed; amounts are near 1
_PASSES = 6  # of finding bounds that follow from rows
_GAIN = "gain"  # the name of the variable L(x) - gain where a box is split


def objections(
    problem: Polytope, plan: Answer, proof: Mapping[str, Any], delta: float, epsilon: float = 0.0
) -> list[str]:
    """Return what is wrong with a proof that no plan beats this one by more than epsilon; empty if it holds.

    Only the proof of a final batch needs `epsilon`; a series includes it in its sums.
    """
    if "edges" in proof:
        return _vertex_objections(problem, plan, proof, delta)
    vector, average, target = problem.vector(plan), np.array(proof["average"], dtype=float), -math.log(delta)
    rows, room = problem.rows, _MET * (1 + np.abs(vector).max(initial=0.0))
    keeps = (
        (rows.a_ub @ vector <= rows.b_ub + room).all()
        and (np.abs(rows.a_eq @ vector - rows.b_eq) <= room).all()
        and (vector >= rows.lower - room).all()
        and (vector <= rows.upper + room).all()
    )
    found = {
        "the answer is not the average of the leads": np.abs(vector - average).max()
        > _MET * problem.form.unit,
        "the answer is no plan": not keeps,
    }
    if "test" in proof:
        found |= _test_objections(problem, plan, proof, target, epsilon)
        target = float(proof["log_wealth"])
    if proof["series"] is not None:
        found |= _series_objections(problem, proof, target)
    return [words for words, wrong in found.items() if wrong]


def variable_names(problem: Polytope) -> list[str]:
    """The arms, and the slack of every row of A_ub."""
    n_slacks = len(problem.form.lower) - problem.n_arms
    return [*problem.arm_names, *(f"slack of row {k}" for k in range(n_slacks))]


def vertex_proof(
    problem: Polytope, at: IntArray, directions: FloatArray, log_evidence: FloatArray
) -> dict[str, Any]:
    """The proof as JSON values; `directions` and `log_evidence` are of the variables that are not basic."""
    names, edges = variable_names(problem), []
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
    form, edges = problem.form, proof["edges"]
    n_arms, n_slacks = problem.n_arms, len(form.lower) - problem.n_arms
    numbers = {name: j for j, name in enumerate(variable_names(problem))}
    leaving = [numbers.get(edge["leaves"], -1) for edge in edges]
    if len({*leaving} - {-1}) != len(edges):
        return ["the edges are not those of a basis"]
    steps = np.zeros((len(edges), len(form.lower)))
    for k, edge in enumerate(edges):
        for arm, amount in edge["moves"].items():
            steps[k, problem.arm(arm)] = amount
    slacks = form.matrix[:n_slacks, :n_arms]
    steps[:, n_arms:] = -steps[:, :n_arms] @ slacks.T
    if not _spans(form, steps, leaving):
        return ["the edges are not those of a basis"]
    vertex = problem.vector(plan) / form.unit
    values = np.append(vertex, form.right[:n_slacks] - slacks @ vertex)
    is_low = np.array([edge["bound"] == "lower" for edge in edges])
    ends = np.where(is_low, form.lower[leaving], form.upper[leaving])
    unit_steps = np.diag(np.where(is_low, 1.0, -1.0))
    weak = [
        edge["leaves"]
        for edge, step in zip(edges, steps[:, :n_arms], strict=True)
        if edge["moves"] and not _does_not_improve(problem, step, edge["log_evidence"], delta)
    ]
    found = {
        "the plan does not keep the rows": np.abs(form.matrix @ values - form.right),
        "the plan does not keep the bounds": np.maximum(form.lower - values, values - form.upper),
        "a variable that leaves its bound is not at it": np.abs(values[leaving] - ends),
        "an edge leaves the rows": np.abs(steps @ form.matrix.T),
        "an edge moves a variable that should stay at its bound": np.abs(steps[:, leaving] - unit_steps),
    }
    wrong = [words for words, missed in found.items() if not missed.max(initial=0.0) <= _MET]
    return [*wrong, *(f"the evidence on the edge of {name!r} is not enough" for name in weak[:1])]


def _does_not_improve(problem: Polytope, step: FloatArray, log_evidence: float | None, delta: float) -> bool:
    """Return whether an edge does not improve: by known means alone, or by the evidence."""
    if not (step[~problem.is_known]).any():
        gains = problem.sign * step * problem.known_means
        return float(gains.sum()) <= ROUNDING * float(np.abs(gains).sum())
    return (log_evidence or 0.0) >= -math.log(delta)


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
    """Whether W(x) >= target for every plan x; see above. Without rates: L(x) >= target sqrt(Q(x))."""

    gain: float
    gains: FloatArray  # (n_arms,)
    square: float
    crosses: FloatArray  # (n_arms,)
    squares: FloatArray  # (n_arms,) not negative
    target: float
    log_cash: float
    log_stakes: FloatArray  # (n_rates,)
    rates: FloatArray  # (n_rates,) positive


class System(NamedTuple):
    """The rows and bounds of a polytope, and one more variable t = gains.x, a part of L."""

    matrix: FloatArray  # (m + 1, n + 1)
    right: FloatArray
    lower: FloatArray
    upper: FloatArray


class Cut(NamedTuple):
    """A tangent and prices; without a tangent (nan) it bounds the plans of the polytope alone."""

    at_gain: float
    at_square: float
    unit: float  # prices are whole multiples of it
    prices: FloatArray  # (m + 1,) whole numbers


class Node(NamedTuple):
    """A box: its cuts, and where it is split then; a box that is not split is ruled out by its last cut."""

    cuts: tuple[Cut, ...]
    variable: int  # -1 where it is not split
    value: float


def system_of(form: StandardForm, inequality: Inequality) -> System:
    """Return the polytope with its tightest bounds and one more variable and row, t = gains.x.

    t is L(x) less its constant, so that a box can be split by L. Its bounds are those over the box of plans,
    a rounding error (`room`) further out.
    """
    low, high = tight_bounds(form)
    m, n = form.matrix.shape
    matrix = np.zeros((m + 1, n + 1))
    matrix[:m, :n], matrix[m, : form.n_arms], matrix[m, n] = form.matrix, inequality.gains, -1.0
    ends = inequality.gains * np.array([low[: form.n_arms], high[: form.n_arms]])
    least, most = float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum())
    room = NATS * (abs(least) + abs(most) + 1e-300)
    return System(
        matrix, np.append(form.right, 0.0), np.append(low, least - room), np.append(high, most + room)
    )


def tight_bounds(form: StandardForm) -> tuple[FloatArray, FloatArray]:
    """Bounds of all variables that follow from single rows, moved outwards by what rounding may be."""
    a, low, high = form.matrix, form.lower.copy(), form.upper.copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_PASSES if len(a) else 0):
            ends = np.sort([a * low, a * high], axis=0)
            sizes = np.abs(form.right) + np.abs(ends).max(axis=0).sum(axis=1)
            others = ends.sum(axis=2)[:, :, None] - ends
            rest = np.sort(
                [(form.right[:, None] - others[0]) / a, (form.right[:, None] - others[1]) / a], axis=0
            )
            room = ROUNDING * sizes[:, None] / np.abs(a)
            new_low = np.where(a != 0, rest[0] - room, -np.inf).max(axis=0)
            new_high = np.where(a != 0, rest[1] + room, np.inf).min(axis=0)
            low, high = np.maximum(low, new_low), np.minimum(high, new_high)
    return low, np.maximum(low, high)


def log_wealth(inequality: Inequality, plans: FloatArray) -> FloatArray:
    """W of each of these plans, (n_plans,)."""
    gain = inequality.gain + plans @ inequality.gains
    square = inequality.square - 2 * plans @ inequality.crosses + plans**2 @ inequality.squares
    z = inequality.log_stakes + gain[:, None] * inequality.rates - 0.5 * square[:, None] * inequality.rates**2
    return np.asarray(np.logaddexp(np.logaddexp.reduce(z, axis=1), inequality.log_cash))


def is_covered(inequality: Inequality, system: System, nodes: list[Node]) -> bool:
    """Return whether this tree of boxes rules out every plan."""
    boxes: list[tuple[FloatArray, FloatArray] | None] = [(system.lower, system.upper)]
    for node in nodes:
        if not boxes:
            return False
        box = boxes.pop()
        for cut in node.cuts:
            box = None if box is None else _cut(inequality, system, box, cut)
        if node.variable < 0:
            if box is not None:
                return False
            continue
        if box is None:
            boxes += [None, None]
            continue
        above, below = (box[0].copy(), box[1]), (box[0], box[1].copy())
        above[0][node.variable] = max(above[0][node.variable], node.value)
        below[1][node.variable] = min(below[1][node.variable], node.value)
        boxes += [half if (half[0] <= half[1]).all() else None for half in (above, below)]  # below is next
    return not boxes


def _cut(
    inequality: Inequality, system: System, box: tuple[FloatArray, FloatArray], cut: Cut
) -> tuple[FloatArray, FloatArray] | None:
    """The part of the box where plans may be that are not ruled out; None where there is none."""
    low, high = box
    costs, const, size, need = np.zeros(len(low)), 0.0, 0.0, 0.0
    if not math.isnan(cut.at_gain):
        slope, need = _tangent(inequality, cut.at_gain, cut.at_square)
        n = len(inequality.gains)
        first, last = low[:n], high[:n]
        costs[:n] = inequality.gains - slope * (inequality.squares * (first + last) - 2 * inequality.crosses)
        products = slope * inequality.squares * first * last
        const = inequality.gain - slope * inequality.square + float(products.sum())
        parts = np.abs(inequality.gains) + slope * (
            inequality.squares * (np.abs(first) + np.abs(last)) + 2 * np.abs(inequality.crosses)
        )
        size = abs(inequality.gain) + slope * abs(inequality.square) + float(np.abs(products).sum())
        size += float(parts @ np.maximum(np.abs(first), np.abs(last)))
    prices = cut.prices * cut.unit
    reduced = costs - system.matrix.T @ prices
    ends = np.minimum(reduced * low, reduced * high)
    size += float(np.abs(prices) @ np.abs(system.right))
    size += float(
        (np.abs(costs) + np.abs(system.matrix.T) @ np.abs(prices)) @ np.maximum(np.abs(low), np.abs(high))
    )
    room = need - (const + float(prices @ system.right) + float(ends.sum()) - ROUNDING * size)
    if not math.isfinite(room):  # prices or a tangent beyond what numbers can hold
        return box
    if room < 0:  # not at 0: without a tangent and without prices nothing is shown
        return None
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        reach = np.where(reduced != 0, room / np.abs(reduced), np.inf)
    new_high = np.where(reduced > 0, np.minimum(high, low + reach + ROUNDING * (np.abs(low) + reach)), high)
    new_low = np.where(reduced < 0, np.maximum(low, high - reach - ROUNDING * (np.abs(high) + reach)), low)
    return (new_low, new_high) if (new_low <= new_high).all() else None


def _tangent(inequality: Inequality, gain: float, square: float) -> tuple[float, float]:
    """The slope r and the need of L - r Q >= need, which implies W >= target wherever it holds.

    W is convex in (L, Q), so that it lies above its tangent at any point.
    """
    if not len(inequality.rates):  # L >= target sqrt(Q), and a root lies below its tangents
        root = math.sqrt(square)
        return inequality.target / (2 * root), inequality.target * root / 2 * (1 + NATS)
    z = inequality.log_stakes + inequality.rates * gain - 0.5 * inequality.rates**2 * square
    top = max(float(z.max()), inequality.log_cash)
    e = np.exp(z - top)
    total = float(e.sum()) + math.exp(inequality.log_cash - top)
    first, second = float(e @ inequality.rates) / total, float(e @ inequality.rates**2) / total
    slope = second / (2 * first)
    here = top + math.log(total) - NATS
    return slope, gain - slope * square + (inequality.target - here) / first


def errors_ahead(
    plan: FloatArray,
    means: FloatArray,
    spread: FloatArray,
    epsilon: float,
    *,
    rounded: bool = False,
) -> Inequality:
    """Whether a plan is ahead of all plans by `target` standard errors (0: to be set), epsilon included.

    The plan is in units of the form, `means` are so that larger is better, `spread` are their variances.
    `rounded`: L is lowered by what rounding may be.
    """
    nothing, gain = np.zeros(0), float(plan @ means) + epsilon
    if rounded:
        gain -= ROUNDING * (float(np.abs(plan) @ np.abs(means)) + epsilon)
    return Inequality(
        gain, -means, float(spread @ plan**2), spread * plan, spread, 0.0, 0.0, nothing, nothing
    )


class Test(NamedTuple):
    """What a final batch shows: the plan is `inequality.target` standard errors ahead of every other one."""

    inequality: Inequality
    nodes: list[Node]
    gaussian: bool  # whether the noise is Gaussian, not only sub-Gaussian


def average_proof(
    problem: Polytope,
    plan: FloatArray,
    inequality: Inequality | None,
    nodes: list[Node],
    *,
    log_wealth: float = 0.0,
    test: Test | None = None,
) -> dict[str, Any]:
    """The proof of an average of leaders as JSON values; with a test, of the plan that a final batch tested.

    Before the test the log wealth was at least `log_wealth`, by the inequality and its boxes; None where that
    is the uninvested wealth alone.
    """
    shown = {
        "average": [float(x) for x in plan],
        "series": None if inequality is None else _numbers(inequality),
        "boxes": _boxes(problem, nodes),
    }
    if test is None:
        return shown
    return {
        **shown,
        "log_wealth": log_wealth,
        "test": {"gaussian": test.gaussian, **_numbers(test.inequality)},
        "test_boxes": _boxes(problem, test.nodes),
    }


def _numbers(inequality: Inequality) -> dict[str, Any]:
    return {name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in inequality._asdict().items()}


def _boxes(problem: Polytope, nodes: list[Node]) -> list[dict[str, Any]]:
    names = [*variable_names(problem), _GAIN]
    return [
        {
            "cuts": [
                [
                    None if math.isnan(cut.at_gain) else [cut.at_gain, cut.at_square],
                    cut.unit,
                    [int(x) for x in cut.prices.tolist()],
                ]
                for cut in node.cuts
            ],
            "split": None if node.variable < 0 else [names[node.variable], node.value],
        }
        for node in nodes
    ]


def _series_objections(problem: Polytope, proof: Mapping[str, Any], target: float) -> dict[str, bool]:
    """Return, by objection, whether it applies to boxes that prove a series' log wealth >= target."""
    inequality = _inequality(proof["series"])
    is_positive = len(inequality.rates) and (inequality.rates > 0).all() and (inequality.squares >= 0).all()
    staked = np.logaddexp.reduce(np.append(inequality.log_stakes, inequality.log_cash))
    return {
        "the evidence asked for is not enough": not inequality.target >= target,
        "stakes or squares are not positive": not is_positive,
        "more was staked than there was": not staked <= NATS,
        "the boxes do not rule out all plans": not _is_shown(problem, inequality, proof["boxes"]),
    }


def _test_objections(
    problem: Polytope, plan: Answer, proof: Mapping[str, Any], target: float, epsilon: float
) -> dict[str, bool]:
    """Return, by objection, whether it applies to a test of this plan by the means of the final batch."""
    given = dict(proof["test"])
    gaussian, inequality = bool(given.pop("gaussian")), _inequality(given)
    x, z, known = problem.vector(plan) / problem.form.unit, inequality.target, float(proof["log_wealth"])
    log_p = math.log(max(0.5 * math.erfc(z / math.sqrt(2.0)), 1e-300)) if gaussian else -0.5 * z * z
    spread, means = inequality.squares, -inequality.gains
    ahead = errors_ahead(x, means, spread, epsilon)
    room = _MET * (float(np.abs(x) @ np.abs(means)) + epsilon)
    is_about_it = (
        not len(inequality.rates)
        and (spread >= 0).all()
        and inequality.gain <= ahead.gain + room
        and (np.abs(inequality.crosses - ahead.crosses) <= _MET * spread).all()
        and abs(inequality.square - ahead.square) <= _MET * float(spread.sum())
    )
    return {
        "the test is not about the answer": not is_about_it,
        "the evidence of the test is not enough": not (z > 0 and known - log_p >= target - NATS),
        "more cash is stated than there was": proof["series"] is None and not known <= NATS,
        "the boxes of the test do not rule out all plans": not _is_shown(
            problem, inequality, proof["test_boxes"]
        ),
    }


def _is_shown(problem: Polytope, inequality: Inequality, boxes: Any) -> bool:
    """Return whether these boxes, as JSON values, rule out every plan."""
    names = {name: j for j, name in enumerate([*variable_names(problem), _GAIN])}
    nodes = []
    for box in boxes:
        cuts = []
        for at, unit, prices in box["cuts"]:
            gain, square = (math.nan, math.nan) if at is None else map(float, at)
            cuts.append(Cut(gain, square, unit, np.array(prices, dtype=float)))
        name, value = box["split"] or (None, 0.0)
        nodes.append(Node(tuple(cuts), -1 if name is None else names[name], float(value)))
    return is_covered(inequality, system_of(problem.form, inequality), nodes)


def _inequality(numbers: Mapping[str, Any]) -> Inequality:
    arrays: dict[str, Any] = {
        name: np.array(x, dtype=float) if isinstance(x, list) else x for name, x in numbers.items()
    }
    if not all(np.isfinite(x).all() for x in arrays.values()):
        raise ValueError("a number is not finite")
    return Inequality(**arrays)
