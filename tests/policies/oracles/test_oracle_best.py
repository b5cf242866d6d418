"""Plans behind an oracle: bets by hand, certificates by enumeration, error rates with controls."""

from itertools import count, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

import surepick as sp
from common import asked, errs_more_often_than, measured, refuses
from surepick.core.plan_sets import Branch, plan_set, spanned
from surepick.errors import ProblemError
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.best import GRID, SHRINKAGE
from surepick.policies.betting.bet_gap_e import BetGapE
from surepick.policies.oracles.branch_search import BranchSearch
from surepick.policies.oracles.oracle_best import OracleBest
from surepick.policies.oracles.plan_wealth import SELECTION_BIAS
from surepick.policy import Stop
from surepick.sessions.session import Session
from surepick.simulation import Gaussian, State

GOALS = st.sampled_from(["largest", "smallest"])


def all_plans(n_arms, most):
    return np.array(list(product(range(most + 1), repeat=n_arms)), dtype=float)


def chosen_plans(seed, n_arms=5, most=1):
    """A few random plans, some of which contain others."""
    rng = np.random.default_rng(seed)
    everything = all_plans(n_arms, most)
    return rng.permutation(everything)[: int(rng.integers(2, min(14, len(everything))))]


NAMES = [str(s) for s in range(8)]
ALL = {"list_plans": False, "noise": 1}
STREETS = [("A", "B"), ("B", "D"), ("A", "C"), ("C", "D"), ("B", "C"), ("A", "D")]
FAMILIES = {
    "choices": sp.problems.top_k(NAMES, 3, goal="largest", **ALL),
    "trees": sp.problems.trees([(a, b) for a in "ABCDE" for b in "ABCDE" if a < b], **ALL),
    "assignments": sp.problems.matchings(row_names=NAMES[:4], column_names=NAMES[4:], goal="smallest", **ALL),
    "paths": sp.problems.paths(STREETS, "A", "D", directed=True, **ALL),
    "packings": sp.problems.knapsack([3, 5, 7, 4], None, 20, **ALL),
    "programs": sp.problems.production([[2, 3, 1]], [6], [1, 1, 1], whole=True, upper=[2, 2, 2], **ALL),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_finds_the_best_plan_of_every_kind(name):
    problem = FAMILIES[name]
    means = np.random.default_rng(3).uniform(0, 3, problem.n_arms)
    outcome = sp.simulate(problem, Gaussian(means), policy=sp.BetGapE(), seed=1)
    assert outcome.state is State.CONFIDENT
    assert outcome.plan == tuple(problem.best_plan(means))
    assert outcome.risk == pytest.approx(0.05)


def played(problem, seed, n_batches, *, epsilon=0.0):
    """A run after some batches of noise around random means, and what these were."""
    run, rng = BetGapE(delta=0.2, epsilon=epsilon).start(problem), np.random.default_rng(seed)
    means, batches = rng.normal(size=problem.n_arms), []
    for _ in range(n_batches):
        decision = run.decide()
        if isinstance(decision, Stop):
            break
        run.follow(run.propose())
        bets, counts = run._bets, decision.counts
        sums = counts * means + np.sqrt(counts) * rng.normal(size=problem.n_arms)
        run.absorb(counts, sums)
        batches += [(bet, counts, sums) for bet in bets]
    return run, batches


def common_of(run):
    question = run._question
    return question._plan_wealth.common(question._account, question.wealth.log_cash)


def shown_by_hand(bet, counts, sums, plan):
    """The gap between leader and plan that a batch shows, its variance, and where the two differ."""
    y = bet.leader - plan
    on = y != 0
    return float(y[on] @ (sums[on] / counts[on])), float((y[on] ** 2 / counts[on]).sum()), y, on


@pytest.mark.parametrize("most", [1, 3])
def test_common_bets_are_those_of_the_proof(most):
    plans = chosen_plans(4, most=most)
    run, batches = played(asked(plans), 0, 8)
    n = len(batches[0][0].sizes)  # of the first stake
    for plan in plans[run._question._account.branch.holds(plans)]:
        by_hand = np.full(n, np.log(0.73 * 0.35 / n))
        for bet, counts, sums in batches:
            gap, variance, _, _ = shown_by_hand(bet, counts, sums, plan)
            by_hand += bet.sizes[:n] * gap - bet.sizes[:n] ** 2 / 2 * variance
        kept = common_of(run).at(plan[None])[0][1 : n + 1]
        np.testing.assert_allclose(kept, by_hand, atol=1e-8)
        assert (kept <= by_hand).all()  # rounding only lowers them


def mixture_by_hand(bet, counts, sums, plan):
    """log of the mean of exp((g D - g^2/2)/v) over g ~ N(centre, prior) given g > 0."""
    gap, v, y, on = shown_by_hand(bet, counts, sums, plan)
    if not on.any():
        return 0.0
    prior = float(y[on] ** 2 @ bet.variance[on])
    new = min(1.0, prior / float(y[on] ** 2 @ bet.fresh[on])) if bet.fresh.any() else 0.0
    centre = float(y @ bet.means) - (SELECTION_BIAS * np.sqrt(1 - new) + SHRINKAGE) * np.sqrt(prior)
    if centre <= 0:
        return 0.0
    p = 1 / (1 / prior + 1 / v)
    q = p * (centre / prior + gap / v)
    value = 0.5 * np.log(p / prior) + q**2 / (2 * p) - centre**2 / (2 * prior)
    return value + log_ndtr(q / np.sqrt(p)) - log_ndtr(centre / np.sqrt(prior))


def test_plan_bets_are_settled_later_as_they_were_made():
    plans = chosen_plans(7)
    run, batches = played(asked(plans), 3, 8)
    account, wealth = run._question._account, run._question._plan_wealth
    for plan in plans[account.branch.holds(plans)]:
        stake = np.log(0.73 * 0.65 * (1 - OracleBest.first_share))
        by_hand = stake + sum(mixture_by_hand(*batch, plan) for batch in batches)
        assert wealth.components(account, plan)[len(GRID)] == pytest.approx(by_hand, abs=1e-7)
    for plan, components in zip(account.rivals, account.components, strict=True):
        np.testing.assert_allclose(components, wealth.components(account, plan), atol=1e-9)


def wealth_of(run, plans):
    account, wealth = run._question._account, run._question._plan_wealth
    components = np.array([wealth.components(account, plan) for plan in plans])
    return wealth.log_wealth(account, common_of(run), plans, components)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_batches=st.integers(2, 25),
    most=st.sampled_from([1, 1, 2]),
    epsilon=st.sampled_from([0.0, 0.0, 0.4]),
    goal=GOALS,
)
def test_certificates_agree_with_enumeration(seed, n_batches, most, epsilon, goal):
    plans = chosen_plans(seed, n_arms=4, most=most)
    run, _ = played(asked(plans, goal=goal), seed, n_batches, epsilon=epsilon)
    question = run._question
    if not question.has_leader:
        return
    inside = (-plans if goal == "smallest" else plans) + 0.0
    account, rng = question._account, np.random.default_rng(seed)
    search, threshold = question._search(account), question.wealth.threshold
    left = inside[account.branch.holds(inside)]
    others = left[(left != question.leader).any(axis=1)]
    if (risk := run.standing().risk) is not None and len(others):
        assert risk >= min(1.0, np.exp(-wealth_of(run, others).min()))
    wealth = dict(zip([p.tobytes() for p in left], wealth_of(run, left), strict=True))
    for _ in range(6):
        arm = int(rng.integers(4))
        value = float(left[rng.integers(len(left)), arm])
        for part in [*account.branch.apart(arm, value, 1.0), account.branch.pinned(arm, value)]:
            members = [p.tobytes() for p in inside[part.holds(inside)]]
            bound = search.lower_bound(part)
            assert all(wealth[key] >= bound for key in members)
            before = set(account.out_keys)
            if search.is_out(part):
                assert all(wealth[key] >= threshold or key in before for key in members)
            assert all(wealth[key] >= threshold for key in account.out_keys - before)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), most=st.integers(1, 3), one_size=st.booleans())
