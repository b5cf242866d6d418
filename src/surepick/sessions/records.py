"""Recorded numbers, as exports, tables and pages show them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from surepick.core.probes import VALUE
from surepick.sessions.events import Measured, decode
from surepick.sessions.state import SessionState
from surepick.store import Event


@dataclass(frozen=True)
class Measurement:
    """A recorded number: one reading of a use of a probe. `token` is None for an extra measurement."""

    number: int  # of the value: 1 for the first use that was recorded
    probe: int
    probe_name: str
    value: float
    time: float
    token: str | None  # the id of the request that it answers
    worker: str
    removed: bool = False
    event: int = 0  # where it stands in the log
    reading: str = VALUE  # which number of the probe it is
    key: str = ""
    note: str = ""

    @property
    def arm(self) -> str:
        """The name of the arm that was measured, or of the probe that was used."""
        return self.probe_name


def measurements_in(event: Event, state: SessionState) -> Iterator[Measurement]:
    """Yield the numbers that this event of a log records."""
    if event.kind != "measured":
        return
    found = decode(event.kind, event.body)
    assert isinstance(found, Measured)
    problem = state.setup.problem
    for reading, value in zip(problem.reads(found.probe), found.values, strict=True):
        if value is not None:
            yield Measurement(
                number=found.number,
                probe=found.probe,
                probe_name=problem.probe_names[found.probe],
                value=value,
                time=event.time,
                token=None if found.is_extra else str(found.place),
                worker=found.worker,
                removed=found.place in state.streams.removed,
                event=event.position,
                reading=reading,
                key=found.key,
                note=found.note,
            )
