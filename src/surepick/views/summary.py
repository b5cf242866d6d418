"""A session in one sentence, its state, and what somebody should know before believing it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from surepick.core.estimates import between, estimate
from surepick.core.guarantee import Doubt, Promise, no_guarantee
from surepick.core.oracle_problem import AnyProblem
from surepick.core.plan_words import also_good, among, value_of
from surepick.core.policy import delta_of
from surepick.core.sensitivity import estimated_call, turn
from surepick.core.wording import how_many, plural, shortened
from surepick.simulation.outcome import Status
from surepick.views.look import Look
from surepick.views.text import duration

MOST_NAMED = 5  # implausible values
LONGEST_NAME = 80  # letters of a plan in a sentence about the lead; the whole of it is shown elsewhere
NEAR_TIE = 0.05  # of the difference between the best plan and the worst


class State(enum.StrEnum):
    """What a session is doing."""

    RUNNING = "running"
    CONFIDENT = "confident"
    DONE = "done"  # the policy has answered, and has no guarantee
    BUDGET_SPENT = "budget spent"
    CLOSED = "closed"


@dataclass(frozen=True)
class Warning:
    """Something that a person should know; `kind` says what it is about."""

    kind: str  # "noise", "value", "voided", "listing", "tie", "worker", "promise", "machine", "budget" ...
    text: str


@dataclass(frozen=True)
class Summary:
    """Where a session stands, the answer so far first."""

    session: str
    state: str
    trusted: bool  # whether nothing contradicts the assumption of the guarantee
    doubts: tuple[Doubt, ...]
    sentence: str
    answer: str | None  # the name of the plan, once the session is confident
    lead: str | None
    rival: str | None
    runner_up: str | None  # the best after the lead by the estimates; the rival is the hardest to rule out
    title: str
    unit: str  # of a measurement and of a plan's value
    value: float | None  # of the lead, by the estimates
    value_error: float | None  # its standard deviation
    risk: float | None  # an anytime p-value of the lead, to compare with delta, where the policy has one
    confidence: float | None
    among: str | None  # which plans the best one is among, or which others are good enough; proved
    n_remaining: int | None  # how many these are
    chance: float | None  # an estimate of the probability that the lead is the best plan
    expected_loss: float | None  # an estimate of how much the lead loses against the best plan
    what_if: str | None  # what would have to be true for the runner-up to win, by the estimates
    toward: float | None  # the share of the evidence that is needed, on the scale of logarithms
    guarantee: str
    assumption: str
    policy: str
    delta: float
    epsilon: float
    n_measurements: int  # that the policy has seen
    n_told: int
    n_unasked: int
    n_unasked_counted: int
    n_missing: int
    n_rounds: int
    n_plans: int | None
    n_arms: int
    measured: str  # "9 arms", or "3 probes with 7 readings"
    cost: float
    budget: int | None
    created_at: float
    decided_at: float | None
    position: int  # events in the log
    checksum: str
    is_past: bool
    warnings: tuple[Warning, ...]

    @property
    def is_proved(self) -> bool:
        """Whether its answer comes with a promise that has a proof."""
        return Promise.read(self.guarantee).proved

    @property
    def promised(self) -> str:
        """The guarantee of its answer; none where it ended without one, or values contradict it."""
        if not self.trusted:
            return f"does not apply: {self.guarantee}"
        if self.state not in (State.BUDGET_SPENT, State.CLOSED):
            return self.guarantee
        bound = "; the confidence above is proved all the same" if self.confidence is not None else ""
        return f"none: it ended before {self.policy} was confident{bound}"

    @property
    def n_waiting(self) -> int:
        """Measurements in a round that is not complete, so that the policy has not seen them."""
        if self.state != State.RUNNING:
            return 0
        return max(0, self.n_told - (self.n_measurements - self.n_unasked_counted))

    @property
    def no_confidence(self) -> str:
        """Why there is no proved confidence, in words, where there is none."""
        if self.lead is None:
            return "nothing leads yet"
        if not self.trusted:
            return "the guarantee does not apply"
        if not self.is_proved:
            return f"{self.policy} has no guarantee"
        return f"{self.policy} has a bound only at its end"


def summary(look: Look) -> Summary:
    """Where the session stands.

    >>> import surepick as sp
    >>> from surepick.views import look
    >>> problem = sp.Problem([[1, 0], [0, 1]], plan_names=["road", "rail"], noise=1, goal="largest")
    >>> session = sp.Session.create("memory://", "trips", problem, policy=sp.CombGapE())
    >>> summary(look(session)).sentence
    'Nothing is measured yet: 2 plans, 2 arms.'
    """
    standing = look.standing
    weight, guess = look.weigh(), estimate(look.problem, look.evidence, look.lead)
    value, error = (look.lead is not None and value_of(look.problem, look.lead, look.evidence)) or (
        None,
        None,
    )
    return Summary(
        session=look.session,
        state=str(state_of(look)),
        trusted=not look.doubts,
        doubts=look.doubts,
        sentence=sentence(look),
        answer=look.name_of(look.answer),
        lead=look.name_of(look.lead),
        rival=look.name_of(look.rival),
        runner_up=look.name_of(look.runner_up),
        title=look.title,
        unit=look.problem.about.unit,
        value=value,
        value_error=error,
        risk=standing.risk,
        confidence=None if standing.risk is None or look.doubts else 1.0 - standing.risk,
        among=_among(look),
        n_remaining=None if standing.remaining is None else len(standing.remaining),
        chance=None if guess is None else guess.chance,
        expected_loss=None if guess is None else guess.expected_loss,
        what_if=_what_if(look),
        toward=None if weight is None else weight.toward,
        guarantee=look.promise.text,
        assumption=_assumption(look),
        policy=f"{look.policy.name} version {look.policy.version}",
        delta=delta_of(look.policy),
        epsilon=look.epsilon,
        n_measurements=look.n_used,
        n_told=look.n_told,
        n_unasked=look.n_unasked,
        n_unasked_counted=look.n_unasked_counted,
        n_missing=look.n_missing,
        n_rounds=look.n_rounds,
        n_plans=look.problem.n_plans,
        n_arms=look.problem.n_arms,
        measured=_ways(look.problem),
        cost=look.cost,
        budget=look.budget,
        created_at=look.created_at,
        decided_at=look.decided_at,
        position=look.head.position,
        checksum=look.head.checksum,
        is_past=look.is_past,
        warnings=warnings(look),
    )


def state_of(look: Look) -> State:
    """What the session is doing now."""
    return State.RUNNING if look.status is None else State(str(look.status))


def sentence(look: Look) -> str:
    """The answer so far, for people."""
    after = how_many(look.n_used, "measurement")
    lead = look.called(look.lead)
    if look.doubts and lead is not None:
        return f"“{shortened(lead, LONGEST_NAME)}” leads; {no_guarantee(look.doubts)}."
    if look.status in (Status.CONFIDENT, Status.DONE):
        return f"“{lead}” is {_claim(look)}; {after} {plural(look.n_used, 'was', 'were')} enough."
    if look.status is Status.BUDGET_SPENT:
        return f"Not confident: the budget was spent after {after}. {_best_guess(look)}"
    if look.status is Status.CLOSED:
        return f"Closed by hand after {after}. {_best_guess(look)}"
    if lead is None or look.n_used == 0:
        return _nothing_yet(look)
    return f"“{shortened(lead, LONGEST_NAME)}” leads after {after}; {_doubt(look)}."


def _claim(look: Look) -> str:
    if not look.promise.proved:
        return "the answer, without a guarantee"
    return look.promise.goal


def _best_guess(look: Look) -> str:
    """Return who leads where there is no answer, and its risk where the policy has one."""
    lead, risk = look.called(look.lead), look.standing.risk
    if lead is None:
        return "Nothing leads yet."
    if risk is None or risk >= 1.0:
        missing = "there is no guarantee" if _among(look) is None else "that it is the best is not proved"
        return f"“{lead}” leads, but {missing}."
    return f"“{lead}” leads with a risk of {risk:.2g}; an answer needs {look.delta:g}."


def _among(look: Look) -> str | None:
    """Which plans the best one is among; beside an answer, which others are good enough."""
    if not look.promise.proved:
        return None
    say = also_good if look.status is Status.CONFIDENT else among
    found = say(look.problem, look.policy, look.standing)
    if found is not None and look.doubts:
        found = f"would be proved if the noise were as assumed: {found}"
    return None if found is None else f"{found[0].upper()}{found[1:]}."


def _what_if(look: Look) -> str | None:
    """What would have to be true for the runner-up to win, or the closest call; None where none is known."""
    unit = look.problem.about.unit
    if look.answer is None and not look.epsilon:
        call = estimated_call(look.problem, look.lead, look.evidence)
        if call is not None:
            words = call.sentence(unit)
            return f"{words[0].upper()}{words[1:]}."
    found = turn(look.problem, look.evidence, look.lead, look.runner_up)
    return None if found is None else f"{found.sentence(unit)}."


def _nothing_yet(look: Look) -> str:
    """What there is before the policy has seen a value; a plan may be ahead by what was thought before."""
    lead = look.called(look.lead)
    ahead = "" if lead is None else f"; by the guess “{shortened(lead, LONGEST_NAME)}” is ahead"
    if look.n_told:
        missing = how_many(look.n_missing, "measurement is", "measurements are")
        return f"The first round is not complete: {missing} missing{ahead}."
    problem = look.problem
    plans = f"{how_many(problem.n_plans, 'plan')}," if problem.is_listed else f"{problem.completeness};"
    return f"Nothing is measured yet: {plans} {_ways(problem)}{ahead}."


def _ways(problem: AnyProblem) -> str:
    if problem.probes is not None:
        return problem.probes.summary
    arms = how_many(problem.n_arms, "arm")
    return f"{arms}, read by plays of whole plans" if problem.plays else arms


def _doubt(look: Look) -> str:
    standing = look.standing
    named = look.called(look.rival)
    rival = None if named is None else shortened(named, LONGEST_NAME)
    if standing.risk is not None:
        if standing.risk >= 1.0:
            return f"nothing rules out “{rival}” yet" if rival else "nothing is ruled out yet"
        return f"its risk is {standing.risk:.2g}, an answer needs {look.delta:g}"
    if rival is None or look.lead is None or look.rival is None:
        return "not confident yet"
    gap, _ = between(look.problem, look.lead, look.rival, look.evidence)
    enough = None if standing.radius is None else standing.radius - look.epsilon
    needed = "" if enough is None else f"; {look.policy.name} is confident when that exceeds {enough:.3g}"
    return f"it is ahead of “{rival}” by {gap:.3g}{needed}"


def _assumption(look: Look) -> str:
    known = look.problem.noise_scale is not None
    return "noise scale given or learned" if known else "noise scale unknown"


def warnings(look: Look) -> tuple[Warning, ...]:
    """What a person should know, the gravest first."""
    found = [Warning("noise", str(doubt) + ".") for doubt in look.doubts]
    found += [
        *_of_values(look),
        *_of_listing(look),
        *_of_promise(look),
        *_of_tie(look),
        *_of_budget(look),
        *_of_workers(look),
        *_of_decisions(look),
    ]
    return tuple(found)


def _of_values(look: Look) -> list[Warning]:
    """Values that nobody expected, and those that were taken back."""
    names, unit = look.problem.arm_names, f" {look.problem.about.unit}" if look.problem.about.unit else ""
    odd = [
        f"{names[arm]} = {value:.6g}{unit} ({'token' if '.' in name else 'event'} {name})"
        for arm, name, value in look.doubtful
    ]
    found = []
    if odd:
        listed = ", ".join(odd[:MOST_NAMED]) + (" and more" if len(odd) > MOST_NAMED else "")
        what = plural(len(odd), "One recorded value is", "Some recorded values are")
        how = "take back what was a mistake (`surepick void`); what is right stays"
        found.append(Warning("value", f"{what} not plausible: {listed}. If need be, {how}."))
    if look.n_voided:
        values = how_many(look.n_voided, "value was", "values were")
        it = plural(
            look.n_voided,
            f"it was no measurement of its {look.problem.probe_word}",
            f"they were no measurements of their {look.problem.probe_word}s",
        )
        found.append(Warning("voided", f"{values} removed. The guarantee assumes that {it}."))
    return found


def _of_listing(look: Look) -> list[Warning]:
    listing = look.problem.about.listing
    text = None if listing is None else listing.warning(delta_of(look.policy))
    return [] if text is None else [Warning("listing", f"{text[0].upper()}{text[1:]}.")]


def _of_promise(look: Look) -> list[Warning]:
    if look.promise.proved:
        return []
    return [Warning("promise", f"{look.policy.name} has no guarantee: {look.promise.reason}.")]


def _of_tie(look: Look) -> list[Warning]:
    """A rival that cannot be told from the lead, although their difference is known to be small."""
    if look.status is not None or look.gaps is None:
        return []
    k, gap, error = int(look.rival_order[0]), look.gaps.gap, look.gaps.error
    most, whole = abs(float(gap[k])) + 2 * float(error[k]), float(gap.max())
    if abs(gap[k]) > 2 * error[k] or not look.epsilon < most < NEAR_TIE * whole:
        return []
    names = f"“{look.name_of(look.lead)}” and “{look.name_of(k)}”"
    return [
        Warning(
            "tie",
            f"{names} are close to a tie: they differ by at most about {most:.2g}, and the worst plan is "
            f"behind by {whole:.2g}. Telling them apart may take very long; a session with an epsilon of "
            f"{most:.1g} would end when the rest is settled.",
        )
    ]


def _of_budget(look: Look) -> list[Warning]:
    if look.budget is None or look.status is not None or look.n_used < 0.9 * look.budget:
        return []
    left, all_of_them = look.budget - look.n_used, how_many(look.budget, "measurement")
    return [Warning("budget", f"{left:,} of {all_of_them} {plural(left, 'is', 'are')} left in the budget.")]


def _of_workers(look: Look) -> list[Warning]:
    if look.status is not None:
        return []
    ends: dict[str, float] = {}
    for lease in look.leases:
        ends[lease.worker] = max(ends.get(lease.worker, 0.0), lease.expires)
    return [
        Warning(
            "worker",
            f"{_who(worker)} took a measurement and did not come back: the lease ended "
            f"{duration(look.now - end)} ago. It is handed out again.",
        )
        for worker, end in sorted(ends.items())
        if end <= look.now
    ]


def _who(worker: str) -> str:
    return f"Worker “{worker}”" if worker else "A worker without a name"


def _of_decisions(look: Look) -> list[Warning]:
    found = []
    if look.surprises:
        found.append(
            Warning(
                "machine",
                f"In {how_many(len(look.surprises), 'round')}, first in {look.surprises[0]}, the log has "
                "another decision than this machine would take; the log is right, and "
                "`surepick verify` says more.",
            )
        )
    if look.status is None and not look.is_past and not look.missing:
        found.append(
            Warning("decision", "The round is complete; the next decision is made when somebody asks.")
        )
    return found