def test_a_branch_without_a_plan_is_partitioned(seed, most, one_size):
    rng = np.random.default_rng(seed)
    plans = all_plans(4, most)
    if one_size:
        plans = plans[plans.sum(axis=1) == int(rng.integers(1, 4 * most))]
    branch = Branch(np.zeros(4), rng.integers(1, most + 1, 4).astype(float))
    plans = plans[branch.holds(plans)]
    if not len(plans):
        return
    chosen = plans[rng.integers(len(plans))]
    parts = list(branch.without(chosen, 1.0, one_size=one_size))
    times = sum(part.holds(plans).astype(int) for part in parts) if parts else np.zeros(len(plans))
    assert (times == (plans != chosen).any(axis=1)).all()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), goal=GOALS)
def test_penalties_find_the_best_plan_of_a_branch(seed, goal):
    rng = np.random.default_rng(seed)
    plans = chosen_plans(seed)
    found_by = plan_set(asked(plans, goal=goal))
    inside = (-plans if goal == "smallest" else plans) + 0.0
    branch = spanned(found_by)
    assert branch.lower.tolist() == inside.min(axis=0).tolist()
    assert branch.upper.tolist() == inside.max(axis=0).tolist()
    for arm in rng.permutation(5)[: int(rng.integers(5))]:
        branch = branch.pinned(int(arm), float(rng.choice([branch.lower[arm], branch.upper[arm]])))
    weights = rng.normal(size=5) * 10.0 ** rng.integers(-6, 7)
    found, members = found_by.best(weights, branch), inside[branch.holds(inside)]
    assert (found is None) == (len(members) == 0)
    if found is not None:
        assert weights @ found == pytest.approx((members @ weights).max())


