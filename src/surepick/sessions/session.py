"""Sessions: real measurements by many workers, kept in a store, decided as a simulation would.

The log is the truth and `SessionState` is what it means; a `Journal` keeps them together. This is the page on
which a user of sessions finds all that they do. Each change is one event or a few (`commands`), checked
against the state at the end of the log and appended in one transaction. Views, files and web pages read the
state itself, through `Session.journal`.
"""

from __future__ import annotations

import itertools
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surepick.certificates.certificate import Certificate
from surepick.core.answers import named_ranging
from surepick.core.given.arms import GivenArms
from surepick.core.given.numbers import Numbers
from surepick.core.given.plans import make_frame
from surepick.core.guarantee import no_guarantee
from surepick.core.oracle_problem import AnyProblem, Best, OracleProblem
from surepick.core.policy import Policy
from surepick.core.prior_data import PriorData
from surepick.core.problem import Problem
from surepick.errors import DamageError, NameTakenError, NoiseWarning, ParameterError, SessionError
from surepick.policies import policy_for
from surepick.sessions import commands
from surepick.sessions.certify import certify, guarantee_of
from surepick.sessions.commands import Receipt, Use
from surepick.sessions.events import Created, Event, Renamed, recorded_key
from surepick.sessions.journal import Change, Journal, decided, drafts_of, in_seconds
from surepick.sessions.leases import Request, claim, default_worker, in_turn, request_for
from surepick.sessions.records import Measurement, measurements_in
from surepick.sessions.setup import Setup, refuse_other, seconds
from surepick.sessions.state import SessionState
from surepick.sessions.streams import Place
from surepick.sessions.verify import Verdict, verify
from surepick.simulation.outcome import Outcome, State
from surepick.store import Event as Row
from surepick.store import Head, Lease, Store, open_store
from surepick.store.log import LEASE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from surepick.views.view import View

FIRST_WAIT, LONGEST_WAIT = 0.002, 0.5  # seconds between two looks for a free request
COLUMNS = ("number", "arm", "value", "worker")
PROBE_COLUMNS = ("number", "probe_name", "reading", "value", "worker")


