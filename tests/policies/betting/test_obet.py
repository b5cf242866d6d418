from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr, logsumexp

import surepick as sp
from hard_families import FAMILIES, count_errors, is_refuted
from surepick.core.branches import Branch
from surepick.core.plan_sets import plan_set, spanned
from surepick.errors import ProblemError
from surepick.policies.betting.obet import OBet, OBetRun
from surepick.policies.betting.ruling_out import Account
from surepick.policies.betting.wealth import SINGLE


def all_plans(n_arms, most):
    return np.array(list(product(range(most + 1), repeat=n_arms)), dtype=float)


def chosen_plans(seed, n_arms=5, most=1):
    """A few random plans, some of which contain others."""
    rng = np.random.default_rng(seed)
    everything = all_plans(n_arms, most)
    return rng.permutation(everything)[: int(rng.integers(2, min(14, len(everything))))]


def oracle(plans, *, minimize=False, within=False, **settings):
    """These plans behind an oracle, which is all that is known of them."""
    sign = -1.0 if minimize else 1.0

    def best(weights):
        return plans[np.argmax(sign * (plans @ weights))]

    def best_within(weights, lower, upper):
        inside = plans[((plans >= lower) & (plans <= upper)).all(axis=1)]
        return inside[np.argmax(sign * (inside @ weights))] if len(inside) else None

    return sp.OracleProblem(
        best,
        plans.shape[1],
        minimize=minimize,
        best_within=best_within if within else None,
        **{"noise_scale": 1, **settings},
    )


def families():
    names = [str(s) for s in range(8)]
    return {
        "choices": sp.problems.top_k_family(names, 3),
        "trees": sp.problems.tree_family([("A", "B"), ("B", "C"), ("A", "C"), ("C", "D"), ("B", "D")]),
        "assignments": sp.problems.matching_family(names[:4], names[:4]),
        "paths": sp.problems.path_family(
            [("A", "B"), ("B", "D"), ("A", "C"), ("C", "D"), ("B", "C"), ("A", "D")], "A", "D", directed=True
        ),
        "packings": sp.problems.knapsack_family([3, 5, 7, 4], 20),
        "programs": sp.problems.program_family(
            sp.problems.as_program([[2, 3, 1]], [6], whole=True, upper=[2, 2, 2])
        ),
    }


@pytest.mark.parametrize("name", families())
def test_finds_the_best_plan_of_every_kind(name):
    family = families()[name]
    means = np.random.default_rng(3).uniform(0, 3, family.n_arms)
    outcome = sp.simulate(family.oracle_problem(noise_scale=1), sp.OBet(), sp.Gaussian(means), seed=1)
    assert outcome.status is sp.Status.CONFIDENT
    assert outcome.plan == tuple(family.best(means))
    assert outcome.risk == pytest.approx(0.05)


@pytest.mark.parametrize("minimize", [False, True])
def test_plans_that_contain_others_are_not_lost(minimize):
    """All subsets: each plan contains many others, and the best is the set of arms with positive means."""
    means = np.array([1.0, -1.0, 0.7, -0.7, 0.5, -2.0])
    problem = oracle(all_plans(6, 1), minimize=minimize)
    outcome = sp.simulate(problem, sp.OBet(), sp.Gaussian(means), seed=2)
    assert outcome.plan == tuple(((means < 0) if minimize else (means > 0)).astype(float))


def test_large_families_are_decided_without_a_list():
    names = [str(s) for s in range(40)]
    means = np.repeat([1.0, 0.0], 20)
    problem = sp.problems.top_k_family(names, 20).oracle_problem(noise_scale=1)
    outcome = sp.simulate(problem, sp.OBet(), sp.Gaussian(means), seed=0)
    assert outcome.plan == tuple(means)
    assert outcome.n_measurements < 4000


