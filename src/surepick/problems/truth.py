"""A problem together with what is behind it: the truth of simulations, or what is thought of it before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from surepick.core.arrays import FloatArray
from surepick.core.oracle_problem import AnyProblem
from surepick.core.prior_data import PriorData
from surepick.errors import FileError


@dataclass(frozen=True, eq=False)
class Truth:
    """A problem, the means that simulations draw from, and the guess of them, each where it is known."""

    problem: AnyProblem
    means: FloatArray | None = field(default=None, repr=False)  # (n_arms,)
    noise_scale: FloatArray | None = field(default=None, repr=False)  # (n_arms,) None: the problem's own
    spread: FloatArray | None = field(default=None, repr=False)  # (n_arms,) how far off the guess may be
    title: str = ""
    kind: str = ""  # of the file that it came from
    settings: Mapping[str, Any] = field(default_factory=dict)  # of sessions: delta, epsilon, ...
    prior: PriorData | None = None  # the guess as what a session begins with, where its spread was stated

    @property
    def guess(self) -> FloatArray | None:
        """The guess of the means, (n_arms,)."""
        return self.problem.guess

    def policy(self, name: str | None) -> str | Mapping[str, Any] | None:
        """Return the policy of this name, with the file's settings for it if any; by default the file's."""
        of_file: str | Mapping[str, Any] | None = self.settings.get("policy")
        is_same = isinstance(of_file, Mapping) and of_file["name"] == name
        return of_file if name is None or is_same else name

    @property
    def limited(self) -> frozenset[str]:
        """The arms of the loads that the file's limit is about; none if it has no limit."""
        of_file, names = self.settings.get("policy"), self.problem.arm_names
        loads = of_file["loads"] if isinstance(of_file, Mapping) else ()
        return frozenset(name for row in loads for name, load in zip(names, row, strict=True) if load)

    @property
    def true_means(self) -> FloatArray:
        """The means, for what cannot be done without them."""
        if self.means is None:
            raise FileError(
                "this needs the true means of the arms, or what you take them to be for a rehearsal; add to "
                "a spreadsheet a row named truth, or to a problem file:\n"
                "  [truth]\n  means = [...]   # one per arm, or a table of arm names",
                field="truth.means",
            )
        return self.means

    @property
    def known(self) -> AnyProblem:
        """The problem with the noise scale that simulations draw with, where it leaves its own unknown."""
        is_stated = self.problem.noise_scale is not None
        return self.problem if is_stated else self.problem.with_noise(self.noise_scale)
