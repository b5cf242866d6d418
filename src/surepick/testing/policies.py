"""The one suite of laws that every policy must pass."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

import surepick as sp
from surepick.core.arrays import FloatArray, IntArray
from surepick.core.policy import Policy, start
from surepick.core.run import Measure, Run, Stop
from surepick.policies import parse_policy, policy_named
from surepick.policies.betting.batch_run import BatchRun
from surepick.sessions.codec import arrays_to_json
from surepick.sessions.run import restored
from surepick.simulation.environments import Environment
from surepick.simulation.seeds import round_rng
from surepick.simulation.simulate import CompiledRun

KEPT_AFTER = (0, 2, 40)
N_PLANS, N_ARMS = 6, 4
MOST_ROUNDS = 20_000
BUDGET = 2_000  # of runs that nothing else ends

Decision = tuple[Any, ...]


@dataclass(eq=False)
class Tape:
    """An environment whose arms give fixed sequences of measurements, each its own.

    Arm s reads the sequence of the seed `keys[s]`, so that a relabelled arm keeps its own. `place` is how
    much of each has been read; it changes with every measurement.

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
        """Return the sum of the next `counts[s]` measurements of each arm s."""
        means, scale, sums = cast(FloatArray, self.means), cast(FloatArray, self.scale), np.zeros(len(counts))
        for s in np.flatnonzero(counts).tolist():
            start = self.place.get(s, 0)
            self.place[s] = start + int(counts[s])
            noise = np.random.default_rng(self.keys[s]).standard_normal(self.place[s])[start:]
            sums[s] = counts[s] * means[s] + scale[s] * noise.sum()
        return sums


def decisions(
    policy: Policy, problem: sp.Problem, environment: Tape | Environment, n_rounds: int, seed: int = 0
) -> list[Decision]:
    """Return the first requests of a run as tuples of counts, ending with ("stop", plan) if it stops.

    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest")
    >>> decisions(sp.policies.Uniform(), problem, Tape([1.0, 0.0], [0, 1]), 3)
    [(1, 1), (1, 0), (0, 1)]
    """
    return continued(policy.start(problem), environment, range(n_rounds), seed)


def continued(run: Run, environment: Tape | Environment, rounds: range, seed: int = 0) -> list[Decision]:
    """Return the requests of these rounds of a run that has absorbed all earlier rounds."""
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


