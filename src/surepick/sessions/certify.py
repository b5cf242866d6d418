"""Make the certificate of a session from its ledger; `verify` makes it again and compares."""

from __future__ import annotations

import dataclasses
from typing import Any

from surepick.certificates.certificate import Certificate
from surepick.certificates.rivals import MOST_RIVALS, Rival, rivals_of, unlisted_rivals
from surepick.core.estimates import behind_by, closest_first, runner_up
from surepick.core.guarantee import Promise, learns_variance
from surepick.core.measurable import BOUNDED_VARIANCE
from surepick.core.plan_words import also_good, among, amounts, named, value_of
from surepick.core.policy import delta_of, epsilon_of
from surepick.core.run import Answer
from surepick.core.wording import how_many, plural
from surepick.noise.check import could_have_seen
from surepick.sessions import codec
from surepick.sessions.arriving import added_assumption
from surepick.sessions.ledger import Ledger
from surepick.sessions.settings import Setup
from surepick.store import Event


def certify(name: str, ledger: Ledger, end: Event) -> Certificate:
    """The certificate of a session that ended with this event."""
    problem, setup, status = ledger.problem, ledger.setup, ledger.status
    assert status is not None
    standing = ledger.standing()
    lead = standing.lead if ledger.plan is None else ledger.plan
    listing = problem.about.listing
    closest, second = (None, None) if lead is None else _closest_and_second(ledger, lead)
    scale = problem.noise_scale
    shared = {} if problem.probes is None else problem.probes.covariances
    return Certificate(
        session=name,
        status=str(status),
        plan=ledger.plan,
        plan_name=problem.name_of(ledger.plan),
        delta=delta_of(setup.policy),
        epsilon=epsilon_of(setup.policy),
        guarantee=promised(ledger).text if ledger.plan is not None else Promise.none(str(status)).text,
        policy=codec.policy_to_json(setup.policy),
        seed=setup.seed,
        noise=assumption_of(ledger),
        noise_scale=() if scale is None else tuple(scale.tolist()),
        doubts=ledger.doubts(),
        noise_check=could_have_seen(problem, ledger.run.seen.noise),
        counts=dict(zip(problem.counted_names, ledger.evidence.counts.tolist(), strict=True)),
        means={
            n: codec.finite_or_none(m)
            for n, m in zip(problem.reading_names, ledger.evidence.means.tolist(), strict=True)
        },
        n_measurements=ledger.n_measurements,
        n_rounds=ledger.n_rounds,
        n_unasked=ledger.n_unasked,
        n_unasked_counted=ledger.run.n_unasked_counted,
        rivals=_rivals(ledger, lead),
        problem=codec.fingerprint(codec.problem_to_json(setup.problem)),
        log_position=end.position,
        log_checksum=end.checksum,
        title=problem.about.title,
        unit=problem.about.unit,
        lead=lead,
        lead_name=problem.name_of(lead),
        lead_amounts=None if lead is None else amounts(problem, lead),
        lead_value=None if lead is None else value_of(problem, lead, ledger.evidence),
        risk=codec.finite_or_none(standing.risk),
        closest_rival=problem.name_of(closest),
        runner_up=problem.name_of(second),
        n_voided=ledger.n_voided,
        first_delta=ledger.first_delta,
        extensions=tuple(
            {name: value for name, value in one.items() if name != "n_ahead"} for one in ledger.extensions
        ),
        covariances={problem.probe_names[o]: matrix.tolist() for o, matrix in shared.items()},
        knows_plans=problem.is_listed or problem.has_oracle,
        listing=None if listing is None else dataclasses.asdict(listing),
        last_call=None if ledger.run.called is None else ledger.run.called["n"],
        past=_worth(setup),
        added=tuple(body["name"] for body in ledger.arrived) or None,
        proof=None if ledger.plan is None else ledger.run.proof(),
        **(_remaining(ledger) if ledger.plan is None else _good(ledger)),
    )


def _worth(setup: Setup) -> dict[str, float] | None:
    """How many measurements of each arm the past counted as."""
    if setup.past is None:
        return None
    return dict(zip(setup.problem.arm_names, setup.past.worth.tolist(), strict=True))


def promised(ledger: Ledger) -> Promise:
    """What the policy promises on the problem as it was given, after a last call for Gaussian noise too."""
    setup, called = ledger.setup, ledger.run.called
    return Promise.of(setup.policy, setup.problem).if_gaussian(called is not None and called["gaussian"])


def _remaining(ledger: Ledger) -> dict[str, Any]:
    """The plans that the best one is among, where the policy proves that at every moment."""
    standing, problem = ledger.standing(), ledger.problem
    if standing.remaining is None:
        return {}
    return {
        "n_remaining": len(standing.remaining),
        "remaining": tuple(named(problem, standing, MOST_RIVALS)),
        "among": among(problem, ledger.setup.policy, standing),
    }


def _good(ledger: Ledger) -> dict[str, Any]:
    """The plans that are proved to be within epsilon of the best, where there are others than the answer."""
    standing, problem = ledger.standing(), ledger.problem
    also = also_good(problem, ledger.setup.policy, standing)
    if also is None:
        return {}
    return {"good": tuple(problem.name_of(plan) or "" for plan in standing.good), "among": also}


