"""Build the View of a session from one look at it: the only place that words states, claims and bets."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from surepick.core import guarantee as assumptions
from surepick.core.answers import amounts, called, named_ranging, value_of, whole_plan
from surepick.core.evidence import between, estimate
from surepick.core.guarantee import Guarantee
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import OwnQuestion
from surepick.core.wording import first_of, how_many, shortened
from surepick.sessions.session import Session
from surepick.sessions.streams import Place
from surepick.views.look import Look, roles_of
from surepick.views.numbers import chance, count, day, duration, iso, odds, span, value
from surepick.views.view import (
    BUDGET_SPENT,
    CLOSED,
    CONFIDENT,
    LEADER,
    MOST_LISTED,
    OPEN,
    RULED_OUT,
    RUNNING,
    TIED,
    ArmRow,
    Assigned,
    Bet,
    HeadOfLog,
    Next,
    Open,
    PlanRow,
    Proved,
    Remark,
    View,
    upper,
)

LONGEST_NAME = 80  # letters of a plan in a sentence
NEAR_TIE = 0.05  # of the difference between the best plan and the worst
LARGEST_LOG = 700.0  # of a wealth that is a number
LITTLE_LEFT = 0.9  # of the budget


def build(session: Session) -> View:
    """Return the View of the session now; no other thread changes the session meanwhile."""
    with session.journal.held_with_leases() as (state, leases):
        return _view(Look(session, state, leases))


def _view(look: Look) -> View:
    session, recorded, problem = look.session, look.state, look.problem
    state = _state(look)
    leader = look.name_of(look.leader)
    proved = _proved(look, state)
    headline = _headline(look, state, proved)
    rows = _plans(look, state)
    missing = look.missing
    others = (row.name for row in rows if row.status != LEADER and row.behind is not None)
    held: dict[int, list[Assigned]] = defaultdict(list)  # who has taken which measurements, by probe
    for lease in look.leases:
        if lease.expires > look.now:
            held[Place.parse(lease.token).probe].append(Assigned(lease.worker, iso(lease.expires)))
    return View(
        session=session.name,
        title=recorded.title,
        state=state,
        trusted=not look.doubts,
        doubts=look.doubts,
        goal="smallest" if problem.sign < 0 else "largest",
        unit=look.unit,
        delta=look.delta,
        epsilon=look.epsilon,
        budget=look.budget,
        policy=look.policy.name,
        incumbent=look.incumbent,
        headline=headline,
        plan=leader if state == CONFIDENT else None,
        leader=leader,
        runner_up=next(others, None) if look.n_used else None,
        amounts={} if look.leader is None else amounts(problem, look.leader),
        proved=proved,
        bet=_bet(look, proved),
        n_measured=recorded.n_values,
        n_open=sum(n for _, n in missing),
        n_assigned=sum(min(n, len(held[probe])) for probe, n in missing),
        n_extra=recorded.n_extra,
        n_removed=recorded.n_removed,
        cost=look.cost(),
        n_plans=problem.n_plans,
        n_arms=problem.n_arms,
        forecast=look.forecast() if state == RUNNING else None,
        plans=rows,
        arms=_arms(look),
        open=tuple(
            Open(
                problem.probe_names[probe],
                n,
                tuple(held[probe]),
                () if problem.arms_alone else tuple(problem.reads(probe)),
            )
            for probe, n in missing[:MOST_LISTED]
        ),
        last=look.last(),
        remarks=tuple(_remarks(look, state, headline)),
        next=tuple(_next(look, state)),
        created=iso(session.journal.created.time),
        head=HeadOfLog(*session.journal.head),
    )


def _state(look: Look) -> str:
    """Return running, confident, budget spent or closed.

    A policy without a guarantee is never confident: when it ends, its budget is spent, or it has closed.
    """
    status = str(look.state.status or RUNNING)
    if status == "done" or (status == CONFIDENT and not look.guarantee.proved):
        return CLOSED if look.budget is None else BUDGET_SPENT
    return status


def _headline(look: Look, state: str, proved: Proved) -> str:
    leader = quoted(called(look.problem, look.leader))
    if look.doubts and look.leader is not None:
        return f"{leader} leads, but do not rely on it: {look.doubts[0].text}"
    if proved.claim == "no_plan":
        doubt = f", but do not rely on it: {look.doubts[0].text}" if look.doubts else ""
        return f"No plan will do{doubt}"
    if proved.is_tie:
        return f"Tied for best: {first_of([quoted(name) for name in proved.plans])}"
    if state == CONFIDENT:
        return f"{'Keep' if proved.claim == 'incumbent_stays' else 'Take'} {leader}"
    if str(look.state.status) == CLOSED and (ended := look.ended()) is not None:
        when, reason = ended
        return f"Closed on {day(when)}" + (f": {reason}" if reason else "")
    if look.leader is None or look.n_used == 0:
        return "Nothing measured yet" if not look.state.n_values else "The first batch is not complete"
    if state == BUDGET_SPENT:
        return f"{leader} leads; the budget is spent"
    if state == CLOSED:
        return f"{leader} leads; {look.policy.name} has ended"
    return f"{leader} leads"


def _proved(look: Look, state: str) -> Proved:
    """Return what the evidence proves now; with doubts, what it would prove if the assumption held."""
    if not look.guarantee.proved:
        return Proved("none", (), None, "", f"Nothing; {look.policy.name} has no guarantee.")
    claim, plans, text = _claim(look, state)
    nothing = claim == "one_of" and len(plans) == look.problem.n_plans
    wrong = "" if nothing else f" Wrong at most {odds(look.delta)}."
    if look.doubts:
        text = f"Would be proved if the assumption held: {text[0].lower()}{text[1:]}"
    assumes = assumption(look.guarantee, look.state.given.problem, look.unit)
    return Proved(claim, plans, look.delta, assumes, f"{text}{wrong}")


def _claim(look: Look, state: str) -> tuple[str, tuple[str, ...], str]:
    """Return the claim, the plans that it is about, and its sentence."""
    leader, epsilon = look.name_of(look.leader) or "", value(look.epsilon, look.unit)
    others = f"other of {_all_plans(look)}"
    if isinstance(look.policy, OwnQuestion) and look.policy.finds_none(look.standing):
        return "no_plan", (), look.policy.claim(look.problem, look.standing)
    if isinstance(look.policy, OwnQuestion) and state == CONFIDENT:
        also = [look.name_of(plan) or "" for plan in look.standing.good if plan != look.leader]
        return "own", (leader, *also[: MOST_LISTED - 1]), look.policy.claim(look.problem, look.standing)
    if state == CONFIDENT and look.incumbent is not None:
        if not look.keeps_incumbent:
            return "better_than_incumbent", (leader,), f"It is better than {quoted(look.incumbent)}."
        more = f" by more than {epsilon}" if look.epsilon else ""
        return "incumbent_stays", (leader,), f"No {others} is better{more}."
    if state == CONFIDENT and look.epsilon:
        also = [look.name_of(plan) or "" for plan in look.standing.good if plan != look.leader]
        text = f"No {others} is more than {epsilon} better."
        return "within_epsilon", (leader, *also[: MOST_LISTED - 1]), text
    if state == CONFIDENT:
        return "best", (leader,), f"It is the best of {_all_plans(look)}."
    return "one_of", *_one_of(look)


def _one_of(look: Look) -> tuple[tuple[str, ...], str]:
    """Return the plans that may be best, as far as that is proved, and the sentence about them."""
    everything, standing = _all_plans(look), look.standing
    if standing.unless:  # a polytope: the leader is best, or differs from the best in one of these
        listed = first_of(standing.unless)
        return (), f"The leader is the best plan, or the best has another amount of {listed}."
    is_limited = look.policy.may_find_none  # then those that break the limit are out
    best = "The best that keeps the limit (if any does)" if is_limited else "The best"
    nothing = f"{best} is one of {everything}; nothing is ruled out yet."
    if not look.problem.is_listed:
        return (), nothing
    remaining = range(look.problem.n_plans) if standing.remaining is None else standing.remaining
    first = sorted(remaining, key=lambda plan: plan != look.leader)[:MOST_LISTED]
    names = tuple(look.name_of(plan) or "" for plan in first)
    if len(remaining) == look.problem.n_plans:
        return names, nothing
    listed = first_of([shortened(name, LONGEST_NAME) for name in names], n=len(remaining))
    if look.epsilon and not is_limited:
        near = f"within {value(look.epsilon, look.unit)} of the best of {everything}"
        return names, f"One of these {len(remaining):,} is {near}: {listed}."
    if len(remaining) == 1:
        return names, f"{best} of {everything} is {listed}."
    return names, f"{best} of {everything} is one of these {len(remaining):,}: {listed}."


def _all_plans(look: Look) -> str:
    """Return what the answer is compared with: "6 plans", "the 1,000 listed plans", "all plans"."""
    listing, n = look.problem.about.listing, look.problem.n_plans
    if listing is not None and not listing.is_complete:
        return listing.words
    return "all plans" if n is None else look.problem.about.plans(n)


def assumption(guarantee: Guarantee, problem: AnyProblem, unit: str) -> str:
    """Return what a guarantee assumes about the values, with the numbers of the problem."""
    noise, bounds = problem.noise_scale, problem.bounds
    scale = "" if noise is None else span(noise.min(), noise.max(), unit)
    inside = "" if bounds is None else f"{value(bounds.min())} and {value(bounds.max(), unit)}"
    words = {
        assumptions.SUB_GAUSSIAN: "independent values, noise no heavier than normal with standard deviation "
        f"{scale} (stated)",
        assumptions.GAUSSIAN: f"independent values, normal noise of standard deviation {scale} (stated)",
        assumptions.OF_VARIANCE: f"independent values, standard deviation at most {scale} (stated)",
        assumptions.UNKNOWN_NOISE: "independent values, normal noise of unknown size that stays the same",
        assumptions.BOUNDED: f"independent values between {inside} (stated)",
        assumptions.BOUNDED_MEANS: f"values between {inside} (stated), each with the same mean",
    }
    known = "" if problem.mean_bounds is None else "; the means that are stated as known"
    return words.get(guarantee.assumption, guarantee.assumption) + guarantee.besides + known


def _bet(look: Look, proved: Proved) -> Bet | None:
    """Return the estimate of the leader; None with doubts, and where the proof says as much."""
    leader = look.name_of(look.leader)
    if leader is None or look.doubts or proved.claim == "best" or isinstance(look.policy, OwnQuestion):
        return None
    found = estimate(look.problem, look.evidence, look.leader) if look.n_used else None
    if found is None:
        is_guess = look.guess is not None and not look.n_used
        return Bet(leader, None, None, f"By your guess, {leader}.") if is_guess else None
    if proved.claim == "within_epsilon":
        return Bet(leader, found.chance, found.expected_loss, f"The very best, {chance(found.chance)}.")
    text = f"It is best, {chance(found.chance)}"
    if found.expected_loss > 0 and found.chance < 1:
        loss = value(float(f"{found.expected_loss / (1 - found.chance):.2g}"), look.unit)
        text += f"; if not, it loses {loss} on average"
    return Bet(leader, found.chance, found.expected_loss, f"{text}.")


def _plans(look: Look, state: str) -> tuple[PlanRow, ...]:
    """Return the plans by their estimates, the leader first; where they are not listed, it and its rival."""
    problem, lead = look.problem, look.leader
    if not problem.is_listed:
        return tuple(_unlisted_rows(look))
    means = look.filled_means()
    scores = np.asarray(problem.oriented @ np.nan_to_num(means))  # (n_plans,) larger is better
    unknown = look.uses(np.isnan(means))  # (n_plans,) plans with an arm of neither a value nor a guess
    guessed = look.uses(np.isinf(look.variance) & ~np.isnan(means))
    behind = np.full(len(scores), np.nan)
    error = np.full(len(scores), np.nan)
    order = np.argsort(-scores, kind="stable")
    if isinstance(lead, int):
        behind = np.where(unknown | unknown[lead], np.nan, scores[lead] - scores) + 0.0
        if look.gap is not None and look.error is not None and look.n_used:
            error = np.where(np.isfinite(look.error), look.error, np.nan)
            behind = np.where(np.isnan(error), behind, look.gap)  # an arm that both have need not be known
        order = np.argsort(behind, kind="stable")  # NaN is last
        order = np.concatenate([[lead], order[order != lead]])

    def known(number: float) -> float | None:
        return None if np.isnan(number) else float(number)

    wealth = None if look.log_evidence is None else np.exp(np.minimum(look.log_evidence, LARGEST_LOG))
    return tuple(
        PlanRow(
            name=look.name_of(k) or "",
            value=None if unknown[k] else float(problem.sign * scores[k]),
            se=None if unknown[k] else _error_of_total(look, k),
            behind=known(behind[k]),
            behind_se=known(error[k]),
            status=_status(look, k, state),
            uses_guess=bool(guessed[k]),
            wealth=None if wealth is None or k == lead else float(wealth[k]),
        )
        for k in order[:MOST_LISTED].tolist()
    )


def _error_of_total(look: Look, plan: int) -> float | None:
    """Return the standard error of a listed plan's total; arms that are taken at their guess have none."""
    problem = look.problem
    if problem.probes is not None:
        found = value_of(problem, plan, look.evidence)
        return None if found is None else found[1]
    vector = problem.vector(plan)
    used = (vector != 0) & np.isfinite(look.variance)
    return float(np.sqrt(vector[used] ** 2 @ look.variance[used])) if used.any() and look.n_used else None


