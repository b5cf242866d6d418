"""Whatever a figure is asked of: a session, a look at one, or the view itself."""

from __future__ import annotations

from typing import TypeAlias

from surepick import views
from surepick.errors import SessionError
from surepick.sessions.session import Session
from surepick.views import Arms, Look, Picture, Progress

Given: TypeAlias = Session | Look
MOST_ARMS = 24  # in a figure


def _seen(given: Given) -> Look:
    return views.look(given) if isinstance(given, Session) else given


def as_progress(given: Given | Progress) -> Progress:
    """The view of its progress."""
    return given if isinstance(given, Progress) else views.progress(_seen(given))


def as_arms(given: Given | Arms) -> Arms:
    """The view of its arms: those that were measured most."""
    return given if isinstance(given, Arms) else views.arms(_seen(given), n=MOST_ARMS)


def as_picture(given: Given | Picture) -> Picture:
    """The view of the plan that leads, beside its closest rival."""
    if isinstance(given, Picture):
        return given
    seen = _seen(given)
    drawn = views.picture(seen, other=seen.rival)
    if drawn is None:
        raise SessionError(f"session {seen.session!r} has no lead yet, so there is no plan to draw")
    return drawn
