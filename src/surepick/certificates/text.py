"""A certificate as people read it: the answer and what it does first, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from surepick.core.answers import listed, measured
from surepick.core.guarantee import no_guarantee
from surepick.core.wording import counted, how_many, plural

if TYPE_CHECKING:
    from surepick.certificates.certificate import Certificate
    from surepick.certificates.rivals import Rival

MOST_SHOWN = 5  # rivals
UNPROVED = "would hold if the noise were as assumed:"


def text(certificate: Certificate) -> str:
    """All of it, a line for each fact."""
    return "\n".join(f"{name:<13}{value}" for name, value in _facts(certificate))


def _facts(certificate: Certificate) -> Iterator[tuple[str, str]]:
    title = f"{certificate.title}\n{'session':<13}" if certificate.title else ""
    yield ("about" if title else "session"), f"{title}{certificate.session}: {certificate.state}"
    if certificate.doubts:
        yield "DOUBTS", no_guarantee(certificate.doubts)
    yield "question", certificate.question
    yield "answer", certificate.answer
    if certificate.among is not None:
        yield "proved", certificate.among if certificate.trusted else f"{UNPROVED} {certificate.among}"
    if certificate.leader is not None and not certificate.is_confident:
        risk = (
            ""
            if certificate.risk is None or certificate.doubts
            else f"; its risk is {certificate.risk:.3g}, an answer needs {certificate.delta:g}"
        )
        yield "leader", f"{certificate.leader_name}{risk}"
    if certificate.leader_amounts:
        yield "the plan", listed(dict(certificate.leader_amounts))
    value = measured(certificate.leader_value, certificate.unit)
    if value is not None:
        yield "value", f"{value} (± one standard error)"
    yield "claim", f"{'' if certificate.trusted else f'{UNPROVED} '}{certificate.claim}"
    if certificate.listing is not None:
        yield "list", certificate.listing["explanation"]
    yield "assumes", certificate.assumption
    yield "policy", f"{certificate.policy['name']} version {certificate.policy['version']}"
    first = "" if certificate.first_delta == certificate.delta else f" ({certificate.first_delta:g} at first)"
    delta, epsilon = f"{certificate.delta:g}{first}", f"{certificate.epsilon:g}"
    yield "settings", f"delta {delta}, epsilon {epsilon}, seed {certificate.seed}"
    for name, matrix in certificate.covariances.items():
        yield "covariance", f"{name}: {matrix}"
    if certificate.extensions:
        yield "extended", "to " + ", then ".join(_extension(one) for one in certificate.extensions)
    if not certificate.knows_plans:
        yield "made", "without the function that knows the plans: it says nothing about rivals and risk"
    yield "rests on", _rests_on(certificate)
    if certificate.final_batch is not None:
        yield "final batch", how_many(certificate.final_batch, "measurement")
    if certificate.added:
        yield "added", f"while it ran: {', '.join(certificate.added)}"
    if certificate.past is not None:
        least, most = min(certificate.past.values()), max(certificate.past.values())
        worth = f"{most:.3g}" if least == most else f"{least:.3g} to {most:.3g}"
        yield "past", f"what was thought before counted as {worth} measurements of each arm, and won no bet"
    if certificate.noise_check:
        yield "noise check", certificate.noise_check
    yield "log", f"{how_many(certificate.log_position, 'event')}, fingerprint {certificate.log_checksum}"
    if certificate.checker:
        yield "checker", f"{certificate.checker} (docs/check.py)"
    yield from _rivals(certificate)
    for warning in certificate.warnings:
        yield "warning", warning


def _extension(to: Mapping[str, Any]) -> str:
    budget = "" if to["budget"] is None else f", budget {to['budget']:,}"
    return f"delta {to['delta']:g}{budget}"


def _rests_on(certificate: Certificate) -> str:
    n_extra, n_used = certificate.n_extra, certificate.n_extra_used
    extra = (
        f"; of {how_many(n_extra, 'extra one')} {n_used:,} {plural(n_used, 'is', 'are')} used"
        if n_extra
        else ""
    )
    removed = f"; {how_many(certificate.n_removed, 'value')} removed" if certificate.n_removed else ""
    measured = how_many(certificate.n_measured, "measurement")
    return f"{measured} in {how_many(certificate.n_rounds, 'round')}{extra}{removed}"


def _rivals(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """The closest rival and the runner-up by these names, which may be one plan, then some more."""
    names = {
        plan: role
        for plan, role in (
            (certificate.runner_up, "runner-up"),
            (certificate.closest_rival, "closest rival"),
        )
        if plan is not None
    }
    same = certificate.runner_up == certificate.closest_rival
    shown = sorted(certificate.rivals, key=lambda rival: rival.plan_name not in names)[:MOST_SHOWN]
    for at, rival in enumerate(shown):
        role = names.get(rival.plan_name)
        notes = ["closest rival and runner-up" if same else role] if role is not None else []
        notes += ["± one standard error"] if at == 0 else []
        note = f" ({'; '.join(notes)})" if notes else ""
        yield "rival", f"{against(certificate, rival)}: behind by {rival.gap:.4g} ± {rival.error:.2g}{note}"


def against(certificate: Certificate, rival: Rival) -> str:
    """The rival's name; where plans are vectors, what it has that the answer has not, which is shorter."""
    if not isinstance(rival.plan, tuple) or not isinstance(certificate.leader, tuple):
        return rival.plan_name
    more = np.array(rival.plan) - np.array(certificate.leader)
    arms = list(certificate.counts)
    gained, lost = counted(arms, np.maximum(more, 0.0)), counted(arms, np.maximum(-more, 0.0))
    return f"{gained} instead of {lost}"
