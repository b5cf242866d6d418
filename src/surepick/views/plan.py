"""The lead as what it does: every arm that it takes, how much of it, and what is known of that arm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surepick.core.plan_words import amounts, value_of
from surepick.views.look import Look


@dataclass(frozen=True)
class Piece:
    """An arm that a plan takes."""

    name: str
    amount: float
    mean: float | None  # None: not measured yet
    error: float | None  # the standard deviation of the mean


@dataclass(frozen=True)
class Plan:
    """A plan, whole: all its pieces, in the order of the arms."""

    name: str
    value: float | None  # by the estimates; None while a piece is unmeasured
    error: float | None  # its standard deviation
    unit: str
    pieces: tuple[Piece, ...]


def plan(look: Look) -> Plan | None:
    """The answer, or the lead where there is none yet; None while nothing leads.

    >>> import surepick as sp
    >>> from surepick.views import look
    >>> problem = sp.Problem([[1, 2], [0, 1]], arms=["road", "rail"], noise=1, goal="largest")
    >>> session = sp.Session.create("memory://", "trips", problem, policy=sp.CombGapE())
    >>> for value in (3.0, 1.0):
    ...     _ = session.tell(session.ask()[0], value)
    >>> seen = plan(look(session))
    >>> seen.value, [(piece.name, piece.amount, piece.mean) for piece in seen.pieces]
    (5.0, [('road', 1.0, 3.0), ('rail', 2.0, 1.0)])
    """
    if look.lead is None:
        return None
    value, error = value_of(look.problem, look.lead, look.evidence) or (None, None)
    pieces = tuple(_piece(look, name, amount) for name, amount in amounts(look.problem, look.lead).items())
    return Plan(look.called(look.lead) or "", value, error, look.problem.about.unit, pieces)


def _piece(look: Look, name: str, amount: float) -> Piece:
    arm = look.problem.arm(name)
    if not np.isfinite(look.variance[arm]):  # not measured, or not apart from others
        return Piece(name, amount, None, None)
    return Piece(name, amount, float(look.means[arm]), float(np.sqrt(look.variance[arm])))
