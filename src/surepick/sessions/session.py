"""Sessions: real measurements by many workers, kept in a store, decided as a simulation would.

The log is the truth and `SessionState` is what it means; a `Journal` keeps them together. This is the page on
which a user of sessions finds all that they do: `SessionReader` looks, `Session` changes. Each change is one
event or a few (`commands`), checked against the state at the end of the log and appended in one transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from surepick.core.arrays import Numbers
from surepick.core.oracle_problem import AnyProblem, Best, OracleProblem
from surepick.core.past import Past
from surepick.core.policy import Policy
from surepick.core.problem import GivenArms, Problem
from surepick.errors import NameTakenError, ParameterError, SessionError
from surepick.policies import policy_for
from surepick.sessions import commands
from surepick.sessions.commands import Receipt, Telling, Use
from surepick.sessions.events import (
    Created,
    Event,
    Measured,
    Released,
    Removed,
    Renamed,
    decode,
    place_of,
)
from surepick.sessions.journal import Change, Journal, decided, drafts_of
from surepick.sessions.leases import Request, claim, default_worker, is_dead, leased
from surepick.sessions.reader import SessionReader, in_seconds, oracle_of
from surepick.sessions.setup import NewSession, refuse_other, seconds
from surepick.sessions.state import SessionState
from surepick.sessions.streams import Place
from surepick.store import Head, Store, open_store
from surepick.store.log import LEASE
from surepick.tables import count_in

FIRST_WAIT, LONGEST_WAIT = 0.002, 0.5  # seconds between two looks for a free request


class Session(SessionReader):
    """A problem, a policy and every measurement, in a store; any number of processes may share one log.

    A session changes by its methods, and by what other processes write: every method reads on first. Threads
    may share one.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], arms=["road", "rail"], noise=1, goal="largest")
    >>> session = sp.Session.create("memory://", "trips", problem, policy=sp.CombGapE(delta=0.05))
    >>> hours = {"road": 1.0, "rail": 9.0}
    >>> while requests := session.ask():
    ...     for request in requests:
    ...         _ = session.tell(request, hours[request.arm])
    >>> session.outcome.plan_name, session.outcome.state
    ('plan 1', <State.CONFIDENT: 'confident'>)
    """

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        oracle: Best | OracleProblem | None = None,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(store, name, oracle=oracle, read_only=read_only, clock=clock)

    @classmethod
    def create(
        cls,
        store: str | Store,
        name: str,
        problem: AnyProblem,
        *,
        delta: float | None = None,
        epsilon: float | None = None,
        budget: int | None = None,
        policy: str | Policy | None = None,
        incumbent: str | int | None = None,
        prior: Past | None = None,
        seed: int = 0,
        lease: float = LEASE,
        clock: Callable[[], float] = time.time,
    ) -> Session:
        """Begin a session in this store; refused if it has one of this name.

        - delta: how often the answer may be wrong (0.05 unless given)
        - epsilon: the difference in value that does not matter (0 unless given)
        - budget: the most measurements
        - policy: a name, or an instance, which has its own delta and epsilon; BetGapE unless given
        - incumbent: the plan in use, by its name or number: is any other better?
        - prior: guesses or earlier values; they guide the design and never count as evidence
        - seed: of the policy's own randomness
        - lease: seconds until a request that was not answered is assigned again

        An `OracleProblem` around a function of your own is kept without the function: `load` needs it again.
        """
        chosen = policy_for(policy, delta=delta, epsilon=epsilon, incumbent=incumbent)
        new = NewSession(problem, chosen, name, seed, budget, lease, prior)
        state = SessionState(new.setup)
        events: list[Event] = [Created(new.to_json())]
        events += decided(state)
        place = _as_store(store, create=True)
        place.create(name, drafts_of(events, in_seconds(clock)()))
        return cls(place, name, oracle=oracle_of(problem), clock=clock)

    @classmethod
    def open(
        cls,
        store: str | Store,
        name: str,
        problem: AnyProblem | None = None,
        *,
        delta: float | None = None,
        epsilon: float | None = None,
        budget: int | None = None,
        policy: str | Policy | None = None,
        incumbent: str | int | None = None,
        prior: Past | None = None,
        seed: int = 0,
        lease: float = LEASE,
        clock: Callable[[], float] = time.time,
    ) -> Session:
        """Return the session of this name, or begin it if there is none and a problem is given.

        The settings are those of `create`. A session that was begun with another problem or other settings
        than given here is refused, so a program that is started again continues where it was.
        """
        place = _as_store(store, create=problem is not None)
        settings: Any = _given(
            delta=delta, epsilon=epsilon, budget=budget, policy=policy, incumbent=incumbent, prior=prior
        )
        settings |= {"seed": seed} if seed else {}
        if problem is not None and name not in place.names():
            more: Any = {"lease": lease, "clock": clock}
            try:
                return cls.create(place, name, problem, **settings, **more)
            except NameTakenError:  # another process began it at the same moment
                pass
        return cls.load(place, name, problem, **settings, clock=clock)

    @classmethod
    def load(
        cls,
        store: str | Store,
        name: str | None = None,
        problem: AnyProblem | Best | None = None,
        *,
        delta: float | None = None,
        epsilon: float | None = None,
        budget: int | None = None,
        policy: str | Policy | None = None,
        incumbent: str | int | None = None,
        prior: Past | None = None,
        seed: int | None = None,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> Session:
        """Open a session of this store; its name may be left out when there is only one.

        Settings that are given must be those that it was begun with. Plans that are known by a function of
        your own need it again, as `problem`: the function, or the whole problem. With `read_only=True` a
        session can be looked at without it, and nothing can be changed.
        """
        place = _as_store(store, create=False)
        chosen = only_session(place) if name is None else name
        given = problem if isinstance(problem, Problem | OracleProblem) else None
        in_log = isinstance(given, Problem) or (given is not None and given.recipe() is not None)
        oracle: Any = None if in_log else problem if given is None else oracle_of(given)
        session = cls(place, chosen, oracle=oracle, read_only=read_only, clock=clock)
        settings = _given(budget=budget, prior=prior, seed=seed)
        begun = replace(session.state().setup, problem=session.given_problem)
        if any(one is not None for one in (delta, epsilon, policy, incumbent)):
            settings["policy"] = policy_for(policy, delta=delta, epsilon=epsilon, incumbent=incumbent)
        refuse_other(chosen, begun, given if in_log else None, settings)
        return session

    # Measuring

    def ask(
        self,
        n: int = 1,
        *,
        worker: str | None = None,
        wait: float = True,
        lease: float | None = None,
    ) -> list[Request]:
        """Return up to n measurements to make now; empty when the session has ended.

        Asking again gives the same requests until they are answered. A request is one worker's until its
        lease ends. A worker without a name is this thread of this process; once it has ended, its requests
        are free. When the policy waits for fewer measurements than there are workers, the others measure
        ahead (never more than 64). When everything is assigned, this waits for as many seconds as `wait`
        says, for ever with True, not at all with False or 0.

        The requests are the worker's for `lease` seconds, by default those of the session, and as long again
        when it asks again. A short lease frees those of a worker on another machine soon after it died.
        """
        if not hasattr(n, "__index__") or n < 1:
            raise ParameterError(f"ask for a whole number of measurements, 1 or more, got n={n!r}", field="n")
        lasting = self.lease if lease is None else min(seconds("lease", lease), self.lease)
        pause, who = FIRST_WAIT, default_worker() if worker is None else worker
        until = float("inf") if wait is True else time.monotonic() + float(wait)
        while True:
            with self._changing():
                requests, next_end = claim(self._journal, n, who, lasting, self.lease)
                if requests or self._state.is_over or time.monotonic() >= until:
                    return requests
                until_free = next_end - self._clock()
            left = until - time.monotonic()
            time.sleep(min(pause, max(until_free, FIRST_WAIT), max(left, 0.0)))
            pause = min(1.5 * pause, LONGEST_WAIT)

    def tell(
        self,
        what: str | int | Request,
        value: Use | list[Any],
        *,
        worker: str | None = None,
        key: str = "",
        note: str = "",
        lost: bool = False,
        sure: bool = False,
    ) -> Receipt:
        """Record a measurement, or a list of them; it is on disk when this returns.

        A `Request`, or its id, is answered. The name or number of an arm (or probe) answers its oldest open
        request, the worker's own first; with none open the value is an extra measurement. For a probe
        with several readings, give them by name or in their order, None for a lost one.

        Telling the same again is harmless: a worker's value for a request is recorded once. When another
        worker answered the request first, the value is kept as an extra measurement. With a `key`, such as
        the row of a file, it is recorded once. `lost` says that the measurement failed: whether one does must
        have nothing to do with its value. `note` is kept in the log. A value that is far from the others, or
        not plausible, is refused once: repeat it with `sure=True` if it is right. Programs that record
        whatever they measure say `sure=True` at once.
        """
        who = _whose(what, worker)
        with self._changing():
            found = self._request(what)
            probe = found.probe if isinstance(found, Place) else found
            uses = commands.readings_of(self._journal.state.setup.problem, probe, None if lost else value)
            telling = Telling(found, uses, who, str(key), str(note), sure)
            if key and (number := self._exported_number(key)) is not None:
                return commands.repeated(self._journal, self._place_of(number), telling)
            return commands.tell(self._journal, telling)

    def release(self, request: str | Request, reason: str = "", *, worker: str | None = None) -> None:
        """Release a request, so that another worker gets it at once.

        A request that another worker has by now, because a lease had ended, is refused. A `Request` knows
        its worker; with an id alone name the worker, if it was asked for under a name.
        """
        text, who = request.token if isinstance(request, Request) else request, _whose(request, worker)

        def make() -> Change:
            place = place_of(text, self._state)
            self._refuse_anothers(place, who)
            stream = self._state.streams.of[place.probe]
            if stream.is_recorded(place.index) and commands.measured_at(self._journal, place).is_extra:
                return Change([], [str(place)])  # an extra value took its place: nothing is asked for
            return Change([Released(*place, who, str(reason))], [str(place)])

        with self._changing() as journal:
            place_of(text, self._state)
            journal.commit(make)

    def remove(self, number: int | str | Request, reason: str) -> bool:
        """Remove a value that was recorded by mistake (a slip, the wrong road); the log keeps both.

        The value is known by its number (`Receipt.number`), or by the request that it answered, or its id.
        Return whether the policy has used the value. If not, its arm is asked for again. If it has, BetGapE
        settles the batch again without it, and decisions stay; other policies refuse. The guarantee assumes
        that the value was no measurement, and not removed for its size.
        """
        used: list[bool] = []
        with self._changing() as journal:
            place = self._place_of(number)

            def make() -> Change:
                used[:] = [place.index < self._state.streams.of[place.probe].cursor]
                return Change([Removed(*place, str(reason))], [str(place)])

            journal.commit(make, quick=False)
        return used[0]

    # Steering

    def extend(self, *, delta: float | None = None, budget: int | None = None) -> None:
        """Continue with a smaller delta, on the same evidence, or with a larger budget.

        Only policies that follow recorded decisions (BetGapE) take a smaller delta. Another epsilon needs a
        new session: see `successor`.
        """
        with self._changing() as journal:
            journal.commit(lambda: commands.extended(self._state, delta, budget), quick=False)

    def add_plan(self, name: str, plan: Numbers | str, *, arms: GivenArms = ()) -> None:
        """Add a plan to the list while the session runs, or after its answer, which was about the others.

        The plan is a sum such as "2*tea + coffee", amounts by the names of arms, or one number per arm. Arms
        that it uses and the problem does not have are named in `arms`, or given as `NewArm`. The policy
        knows the plan from its next batch on. Plans may be chosen by looking at everything but values that
        wait for a later batch.
        """
        with self._changing() as journal:
            journal.commit(lambda: commands.plan_added(self._state, name, plan, arms), quick=False)

    def final_batch(self, n: int | None = None, *, gaussian: bool = False) -> None:
        """Make the next n measurements the last: one batch, and a test of what leads then.

        What the open batch still waits for is among them. The session ends with an answer if its risk is at
        most delta, else with the plans that remain. Without `n` it is the rest of the budget. `gaussian` says
        that the noise is Gaussian, under which the test proves more. When you call it may depend on
        everything that the policy has used; not on values that wait for a later batch.
        """
        with self._changing() as journal:
            make = lambda: commands.final_batch(self._state, n, gaussian=gaussian)  # noqa: E731
            journal.commit(make, quick=False)

    def close(self, reason: str = "") -> None:
        """End the session by hand; it stays readable, and `extend` lets it continue.

        One that has ended stays as it is. So does one whose last measurement is recorded and whose answer is
        only not written down yet: it is decided first.
        """
        with self._changing() as journal:
            journal.commit(lambda: commands.closed(self._state, reason), quick=False)
            while not self._state.is_over:  # a batch was complete and is decided now; maybe not the last
                journal.commit(lambda: commands.closed(self._state, reason), quick=False)

    def successor(
        self,
        reason: str,
        *,
        name: str | None = None,
        problem: AnyProblem | None = None,
        delta: float | None = None,
        epsilon: float | None = None,
        budget: int | None = None,
        policy: str | Policy | None = None,
        incumbent: str | int | None = None,
        prior: Past | None = None,
    ) -> Session:
        """Begin another session with the values of this one as prior data, and close this one.

        For what a session cannot change: another problem (plans, noise), delta, epsilon or policy, or means
        that have changed. The values count as at most 20 measurements of each arm and never as evidence, so
        the new session has a guarantee of its own. Its name is this one's with the next free number. `prior`
        is for arms without values here.
        """
        if not str(reason).strip():
            raise ParameterError("say why: a successor has a reason", field="reason")
        if name in self.store.names():
            raise ParameterError(f"there is a session named {name!r} already; choose another", field="name")
        with self.held() as state:
            setup, n_measured = state.setup, state.n_measurements
            if policy is None and incumbent is None:
                before: Any = setup.policy
                chosen: Policy = replace(before, **_given(delta=delta, epsilon=epsilon))
            else:
                chosen = policy_for(policy, delta=delta, epsilon=epsilon, incumbent=incumbent)
            about = setup.problem if problem is None else problem
            past = commands.prior_of(state, about, chosen, prior)
        if set(about.arm_names).isdisjoint(setup.problem.arm_names):
            raise ParameterError(
                f"the new problem has none of the arms of session {self.name!r}, so its values say nothing "
                "about it; begin without them",
                field="problem",
            )
        left = None if setup.budget is None else max(setup.budget - n_measured, 1)
        begun = Session.create(
            self.store,
            commands.next_name(self.name, self.store.names()) if name is None else name,
            about,
            policy=chosen,
            budget=left if budget is None else budget,
            prior=past,
            seed=setup.seed,
            lease=self.lease,
        )
        self.close(f"continued as {begun.name!r}: {reason}")  # once it has begun
        return begun

    def rename(self, title: str) -> None:
        """Give it another title, in the log like everything else; its name in a store never changes."""
        with self._changing() as journal:
            make = lambda: Change([Renamed(self._state.n_titles + 1, title)])  # noqa: E731
            journal.commit(make, quick=False)

    def delete(self, *, expected: Head) -> None:
        """Delete it from the store for good, if it has ended and its log still ends where it was seen to."""
        with self._changing():
            if not self.state().is_over:
                raise SessionError(
                    f"session {self.name!r} is still running, so it was not deleted; close it first"
                )
            self.store.delete(self.name, expected=expected)

    def keep_snapshot(self) -> None:
        """Keep the state beside the log, for commands that end now: the next one opens faster."""
        with self._lock:
            self._journal.keep_if_small()

    # How it does it

    @contextmanager
    def _changing(self) -> Iterator[Journal]:
        """Give the journal to one thread at a time; refused where a session is only shown."""
        if self.read_only:
            raise SessionError(
                f"session {self.name!r} was opened to be looked at, so nothing was changed; load it without "
                "read_only to continue it"
            )
        with self._lock:
            yield self._journal

    def _request(self, what: object) -> Place | int:
        """Return the place of the request that is answered, or the number of the arm or probe."""
        if isinstance(what, Request):
            return place_of(what.token, self._journal.state)
        if isinstance(what, str):
            if what not in self.probe_names:
                self._journal.refresh()  # an arm may have come with a plan meanwhile
            if what not in self.probe_names or self.is_pending(what):
                return place_of(what, self._state)  # an open request beats an arm of the same name
        elif not hasattr(what, "__index__"):
            raise SessionError(f"expected an arm or a request, got {what!r:.60}", field="request")
        return self._probe(cast(Any, what))

    def _place_of(self, number: int | str | Request) -> Place:
        """Return where the value of this number or request is."""
        text = number.token if isinstance(number, Request) else str(number)
        value = count_in(text)
        if value is None:
            self._journal.refresh()
            return place_of(text, self._state)
        for found in self.events():
            if found.kind == "measured" and f'"number":{value},' in found.body:
                event = decode(found.kind, found.body)
                if isinstance(event, Measured) and event.number == value:
                    return event.place
        raise SessionError(f"session {self.name!r} has no value {value}", field="number")

    def _exported_number(self, key: str) -> int | None:
        """Return the number of the value whose export has this key, if it is one of this session."""
        number = count_in(key.rpartition("-")[2])
        is_own = number is not None and number <= self._state.n_recorded and key == self.exported_key(number)
        return number if is_own else None

    def _refuse_anothers(self, place: Place, worker: str) -> None:
        """Refuse to take a request from the worker who has it, which may not be the one who had it."""
        lease = leased(self.store.leases(self.name)).get(place)
        if lease is None or lease.worker == worker or lease.expires <= self._clock() or is_dead(lease.worker):
            return
        raise SessionError(
            f"request {place} is assigned to {lease.worker!r}, not to {worker!r}, so nothing was changed; to "
            f"release it for them, say so: worker={lease.worker!r}",
            field="worker",
        )


def _whose(request: object, worker: str | None) -> str:
    """Return the worker that acts: the one that is named, that of a request, or this thread."""
    if worker is not None:
        return worker
    return request.worker if isinstance(request, Request) else default_worker()


def _given(**settings: Any) -> dict[str, Any]:
    """Return the settings that are not None."""
    return {name: value for name, value in settings.items() if value is not None}


def _as_store(store: str | Store, *, create: bool) -> Store:
    return open_store(store, create=create) if isinstance(store, str) else store


def only_session(store: Store) -> str:
    """Return the name of the session in this store, if it has only one."""
    names = store.names()
    if len(names) == 1:
        return names[0]
    found = "none" if not names else ", ".join(map(repr, names[:8])) + (" ..." if len(names) > 8 else "")
    raise SessionError(f"say which session of {store.place} is meant; it has {len(names)}: {found}")
