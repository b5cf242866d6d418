"""The MCP server, driven by the SDK's own client over standard input and output."""

import asyncio
import os
import sys

import pytest

from surepick.sessions.session import Session

mcp = pytest.importorskip("mcp")

PROBLEM = """
kind = "table"
plans = [[1, 0, 1], [0, 1, 1]]
arms = ["ferry", "tunnel", "bridge"]
plan_names = ["North", "South"]
noise = 0.5
guess = [3.0, 1.0, 2.0]
spread = 0.5
goal = "smallest"
"""
MEANS = {"ferry": 3.0, "tunnel": 1.0, "bridge": 2.0}
TOOLS = {"check", "new", "ask", "tell", "status"}


async def drive(folder):
    """A session from a file to its certificate; what was seen on the way."""
    store = f"sqlite:///{folder}/trips.db"
    environment = {**os.environ, "SUREPICK_STORE": store}
    words = ["-m", "surepick", "serve", "--mcp"]
    server = mcp.StdioServerParameters(command=sys.executable, args=words, env=environment, cwd=folder)
    seen: dict[str, object] = {}
    async with mcp.Client(server, read_timeout_seconds=120) as client:

        async def call(tool, /, **given):
            result = await client.call_tool(tool, given)
            if result.is_error:
                return {"error": result.content[0].text}
            return result.structured_content

        seen["tools"] = {tool.name for tool in (await client.list_tools()).tools}
        seen["check"] = await call("check", file="trips.toml")
        seen["new"] = await call("new", file="trips.toml", name="trips", delta=0.1)
        seen["again"] = await call("new", file="trips.toml", name="trips")
        while requests := (asked := await call("ask", session="trips", n=8, worker="w"))["requests"]:
            for one in requests:
                value = MEANS[one["arm"]]
                given = {"arm": one["arm"], "request": one["id"], "value": value, "worker": "w"}
                told = await call("tell", session="trips", **given)
                assert told["result"] == "recorded", told
            seen.setdefault("odd", await call("tell", session="trips", arm=one["arm"], value=-99.0))
        seen["asked"] = asked
        seen["extra"] = await call("tell", session="trips", arm="ferry", value=3.0)
        seen["status"] = await call("status", session="trips")
        seen["unknown"] = await call("status", session="unknown")
    return seen


def test_a_session_from_a_file_to_its_certificate(tmp_path):
    (tmp_path / "trips.toml").write_text(PROBLEM)
    seen = asyncio.run(drive(tmp_path))
    assert seen["tools"] == TOOLS, "nothing to drop, repeat or change a measurement with"
    assert seen["check"]["n_plans"] == 2
    assert seen["check"]["forecast"]["median"] > 0
    assert seen["new"]["state"] == "running"
    assert all("error" in seen[call] for call in ("again", "odd", "extra", "unknown"))
    assert seen["asked"]["state"] == "confident"
    assert (seen["status"]["plan"], seen["status"]["delta"]) == ("South", 0.1)
    session = Session.load(f"sqlite:///{tmp_path}/trips.db", "trips")
    assert session.verify().holds
    assert {m.value for m in session.measurements()} <= set(MEANS.values())
