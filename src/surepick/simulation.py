"""The one loop of simulations, its compiled twin, and the environments that answer it."""

from __future__ import annotations

import enum
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from surepick.errors import ParameterError
from surepick.evidence import Evidence
from surepick.oracle import OracleProblem
from surepick.policy import Answer, Measure, Policy, Run, Standing, Stop, start
from surepick.problem import FloatArray, IntArray, Problem

if TYPE_CHECKING:
    from surepick.kernels import Feed

POLICY_STREAM, ENVIRONMENT_STREAM = 0, 1
CHUNK = 4096  # rounds the compiled driver runs before it looks up
PROGRESS_SECONDS = 0.1


class Status(enum.StrEnum):
    """Why a run ended."""

    CONFIDENT = "confident"
    BUDGET_SPENT = "budget spent"
    CLOSED = "closed"  # a session that somebody ended by hand


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a run ended.

    `plan` is the answer, and None unless `status` is CONFIDENT; `lead` is the plan that looked best at
    the end, whatever the status. Plans are indices into the problem's list; on an `OracleProblem` they
    are vectors. `guarantee` says what the answer promises and under which assumption.
    """

    plan: Answer | None
    plan_name: str | None
    status: Status
    lead: Answer | None
    lead_name: str | None
    n_measurements: int
    n_rounds: int
    cost: float
    counts: IntArray = field(repr=False)
    means: FloatArray = field(repr=False)
    standing: Standing
    policy: Policy
    guarantee: str
    seed: int
    seconds: float

    @property
    def risk(self) -> float | None:
        """A proved bound on the probability that declaring the lead is wrong, where the policy has one."""
        return self.standing.risk


@dataclass(frozen=True)
class Progress:
    """Where a running simulation stands."""

    n_measurements: int
    n_rounds: int
    budget: int
    standing: Standing
    seconds: float


@runtime_checkable
class Environment(Protocol):
    """What can be measured, with true means that no policy sees."""

    @property
    def means(self) -> FloatArray:
        """The true mean of each arm."""
        ...

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """The sum of `counts[s]` fresh measurements of each arm s."""
        ...


@runtime_checkable
class CompiledRun(Run, Protocol):
    """A run that can take many single measurements in compiled code."""

    @property
    def evidence(self) -> Evidence:
        """All that the run has absorbed."""
        ...

    def drive(self, feed: Feed, draws: FloatArray) -> int:
        """Measure and decide, one draw a round, until the draws are used or the run stops."""
        ...


@runtime_checkable
class SeededRun(Run, Protocol):
    """A run that draws its decisions and can do so in compiled code, from the same random words."""

    @property
    def evidence(self) -> Evidence:
        """All that the run has absorbed."""
        ...

    def drive_seeded(self, feed: Feed, draws: FloatArray, *, entropy: IntArray, n_round: int) -> int:
        """Measure and decide, one draw a round, after the decision of round `n_round`."""
        ...


class CompiledEnvironment(Environment, Protocol):
    """An environment whose single measurements are a function of one raw draw, for the compiled driver."""

    def feed(self) -> Feed:
        """How a raw draw becomes a measurement."""
        ...

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Raw draws, the same numbers in one call as in many."""
        ...


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Normal measurements: the true mean of the arm plus noise of this scale.

    >>> import numpy as np
    >>> counts, rng = np.array([0, 100]), np.random.default_rng(0)
    >>> Gaussian([1.0, 2.0], scale=0.5).measure(counts, rng).round(2).tolist()
    [0.0, 200.63]
    """

    means: FloatArray
    scale: FloatArray

    def __init__(self, means: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> None:
        object.__setattr__(self, "means", _finite_means(means))
        object.__setattr__(self, "scale", _like_means("scale", scale, self.means))
        if not (self.scale >= 0).all():
            raise ParameterError(f"the scale of Gaussian noise must not be negative, got {self.scale.min()}")

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Sums of normal measurements, one draw per arm however many they stand for."""
        sums = np.zeros(len(counts))
        arms = np.flatnonzero(counts)
        n = counts[arms]
        sums[arms] = n * self.means[arms] + np.sqrt(n) * self.scale[arms] * self.draw(len(arms), rng)
        return sums

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Standard normal draws."""
        return rng.standard_normal(n)

    def feed(self) -> Feed:
        """mean + scale * draw."""
        return _feed(0, self.means, self.scale)


@dataclass(frozen=True, eq=False)
class Bernoulli:
    """Measurements that are 1 with probability `means[s]` and 0 otherwise: sub-Gaussian with scale 1/2."""

    means: FloatArray

    def __init__(self, means: npt.ArrayLike) -> None:
        object.__setattr__(self, "means", _finite_means(means))
        if not ((self.means >= 0) & (self.means <= 1)).all():
            raise ParameterError(f"Bernoulli means are probabilities, got {self.means.tolist()}")

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Sums of coin tosses; exact, and one draw per arm."""
        sums = np.zeros(len(counts))
        once, often = np.flatnonzero(counts == 1), np.flatnonzero(counts > 1)
        sums[once] = self.draw(len(once), rng) < self.means[once]
        sums[often] = rng.binomial(counts[often], self.means[often])
        return sums

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Uniform draws on [0, 1)."""
        return rng.random(n)

    def feed(self) -> Feed:
        """1 if the draw is below the mean."""
        return _feed(1, self.means, np.ones(len(self.means)))


@dataclass(frozen=True, eq=False)
class UniformNoise:
    """Measurements spread evenly over mean +- half_width: sub-Gaussian with scale half_width.

    Sums are exact: a request for n measurements draws n numbers.
    """

    means: FloatArray
    half_width: FloatArray

    def __init__(self, means: npt.ArrayLike, half_width: npt.ArrayLike = 1.0) -> None:
        object.__setattr__(self, "means", _finite_means(means))
        object.__setattr__(self, "half_width", _like_means("half_width", half_width, self.means))
        if not (self.half_width >= 0).all():
            raise ParameterError(f"half_width must not be negative, got {self.half_width.min()}")

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Sums of uniform measurements."""
        return _sum_singles(self, counts, rng)

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Uniform draws on [0, 1)."""
        return rng.random(n)

    def feed(self) -> Feed:
        """low + width * draw."""
        return _feed(0, self.means - self.half_width, 2.0 * self.half_width)


@dataclass(frozen=True, eq=False)
class Replay:
    """Past measurements of each arm, drawn again with replacement; the true means are the tables' means.

    `table` has one sequence of past measurements per arm: a list of lists in the order of the arms, a 2-d
    array with one column per arm, or a mapping from arm name to measurements (then give the problem's
    `arm_names`, so that the order is known).

    >>> Replay([[1.0, 3.0], [5.0]]).means.tolist()
    [2.0, 5.0]
    """

    means: FloatArray
    table: FloatArray
    start: IntArray  # (n_arms + 1,) where each arm's measurements begin in the table

    def __init__(
        self,
        table: Sequence[npt.ArrayLike] | npt.NDArray[np.float64] | Mapping[str, npt.ArrayLike],
        *,
        arm_names: Sequence[str] | None = None,
    ) -> None:
        columns = _columns(table, arm_names)
        object.__setattr__(self, "means", np.array([column.mean() for column in columns]))
        object.__setattr__(self, "table", np.concatenate(columns))
        sizes = [len(column) for column in columns]
        object.__setattr__(self, "start", np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Sums of past measurements drawn at random."""
        return _sum_singles(self, counts, rng)

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Uniform draws on [0, 1)."""
        return rng.random(n)

    def feed(self) -> Feed:
        """The entry of the arm's table that the draw points at."""
        nothing = np.zeros(len(self.means))
        return _feed(2, nothing, nothing, self.table, self.start)