@pytest.mark.parametrize("means", [[0.5, 0.5, 0.0, 0.0], [1.0, 0.2, 0.21, 0.0]])
def test_epsilon_ends_ties_with_confidence(means):
    problem = oracle(np.eye(4)[[0, 1, 2, 3]])
    outcome = sp.simulate(problem, sp.OBet(epsilon=0.3), sp.Gaussian(means), seed=5)
    assert outcome.status is sp.Status.CONFIDENT
    assert np.dot(outcome.plan, means) >= max(means) - 0.3


def test_ties_end_by_the_budget():
    outcome = sp.simulate(oracle(np.eye(3)), sp.OBet(), sp.Gaussian([0.5, 0.5, 0.0], scale=0.0), budget=3000)
    assert outcome.status is sp.Status.BUDGET_SPENT


def test_costs_move_measurements_to_the_cheap_arms():
    plans = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    means, counts = [0.3, 0.3, 0.0], {}
    for price in (1.0, 100.0):
        problem = oracle(plans, costs=[1.0, price, 1.0])
        counts[price] = sp.simulate(problem, sp.OBet(), sp.Gaussian(means), seed=4).counts
    assert counts[100.0][1] / counts[100.0].sum() < 0.6 * counts[1.0][1] / counts[1.0].sum()


def played(problem, seed, n_blocks, *, epsilon=0.0, means=None):
    """A run after some blocks of noise around these means, and what its blocks were."""
    run, rng = OBet(delta=0.2, epsilon=epsilon).start(problem), np.random.default_rng(seed)
    means = rng.normal(size=problem.n_arms) if means is None else means
    blocks = []
    for _ in range(n_blocks):
        decision = run.decide()
        if isinstance(decision, sp.Stop):
            break
        bet, counts = run._block.bets, decision.counts
        sums = counts * means + np.sqrt(counts) * rng.normal(size=problem.n_arms)
        run.absorb(counts, sums)
        if bet is not None:
            blocks.append((bet, counts, sums))
    return run, blocks


def rows_by_hand(run, blocks, plan):
    """Log wealth of the rows of the first stake, from the formula of the proof."""
    wealth = run._account.wealth
    n = len(blocks[0][0].eta)
    total = np.log(0.73 * 0.35 / n) * np.ones(n)
    for bet, counts, sums in blocks:
        y = bet.lead - plan
        on = y != 0
        gap = float(y[on] @ (sums[on] / counts[on]))
        variance = float((y[on] ** 2 / counts[on]).sum())
        total += bet.eta[:n] * gap - bet.eta[:n] ** 2 / 2 * variance
    return total, wealth.rows(plan[None])[0][:n]


@pytest.mark.parametrize("most", [1, 3])
def test_rows_are_the_bets_of_the_proof(most):
    plans = chosen_plans(4, most=most)
    run, blocks = played(oracle(plans, within=most > 1), 0, 8)
    account = run._account
    for plan in plans[account.branch.holds(plans)]:
        by_hand, kept = rows_by_hand(run, blocks, plan)
        np.testing.assert_allclose(kept, by_hand, atol=1e-8)
        assert (kept <= by_hand).all()  # rounding only lowers them


def mixture_by_hand(bet, counts, sums, plan, distrust):
    """log of the mean of exp((g D - g^2/2)/v) over g ~ N(centre, prior) given g > 0."""
    y = bet.lead - plan
    on = y != 0
    if not on.any():
        return 0.0
    gap, v = float(y[on] @ (sums[on] / counts[on])), float((y[on] ** 2 / counts[on]).sum())
    prior = float(y[on] ** 2 @ bet.spread[on])
    new = min(1.0, prior / float(y[on] ** 2 @ bet.fresh[on])) if bet.is_fresh else 0.0
    centre = float(y @ bet.means) - (distrust * np.sqrt(1 - new) + SINGLE.caution) * np.sqrt(prior)
    if centre <= 0:
        return 0.0
    p = 1 / (1 / prior + 1 / v)
    q = p * (centre / prior + gap / v)
    value = 0.5 * np.log(p / prior) + q**2 / (2 * p) - centre**2 / (2 * prior)
    return value + log_ndtr(q / np.sqrt(p)) - log_ndtr(centre / np.sqrt(prior))


