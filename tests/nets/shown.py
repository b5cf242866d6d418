"""What commands print about stored sessions, to the byte, each kept in a file of `shown/`.

`python tests/nets/shown.py --write` writes the files again. The stored sessions were made with a clock of
their own, so no time in them depends on today.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from typer.testing import CliRunner

import stored_sessions as stored
from surepick.cli import app
from surepick.store import open_store

KEPT = Path(__file__).with_name("shown")
SESSIONS = {
    "betgape": "BetGapE finished",
    "costs": "epsilon costs batches open",
    "obet": "OBet finished",
    "recorded": "recorded finished",
    "pilot": "unknown scale open",
    "function": "function open",  # looked at without its function
}
COMMANDS = {
    "status.json": ("status", "--json"),
    "log.json": ("log", "--last", "0", "--json"),
    "log.txt": ("log",),
    "export.csv": ("export",),
    "export.json": ("export", "--format", "json"),
}
OF_THE_STORE = {"list.json": ("list", "--json"), "doctor.json": ("doctor", "--json")}
FILES = [f"{short}-{file}" for short in SESSIONS for file in COMMANDS] + list(OF_THE_STORE)


def kept(file: str) -> bytes:
    """What was printed when it was written down, with the version of surepick as it is now."""
    text = (KEPT / file).read_bytes().decode()
    return stored.as_written_now(text).encode()


def printed(file: str, store: Path) -> bytes:
    """What the command of this file prints now."""
    short, _, command = file.partition("-")
    words = OF_THE_STORE.get(file) or (*COMMANDS[command], "--session", SESSIONS[short])
    os.environ["TZ"] = "UTC"  # terminals show the time of their place
    time.tzset()
    result = CliRunner().invoke(app, [*words, "--store", str(store)])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout_bytes


def without_changed(listed: bytes, store: Path) -> bytes:
    """The list without the sessions of policies that are announced to change, once they have."""
    place = open_store(f"sqlite:///{store}")
    changed = set()
    for name in place.names():
        policy, version = stored.begun_with(place, name)
        if policy in stored.CHANGING and stored.version_now(place, name) != version:
            changed.add(name)
    place.close()
    if not changed:
        return listed
    rows = [row for row in json.loads(listed) if row["session"] not in changed]
    return (json.dumps(rows) + "\n").encode()


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit(__doc__)
    KEPT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        copy = stored.copied(Path(folder))
        for name in FILES:
            (KEPT / name).write_bytes(printed(name, copy))