def _status(look: Look, plan: int, state: str) -> str:
    """Return whether a listed plan leads, ties with the leader, is ruled out, or is still open."""
    if plan == look.leader:
        return LEADER
    if not look.guarantee.proved:
        return OPEN
    if isinstance(look.policy, OwnQuestion) and plan in look.standing.good:
        return TIED
    if look.log_evidence is not None:
        return RULED_OUT if look.log_evidence[plan] >= -np.log(look.delta) else OPEN
    remaining = look.standing.remaining
    if remaining is not None:
        return OPEN if plan in remaining else RULED_OUT
    return RULED_OUT if state == CONFIDENT and look.incumbent is None else OPEN


def _unlisted_rows(look: Look) -> Iterator[PlanRow]:
    """Yield the leader, its rival, and the plan of whole amounts next to a leader that is an average."""
    if look.leader is None:
        return
    whole = whole_plan(look.problem, look.leader)
    for plan, status, mark in (
        (look.leader, LEADER, ""),
        (look.rival, OPEN, ""),
        (whole, OPEN, "whole amounts: "),
    ):
        if plan is not None:
            total, se = value_of(look.problem, plan, look.evidence) or (None, None)
            gap, error = between(look.problem, look.leader, plan, look.evidence)
            behind, behind_se = (gap, error) if np.isfinite(error) else (None, None)
            yield PlanRow(f"{mark}{look.name_of(plan)}", total, se, behind, behind_se, status, False)


