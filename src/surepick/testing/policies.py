"""The one suite of laws that every policy must pass."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
import pytest

import surepick as sp
from surepick.core.arrays import FloatArray, IntArray
from surepick.core.policy import Policy, can_start, is_proved, recalling, start
from surepick.core.run import KeptRun, Measure, ProvingRun, RecallingRun, Run, Stop, WeighingRun
from surepick.policies import parse_policy, policy_named
from surepick.sessions.codec import arrays_to_json
from surepick.sessions.run import restored
from surepick.simulation.environments import Environment
from surepick.simulation.seeds import round_rng
from surepick.simulation.simulate import CompiledRun

SEEDS = (0, 1)
KEPT_AFTER = (0, 2, 40)
N_PLANS, N_ARMS = 6, 4
MOST_ROUNDS = 20_000
BUDGET = 2_000  # of runs that nothing else ends

Decision = tuple[Any, ...]


@dataclass(eq=False)
class Tape:
    """Arm s gives its own fixed sequence of measurements, whatever is asked in between.

    Arm s reads tape `keys[s]`, so that a relabelled arm keeps its tape. Each reading moves it on.

    >>> tape = Tape([1.0, 5.0], keys=[0, 1], scale=0.0)
    >>> tape.measure(np.array([0, 3]), None).tolist()
    [0.0, 15.0]
    """

    means: npt.ArrayLike
    keys: Sequence[int]
    scale: npt.ArrayLike = 1.0
    place: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.means = np.asarray(self.means, dtype=float)
        self.scale = np.broadcast_to(np.asarray(self.scale, dtype=float), self.means.shape)

    def measure(self, counts: IntArray, rng: object) -> FloatArray:
        """The sum of the next `counts[s]` places of each tape."""
        means, scale, sums = cast(FloatArray, self.means), cast(FloatArray, self.scale), np.zeros(len(counts))
        for s in np.flatnonzero(counts).tolist():
            start = self.place.get(s, 0)
            self.place[s] = start + int(counts[s])
            noise = np.random.default_rng(self.keys[s]).standard_normal(self.place[s])[start:]
            sums[s] = counts[s] * means[s] + scale[s] * noise.sum()
        return sums


class StepByStep:
    """An environment without its compiled form, so that the loop must go step by step."""

    def __init__(self, environment: Environment) -> None:
        self.means = environment.means
        self.measure = environment.measure


def decisions(
    policy: Policy,
    problem: sp.Problem,
    environment: Tape | Environment,
    n_rounds: int,
    seed: int = 0,
) -> list[Decision]:
    """The first requests of a run as tuples of counts, ending with ("stop", plan) if it stops.

    >>> decisions(
    ...     sp.policies.Uniform(),
    ...     sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest"),
    ...     Tape([1.0, 0.0], [0, 1]),
    ...     3,
    ... )
    [(1, 1), (1, 0), (0, 1)]
    """
    return continued(policy.start(problem), environment, range(n_rounds), seed)


def continued(run: Run, environment: Tape | Environment, rounds: range, seed: int = 0) -> list[Decision]:
    """The requests of these rounds of a run that stands before the first of them.

    >>> run = sp.policies.Uniform().start(sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest"))
    >>> continued(run, Tape([1.0, 0.0], [0, 1]), range(1))
    [(1, 1)]
    """
    taken = list[Decision]()
    rng = np.random.default_rng(99)
    for n_round in rounds:
        decision = run.decide(round_rng(seed, n_round))
        if isinstance(decision, Stop):
            return [*taken, ("stop", decision.plan)]
        assert isinstance(decision, Measure)
        taken.append(tuple(decision.counts.tolist()))
        run.absorb(decision.counts, environment.measure(decision.counts, rng))
    return taken


def compare_with_looking(
    policy: Policy, problem: Any, environment: Tape | Environment, n_rounds: int
) -> None:
    """Run twin runs, look at one of them all the time, and assert that both decide alike and keep the same.

    To look is to call `standing`, and `log_evidence` and `proof` where a run has them.

    >>> compare_with_looking(
    ...     sp.policies.Uniform(),
    ...     sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest"),
    ...     Tape([1.0, 0.0], [0, 1]),
    ...     3,
    ... )
    """
    watched, alone = start(policy, problem), start(policy, problem)
    rng = np.random.default_rng(99)
    for n_round in range(n_rounds):
        _look(watched)
        first, second = (run.decide(round_rng(0, n_round)) for run in (watched, alone))
        _look(watched)
        if isinstance(first, Stop) or isinstance(second, Stop):
            assert first == second
            break
        assert first.counts.tolist() == second.counts.tolist()
        sums = environment.measure(first.counts, rng)
        watched.absorb(first.counts, sums)
        alone.absorb(first.counts, sums)
    _look(watched)
    if isinstance(watched, KeptRun) and isinstance(alone, KeptRun):
        assert arrays_to_json(watched.state()) == arrays_to_json(alone.state())
    assert watched.standing() == alone.standing()


def _look(run: Run) -> None:
    for _ in range(2):
        run.standing()
        if isinstance(run, WeighingRun):
            run.log_evidence()
        if isinstance(run, ProvingRun):
            run.proof()


class PolicyContract:
    """The laws of a policy: a subclass lists its `policies`, and says by its methods what they cannot do.

    Every test takes each policy of the list; a policy with several ways to decide is listed once for each.
    """

    policies: ClassVar[Sequence[Policy]] = ()
    registered: ClassVar[bool] = True  # False until an entry point in "surepick.policies" offers it

    def depends_on_the_order_of_arms(self, policy: Policy) -> bool:
        """Whether another order of the arms may change what is measured: draws and turns go by position."""
        return policy.randomized

    def depends_on_the_order_of_plans(self, policy: Policy) -> bool:
        """Whether another order of the plans may change what is measured."""
        return False

    def needs_zeros_and_ones(self, policy: Policy) -> bool:
        """Whether plans must be sets of arms."""
        return False

    def needs_single_arms(self, policy: Policy) -> bool:
        """Whether every plan must be one arm of its own."""
        del policy
        return False

    def answers_ties(self, policy: Policy) -> bool:
        """Whether it has a zone of differences that do not matter, so that plans that tie are answered."""
        del policy
        return False

    def measures_what_all_plans_share(self, policy: Policy) -> bool:
        """Whether an arm on which all plans agree is measured, once; nothing is learned from it."""
        return False

    def never_stops(self, policy: Policy) -> bool:
        """Whether it has no delta: it has no guarantee, and only a budget ends its runs."""
        return "delta" not in {setting.name for setting in dataclasses.fields(cast(Any, policy))}

    def problem(self, plans: Any, **settings: Any) -> Any:
        """The problem of choosing between these plans, which the policy is given in every test."""
        return sp.Problem(plans, **{"noise": 1.0, "goal": "largest", **settings})

    def has_found(self, answer: Any, plan: npt.ArrayLike, problem: Any) -> bool:
        """Whether an answer on this problem is this plan, given as its vector."""
        return bool(np.array_equal(problem.vector(answer), plan))

    def seeds(self, policy: Policy) -> Sequence[int]:
        """Return the instances on which a law is tried; a few show what one may hide."""
        del policy
        return SEEDS

    def kept_after(self, policy: Policy) -> Sequence[int]:
        """Return after how many rounds the state of a run is kept and restored."""
        del policy
        return KEPT_AFTER

    def has_law(self, policy: Policy, law: str) -> bool:
        """Whether this law, the name of a test, is tried for this policy."""
        del policy, law
        return True

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give every law its policies, and each policy its instances or numbers of rounds."""
        if "policy" not in metafunc.fixturenames:
            return
        chosen = [
            policy for policy in type(self).policies if self.has_law(policy, metafunc.function.__name__)
        ]
        for name, values in (("seed", self.seeds), ("n_rounds", self.kept_after)):
            if name in metafunc.fixturenames:
                pairs = [(policy, value) for policy in chosen for value in values(policy)]
                metafunc.parametrize(("policy", name), pairs, ids=[f"{p}-{value}" for p, value in pairs])
                return
        metafunc.parametrize("policy", chosen, ids=str)

    def instance(self, seed: int, policy: Policy) -> tuple[FloatArray, FloatArray]:
        """Plans without exact ties, and means."""
        rng = np.random.default_rng([7, seed])
        if self.needs_single_arms(policy):
            return np.diag(rng.uniform(0.5, 2.0, N_ARMS)), rng.normal(size=N_ARMS)
        if self.needs_zeros_and_ones(policy):
            rows = np.array([list(np.binary_repr(k, N_ARMS)) for k in range(2**N_ARMS)], dtype=float)
            return rng.permutation(rows)[:N_PLANS], rng.normal(size=N_ARMS)
        plans = rng.uniform(0, 4, (N_PLANS, N_ARMS)) * (rng.random((N_PLANS, N_ARMS)) < 0.8)
        return plans, rng.normal(size=N_ARMS)

    def test_is_a_frozen_value_with_name_version_and_guarantee(self, policy: Policy) -> None:
        assert isinstance(policy, Policy)
        assert policy.version >= 1
        assert policy.guarantee
        assert policy == dataclasses.replace(cast(Any, policy))
        with pytest.raises(dataclasses.FrozenInstanceError):
            policy.delta = 0.5  # type: ignore[misc]

    def test_is_found_by_its_name(self, policy: Policy) -> None:
        if not self.registered:
            pytest.skip("this policy says that it is not offered by an entry point yet")
        assert policy_named(policy.name) is type(policy)
        parsed = parse_policy(policy.name.upper(), delta=0.2)
        assert self.never_stops(policy) or parsed.delta == 0.2

    def test_refuses_a_delta_outside_zero_and_one(self, policy: Policy) -> None:
        if self.never_stops(policy):
            pytest.skip("this policy has no delta")
        for delta in (0.0, 1.0, -1.0, float("nan")):
            with pytest.raises(sp.SurepickError) as caught:
                dataclasses.replace(cast(Any, policy), delta=delta)
            assert caught.value.field == "delta"

    def test_gives_the_same_decision_until_something_is_absorbed(self, policy: Policy) -> None:
        plans, means = self.instance(0, policy)
        run = policy.start(self.problem(plans))
        for n_round in range(5):
            first, again = (run.decide(round_rng(3, n_round)) for _ in range(2))
            if isinstance(first, Stop) or isinstance(again, Stop):
                assert first == again
                return
            assert first.counts.tolist() == again.counts.tolist()
            run.absorb(first.counts, first.counts * means)

    def test_replay_of_the_same_measurements_gives_the_same_decisions(
        self, policy: Policy, seed: int
    ) -> None:
        plans, means = self.instance(seed, policy)
        problem = self.problem(plans)
        first = decisions(policy, problem, Tape(means, range(N_ARMS)), 60, seed)
        assert first == decisions(policy, problem, Tape(means, range(N_ARMS)), 60, seed)

    def test_the_same_seed_gives_the_same_outcome_and_step_by_step_too(
        self, policy: Policy, seed: int
    ) -> None:
        plans, means = self.instance(seed, policy)
        problem = self.problem(plans)
        for environment in _environments(means):
            fast, again, slow = (
                sp.simulate(problem, e, policy=policy, seed=seed, budget=BUDGET)
                for e in (environment, environment, StepByStep(environment))
            )
            for other in (again, slow):
                assert fast.state == other.state
                assert fast.plan == other.plan
                assert fast.counts.tolist() == other.counts.tolist()
                assert np.array_equal(fast.means, other.means, equal_nan=True)
            if not isinstance(policy.start(problem), CompiledRun):
                break

    def test_a_kept_run_goes_on_as_if_it_had_never_been_away(self, policy: Policy, n_rounds: int) -> None:
        plans, means = self.instance(1, policy)
        problem, tape = self.problem(plans), Tape(means, range(N_ARMS))
        run = policy.start(problem)
        if not isinstance(run, KeptRun):
            pytest.skip("runs without `state` and `restore` are replayed from their log")
        continued(run, tape, range(n_rounds))
        kept = json.dumps(arrays_to_json(run.state()))
        again = policy.start(problem)
        again = restored(again, json.loads(kept))
        assert again.standing() == run.standing()
        places = dict(tape.place)
        rest = range(n_rounds, n_rounds + 60)
        assert continued(again, Tape(means, range(N_ARMS), place=places), rest) == continued(run, tape, rest)
        assert again.standing() == run.standing()
        assert isinstance(again, KeptRun)
        assert arrays_to_json(again.state()) == arrays_to_json(run.state())

    def test_looking_changes_nothing(self, policy: Policy, seed: int) -> None:
        plans, means = self.instance(seed, policy)
        compare_with_looking(policy, self.problem(plans), Tape(means, range(N_ARMS)), 60)

    def test_relabelling_arms_and_plans_relabels_the_decisions(self, policy: Policy, seed: int) -> None:
        plans, means = self.instance(seed, policy)
        rng = np.random.default_rng(seed)
        arm, plan = rng.permutation(plans.shape[1]), rng.permutation(plans.shape[0])
        if self.depends_on_the_order_of_arms(policy):
            arm = np.arange(plans.shape[1])
        if self.depends_on_the_order_of_plans(policy):
            plan = np.arange(plans.shape[0])
        keys = np.arange(len(means))
        straight = decisions(policy, self.problem(plans), Tape(means, keys.tolist()), 200)
        shuffled = decisions(
            policy, self.problem(plans[plan][:, arm]), Tape(means[arm], keys[arm].tolist()), 200
        )
        assert len(straight) == len(shuffled)
        problem = self.problem(plans)
        for before, after in zip(straight, shuffled, strict=True):
            if before[0] == "stop" and before[1] is None:
                assert after == before
            elif before[0] == "stop":
                there = self.problem(plans[plan][:, arm]).vector(after[1])
                assert self.has_found(before[1], there[np.argsort(arm)], problem)
            else:
                assert [before[a] for a in arm] == list(after)

    def test_adding_one_vector_to_all_plans_changes_nothing(self, policy: Policy, seed: int) -> None:
        shift = np.array([5.0, -3.0, 0.0, 2.0])
        self._same_decisions(policy, seed, 100, lambda plans: self.problem(plans + shift), self.problem)

    def test_minimizing_is_maximizing_the_negative(self, policy: Policy, seed: int) -> None:
        self._same_decisions(
            policy,
            seed,
            60,
            lambda plans: self.problem(plans, goal="smallest"),
            lambda plans: self.problem(-plans),
        )

    def _same_decisions(
        self,
        policy: Policy,
        seed: int,
        n_rounds: int,
        one: Callable[[FloatArray], Any],
        other: Callable[[FloatArray], Any],
    ) -> None:
        if self.needs_zeros_and_ones(policy):
            pytest.skip("the other plans would not be zeros and ones")
        plans, means = self.instance(seed, policy)
        first, second = (
            decisions(policy, problem, Tape(means, range(N_ARMS)), n_rounds, seed)
            for problem in (one(plans), other(plans))
        )
        assert first == second

    def test_without_noise_the_best_plan_wins(self, policy: Policy, seed: int) -> None:
        plans, means = self.instance(seed, policy)
        problem = self.problem(plans)
        budget = BUDGET if self.never_stops(policy) else 10**9
        outcome = sp.simulate(
            problem, sp.simulation.Gaussian(means, scale=0.0), policy=policy, seed=seed, budget=budget
        )
        assert self.never_stops(policy) or outcome.plan is not None
        assert is_proved(policy) or outcome.state is not sp.simulation.State.CONFIDENT
        assert self.has_found(outcome.leader, plans[np.argmax(plans @ means)], problem)

    def test_exact_ties_end_by_the_budget_and_say_so(self, policy: Policy) -> None:
        problem = self.problem([[1.0, 0.0], [0.0, 1.0]])
        outcome = sp.simulate(
            problem, sp.simulation.Gaussian([0.3, 0.3], scale=0.0), policy=policy, budget=300
        )
        if self.answers_ties(policy):
            assert outcome.plan is not None
            return
        assert outcome.state is sp.simulation.State.BUDGET_SPENT
        assert outcome.plan is None
        assert outcome.n_measured <= 300

    def test_measures_only_what_matters(self, policy: Policy) -> None:
        problem = self.problem([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
        budget = BUDGET if self.never_stops(policy) else 10**9
        outcome = sp.simulate(problem, sp.simulation.Gaussian([1.0, 0.0, 0.0]), policy=policy, budget=budget)
        assert outcome.counts[2] == (1 if self.measures_what_all_plans_share(policy) else 0)
        assert self.has_found(outcome.leader, [1.0, 0.0, 1.0], problem)

    def test_an_unknown_noise_scale_is_a_clear_error(self, policy: Policy) -> None:
        problem = self.problem([[1.0, 0.0], [0.0, 1.0]], noise=None)
        if can_start(policy, problem):
            pytest.skip("this policy learns the noise while it measures")
        with pytest.raises(sp.SurepickError) as caught:
            start(policy, problem)
        assert caught.value.field == "noise"

    def test_measurements_it_did_not_ask_for_are_taken_in_between_rounds(self, policy: Policy) -> None:
        """The same ones give the same decisions, and without noise the best plan wins all the same."""
        plans, means = self.instance(0, policy)
        problem = self.problem(plans, noise=0.2)
        if self.never_stops(policy):
            pytest.skip("its runs have no end to compare")
        if recalling(policy, policy.start(problem), unasked=True) is None:
            pytest.skip("this policy takes in what it asked for and nothing else")
        first, again = (_with_unasked(policy, problem, means) for _ in range(2))
        assert first == again
        assert first[-1][0] == "stop"
        assert self.has_found(first[-1][1], plans[np.argmax(plans @ means)], problem)

    def test_sparse_plans_decide_as_dense_ones(self, policy: Policy) -> None:
        from scipy import sparse

        plans, means = self.instance(0, policy)
        dense = decisions(policy, self.problem(plans), Tape(means, range(N_ARMS)), 150)
        thin = decisions(policy, self.problem(sparse.csr_array(plans)), Tape(means, range(N_ARMS)), 150)
        assert dense == thin


def _with_unasked(policy: Policy, problem: sp.Problem, means: FloatArray) -> list[Decision]:
    """The decisions of a run that recalls two of each arm, then a measurement every third round if it may."""
    run, taken, arms = policy.start(problem), list[Decision](), np.flatnonzero(problem.relevant)
    first = 2 * problem.relevant.astype(np.int64)
    cast(RecallingRun, run).recall(first, first * means)
    for n_round in range(MOST_ROUNDS):
        decision, same = (run.decide(round_rng(0, n_round)) for _ in range(2))
        if isinstance(decision, Stop):
            return [*taken, ("stop", decision.plan)]
        assert isinstance(same, Measure)
        assert decision.counts.tolist() == same.counts.tolist()
        taken.append(tuple(decision.counts.tolist()))
        run.absorb(decision.counts, decision.counts * means)
        extra = recalling(policy, run, unasked=True)
        if extra is not None and n_round % 3 == 0:
            once = np.bincount([arms[n_round % len(arms)]], minlength=problem.n_arms)
            extra.recall(once, once * means)
    return taken


def _environments(means: FloatArray) -> list[Environment]:
    samples = [np.random.default_rng(s).normal(m, 1.0, 20 + s) for s, m in enumerate(means)]
    return [
        sp.simulation.Gaussian(means),
        sp.simulation.Bernoulli(1 / (1 + np.exp(-means))),
        sp.simulation.UniformNoise(means, 1.5),
        sp.simulation.Replay(samples),
    ]
