"""The polytope whose vertices are given: what a policy for polytopes is tested on where others get a list."""

import numpy as np
from scipy.spatial import ConvexHull

import surepick as sp


def hull(plans, **settings):
    """All mixtures of these plans."""
    points = np.asarray(plans.toarray() if hasattr(plans, "toarray") else plans, dtype=float)
    centre = points.mean(axis=0)
    _, sizes, axes = np.linalg.svd(points - centre)
    n = int((sizes > 1e-9).sum())
    flat, across = axes[:n], axes[n:]
    inside = (points - centre) @ flat.T
    if n == 1:
        sides, limits = np.array([[1.0], [-1.0]]), np.array([inside.max(), -inside.min()])
    else:
        facets = np.unique(ConvexHull(inside).equations.round(12), axis=0)
        sides, limits = facets[:, :-1], -facets[:, -1]
    rows = {"A_ub": sides @ flat, "b_ub": limits + sides @ flat @ centre}
    if len(across):
        rows |= {"A_eq": across, "b_eq": across @ centre}
    return sp.Polytope(**rows, lower=-np.inf, **{"noise": 1, "goal": "largest", **settings})
