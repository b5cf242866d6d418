"""Evidence, and what it says: counts and sums, estimates of means and gaps with errors, drawn worlds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, Plans, as_dense, without_columns
from surepick.core.base_problem import BaseProblem
from surepick.core.oracle_problem import AnyProblem
from surepick.core.problem import Problem
from surepick.core.run import Answer


@dataclass(frozen=True, eq=False)
class Evidence:
    """Counts and sums per arm, or counts per probe and sums per reading; it adds like a number.

    >>> from surepick.core.evidence import Evidence
    >>> import numpy as np
    >>> first = Evidence(np.array([2, 1]), np.array([3.0, 5.0]))
    >>> second = Evidence(np.array([1, 0]), np.array([6.0, 0.0]))
    >>> (first + second).means.tolist()
    [3.0, 5.0]
    """

    counts: IntArray  # (n_arms,); (n_probes,) with probes
    sums: FloatArray  # (n_arms,); (n_readings,) with probes
    owner: IntArray | None = None  # (n_readings,) whose reading each sum is, with probes
    plays: int | None = None  # where plans are played that no list has: how many, counts being of readings

    @classmethod
    def none_of(cls, problem: BaseProblem) -> Evidence:
        """Return the evidence of no measurements, of all that this problem measures."""
        nothing = np.zeros(len(problem.counted_names), dtype=np.int64)
        if problem.probes is None:
            return cls(nothing, np.zeros(len(nothing)), plays=0 if problem.plays else None)
        return cls(nothing, np.zeros(problem.probes.n_readings), problem.probes.owner)

    def with_sums(self, counts: IntArray, sums: FloatArray, plays: int = 0) -> Evidence:
        """Return other counts and sums of the same arms or probes, from this many plays if there are some."""
        return Evidence(counts, sums, self.owner, None if self.plays is None else plays)

    def lengthened(self, n_arms: int) -> Evidence:
        """Return this evidence for n_arms arms; the added ones have no measurements."""
        n = n_arms - len(self.counts)
        counts, sums = np.append(self.counts, np.zeros(n, dtype=np.int64)), np.append(self.sums, np.zeros(n))
        return Evidence(counts, sums)

    @property
    def each(self) -> IntArray:
        """How many values each sum has."""
        return self.counts if self.owner is None else np.asarray(self.counts[self.owner])

    @property
    def n_measurements(self) -> int:
        """Measurements in all; a play is one."""
        return int(self.counts.sum()) if self.plays is None else self.plays

    def cost(self, costs: FloatArray) -> float:
        """Return the cost of the measurements; `costs` is per arm or per probe, all plays cost the same."""
        return float(self.counts @ costs) if self.plays is None else self.plays * float(costs[0])

    @property
    def means(self) -> FloatArray:
        """The mean of each arm's measurements, or of each reading; nan where there is none."""
        nowhere, each = np.full(len(self.sums), np.nan), self.each
        return np.asarray(np.divide(self.sums, each, out=nowhere, where=each > 0))

    def __add__(self, other: Evidence) -> Evidence:
        plays = None if self.plays is None else self.plays + (other.plays or 0)
        return Evidence(self.counts + other.counts, self.sums + other.sums, self.owner, plays)


SAME = 1e-12  # of a plan's square, or of the largest value: smaller differences are rounding
_RANK = 1e-10  # of the largest eigenvalue: information below it is none
_SHOWN = 1e-6  # of a difference's length that may lie outside of what was read


