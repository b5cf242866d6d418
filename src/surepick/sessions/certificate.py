"""Certificates: what a session found and what it rests on; `verify` checks them against the log."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick._version import __version__
from surepick.core.among import among, named
from surepick.core.arrays import FloatArray
from surepick.core.evidence import Evidence
from surepick.core.oracle_problem import AnyProblem, OracleProblem, counted
from surepick.core.plan_sets import plan_set
from surepick.core.policy import Answer, epsilon_of
from surepick.core.problem import Problem
from surepick.core.promise import Promise
from surepick.core.wording import how_many, plural
from surepick.errors import ProblemError
from surepick.sessions import codec
from surepick.sessions.ledger import Ledger
from surepick.sessions.noise_check import NoiseFinding, check_noise
from surepick.sessions.settings import Setup
from surepick.simulation.outcome import Status
from surepick.store import Event

MOST_RIVALS = 100  # the closest ones; the others are further away
NEWER = ("lead_name", "risk", "n_remaining", "remaining", "among")  # keys that certificates once did not have


@dataclass(frozen=True)
class Rival:
    """How far a plan is behind the answer, by the measurements that were used.

    `gap` is the estimated difference in value, larger is further behind; `error` is its standard deviation
    under the noise scale. They show the evidence; what is promised is the certificate's `guarantee`.
    """

    plan: Answer
    plan_name: str
    gap: float
    error: float


@dataclass(frozen=True)
class Certificate:
    """The end of a session with everything that it rests on."""

    session: str
    status: str
    plan: Answer | None
    plan_name: str | None
    delta: float
    epsilon: float
    guarantee: str
    policy: Mapping[str, Any]
    seed: int
    noise: str
    noise_scale: tuple[float, ...]
    noise_findings: tuple[NoiseFinding, ...]
    counts: Mapping[str, int]  # by arm
    means: Mapping[str, float | None]
    n_measurements: int
    n_rounds: int
    n_unasked: int
    n_unasked_counted: int
    rivals: tuple[Rival, ...]
    problem: str  # its fingerprint: SHA-256, or 16 digits of it in logs with short checksums
    log_position: int
    log_checksum: str
    surepick: str = __version__
    # Without an answer: the lead and its risk, how many plans the best is among, up to delta, and the first.
    lead_name: str | None = None
    risk: float | None = None
    n_remaining: int | None = None
    remaining: tuple[str, ...] | None = None
    among: str | None = None  # the same as a sentence

    @property
    def is_confident(self) -> bool:
        """Whether it promises anything."""
        return self.status == Status.CONFIDENT and Promise.read(self.guarantee).proved

    def to_json(self) -> dict[str, Any]:
        """As JSON values; what is not known of a session without an answer is left out, as of all others."""
        data = {"format": codec.FORMAT, **dataclasses.asdict(self)}
        return {key: value for key, value in data.items() if value is not None or key not in NEWER}

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def certify(name: str, ledger: Ledger, end: Event) -> Certificate:
    """The certificate of a session that ended with this event."""
    problem, setup, status = ledger.problem, ledger.setup, ledger.status
    assert status is not None
    lead = ledger.standing().lead if ledger.plan is None else ledger.plan
    scale = problem.noise_scale
    return Certificate(
        session=name,
        status=str(status),
        plan=ledger.plan,
        plan_name=problem.name_of(ledger.plan),
        delta=setup.policy.delta,
        epsilon=epsilon_of(setup.policy),
        guarantee=Promise.of(setup.policy, setup.problem).text
        if status is Status.CONFIDENT
        else Promise.none(str(status)).text,
        policy=codec.policy_to_json(setup.policy),
        seed=setup.seed,
        noise=_noise_assumption(setup, ledger),
        noise_scale=() if scale is None else tuple(scale.tolist()),
        noise_findings=check_noise(problem, ledger.run.moments) if setup.pilot is None else (),
        counts=dict(zip(problem.arm_names, ledger.evidence.counts.tolist(), strict=True)),
        means={
            n: codec.finite_or_none(m)
            for n, m in zip(problem.arm_names, ledger.evidence.means.tolist(), strict=True)
        },
        n_measurements=ledger.n_measurements,
        n_rounds=ledger.n_rounds,
        n_unasked=ledger.n_unasked,
        n_unasked_counted=ledger.run.n_unasked_counted,
        rivals=_rivals(ledger, lead),
        problem=codec.fingerprint(
            codec.problem_to_json(setup.problem), codec.SHORT if end.is_old else codec.FULL
        ),
        log_position=end.position,
        log_checksum=end.checksum,
        **({} if ledger.plan is not None else _without_answer(ledger)),
    )


def _without_answer(ledger: Ledger) -> dict[str, Any]:
    """What is proved all the same, where the policy proves anything at every moment."""
    standing, problem = ledger.standing(), ledger.problem
    found: dict[str, Any] = {"lead_name": problem.name_of(standing.lead), "risk": standing.risk}
    if standing.remaining is not None:
        found["n_remaining"] = len(standing.remaining)
        found["remaining"] = tuple(named(problem, standing, MOST_RIVALS))
        found["among"] = among(problem, ledger.setup.policy, standing)
    return found


def _rivals(ledger: Ledger, lead: Answer | None) -> tuple[Rival, ...]:
    """The closest plans to the lead: of all where they are listed, else the best without each of its arms."""
    if lead is None:
        return ()
    problem, evidence = ledger.problem, ledger.evidence
    if not problem.is_listed:
        return unlisted_rivals(problem, evidence, lead)[:MOST_RIVALS] if problem.has_oracle else ()
    assert isinstance(lead, int)
    return rivals_of(problem, evidence, lead)[:MOST_RIVALS]


def rivals_of(problem: Problem, evidence: Evidence, lead: int) -> tuple[Rival, ...]:
    """Every other plan, the closest first: by its gap to the lead in units of the gap's error."""
    gap, error = _against(problem, lead, *_estimates(problem, evidence))
    distance = np.divide(gap, error, out=np.full(len(gap), np.inf), where=error > 0)
    distance[lead] = np.inf
    order = np.argsort(distance, kind="stable")
    names = problem.plan_names
    return tuple(Rival(int(k), names[k], float(gap[k]), float(error[k])) for k in order if k != lead)


