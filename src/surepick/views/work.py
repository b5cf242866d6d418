"""What to measure next and for whom: the open round, its tokens, and the workers who hold some."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from surepick.core.probes import VALUE
from surepick.sessions import requests
from surepick.store import Lease
from surepick.views.look import Look


@dataclass(frozen=True)
class Want:
    """An arm or probe of the open round: how many measurements were asked for, and how many are missing."""

    arm: int
    name: str
    asked: int
    missing: int
    held: int  # of the missing ones, by workers whose lease has not ended


@dataclass(frozen=True)
class Token:
    """A place of the open round that waits for its measurement; `worker` is None when nobody has it."""

    token: str
    arm: int
    name: str
    worker: str | None
    expires_in: float | None  # seconds; negative: the lease has ended
    readings: tuple[str, ...] = (VALUE,)  # the numbers that are still to come


@dataclass(frozen=True)
class Worker:
    """Somebody who holds tokens; stale when all of the leases have ended without a value."""

    name: str
    n_tokens: int
    n_ahead: int  # of them, beyond the open round
    expires_in: float  # seconds until the last lease ends
    is_stale: bool


@dataclass(frozen=True)
class Work:
    """The open round of a session."""

    n_missing: int
    n_held: int
    n_ahead: int  # told measurements that no round has asked for yet
    wants: tuple[Want, ...]
    tokens: tuple[Token, ...]  # the first of them
    workers: tuple[Worker, ...]
    is_deciding: bool  # the round is complete and the next decision is not recorded yet


def work(look: Look) -> Work:
    """The measurements that the session waits for, and who is making them.

    >>> import surepick as sp
    >>> from surepick.views import look
    >>> problem = sp.Problem([[1, 0], [0, 1]], arms=["road", "rail"], noise=1, goal="largest")
    >>> session = sp.Session.create("memory://", "trips", problem, policy=sp.CombGapE())
    >>> _ = session.ask(worker="truck 7")
    >>> seen = work(look(session))
    >>> [(token.token, token.name, token.worker) for token in seen.tokens]
    [('0.0', 'road', 'truck 7'), ('1.0', 'rail', None)]
    """
    names, asked = look.problem.probe_names, dict(look.asked)
    held = {lease.token: lease for lease in look.leases}
    held_of = Counter(
        requests.Token.parse(lease.token).probe for lease in look.leases if lease.expires > look.now
    )
    wants = tuple(
        Want(arm, names[arm], asked.get(arm, count), count, min(count, held_of[arm]))
        for arm, count in look.missing
    )
    first = zip(look.first_tokens, look.first_readings, strict=True)
    tokens = tuple(_token(look, token, held.get(token), readings) for token, readings in first)
    return Work(
        n_missing=look.n_missing,
        n_held=sum(want.held for want in wants),
        n_ahead=look.n_ahead,
        wants=wants,
        tokens=tokens,
        workers=_workers(look),
        is_deciding=look.status is None and not look.is_past and not look.missing,
    )


def _token(look: Look, token: str, lease: Lease | None, readings: tuple[str, ...]) -> Token:
    probe = requests.Token.parse(token).probe
    name = look.problem.probe_names[probe]
    if lease is None:
        return Token(token, probe, name, None, None, readings)
    return Token(token, probe, name, lease.worker, lease.expires - look.now, readings)


def _workers(look: Look) -> tuple[Worker, ...]:
    wanted = dict(look.missing)
    by_name: dict[str, list[Lease]] = {}
    for lease in look.leases:
        by_name.setdefault(lease.worker, []).append(lease)
    return tuple(
        Worker(
            name=name,
            n_tokens=len(leases),
            n_ahead=sum(requests.Token.parse(lease.token).probe not in wanted for lease in leases),
            expires_in=max(lease.expires for lease in leases) - look.now,
            is_stale=max(lease.expires for lease in leases) <= look.now,
        )
        for name, leases in sorted(by_name.items())
    )
