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
from typing import Any, Unpack

from surepick.core.arrays import Numbers
from surepick.core.new_arms import GivenArms, plans_by_name
from surepick.core.numerals import count_in
from surepick.core.oracle_problem import AnyProblem, Best, OracleProblem
from surepick.core.past import Past
from surepick.core.policy import Policy, check_gaussian
from surepick.errors import NameTakenError, ParameterError, SessionError
from surepick.policies import policy_for
from surepick.sessions.arriving import ADDED, additions
from surepick.sessions.ending import calling, closing, epoch_of, next_name
from surepick.sessions.extending import extension
from surepick.sessions.heartbeat import Heartbeat, Hold
from surepick.sessions.leasing import Leasing
from surepick.sessions.ledger import Ledger, NewEvent
from surepick.sessions.looking import Looking, in_seconds, oracle_of, title_key
from surepick.sessions.replica import Change, Replica, drafts_of
from surepick.sessions.requests import Receipt, Request
from surepick.sessions.settings import NAME, NewSession, Settings, refuse_other, seconds
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
    >>> problem = sp.Problem([[1, 0], [0, 1]], arm_names=["road", "rail"], noise_scale=1)
    >>> session = sp.Session.create("memory://", problem, sp.CombGapE(delta=0.05), name="trips")
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
        problem: AnyProblem,
        policy: Policy | None = None,
        *,
        name: str = NAME,
        seed: int = 0,
        budget: int | None = None,
        lease: float = LEASE,
        past: Past | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Session:
        """Begin a session in this store, with the usual policy for the problem unless one is given.

        `lease` is how many seconds a worker has before its token is handed out again. Of an `OracleProblem`
        around a function of your own all is kept but the function, so `load` needs it again. A `past`,
        guesses or a history, is what the policy begins with; it wins no bet.
        """
        new = NewSession(problem, policy or policy_for(), name, seed, budget, lease, past)
        events = [NewEvent("created", new.to_json()), *Ledger(new.setup).decide()]
        place = _as_store(store, create=True)
        place.create(name, drafts_of(events, in_seconds(clock)()))
        return cls(place, name, oracle=oracle_of(problem), clock=clock)

    @classmethod
    def open(
        cls,
        store: str | Store,
        problem: AnyProblem,
        policy: Policy | None = None,
        **settings: Unpack[Settings],
    ) -> Session:
        """The session of this name about this problem, or a new one where there is none.

        The settings are those of `create`. A session of this name that is about another problem, or was begun
        with another policy, seed or budget than given here, is refused; so a program that is started
        again goes on where it was, and never mixes two decisions.
        """
        place, name = _as_store(store, create=True), settings.get("name", NAME)
        policy = policy or policy_for()
        if name not in place.names():
            try:
                return cls.create(place, problem, policy, **settings)
            except NameTakenError:  # by somebody who began at the same moment
                pass
        in_log = problem.is_listed or problem.recipe() is not None
        oracle = None if in_log else oracle_of(problem)
        session = cls(place, name, oracle=oracle, clock=settings.get("clock", time.time))
        begun = replace(session.ledger().setup, problem=session.given_problem)
        refuse_other(name, begun, problem, policy, settings)
        return session

    @classmethod
    def load(
        cls,
        store: str | Store,
        name: str | None = None,
        *,
        best: Best | None = None,
        problem: OracleProblem | None = None,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> Session:
        """Open a session of this store again; its name may be left out when there is only one.

        Plans that are known by a function of your own need it again, as `best`, or the whole problem as
        `problem`; one that answers otherwise than the first is refused. With `read_only=True` a session can
        be looked at without it, and nothing can be changed.
        """
        if best is not None and problem is not None:
            raise ParameterError("give either best or problem, not both: the problem has its function")
        place = _as_store(store, create=False)
        oracle = best if problem is None else problem
        chosen = only_session(place) if name is None else name
        return cls(place, chosen, oracle=oracle, read_only=read_only, clock=clock)

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
        token: str | Request,
        value: float | Sequence[float] | Mapping[str, float],
        *,
        worker: str | None = None,
        key: str = "",
    ) -> Receipt:
        """Record what was measured: one value or several.

        A probe with several readings is told by their names, or in the order of `request.readings`. Some may
        come first and others later under the same token (`Receipt.PARTIAL`), unless they share noise with a
        given covariance; if the others never come, `withdraw` the token: what was told counts all the same,
        unless readings of one use may depend on each other (`readings="dependent"`).

        It is on disk when this returns. Telling the same again is harmless; another value for a token that
        this worker already told is refused. When another worker told the token first (a lease had ended),
        the value is kept like one that nobody asked for, and counts where those do. With a `key`, such as the
        row of a file, it is recorded once, whichever tokens it is told under.
        """
        text, who = _whose(token, worker)
        with self._heartbeat.dropped(text), self._changing():
            return self._telling.tell(text, value, who, key)

    def withdraw(self, token: str | Request, reason: str = "", *, worker: str | None = None) -> None:
        """Give a token back unmeasured; it will be handed out again, and counts as nothing.

        Of one that was told in part, the readings that are missing count as lost: the policy gets them from
        another use of the probe. Whether a reading is lost must have nothing to do with its value.

        A token that another worker has by now, because a lease had ended, is refused: it is theirs. A request
        knows whose it is; of a token alone say it with `worker`, if it was asked for under a name.
        """
        text, who = _whose(token, worker)
        with self._heartbeat.dropped(text), self._changing():
            self._leasing.forget(self._telling.withdraw(text, reason, who))

    def void(self, token: str | int | Request, reason: str) -> bool:
        """Take back a value that was no measurement (a slip of the pen, the wrong road); the log keeps both.

        One that nobody had asked for has no token: it is known by the number of its event, which `log` and
        `Measurement.event` have.

        Return whether the policy has used the value. If not, its arm is asked for again. If it has, BetGapE
        and Challenge settle the batch again without it, and decisions stay; other policies start over
        without it. The guarantee assumes that the value was no measurement, and not removed for its size.
        """
        text = token.token if isinstance(token, Request) else str(token)
        with self._changing():
            event = count_in(text)
            if event is not None:
                return void_unasked(self._replica, self.unasked(event), reason)
            return void(self._replica, self._token(text), reason)

    def record(
        self,
        arm: int | str,
        value: float | Sequence[float] | Mapping[str, float],
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

    def new_epoch(self, reason: str, *, name: str | None = None) -> Session:
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
        begun = Session.create(self.store, problem, policy, lease=self.lease, **settings)
        begun.note(f"a new epoch of {self.name!r}: {reason}")
        return begun

    def last_call(self, n: int | None = None, *, gaussian: bool = False) -> None:
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


def _whose(token: str | Request, worker: str | None) -> tuple[str, str]:
    """The text of a token, and whose it is: a request knows both."""
    if isinstance(token, Request):
        return token.token, token.worker if worker is None else worker
    return token, default_worker() if worker is None else worker


def _as_store(store: str | Store, *, create: bool) -> Store:
    return open_store(store, create=create) if isinstance(store, str) else store


def only_session(store: Store) -> str:
    """The name of the session in this store, if it has only one."""
    names = store.names()
    if len(names) == 1:
        return names[0]
    found = "none" if not names else ", ".join(map(repr, names[:8])) + (" ..." if len(names) > 8 else "")
    raise SessionError(f"say which session of {store.place} is meant; it has {len(names)}: {found}")
