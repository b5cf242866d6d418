"""An independent solution of the allocation problem, by a conic interior-point solver."""

import clarabel
import numpy as np
from scipy import sparse


def clarabel_allocation(squares, tolerance=1e-8):
    """(optimum, weights) of min_w max_k sum_s squares[k, s] / w_s over the simplex.

    Stated as min sum n subject to squares u <= 1 and n_s u_s >= 1, the latter as second-order cones
    |(n_s - u_s, 2)| <= n_s + u_s. The optimum is read off the weights, since the solver's own objective
    may be too good by as much as its constraints are violated (5e-4 was seen at 10^4 x 200). Arms are
    scaled so that all n_s and u_s are near 1.
    """
    roots = np.sqrt(np.asarray(sparse.csc_array(squares).mean(axis=0))).ravel()
    guess = roots * roots.sum()  # n_s if every row bound equally
    rows = sparse.csc_array(sparse.csc_array(squares) @ sparse.diags_array(1 / guess))
    n_rows, d = rows.shape
    eye = sparse.eye_array(d)
    cones = sparse.vstack(
        [sparse.hstack([-eye, -eye]), sparse.hstack([-eye, eye]), sparse.csc_array((d, 2 * d))]
    ).tocsr()
    order = np.arange(3 * d).reshape(3, d).T.ravel()  # the three rows of each cone side by side
    constraints = sparse.vstack([sparse.hstack([sparse.csc_array((n_rows, d)), rows]), cones[order]])
    right = np.concatenate([np.ones(n_rows), np.tile([0.0, 0.0, 2.0], d)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = tolerance
    kinds = [clarabel.NonnegativeConeT(n_rows), *[clarabel.SecondOrderConeT(3)] * d]
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((2 * d, 2 * d)),
        np.concatenate([guess / guess.sum(), np.zeros(d)]),
        sparse.csc_matrix(constraints),
        right,
        kinds,
        settings,
    )
    solution = solver.solve()
    assert str(solution.status) == "Solved", solution.status
    counts = np.asarray(solution.x)[:d] * guess
    weights = counts / counts.sum()
    return float((squares @ (1 / weights)).max()), weights