class PolicyContract:
    """The laws of a policy: a subclass lists its `policies`, and says by `allowed` what they do otherwise.

    Every test takes each policy of the list; a policy with several ways to decide is listed once for each.
    """

    policies: ClassVar[Sequence[Policy]] = ()
    registered: ClassVar[bool] = True  # False until an entry point in "surepick.policies" offers it

    def allowed(self, policy: Policy) -> Collection[str]:
        """Return which of these a policy does, among

        - "order of arms", "order of plans": another order may change what is measured, as where draws go by
          position;
        - "sets", "single arms": its plans must be sets of arms, or one arm each;
        - "ties": it answers plans that tie, within a zone of differences that do not matter;
        - "shared arms": it measures an arm on which all plans agree once.
        """
        return {"order of arms"} if policy.randomized else set()

    def never_stops(self, policy: Policy) -> bool:
        """Return whether the policy has no delta: it has no guarantee, and only a budget ends its runs."""
        return "delta" not in {setting.name for setting in dataclasses.fields(cast(Any, policy))}

    def problem(self, plans: Any, **settings: Any) -> Any:
        """Return the problem of choosing between these plans, which the policy is given in every test."""
        return sp.Problem(plans, **{"noise": 1.0, "goal": "largest", **settings})

    def has_found(self, answer: Any, plan: npt.ArrayLike, problem: Any) -> bool:
        """Return whether an answer on this problem is this plan, given as its vector."""
        return bool(np.array_equal(problem.vector(answer), plan))

    def seeds(self, policy: Policy) -> Sequence[int]:
        """Return the instances on which a law is tried; a few show what one may hide."""
        return (0, 1)

    def has_law(self, policy: Policy, law: str) -> bool:
        """Return whether this law, the name of a test, is tried for this policy."""
        return True

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give every law its policies, and each policy its instances or numbers of rounds."""
        if "policy" not in metafunc.fixturenames:
            return
        chosen = [p for p in type(self).policies if self.has_law(p, metafunc.function.__name__)]
        for name, values in (("seed", self.seeds), ("n_rounds", lambda policy: KEPT_AFTER)):
            if name in metafunc.fixturenames:
                pairs = [(policy, value) for policy in chosen for value in values(policy)]
                metafunc.parametrize(("policy", name), pairs, ids=[f"{p}-{value}" for p, value in pairs])
                return
        metafunc.parametrize("policy", chosen, ids=str)

    def instance(self, seed: int, policy: Policy) -> tuple[FloatArray, FloatArray]:
        """Return plans without exact ties, and means."""
        rng = np.random.default_rng([7, seed])
        if "single arms" in self.allowed(policy):
            return np.diag(rng.uniform(0.5, 2.0, N_ARMS)), rng.normal(size=N_ARMS)
        if "sets" in self.allowed(policy):
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
            policy.delta = 0.5
        for delta in () if self.never_stops(policy) else (0.0, 1.0, -1.0, float("nan")):
            with pytest.raises(sp.SurepickError) as caught:
                dataclasses.replace(cast(Any, policy), delta=delta)
            assert caught.value.field == "delta"
        if self.registered:
            assert policy_named(policy.name) is type(policy)
            parsed = parse_policy(policy.name.upper(), delta=0.2)
            assert self.never_stops(policy) or parsed.delta == 0.2

    def test_the_same_measurements_give_the_same_decisions_however_often_one_looks(
        self, policy: Policy, seed: int
    ) -> None:
        """Of twin runs, one is looked at and decides several times; both decide alike and keep the same."""
        plans, means = self.instance(seed, policy)
        problem, tape = self.problem(plans), Tape(means, range(N_ARMS))
        watched, alone = start(policy, problem), start(policy, problem)

        def look() -> None:
            for _ in range(2):
                watched.standing()
                watched.log_evidence()
                if isinstance(watched, BatchRun):
                    watched.proof()

        for n_round in range(60):
            look()
            watched.decide(round_rng(0, n_round))
            first, second = (run.decide(round_rng(0, n_round)) for run in (watched, alone))
            look()
            if isinstance(first, Stop) or isinstance(second, Stop):
                assert first == second
                break
            assert first.counts.tolist() == second.counts.tolist()
            sums = tape.measure(first.counts, None)
            watched.absorb(first.counts, sums)
            alone.absorb(first.counts, sums)
        look()
        assert arrays_to_json(watched.state()) == arrays_to_json(alone.state())
        assert watched.standing() == alone.standing()

    def test_the_same_seed_gives_the_same_outcome_and_step_by_step_too(
        self, policy: Policy, seed: int
    ) -> None:
        plans, means = self.instance(seed, policy)
        problem = self.problem(plans)
        environments: list[Environment] = [sp.simulation.Gaussian(means)]
        if isinstance(policy.start(problem), CompiledRun):
            samples = [np.random.default_rng(s).normal(m, 1.0, 20 + s) for s, m in enumerate(means)]
            coins = sp.simulation.Bernoulli(1 / (1 + np.exp(-means)))
            environments += [coins, sp.simulation.UniformNoise(means, 1.5), sp.simulation.Replay(samples)]
        for environment in environments:
            stepwise = SimpleNamespace(means=environment.means, measure=environment.measure)  # not compiled
            fast, again, slow = (
                sp.simulate(problem, e, policy=policy, seed=seed, budget=BUDGET)
                for e in (environment, environment, stepwise)
            )
            for other in (again, slow):
                assert fast.state == other.state
                assert fast.plan == other.plan
                assert fast.counts.tolist() == other.counts.tolist()
                assert np.array_equal(fast.means, other.means, equal_nan=True)

    def test_a_restored_run_continues_as_if_it_had_not_stopped(self, policy: Policy, n_rounds: int) -> None:
        plans, means = self.instance(1, policy)
        problem, tape = self.problem(plans), Tape(means, range(N_ARMS))
        run = policy.start(problem)
        if run.state() is None:
            pytest.skip("runs without `state` and `restore` are replayed from their log")
        continued(run, tape, range(n_rounds))
        again = restored(policy.start(problem), json.loads(json.dumps(arrays_to_json(run.state()))))
        assert again.standing() == run.standing()
        other_tape = Tape(means, range(N_ARMS), place=dict(tape.place))
        rest = range(n_rounds, n_rounds + 60)
        assert continued(again, other_tape, rest) == continued(run, tape, rest)
        assert again.standing() == run.standing()
        assert arrays_to_json(again.state()) == arrays_to_json(run.state())

    def test_relabelling_arms_and_plans_relabels_the_decisions(self, policy: Policy, seed: int) -> None:
        plans, means = self.instance(seed, policy)
        rng, allowed = np.random.default_rng(seed), self.allowed(policy)
        arm, plan = rng.permutation(plans.shape[1]), rng.permutation(plans.shape[0])
        arm = np.arange(len(arm)) if "order of arms" in allowed else arm
        plan = np.arange(len(plan)) if "order of plans" in allowed else plan
        problem, other = self.problem(plans), self.problem(plans[plan][:, arm])
        straight = decisions(policy, problem, Tape(means, range(len(means))), 200)
        shuffled = decisions(policy, other, Tape(means[arm], arm.tolist()), 200)
        assert len(straight) == len(shuffled)
        for before, after in zip(straight, shuffled, strict=True):
            if before[0] == "stop" and before[1] is None:
                assert after == before
            elif before[0] == "stop":
                assert self.has_found(before[1], other.vector(after[1])[np.argsort(arm)], problem)
            else:
                assert [before[a] for a in arm] == list(after)

    def test_the_same_question_in_other_words_is_measured_alike(self, policy: Policy, seed: int) -> None:
        """As sparse plans; where plans may have any amounts also shifted, and negated."""
        plans, means = self.instance(seed, policy)
        others = [self.problem(sparse.csr_array(plans))]
        shift = np.array([5.0, -3.0, 0.0, 2.0])
        if "sets" not in self.allowed(policy):
            others += [self.problem(plans + shift), self.problem(-plans, goal="smallest")]
        taken = [
            decisions(policy, problem, Tape(means, range(N_ARMS)), 100, seed)
            for problem in (self.problem(plans), *others)
        ]
        asked = [[decision for decision in found if decision[0] != "stop"] for found in taken]
        assert all(one == asked[0] for one in asked)
        assert len({len(found) for found in taken}) == 1

    def test_without_noise_the_best_plan_wins(self, policy: Policy, seed: int) -> None:
        plans, means = self.instance(seed, policy)
        problem = self.problem(plans)
        budget = BUDGET if self.never_stops(policy) else 10**9
        truth = sp.simulation.Gaussian(means, scale=0.0)
        outcome = sp.simulate(problem, truth, policy=policy, seed=seed, budget=budget)
        assert self.never_stops(policy) or outcome.plan is not None
        assert policy.guarantee.proved or outcome.state is not sp.simulation.State.CONFIDENT
        assert self.has_found(outcome.leader, plans[np.argmax(plans @ means)], problem)

    def test_exact_ties_end_by_the_budget_and_say_so(self, policy: Policy) -> None:
        problem = self.problem([[1.0, 0.0], [0.0, 1.0]])
        truth = sp.simulation.Gaussian([0.3, 0.3], scale=0.0)
        outcome = sp.simulate(problem, truth, policy=policy, budget=300)
        if "ties" in self.allowed(policy):
            assert outcome.plan is not None
            return
        assert outcome.state is sp.simulation.State.BUDGET_SPENT
        assert outcome.plan is None
        assert outcome.n_measured <= 300

    def test_measures_only_what_matters(self, policy: Policy) -> None:
        problem = self.problem([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
        budget = BUDGET if self.never_stops(policy) else 10**9
        outcome = sp.simulate(problem, sp.simulation.Gaussian([1.0, 0.0, 0.0]), policy=policy, budget=budget)
        assert outcome.counts[2] == (1 if "shared arms" in self.allowed(policy) else 0)
        assert self.has_found(outcome.leader, [1.0, 0.0, 1.0], problem)

    def test_an_unknown_noise_scale_is_a_clear_error(self, policy: Policy) -> None:
        problem = self.problem([[1.0, 0.0], [0.0, 1.0]], noise=None)
        if policy.can_start(problem):
            pytest.skip("this policy learns the noise while it measures")
        with pytest.raises(sp.SurepickError) as caught:
            start(policy, problem)
        assert caught.value.field == "noise"