def unlisted_rivals(problem: OracleProblem, evidence: Evidence, lead: Answer) -> tuple[Rival, ...]:
    """For each arm the plan that looks best of those that differ from the lead there, the closest first.

    >>> from surepick.problems import top_k_family
    >>> problem = top_k_family(["tea", "coffee", "cocoa"], 2).oracle_problem()
    >>> evidence = Evidence(np.array([9, 9, 9]), np.array([27.0, 18.0, 9.0]))
    >>> [(rival.plan_name, rival.gap) for rival in unlisted_rivals(problem, evidence, (1.0, 1.0, 0.0))]
    [('tea + cocoa', 1.0), ('coffee + cocoa', 2.0)]
    """
    means, variance = _estimates(problem, evidence)
    sign = -1.0 if problem.minimize else 1.0
    found = []
    for plan in dict.fromkeys(_best_apart(problem, means, sign * problem.vector(lead))):
        ahead = problem.vector(lead) - problem.vector(plan)
        gap, error = sign * float(ahead @ means), float(np.sqrt(ahead**2 @ variance))
        found.append(Rival(plan, problem.name_of(plan) or "", gap, error))
    return tuple(sorted(found, key=lambda rival: rival.gap / rival.error if rival.error > 0 else np.inf))


def _best_apart(problem: OracleProblem, means: FloatArray, lead: FloatArray) -> Iterator[tuple[float, ...]]:
    """For each arm the best plan under these means with less, and with more, of it than the lead has."""
    plans = plan_set(problem)
    everything = plans.everything()
    try:
        for arm, value in enumerate(lead.tolist()):
            for part in everything.apart(arm, value, plans.step):
                plan = plans.best(means, part)
                if plan is not None:
                    answer = plans.answer(plan)
                    assert isinstance(answer, tuple)
                    yield answer
    except ProblemError:
        return  # plans of a kind that cannot be asked for by branches


