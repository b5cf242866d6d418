"""What writers who wait ask of the one who writes: slots in the file of their line.

In a crowd most of the time goes by until the next in line is awake. So whoever waits posts what it would
write, as a wish; the one who holds the writer's lock does the wishes along with its own work, in the same
transaction, leaves the replies when that is on disk, and wakes their owners. Nothing rests on a slot: a wish
that nobody did is done by its owner when its turn comes, and one that was done and whose reply is lost is
found in the log.

A slot is owned by who has locked its byte, so the kernel frees the slots of a process that dies, and is
written whole, with a checksum and the number of its wish: what is torn, old or another's is nothing.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator

from surepick.store.byte_locks import SharedBytes

SLOTS, SIZE = 64, 1024  # slots, and the bytes of one
BELLS, LOCKS, TEXTS = 2048, 3072, 4096  # where in the file: a byte for each wish, the locks, the slots
EMPTY, POSTED, TAKEN, DONE = range(4)
_HEAD = struct.Struct("<BQIH")  # state, number of the wish, checksum, length of the text
LONGEST = SIZE - _HEAD.size  # bytes of a wish or a reply
_BETWEEN = b"\0"  # the name of the log and the text of a wish


class Post:
    """A wish in its slot; it changes by what others write there, and ends with `withdraw`."""

    def __init__(self, file: SharedBytes, slot: int, wish: bytes) -> None:
        self._file = file
        self._slot = slot
        self._number = int.from_bytes(os.urandom(8), "little")
        self._bell = file.bell(self._number)
        self._wish = wish
        self._write(POSTED, wish)

    @property
    def can_be_woken(self) -> bool:
        """Whether who does it can wake its owner."""
        return self._bell.can_ring

    def sleep(self, seconds: float) -> None:
        """Sleep for so long, or until it is done."""
        self._bell.sleep(seconds)

    def look(self) -> tuple[int, bytes]:
        """What has become of it: POSTED, TAKEN, or DONE with its reply; EMPTY if its owner seemed dead."""
        found = _read(self._file, self._slot)
        if found is None:
            return POSTED, b""
        state, number, text = found
        if number != self._number:  # overwritten by who was late with the reply to an earlier wish
            self._write(POSTED, self._wish)
        return (state, text) if number == self._number else (POSTED, b"")

    def withdraw(self) -> None:
        """Ask for it no longer, and let others have the slot."""
        self._bell.close()
        self._write(EMPTY, b"")
        self._file.unlock_alone(LOCKS + self._slot)

    def _write(self, state: int, text: bytes) -> None:
        _write(self._file, self._slot, (state, self._number, text))


class Wish:
    """A wish of somebody who waits to write to `log`.

    Who does it sets `reply`, which is sent when all of that is on disk.
    """

    def __init__(self, file: SharedBytes, slot: int, number: int, written: bytes) -> None:
        log, _, text = written.partition(_BETWEEN)
        self.log, self.text = log.decode(errors="replace"), text.decode(errors="replace")
        self.reply: str | None = None
        self._file, self._slot, self._number, self._written = file, slot, number, written

    def take(self) -> None:
        """Say that it is being done, if it is."""
        if self.reply is not None and len(self.reply.encode()) > LONGEST:
            self.reply = None  # the owner will see for itself
        self._say(TAKEN, b"")

    def send(self) -> None:
        """Send the reply, if there is one, and wake who waits for it."""
        self._say(DONE, (self.reply or "").encode())
        if self.reply is not None:
            self._file.ring(self._number)

    def put_back(self) -> None:
        """Say that it was not done after all."""
        self._say(POSTED, self._written)

    def _say(self, state: int, text: bytes) -> None:
        if self.reply is not None:
            _write(self._file, self._slot, (state, self._number, text))


def post(file: SharedBytes, log: str, text: str) -> Post | None:
    """The wish in a slot of this file, if it is short enough and a slot is free."""
    wish = log.encode() + _BETWEEN + text.encode()
    if len(wish) > LONGEST or wish.count(_BETWEEN) > 1:
        return None
    for step in range(SLOTS):
        slot = (file.process + step) % SLOTS
        if file.lock_alone(LOCKS + slot):
            return Post(file, slot, wish)
    return None


def n_posted(file: SharedBytes) -> int:
    """How many seem to be waiting for something."""
    return sum(map(bool, file.read(SLOTS, BELLS)))


def wishes(file: SharedBytes) -> Iterator[Wish]:
    """What others are waiting for; of a process that has died nothing."""
    for slot, rings in enumerate(file.read(SLOTS, BELLS)):
        if not rings:
            continue
        found = _read(file, slot)
        if file.lock_alone(LOCKS + slot):  # its owner is gone
            _write(file, slot, (EMPTY, 0 if found is None else found[1], b""))
            file.unlock_alone(LOCKS + slot)
        elif found is not None and found[0] == POSTED:
            yield Wish(file, slot, *found[1:])


def _read(file: SharedBytes, slot: int) -> tuple[int, int, bytes] | None:
    """State, number and text of a slot; None if it was being written just then."""
    found = file.read(SIZE, TEXTS + slot * SIZE)
    if len(found) < _HEAD.size:
        return None
    state, number, checksum, length = _HEAD.unpack_from(found)
    text = found[_HEAD.size : _HEAD.size + length]
    return (state, number, text) if checksum == _checksum(state, number, text) else None


def _write(file: SharedBytes, slot: int, content: tuple[int, int, bytes]) -> None:
    state, number, text = content
    head = _HEAD.pack(state, number, _checksum(state, number, text), len(text))
    file.write(head + text, TEXTS + slot * SIZE)
    file.write(bytes([state == POSTED]), BELLS + slot)


def _checksum(state: int, number: int, text: bytes) -> int:
    return zlib.crc32(text, zlib.crc32(b"%d %d" % (state, number)))
