"""What a session's log means: a fold of its events, with the tapes and the run of the policy inside.

Nothing here knows the store or the clock. Long because a method for each kind of event stands here: whoever
asks what an event does to a session looks in one place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from surepick.core.evidence import Evidence
from surepick.core.guarantee import Doubt
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import delta_of, epsilon_of
from surepick.core.run import Answer, Standing
from surepick.errors import MissingFunctionError, SessionError
from surepick.noise.check import check_noise
from surepick.noise.record import Withdrawals
from surepick.sessions import codec
from surepick.sessions.arriving import ADDED, growing, lengthened, refuse_starting_over, with_added
from surepick.sessions.policy_run import Decision, PolicyRun
from surepick.sessions.requests import Token, numbered, numbers_in, probe_in, readings_in
from surepick.sessions.settings import Body, Setup
from surepick.sessions.snapshot import as_answer
from surepick.sessions.tapes import Tapes, Used, readings_per_probe
from surepick.simulation.outcome import Status

RECENT = 256  # rounds whose probes are remembered, to guess what will be asked next
MOST_DOUBTFUL = 20  # implausible values that are remembered, the first ones
RECENT_TELLS = 64  # whose workers are remembered, to know how many there are


class NewEvent(NamedTuple):
    """An event that is to be written: its body as JSON values, its key unique within the log."""

    kind: str
    body: Body
    key: str | None = None


class Ledger:
    """The state of a session; it changes by `apply` and `decide` alone, in the order of the log.

    Its owner is a `Replica`, or whoever replays a log. All others look.

    The run of the policy is begun when it is first wanted, and then follows all that the log has given it. So
    work is handed out, and a measurement that completes no round is taken in, without compiled code.
    """

    def __init__(self, setup: Setup, run: PolicyRun | None = None) -> None:
        self.n_unasked = 0
        self.n_recorded = 0  # values, by which the next one is numbered
        self._surprises: list[int] = []
        self.keys: set[str] = set()  # of recorded values that answer a request, such as the rows of a file
        self.unasked_voided: set[int] = set()  # taken back: the numbers of the events that recorded them
        self.doubtful: list[tuple[int, str, float]] = []  # implausible: arm, what `void` calls it, value
        self.recent_workers: deque[str] = deque(maxlen=RECENT_TELLS)
        self.arrived: list[Body] = []  # the plans that were added, in their order
        self.first_delta = delta_of(setup.policy)
        self.extensions: list[Body] = []  # delta, epsilon and budget after each, and values recorded ahead
        self.epoch = 0  # how often it was extended, or the policy started over
        self.withdrawals = Withdrawals(setup.problem.n_probes)
        # Withdrawals since it ended: what it ended with does not rest on them.
        self._after_end: list[Body] = []
        self.tapes = Tapes(readings_per_probe(setup.problem))
        self._changes: dict[str, Callable[[Body], None]] = {
            "measured": self._measured,
            "voided": self._voided,
            "withdrawn": self._withdrawn,
            "extended": self._extended,
            "closed": self._closed,
            "called": self.call_last,
            ADDED: self._added,
        }
        self._begin(setup, run)

    def _begin(self, setup: Setup, run: PolicyRun | None = None) -> None:
        """Go on with this run, or with a new one at the beginning of the tapes."""
        self.setup = self._first_setup = setup
        self._steps: list[Callable[[PolicyRun], int | None]] = []  # all that a run is given, in order
        self._n_taken = 0  # of these steps
        self._go_on()
        self.plan: Answer | None = None
        self.end_key = ""  # of the event that ended the session
        self.recent_probes: deque[int] = deque(maxlen=RECENT)
        self._run = run
        self._n_rounds_to_follow = 0
        if run is None and not setup.problem.is_listed:
            self._run = PolicyRun(setup)  # a solver may fail, which is better said where the log is read

    def _go_on(self) -> None:
        """Run, or run again; what was given back since the end counts now."""
        self.status: Status | None = None
        for body in self._after_end:
            token = Token.of(body)
            self.withdrawals.add(token.probe, str(token), body.get("reason", ""))
        self._after_end = []

    def _start_over(self, setup: Setup) -> None:
        """Begin again at the beginning of the tapes; where the log surprised the run before stays known."""
        _ = self.run  # has followed
        self.tapes.rewind()
        self._begin(setup)

    @property
    def run(self) -> PolicyRun:
        """The run of the policy, which has seen all complete rounds."""
        if self._run is None:
            self._run = PolicyRun(self._first_setup)
        while self._n_taken < len(self._steps):
            follow = self._steps[self._n_taken]
            self._n_taken += 1  # before it is tried: one that fails is not tried again
            if (n_rounds := follow(self._run)) is not None:
                self._surprises.append(n_rounds)
        if self._n_taken and not self._run.follows:  # nothing is read again without starting over
            self._steps, self._n_taken = [], 0
        return self._run

    @property
    def is_awake(self) -> bool:
        """Whether the policy was at work here, so that there is something to keep."""
        return self._run is not None and self._run.is_awake

    def _give(self, follow: Callable[[PolicyRun], int | None]) -> None:
        """Let the run follow the log: now if it is there, else when it is wanted.

        What `follow` gives is the round in which the log decided otherwise than the run.
        """
        self._steps.append(follow)
        if self._run is not None:
            _ = self.run  # follows

    @property
    def surprises(self) -> list[int]:
        """Rounds where the log decided otherwise than this machine would."""
        _ = self.run  # has followed
        return self._surprises

    @property
    def is_over(self) -> bool:
        """Whether the session has ended."""
        return self.status is not None

    @property
    def is_due(self) -> bool:
        """Whether the round is complete, so that the policy has to decide."""
        return self.status is None and self.tapes.n_missing == 0

    @property
    def problem(self) -> AnyProblem:
        """The problem."""
        return self.setup.problem

    @property
    def estimated_problem(self) -> AnyProblem:
        """The problem, with an estimate of the noise where it is unknown; for displays, never for proofs."""
        problem = self.problem
        if problem.noise_scale is not None:
            return problem
        scale = self.run.seen.moments.estimated_scale()
        return problem if scale is None else problem.with_noise(scale)

    @property
    def evidence(self) -> Evidence:
        """What the policy has seen."""
        return self.run.seen.evidence

    @property
    def n_measurements(self) -> int:
        """How many measurements the policy has seen."""
        return self.run.seen.evidence.n_measurements

    @property
    def n_rounds(self) -> int:
        """How many complete rounds the policy has seen."""
        if self._run is not None:
            return self._run.n_rounds
        return self._n_rounds_to_follow

    @property
    def n_told(self) -> int:
        """How many measurements were told."""
        return self.tapes.n_told

    def standing(self) -> Standing:
        """Where the run stands."""
        return self.run.standing()

    def doubts(self) -> tuple[Doubt, ...]:
        """Return what the values show that the guarantee does not allow."""
        return check_noise(self.problem, self.run.seen.noise, self.withdrawals)

    def round_key(self, n_rounds: int) -> str:
        """The key of the event that holds the decision after so many complete rounds."""
        return f"{self.epoch}:round:{n_rounds}"

    def closing_key(self) -> str:
        """The key for an event that closes the session now."""
        return f"{self.epoch}:closed"

    def calling_key(self) -> str:
        """The key for the event of a last call: there is one."""
        return f"{self.epoch}:called"

    def apply(self, kind: str, body: Body, position: int = 0) -> None:
        """Take in the next event of the log, which stands there; only unasked ones are known by that."""
        if kind in ("asked", "stopped"):
            self._decided(Decision(kind, body))
        elif kind == "recorded":
            self._recorded(body, position)
        elif kind in self._changes:
            self._changes[kind](body)
        elif kind != "noted":
            raise SessionError(
                f"the log has an event of kind {kind!r}, which this surepick does not know; upgrade surepick"
            )

    def decide(self) -> list[NewEvent]:
        """What the policy decides now that its round is complete; empty while it is not."""
        made = []
        while self.is_due:
            made.append(self.decide_once())
        return made

    def decide_once(self) -> NewEvent:
        """What the policy decides on the round that is complete; it is taken in."""
        decision = self._next()
        if decision is None:
            raise MissingFunctionError(
                "this session was opened to look at, without its function; load it again"
            )
        self._take(decision)
        return NewEvent(*decision, self.decision_key(decision.body))

    def decision_key(self, body: Body) -> str:
        """The key of the event with this decision, which was made after the rounds that are complete now."""
        del body
        return self.round_key(self.n_rounds)

    def _next(self) -> Decision | None:
        """Hand the complete round to the run and let it decide."""
        used, run = self.tapes.use_round(), self.run
        if used:
            run.absorb(used)
        decision = run.decide()
        if run.follows and decision is not None:
            self._steps.append(lambda run: self._follow(run, used, decision))
            self._n_taken += 1
        return decision

    def _decided(self, decision: Decision) -> None:
        """Take in a decision of the log, which is right whatever this machine would decide."""
        if self.is_due:
            used = self.tapes.use_round()
            self._n_rounds_to_follow += bool(used)
            self._give(lambda run: self._follow(run, used, decision))
        self._take(decision)

    def follow_strictly(self, kind: str, body: Body) -> NewEvent:
        """Take in a decision that the policy follows; a ValueError says why no session writes it here."""
        used, run, decision = self.tapes.use_round(), self.run, Decision(kind, body)
        if used:
            run.absorb(used)
        run.follow(decision, strictly=True)
        self._steps.append(lambda run: self._follow(run, used, decision))
        self._n_taken += 1
        self._take(decision)
        return NewEvent(*decision, self.decision_key(body))

    def _follow(self, run: PolicyRun, used: list[Used], decision: Decision) -> int | None:
        """Give the run a complete round, without what was removed, and let it follow the decision."""
        kept, removed = self.tapes.without_removed(used) if run.follows else (used, {})
        if used:
            run.absorb(kept, removed)
        agrees = run.follow(decision)
        # values that were removed since have moved the numbers of the decisions before
        return None if agrees or (run.follows and self.n_voided) else run.n_rounds

    def _follow_again(self) -> None:
        """Follow all decisions again, without values that were removed since; then go on, or go on again."""
        self.tapes.check_whole()
        self._run, self._n_taken = PolicyRun(self._first_setup), 0
        if self.is_over:
            self.epoch += 1
            self._go_on()
            self.plan = None
        _ = self.run  # has followed

    def _take(self, decision: Decision) -> None:
        kind, body = decision
        if kind == "stopped":
            self.status, self.plan = Status(body["status"]), as_answer(body["plan"])
            self.end_key = self.decision_key(body)
            self.tapes.open_round([])
            return
        if "plays" in body:
            self._know_plays(body["plays"])
        self.tapes.open_round(body["counts"])
        self.recent_probes.extend([probe for probe, _ in body["counts"]])

    def _know_plays(self, plays: list[list[int]]) -> None:
        """Number the plays of these arms, which are asked for the first time: they are probes from now on."""
        problem = self.setup.problem
        if problem.is_listed or not problem.plays:
            raise SessionError("the log asks for plays, and this problem has none; see `surepick verify`")
        every = range(problem.n_arms)
        if not all(arms and all(type(arm) is int and arm in every for arm in arms) for arms in plays):
            raise SessionError("the log asks for plays of arms that there are not; see `surepick verify`")
        self.setup = setup = replace(self.setup, problem=problem.with_asked_plays(plays))
        self._make_room(setup)
        self._give(lambda run: run.know_plays(setup))

    def _make_room(self, setup: Setup) -> None:
        """Have tapes of everything that is measured now."""
        self.tapes.lengthen(readings_per_probe(setup.problem))
        self.withdrawals.lengthen(setup.problem.n_probes)

    def _measured(self, body: Body) -> None:
        problem, probe = self.setup.problem, probe_in(body)
        self.recent_workers.append(body.get("worker", ""))
        if "key" in body:
            self.keys.add(body["key"])
        for index, values in numbers_in(body, problem.reads(probe)):
            self.n_recorded += 1
            self.tapes.tell(Token(probe, index), values)
            if problem.about.plausible is not None:
                self._doubt(probe, str(Token(probe, index)), values)

    def _recorded(self, body: Body, position: int) -> None:
        self.n_unasked += 1
        self.n_recorded += 1
        probe = probe_in(body)
        reads = self.setup.problem.reads(probe)
        values = numbered(readings_in(body), reads)
        self._doubt(probe, str(position), values)
        if not body.get("picked") and len(values) == len(reads):  # of a part nothing can be counted
            use = [value for _, value in sorted(values.items())]
            self._give(lambda run: self._add_unasked(run, position, probe, use))

    def _add_unasked(self, run: PolicyRun, position: int, probe: int, use: list[float]) -> None:
        if position not in self.unasked_voided:
            run.add_unasked(position, probe, use)

    def _doubt(self, probe: int, name: str, values: Mapping[int, float]) -> None:
        """Remember a value that is not plausible, for people to look at; nothing is decided by it."""
        problem = self.setup.problem
        ranges = problem.about.plausible
        if ranges is None or problem.probes is not None:  # what is plausible is said of arms
            return
        arms = problem.readings_of(probe)
        for k, value in values.items():
            low, high = ranges[arms[k]]
            if not low <= value <= high and len(self.doubtful) < MOST_DOUBTFUL:
                self.doubtful.append((arms[k], name, value))

    @property
    def n_voided(self) -> int:
        """How many values were taken back, asked for or not."""
        return len(self.tapes.voided) + len(self.unasked_voided)

    def is_voided(self, name: str) -> bool:
        """Whether the value that `void` calls so was taken back."""
        if "." in name:
            return Token.parse(name) in self.tapes.voided
        return int(name) in self.unasked_voided

    def _voided(self, body: Body) -> None:
        """Remove a value: the batch that used it is settled without it, and decisions stay.

        A policy that cannot follow recorded decisions starts over, on tapes that never had the value.
        """
        if "event" in body:
            self._voided_unasked(body["event"])
            return
        token = Token.of(body)
        is_used = token.index < self.tapes.of[token.probe].first_unused
        follows = is_used and self.run.follows
        if follows:
            self.tapes.check_whole()
        elif is_used:
            refuse_starting_over(self.arrived, "taking back a value that the policy has seen")
        self.tapes.void(token)
        if follows:
            self._follow_again()
        elif is_used:
            self.epoch += 1
            self._start_over(self.setup)

    def _voided_unasked(self, position: int) -> None:
        """The same for one that nobody asked for, and that stands on no tape."""
        was_counted, follows = self.run.has_counted(position), self.run.follows
        if was_counted and follows:
            self.tapes.check_whole()
        elif was_counted:
            refuse_starting_over(self.arrived, "taking back a value that the policy has seen")
        self.unasked_voided.add(position)
        self.n_unasked -= 1
        if was_counted and follows:
            self._follow_again()
        elif was_counted:
            self.epoch += 1
            self._start_over(self.setup)
        else:
            self.run.drop_unasked(position)

    def _withdrawn(self, body: Body) -> None:
        token = Token.of(body)
        of = self.tapes.of[token.probe]
        is_lost = of.is_begun(token.index) and not of.is_told(token.index)
        if is_lost:
            self.tapes.lose(token, whole=self.setup.problem.loses_whole_uses)
        if self.is_over:
            self._after_end.append({**body, "lost": is_lost})
        else:
            self.withdrawals.add(token.probe, str(token), body.get("reason", ""))

    @property
    def n_lost(self) -> int:
        """Measurements of which some readings never came, without those that were lost after the end."""
        return self.tapes.n_lost - sum(1 for body in self._after_end if body["lost"])

    def _closed(self, body: Body) -> None:
        self.status, self.plan, self.end_key = Status.CLOSED, None, self.closing_key()

    def call_last(self, body: Body) -> None:
        """Take in the event of a last call."""
        if self.is_over or body["n"] <= self.tapes.n_missing:
            raise SessionError("a last call is for a session that runs, and for more than its open round")
        self.run.call_last(body, self.tapes.n_missing)

    def _added(self, body: Body) -> None:
        """Take in a plan: the policy knows it from its next decision on."""
        growing(self)
        setup = lengthened(self.setup, body)
        self.arrived.append(body)
        self.setup = setup
        self._make_room(setup)
        self._give(lambda run: run.grow(setup))
        if self.status is not None:  # it had an answer, which was about the plans before
            self.epoch += 1
            self._go_on()
            self.plan = None

    def _extended(self, body: Body) -> None:
        policy = codec.policy_from_json(body["policy"])
        setup = replace(self.setup, policy=policy, budget=body["budget"])
        numbers = {"delta": delta_of(policy), "epsilon": epsilon_of(policy), "budget": setup.budget}
        if policy == self.setup.policy and self.run.called is not None:
            raise SessionError("after the last call a session goes on with another delta or epsilon alone")
        is_other = policy != self.setup.policy
        starts_over = is_other and not self.can_lower_delta(setup)
        if starts_over:
            refuse_starting_over(self.arrived, "another delta or epsilon")
        self.epoch += 1
        self.extensions.append({**numbers, "n_ahead": body["n_ahead"]})
        if starts_over:
            self._start_over(setup)
            return
        self.setup = setup
        self._give(lambda run: run.go_on_with(setup))
        if is_other or self.status not in (Status.CONFIDENT, Status.DONE):
            self._go_on()
            self.plan = None

    def can_lower_delta(self, setup: Setup) -> bool:
        """Whether the policy continues with this setup, at a higher threshold; not after a final batch."""
        run, policy = self.run, self.setup.policy
        if not run.follows or run.called is not None:
            return False
        return bool(setup.policy == replace(cast(Any, policy), delta=delta_of(setup.policy)))

    def to_json(self) -> Body | None:
        """Return all of it but the used measurements, or None when the run's state cannot be kept."""
        run = self.run.to_json()
        if run is None:
            return None
        return {
            **run,
            **self.tapes.to_json(),
            "n_recorded": self.n_unasked,
            "n_values": self.n_recorded,
            "surprises": self._surprises,
            "doubtful": self.doubtful,
            "keys": sorted(self.keys),
            "unasked_voided": sorted(self.unasked_voided),
            "epoch": self.epoch,
            "status": self.status,
            "end_key": self.end_key,
            "plan": self.plan,
            "policy": codec.policy_to_json(self.setup.policy),
            "budget": self.setup.budget,
            "recent": list(self.recent_probes),
            "withdrawals": self.withdrawals.to_json(),
            "after_end": self._after_end,
            "arrived": self.arrived,
            "first_delta": self.first_delta,
            "extensions": self.extensions,
            **({"asked_plays": self.setup.problem.asked_plays.arms} if self.setup.problem.plays else {}),
        }

    @classmethod
    def from_json(cls, setup: Setup, kept: Body) -> Ledger:
        """The ledger that was kept, for a session that was created with this setup."""
        setup = replace(setup, policy=codec.policy_from_json(kept["policy"]), budget=kept["budget"])
        for body in kept["arrived"]:
            setup = with_added(setup, body)
        if "asked_plays" in kept and not setup.problem.is_listed:
            setup = replace(setup, problem=setup.problem.with_asked_plays(kept["asked_plays"]))
        ledger = cls(setup, PolicyRun.from_json(setup, kept))
        ledger.tapes = Tapes.from_json(readings_per_probe(setup.problem), kept)
        ledger.arrived, ledger.extensions = list(kept["arrived"]), list(kept["extensions"])
        ledger.first_delta = kept["first_delta"]
        ledger.n_unasked, ledger._surprises = kept["n_recorded"], kept["surprises"]
        ledger.n_recorded = kept["n_values"]
        ledger.doubtful = [(arm, name, value) for arm, name, value in kept["doubtful"]]
        ledger.keys = set(kept["keys"])
        ledger.unasked_voided = set(kept["unasked_voided"])
        ledger.epoch, ledger.end_key = kept["epoch"], kept["end_key"]
        ledger.status = None if kept["status"] is None else Status(kept["status"])
        ledger.plan = as_answer(kept["plan"])
        ledger.recent_probes.extend(kept["recent"])
        ledger.withdrawals = Withdrawals.from_json(kept["withdrawals"])
        ledger._after_end = kept["after_end"]
        return ledger