def test_single_bets_are_settled_later_as_they_were_made():
    plans = chosen_plans(7)
    run, blocks = played(oracle(plans), 3, 8)
    account = run._account
    for plan in plans[account.branch.holds(plans)]:
        stake = np.log(0.73 * 0.65 * (1 - SINGLE.ladder_share))
        by_hand = stake + sum(
            mixture_by_hand(*block, plan, account.wealth._singles._distrust) for block in blocks
        )
        assert account.wealth.purses(plan)[SINGLE.rungs] == pytest.approx(by_hand, abs=1e-7)
    for plan, purses in zip(account.rivals.plans, account.rivals.purses, strict=True):
        np.testing.assert_allclose(purses, account.wealth.purses(plan), atol=1e-9)


def wealth_of(account, plans):
    return account.log_wealth(plans, np.array([account.wealth.purses(plan) for plan in plans]))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_blocks=st.integers(2, 25),
    most=st.sampled_from([1, 1, 2]),
    epsilon=st.sampled_from([0.0, 0.0, 0.4]),
    minimize=st.booleans(),
)
def test_certificates_agree_with_enumeration(seed, n_blocks, most, epsilon, minimize):
    plans = chosen_plans(seed, n_arms=4, most=most)
    problem = oracle(plans, minimize=minimize, within=most > 1)
    run, _ = played(problem, seed, n_blocks, epsilon=epsilon)
    inside = (-plans if minimize else plans) + 0.0
    account, rng = run._account, np.random.default_rng(seed)
    left = inside[account.branch.holds(inside)]
    if (risk := run.standing().risk) is not None and len(others := left[(left != run._lead).any(axis=1)]):
        assert risk >= min(1.0, np.exp(-wealth_of(account, others).min()))
    wealth = dict(zip([p.tobytes() for p in left], wealth_of(account, left), strict=True))
    for _ in range(6):
        arm = int(rng.integers(4))
        value = float(left[rng.integers(len(left)), arm])
        for part in [*account.branch.apart(arm, value, 1.0), account.branch.pinned(arm, value)]:
            members = [p.tobytes() for p in inside[part.holds(inside)]]
            bound = account.lower_bound(part)
            assert all(wealth[key] >= bound for key in members)
            before = set(account.out)
            if account.check(part):
                assert all(wealth[key] >= account.target or key in before for key in members)
            assert all(wealth[key] >= account.target for key in account.out - before)


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
@given(seed=st.integers(0, 10**6), minimize=st.booleans())
def test_penalties_find_the_best_plan_of_a_branch(seed, minimize):
    rng = np.random.default_rng(seed)
    plans = chosen_plans(seed)
    asked = plan_set(oracle(plans, minimize=minimize))
    inside = (-plans if minimize else plans) + 0.0
    branch, _ = spanned(asked)
    assert branch.lower.tolist() == inside.min(axis=0).tolist()
    assert branch.upper.tolist() == inside.max(axis=0).tolist()
    for arm in rng.permutation(5)[: int(rng.integers(5))]:
        branch = branch.pinned(int(arm), float(rng.choice([branch.lower[arm], branch.upper[arm]])))
    weights = rng.normal(size=5) * 10.0 ** rng.integers(-6, 7)
    found, members = asked.best(weights, branch), inside[branch.holds(inside)]
    assert (found is None) == (len(members) == 0)
    if found is not None:
        assert weights @ found == pytest.approx((members @ weights).max())


