"""Make the certificate of a session from its state; `verify` makes it again and compares."""

from __future__ import annotations

import dataclasses
from typing import Any

from surepick.certificates.certificate import Certificate
from surepick.core.answers import also_good, among, amounts, called, named, value_of
from surepick.core.guarantee import Guarantee
from surepick.core.policy import OwnQuestion
from surepick.core.polytopes.polytope import Polytope
from surepick.core.wording import how_many
from surepick.noise.check import could_have_seen
from surepick.policies.betting.challenge import Challenge
from surepick.sessions import codec
from surepick.sessions.state import SessionState
from surepick.simulation.outcome import State
from surepick.store import Event

CHECKER = "python check.py log.json"  # docs/check.py, and the log that `surepick export -o log.json` writes
MOST_NAMED = 100  # plans that are left
COVERED = ("BetGapE", "Challenge", "Limited", "Tied")  # policies that it knows


def certify(name: str, state: SessionState, end: Event) -> Certificate:
    """The certificate of a session that ended with this event."""
    problem, setup, status = state.problem, state.setup, state.status
    assert status is not None
    standing = state.standing()
    lead = standing.leader if state.plan is None else state.plan
    listing = problem.about.listing
    scale = problem.noise_scale
    shared = {} if problem.probes is None else problem.probes.covariances
    return Certificate(
        session=name,
        state=str(status),
        question=_question(state),
        answer=_answer(state),
        plan=state.plan,
        plan_name=problem.name_of(state.plan),
        delta=setup.policy.delta,
        epsilon=setup.policy.epsilon,
        claim=claim_of(state),
        policy=codec.policy_to_json(setup.policy),
        seed=setup.seed,
        assumption=assumption_of(state),
        noise_scale=() if scale is None else tuple(scale.tolist()),
        doubts=state.doubts(),
        noise_check=could_have_seen(problem, state.run.statistics.noise)
        if setup.policy.assumes_noise
        else "",
        counts=dict(zip(problem.counted_names, state.evidence.counts.tolist(), strict=True)),
        means={
            n: codec.finite_or_none(m)
            for n, m in zip(problem.reading_names, state.evidence.means.tolist(), strict=True)
        },
        n_measured=state.n_measurements,
        n_rounds=state.n_rounds,
        n_extra=state.n_extra,
        n_extra_used=state.n_extra_used,
        problem=codec.fingerprint(codec.problem_to_json(setup.problem)),
        log_position=end.position,
        log_checksum=end.checksum,
        title=problem.about.title,
        unit=problem.about.unit,
        leader=lead,
        leader_name=problem.name_of(lead),
        leader_amounts=None if lead is None else amounts(problem, lead),
        leader_value=None if lead is None else value_of(problem, lead, state.evidence),
        risk=codec.finite_or_none(standing.risk),
        n_removed=state.n_removed,
        first_delta=state.given.policy.delta,
        checker=_checker(state),
        extensions=tuple(
            {name: value for name, value in one.items() if name != "n_ahead"} for one in state.extensions
        ),
        covariances={problem.probe_names[o]: matrix.tolist() for o, matrix in shared.items()},
        knows_plans=problem.can_decide,
        listing=None if listing is None else dataclasses.asdict(listing),
        final_batch=None if state.final is None else state.final.n,
        prior=None
        if setup.prior is None
        else dict(zip(setup.problem.arm_names, setup.prior.worth.tolist(), strict=True)),
        added=tuple(event.name for event in state.added) or None,
        proof=None if state.plan is None else state.run.proof(),
        **_plans_left(state),
    )


def _question(state: SessionState) -> str:
    """Return what was to be found out."""
    problem, policy, epsilon = state.problem, state.setup.policy, state.setup.policy.epsilon
    if isinstance(policy, OwnQuestion):
        return policy.question(problem)
    best = f"the {'smallest' if problem.sign < 0 else 'largest'} total"
    amount = f"{epsilon:g} {problem.about.unit}".rstrip()
    within = f", or one within {amount} of it" if epsilon else ""
    listing = problem.about.listing
    if not problem.is_listed:  # their number may be unknown
        plans = "all plans"
    else:
        plans = f"{problem.n_plans:,} plans" if listing is None or listing.is_complete else listing.words
    if isinstance(policy, Challenge):
        name = policy.incumbent_name(problem)
        by = f" by more than {amount}" if epsilon else ""
        return f"Is one of {plans} better than {name}{by} ({best} is best)?"
    if not problem.is_listed:
        return f"Which plan has {best}{within}?"
    return f"Which of {plans} has {best}{within}?"