def _arms(look: Look) -> tuple[ArmRow, ...]:
    """Return the arms (with probes: their readings) in the order of the problem."""
    problem = look.problem
    names = problem.reading_names
    counts = look.evidence.each
    safe = named_ranging(problem, look.leader, look.evidence)
    if problem.probes is None:
        means, variance = look.means, look.variance
        known = problem.is_known
        roles = roles_of(problem)
    else:
        means = look.evidence.means
        variance = np.where(counts > 0, problem.probes.noise_scale**2 / np.maximum(counts, 1), np.inf)
        known = np.zeros(len(names), dtype=bool)
        roles = ["measured"] * len(names)
    seen = np.isfinite(variance)
    return tuple(
        ArmRow(
            name=names[s],
            mean=float(means[s]) if seen[s] else None,
            se=0.0 if known[s] else float(np.sqrt(variance[s])) if seen[s] else None,
            n=int(counts[s]),
            role="measured" if counts[s] else roles[s],  # an arm of a limit may be in no plan
            safe=None if safe is None else safe[names[s]],
        )
        for s in range(min(len(names), MOST_LISTED))
    )


def _remarks(look: Look, state: str, headline: str) -> Iterator[Remark]:
    """Yield what to know before relying on the answer, the gravest first; the headline is not repeated."""
    for doubt in look.doubts:
        text = doubt.advice if doubt.text in headline else f"{doubt.text}; {doubt.advice}"
        yield Remark("doubt", f"{upper(text)}.")
    if n := look.state.n_removed:
        wrong = "it was a mistake" if n == 1 else "they were mistakes"
        were = how_many(n, "value was", "values were")
        yield Remark("removed", f"{were} removed. The guarantee assumes that {wrong}.")
    listing = look.problem.about.listing
    missing = None if listing is None else listing.warning(look.delta)
    if missing is not None:
        yield Remark("listing", f"{upper(missing)}.")
    if not look.guarantee.proved:
        yield Remark("no_guarantee", f"{look.policy.name} has no guarantee: {look.guarantee.missing}.")
    if state != RUNNING:
        return
    yield from _near_tie(look)
    if look.budget is not None and look.n_used >= LITTLE_LEFT * look.budget:
        yield Remark("budget", f"{count(look.state.budget_left)} of {count(look.budget)} are left.")
    late = {lease.worker: lease.expires for lease in look.leases if lease.expires <= look.now}
    for worker, expired in sorted(late.items()):
        ago = duration(look.now - expired)
        yield Remark("worker", f"{worker or 'A worker'} did not come back; its time ended {ago} ago.")


