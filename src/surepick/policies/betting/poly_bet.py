"""PolyBet: the best of all plans of a polytope, or one within epsilon of it.

Ours; both proofs are in docs/theory.md, line by line with the names of `poly_run` and `average_run`.

Assumption: measurements are independent and sub-Gaussian with the noise scale of the problem.

Proof status: wrong with probability at most delta, at any time and under any stop, without a union over
plans, vertices, edges, bases or time (Ville's inequality).

*Exactly* (epsilon = 0): a vertex that is not best has an edge that improves. Every basis that has led has
an account, with a purse for each of its edges that bets that this edge does not improve. Cash, and for each
wrong basis the purse of one edge that does improve, together are a non-negative supermartingale that starts
at 1. The answer is a vertex all of whose edges' purses, with the cash, have reached 1/delta.

*Within epsilon*: the answer is the average of the leads of a series of blocks. Its bets against any plan b
are a function of two numbers, and where b is best and the average is not within epsilon, they are below a
supermartingale that starts at 1. The answer is given when bets and cash have reached 1/delta against every
plan of the polytope at once, which a search over boxes of plans proves.

Cost of a block: exactly, a pass over the edges of the lead, an allocation over them, and a linear program
whenever an edge of the lead looks better; within epsilon some hundred small linear programs, and a thousand
or more for the proof at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import known_noise_scale
from surepick.core.polytope import Polytope
from surepick.core.run import Run
from surepick.errors import ParameterError
from surepick.policies.betting.block_run import BettingPolicy


@dataclass(frozen=True)
class PolyBet(BettingPolicy):
    """The best of all plans of a `Polytope`, wrong with probability at most `delta`.

    With `epsilon` above 0 the answer may be up to that much worse than the best plan, in the units of the
    plans' values: ties end, and it need not be a vertex.
    `max_batch` limits how many measurements are asked for at once. Larger blocks are asked for in parts.

    >>> import surepick as sp
    >>> problem = sp.Polytope(A_ub=[[1, 2], [3, 1]], b_ub=[8, 9], noise_scale=1)
    >>> outcome = sp.simulate(problem, sp.PolyBet(delta=0.05), sp.Gaussian([3.0, 4.0]), seed=1)
    >>> outcome.plan
    (2.0, 3.0)
    """

    name: ClassVar[str] = "PolyBet"
    version: ClassVar[int] = 3
    takes_oracle: ClassVar[bool] = True
    takes_past: ClassVar[bool] = True

    def start(self, problem: AnyProblem) -> Run:
        """A fresh run on this problem."""
        if not isinstance(problem, Polytope):
            other = "BetGapE is for lists" if problem.is_listed else "OBet is for plans of whole numbers"
            raise ParameterError(
                f"PolyBet needs the rows of a Polytope, got {type(problem).__name__}; {other}, and amounts "
                "within linear limits become an sp.Polytope",
                field="policy",
            )
        known_noise_scale(problem)
        if self.epsilon:
            from surepick.policies.betting import average_run  # imports Numba, which takes half a second

            return average_run.AverageRun(problem, self)
        from surepick.policies.betting import poly_run

        return poly_run.PolyRun(problem, self)