def failing(weights):
    raise KeyError("plan")


def forgetting():
    """After forty answers a plan is withdrawn from the set."""
    calls = count()
    return lambda weights: max(np.eye(3)[int(next(calls) >= 40) :], key=lambda plan: plan @ weights)


def first_answer_never_again():
    answers = iter([[1.0, 1.0, 1.0]])
    return lambda weights: next(answers, np.eye(3)[np.argmax(weights)])


def twice(weights):
    return 2 * np.eye(3)[np.argmax(weights)]


@pytest.mark.parametrize(
    ("best", "within"),
    [
        *((lambda weights, a=a: a, None) for a in (None, [1.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.9999999, 0.0])),
        *((failing, None), (forgetting(), None), (first_answer_never_again(), None)),
        (lambda weights: np.eye(3)[np.argmin(weights)], None),
        *((twice, lambda *bounds, a=a: a) for a in (None, [0.5, 0.0, 0.0], [3.0, 0.0, 0.0])),
    ],
)
def test_an_oracle_that_is_wrong_is_refused(best, within):
    problem = sp.OracleProblem(best, 3, best_within=within, noise=1, goal="largest")
    with refuses("best" if within is None else "best_within", ProblemError):
        sp.simulate(problem, Gaussian([1.0, 0.5, 0.2]), policy=sp.BetGapE())


def test_real_amounts_are_refused_and_a_single_plan_is_the_answer_at_once():
    with refuses("best", ProblemError):
        sp.BetGapE().start(sp.OracleProblem(lambda weights: [0.5, 1.5], 2, noise=1, goal="largest"))
    outcome = sp.simulate(asked(np.array([[1.0, 0.0, 1.0]])), Gaussian([1.0, 0.0, 0.0]))
    assert (outcome.plan, outcome.n_measured) == ((1.0, 0.0, 1.0), 0)


class PeekingRun(BatchRun):
    """A control: the sizes of common bets are chosen after the batch."""

    def _settle(self, batch, averages):
        for bet in self._bets:
            y = bet.leader - self._question._account.rivals
            gap, variance = y @ averages, (y**2) @ (1.0 / np.maximum(batch.uses, 1))
            bet.sizes = np.full(len(bet.sizes), max(0.0, float((gap / variance).max())))
        super()._settle(batch, averages)


