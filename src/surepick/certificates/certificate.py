"""The certificate of a session: what it found and what that rests on, as fields, JSON and text."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from surepick._version import __version__
from surepick.core.about import Listing
from surepick.core.answers import listed, measured
from surepick.core.guarantee import Doubt, no_guarantee
from surepick.core.run import Answer
from surepick.core.wording import how_many, shortened
from surepick.errors import ParameterError
from surepick.simulation.outcome import State


@dataclass(frozen=True)
class Certificate:
    """The end of a session with everything that it rests on."""

    session: str
    state: str
    question: str  # in words
    answer: str  # in words; where there is none, why, or which plans are left
    plan: Answer | None
    plan_name: str | None
    delta: float
    epsilon: float
    claim: str
    policy: Mapping[str, Any]
    seed: int
    assumption: str
    noise_scale: tuple[float, ...]
    doubts: tuple[Doubt, ...]  # what contradicts the assumption: then the guarantee does not apply
    counts: Mapping[str, int]  # by arm, or by probe
    means: Mapping[str, float | None]  # by arm, or by reading
    n_measured: int
    n_rounds: int
    n_extra: int  # recorded without an open request, or late
    n_extra_used: int
    problem: str  # its fingerprint, SHA-256
    log_position: int
    log_checksum: str
    n_removed: int
    first_delta: float  # before it was extended
    checker: str  # the command of the independent checker, docs/check.py; "" where it is not covered
    extensions: tuple[Mapping[str, Any], ...]  # delta and budget after each
    covariances: Mapping[str, list[list[float]]]  # of probes whose readings share noise
    knows_plans: bool  # whether the function that knows the plans was there; if not, the risk is not
    title: str = ""
    unit: str = ""  # of a measurement and of a plan's value
    leader: Answer | None = None  # the answer, or who leads where there is none
    leader_name: str | None = None
    leader_amounts: Mapping[str, float] | None = None  # what it takes of each arm
    leader_value: tuple[float, float] | None = None  # by the estimates, and its standard deviation
    risk: float | None = None  # an anytime p-value of the leader, where the policy has one
    listing: Mapping[str, Any] | None = None  # how complete the list of plans is, where it was searched for
    noise_check: str = ""  # what the check of the noise could have seen
    surepick: str = __version__
    # Without an answer: how many plans the best one is among, up to delta, and the first of them.
    n_remaining: int | None = None
    remaining: tuple[str, ...] | None = None
    among: str | None = None  # the same as a sentence; beside an answer, which others are good enough
    good: tuple[str, ...] | None = None  # plans proved within epsilon of the best, where there are several
    final_batch: int | None = None  # measurements after which it was to end, if it was called
    added: tuple[str, ...] | None = None  # plans that were added while it ran
    prior: Mapping[str, float] | None = None  # measurements that what was thought before counted as, by arm
    proof: Mapping[str, Any] | None = None  # what `core/polytopes/proofs.py` checks by arithmetic alone

    @property
    def trusted(self) -> bool:
        """Whether nothing contradicts the assumption of the guarantee."""
        return not self.doubts

    @property
    def is_confident(self) -> bool:
        """Whether its answer has a guarantee, and nothing contradicts what that assumes."""
        return self.state == State.CONFIDENT and self.trusted

    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON values."""
        return {"trusted": self.trusted, **dataclasses.asdict(self)}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what a reader should know before believing it."""
        listing = None if self.listing is None else Listing(**self.listing).warning(self.delta)
        return (*map(str, self.doubts), *([] if listing is None else [listing]))

    def __repr__(self) -> str:
        answer = repr(shortened(self.plan_name or str(self.plan), 60))
        if self.plan is None:
            answer = "no plan" if self.is_confident else "no answer"
        n = how_many(self.n_measured, "measurement")
        if self.doubts:
            return f"Certificate({self.session}: DOUBTFUL, {no_guarantee(self.doubts)}; {self.state}, {n})"
        return f"Certificate({self.session}: {answer}, {self.state}, delta={self.delta:g}, {n})"

    def __str__(self) -> str:
        return "\n".join(f"{name:<13}{words}" for name, words in self._facts())

    def _facts(self) -> Iterator[tuple[str, str]]:
        """Yield the facts as people read them: the answer and what it does first, then what it rests on."""
        if self.title:
            yield "about", self.title
        yield "session", f"{self.session}: {self.state}"
        if self.doubts:
            yield "DOUBTS", no_guarantee(self.doubts)
        yield "question", self.question
        yield "answer", self.answer
        would = "" if self.trusted else "would hold if the noise were as assumed: "
        if self.among is not None:
            yield "proved", f"{would}{self.among}"
        if self.leader is not None and not self.is_confident:
            shows_risk = self.risk is not None and self.trusted
            risk = f"; its risk is {self.risk:.3g}, an answer needs {self.delta:g}" if shows_risk else ""
            yield "leader", f"{self.leader_name}{risk}"
        if self.leader_amounts:
            yield "the plan", listed(dict(self.leader_amounts))
        if (worth := measured(self.leader_value, self.unit)) is not None:
            yield "value", f"{worth} (± one standard error)"
        yield "claim", f"{would}{self.claim}"
        if self.listing is not None:
            yield "list", self.listing["explanation"]
        yield "assumes", self.assumption
        yield "policy", f"{self.policy['name']} version {self.policy['version']}"
        first = "" if self.first_delta == self.delta else f" ({self.first_delta:g} at first)"
        yield "settings", f"delta {self.delta:g}{first}, epsilon {self.epsilon:g}, seed {self.seed}"
        for name, matrix in self.covariances.items():
            yield "covariance", f"{name}: {matrix}"
        for one in self.extensions:
            budget = "" if one["budget"] is None else f", budget {one['budget']:,}"
            yield "extended", f"to delta {one['delta']:g}{budget}"
        if not self.knows_plans:
            yield "made", "without the function that knows the plans: it says nothing about the risk"
        extra = f"; {how_many(self.n_extra, 'extra one')}, {self.n_extra_used:,} used" if self.n_extra else ""
        removed = f"; {how_many(self.n_removed, 'value')} removed" if self.n_removed else ""
        n, rounds = how_many(self.n_measured, "measurement"), how_many(self.n_rounds, "round")
        yield "rests on", f"{n} in {rounds}{extra}{removed}"
        if self.final_batch is not None:
            yield "final batch", how_many(self.final_batch, "measurement")
        if self.added:
            yield "added", f"while it ran: {', '.join(self.added)}"
        if self.prior is not None:
            least, most = min(self.prior.values()), max(self.prior.values())
            counted = f"{most:.3g}" if least == most else f"{least:.3g} to {most:.3g}"
            yield "prior data", f"guided the design like {counted} measurements of each arm; no evidence"
        if self.noise_check:
            yield "noise check", self.noise_check
        yield "log", f"{how_many(self.log_position, 'event')}, fingerprint {self.log_checksum}"
        if self.checker:
            yield "checker", f"{self.checker} (docs/check.py, with docs/check_unlisted.py beside it)"
        for warning in self.warnings:
            yield "warning", warning


def canonical(values: Mapping[str, Any]) -> str:
    """Return the one JSON text of these values: sorted keys, no spaces, finite numbers."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def as_certificate(given: object) -> dict[str, Any]:
    """Return a certificate as JSON values; raise ParameterError if it cannot be one."""
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"a certificate is a JSON object, as `surepick status --json` has one, got {type(given).__name__}"
        )
    try:
        values: dict[str, Any] = json.loads(canonical(dict(given)))
    except (TypeError, ValueError, RecursionError) as error:
        raise ParameterError(
            f"a certificate holds text and finite numbers, and this one does not: {error}"
        ) from None
    return values
