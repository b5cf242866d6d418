"""Which differences the readings can show: their span, and plans that no probe can tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.probes import Entries, Probes
from surepick.errors import ProblemError

RANK = 1e-9  # a direction counts as read if its singular value is above this share of the largest
APART = 1e-8  # of the largest plan: what of a difference may lie outside the span, as rounding
_CHUNK = 4096  # rows looked at together
_NAMED = 3  # arms that an error names


def span(rows: Any) -> FloatArray:
    """An orthonormal basis (rank, n_arms) of the span of these rows, each brought to length 1 first.

    >>> from scipy.sparse import csr_array
    >>> span(csr_array([[2.0, 0.0, 0.0], [1.0, 0.0, 0.0]])).round(6).tolist()
    [[1.0, 0.0, 0.0]]
    """
    if (np.diff(rows.indptr) <= 1).all():
        read = np.unique(rows.indices)
        return np.asarray(np.eye(rows.shape[1])[read])
    triangle = np.zeros((0, rows.shape[1]))
    for block in _dense_blocks(rows):
        size = np.linalg.norm(block, axis=1)
        block = block[size > 0] / size[size > 0, None]
        triangle = np.asarray(np.linalg.qr(np.vstack([triangle, block]), mode="r"))
    _, sizes, basis = np.linalg.svd(triangle, full_matrices=False)
    return np.asarray(basis[sizes > RANK * sizes[0] * np.sqrt(rows.shape[0])])


def refuse_inseparable(
    probes: Probes, plans: Any, plan_names: Sequence[str], arm_names: Sequence[str]
) -> None:
    """Refuse plans that no probe can tell apart, naming two of them and the arms that are to blame."""
    basis = span(probes.entries)
    if len(basis) == len(arm_names):
        return
    largest = float(abs(plans).max())
    origin = next(_dense_blocks(plans[[0]]))[0]
    first = 0
    for block in _dense_blocks(plans):
        rest = _outside(block - origin, basis)
        size = np.linalg.norm(rest, axis=1)
        if (size > APART * largest).any():
            k = int(np.argmax(size > APART * largest))
            raise ProblemError(
                _why(plan_names[0], plan_names[first + k], -rest[k], arm_names), field="measure"
            )
        first += len(block)


def _outside(vectors: FloatArray, basis: FloatArray) -> FloatArray:
    """What of these vectors lies outside the span; twice, since the first time leaves rounding."""
    for _ in range(2):
        vectors = vectors - (vectors @ basis.T) @ basis
    return vectors


def _why(first: str, second: str, rest: FloatArray, arm_names: Sequence[str]) -> str:
    order = np.argsort(-np.abs(rest), kind="stable")
    most = [int(s) for s in order[:_NAMED] if abs(rest[s]) > 0.5 * abs(rest[order[0]])]
    signed = [("-" if rest[s] < 0 else "+", arm_names[s]) for s in sorted(most, key=lambda s: -rest[s])]
    words = " ".join(f"{sign} {name!r}" for sign, name in signed)
    words = words[2:] if len(signed) == 1 else words.removeprefix("+ ")
    one_of = " or ".join(repr(name) for _, name in signed)
    return (
        f"no probe tells plan {first!r} from plan {second!r}: they differ by {words} in a way that no "
        f"combination of readings shows; add a probe that reads {one_of} by itself"
    )


def _dense_blocks(rows: Any) -> Iterator[FloatArray]:
    for low in range(0, rows.shape[0], _CHUNK):
        if isinstance(rows, Entries):
            yield rows.dense(low, low + _CHUNK)
            continue
        block = rows[low : low + _CHUNK]
        yield block if isinstance(block, np.ndarray) else np.asarray(block.toarray())