def _closest_and_second(ledger: Ledger, lead: Answer) -> tuple[Answer | None, Answer | None]:
    """The rival that is hardest to rule out, and the one that looks best; the latter of listed plans only."""
    problem, evidence = ledger.problem, ledger.evidence
    if not problem.is_listed:
        rival = ledger.standing().rival
        return (None if rival == lead else rival), None
    assert isinstance(lead, int)
    gap, error = behind_by(problem, lead, evidence)
    return int(closest_first(lead, gap, error, ledger.run.log_evidence())[0]), runner_up(lead, gap)


def _rivals(ledger: Ledger, lead: Answer | None) -> tuple[Rival, ...]:
    """The closest plans to the lead: of all where they are listed, else the best without each of its arms."""
    if lead is None:
        return ()
    problem, evidence = ledger.problem, ledger.evidence
    if not problem.is_listed:
        return unlisted_rivals(problem, evidence, lead)[:MOST_RIVALS] if problem.has_oracle else ()
    assert isinstance(lead, int)
    return rivals_of(problem, evidence, lead)[:MOST_RIVALS]


def assumption_of(ledger: Ledger) -> str:
    """Return what the guarantee assumes of the noise, and of what people chose."""
    unasked = _recorded_assumption(ledger) if ledger.run.n_unasked_counted else ""
    voided = _voided_assumption(ledger) if ledger.n_voided else ""
    known = "; the means that were stated as known" if ledger.setup.problem.mean_bounds is not None else ""
    chosen = (
        known + _called_assumption(ledger) + added_assumption(ledger.arrived) + _extended_assumption(ledger)
    )
    return _noise(ledger.setup, ledger) + _use_assumption(ledger) + unasked + voided + chosen


def _use_assumption(ledger: Ledger) -> str:
    """What has to be assumed of the readings of one use, and of those that were lost."""
    problem, n_lost = ledger.setup.problem, ledger.n_lost
    if not problem.plays and (problem.probes is None or not problem.probes.share_uses):
        return ""
    lost = how_many(n_lost, "measurement", "measurements")
    words = f"; in {lost} readings were lost, whatever they would have been" if n_lost else ""
    if problem.probes is None:
        return f"; readings of one play are independent too{words}"
    if problem.probes.unknown:
        return words
    if problem.probes.covariances:
        return f"; readings of one use have the given covariance, others are independent{words}"
    return words if problem.loses_whole_uses else f"; readings of one use are independent too{words}"


def _noise(setup: Setup, ledger: Ledger) -> str:
    if learns_variance(setup.policy, setup.problem):
        return (
            "measurements that lie within the given bounds, each with the mean of its arm given those before "
            "it; nothing is assumed of their variance and distribution"
        )
    if setup.problem.bounds is not None:
        return (
            "independent measurements that lie within the given bounds, and so have sub-Gaussian noise with "
            "half of their width as its scale"
        )
    if setup.problem.probes is not None and setup.problem.probes.unknown:
        return (
            "independent uses of probes with Gaussian noise, whatever its scales are and however the "
            "readings of one use depend on each other; nothing rests on the noise that was guessed"
        )
    if setup.problem.noise_kind == BOUNDED_VARIANCE:
        return "independent measurements with noise whose standard deviation is at most the given scale"
    if setup.problem.noise_scale is None:
        return "independent measurements with Gaussian noise of unknown scale, the same in every measurement"
    called = ledger.run.called
    kind = "Gaussian" if called is not None and called["gaussian"] else "sub-Gaussian"
    return f"independent measurements with {kind} noise of the given scale"


def _voided_assumption(ledger: Ledger) -> str:
    n = ledger.n_voided
    what = plural(
        n, "was taken back, which was no measurement", "were taken back, which were no measurements"
    )
    return f"; {n} told {plural(n, 'value')} {what} of the arm, and not for {plural(n, 'its', 'their')} size"


def _recorded_assumption(ledger: Ledger) -> str:
    n = ledger.run.n_unasked_counted
    made, value = plural(n, "it was", "they were"), plural(n, "its value", "their values")
    return (
        f"; {n} {plural(n, 'measurement')} that nobody asked for {plural(n, 'is', 'are')} counted: whether "
        f"{made} made and recorded did not depend on {value}, nor on others that the policy had not read"
    )


def _called_assumption(ledger: Ledger) -> str:
    """What has to be assumed of a last call that was made while values had been told ahead."""
    n = 0 if ledger.run.called is None else ledger.run.called["n_ahead"]
    if not n:
        return ""
    told = how_many(n, "value that was", "values that were")
    return f"; whether and when the last call was made did not depend on {told} told ahead of the round"


def _extended_assumption(ledger: Ledger) -> str:
    """Return what has to be assumed of extensions that were made while values had been recorded ahead."""
    n = max((one["n_ahead"] for one in ledger.extensions), default=0)
    if not n:
        return ""
    ahead = how_many(n, "value that was", "values that were")
    return f"; whether, when and how it was extended did not depend on {ahead} recorded ahead of the round"
