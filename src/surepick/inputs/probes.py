"""The key `measure` of a problem file: a word, or a table for each probe."""

from __future__ import annotations

from typing import Any

from surepick.core.given_probes import ARMS, KINDS
from surepick.core.probes import Probe
from surepick.inputs.section import Section

_READS, _MIX, _READINGS = "reads", "mix", "readings"  # what a probe measures: exactly one of these
_SETTINGS = ("cost", "noise", "covariance")


def probes_in(document: Section) -> Any:
    """Return the argument `measure` of a problem from the key of this name; "arms" without it."""
    given = document.values.get("measure", ARMS)
    for key in ("low", "high", "plausible"):
        if given != ARMS and key in document.values:
            raise document.error(f"{key} is about single arms; give the noise of probes", key)
    if isinstance(given, str) and given in KINDS:
        return given
    if isinstance(given, dict) and given:
        return {name: _probe(document, name, entry) for name, entry in given.items()}
    raise document.wrong("measure", f"{', '.join(map(repr, KINDS))}, or a table for each probe")


def _probe(document: Section, name: str, entry: Any) -> Probe:
    if not isinstance(entry, dict):
        raise document.error(
            f"measure.{name} must be a table with one of 'reads', 'mix' or 'readings', got {entry!r}",
            f"measure.{name}",
        )
    part = Section(document.path, f"measure.{name}.", entry, document.confined)
    part.refuse_unknown({_READS, _MIX, _READINGS, *_SETTINGS})
    what = part.one_of(_READS, _MIX, _READINGS)
    readings = part.names(what) if what == _READS else entry[what]
    if what != _READS and not isinstance(readings, dict):
        raise part.wrong(what, "a table of numbers by arm" if what == _MIX else "a table of such tables")
    cost = part.number("cost", 1.0) if "cost" in entry else None
    return Probe(readings or [], cost, part.numbers("noise"), entry.get("covariance"))
