"""`surepick serve` from the command line."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from command_line import surepick
from surepick.web.server import listen
from surepick.web.settings import Settings
from web_tools import TOKEN


@contextmanager
def served(store, folder, *words):
    """A server in a process of its own: the process, its address and its token."""
    command = [sys.executable, "-m", "surepick", "serve", "--store", store, "--port", "0", *words]
    environment = {name: value for name, value in os.environ.items() if name != "SUREPICK_TOKEN"}
    environment["XDG_STATE_HOME"] = str(folder)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        link = re.search(r"(http://[\d.]+:\d+)/login#token=(\S+)", process.stdout.readline())
        assert link is not None
        yield process, link[1], link[2]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_it_prints_a_link_with_the_token_that_it_keeps(store, tmp_path):
    tokens = []
    for _ in range(2):
        with served(store, tmp_path) as (_process, url, token):
            tokens.append(token)
            request = urllib.request.Request(f"{url}/api/sessions")
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(request, timeout=60)
            request.add_header("authorization", f"Bearer {token}")
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert b'"sure"' in answer.read()
    assert tokens[0] == tokens[1], "kept over restarts"
    assert (tmp_path / "surepick" / "token").read_text().strip() == tokens[0]


def test_for_a_phone_it_prints_a_code_too(store, tmp_path):
    with served(store, tmp_path, "--lan") as (process, _url, _):
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(17)]
    assert all("█" in line for line in lines)


@pytest.mark.parametrize(("words", "logged"), [((), True), (("--log-level", "warning"), False)])
def test_requests_are_logged_to_standard_error(store, tmp_path, words, logged):
    with served(store, tmp_path, *words) as (process, url, _):
        urllib.request.urlopen(f"{url}/healthz", timeout=60).close()
        process.send_signal(signal.SIGINT)
        output, log = process.communicate(timeout=60)
    assert output == ""
    assert "Traceback" not in log
    assert ('"GET /healthz HTTP/1.1" 200' in log) is logged


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--read-only", "--store", "sqlite:///nothing.db"), "store"),
        (("--token-file", "."), "token_file"),
        (("--trust-proxy", "everybody"), "trust_proxy"),
    ],
)
def test_a_mistake_names_its_field(monkeypatch, tmp_path, words, field):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREPICK_TOKEN", raising=False)
    said = surepick("serve", "--json", *words)
    assert (said.code, said.error["field"]) == (2, field)


def test_a_port_that_is_taken_is_said(looking, store):
    said = surepick("serve", "--json", "--store", store, "--port", looking.url.rsplit(":", 1)[1])
    assert (said.code, said.error["field"]) == (2, "port")


def test_what_listens_everywhere_says_an_address_that_others_can_type(store):
    opened = listen(Settings(store, TOKEN, host="0.0.0.0", port=0))
    with opened.socket:
        address = urlsplit(opened.url)
        assert address.hostname != "0.0.0.0"
        socket.create_connection((address.hostname, address.port), timeout=20).close()
