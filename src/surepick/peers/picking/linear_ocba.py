"""LinearOCBA: OCBA's goal for plans that share arms: raise the bound on the chance of a correct selection.

After Chen, Lin, Yucesan & Chick (2000), whose allocation is in closed form for single arms alone (`ocba`).
Reconstructed: where plans share arms the same bound, 1 - sum_j Phi(-z_j) over the rivals j of the lead with
z_j = gap_j / sqrt(v_j), v_j = sum_s y_s^2 R_s^2 / T_s, is climbed one measurement at a time. With one more
measurement of arm s it rises in proportion to

    a_s / (T_s (T_s + 1) cost_s),     a_s = R_s^2 sum_j w_j y_js^2,     w_j = phi(z_j) z_j / v_j.

That is Pick with other weights (`pick`): OCBA counts mistakes, Pick what they cost.

Assumption: none is needed. Proof status: none. Deviations: all of it is one, from a paper for single arms.
Cost of a block: that of Pick.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.problem import Problem
from surepick.policies.picking.pick import PickRun
from surepick.policies.picking.pooled import PickingPolicy

SMALLEST_Z = 1e-3  # a plan that ties with the lead still counts


@dataclass(frozen=True)
class LinearOCBA(PickingPolicy):
    """OCBA for any plans: a budget, the plan that looks best at its end. It never stops by itself.

    >>> import surepick as sp
    >>> problem = sp.Problem([[3, 0, 1], [0, 2, 2], [1, 1, 3]], noise_scale=1)
    >>> sp.simulate(problem, sp.policies.LinearOCBA(), sp.Gaussian([1.0, 0.5, 0.1]), budget=300).lead
    0
    """

    name: ClassVar[str] = "LinearOCBA"

    def start(self, problem: Problem) -> LinearOCBARun:
        """A fresh run on this problem."""
        return LinearOCBARun(problem, epsilon=0.0, max_batch=None)


class LinearOCBARun(PickRun):
    """A run of Pick with OCBA's weights."""

    def _log_weight(self, z: FloatArray, error: FloatArray) -> FloatArray:
        """log of phi(z) z / v up to a constant."""
        return np.asarray(-0.5 * z**2 + np.log(np.maximum(z, SMALLEST_Z)) - 2.0 * np.log(error))