def _estimates(problem: AnyProblem, evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """Mean of each arm and its variance; zero for an arm that was not measured."""
    seen = evidence.counts > 0
    means = np.where(seen, np.nan_to_num(evidence.means), 0.0)
    scale = np.ones(problem.n_arms) if problem.noise_scale is None else problem.noise_scale
    return means, np.where(seen, scale**2 / np.maximum(evidence.counts, 1), 0.0)


def _against(
    problem: Problem, lead: int, means: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Gap of every plan to the lead, and its standard deviation (the square multiplied out)."""
    plans: Any = problem.oriented
    row = plans[lead] if isinstance(plans, np.ndarray) else plans[[lead]].toarray()[0]
    squares = plans**2 if isinstance(plans, np.ndarray) else plans.multiply(plans)
    gap = float(row @ means) - np.asarray(plans @ means)
    spread = float(row**2 @ variance) - 2.0 * np.asarray(plans @ (row * variance)) + squares @ variance
    return gap, np.sqrt(np.maximum(spread, 0.0))


def _noise_assumption(setup: Setup, ledger: Ledger) -> str:
    return _noise(setup, ledger) + (_recorded_assumption(ledger) if ledger.run.n_unasked_counted else "")


def _noise(setup: Setup, ledger: Ledger) -> str:
    if setup.problem.bounds is not None:
        return (
            "independent measurements that lie within the given bounds, and so have sub-Gaussian noise with "
            "half of their width as its scale"
        )
    if setup.pilot is None:
        return "independent measurements with sub-Gaussian noise of the given scale"
    pooled = ", one scale for all arms" if setup.pilot.pooled else ""
    return (
        f"independent measurements with Gaussian noise of unknown scale{pooled}; bounded from a pilot of "
        f"{setup.pilot.size} measurements per arm at {setup.pilot.share:g} of delta, the policy ran with "
        f"delta = {ledger.run.policy.delta:.4g}"
    )


def _recorded_assumption(ledger: Ledger) -> str:
    n = ledger.run.n_unasked_counted
    made, value = plural(n, "it was", "they were"), plural(n, "its value", "their values")
    return (
        f"; {n} {plural(n, 'measurement')} that nobody asked for {plural(n, 'is', 'are')} counted: whether "
        f"{made} made and recorded did not depend on {value}, nor on others that the policy had not read"
    )


def _lines(certificate: Certificate) -> list[str]:
    sure = certificate.is_confident
    none = "none: nothing is promised" if certificate.among is None else "none yet, but:"
    n_unasked, n_counted = certificate.n_unasked, certificate.n_unasked_counted
    are = plural(n_counted, "is", "are")
    unasked = f"; of {how_many(n_unasked, 'unasked one')} {n_counted:,} {are} counted" if n_unasked else ""
    measured = how_many(certificate.n_measurements, "measurement")
    lines = [
        f"session      {certificate.session}: {certificate.status}",
        f"answer       {certificate.plan_name if sure else none}",
        f"guarantee    {certificate.guarantee}",
        f"assumes      {certificate.noise}",
        f"policy       {certificate.policy['name']} version {certificate.policy['version']}",
        f"settings     delta {certificate.delta:g}, epsilon {certificate.epsilon:g}, seed {certificate.seed}",
        f"rests on     {measured} in {how_many(certificate.n_rounds, 'round')}{unasked}",
        f"log          {how_many(certificate.log_position, 'event')}, fingerprint {certificate.log_checksum}",
    ]
    if certificate.among is not None:
        lines.insert(2, f"proved       {certificate.among}")
    lines += [
        f"rival        {_against_answer(certificate, rival)}: behind by {rival.gap:.4g} +- {rival.error:.4g}"
        for rival in certificate.rivals[:5]
    ]
    return lines + [f"warning      {finding}" for finding in certificate.noise_findings]


def _against_answer(certificate: Certificate, rival: Rival) -> str:
    """The rival's name; where plans are vectors, what it has that the answer has not, which is shorter."""
    if not isinstance(rival.plan, tuple) or not isinstance(certificate.plan, tuple):
        return rival.plan_name
    more = np.array(rival.plan) - np.array(certificate.plan)
    arms = list(certificate.counts)
    gained, lost = counted(arms, np.maximum(more, 0.0)), counted(arms, np.maximum(-more, 0.0))
    return f"{gained} instead of {lost}"