TIED = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 0]])
NEAR_TIES = {  # plans, goal, means, epsilon, measurements
    "two arms": (np.eye(2), "largest", [1e-9, 0.0], 0.0, 400),
    "sets": (TIED[:4], "largest", [0.01, 0.0, 0.0, -0.01], 0.0, 300),
    "whole numbers": (np.array([[2.0, 0], [0, 3], [1, 1]]), "largest", [0.3001, 0.2], 0.0, 300),
    "losses": (TIED, "smallest", [0.01, 0.0, 0.0, -0.01], 0.0, 300),
    "within epsilon": (np.eye(3), "largest", [0.3001, 0.0, 0.0], 0.3, 300),
}


@pytest.mark.parametrize(
    ("name", "final", "kind"), [*product(NEAR_TIES, [0, 60], [BatchRun]), ("two arms", 0, PeekingRun)]
)
def test_errors_are_no_more_frequent_than_delta_and_sizes_chosen_after_the_batch_are_caught(
    name, final, kind
):
    """Also after a final batch, of so many measurements."""
    plans, goal, means, epsilon, budget = NEAR_TIES[name]
    problem = asked(plans, goal=goal)
    best = problem.sign * problem.best_plan(means) @ means

    def is_wrong(seed):
        run = kind(problem, BetGapE(0.2), OracleBest(problem, 0.2, epsilon))
        rng, used = np.random.default_rng([7, seed]), 0
        while used < budget and not isinstance(run.decide(), Stop):
            used += measured(run, means, rng, 1).n_measurements
            if final and run._final is None and used > budget / 4:
                run.call_final_batch(final, gaussian=True)
        decision = run.decide()
        if not isinstance(decision, Stop) or decision.plan is None:
            return False
        return problem.sign * np.array(decision.plan) @ means < best - epsilon

    assert errs_more_often_than(0.2, is_wrong, 60) == (kind is PeekingRun)


class Afterwards(BatchRun):
    """A control: what leads in the final test is chosen when its measurements are known."""

    def _settle(self, batch, averages):
        if batch.decision.is_final:
            question = self._question
            question.leader = self._bets[0].leader = question._set.best(averages, question._everything)
        super()._settle(batch, averages)


@pytest.mark.parametrize("kind", [BatchRun, Afterwards])
def test_a_final_batch_rules_out_the_best_plan_no_more_often_than_delta(kind):
    """The best plan is to do nothing, a little better than six others."""
    nothing = np.zeros(6)
    problem = asked(np.vstack([nothing, np.eye(6)]))

    def is_wrong(seed):
        run, rng = kind(problem, BetGapE(0.5), OracleBest(problem, 0.5)), np.random.default_rng([9, seed])
        measured(run, np.full(6, -1e-9), rng, 3)
        run.call_final_batch(40, gaussian=True)
        measured(run, np.full(6, -1e-9), rng, 6)
        account = run._question._account
        return nothing.tobytes() in account.out_keys or not account.branch.holds(nothing)

    assert errs_more_often_than(0.5, is_wrong, 60) == (kind is Afterwards)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), goal=GOALS, gaussian=st.booleans())
def test_a_final_batch_rules_out_what_its_p_values_do(seed, goal, gaussian):
    """By enumeration: every plan outside the branch, or ruled out, has had wealth / p of 1/delta."""
    plans = chosen_plans(seed, n_arms=4)
    run, _ = played(asked(plans, goal=goal), seed, 4)
    if isinstance(run.propose(), Stop) or not run._question.has_leader:
        return
    inside, rng = (-plans if goal == "smallest" else plans) + 0.0, np.random.default_rng(seed)
    before, account = wealth_of(run, inside), run._question._account
    was_out, branch = account.out_keys.copy(), account.branch
    run.call_final_batch(80, gaussian=gaussian)
    counts = run.decide().counts
    averages = rng.normal(size=4) + 2 * np.arange(4)
    run.absorb(counts, counts * averages)
    leader, account = run._question.leader, run._question._account
    y = leader - inside
    z = (y @ averages) / np.sqrt(np.maximum((y**2) @ (1 / np.maximum(counts, 1)), 1e-300))
    evidence = before + np.where(z > 0, -log_ndtr(-z) if gaussian else z**2 / 2, 0.0)
    for plan, wealth, known in zip(inside, evidence, branch.holds(inside), strict=True):
        ruled_out = not account.branch.holds(plan) or plan.tobytes() in account.out_keys
        if ruled_out and known and plan.tobytes() not in was_out:
            assert wealth >= run._question.wealth.threshold - 1e-6
    assert isinstance(run.decide(), Stop)


