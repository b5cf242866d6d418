"""Every hint that is printed works as printed: those of help texts, of commands, and of error messages."""

import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import surepick
import surepick as sp
from surepick.cli import app

COMMANDS = typer.main.get_command(app).commands
SOURCES = sorted(Path(surepick.__file__).parent.rglob("*.py"))
SERVES = "serve"  # until it is stopped
# 1: nothing to ask for; 3: the values contradict the assumption; 5: no plan beats the incumbent.
ENDINGS = {"ask": (0, 1), "challenge": (0, 5), "run": (0, 3), "status": (0, 3), "verify": (0, 3)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREPICK_STORE", raising=False)
    script = tmp_path / "drive.sh"
    script.write_text(
        "#!/bin/sh\ncase $1 in ring) echo 60;; bridge) echo 30;; tunnel) echo 9;; *) echo 20;; esac\n"
    )
    script.chmod(0o755)
    return tmp_path


def tried(command):
    """The commands of its help's `Try:`, in their order."""
    found = re.search(r"Try: (.*?)(?:\n\n|$)", command.help or "", re.DOTALL)
    if found is None:
        return []
    text = " ".join(found[1].split())
    return [part.strip() for part in re.split(r", then (?=surepick)|, and later (?=surepick)", text)]


def parsed(line):
    """The words after `surepick` of a hint, whose command and options exist."""
    words = shlex.split(line)
    assert words[0] == "surepick", line
    command = COMMANDS[words[1]]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [word for word in words[2:] if word.startswith("--") and word not in options]
    assert not unknown, f"{line}: {unknown}"
    return words[1:]


def works(line):
    words = parsed(line)
    if words[0] == SERVES:
        return
    result = CliRunner().invoke(app, words)
    assert result.exit_code in ENDINGS.get(words[0], (0,)), (line, result.output, result.exception)


def test_what_the_help_says_to_try_works_in_an_empty_folder(folder, monkeypatch):
    hints = {name: tried(command) for name, command in COMMANDS.items()}
    first = (
        "init",
        "check",
        "limit",
        "simulate",
        "compare",
        "new",
        "withdraw",
        "tell",
        "void",
        "sheet",
        "add-plan",
        "run",
    )
    done = set()
    for name in [*first, *(name for name in hints if name not in first)]:
        if name == "run":  # which would wait for what `ask` has handed out
            monkeypatch.setenv("SUREPICK_STORE", "sqlite:///run.db")
        for line in hints[name]:
            if line not in done:  # `init` refuses to overwrite
                works(line)
            done.add(line)
    assert len(done) > 9


def test_every_command_that_a_message_names_exists_with_its_options():
    found = [
        hint
        for path in SOURCES
        for hint in re.findall(r"`(surepick [a-z][^`]*)`", path.read_text(encoding="utf-8"))
        if "{" not in hint
    ]
    for hint in found:
        parsed(hint.replace(" ...", " x").rstrip("."))
    assert len(found) > 15


def hints_in(text):
    """The commands that a command printed as next steps, with a value where one is to be put."""
    lines = [line.removeprefix("next:").strip() for line in text.splitlines()]
    said = [line.split("  ")[0] for line in lines if line.startswith("surepick ")]
    said += re.findall(r"See: (surepick .*)$", text, re.MULTILINE)
    return [line.replace("VALUE", "12.5") for line in said]


ROADS = 'kind = "table"\nplans = [[1, 0], [0, 1]]\narms = ["my road", "rail"]\nnoise = 1.0\n'


@pytest.mark.parametrize("store", [[], ["--store", "sqlite:///other trips.db"]])
@pytest.mark.parametrize("n_sessions", [1, 2])
def test_the_next_steps_work_as_printed_whatever_store_and_session_they_are_about(folder, store, n_sessions):
    (folder / "roads.toml").write_text(ROADS)
    for name in ("a session", "another")[:n_sessions]:
        begun = CliRunner().invoke(app, ["new", "roads.toml", "--name", name, *store])
    where = [*store, *(["--session", name] if n_sessions > 1 else [])]
    for line in hints_in(begun.stdout):
        works(line)
    url = store[1] if store else "surepick.db"
    session = sp.Session.load(url, name)
    while requests := session.ask():
        session.tell(requests[0], float(requests[0].arm))
    shown = CliRunner().invoke(app, ["status", *where]).stdout
    assert len(hints_in(shown)) == 4  # report, certificate, log, and to check them
    for line in hints_in(shown) + hints_in(CliRunner().invoke(app, ["ask", *where]).stderr):
        works(line)


@pytest.mark.parametrize("budget", [[], ["--budget", "8"]])
def test_after_an_early_end_the_hint_goes_on(folder, budget):
    (folder / "roads.toml").write_text(ROADS)
    CliRunner().invoke(app, ["new", "roads.toml", *budget])
    session = sp.Session.load("surepick.db")
    for _ in range(8):
        if requests := session.ask():
            session.tell(requests[0], 0.1 * requests[0].arm)
    session.close("enough")
    shown = CliRunner().invoke(app, ["status"]).stdout
    works(hints_in(shown)[0])
    assert session.status == "running"
