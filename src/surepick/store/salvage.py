"""Reading events out of the pages of a SQLite file whose tree is broken.

A tree of pages that has lost its upper levels cannot be walked, but its leaves still hold the rows. Here
every page is looked at on its own (file format: sqlite.org/fileformat2.html, sections 1.6, 2.1 and 2.3). What
comes out may be old or double; the checksums of the events say what is genuine.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from surepick.store.events import Event

_INTERIOR, _LEAF = 2, 10  # page types of trees whose pages hold the rows themselves
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # by serial type
_BROKEN = (IndexError, ValueError, UnicodeDecodeError, OverflowError, struct.error)


class Carved(NamedTuple):
    """An event as it was found, and the number of the log it says it belongs to."""

    session_id: int
    event: Event


def carve(path: Path) -> Iterator[Carved]:
    """Every event that stands in some page of the file, in no order."""
    file = _File(path.read_bytes())
    for page in range(file.n_pages):
        for cell in file.cells(page):
            try:
                row = _record(file.payload(*cell))
            except _BROKEN:
                continue
            found = _as_event(row)
            if found is not None:
                yield found


class _File:
    """The pages of a SQLite file."""

    def __init__(self, data: bytes) -> None:
        size = int.from_bytes(data[16:18], "big")
        self.page_size = 65536 if size == 1 else size
        self.data = data
        usable = self.page_size >= 512 and self.page_size & (self.page_size - 1) == 0
        self.n_pages = len(data) // self.page_size if usable else 0

    def cells(self, page: int) -> Iterator[tuple[int, int]]:
        """Page and place of every row of the page, if it is one that holds rows."""
        start = page * self.page_size
        header = start + (100 if page == 0 else 0)
        kind = self.data[header]
        if kind not in (_INTERIOR, _LEAF):
            return
        n_cells = int.from_bytes(self.data[header + 3 : header + 5], "big")
        pointers = header + (8 if kind == _LEAF else 12)
        for i in range(min(n_cells, self.page_size // 6)):
            at = int.from_bytes(self.data[pointers + 2 * i : pointers + 2 * i + 2], "big")
            if 8 <= at < self.page_size:
                yield start, at + (0 if kind == _LEAF else 4)

    def payload(self, start: int, at: int) -> bytes:
        """The bytes of a row, with what did not fit on its page."""
        size, place = _varint(self.data, start + at)
        local = self._local_size(size)
        content = self.data[place : place + local]
        following = int.from_bytes(self.data[place + local : place + local + 4], "big")
        while len(content) < size:
            if not 0 < following <= self.n_pages:
                raise ValueError("the rest of the row is lost")
            page = self.data[(following - 1) * self.page_size : following * self.page_size]
            content += page[4:]
            following = int.from_bytes(page[:4], "big")
        return content[:size]

    def _local_size(self, size: int) -> int:
        """How much of a row of this size stands on its own page."""
        most = (self.page_size - 12) * 64 // 255 - 23
        if size <= most:
            return size
        least = (self.page_size - 12) * 32 // 255 - 23
        fitting = least + (size - least) % (self.page_size - 4)
        return fitting if fitting <= most else least


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and the place after it."""
    value = 0
    for i in range(8):
        byte = data[at + i]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + i + 1
    return value << 8 | data[at + 8], at + 9


def _record(payload: bytes) -> list[Any]:
    """The columns of a row."""
    end, at = _varint(payload, 0)
    kinds = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    row: list[Any] = []
    for kind in kinds:
        value, at = _column(payload, kind, end if not row else at)
        row.append(value)
    return row


def _column(payload: bytes, kind: int, at: int) -> tuple[Any, int]:
    if kind in _INTEGER_BYTES:
        end = at + _INTEGER_BYTES[kind]
        return int.from_bytes(payload[at:end], "big", signed=True), end
    if kind == 7:
        return struct.unpack(">d", payload[at : at + 8])[0], at + 8
    if kind in (0, 8, 9):
        return {0: None, 8: 0, 9: 1}[kind], at
    end = at + (kind - 12) // 2
    if kind < 12 or end > len(payload):
        raise ValueError("not a column")
    content = payload[at:end]
    return (content.decode() if kind % 2 else content), end


def _as_event(row: list[Any]) -> Carved | None:
    """The event that a row of the table of events stands for; other tables have other rows."""
    if len(row) != 7:
        return None
    session_id, position, kind, key, time, body, checksum = row
    texts = isinstance(kind, str) and isinstance(body, str) and isinstance(checksum, str)
    numbers = isinstance(session_id, int) and isinstance(position, int) and isinstance(time, int | float)
    if not (texts and numbers and (key is None or isinstance(key, str)) and position > 0):
        return None
    return Carved(session_id, Event(position, kind, key, float(time), body, checksum))