def hull_and_bound(seed):
    """The least log-sum found in a random hull, and a number that nothing in the hull is below."""
    from surepick.policies.betting.row_sums import least_log_sum

    rng = np.random.default_rng(seed)
    points = 5 * rng.normal(size=(int(rng.integers(1, 8)), 6))
    share, tilt = np.eye(len(points))[0].copy(), np.empty(6)
    value = least_log_sum(points, share, np.empty(6), tilt)
    assert share.sum() == pytest.approx(1.0)
    assert tilt.sum() == pytest.approx(1.0)
    assert value == pytest.approx(logsumexp(share @ points))
    return value, -(tilt @ np.log(np.maximum(tilt, 1e-300))) + (points @ tilt).min()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_what_is_found_in_a_hull_is_above_its_bound(seed):
    value, bound = hull_and_bound(seed)
    assert bound - 1e-9 <= value


def test_a_hull_has_the_least_log_sum_found():
    gaps = [value - bound for value, bound in map(hull_and_bound, range(300))]
    assert np.quantile(gaps, 0.95) < 0.01
    assert max(gaps) < 0.5


class TestBadOracles:
    def start(self, best, n_arms=3, **settings):
        return sp.OBet().start(sp.OracleProblem(best, n_arms, **{"noise_scale": 1, **settings}))

    def test_a_single_plan_is_the_answer_at_once(self):
        problem = sp.OracleProblem(lambda weights: [1.0, 0.0, 1.0], n_arms=3, noise_scale=1)
        outcome = sp.simulate(problem, sp.OBet(), sp.Gaussian([1.0, 0.0, 0.0]))
        assert (outcome.plan, outcome.n_measurements) == ((1.0, 0.0, 1.0), 0)

    def test_no_plan(self):
        with pytest.raises(ProblemError) as caught:
            self.start(lambda weights: None)
        assert caught.value.field == "best"

    def test_one_that_raises(self):
        with pytest.raises(ProblemError) as caught:
            self.start(lambda weights: {}["plan"])
        assert caught.value.field == "best"

    def test_a_wrong_length(self):
        with pytest.raises(ProblemError) as caught:
            self.start(lambda weights: [1.0, 0.0])
        assert caught.value.field == "best"

    def test_a_plan_of_other_numbers(self):
        with pytest.raises(ProblemError) as caught:
            self.start(lambda weights: [2.0, 0.0, 0.0])
        assert caught.value.field == "best"

    def test_a_solver_that_leaves_rounding_errors(self):
        with pytest.raises(ProblemError) as caught:
            self.start(lambda weights: [0.0, 0.9999999, 0.0])
        assert caught.value.field == "best"

    def test_a_real_family_says_what_is_covered(self):
        problem = sp.problems.transport_family([1.0, 2.0], [1.5, 1.5]).oracle_problem(noise_scale=1)
        with pytest.raises(ProblemError) as caught:
            sp.OBet().start(problem)
        assert caught.value.field == "best"

    def test_one_that_is_not_optimal_is_caught_by_a_plan_it_has_shown(self):
        """Right for single weights, as at the start of a run, and the worst plan otherwise."""

        def best(weights):
            plans = np.eye(3)
            values = plans @ weights
            return plans[np.argmax(values) if np.count_nonzero(weights) < 2 else np.argmin(values)]

        problem = sp.OracleProblem(best, 3, arm_names=["tea", "milk", "rye"], noise_scale=1)
        with pytest.raises(ProblemError) as caught:
            sp.simulate(problem, sp.OBet(), sp.Gaussian([1.0, 0.5, 0.0]))
        assert caught.value.field == "best"
        assert "the plan with the largest total (minimize=False)" in str(caught.value)

    def test_one_that_finds_the_least_where_the_largest_is_asked_for(self):
        plans = chosen_plans(2)
        problem = sp.OracleProblem(lambda weights: plans[np.argmin(plans @ weights)], 5, noise_scale=1)
        with pytest.raises(ProblemError) as caught:
            sp.simulate(problem, sp.OBet(), sp.Gaussian([1.0, 0.5, 0.2, 0.1, 0.0]))
        assert caught.value.field == "best"

    def test_one_that_changes_its_mind(self):
        """After forty answers a plan is withdrawn from the set."""
        plans, calls = np.eye(3), iter(range(10**9))

        def best(weights):
            left = plans if next(calls) < 40 else plans[1:]
            return left[np.argmax(left @ weights)]

        with pytest.raises(ProblemError) as caught:
            sp.simulate(sp.OracleProblem(best, 3, noise_scale=1), sp.OBet(), sp.Gaussian([1.0, 0.5, 0.2]))
        assert caught.value.field == "best"

    def test_one_that_overlooks_plans_within_bounds(self):
        plans = np.array([[2.0, 0.0], [0.0, 2.0]])
        problem = sp.OracleProblem(
            lambda weights: plans[np.argmax(plans @ weights)],
            2,
            best_within=lambda *asked: None,
            noise_scale=1,
        )
        with pytest.raises(ProblemError) as caught:
            sp.simulate(problem, sp.OBet(), sp.Gaussian([1.0, 0.5]))
        assert caught.value.field == "best_within"

    def test_one_that_shows_an_infeasible_plan_is_caught_when_it_does_not_stand_by_it(self):
        """The first answer is a plan that is never given again though it would be better."""
        answers = iter([[1.0, 1.0, 1.0]])

        def best(weights):
            return next(answers, np.eye(3)[np.argmax(weights)])

        with pytest.raises(ProblemError) as caught:
            sp.simulate(sp.OracleProblem(best, 3, noise_scale=1), sp.OBet(), sp.Gaussian([1.0, 0.5, 0.2]))
        assert caught.value.field == "best"

    @pytest.mark.parametrize("answer", [[0.5, 0.0, 0.0], [3.0, 0.0, 0.0]])
    def test_whole_plans_must_be_whole_and_within_bounds(self, answer):
        plans = 2 * np.eye(3)
        problem = sp.OracleProblem(
            lambda weights: plans[np.argmax(weights)],
            3,
            best_within=lambda weights, lower, upper: answer,
            noise_scale=1,
        )
        with pytest.raises(ProblemError) as caught:
            sp.simulate(problem, sp.OBet(), sp.Gaussian([1.0, 0.5, 0.2]))
        assert caught.value.field == "best_within"