def simulate(
    problem: Problem | OracleProblem,
    policy: Policy,
    environment: Environment,
    *,
    seed: int = 0,
    budget: int = 10**7,
    progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Run the policy against the environment until it stops or the next request would exceed the budget.

    The same seed gives the same outcome. `progress` is called about ten times a second.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 1, 0], [0, 1, 1]], arm_names=["road", "depot", "rail"])
    >>> outcome = sp.simulate(problem, sp.CombGapE(), sp.Gaussian([2.0, 0.0, 1.0]), seed=0)
    >>> outcome.status, outcome.plan_name, outcome.counts.tolist()[1]
    (<Status.CONFIDENT: 'confident'>, 'plan 0', 0)
    """
    if len(environment.means) != problem.n_arms:
        raise ParameterError(
            f"the environment has {len(environment.means)} arms and the problem {problem.n_arms}"
        )
    if budget < 1:
        raise ParameterError(f"budget is a number of measurements, 1 or more, got {budget!r}")
    with _compile_notice():
        run = start(policy, problem)
    loop = _Loop(problem, policy, environment, seed, budget, progress)
    return loop.outcome(run, loop.run_to_end(run))


@dataclass
class _Loop:
    """One simulation: what was measured so far; changed by `run_to_end` alone."""

    problem: Problem | OracleProblem
    policy: Policy
    environment: Environment
    seed: int
    budget: int
    progress: Callable[[Progress], None] | None

    def __post_init__(self) -> None:
        sequence = np.random.SeedSequence(self.seed, spawn_key=(ENVIRONMENT_STREAM,))
        self.rng = np.random.default_rng(sequence)
        self.idle_rng = round_rng(self.seed, 0)  # for policies that draw nothing
        self.evidence = Evidence.none(self.problem.n_arms)
        self.n_rounds = 0
        self.began = self.shown = time.perf_counter()

    def run_to_end(self, run: Run) -> Stop | None:
        """Decide, measure, absorb; the policy's stop, or None when the budget is spent."""
        randomized = self.policy.randomized
        driven = run if isinstance(run, CompiledRun | SeededRun) else None
        fast = self.environment if _is_compiled(self.environment) else None
        while True:
            decision = run.decide(round_rng(self.seed, self.n_rounds) if randomized else self.idle_rng)
            if isinstance(decision, Stop):
                return decision
            left = self.budget - self.evidence.n_measurements
            if int(decision.counts.sum()) > left:
                return None
            if driven is not None and fast is not None and self.n_rounds > 0:
                self._drive(driven, fast, min(CHUNK, left))
            else:
                self._step(run, decision)
            self._show(run)

    def _step(self, run: Run, decision: Measure) -> None:
        sums = self.environment.measure(decision.counts, self.rng)
        run.absorb(decision.counts, sums)
        self.evidence = self.evidence + Evidence(decision.counts, sums)
        self.n_rounds += 1

    def _drive(self, run: CompiledRun | SeededRun, environment: CompiledEnvironment, n: int) -> None:
        feed, draws = environment.feed(), environment.draw(n, self.rng)
        if isinstance(run, SeededRun):
            entropy = round_entropy(self.seed)
            used = run.drive_seeded(feed, draws, entropy=entropy, n_round=self.n_rounds)
        else:
            used = run.drive(feed, draws)
        self.n_rounds += used
        self.evidence = run.evidence

    def _show(self, run: Run) -> None:
        now = time.perf_counter()
        if self.progress is None or now - self.shown < PROGRESS_SECONDS:
            return
        self.shown = now
        n = self.evidence.n_measurements
        self.progress(Progress(n, self.n_rounds, self.budget, run.standing(), now - self.began))

    def outcome(self, run: Run, stop: Stop | None) -> Outcome:
        """What to tell the caller."""
        standing = run.standing()
        lead = stop.plan if stop else standing.lead
        return Outcome(
            plan=stop.plan if stop else None,
            plan_name=self.problem.name_of(stop.plan) if stop else None,
            status=Status.CONFIDENT if stop else Status.BUDGET_SPENT,
            lead=lead,
            lead_name=self.problem.name_of(lead),
            n_measurements=self.evidence.n_measurements,
            n_rounds=self.n_rounds,
            cost=float(self.evidence.counts @ self.problem.costs),
            counts=self.evidence.counts,
            means=self.evidence.means,
            standing=standing,
            policy=self.policy,
            guarantee=self.policy.guarantee,
            seed=self.seed,
            seconds=time.perf_counter() - self.began,
        )


