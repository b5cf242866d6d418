"""`mcp`: a session for programs that speak the Model Context Protocol, over standard input and output.

Six tools: check, new, ask, tell, status, verify. There is none that withdraws, voids, records unasked values,
extends or closes: whatever talks to it can only measure what is asked and tell what came out, which is what
the promise rests on. `status` shows what holds at every moment, and no single value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surepick._version import __version__
from surepick.cli.ask import request_to_json
from surepick.cli.check import describe_file
from surepick.cli.opening import open_session, open_to_read
from surepick.cli.options import DEFAULT_STORE, StoreUrl
from surepick.cli.status import state_of
from surepick.errors import SessionError, SurepickError, missing_extra

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

INSTRUCTIONS = """\
surepick finds the best plan with the fewest noisy measurements, and says how often it may be wrong.
Work so: `check` a problem file and begin a session with `new`. Then repeat: `ask`, measure exactly what it
names, and `tell` every value as it came out, odd ones included, until `ask` says that the session has ended.
Then `status` has the answer, and `verify` checks it. Never repeat a measurement because of its value, never
leave one out, never make one up: the promise holds for honest, fresh measurements only. If something cannot
be measured, stop and say so.\
"""


def mcp(store: StoreUrl = DEFAULT_STORE) -> None:
    """Serve sessions to programs that speak MCP, over standard input and output.

    Tools: check, new, ask, tell, status, verify; none to drop, repeat or change what was measured.

    Try, in such a program's settings: {"command": "surepick", "args": ["mcp", "--store", "sqlite:///trips.db"]}
    """
    make_server(store).run("stdio")


def make_server(store: str) -> MCPServer[Any]:
    """The server with its tools, for the sessions of this store."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ModuleNotFoundError:
        raise missing_extra("mcp", "mcp") from None

    server: MCPServer[Any] = MCPServer(
        "surepick", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    tools = Tools(store)
    for tool in (tools.check, tools.new, tools.ask, tools.tell, tools.status, tools.verify):
        server.add_tool(_as_tool(tool, ToolError))
    return server


def _as_tool(work: Callable[..., Any], refused: type[Exception]) -> Callable[..., dict[str, Any]]:
    """The same with its result as JSON values, and errors that are told to whoever called the tool."""

    @functools.wraps(work)
    def tool(*given: Any, **named: Any) -> dict[str, Any]:
        from surepick.views import to_json

        try:
            found: dict[str, Any] = to_json(work(*given, **named))
        except SurepickError as error:
            raise refused(str(error)) from None
        return found

    return tool


class Tools:
    """The tools, as programs are told of them; each call opens the store, so that others may use it too.

    >>> Tools("sqlite:///nowhere.db").status("trips")
    Traceback (most recent call last):
        ...
    surepick.errors.StoreError: ...
    """

    def __init__(self, store: str) -> None:
        self._store = store

    def check(self, file: str, delta: float = 0.05) -> dict[str, Any]:
        """What a problem file (TOML or JSON) was understood to mean, and how many measurements to expect."""
        return describe_file(Path(file), delta)

    def new(
        self, file: str, name: str, delta: float = 0.05, epsilon: float = 0.0, budget: int | None = None
    ) -> dict[str, Any]:
        """Begin a session from a problem file. delta: allowed probability of a wrong answer; epsilon: a
        difference that does not matter; budget: stop without a promise after this many measurements."""
        from surepick.core.guarantee import stated_guarantee
        from surepick.core.policy import takes_past
        from surepick.inputs.load import read_problem
        from surepick.policies import policy_for
        from surepick.sessions.session import Session

        loaded = read_problem(Path(file))
        policy = policy_for(None, delta=delta, epsilon=epsilon)
        past = loaded.past if takes_past(policy) else None
        begun = Session.create(self._store, name, loaded.problem, policy=policy, budget=budget, prior=past)
        return {
            "session": begun.name,
            "guarantee": stated_guarantee(policy, loaded.problem),
            "n_missing": state_of(begun)["n_missing"],
        }

    def ask(self, session: str, n: int = 1, worker: str = "") -> dict[str, Any]:
        """What to measure now, up to n at once: a token and an arm for each, or a probe with the names of the
        readings that one use of it gives. Asking again gives the same ones until they are told. Several
        workers need names of their own."""
        opened = open_session(self._store, session)
        asked = opened.ask(n, worker=worker, wait=False)
        wanted = [request_to_json(one, opened) for one in asked]
        measure = [{name: of for name, of in one.items() if name != "wanted"} for one in wanted]
        return {"measure": measure, "status": str(opened.status)}

    def tell(
        self, session: str, token: str, arm: str, value: float | dict[str, float], sure: bool = False
    ) -> dict[str, Any]:
        """Record the value that was measured for a token, as it came out; of a probe with several readings an
        object with all of them by name. arm is the name that came with the token (the arm's or the probe's);
        a token of another is refused, and so is a second value for a token. A value that nobody would expect
        is refused once: if it is what was measured, tell it again with sure=true."""
        opened = open_session(self._store, session)
        right = opened.probe_names[opened.probe_of(token)]
        if arm != right:
            word = opened.given_problem.probe_word
            raise SessionError(
                f"token {token!r} is of {word} {right!r}, and the value came with {arm!r}; nothing was "
                "recorded"
            )
        doubt = None if sure else opened.doubt(arm, value)
        if doubt is not None:
            raise SessionError(f"{doubt}. Nothing was recorded: if that is what was measured, say sure=true")
        holder = next((lease.worker for lease in opened.leases() if lease.token == token), "")
        receipt = opened.tell(token, value, worker=holder)
        status = str(opened.status)
        return {"receipt": str(receipt), "arm": right, "value": value, "status": status}

    def status(self, session: str) -> dict[str, Any]:
        """Where a session stands: the answer or the plan that leads, how sure that is, what is missing."""
        from surepick.views import look, summary

        opened = open_session(self._store, session, read_only=True)
        return {**state_of(opened), "sentence": summary(look(opened)).sentence}

    def verify(self, session: str) -> dict[str, Any]:
        """Replay the whole log of a session and check every decision; with the certificate once it ended."""
        from surepick.sessions.verify import verify

        place = open_to_read(self._store)
        opened = open_session(self._store, session, read_only=True)
        certificate = opened.certificate().to_json() if opened.status != "running" else None
        verdict = verify(place, session, certificate)
        return {"holds": verdict.holds, **vars(verdict), "certificate": certificate}