def test_measurements_that_nobody_asked_for_inform_the_run():
    run = OBet().start(oracle(np.eye(3)))
    run.recall(np.full(3, 50), np.array([50.0, 0.0, 0.0]))
    assert run.standing().lead == (1.0, 0.0, 0.0)
    assert run.evidence.n_measurements == 150
    assert run._account.wealth.n_rows == 0  # and win no bet


def test_the_first_decisions_are_those_of_version_2():
    """Golden: another result is another version of the policy, and a line in the changelog."""
    assert OBet.version == 2
    run, taken = OBet().start(oracle(np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1.0]]))), []
    means = np.array([0.6, 0.3, 0.5, 0.25])
    while isinstance(decision := run.decide(), sp.Measure):
        taken.append(decision.counts.tolist())
        run.absorb(decision.counts, decision.counts * means)
    assert (len(taken), taken[-2:]) == (83, [[5, 5, 5, 5], [5, 5, 5, 5]])


class PeekingRun(OBetRun):
    """Chooses what rows bet after it has seen the block: what the proof forbids."""

    def _close_block(self, block):
        if block.bets is not None:
            away = self._lead - self._account.rivals.plans
            mean = block.sums / np.maximum(block.counts, 1)
            variance = np.divide(1.0, block.counts, out=np.zeros(len(mean)), where=block.counts > 0)
            eta = max(0.0, float((away @ mean / (away**2 @ variance)).max()))
            block.bets = type(block.bets)(
                block.bets.lead,
                np.full(len(block.bets.eta), eta),
                block.bets.means,
                block.bets.spread,
                block.bets.fresh,
                block.bets.is_fresh,
            )
        super()._close_block(block)


