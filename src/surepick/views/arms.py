"""What was measured, arm by arm or reading by reading, beside what would have been best to measure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from surepick.core.sensitivity import named_ranging, worth_of_one
from surepick.sessions.codec import finite_or_none
from surepick.views.look import Look


@dataclass(frozen=True)
class Arm:
    """One arm: what is known of it, how often it was measured, and how often it should have been.

    Where probes are measured, it is a reading of one: by its number, with the counts of its probe.
    """

    arm: int
    name: str
    mean: float | None  # None: not measured yet
    error: float | None  # the standard deviation of the mean, under the noise scale
    count: int
    share: float  # of all measurements
    best_share: float | None  # if the estimates were right
    best_count: float | None  # that share of all measurements
    missing: int  # measurements that the open round waits for
    cost: float  # of one measurement
    noise_scale: float | None
    in_lead: float  # what the lead has of it
    matters: bool  # whether plans differ in it
    stays_from: float | None = None  # while its mean is from here ...
    stays_to: float | None = None  # ... to here, and the others as estimated, the lead stays best
    worth: float | None = None  # an estimate of what one more measurement takes off the expected loss


@dataclass(frozen=True)
class Arms:
    """The arms from place `first` on, the most measured first; `n_arms` is how many there are in all."""

    n_arms: int
    n_matter: int
    n_measurements: int
    cost: float
    by_cost: bool  # whether the best shares cost the least, because prices differ
    first: int
    rows: tuple[Arm, ...]
    what: str = "arm"  # or "reading", where probes are measured


def arms(look: Look, *, first: int = 0, n: int | None = None) -> Arms:
    """The arms, `n` of them from place `first` on, all unless given.

    >>> import surepick as sp
    >>> from surepick.views import look
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest")
    >>> session = sp.Session.create("memory://", "trips", problem, policy=sp.CombGapE())
    >>> for value in (3.0, 1.0):
    ...     _ = session.tell(session.ask()[0], value)
    >>> [(arm.name, arm.mean, arm.count, round(arm.best_share, 2)) for arm in arms(look(session)).rows]
    [('arm 0', 3.0, 1, 0.5), ('arm 1', 1.0, 1, 0.5)]
    """
    problem, counts = look.problem, look.evidence.each
    n_read, best = problem.n_readings, look.best_shares
    owner = range(n_read) if problem.probes is None else problem.probes.owner.tolist()
    missing = Counter[int]()  # by what is counted: of a play every arm in it
    for probe, n_missing in look.missing:
        for counted in problem.readings_of(probe) if problem.plays else (probe,):
            missing[counted] += n_missing
    arms_alone = problem.probes is None
    matters = look.matters if arms_alone else np.ones(n_read, dtype=bool)
    lead = np.zeros(n_read)
    if look.lead is not None and arms_alone:
        lead = look.vector(look.lead)
    variance = look.variance
    if problem.probes is not None:
        variance = problem.probes.noise_scale**2 / np.maximum(counts, 1)
    total = look.n_used
    order = np.lexsort((np.arange(n_read), ~matters, -counts))
    last = None if n is None else first + n
    stays = named_ranging(problem, look.lead, look.evidence)
    ends = None if stays is None else [tuple(finite_or_none(end) for end in pair) for pair in stays.values()]
    worth = worth_of_one(problem, look.evidence, look.lead, look.epsilon)
    names = problem.reading_names
    is_known = problem.is_known if problem.probes is None else np.zeros(n_read, dtype=bool)
    means = np.where(is_known, look.means, look.evidence.means) if is_known.any() else look.evidence.means
    rows = tuple(
        Arm(
            arm=s,
            name=names[s],
            mean=float(means[s]) if counts[s] or is_known[s] else None,
            error=0.0 if is_known[s] else float(np.sqrt(variance[s])) if counts[s] else None,
            count=int(counts[s]),
            share=int(counts[s]) / max(total, 1),
            best_share=None if best is None else float(best[owner[s]]),
            best_count=None if best is None else float(best[owner[s]] * total),
            missing=missing[owner[s]],
            cost=float(problem.costs[owner[s]]),
            noise_scale=None if problem.noise_scale is None else float(problem.noise_scale[s]),
            in_lead=float(lead[s]),
            matters=bool(matters[s]),
            stays_from=None if ends is None else ends[s][0],
            stays_to=None if ends is None else ends[s][1],
            worth=None if worth is None else float(worth[s]),
        )
        for s in order[first:last].tolist()
    )
    what = "arm" if arms_alone else "reading"
    return Arms(n_read, int(matters.sum()), total, look.cost, look.by_cost, first, rows, what)
