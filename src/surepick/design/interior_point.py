"""The interior-point method for the few rows of squares that bind, to a certified gap.

Newton's method on the dual with Mehrotra's corrector nearly always needs fewer than twenty steps. Whole steps
may cycle, so after that many they are halved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from surepick.core.arrays import FloatArray

_LEAST_DUAL = 1e-4  # an interior start: no dual weight below this share of the largest,
_LEAST_SLACK = 0.3  # and no slack below this
_WHOLE_STEPS = 20
_TO_BOUNDARY = 0.99  # share of the way to the nearest bound that a step may go


@dataclass(frozen=True, eq=False)
class Inner:
    """Dual weights of a working set, and the bracket they certify for it."""

    dual: FloatArray  # (m,)
    roots: FloatArray  # (d,) n_s = sqrt(v A)
    loads: FloatArray  # (m,) f = A (1/n): at the optimum 1 where v_k > 0, at most 1 elsewhere
    value: float  # (sum n)^2 / sum v: below the optimum
    gap: float  # relative width of the bracket
    steps: int  # Newton steps spent


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # what is not finite is never certified
def interior_point(rows: FloatArray, dual: FloatArray, tolerance: float, budget: int) -> Inner:
    """Maximise 2 sum sqrt(v A) - sum v over v >= 0 for a working set A, to a relative gap.

    Newton on grad = z, v z = mu, with z_k = 1 - sum_s A_ks / r_s the slack of row k and r = sqrt(v A).
    """
    v = dual * (dual_value(rows, dual) / dual.sum())  # the best multiple of this dual
    at = best = _certified(rows, v, 1)
    if at.gap <= tolerance:
        return at
    z = 1 - at.loads / at.loads.max() + _LEAST_SLACK
    at = _certified(rows, np.maximum(v, _LEAST_DUAL * v.max()), 1)
    for step in range(2, budget + 1):
        v = at.dual
        dv, dz = _mehrotra_step(rows, v, z, at.roots, at.loads)
        length = min(1.0, _TO_BOUNDARY * _distance(v, dv), _TO_BOUNDARY * _distance(z, dz))
        length *= 1.0 if step <= _WHOLE_STEPS else 0.5
        at, z = _certified(rows, v + length * dv, step), z + length * dz
        if at.value > best.value:
            best = at
        if at.gap <= tolerance:
            return at
        if not np.isfinite(at.gap):  # the end of floating point
            break
    return replace(best, steps=at.steps)


def _certified(rows: FloatArray, v: FloatArray, steps: int) -> Inner:
    r = np.sqrt(v @ rows)
    f = rows @ (1 / r)
    total = r.sum()
    value = float(total * total / v.sum())
    return Inner(v, r, f, value, float(f.max() * total / value - 1), steps)


def _mehrotra_step(
    rows: FloatArray, v: FloatArray, z: FloatArray, r: FloatArray, f: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the Newton direction of the central path, with the second-order correction of a trial step."""
    solve = _newton_solver(rows * r**-1.5, v / z)
    dv = solve(f - 1)
    dz = -z - z * dv / v
    length = min(1.0, _distance(v, dv), _distance(z, dz))
    mu = v @ z / len(v)
    trial = (v + length * dv) @ (z + length * dz) / len(v)
    aim = mu * (trial / mu) ** 3 - dv * dz  # (m,) what v z should become
    dv = solve(f - 1 + aim / v)
    return dv, (aim - z * dv) / v - z


def _newton_solver(scaled: FloatArray, ratio: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Solve (diag(1/ratio) + scaled scaled^T / 2) x = b in the smaller of the two dimensions."""
    m, d = scaled.shape
    s = np.sqrt(ratio)
    g = scaled * (s * np.sqrt(0.5))[:, None]  # diag(s) M diag(s) = I + g g^T: well scaled to the end
    gram = g @ g.T if m <= d else g.T @ g
    gram.flat[:: len(gram) + 1] += 1
    from scipy.linalg.lapack import dpotrf, dpotrs  # slow to import, and few commands solve a design

    factor, _ = dpotrf(gram, lower=1, clean=0, overwrite_a=1)
    if m <= d:
        return lambda b: s * dpotrs(factor, s * b, lower=1)[0]
    return lambda b: s * (s * b - g @ dpotrs(factor, g.T @ (s * b), lower=1)[0])  # Woodbury


def _distance(position: FloatArray, direction: FloatArray) -> float:
    """Return the longest step that keeps every coordinate non-negative."""
    steepest = float((-direction / position).max())
    return 1 / steepest if steepest > 0 else np.inf


def dual_value(rows: FloatArray, dual: FloatArray) -> float:
    """Return (sum_s sqrt(sum_k v_k a_ks))^2 / sum v: below the optimum for any v >= 0."""
    return float(np.sqrt(dual @ rows).sum() ** 2 / dual.sum())