def round_rng(seed: int, n_round: int) -> np.random.Generator:
    """The generator of this round's decision: derived from (seed, round), so nothing has to be kept.

    >>> round_rng(7, 3).random() == round_rng(7, 3).random()
    True
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(POLICY_STREAM, n_round)))


def round_entropy(seed: int) -> IntArray:
    """What compiled code needs to draw as `round_rng` does: see `round_words.first_words`."""
    from surepick.round_words import entropy_of

    return entropy_of(seed, POLICY_STREAM)


def _is_compiled(environment: Environment) -> TypeGuard[CompiledEnvironment]:
    return hasattr(environment, "feed") and hasattr(environment, "draw")


@contextmanager
def _compile_notice() -> Iterator[None]:
    """Say on standard error that loops are being compiled, if starting a run takes more than a second."""
    notice = "surepick: compiling its loops for this machine (once; kept for next time) ..."
    timer = threading.Timer(1.0, print, [notice], {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _feed(
    kind: int,
    shift: FloatArray,
    stretch: FloatArray,
    table: FloatArray | None = None,
    start: IntArray | None = None,
) -> Feed:
    from surepick.kernels import Feed

    no_table, no_start = np.zeros(0), np.zeros(1, dtype=np.int64)
    return Feed(
        kind, shift, stretch, no_table if table is None else table, no_start if start is None else start
    )


def _sum_singles(environment: CompiledEnvironment, counts: IntArray, rng: np.random.Generator) -> FloatArray:
    """Draw every single measurement of the request and add them up, arm by arm."""
    from surepick.kernels import sum_measured

    feed, sums = environment.feed(), np.zeros(len(counts))
    for arm in map(int, np.flatnonzero(counts)):
        left = int(counts[arm])
        while left:
            draws = environment.draw(min(left, 2**16), rng)
            sums[arm] += sum_measured(feed, arm, draws)
            left -= len(draws)
    return sums


def _finite_means(means: npt.ArrayLike) -> FloatArray:
    array = np.array(means, dtype=float)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ParameterError(f"means must be a list of finite numbers, one per arm, got {means!r}")
    return array


def _like_means(what: str, given: npt.ArrayLike, means: FloatArray) -> FloatArray:
    array = np.array(given, dtype=float)
    if array.shape not in ((), means.shape):
        raise ParameterError(f"{what} must be one number or one for each of the {len(means)} arms")
    return np.broadcast_to(array, means.shape).copy()


def _columns(
    table: Sequence[npt.ArrayLike] | npt.NDArray[np.float64] | Mapping[str, npt.ArrayLike],
    arm_names: Sequence[str] | None,
) -> list[FloatArray]:
    """The past measurements of each arm, in the order of the arms."""
    if isinstance(table, Mapping):
        if arm_names is None:
            raise ParameterError("a table by arm name needs arm_names, to know the order of the arms")
        missing = [name for name in arm_names if name not in table]
        if missing:
            raise ParameterError(f"the table has no measurements of arm {missing[0]!r}; it needs every arm")
        series: Sequence[npt.ArrayLike] = [table[name] for name in arm_names]
    else:
        series = list(table.T) if isinstance(table, np.ndarray) else table
    columns = [np.asarray(one, dtype=float).ravel() for one in series]
    for s, column in enumerate(columns):
        if not len(column) or not np.isfinite(column).all():
            raise ParameterError(f"arm {s} needs at least one past measurement, all finite; got {column}")
    return columns
