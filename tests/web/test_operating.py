"""What operators rely on: a health check without a token, and a log of requests and errors."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import httpx

from surepick.store import open_store
from web_tools import TOKEN, running


def test_health_needs_no_token_and_fails_with_the_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/health.db"
    open_store(url).close()
    with running(url, token=TOKEN) as server:
        assert httpx.get(f"{server.url}/api/").status_code == 401
        assert httpx.get(f"{server.url}/healthz").json() == {"store": "readable"}
        (tmp_path / "health.db").write_bytes(b"not a database any more" * 1000)
        assert httpx.get(f"{server.url}/healthz").status_code == 503


def test_requests_are_logged_to_standard_error_unless_quiet(store: str) -> None:
    for words, logged in (((), True), (("--quiet",), False)):
        command = [sys.executable, "-m", "surepick", "serve", "--store", store, "--port", "0", "--no-token"]
        process = subprocess.Popen(
            [*command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        url = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert url
        urllib.request.urlopen(f"{url[0]}/healthz", timeout=60).close()
        process.send_signal(signal.SIGINT)
        output, log = process.communicate(timeout=60)
        assert output == ""
        assert ('"GET /healthz HTTP/1.1" 200' in log) is logged
