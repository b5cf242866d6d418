"""The MCP server, driven by the SDK's own client over standard input and output."""

import asyncio
import json
import os
import subprocess
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


GARBAGE = (
    *(b"no JSON", b"{", b"[]", b"null", b"7", b'"x"', b"{}", b"\xff\xfe\x00", b"[" * 5000),
    b"{" + b" " * 100_000,
    *(b'{"jsonrpc": "2.0"}', b'{"jsonrpc": "2.0", "id": 1}', b'{"jsonrpc": "1.0", "id": 2, "method": "x"}'),
    *(b'{"jsonrpc": "2.0", "id": null, "method": "tools/call"}', b'{"jsonrpc": "2.0", "method": "\\ud800"}'),
    b'{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "ask", "arguments": 7}}',
)


def test_lines_that_are_no_messages_do_not_end_the_server(tmp_path):
    about = {"name": "a test", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
    good = [
        {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "last", "method": "tools/list"},
    ]
    first, *rest = [json.dumps(one).encode() for one in good]
    lines = [*GARBAGE[:8], first, *GARBAGE, *rest]
    server = subprocess.Popen(
        [sys.executable, "-m", "surepick", "serve", "--mcp", "--store", f"sqlite:///{tmp_path}/x.db"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(b"\n".join(lines) + b"\n")
        server.stdin.flush()  # and not closed: what is still being answered would be given up
        answers = map(json.loads, server.stdout)
        listed = next(answer for answer in answers if answer.get("id") == "last")
        server.stdin.close()
        assert server.wait(60) == 0
    assert {tool["name"] for tool in listed["result"]["tools"]} == TOOLS