class Session:
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
        self.journal = Journal(store, name, oracle=oracle, read_only=read_only, clock=clock)
        self.store = store
        self.name = name

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
        prior: PriorData | None = None,
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
        setup = Setup(problem, chosen, seed, budget, prior, name, lease).checked()
        events: list[Event] = [Created(setup.to_json()), *decided(SessionState(setup))]
        opened = open_store(store) if isinstance(store, str) else store
        opened.create(name, drafts_of(events, in_seconds(clock)()))
        return cls(opened, name, oracle=_oracle_of(problem), clock=clock)

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
        prior: PriorData | None = None,
        seed: int = 0,
        lease: float = LEASE,
        clock: Callable[[], float] = time.time,
    ) -> Session:
        """Return the session of this name, or begin it if there is none and a problem is given.

        The settings are those of `create`. A session that was begun with another problem or other settings
        than given here is refused, so a program that is started again continues where it was.
        """
        place = open_store(store, create=problem is not None) if isinstance(store, str) else store
        chosen: Any = {"delta": delta, "epsilon": epsilon, "policy": policy, "incumbent": incumbent}
        given: Any = {"problem": problem, "budget": budget, "prior": prior, "seed": seed or None}
        if problem is not None and name not in place.names():
            rest: Any = {"budget": budget, "prior": prior, "seed": seed, "lease": lease, "clock": clock}
            try:
                return cls.create(place, name, problem, **chosen, **rest)
            except NameTakenError:  # another process began it at the same moment
                pass
        session = cls.load(place, name, problem, clock=clock)
        if any(value is not None for value in chosen.values()):
            given["policy"] = policy_for(**chosen)
        state = session.state()
        begun = replace(state.setup, problem=state.given.problem)  # plans may have been added since
        refuse_other(name, begun, {key: value for key, value in given.items() if value is not None})
        return session

    @classmethod
    def load(
        cls,
        store: str | Store,
        name: str | None = None,
        problem: AnyProblem | Best | None = None,
        *,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> Session:
        """Open a session of this store; its name may be left out when there is only one.

        Plans that are known by a function of your own need it again, as `problem`: the function, or the whole
        problem. With `read_only=True` a session can be looked at without it, and nothing can be changed.
        """
        place = open_store(store, create=False) if isinstance(store, str) else store
        if isinstance(problem, Problem) or (
            isinstance(problem, OracleProblem) and problem.recipe() is not None
        ):
            oracle: Any = None  # the log has all of it
        else:
            oracle = problem
        return cls(
            place,
            only_session(place) if name is None else name,
            oracle=oracle,
            read_only=read_only,
            clock=clock,
        )

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
        lasting = self.journal.setup.lease
        if lease is not None:
            lasting = min(seconds("lease", lease), lasting)
        who = default_worker() if worker is None else worker
        pause = FIRST_WAIT
        until = float("inf") if wait is True else time.monotonic() + float(wait)
        while True:
            with self.journal.lock:
                requests, next_end = claim(self.journal, n, who, lasting)
                if requests or self.journal.state.is_over or time.monotonic() >= until:
                    return requests
                until_free = next_end - self.journal.clock()
            left = until - time.monotonic()
            time.sleep(min(pause, max(until_free, FIRST_WAIT), max(left, 0.0)))
            pause = min(1.5 * pause, LONGEST_WAIT)

    def tell(
        self,
        what: str | int | Request | Place,
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
        who, uses = _whose(what, worker), None if lost else value

        def make(_: SessionState) -> Change:
            return commands.measured(
                self.journal, what, uses, worker=who, key=str(key), note=str(note), sure=sure
            )

        receipt: Receipt = self.journal.commit(make)
        return receipt

    def release(self, request: str | Request, reason: str = "", *, worker: str | None = None) -> None:
        """Release a request, so that another worker gets it at once.

        A request that another worker has by now, because a lease had ended, is refused. A `Request` knows
        its worker; with an id alone name the worker, if it was asked for under a name.
        """
        text = request.token if isinstance(request, Request) else request
        who = _whose(request, worker)
        self.journal.commit(lambda _: commands.released(self.journal, text, who, str(reason)))

    def remove(self, number: int | str | Request, reason: str) -> bool:
        """Remove a value that was recorded by mistake (a slip, the wrong road); the log keeps both.

        The value is known by its number (`Receipt.number`), or by the request that it answered, or its id.
        Return whether the policy has used the value. If not, its arm is asked for again. If it has, BetGapE
        settles the batch again without it, and decisions stay; other policies refuse. The guarantee assumes
        that the value was no measurement, and not removed for its size.
        """
        text = number.token if isinstance(number, Request) else str(number)
        return bool(self.journal.commit(lambda _: commands.removed(self.journal, text, str(reason))))

    # Steering

    def extend(self, *, delta: float | None = None, budget: int | None = None) -> None:
        """Continue with a smaller delta, on the same evidence, or with a larger budget.

        Only policies that follow recorded decisions (BetGapE) take a smaller delta. Another epsilon needs a
        new session: see `successor`.
        """
        self.journal.commit(lambda state: commands.extended(state, delta, budget))

    def add_plan(self, name: str, plan: Numbers | str, *, arms: GivenArms = ()) -> None:
        """Add a plan to the list while the session runs, or after its answer, which was about the others.

        The plan is a sum such as "2*tea + coffee", amounts by the names of arms, or one number per arm. Arms
        that it uses and the problem does not have are named in `arms`, or given as `NewArm`. The policy
        knows the plan from its next batch on. Plans may be chosen by looking at everything but values that
        wait for a later batch.
        """
        self.journal.commit(lambda state: commands.plan_added(state, name, plan, arms))

    def final_batch(self, n: int | None = None, *, gaussian: bool = False) -> None:
        """Make the next n measurements the last: one batch, and a test of the leader.

        The missing measurements of the open batch are among them. The session ends with an answer if its
        risk is at most delta, else with the plans that remain. Without `n` it is the rest of the budget.
        `gaussian` says that the noise is Gaussian, under which the test proves more. Your decision to call it
        may depend on everything that the policy has used; not on values that wait for a later batch.
        """
        self.journal.commit(lambda state: commands.final_batch(state, n, gaussian=gaussian))

    def close(self, reason: str = "") -> None:
        """End the session by hand; it stays readable, and `extend` lets it continue.

        One that has ended stays as it is. So does one whose last measurement is recorded and whose answer is
        only not written down yet: it is decided first.
        """
        while True:
            self.journal.commit(lambda state: commands.closed(state, reason))
            if self.journal.state.is_over:
                return  # else a batch was complete, and it was not the last

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
        prior: PriorData | None = None,
    ) -> Session:
        """Begin another session with the values of this one as prior data, and close this one.

        Use it for a change that a session does not allow: another problem (plans, noise), delta, epsilon or
        policy, or when the means have changed. The values count as at most 20 measurements of each arm and
        never as evidence, so the new session has a guarantee of its own. Its name is this one's with the next
        free number. `prior` is for arms without values here.
        """
        if not str(reason).strip():
            raise ParameterError("say why: a successor has a reason", field="reason")
        if name in self.store.names():
            raise ParameterError(f"there is a session named {name!r} already; choose another", field="name")
        with self.journal.held() as state:
            setup = state.setup
            n_measured = state.n_measurements
            if policy is None and incumbent is None:
                before: Any = setup.policy
                changes = {"delta": delta, "epsilon": epsilon}
                given = {setting: to for setting, to in changes.items() if to is not None}
                chosen: Policy = replace(before, **given)
            else:
                chosen = policy_for(policy, delta=delta, epsilon=epsilon, incumbent=incumbent)
            about = setup.problem if problem is None else problem
            prior = commands.prior_of(state, about, chosen, prior)
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
            prior=prior,
            seed=setup.seed,
            lease=self.journal.setup.lease,
        )
        self.close(f"continued as {begun.name!r}: {reason}")  # once it has begun
        return begun

    def rename(self, title: str) -> None:
        """Give it another title, in the log like everything else; its name in a store never changes."""
        self.journal.commit(lambda state: Change([Renamed(state.n_titles + 1, title)]))

    def delete(self, *, expected: Head) -> None:
        """Delete it from the store for good, if it has ended and its log still ends where it was seen to."""
        self.journal.refuse_read_only()
        with self.journal.held() as state:
            if not state.is_over:
                raise SessionError(
                    f"session {self.name!r} is still running, so it was not deleted; close it first"
                )
            self.journal.log.delete(expected=expected)

    # Where it stands

    @property
    def problem(self) -> AnyProblem:
        """The problem, with the plans that were added."""
        return self.journal.state.problem

    @property
    def policy(self) -> Policy:
        """The policy as it was chosen or extended."""
        return self.journal.setup.policy

    @property
    def status(self) -> State:
        """The state: running, confident, budget spent or closed (or done, by a policy without guarantee)."""
        return self.state().status or State.RUNNING

    def state(self) -> SessionState:
        """Return the state of the session now, others' measurements included; to look at, not to change.

        It changes with the session: where threads share one, look at it within `journal.held`.
        """
        with self.journal.held() as state:
            return state

    @property
    def outcome(self) -> Outcome:
        """Return where the session stands, or how it ended; warn if the guarantee does not apply.

        While it runs its `state` is RUNNING and its `plan` None; `leader` is the plan that looks best.
        """
        with self.journal.held() as state:
            problem = state.estimated_problem
            evidence = state.evidence
            standing = state.standing()
            lead = standing.leader if state.plan is None else state.plan
            outcome = Outcome(
                plan=state.plan,
                plan_name=problem.name_of(state.plan),
                state=state.status or State.RUNNING,
                leader=lead,
                leader_name=problem.name_of(lead),
                n_measured=state.n_measurements,
                n_rounds=state.n_rounds,
                cost=problem.spent(evidence.cost(problem.costs), state.n_rounds),
                counts=evidence.counts,
                means=evidence.means,
                standing=standing,
                policy=state.setup.policy,
                guarantee=guarantee_of(state).text,
                seed=state.setup.seed,
                seconds=self.journal.clock() - self.journal.created.time,
                noise_scale=problem.noise_scale,
                problem=problem,
                ranging=named_ranging(problem, state.plan, evidence),
                doubts=state.doubts(),
            )
        if outcome.doubts:
            warnings.warn(f"{self.name}: {no_guarantee(outcome.doubts)}", NoiseWarning, stacklevel=2)
        return outcome

    def view(self) -> View:
        """Return where the session stands: answer, proof, estimates, plans, arms, what to measure."""
        from surepick.views.build import build

        return build(self)

    def pending(self, n: int | None = None) -> list[Request]:
        """Return the open requests of the batch, assigned or not, at most n; nothing is leased by looking."""
        with self.journal.held_with_leases() as (state, leases):
            unassigned = Lease("", "", 0.0)
            first = [one.token for one in itertools.islice(in_turn(state), n)]
            return [request_for(state, place, leases.get(place, unassigned)) for place in first]

    def leases(self) -> list[Lease]:
        """Return who is measuring what, and until when, ended leases included."""
        with self.journal.held_with_leases() as (_, leases):
            return list(leases.values())

    def events(self, *, after: int = 0) -> Iterator[Row]:
        """Yield the log, from its beginning or after this position."""
        return self.journal.events(after=after)

    def measurements(self, last: int | None = None) -> Iterator[Measurement]:
        """Yield every recorded measurement in order; removed ones are marked.

        With `last`, only the last so many uses, at most 64: then the end of the log is read alone.
        """
        state = self.state()
        after = 0
        if last is not None and len(state.recent_values) >= last:
            first = self.journal.log.find(recorded_key(state.recent_values[-last]))
            after = 0 if first is None else first.position - 1
        for event in self.events(after=after):
            yield from measurements_in(event, state)

    def certificate(self) -> Certificate:
        """Return the session's answer with its proof, which `verify` checks."""
        with self.journal.held() as state:
            if not state.is_over:
                raise SessionError(
                    f"session {self.name!r} is still running, so there is nothing to certify; ask and tell "
                    "until it stops, or close it"
                )
            end = self.journal.log.find(state.end_key)
            if end is None:
                raise DamageError(
                    f"session {self.name!r} lacks the event that ended it; run `surepick verify --all`"
                )
            return certify(self.name, state, end)

    def verify(self, certificate: Mapping[str, Any] | None = None) -> Verdict:
        """Replay the log from its first event and say whether it, and a certificate if given, hold."""
        oracle = _oracle_of(self.journal.state.given.problem)
        return verify(self.journal.log, certificate, oracle=oracle)

    def export(self, path: str | Path) -> Path:
        """Write a report (.html), the values (.csv, .xlsx), the log (.json) or certificate.json."""
        from surepick.report.export import export

        return export(self, path)

    def __repr__(self) -> str:
        return f"Session({self.view().line()})"

    def _repr_html_(self) -> str:
        return self.view()._repr_html_()

    def plot(self, what: str = "plans") -> Figure:
        """Return a matplotlib figure: "plans" or "arms"."""
        from surepick import plots

        if what not in plots.__all__:
            raise ParameterError(f"a session plots {', '.join(plots.__all__)}, got {what!r}", field="what")
        figure: Figure = getattr(plots, what)(self)
        return figure

    def to_frame(self, what: str = "values") -> Any:
        """Return "values" (a row per recorded number), "plans" or "arms" as a pandas data frame."""
        if what in ("plans", "arms"):
            rows: Sequence[Any] = getattr(self.view(), what)
            names = [one.name for one in fields(rows[0])] if rows else []
            return make_frame({name: [getattr(row, name) for row in rows] for name in names})
        if what != "values":
            raise ParameterError(f"a frame has values, plans or arms, got {what!r}", field="what")
        told = list(self.measurements())
        names = list(COLUMNS if self.problem.arms_alone else PROBE_COLUMNS)
        columns: dict[str, list[Any]] = {name: [getattr(m, name) for m in told] for name in names}
        times = [datetime.fromtimestamp(m.time, UTC) for m in told]
        return make_frame({**columns, "time": times, "removed": [m.removed for m in told]})

    def watch(self, every: float = 1.0) -> None:
        """Show where the session stands, updated in place until it has ended; Ctrl-C ends the watching alone.

        In a notebook it is the table that the session shows, elsewhere a line on the terminal.
        """
        shell = sys.modules.get("IPython")
        current = None if shell is None else shell.get_ipython()
        handle = None
        shown = ""
        if current is not None and type(current).__name__ != "TerminalInteractiveShell":
            from IPython.display import display

            handle = display(self, display_id=True)  # type: ignore[no-untyped-call, unused-ignore]
        try:
            while True:
                is_over = self.state().is_over
                if handle is not None:
                    handle.update(self)
                elif (line := self.view().line()) != shown:
                    print(f"\r{line:<{len(shown)}}", end="", file=sys.stderr, flush=True)
                    shown = line
                if is_over:
                    break
                time.sleep(every)
        except KeyboardInterrupt:
            pass
        if handle is None:
            print(file=sys.stderr)


def _whose(request: object, worker: str | None) -> str:
    """Return the worker that acts: the one that is named, that of a request, or this thread."""
    if worker is not None:
        return worker
    return request.worker if isinstance(request, Request) else default_worker()


def _oracle_of(problem: AnyProblem) -> OracleProblem | None:
    """Return the problem if it has a function that a log does not hold."""
    return problem if not problem.is_listed and problem.can_decide else None


def only_session(store: Store) -> str:
    """Return the name of the session in this store, if it has only one."""
    names = store.names()
    if len(names) == 1:
        return names[0]
    found = "none" if not names else ", ".join(map(repr, names[:8])) + (" ..." if len(names) > 8 else "")
    raise SessionError(f"say which session of {store.place} is meant; it has {len(names)}: {found}")
