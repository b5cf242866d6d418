"""The MCP server, driven by the SDK's own client over standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from command_line import MINUTES, view

mcp = pytest.importorskip("mcp")


async def drive(folder: Path) -> dict[str, Any]:
    """Decide by the tools alone; return what was seen on the way."""
    words = ["-m", "surepick", "serve", "--mcp", "--store", str(folder / "surepick.db")]
    server = mcp.StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ), cwd=folder)
    seen: dict[str, Any] = {}
    async with mcp.Client(server, read_timeout_seconds=120) as client:

        async def call(tool: str, /, **given: object) -> Any:
            result = await client.call_tool(tool, given)
            return {"error": result.content[0].text} if result.is_error else result.structured_content

        seen["tools"] = {tool.name for tool in (await client.list_tools()).tools}
        seen["check"] = await call("check", file="trips.csv", epsilon=2.0)
        seen["new"] = await call("new", file="trips.csv", session="trips", epsilon=2.0)
        seen["again"] = await call("new", file="trips.csv", session="trips")
        (first,) = (await call("ask", session="trips"))["requests"]
        other = next(arm for arm in MINUTES if arm != first["arm"])
        seen["other arm"] = await call("tell", session="trips", request=first["id"], arm=other, value=1.0)
        seen["odd"] = await call("tell", session="trips", arm=first["arm"], value=1e6)
        while requests := (await call("ask", session="trips", n=8))["requests"]:
            for one in requests:
                told = await call(
                    "tell", session="trips", arm=one["arm"], request=one["id"], value=MINUTES[one["arm"]]
                )
                assert told["result"] == "recorded", told
        seen["status"] = await call("status", session="trips")
    return seen


def test_a_program_decides_with_five_tools_and_no_other(folder: Path) -> None:
    seen = asyncio.run(drive(folder))
    assert seen["tools"] == {"check", "new", "ask", "tell", "status"}
    assert seen["check"]["forecast"]["median"] > 0
    assert seen["new"]["state"] == "running"
    assert all("error" in seen[name] for name in ("again", "other arm", "odd"))
    assert seen["status"] == view()
    assert seen["status"]["plan"] == "Tunnel + station"
