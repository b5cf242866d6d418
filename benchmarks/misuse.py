"""Sessions whose measurements are not what the guarantee assumes: how often is an answer wrong in silence?

Two arms with a gap of .1 (BetGapE, delta .05), measured by a worker who breaks an assumption. *quiet* is the
share of sessions that end confident with the wrong plan and without a warning. *long* rows are sessions of at
least 100 measurements. The first row is honest: all of its warnings are false.

    python benchmarks/misuse.py            # 400 sessions a row, about ten minutes
    python benchmarks/misuse.py --runs 40  # a first look
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import surepick as sp
from surepick.sessions.leases import Request
from surepick.sessions.session import Session

GAP, DELTA, BUDGET, LONG = 0.1, 0.05, 20_000, 100
MEANS = (GAP, 0.0)
Teller = Callable[[Session, Request], None]
Noise = Callable[[np.random.Generator], Iterator[float]]


def white(rng: np.random.Generator, scale: float = 1.0) -> Iterator[float]:
    while True:
        yield from (scale * rng.standard_normal(256)).tolist()


def autoregressive(rng: np.random.Generator, rho: float) -> Iterator[float]:
    """AR(1) with a standard deviation of 1."""
    x = rng.standard_normal()
    for e in white(rng):
        yield x
        x = rho * x + np.sqrt(1 - rho**2) * e


def wandering(rng: np.random.Generator, step: float = 0.05) -> Iterator[float]:
    """Noise around a level that takes a small random step at every measurement."""
    level = 0.0
    for e, s in zip(white(rng), white(rng), strict=True):
        yield level + e
        level += step * s


def later_louder(rng: np.random.Generator, first: int = 12, times: float = 4.0) -> Iterator[float]:
    """Noise that is louder after the first values."""
    yield from itertools.islice(white(rng), first)
    yield from white(rng, times)


class Worker:
    """Tells each arm's tape in its order; several values where several are wanted."""

    def __init__(self, seed: int, noise: Noise) -> None:
        rng = np.random.default_rng(seed)
        self.tapes = [noise(child) for child in rng.spawn(2)]

    def value(self, arm: int) -> float:
        return MEANS[arm] + next(self.tapes[arm])

    def tell(self, session: Session, request: Request) -> None:
        session.tell(request, [self.value(request.probe) for _ in range(max(1, request.wanted))], sure=True)


class Withholder(Worker):
    """Gives a token of the worse arm back when its value is among the lowest twentieth.

    What comes before such a value is told in one go, which leaves the same tapes as one at a time and costs a
    sixth; the low one waits for the token that it belongs to.
    """

    low_is_next = False

    def tell(self, session: Session, request: Request) -> None:
        told: list[float] = []
        while len(told) < max(1, request.wanted) and not (self.low_is_next and request.probe == 1):
            x = self.value(request.probe)
            self.low_is_next = request.probe == 1 and x < MEANS[1] - 1.645
            if not self.low_is_next:
                told.append(x)
        if told:
            session.tell(request, told, sure=True)
        else:
            self.low_is_next = False
            session.release(request, "not plausible")


@dataclass(frozen=True)
class Misuse:
    """One way to break an assumption."""

    name: str
    worker: Callable[[int], Worker]
    unknown: bool = False


MISUSES = (
    Misuse("none: honest", lambda seed: Worker(seed, white)),
    Misuse("none: honest, unknown noise", lambda seed: Worker(seed, white), unknown=True),
    Misuse("noise x 1.5", lambda seed: Worker(seed, lambda rng: white(rng, 1.5))),
    Misuse("noise x 2", lambda seed: Worker(seed, lambda rng: white(rng, 2.0))),
    Misuse("AR(1), rho .5", lambda seed: Worker(seed, lambda rng: autoregressive(rng, 0.5))),
    Misuse("AR(1), rho .9", lambda seed: Worker(seed, lambda rng: autoregressive(rng, 0.9))),
    Misuse("levels that wander", lambda seed: Worker(seed, wandering)),
    Misuse("unknown noise, x 4 after 12", lambda seed: Worker(seed, later_louder), unknown=True),
    Misuse("lows of the worse arm withdrawn", lambda seed: Withholder(seed, white)),
)


@dataclass(frozen=True)
class Ended:
    """How one session ended."""

    n: int
    wrong: bool
    warned: bool


def run(misuse: Misuse, seed: int) -> Ended:
    """One session to its end."""
    problem = sp.Problem(np.eye(2), noise=None if misuse.unknown else 1.0, goal="largest")
    session = Session.create("memory://", "s", problem, policy=sp.BetGapE(delta=DELTA), budget=BUDGET)
    worker = misuse.worker(seed)
    while requests := session.ask():
        worker.tell(session, requests[0])
    outcome = session.outcome
    assert outcome is not None
    return Ended(outcome.n_measured, outcome.plan == 1, bool(session.certificate().doubts))


def row(name: str, ended: list[Ended]) -> str:
    """One line of the table."""
    cells = []
    for some in (ended, [one for one in ended if one.n >= LONG]):
        n = max(len(some), 1)
        shares = [
            sum(one.wrong for one in some) / n,
            sum(one.wrong and not one.warned for one in some) / n,
            sum(one.warned for one in some) / n,
        ]
        cells += [str(len(some)), *(f"{share:.3f}" for share in shares)]
    return f"| {name} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=20_000)
    parser.add_argument("--only", default="", help="rows whose name holds this")
    options = parser.parse_args()
    parts = ("wrong", "quiet", "warned")
    head = ["sessions", *parts, "long", *(f"{part}, long" for part in parts)]
    print("| measurements | " + " | ".join(head) + " |")
    print("|---" * (len(head) + 1) + "|")
    for misuse in MISUSES:
        if options.only in misuse.name:
            print(row(misuse.name, [run(misuse, options.seed + r) for r in range(options.runs)]), flush=True)


if __name__ == "__main__":
    main()
