"""The proof that an average of leads is within epsilon of all plans, and its check by arithmetic alone.

A series of blocks knows of every plan x two numbers, and of its bets against x one (docs/theory.md):

    L(x) = gain + gains.x,     Q(x) = square - 2 crosses.x + sum_s squares_s x_s^2,
    W(x) = log(cash + sum_j exp(log_stakes_j + rates_j L(x) - rates_j^2 Q(x) / 2)).

The proof shows W(x) >= target for every plan at once. It is a tree of boxes: each box is bounded by *cuts*
and then ruled out, or split in two. A cut is a point (L0, Q0) and prices of the rows, any numbers whatever:
W is convex in (L, Q) and lies above its tangent at that point, Q(x) lies below its secants on the box, and
what is then left is linear, bounded by the prices (Neumaier and Shcherbina 2004). The bound rules out the
box, or else says how far each variable can be from its bounds in a plan that is not ruled out. No solver
takes part.

After a last call the plan that was tested comes with two such trees: W(x) >= log_wealth for every plan before
the last block, and by the means of that block alone the plan is ahead of every other one by z standard
errors, epsilon included. Together they are worth log_wealth - log p(z).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.polytope import Polytope
from surepick.core.run import Answer
from surepick.core.standard_form import ROUNDING, StandardForm
from surepick.core.tails import normal_below
from surepick.core.vertex_proof import variable_names

NATS = 1e-9  # what logarithms and exponentials may err by
_MET = 1e-8  # how far a row or a bound may be missed; amounts are near 1
_PASSES = 6  # of finding bounds that follow from rows
_GAIN = "gain"  # the name of the variable L(x) - gain where a box is split


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
    """The rows and bounds of a polytope, and one variable more: what `gains` add to L."""

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
    """The polytope with bounds that follow from its rows, and the variable for L."""
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
        boxes += [None, None] if box is None else _halves(box, node.variable, node.value)
    return not boxes


def _halves(box: tuple[FloatArray, FloatArray], variable: int, value: float) -> list[Any]:
    """The box above the value, then the one below, which is looked at first."""
    above, below = (box[0].copy(), box[1]), (box[0], box[1].copy())
    above[0][variable] = max(above[0][variable], value)
    below[1][variable] = min(below[1][variable], value)
    return [half if (half[0] <= half[1]).all() else None for half in (above, below)]


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


def proof_of(
    problem: Polytope, average: FloatArray, inequality: Inequality, nodes: list[Node]
) -> dict[str, Any]:
    """The proof as JSON values."""
    return {
        "average": [float(x) for x in average],
        "series": _numbers(inequality),
        "boxes": _boxes(problem, nodes),
    }


class Test(NamedTuple):
    """What a final batch shows: the plan is `inequality.target` standard errors ahead of every other one."""

    inequality: Inequality
    nodes: list[Node]
    gaussian: bool  # whether the noise is Gaussian, not only sub-Gaussian


def proof_of_test(
    problem: Polytope, plan: FloatArray, before: tuple[float, Inequality | None, list[Node]], test: Test
) -> dict[str, Any]:
    """The proof of a plan that was tested, as JSON values.

    `before` is what the log wealth was at least, and what proves it: an inequality and boxes, or None where
    it is the cash alone.
    """
    log_wealth, inequality, nodes = before
    return {
        "average": [float(x) for x in plan],
        "log_wealth": log_wealth,
        "series": None if inequality is None else _numbers(inequality),
        "boxes": _boxes(problem, nodes),
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


def objections(
    problem: Polytope, plan: Answer, proof: Mapping[str, Any], delta: float, epsilon: float = 0.0
) -> list[str]:
    """Return what is wrong with a proof that no plan beats this one by more than epsilon; empty if it holds.

    Only the proof of a test needs `epsilon`; the sums of a series include it.
    """
    average, target = np.array(proof["average"], dtype=float), -math.log(delta)
    found = {
        "the answer is not the average of the leads": np.abs(problem.vector(plan) - average).max()
        / problem.form.unit
        > _MET,
        "the answer is no plan": not _is_plan(problem, problem.vector(plan)),
    }
    if "test" in proof:
        found |= _of_test(problem, plan, proof, target, epsilon)
        target = float(proof["log_wealth"])
    if proof["series"] is not None:
        found |= _of_series(problem, proof, target)
    return [words for words, wrong in found.items() if wrong]


def _of_series(problem: Polytope, proof: Mapping[str, Any], target: float) -> dict[str, bool]:
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


def _of_test(
    problem: Polytope, plan: Answer, proof: Mapping[str, Any], target: float, epsilon: float
) -> dict[str, bool]:
    """Return, by objection, whether it applies to a test of this plan by the means of the final batch."""
    given = dict(proof["test"])
    gaussian, inequality = bool(given.pop("gaussian")), _inequality(given)
    x, z, known = problem.vector(plan) / problem.form.unit, inequality.target, float(proof["log_wealth"])
    log_p = math.log(max(normal_below(-z), 1e-300)) if gaussian else -0.5 * z * z
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
    nodes = [
        Node(
            tuple(Cut(*_point(at), unit, np.array(prices, dtype=float)) for at, unit, prices in box["cuts"]),
            -1 if box["split"] is None else names[box["split"][0]],
            0.0 if box["split"] is None else float(box["split"][1]),
        )
        for box in boxes
    ]
    return is_covered(inequality, system_of(problem.form, inequality), nodes)


def _inequality(numbers: Mapping[str, Any]) -> Inequality:
    inequality = Inequality(**{k: _number(x) for k, x in numbers.items()})
    if not all(np.isfinite(x).all() for x in inequality):
        raise ValueError("a number is not finite")
    return inequality


def _number(value: Any) -> Any:
    return np.array(value, dtype=float) if isinstance(value, list) else value


def _point(at: Any) -> tuple[float, float]:
    return (math.nan, math.nan) if at is None else (float(at[0]), float(at[1]))


def _is_plan(problem: Polytope, plan: FloatArray) -> bool:
    rows, room = problem.rows, _MET * (1 + np.abs(plan).max(initial=0.0))
    return bool(
        (rows.a_ub @ plan <= rows.b_ub + room).all()
        and (np.abs(rows.a_eq @ plan - rows.b_eq) <= room).all()
        and (plan >= rows.lower - room).all()
        and (plan <= rows.upper + room).all()
    )