def _near_tie(look: Look) -> Iterator[Remark]:
    """Yield which epsilon would end the session, if only a small one is missing: the leader and its hardest
    rival cannot be told apart, and differ by far less than the best plan and the worst."""
    rival, gap, error = look.rival, look.gap, look.error
    if gap is None or error is None or not isinstance(rival, int) or not look.n_used:
        return
    is_open = abs(gap[rival]) <= 2 * error[rival]
    at_most = abs(float(gap[rival])) + 2 * float(error[rival])
    if is_open and look.epsilon < at_most < NEAR_TIE * float(gap.max()):
        names = f"{quoted(look.name_of(look.leader))} and {quoted(look.name_of(rival))}"
        apart = value(float(f"{at_most:.2g}"), look.unit)
        text = f"{names} differ by at most about {apart}; epsilon = {at_most:.2g} would end it."
        yield Remark("tie", text)


def _next(look: Look, state: str) -> Iterator[Next]:
    """Commands to type next; the command line adds its own --store and -s."""
    if not look.problem.can_decide:
        return  # the plans are known to a Python program alone
    if look.doubts:
        again = f"surepick new FILE --prior {shlex.quote(look.session.name)}"
        is_stated = look.state.given.problem.bounds is None and look.state.given.problem.knows_noise
        change = "delete the noise row of FILE" if is_stated else "change FILE"
        if look.doubts[0].code == "limits":
            change = "correct `known` in FILE"
        yield Next(again, f"{change}, then begin again")
    elif state == RUNNING:
        yield Next("surepick ask", "show what to measure next")
    elif state == CONFIDENT:
        yield Next("surepick export -o report.html", "write a report to keep or send")
    elif state == BUDGET_SPENT:
        yield Next(f"surepick session extend --budget {2 * (look.budget or 0)}", "measure more")
    else:
        yield Next(f"surepick session extend --delta {look.delta:g}", "continue")


def quoted(name: str | None) -> str:
    """Return a plan's name within a sentence."""
    return "nothing" if name is None else f'"{shortened(name, LONGEST_NAME)}"'
