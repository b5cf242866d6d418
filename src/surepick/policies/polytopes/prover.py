"""How far a proof over all plans of a polytope is searched for: less where linear programs are larger."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from surepick.core.arrays import IntArray
from surepick.core.proofs import Inequality, system_of
from surepick.core.standard_form import StandardForm
from surepick.policies.polytopes.box_cuts import COVERED
from surepick.policies.polytopes.covering import ROOT_ROUNDS, Cover, Effort, cover

PROGRAMS = 30_000  # of one proof, for a transport of nine and nine places
BELOW = (0.05, 0.5, 1.5)  # nats below what known rivals allow, at which a proof is tried
_WORK = 17 * 81  # entries of the tableau that `PROGRAMS` is for
_LEAST, _FEW, _FEWEST = 500, 500, 20  # programs: of a proof at least, of a quick search, and of one at least


class Prover:
    """Searches for proofs over one polytope, from one basis."""

    def __init__(self, form: StandardForm, first: IntArray, epsilon: float) -> None:
        self._form, self._first, self._epsilon = form, first, epsilon
        size = form.matrix.size
        self._most = max(_LEAST, min(PROGRAMS, PROGRAMS * _WORK // size))
        self._few = max(_FEWEST, min(_FEW, _FEW * _WORK // size))
        self._few_rounds = ROOT_ROUNDS if size <= _WORK else 1

    def prove(self, inequality: Inequality, *, keep: bool = False, quick: bool = False) -> Cover:
        """Look for a proof, and keep it if asked to; a quick search takes a moment and may miss one."""
        effort = Effort(self._first, self._square(inequality), self._most)
        if quick:
            effort = effort._replace(most=self._few, rounds=self._few_rounds)
        return cover(inequality, system_of(self._form, inequality), effort, keep=keep)

    def first_level(
        self,
        levels: Iterable[float],
        least: float,
        ask: Callable[[float], Inequality],
        *,
        quick: bool = False,
    ) -> float:
        """The first of these levels, above the least one, whose inequality is proved; else the least one."""
        for level in levels:
            if level <= least:
                break
            if self.prove(ask(level), quick=quick).status == COVERED:
                return level
        return least

    def _square(self, inequality: Inequality) -> float:
        return self._epsilon**2 / (8 * max(inequality.target, 0.1))