def claim_of(state: SessionState) -> str:
    """Return what is guaranteed: of the answer, or without one of the plans that the best is among."""
    if state.plan is not None:
        return guarantee_of(state).text
    if none := _none(state):
        return dataclasses.replace(guarantee_of(state), goal=none).text
    left = among(state.problem, state.setup.policy, state.standing())
    return left or Guarantee.none(str(state.status)).text


def _answer(state: SessionState) -> str:
    """Return the answer, or why there is none and which plans are left."""
    problem = state.problem
    if state.doubts():
        return "none: values contradict the assumption"
    if state.plan is not None:
        proved = state.status is State.CONFIDENT and guarantee_of(state).proved
        return f"{called(problem, state.plan)}{'' if proved else ' (no guarantee)'}"
    if none := _none(state):
        return none
    left = among(problem, state.setup.policy, state.standing())
    return f"none: {state.status}" + ("" if left is None else f"; {left}")


def _none(state: SessionState) -> str:
    """Return the proof that no plan will do as a clause; "" where that is not the answer."""
    policy, standing = state.setup.policy, state.standing()
    is_end = state.status is State.CONFIDENT and policy.finds_none(standing)
    if not (is_end and isinstance(policy, OwnQuestion)):
        return ""
    sentence = policy.claim(state.problem, standing).removesuffix(".")
    return sentence[:1].lower() + sentence[1:]


def _checker(state: SessionState) -> str:
    """Return the command of the independent checker, or "" for a session that it does not cover.

    It checks answers, not which plans a spent budget leaves.
    """
    problem, policy = state.problem, state.setup.policy
    if policy.name not in COVERED or state.status is not State.CONFIDENT:
        return ""
    is_vertex = isinstance(problem, Polytope) and policy.epsilon == 0
    if problem.is_listed or is_vertex:
        return CHECKER
    if isinstance(problem, Polytope):
        return f"{CHECKER} certificate.json" if problem.knows_noise else ""
    is_lower = policy.delta < state.given.policy.delta
    covers_noise = problem.knows_noise or (problem.best_within is None and not is_lower)
    return f"{CHECKER} --oracle best.py" if covers_noise and not problem.plays else ""


def guarantee_of(state: SessionState) -> Guarantee:
    """Return the policy's guarantee on the given problem; a final batch can make it assume Gaussian noise."""
    setup, called = state.setup, state.final
    return setup.policy.guarantee_on(setup.problem).if_gaussian(called is not None and called.gaussian)


def _plans_left(state: SessionState) -> dict[str, Any]:
    """Return the fields of a certificate about the plans beside the answer that are left.

    Without an answer those are the plans that the best one is among. With one they are the plans that are
    proved to be within epsilon of the best.
    """
    standing, problem, policy = state.standing(), state.problem, state.setup.policy
    if state.plan is not None:
        also = also_good(problem, policy, standing)
        good = tuple(problem.name_of(plan) or "" for plan in standing.good)
        return {} if also is None else {"good": good, "among": also}
    if standing.remaining is None:
        return {}
    return {
        "n_remaining": len(standing.remaining),
        "remaining": tuple(named(problem, standing, MOST_NAMED)),
        "among": among(problem, policy, standing),
    }


def assumption_of(state: SessionState) -> str:
    """Return what the guarantee assumes of the noise, and of what people chose."""
    guarantee = guarantee_of(state)
    found = [guarantee.assumption + guarantee.besides]
    if n := state.n_lost:
        found.append(
            f"{how_many(n, 'measurement was', 'measurements were')} lost, whatever the value would be"
        )
    if n := state.n_extra_used:
        were = how_many(n, "extra measurement was", "extra measurements were")
        found.append(f"{were} recorded whatever the value")
    if n := state.n_removed:
        were = how_many(n, "removed value was", "removed values were")
        found.append(f"{were} no measurement, and not removed for size")
    if state.problem.mean_bounds is not None:
        found.append("the means that were stated as known")
    n_ahead = {
        "the final batch": 0 if state.final is None else state.final.n_ahead,
        "the plans that were added": max((event.n_ahead for event in state.added), default=0),
        "extensions": max((one["n_ahead"] for one in state.extensions), default=0),
    }
    for what, n in n_ahead.items():
        if n:
            ahead = how_many(n, "value that waited", "values that waited")
            found.append(f"{what} did not depend on {ahead} for a batch")
    return "; ".join(filter(None, found))