def test_means_that_are_known_are_never_measured():
    problem = asked(np.eye(4), known={"arm 1": 0.4, "arm 3": 0.0})
    outcome = sp.simulate(problem, Gaussian([1.0, 0.4, 0.1, 0.0]), seed=1)
    assert outcome.plan == (1.0, 0.0, 0.0, 0.0)
    assert outcome.counts[[1, 3]].tolist() == [0, 0]
    certain = asked(np.eye(2), known={"arm 0": 0.4, "arm 1": 0.5})
    outcome = sp.simulate(certain, Gaussian([0.4, 0.5]), seed=1)
    assert (outcome.plan, outcome.n_measured) == ((0.0, 1.0), 0)


def test_a_budget_below_the_free_arms_settles_no_bet():
    run = BetGapE().start(asked(np.eye(5)))
    measured(run, np.arange(5.0), np.random.default_rng(0), 3, scale=0.0)
    n_batches = len(run._question._account.batches)
    run.allow(2)
    counts = run.decide().counts
    assert counts.sum() == 2
    run.absorb(counts, 100.0 * counts * np.arange(5.0))
    assert len(run._question._account.batches) == n_batches


@pytest.mark.parametrize("name", ["choices", "trees", "assignments"])
def test_plans_outside_the_branch_have_had_the_wealth_that_it_takes(name):
    problem = FAMILIES[name]
    plans = problem.sign * problem.family.problem().plans + 0.0  # as a run sees them
    assert len(plans) == {"choices": 56, "trees": 125, "assignments": 24}[name]
    for seed in range(2):
        rng = np.random.default_rng(seed)
        means, most = rng.normal(size=problem.n_arms), np.full(len(plans), -np.inf)
        run = BetGapE(delta=0.2).start(problem)
        for _ in range(40):
            question = run._question
            if question.has_leader and len(question._account.kinds):
                most = np.maximum(most, wealth_of(run, plans))
                assert (most[~question._account.branch.holds(plans)] >= question.wealth.threshold).all()
            if isinstance(measured(run, means, rng, 1), Stop):
                break


def test_a_bound_that_is_too_large_is_caught_by_the_same_test(monkeypatch):
    """The negative control: bounds that are too large once there are bets lose plans too early."""
    lower = BranchSearch._lower

    def too_large(search, common, weights, branch):
        bound, plan = lower(search, common, weights, branch)
        return bound + 5.0 * bool(len(search._account.kinds)), plan

    monkeypatch.setattr(BranchSearch, "_lower", too_large)
    with pytest.raises(AssertionError):
        test_plans_outside_the_branch_have_had_the_wealth_that_it_takes("trees")


@pytest.mark.filterwarnings("ignore::surepick.errors.NoiseWarning")  # at the slip
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_a_removed_value_rules_out_no_plan(epsilon):
    problem = sp.problems.top_k(NAMES, 3, goal="largest", list_plans=False, noise=1.0)
    means = np.array([4.0, 3.5, 3.0, 0, 0, 0, 0, 3.8])
    session = Session.create("memory://", "s", problem, policy=sp.BetGapE(0.1, epsilon=epsilon))

    def measure():
        while requests := session.ask(40):
            for request in requests:
                arm, place = map(int, request.token.split("."))
                noise = np.random.default_rng([arm, place]).standard_normal()
                # the last arm is low at first, and then read wrongly, which rules out all plans with it
                value = {(7, 0): 2.0, (7, 1): -60.0}.get((arm, place), means[arm] + noise)
                session.tell(request, value, sure=True)

    measure()
    assert session.outcome.plan == (1, 1, 1, 0, 0, 0, 0, 0)
    session.remove("7.1", "a slip")
    assert session.status == "running"
    measure()
    assert session.outcome.plan == (1, 1, 0, 0, 0, 0, 0, 1)
    assert session.verify().holds
