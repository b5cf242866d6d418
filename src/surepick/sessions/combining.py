"""Whoever holds the log does the work of those who wait for it.

With many workers on one file, most of the time goes by until the next in line is awake, and every one of them
reads what all the others wrote. So who waits says what it would write, a single value or a request for
measurements, and whoever has its turn does all of it in its own transaction. What cannot be done so, because
it is refused or takes more than a value, waits for its own turn and hears then what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from surepick.errors import SurepickError
from surepick.sessions.leasing import Leasing
from surepick.sessions.replica import Change, LostRaceError, Replica
from surepick.sessions.requests import Receipt
from surepick.sessions.telling import Telling
from surepick.store import View
from surepick.store.mailbox import Wish


class Combining:
    """Does the wishes of others with the parts of one session; it has no state of its own."""

    def __init__(self, replica: Replica, telling: Telling, leasing: Leasing) -> None:
        self._replica = replica
        self._telling = telling
        self._leasing = leasing

    def changes(self, wishes: Sequence[Wish]) -> Iterator[Change]:
        """The values that they wish to tell, each looked at when the one before has been taken in."""
        for wish in wishes:
            kind, *wished = self._replica.wish_in(wish) or [""]
            if kind != "tell":
                continue
            try:
                change = self._telling.wished(*wished)
            except (SurepickError, LostRaceError, TypeError, ValueError):
                continue  # its owner hears why when its own turn comes
            wish.reply = str(Receipt.ACCEPTED)
            yield change

    def grant(self, view: View) -> None:
        """Give measurements to those who ask for some."""
        if view.wishes:
            self._leasing.grant(view.wishes, view.leases)
