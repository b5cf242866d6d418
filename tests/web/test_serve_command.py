"""`surepick serve` from the command line."""

from __future__ import annotations

import builtins
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from command_line import surepick
from surepick.cli import main
from surepick.web.server import listen
from surepick.web.settings import Settings
from web_tools import TOKEN


def fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    monkeypatch.setattr(sys, "argv", ["surepick", "serve", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    return capsys.readouterr().err


def test_it_serves_until_it_is_told_to_stop(store: str) -> None:
    words = [sys.executable, "-m", "surepick", "serve", "--store", store, "--port", "0", "--no-token"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        url = re.search(r"http://127\.0\.0\.1:\d+", said)
        assert url, said
        with urllib.request.urlopen(f"{url[0]}/api/", timeout=60) as answer:
            assert b'"sure"' in answer.read()
    finally:
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=60)
    assert "Traceback" not in complaints


def test_on_this_machine_too_it_wants_a_token_and_prints_a_link_with_it(store: str) -> None:
    words = [sys.executable, "-m", "surepick", "serve", "--store", store, "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "SUREPICK_TOKEN"}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        link = re.search(r"(http://127\.0\.0\.1:\d+)/login#token=(\S+)", said)
        assert link, said
        request = urllib.request.Request(f"{link[1]}/api/")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(request, timeout=60)
        request.add_header("authorization", f"Bearer {link[2]}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert b'"sure"' in answer.read()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_without_its_packages_it_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith(("surepick.web", "fastapi"))]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def without_fastapi(name: str, *rest: object, **options: object) -> object:
        if name.split(".")[0] == "fastapi":
            raise ModuleNotFoundError("No module named 'fastapi'", name="fastapi")
        return real(name, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without_fastapi)
    assert "pip install 'surepick[web]'" in fail(monkeypatch, capsys)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--host", "0.0.0.0"), "needs a token"),
        (("--store", "sqlite:///nothing.db"), "no store"),
        (("--token-file", "nothing"), "cannot read a token"),
    ],
)
def test_a_mistake_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: tuple[str, ...],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREPICK_TOKEN", raising=False)
    assert says in fail(monkeypatch, capsys, *words)


def test_a_port_that_is_taken_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], looking: object, store: str
) -> None:
    port = looking.url.rsplit(":", 1)[1]  # type: ignore[attr-defined]
    assert "choose another --port" in fail(monkeypatch, capsys, "--store", store, "--port", port)


def test_the_token_comes_from_a_file_or_the_environment_and_not_from_the_command_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from surepick.cli.serve import _token

    (tmp_path / "token").write_text(TOKEN + "\n")
    assert _token(tmp_path / "token") == TOKEN
    monkeypatch.setenv("SUREPICK_TOKEN", "another long enough token")
    assert _token(None) == "another long enough token"
    help_text = surepick("serve", "--help").out
    assert "--token-file" in help_text
    assert not re.search(r"--token\s", help_text)


def test_what_listens_everywhere_says_an_address_that_others_can_type(store: str) -> None:
    opened = listen(Settings(store, host="0.0.0.0", port=0, token=TOKEN))
    with opened.socket:
        address = urlsplit(opened.url)
        assert address.hostname != "0.0.0.0"
        socket.create_connection((address.hostname, address.port), timeout=20).close()
