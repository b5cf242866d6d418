"""Lines of work that take turns: one runs at a time, and a function says who goes on at every pause.

With a seeded choice a whole history of many processes happens again exactly; with all choices in turn every
interleaving is seen. They are greenlets of one thread: a turn costs a microsecond, on a busy machine too.
"""

from collections.abc import Callable

from greenlet import getcurrent, greenlet

TURN, HICCUP = 0.002, 1.5  # simulated seconds that a turn takes, and what it takes now and then
OFTEN = 0.01  # how often that is


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
    """Runs actors in turns; `choose` picks one of the names of those that could go on, by its number.

    With `naps` they may sleep; a turn takes some time, and when all sleep it goes by until one wakes up.
    """

    def __init__(self, choose, naps=None):
        self._choose = choose
        self._naps = naps
        self.now = 0.0
        self._wakes: list[float] = []
        self._actors: list[Actor] = []
        self._current: Actor | None = None

    def add(self, name, work):
        """Another line of work, which begins at its first turn."""
        self._actors.append(Actor(name, work))
        return self._actors[-1]

    def run(self):
        """Let all of them run to their ends; the first error of any is raised at once."""
        while waiting := [actor for actor in self._actors if not actor.is_done]:
            if self._naps is not None:
                self.now += HICCUP if self._naps.random() < OFTEN else TURN
            able = [actor for actor in waiting if actor.ready()]
            if not able and self._wakes:
                self.now = max(self.now, min(self._wakes))
                continue
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

    def sleep(self, seconds, unless=lambda: False):
        """Let others go on for this long, in simulated time, or until something is so."""
        wake = self.now + seconds
        self._wakes.append(wake)
        self.pause(lambda: self.now >= wake or unless())
        self._wakes.remove(wake)

    def monotonic(self):
        """The simulated time by which actors sleep."""
        return self.now


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
