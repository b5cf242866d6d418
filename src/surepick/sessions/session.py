"""Sessions: real measurements by many workers, kept in a store, decided as a simulation would.

A session is where the policies and the store meet. The log is the truth, the `Ledger` is its fold, a
`Replica` keeps them together. `Looking` looks, `Leasing` hands out tokens, `Telling` takes measurements in.
Whatever changes the session catches up with the log, makes an event from the ledger, and appends it in one
transaction: what may be written is said in `telling`, `voiding`, `extending` and `ending`.

Long because it is the page on which a user of sessions finds all that they do; what is done stands elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from surepick.core.arrays import Numbers
from surepick.core.new_arms import GivenArms, plans_by_name
from surepick.core.oracle_problem import AnyProblem, Best, OracleProblem
from surepick.core.past import Past
from surepick.core.policy import Policy, check_gaussian
from surepick.core.problem import Problem
from surepick.core.tables import count_in
from surepick.errors import NameTakenError, ParameterError, SessionError
from surepick.sessions.arriving import ADDED, additions
from surepick.sessions.ending import calling, closing, epoch_of, next_name
from surepick.sessions.extending import extension
from surepick.sessions.heartbeat import Heartbeat, Hold
from surepick.sessions.leasing import Leasing
from surepick.sessions.ledger import Ledger, NewEvent
from surepick.sessions.looking import Looking, in_seconds, oracle_of, title_key
from surepick.sessions.replica import Change, Replica, drafts_of
from surepick.sessions.requests import Receipt, Request
from surepick.sessions.settings import NewSession, chosen_policy, refuse_other, seconds
from surepick.sessions.telling import Telling
from surepick.sessions.voiding import void, void_unasked
from surepick.sessions.workers import default_worker
from surepick.store import Head, Store, open_store
from surepick.store.log import LEASE

FIRST_WAIT, LONGEST_WAIT = 0.002, 0.5  # seconds between two looks for a free token


class Session(Looking):
    """A problem, a policy and every measurement, in a store; any number of them may share one log.

    A session changes by its methods, and by what other processes write: every method looks first. Threads may
    share one.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], arms=["road", "rail"], noise=1, goal="largest")
    >>> session = sp.Session.create("memory://", "trips", problem, policy=sp.CombGapE(delta=0.05))
    >>> hours = {"road": 1.0, "rail": 9.0}
    >>> while requests := session.ask():
    ...     for request in requests:
    ...         _ = session.tell(request, hours[request.arm_name])
    >>> session.outcome.plan_name, session.outcome.status
    ('plan 1', <Status.CONFIDENT: 'confident'>)
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
        self._leasing = Leasing(self._replica, self.lease)
        self._telling = Telling(self._replica)
        self._heartbeat = Heartbeat(self.store, name, self._clock)

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
        chosen = chosen_policy(policy, delta=delta, epsilon=epsilon, incumbent=incumbent)
        new = NewSession(problem, chosen, name, seed, budget, lease, prior)
        events = [NewEvent("created", new.to_json()), *Ledger(new.setup).decide()]
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
        begun = replace(session.ledger().setup, problem=session.given_problem)
        if any(one is not None for one in (delta, epsilon, policy, incumbent)):
            settings["policy"] = chosen_policy(policy, delta=delta, epsilon=epsilon, incumbent=incumbent)
        refuse_other(chosen, begun, given if in_log else None, settings)
        return session

    # What workers do

    def ask(
        self, n: int = 1, *, worker: str | None = None, wait: bool = True, heartbeat: float | None = None
    ) -> list[Request]:
        """Up to n measurements to make now; empty when the session has ended.

        Asking again gives the same tokens until something is told. A token is one worker's until its lease
        ends. A worker without a name is this thread of this process; once it has ended, its tokens are free.
        When the policy waits for fewer measurements than there are workers, the others measure ahead (never
        more than 64); when there is nothing left to hand out, this waits, or with `wait=False` returns an
        empty list.

        With a `heartbeat`, in seconds, the tokens are free that long after this process has died, instead of
        at the end of the lease. While it lives a thread prolongs them, until they are told or the lease ends.
        """
        if not hasattr(n, "__index__") or n < 1:
            raise ParameterError(f"ask for a whole number of measurements, 1 or more, got n={n!r}")
        lasting = self.lease if heartbeat is None else min(seconds("heartbeat", heartbeat), self.lease)
        pause, who = FIRST_WAIT, default_worker() if worker is None else worker
        while True:
            with self._changing():
                requests = self._leasing.claim(n, who, lasting)
                if requests or not wait or self._ledger.is_over:
                    break
                until_free = self._leasing.next_end() - self._clock()
            time.sleep(min(pause, max(until_free, FIRST_WAIT)))
            pause = min(1.5 * pause, LONGEST_WAIT)
        if heartbeat is not None:
            hold = Hold(who, lasting, self._clock() + self.lease)
            self._heartbeat.hold([request.token for request in requests], hold)
        return requests

    def tell(
        self,
        what: str | int | Request,
        value: float | Sequence[float] | Mapping[str, float] | None,
        *,
        worker: str | None = None,
        key: str = "",
        note: str = "",
        lost: bool = False,
        sure: bool = False,
    ) -> Receipt:
        """Record a measurement; it is on disk when this returns.

        A `Request`, or its id, is answered. The name or number of an arm (or probe) answers its oldest open
        request, the worker's own first; with none open the value is an extra measurement. A probe with
        several readings is told by their names, or in the order of `request.readings`.

        Telling the same again is harmless. When another worker answered the request first, the value is kept
        as an extra measurement. With a `key`, such as the row of a file, it is recorded once. `lost` says
        that the measurement failed: whether one does must have nothing to do with its value. `note` is kept
        in the log. `sure` says that a value is right although it is surprising.
        """
        who = _whose(what, worker)
        found = self._request(what, who)
        if lost:
            if not isinstance(found, int):
                self.release(found, note or "lost", worker=who)
            return Receipt(0, "recorded")
        if isinstance(found, int):
            return self.add_extra(found, value, note=note, key=key)
        with self._heartbeat.dropped(found), self._changing():
            receipt = self._telling.tell(found, value, who, key)
        if note:
            self.note(f"{found}: {note}")
        return receipt

    def release(self, request: str | Request, reason: str = "", *, worker: str | None = None) -> None:
        """Release a request, so that another worker gets it at once.

        Of one that was told in part, the readings that are missing count as lost: the policy gets them from
        another use of the probe. Whether a reading is lost must have nothing to do with its value.

        A token that another worker has by now, because a lease had ended, is refused: it is theirs. A request
        knows whose it is; of a token alone say it with `worker`, if it was asked for under a name.
        """
        text, who = request.token if isinstance(request, Request) else request, _whose(request, worker)
        with self._heartbeat.dropped(text), self._changing():
            self._leasing.forget(self._telling.withdraw(text, reason, who))

    def remove(self, number: int | str | Request, reason: str) -> bool:
        """Remove a value that was recorded by mistake (a slip, the wrong road); the log keeps both.

        The value is known by its number (`Receipt.number`), or by the request that it answered, or its id.

        Return whether the policy has used the value. If not, its arm is asked for again. If it has, BetGapE
        and Challenge settle the batch again without it, and decisions stay; other policies start over
        without it. The guarantee assumes that the value was no measurement, and not removed for its size.
        """
        text = number.token if isinstance(number, Request) else str(number)
        value = count_in(text)
        return self._remove(text if value is None else self._recorded_as(value), reason)

    def _remove(self, text: str, reason: str) -> bool:
        """Remove the value of this request, or of the event with this number."""
        with self._changing():
            event = count_in(text)
            if event is not None:
                return void_unasked(self._replica, self.unasked(event), reason)
            return void(self._replica, self._token(text), reason)

    def add_extra(
        self,
        arm: int | str,
        value: float | Sequence[float] | Mapping[str, float] | None,
        *,
        note: str = "",
        picked: bool = False,
        key: str = "",
    ) -> Receipt:
        """Keep a measurement that nobody asked for; it is counted if the policy's proof allows it.

        `arm` is what was measured, by its name or number: an arm, or a probe. Of several values all are kept,
        or none if one of them is refused. A probe with several readings is recorded by their names; one with
        readings missing is kept, and not counted.

        This assumes that it was made and recorded whatever it showed, and not because of measurements that
        the policy has not read yet. Say `picked=True` of one that was chosen after looking: it is shown and
        exported, and never counted. It is counted when the open round is complete.

        With a `key` of your own (the number of a protocol, a row of a sheet) it is kept once however often it
        is recorded, so that repeating after an error is harmless.
        """
        with self._changing():
            remarks = {"note": str(note), **({"picked": True} if picked else {})}
            begin, _, number = key.rpartition("-")
            position = count_in(number) if begin and key == self.exported_key(count_in(number) or 0) else None
            known = None if position is None else self.unasked(position)
            return self._telling.record(self._probe(arm), value, key, remarks, known)

    def rename(self, title: str) -> None:
        """Give it another title, in the log like everything else; its name in a store never changes."""

        def make() -> Change:
            return Change([NewEvent("noted", {"title": title}, title_key(self._last_title()[0] + 1))])

        with self._changing() as replica:
            replica.commit(make, quick=False)

    def delete(self, *, expected: Head) -> None:
        """Delete it from the store for good, if it has ended and its log still ends where it was seen to.

        A session that somebody may be measuring for is refused: close it first.
        """
        with self._changing():
            if not self.ledger().is_over:
                raise SessionError(
                    f"session {self.name!r} is still running, so it was not deleted; close it first"
                )
            self.store.delete(self.name, expected=expected)

    def note(self, text: str) -> None:
        """Write a remark into the log."""
        with self._changing() as replica:
            replica.commit(lambda: Change([NewEvent("noted", {"text": str(text)})]))

    def extend(
        self, *, delta: float | None = None, epsilon: float | None = None, budget: int | None = None
    ) -> None:
        """Go on with a smaller delta or epsilon, or with a larger budget.

        With a smaller delta BetGapE and Challenge continue with the same evidence, at a higher threshold.
        Otherwise the policy starts over and reads the measurements from the beginning; it only waits for
        those that are missing.
        """
        with self._changing() as replica:
            replica.commit(lambda: extension(self._ledger, delta, epsilon, budget), quick=False)

    def add_plan(self, name: str, plan: Numbers | str, *, new_arms: GivenArms = ()) -> None:
        """Add a plan to the list while the session runs, or after its answer, which was about the others.

        The plan is a sum such as "2*tea + coffee", amounts by the names of arms, or one number per arm. Arms
        that it uses and the problem does not have are named in `new_arms`, or given as `NewArm`, with their
        noise scale and cost where those of the others differ. The policy knows it from its next round on.
        What is promised stays as it is, whoever adds which plans, and when; they may be chosen by looking at
        everything but values that were told ahead of the rounds.
        """
        self.add_plans({name: plan}, new_arms=new_arms)

    def add_plans(self, plans: Any, *, new_arms: GivenArms = ()) -> None:
        """Add several plans, all or none: by their names, or as a table with a row for each."""
        given = plans_by_name(plans)

        def adding() -> Change:
            bodies = additions(self._ledger, given, new_arms)
            return Change([NewEvent(ADDED, body, f"plan:{body['name']}") for body in bodies])

        with self._changing() as replica:
            replica.commit(adding, quick=False)

    def successor(self, reason: str, *, name: str | None = None) -> Session:
        """End this session because what is measured has changed, and begin another, the next epoch.

        The values of this one are past to the new one, where its policy can begin with a past: they count as
        at most 20 measurements of each arm and win no bet. It has the same plans, policy and seed, what is
        left of the budget, and a promise of its own, which is why it is a session of its own: its name is
        this one's with the next free number, unless another is given.
        """
        if not str(reason).strip():
            raise ParameterError("say what has changed: a new epoch has a reason", field="reason")
        if name in self.store.names():
            raise ParameterError(f"there is a session named {name!r} already; choose another", field="name")
        self.close(f"new epoch: {reason}")
        with self.held() as ledger:
            settings = epoch_of(ledger)
            problem, policy = ledger.setup.problem, ledger.setup.policy
        if problem.n_arms == self.given_problem.n_arms:
            problem = problem.with_layout(self.layout)
        settings["name"] = next_name(self.name, self.store.names()) if name is None else name
        begun = Session.create(self.store, policy=policy, problem=problem, lease=self.lease, **settings)
        begun.note(f"a new epoch of {self.name!r}: {reason}")
        return begun

    def final_batch(self, n: int | None = None, *, gaussian: bool = False) -> None:
        """Say that these n measurements are the last: one round, and a test of what leads now.

        What the open round still waits for is among them; all the others are asked for as one round, which is
        settled as a test of the lead, and then the session ends: with an answer if its risk is at most delta,
        and with its risk and the plans that remain if not. Without `n` it is the rest of the budget.
        `gaussian` says that their noise is Gaussian, under which the test proves more. When you call may
        depend on everything that the policy has seen; not on values that were told ahead of its rounds.
        """
        check_gaussian(self.given_problem, gaussian=gaussian)
        with self._changing() as replica:
            replica.commit(lambda: calling(self._ledger, n, gaussian=gaussian), quick=False)

    def close(self, reason: str = "") -> None:
        """End the session by hand; it stays readable, and `extend` lets it go on.

        One that has ended already stays as it is. So does one whose last measurement is told and whose answer
        is only not written down yet: it is decided first.
        """
        with self._changing() as replica:
            replica.commit(lambda: closing(self._ledger, reason), quick=False)
            while not self._ledger.is_over:  # a round was complete and is decided now; maybe not the last
                replica.commit(lambda: closing(self._ledger, reason), quick=False)

    def keep_snapshot(self) -> None:
        """Keep what is known beside the log, so that who opens the session next need not work it out again.

        For commands that end now. It is a cache: nothing is decided by it, and the log has everything.
        """
        with self._lock:
            self._replica.keep_if_small()

    # How it does it

    def _request(self, what: object, worker: str) -> str | int:
        """Return the id of the request that is answered, or the arm whose value is an extra measurement."""
        if isinstance(what, Request):
            return what.token
        if isinstance(what, str):
            known = self.ledger().setup.problem.probe_names
            if what not in known or self.is_pending(what):  # an open request beats an arm of the same name
                return what
        if not isinstance(what, str) and not hasattr(what, "__index__"):
            raise SessionError(f"expected an arm or a request, got {what!r:.60}", field="token")
        probe = self._probe(cast(Any, what))
        open_requests = self.pending(probe=probe)
        own = [one for one in open_requests if one.worker == worker]
        return next((one.token for one in own or open_requests), probe)

    def _recorded_as(self, number: int) -> str:
        """Return what the value of this number is called: its request's id or the number of its event."""
        for found in self.measurements():
            if found.number == number:
                return found.name
        raise SessionError(
            f"session {self.name!r} has no value {number}; `Session.measurements` has their numbers",
            field="number",
        )

    @contextmanager
    def _changing(self) -> Iterator[Replica]:
        """The way to append to the log, for one thread at a time; refused where a session is only shown."""
        if self.read_only:
            raise SessionError(
                f"session {self.name!r} was opened to be looked at, so nothing was changed; load it without "
                "read_only to go on with it"
            )
        with self._lock:
            yield self._replica


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
    """The name of the session in this store, if it has only one."""
    names = store.names()
    if len(names) == 1:
        return names[0]
    found = "none" if not names else ", ".join(map(repr, names[:8])) + (" ..." if len(names) > 8 else "")
    raise SessionError(f"say which session of {store.place} is meant; it has {len(names)}: {found}")
