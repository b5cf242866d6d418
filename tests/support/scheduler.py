"""Lines of work that take turns: one runs at a time, and a function says who goes on at every pause.

With a seeded choice a whole history of many processes happens again exactly; with all choices in turn every
interleaving is seen. They are greenlets of one thread: a turn costs a microsecond, on a busy machine too.
"""

from collections.abc import Callable

from greenlet import getcurrent, greenlet


class Actor:
    """One line of work; it changes by its scheduler alone."""

    def __init__(self, name, work):
        self.name = name
        self.ready: Callable[[], bool] = lambda: True
        self.line = greenlet(work)

    @property
    def is_done(self):
        return self.line.dead


class Scheduler:
    """Runs actors in turns; `choose` picks one of the names of those that could go on, by its number."""

    def __init__(self, choose):
        self._choose = choose
        self._actors: list[Actor] = []
        self._current: Actor | None = None

    def add(self, name, work):
        """Another line of work, which begins at its first turn."""
        self._actors.append(Actor(name, work))
        return self._actors[-1]

    def run(self):
        """Let all of them run to their ends; the first error of any is raised at once."""
        while waiting := [actor for actor in self._actors if not actor.is_done]:
            able = [actor for actor in waiting if actor.ready()]
            if not able:
                raise RuntimeError(f"all wait for each other: {[actor.name for actor in waiting]}")
            self._current = able[self._choose([actor.name for actor in able]) if len(able) > 1 else 0]
            self._current.line.switch()  # until its next pause, or its end

    def pause(self, until=lambda: True):
        """Let others go on, and come back when this holds; where nobody takes turns it does nothing."""
        actor = self._current
        if actor is None or getcurrent() is not actor.line:
            return
        actor.ready = until
        actor.line.parent.switch()
        actor.ready = lambda: True


class TurnLock:
    """What a reentrant lock is, for lines of work that take turns."""

    def __init__(self, scheduler):
        self._scheduler = scheduler
        self._owner: greenlet | None = None
        self._depth = 0

    def __enter__(self):
        me = getcurrent()
        if self._owner is not me:
            while self._owner is not None:
                self._scheduler.pause(lambda: self._owner is None)
            self._owner = me
        self._depth += 1
        return self

    def __exit__(self, kind, error, trace):
        self._depth -= 1
        if not self._depth:
            self._owner = None
