"""Sessions for programs that speak the Model Context Protocol, over standard input and output.

Five tools: check, new, ask, tell, status. None removes, extends or closes: a program can only measure what is
asked for and record what came out, which is what the guarantee rests on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surepick._version import __version__
from surepick.cli.check import describe_file
from surepick.cli.new import begin
from surepick.cli.output import open_session, settings
from surepick.errors import SessionError, SurepickError, missing_extra

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

INSTRUCTIONS = """\
surepick finds the best plan with the fewest noisy measurements, and says how often it may be wrong.
`check` a problem file and begin a session with `new`. Then repeat: `ask`, measure exactly what it names, and
`tell` every value as it came out, odd ones included, until `ask` returns no request. `status` has the answer.
Never repeat a measurement because of its value, never leave one out, never make one up: the guarantee holds
for honest, fresh measurements only. If something cannot be measured, stop and say so.\
"""


def make_server(store: str) -> MCPServer[Any]:
    """Return the server with its tools, for the sessions of this store."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ModuleNotFoundError:
        raise missing_extra("mcp", "mcp") from None

    server: MCPServer[Any] = MCPServer(
        "surepick", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    settings.store = store
    for tool in (check, new, ask, tell, status):
        server.add_tool(_as_tool(tool, ToolError))
    return server


def _as_tool(work: Callable[..., Any], refused: type[Exception]) -> Callable[..., dict[str, Any]]:
    """Return the tool with its result as JSON values, and its errors as answers to the caller."""

    @functools.wraps(work)
    def tool(*given: Any, **named: Any) -> dict[str, Any]:
        from surepick.views.view import to_json

        try:
            found: dict[str, Any] = to_json(work(*given, **named))
        except SurepickError as error:
            raise refused(str(error)) from None
        return found

    return tool


def check(file: str, delta: float = 0.05, epsilon: float = 0.0, budget: int | None = None) -> dict[str, Any]:
    """How a problem file was read, and how many measurements to expect."""
    return describe_file(Path(file), delta, epsilon, budget)


def new(
    file: str, session: str, delta: float = 0.05, epsilon: float = 0.0, budget: int | None = None
) -> dict[str, Any]:
    """Begin a session from a problem file. delta: how often the answer may be wrong; epsilon: the difference
    that does not matter; budget: the most measurements."""
    made = begin(Path(file), session, create=True, delta=delta, epsilon=epsilon, budget=budget)
    return made.view().to_json()


def ask(session: str, n: int = 1, worker: str = "agent") -> dict[str, Any]:
    """What to measure now, up to n requests: the arm (or probe) and the readings that it gives. Asking again
    gives the same until they are recorded. Several workers need names of their own."""
    opened = open_session(session)
    requests = [
        {"id": one.id, "arm": one.probe_name, "readings": list(one.readings)}
        for one in opened.ask(n, worker=worker, wait=False)
    ]
    return {"requests": requests, "state": opened.view().state}


def tell(
    session: str,
    arm: str,
    value: float | dict[str, float],
    request: str = "",
    sure: bool = False,
    worker: str = "agent",
) -> dict[str, Any]:
    """Record the value of an arm as it came out; of a probe with several readings an object by their names.
    request is the id from `ask`. A surprising value is refused once: if it is right, say sure=true."""
    opened = open_session(session)
    if request and opened.probe_names[opened.probe_of(request)] != arm:
        raise SessionError(f"request {request!r} is not about {arm!r}; nothing was recorded", field="arm")
    doubt = None if sure else opened.doubt(arm, value)
    if doubt is not None:
        raise SessionError(f"{doubt}. Nothing was recorded: if it is right, say sure=true", field="value")
    receipt = opened.tell(request or arm, value, worker=worker, sure=sure)
    return {"number": receipt.number, "result": receipt.result, "state": opened.view().state}


def status(session: str) -> dict[str, Any]:
    """Where a session stands: what is proved, what is only a bet, what to measure; as JSON."""
    return open_session(session, read_only=True).view().to_json()