@dataclass(frozen=True, eq=False)
class ArmEstimates:
    """Estimates of arms that are measured by themselves: their means, and the variances of these."""

    means: FloatArray  # (n_arms,) 0 where nothing is known
    variances: FloatArray  # (n_arms,) infinite there, 0 where a mean is known

    def gaps(self, contrasts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the value of each row of amounts and its standard deviation; infinite if not measured."""
        unknown = ~np.isfinite(self.variances)
        error = np.sqrt(contrasts**2 @ np.where(unknown, 0.0, self.variances))
        is_unread = (contrasts[:, unknown] != 0).any(axis=1)
        return np.asarray(contrasts @ self.means), np.where(is_unread, np.inf, error)

    def behind(
        self, problem: Problem, plan: int, squares: Plans | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return how far every plan is behind this one, and the standard deviation of that.

        These are the `gaps` of all differences, which are not written out where plans are many. `squares` are
        those of the oriented plans, for callers that ask often.

        >>> problem = Problem([[1, 0, 0], [0, 1, 0], [0, 0, 1]], goal="largest")
        >>> known = ArmEstimates(np.array([3.0, 2.0, 0.0]), np.array([0.25, 0.25, np.inf]))
        >>> gap, error = known.behind(problem, 0)
        >>> gap.tolist(), error.round(2).tolist()
        ([0.0, 1.0, 3.0], [0.0, 0.71, inf])
        """
        plans, row = problem.oriented, problem.vector(plan) * problem.sign
        squares = plans**2 if squares is None else squares
        gap = float(row @ self.means) - np.asarray(plans @ self.means)

        def squared_distance(weights: FloatArray) -> FloatArray:  # (row - plan)^2 @ weights, multiplied out
            return np.asarray(float(row**2 @ weights) - 2.0 * (plans @ (row * weights)) + squares @ weights)

        unknown = ~np.isfinite(self.variances)
        error = np.sqrt(np.maximum(squared_distance(np.where(unknown, 0.0, self.variances)), 0.0))
        if unknown.any():
            apart = squared_distance(unknown.astype(float)) > SAME * (1.0 + float(row @ row))
            error = np.where(apart, np.inf, error)
        return gap, error

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return worlds that a flat prior leaves open, (n, n_arms), with 0 for unmeasured arms."""
        error = np.sqrt(np.where(np.isfinite(self.variances), self.variances, 0.0))
        return np.asarray(self.means + error * rng.standard_normal((n, len(error))))


@dataclass(frozen=True, eq=False)
class ProbeEstimates:
    """Least squares over the readings of probes: means of arms and their covariance, within what was read."""

    means: FloatArray  # (n_arms,) the shortest that fit the readings
    root: FloatArray  # (n_arms, rank): the covariance is root root'
    basis: FloatArray  # (n_arms, rank) orthonormal: what was read

    def gaps(self, contrasts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the value of each row of amounts and its standard deviation; infinite if not read."""
        error = np.linalg.norm(contrasts @ self.root, axis=1)
        rest = np.linalg.norm(contrasts - (contrasts @ self.basis) @ self.basis.T, axis=1)
        unread = rest > _SHOWN * np.linalg.norm(contrasts, axis=1)
        return np.asarray(contrasts @ self.means), np.where(unread, np.inf, error)

    @property
    def variances(self) -> FloatArray:
        """(n_arms,): of each arm's mean by itself; infinite where it was not read apart from others."""
        return np.asarray(self.gaps(np.eye(len(self.means)))[1] ** 2)

    def behind(self, problem: Problem, plan: int) -> tuple[FloatArray, FloatArray]:
        """Return how far every plan is behind this one, and the standard deviation of that."""
        return self.gaps(problem.sign * problem.vector(plan) - as_dense(problem.oriented))

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return worlds that a flat prior leaves open, (n, n_arms)."""
        return np.asarray(self.means + rng.standard_normal((n, self.root.shape[1])) @ self.root.T)


def estimates(problem: BaseProblem, evidence: Evidence) -> ArmEstimates | ProbeEstimates:
    """Return what the evidence says of the arms' means; known means are exact, unknown noise counts as 1.

    >>> problem = Problem(
    ...     [[1, 0], [0, 1]], measure={"both": {"arm 0": 1, "arm 1": 1}, "one": ["arm 0"]}, goal="largest"
    ... )
    >>> seen = Evidence.none_of(problem).with_sums(np.array([2, 4]), np.array([6.0, 4.0]))
    >>> estimates(problem, seen).means.round(6).tolist()
    [1.0, 2.0]
    """
    probes, is_known = problem.probes, problem.is_known
    if probes is None:
        noise = 1.0 if problem.noise_scale is None else problem.noise_scale**2
        variances = np.where(is_known, 0.0, np.inf)
        measured = (evidence.counts > 0) & ~is_known
        np.divide(noise, evidence.counts, out=variances, where=measured)
        means = np.where(is_known, problem.known_means, np.nan_to_num(evidence.means))
        return ArmEstimates(means, variances)
    # Generalised least squares: whitened rows X have independent noise of scale 1, so with N uses of each the
    # information is X'NX, and X'NX mu = X' (whitened sums). Where it is singular, its eigenvectors with
    # eigenvalues above 0 span what was read.
    rows, n, sums = probes.whitened, evidence.each, evidence.sums
    if is_known.any():
        sums = sums - n * (probes.rows @ problem.known_means)
        rows = without_columns(rows, is_known)
    information = np.asarray((rows.T @ (rows * n[:, None])).todense())
    sizes, vectors = np.linalg.eigh(information)
    read = sizes > _RANK * max(float(sizes[-1]), 1e-300)
    basis, sizes = vectors[:, read], sizes[read]
    right_side = np.asarray(rows.T @ probes.whiten(sums))
    known = np.eye(len(is_known))[:, is_known]  # they are as good as read, and without error
    return ProbeEstimates(
        basis @ ((basis.T @ right_side) / sizes) + problem.known_means,
        np.hstack([basis / np.sqrt(sizes), 0.0 * known]),
        np.hstack([basis, known]),
    )


def between(problem: AnyProblem, lead: Answer, rival: Answer, evidence: Evidence) -> tuple[float, float]:
    """Return how far the rival is behind the leader, and the standard deviation of that.

    It is infinite where they differ in an arm that was not measured; the estimate of such an arm is 0.

    >>> problem = Problem([[1, 0, 0], [0, 1, 0], [0, 0, 1]], goal="largest")
    >>> evidence = Evidence(np.array([4, 4, 0]), np.array([12.0, 8.0, 0.0]))
    >>> between(problem, 0, 1, evidence), between(problem, 0, 2, evidence)
    ((1.0, 0.7071067811865476), (3.0, inf))
    """
    contrast = problem.sign * (problem.vector(lead) - problem.vector(rival))
    (gap,), (error,) = estimates(problem, evidence).gaps(contrast[None])
    return float(gap), float(error)


N_WORLDS = 300
FEWEST_WORLDS = 40
MOST_WORK = 2e7  # worlds times entries of plans: fewer worlds where plans are many


@dataclass(frozen=True)
class Estimate:
    """How good a plan probably is: the chance that it is the best, and how much it loses on average."""

    chance: float
    expected_loss: float


def estimate(problem: AnyProblem, evidence: Evidence, plan: Answer | None) -> Estimate | None:
    """Return the chance that this plan is the best, and what it loses on average if it is taken.

    None where plans are not listed, where an arm that matters has no measurement, and without a plan. The
    same evidence gives the same estimate.

    >>> seen = Evidence(np.array([4, 4]), np.array([6.0, 4.0]))
    >>> found = estimate(Problem([[1, 0], [0, 1]], goal="largest"), seen, 0)
    >>> abs(found.chance - 0.76) < 0.06, abs(found.expected_loss - 0.1) < 0.03
    (True, True)
    """
    if not problem.is_listed or not isinstance(plan, int):
        return None
    plans, found = problem.oriented, estimates(problem, evidence)
    if problem.probes is None:
        is_known = bool(evidence.counts[problem.relevant].all())
    else:
        is_known = bool(np.isfinite(found.behind(problem, plan)[1]).all())
    if not is_known:
        return None
    n_entries = plans.size if isinstance(plans, np.ndarray) else plans.nnz
    n_worlds = int(np.clip(MOST_WORK / max(n_entries, 1), FEWEST_WORLDS, N_WORLDS))
    worlds = found.draw(n_worlds, np.random.default_rng(evidence.n_measurements))
    values = np.asarray(plans @ worlds.T)  # (n_plans, n_worlds)
    best = values.max(axis=0)
    loss = best - values[plan]
    right = loss <= SAME * np.abs(values).max()
    return Estimate(float(right.mean()), float(np.where(right, 0.0, loss).mean()))


EIGHT_OF_TEN = (0.1, 0.5, 0.9)  # shares of the worlds: the low end, the middle, the high end
_FLOATS = 1e-9  # 0.7 * 10 is 7.000000000000001 in floats


def quantile(values: FloatArray, share: float) -> float:
    """Return the smallest of these values, one per world, that this share of the worlds does not exceed.

    Infinities, where a world has no end, count as largest.
    """
    rank = math.ceil(share * len(values) - _FLOATS)
    return float(np.sort(values)[max(rank, 1) - 1])