class Peeking(OBet):
    """The negative control."""

    def start(self, problem):
        return PeekingRun(problem, self)


HARD = ["two arms, gap .02, delta .2", "leads that change often", "epsilon just below the gap"]


@pytest.mark.parametrize("name", HARD)
def test_keeps_its_promise_where_it_is_hard(name):
    wrong, _ = count_errors(FAMILIES[name], OBet, runs=15)
    assert not is_refuted(wrong, 15, FAMILIES[name].delta)


def test_bets_made_after_the_block_are_caught_by_the_same_test():
    family = FAMILIES["two arms, gap .02, delta .05"]
    wrong, _ = count_errors(family, Peeking, runs=40)
    assert is_refuted(wrong, 40, family.delta)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_keeps_its_promise_on_all_hard_families(name):
    wrong, _ = count_errors(FAMILIES[name], OBet, runs=400, first_seed=10_000)
    assert not is_refuted(wrong, 400, FAMILIES[name].delta)


EXCHANGES = {
    "choices": (sp.problems.top_k_family([str(s) for s in range(8)], 3), 56),
    "paths": (
        sp.problems.path_family(
            [(f"{i}{a}", f"{i + 1}{b}") for i in range(4) for a in "AB" for b in "AB"]
            + [("start", "0A"), ("start", "0B"), ("4A", "end"), ("4B", "end")],
            "start",
            "end",
            directed=True,
        ),
        32,
    ),
    "trees": (sp.problems.tree_family([(a, b) for a in "ABCDE" for b in "ABCDE" if a < b]), 125),
    "assignments": (sp.problems.matching_family(list("ABCD"), list("EFGH")), 24),
}


@pytest.mark.parametrize("name", EXCHANGES)
def test_plans_ruled_out_by_their_exchanges_have_the_wealth_that_it_takes(name, monkeypatch):
    """Every plan outside the branch has had a wealth of 1/delta; and parts were left out by their losses."""
    family, n_plans = EXCHANGES[name]
    plans = listed_plans(family)
    assert len(plans) == n_plans
    left_out, easy = [], Account._easy

    def watched(self, branch, plan):
        mask = easy(self, branch, plan)
        left_out.append(0 if mask is None else int(mask[branch.free].sum()))
        return mask

    monkeypatch.setattr(Account, "_easy", watched)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        means, most = rng.normal(size=family.n_arms), np.full(n_plans, -np.inf)
        run = OBet(delta=0.2).start(family.oracle_problem(noise_scale=1))
        for _ in range(40):
            decision, account = run.decide(), run._account
            if account.wealth.n_rows:
                most = np.maximum(most, wealth_of(account, plans))
                assert (most[~account.branch.holds(plans)] >= account.target).all()
            if isinstance(decision, sp.Stop):
                break
            noise = np.sqrt(decision.counts) * rng.normal(size=family.n_arms)
            run.absorb(decision.counts, decision.counts * means + noise)
    assert sum(left_out) > 0


def listed_plans(family):
    """All plans as a run sees them: negated where the least is best."""
    if family.within is None:
        return np.array(sp.problems.top_k(list(family.arm_names), 3, noise_scale=1).plans)
    return (-1.0 if family.minimize else 1.0) * family.problem(every=True).plans + 0.0


def test_losses_that_are_too_large_are_caught_by_the_same_test(monkeypatch):
    """The negative control: a family that overstates its losses loses plans too early."""
    family, _ = EXCHANGES["trees"]
    wrong = replace(family, losses=lambda weights, plan: 50 * family.losses(weights, plan) + 50)
    monkeypatch.setitem(EXCHANGES, "trees", (wrong, 125))
    with pytest.raises(AssertionError):
        test_plans_ruled_out_by_their_exchanges_have_the_wealth_that_it_takes("trees", monkeypatch)
