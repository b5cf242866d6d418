"""Sessions for programs that speak the Model Context Protocol, over standard input and output.

Five tools on the table of actions: check, new, ask, tell, status. None removes, extends or closes: a program
can only measure what is asked and record what came out, on which the guarantee rests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surepick._version import __version__
from surepick.errors import SessionError, SurepickError, missing_extra
from surepick.inputs.load import read_problem
from surepick.report.check import begin, check, with_limits
from surepick.sessions.session import Session
from surepick.views.view import to_json
from surepick.web.uploads import FORECAST_SECONDS

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

INSTRUCTIONS = """\
surepick finds the best plan with the fewest noisy measurements, and says how often it may be wrong.
`check` a problem file and begin a session with `new`. Then repeat: `ask`, measure exactly what it names, and
`tell` every value as it came out, odd ones included, until `ask` returns no requests. Then `status` has the
answer. Never repeat a measurement because of its value, never leave one out, never make one up: the guarantee
holds for honest, fresh measurements only. If something cannot be measured, tell it as lost.\
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
    tools = Tools(store)
    for tool in (tools.check, tools.new, tools.ask, tools.tell, tools.status):
        server.add_tool(_as_tool(tool, ToolError))
    return server


def _as_tool(work: Callable[..., Any], refused: type[Exception]) -> Callable[..., dict[str, Any]]:
    """Return the same with its result as JSON values, and errors as the protocol has them."""

    @functools.wraps(work)
    def tool(*given: Any, **named: Any) -> dict[str, Any]:
        try:
            found: dict[str, Any] = to_json(work(*given, **named))
        except SurepickError as error:
            raise refused(str(error)) from None
        return found

    return tool


class Tools:
    """The tools as programs see them; each call opens the store, so that others may use it too."""

    def __init__(self, store: str) -> None:
        self._store = store

    def check(
        self,
        file: str,
        delta: float | None = None,
        epsilon: float | None = None,
        low: float | None = None,
        high: float | None = None,
    ) -> dict[str, Any]:
        """Show how a problem file or spreadsheet was read, and forecast the measurements. low, high: no value
        lies outside them; then nothing is assumed about the noise."""
        loaded = with_limits(read_problem(Path(file)), low, high)
        return check(loaded, {"delta": delta, "epsilon": epsilon}, seconds=FORECAST_SECONDS).to_json()

    def new(
        self,
        file: str,
        name: str,
        delta: float | None = None,
        epsilon: float | None = None,
        budget: int | None = None,
        low: float | None = None,
        high: float | None = None,
    ) -> dict[str, Any]:
        """Begin a session from a problem file or spreadsheet. delta: how often the answer may be wrong (0.05
        unless the file says otherwise); epsilon: the difference that does not matter; budget: the most
        measurements; low, high: as check."""
        loaded = with_limits(read_problem(Path(file)), low, high)
        given = {"delta": delta, "epsilon": epsilon, "budget": budget}
        return begin(self._store, name, loaded, given).view().brief()

    def ask(self, session: str, n: int = 1, worker: str = "") -> dict[str, Any]:
        """Return what to measure now, up to n at once: the arm of each, or the probe with the names of its
        readings. Asking again returns the same until they are recorded. Workers need different names."""
        return self._act("ask", session, {"n": n, "worker": worker})

    def tell(
        self,
        session: str,
        arm: str,
        value: float | dict[str, float] | None = None,
        request: str = "",
        worker: str = "",
        lost: bool = False,
        sure: bool = False,
    ) -> dict[str, Any]:
        """Record the value that was measured of an arm, as it came out; of a probe with several readings an
        object with all of them by name. `request` is the id from ask. A surprising value is
        refused once: if it is right, tell it again with sure=true. lost=true: it gave no value."""
        if not request and arm not in {one["arm"] for one in self.status(session)["open"]}:
            raise SessionError(f"no measurement of {arm!r} is open; nothing was recorded", field="arm")
        given = {"arm": arm, "value": value, "request": request, "worker": worker, "lost": lost, "sure": sure}
        return self._act("tell", session, given)

    def status(self, session: str) -> dict[str, Any]:
        """Return where a session stands: the answer or the leader, what is proved, what is open."""
        return Session.load(self._store, session, read_only=True).view().to_json()

    def _act(self, name: str, session: str, given: dict[str, Any]) -> dict[str, Any]:
        from surepick.web.actions import ACTIONS, read_form

        action = ACTIONS[name]
        opened = Session.load(self._store, session)
        answer = action.do(opened, read_form(action.body, given))
        return {**answer, **opened.view().brief()}
