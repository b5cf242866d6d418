"""Sessions from the command line: names, JSON, exit codes, files, damage, and the user's own program."""

from __future__ import annotations

import csv
import importlib
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

import surepick as sp
from session_tools import Tapes
from surepick.cli import app
from surepick.errors import DamageError, NameTakenError, SessionError, StoreError, SurepickError
from surepick.sessions.session import Session
from surepick.store import Draft, open_store

PROBLEM = """kind = "table"
plans = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1], [1, 0, 1, 0]]
arms = ["copper", "tin", "zinc", "lead"]
noise = 0.3
"""


@pytest.fixture(autouse=True)
def folder(memory_disk: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder with a problem file, where each test works."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREPICK_STORE", raising=False)
    (tmp_path / "mine.toml").write_text(PROBLEM)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def ok(*words: str) -> str:
    result = run(*words)
    assert result.exit_code == 0, (result.output, result.exception)
    return str(result.stdout)


def answer(*words: str) -> Any:
    return json.loads(ok(*words, "--json"))


def refused(*words: str) -> SurepickError:
    """The error of a command that must fail with a known one."""
    result = run(*words)
    assert isinstance(result.exception, SurepickError), result.output
    return result.exception


def test_a_session_by_hand_from_new_to_the_answer() -> None:
    Path("mine.toml").write_text(PROBLEM.replace("0.3", "0.1"))
    ok("new", "mine.toml", "--policy", "CombGapE", "--delta", "0.1", "--seed", "3")
    tapes = Tapes(scale=0.1)
    while (asked := run("ask", "-n", "4", "--json")).exit_code == 0:
        for request in json.loads(asked.stdout)["requests"]:
            ok("tell", request["token"], str(tapes.value(request["token"])))
    assert asked.exit_code == 1
    expected = sp.simulate(
        Session.load("surepick.db").problem, Tapes(scale=0.1), policy=sp.CombGapE(delta=0.1), seed=3
    )
    status = answer("status")
    assert (status["status"], status["answer"]) == ("confident", expected.plan_name)
    assert status["counts"] == dict(zip(status["counts"], expected.counts.tolist(), strict=True))
    assert status["certificate"]["delta"] == 0.1
    Path("certificate.json").write_text(json.dumps(status))
    assert run("verify", "certificate.json").exit_code == 0
    status["certificate"]["delta"] = 0.001
    Path("certificate.json").write_text(json.dumps(status))
    assert run("verify", "certificate.json").exit_code == 1
    assert [row["status"] for row in answer("list")] == ["confident"]


def test_names_stand_for_tokens_and_close_names_are_suggested() -> None:
    ok("new", "mine.toml")
    lines = ok("ask", "-n", "4").splitlines()
    assert sorted(lines) == ["0.0\tcopper", "1.0\ttin", "2.0\tzinc", "3.0\tlead"]
    assert answer("tell", "tin", "-0.25")["receipt"] == "recorded"
    assert answer("tell", "1.0", "-0.25")["receipt"] == "repeated"
    assert "'copper'" in str(refused("tell", "coper", "1"))
    refused("tell", "tin", "1")  # which is not asked for now
    assert answer("status")["n_told"] == 1
    assert answer("tell", "tin", "9", "--unasked")["n_told"] == 1
    assert refused("tell", "zinc", "nan").field == "value"
    assert refused("tell", "9.9", "1").field == "token"
    assert run("tell", "zinc", "many").exit_code == 2


def test_several_workers_and_all_held() -> None:
    ok("new", "mine.toml")
    first = answer("ask", "-n", "100", "--worker", "a")["requests"]
    assert len(first) > 4
    assert run("ask", "--worker", "b").exit_code == 4
    assert refused("withdraw", first[0]["token"]).field == "worker"
    ok("withdraw", first[0]["token"], "--reason", "busy", "--worker", "a")
    assert answer("ask", "--worker", "b")["requests"] == [first[0]]


def test_exported_measurements_can_be_imported_into_a_new_session() -> None:
    ok("new", "mine.toml", "--seed", "3")
    session, tapes = Session.load("surepick.db"), Tapes()
    while requests := session.ask(20):
        for request in requests:
            session.tell(request, tapes.value(request.token))
    session.add_extra("tin", 77.0)
    ok("export", "-o", "all.csv")
    ok("export", "--format", "json", "-o", "all.json")
    assert json.loads(Path("all.json").read_text())["certificate"]["plan_name"] == answer("status")["answer"]
    ok("new", "mine.toml", "--seed", "3", "--name", "again")
    counts = answer("import", "all.csv", "-s", "again")["imported"]
    assert counts["extra"] == 1
    assert counts["not asked for yet"] == 0
    again = Session.load("surepick.db", "again")
    assert again.status != "running"
    assert session.status != "running"
    assert again.outcome.counts.tolist() == session.outcome.counts.tolist()


def test_rows_by_arm_answer_what_is_asked_or_are_only_kept() -> None:
    ok("new", "mine.toml")
    Path("by_hand.csv").write_text("arm,value\ntin,1.5\ncopper,2\n")
    assert answer("import", "by_hand.csv")["imported"]["extra"] == 2
    assert answer("import", "by_hand.csv", "--answers")["imported"]["recorded"] == 2
    for cell in ("", "lots"):
        Path("bad.csv").write_text(f"arm,value\ntin,{cell}\n")
        assert refused("import", "bad.csv").field == "value"


def test_the_log_shows_what_happened_and_extend_goes_on() -> None:
    ok("new", "mine.toml", "--budget", "4")
    tapes = Tapes()
    for token in ("0.0", "1.0", "2.0", "3.0"):
        ok("tell", token, str(tapes.value(token)))
    assert answer("status")["status"] == "budget spent"
    assert [event["kind"] for event in answer("log", "--last", "0")][-1] == "stopped"
    said = ok("log")
    assert f"tin = {tapes.value('1.0'):g}" in said
    assert ": copper 1 ×, tin 1 ×" in said
    assert "{" not in said  # no event is shown as JSON
    assert answer("extend", "--budget", "100")["status"] == "running"
    ok("close", "--reason", "enough")
    assert answer("status")["status"] == "closed"


def test_a_store_or_session_that_is_not_there_is_refused_and_not_made() -> None:
    assert isinstance(refused("status"), StoreError)
    assert not Path("surepick.db").exists()
    ok("new", "mine.toml")
    assert "'mine'" in str(refused("status", "-s", "mime"))
    assert isinstance(refused("new", "mine.toml"), NameTakenError)


def test_doctor_explains_damage_and_rescues_what_is_left() -> None:
    ok("new", "mine.toml", "--policy", "CombGapE")
    session = Session.load("surepick.db")
    for _ in range(40):
        session.tell(session.ask()[0], [0.5 + i / 7 for i in range(20)])
    session.store.close()
    assert json.loads(ok("doctor", "--json"))["well"]
    assert json.loads(ok("backup", "copy.db", "--json"))["well"]
    assert Session.load("copy.db").ledger().n_told == session.ledger().n_told
    session.store.close()
    assert run("backup", "copy.db").exit_code == 1  # it is there already
    whole = bytearray(Path("surepick.db").read_bytes())
    middle = len(whole) // 2 // 4096 * 4096
    whole[middle : middle + 4096] = bytes(4096)
    Path("surepick.db").write_bytes(whole)
    result = run("doctor", "--rescue", "left.csv", "--json")
    assert result.exit_code == 1
    assert "sqlite3" in json.loads(result.stdout)["advice"]
    with Path("left.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert 100 < len(rows) < 800
    assert Path("surepick.db").read_bytes() == whole


ODD_LOGS = {
    "no JSON": [("created", "{")],
    "no object": [("created", "[]")],
    "an empty object": [("created", "{}")],
    "another kind": [("noted", "{}")],
    "a nested bomb": [("created", "[" * 100_000)],
    "an arm that is not there": [("created", None), ("measured", '{"arm": 99, "index": 0, "value": 1.0}')],
    "a body without its parts": [("created", None), ("measured", "{}")],
    "a value that is text": [("created", None), ("measured", '{"arm": 0, "index": 0, "value": "x"}')],
    "a kind that is not known": [("created", None), ("dreamt", "{}")],
}


def test_odd_sessions_are_listed_beside_the_others_and_refused() -> None:
    ok("new", "mine.toml", "--policy", "CombGapE")
    store = open_store("surepick.db")
    created = next(store.read("mine")).body
    for name, log in ODD_LOGS.items():
        store.create(name, [Draft(kind, created if body is None else body, 1.0) for kind, body in log])
    rows = {row["session"]: row for row in answer("list")}
    assert rows.keys() == {"mine", *ODD_LOGS}
    assert (rows["mine"]["status"], rows["mine"]["measurements"]) == ("running", 0)
    for name in ODD_LOGS.keys() - {"a value that is text"}:  # which nobody has looked at yet
        assert rows[name]["measurements"] is None
        error = refused("status", "-s", name)
        if name == "a kind that is not known":
            assert "'dreamt'" in str(error)
        else:
            assert isinstance(error, DamageError)
            assert repr(name) in str(error)
    assert "mine" in ok("list")


def test_what_nobody_asked_for_is_rescued_too_and_imported_once() -> None:
    ok("new", "mine.toml", "--policy", "CombGapE")
    session = Session.load("surepick.db")
    session.tell("0.0", 1.5)
    session.add_extra("tin", 2.5, key="sheet 1")
    session.add_extra(2, -0.5)
    session.add_extra(3, 9.0, picked=True)
    session.store.close()
    ok("doctor", "--rescue", "left.csv")
    ok("new", "mine.toml", "--policy", "CombGapE", "--name", "again")
    for _ in range(2):
        ok("import", "left.csv", "--session", "again", "--rows-of", "mine")
    again = Session.load("surepick.db", "again")
    kept = [(m.token, m.arm, m.value) for m in again.measurements()]
    assert kept == [("0.0", 0, 1.5), (None, 1, 2.5), (None, 2, -0.5), (None, 3, 9.0)]
    assert [m.picked for m in again.measurements()] == [False, False, False, True]
    assert again.store.find("again", "recorded:sheet 1") is not None


def test_a_value_that_was_taken_back_is_not_rescued(folder: Path) -> None:
    ok("new", "mine.toml", "--policy", "CombGapE")
    session = Session.load("surepick.db")
    for i, request in enumerate(session.ask(3)):
        session.tell(request, float(i))
    told = [m.token for m in session.measurements()]
    session.remove(str(told[1]), "a slip of the pen")
    session.store.close()
    ok("doctor", "--rescue", "left.csv")
    with Path("left.csv").open() as stream:
        assert [row["token"] for row in csv.DictReader(stream)] == [told[0], told[2]]


@pytest.mark.parametrize("refused_one", ["1e300", "7"])
def test_of_several_unasked_values_all_are_kept_or_none(folder: Path, refused_one: str) -> None:
    ok("new", "mine.toml")
    ok("tell", "tin", "6", "--unasked", "--key", "sheet 1, 1")  # so that 7 is another under this key
    key = ["--key", "sheet 1"] if refused_one == "7" else []
    refused("tell", "tin", "5", refused_one, "8", "--unasked", "--yes", *key)
    assert answer("status")["n_unasked"] == 1
    ok(
        "tell", "tin", "5", "6", "8", "--unasked", "--yes", "--key", "sheet 1"
    )  # of which one is there already
    assert [m.value for m in Session.load("surepick.db").measurements()] == [6.0, 5.0, 8.0]
    ok("tell", "tin", "5", "6", "8", "--unasked", "--yes", "--key", "sheet 1")
    assert answer("status")["n_unasked"] == 3


def measuring(folder: Path, body: str) -> str:
    """A measure command: a small program with `arm` and `calls` (how often it was called) at hand."""
    program = folder / "measure.py"
    program.write_text(
        "import sys, os, time, random\n"
        "arm = sys.argv[1]\n"
        f"log = open({str(folder / 'calls')!r}, 'a'); log.write(arm + '\\n'); log.close()\n"
        f"calls = len(open({str(folder / 'calls')!r}).readlines())\n"
        f"{body}\n"
    )
    return f"{sys.executable} -S {program} {{arm}}"


MEANS = "means = {'copper': 5.0, 'tin': 0.0, 'zinc': 1.0, 'lead': -1.0}"


@pytest.mark.parametrize("jobs", ["1", "4"])
def test_run_calls_a_program_until_it_is_sure(folder: Path, jobs: str) -> None:
    command = measuring(folder, f"{MEANS}\nprint('measured', arm)\nprint(means[arm])")
    data = answer("run", "mine.toml", "--measure", command, "--jobs", jobs)
    assert (data["status"], data["answer"]) == ("confident", "plan 4")
    assert data["n_told"] == len((folder / "calls").read_text().splitlines())
    again = answer("run", "mine.toml", "--measure", command)
    assert again["n_told"] == data["n_told"]  # it was over: nothing was measured again


def test_run_needs_no_file_for_a_session_that_was_begun(folder: Path) -> None:
    command = measuring(folder, f"{MEANS}\nprint(means[arm])")
    refused("run", "--measure", command)
    assert not Path("surepick.db").exists()
    ok("new", "mine.toml", "--name", "hand")
    ok("new", "mine.toml", "--name", "other")
    assert "'hand', 'other'" in str(refused("run", "--measure", command))
    assert answer("run", "--measure", command, "--session", "hand")["answer"] == "plan 4"
    assert answer("status", "-s", "other")["n_told"] == 0


@pytest.mark.parametrize(
    "body",
    ["pass", "print('nan')", "sys.stderr.write('no signal'); sys.exit(7)", "time.sleep(30)"],
)
def test_a_program_that_fails_ends_the_run_and_nothing_is_lost(folder: Path, body: str) -> None:
    command = measuring(folder, f"if calls <= 3:\n    print(1.5); sys.exit()\n{body}")
    refused("run", "mine.toml", "--measure", command, "--timeout", "0.5")
    assert answer("status")["n_told"] == 3
    session = Session.load("surepick.db")
    assert session.store.leases("mine") == []


def test_retries_bridge_a_failing_program(folder: Path) -> None:
    command = measuring(folder, f"{MEANS}\nif calls % 3 == 0: sys.exit(1)\nprint(means[arm])")
    data = answer("run", "mine.toml", "--measure", command, "--retries", "2")
    assert data["status"] == "confident"


def test_a_budget_ends_the_run_with_exit_code_one(folder: Path) -> None:
    result = run("run", "mine.toml", "--measure", measuring(folder, "print(1)"), "--budget", "6")
    assert result.exit_code == 1
    assert answer("status")["status"] == "budget spent"


def test_run_refuses_another_problem_and_a_command_without_arm(folder: Path) -> None:
    assert refused("run", "mine.toml", "--measure", "true").field == "measure"
    ok("new", "mine.toml")
    (folder / "mine.toml").write_text(PROBLEM.replace("0.3", "0.4"))
    assert isinstance(refused("run", "mine.toml", "--measure", "echo {arm} 1"), SessionError)
    assert answer("status")["n_told"] == 0


def test_the_store_can_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, postgres_url: str) -> None:
    monkeypatch.setenv("SUREPICK_STORE", postgres_url)
    ok("new", "mine.toml")
    assert len(answer("ask")["requests"]) == 1
    assert answer("doctor")["well"]
    assert not Path("surepick.db").exists()


def test_a_file_of_unasked_measurements_with_keys_can_be_imported_again() -> None:
    ok("new", "mine.toml")
    Path("lab.csv").write_text("arm,value,key\ntin,0.5,sheet 1\nzinc,0.25,sheet 2\n")
    assert answer("import", "lab.csv")["imported"]["extra"] == 2
    Path("lab.csv").write_text("arm,value,key\ntin,0.5,sheet 1\nzinc,0.25,sheet 2\ntin,0.75,sheet 3\n")
    again = answer("import", "lab.csv")
    assert (again["imported"]["extra"], again["imported"]["repeated"], again["n_unasked"]) == (1, 2, 3)
    for _ in range(2):
        assert answer("tell", "tin", "0.5", "0.6", "--unasked", "--key", "sheet 4")["n_unasked"] == 5
    assert refused("tell", "tin", "9", "--unasked", "--key", "sheet 1").field == "key"
    refused("tell", "0.0", "9", "--key", "sheet 1")  # a token is a key already
    assert answer("status")["n_told"] == 0


def test_a_file_from_a_spreadsheet_with_semicolons_and_decimal_commas_is_imported() -> None:
    ok("new", "mine.toml")
    Path("lab.csv").write_text("\ufeffArm;Value\r\ntin;0,5\r\nzinc;0,25\r\n", encoding="utf-8")
    assert answer("import", "lab.csv", "--answers")["n_told"] == 2
    assert "0.25" in ok("export")


def test_a_token_that_is_open_beats_an_arm_of_the_same_name() -> None:
    names = '["1.0", "0.0", "2.0", "3.0"]'
    Path("mine.toml").write_text(PROBLEM.replace('["copper", "tin", "zinc", "lead"]', names))
    ok("new", "mine.toml")
    assert "0.0\t1.0" in ok("ask", "-n", "4").splitlines()
    ok("tell", "0.0", "77")
    (told,) = Session.load("surepick.db").measurements()
    assert (told.token, told.arm_name, told.value) == ("0.0", "1.0", 77.0)


def test_runs_that_begin_the_same_session_at_the_same_time_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    command = f"{sys.executable} -c 'print(1.0)' {{arm}}"
    ok("new", "mine.toml", "--budget", "8")  # which the other one has begun after this one looked
    new = importlib.import_module("surepick.cli.new")
    go_on = new._go_on
    monkeypatch.setattr(new, "_go_on", _blind_once(go_on))
    result = run("run", "mine.toml", "--measure", command, "--json")
    assert json.loads(result.stdout)["n_told"] == 8
    Path("mine.toml").write_text(PROBLEM.replace("0.3", "0.4"))
    monkeypatch.setattr(new, "_go_on", _blind_once(go_on))
    assert isinstance(refused("run", "mine.toml", "--measure", command), SessionError)


def _blind_once(look: Any) -> Any:
    """The look, but for the first time, which finds nothing."""
    times = iter([False])
    return lambda *given: look(*given) if next(times, True) else None


def test_an_interrupted_run_keeps_its_values_and_the_same_command_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tell, told = Session.tell, []

    def tell_then_interrupt(self: Session, *given: Any, **options: Any) -> Any:
        told.append(tell(self, *given, **options))
        if len(told) == 3:
            raise KeyboardInterrupt
        return told[-1]

    monkeypatch.setattr(Session, "tell", tell_then_interrupt)
    command = f"{sys.executable} -c 'print(1.0)' {{arm}}"
    result = run("run", "mine.toml", "--measure", command, "--budget", "8")
    assert result.exit_code == 130
    assert answer("status")["n_told"] == 3
    monkeypatch.setattr(Session, "tell", tell)
    assert json.loads(run("run", "mine.toml", "--measure", command, "--json").stdout)["n_told"] == 8


def test_every_command_about_a_session_takes_it_by_the_same_option() -> None:
    ok("new", "mine.toml", "--name", "first")
    ok("new", "mine.toml", "--name", "second")
    for words in (("report",), ("watch", "--once"), ("status",), ("ask",), ("log",)):
        assert ok(*words, "-s", "second")
    assert "second" in Path("report.html").read_text(encoding="utf-8")
    assert "second" in ok("watch", "second", "--once")


def test_a_run_that_goes_on_refuses_settings_that_its_session_has_not() -> None:
    command = ("run", "mine.toml", "--measure", f"{sys.executable} -c 'print(1.0)' {{arm}}")
    assert run(*command, "--budget", "8", "--delta", "0.1").exit_code == 1
    assert run(*command).exit_code == 1  # what is not said stays as it was
    assert run(*command, "--budget", "8", "--delta", "0.1").exit_code == 1  # the same command again
    others = [("--delta", "0.01"), ("--epsilon", "0.5"), ("--budget", "9"), ("--policy", "CombGapE")]
    for words in (*others, ("--seed", "1")):
        said = str(refused(*command, *words))
        assert all(name in said for name in (words[0], "BetGapE", "delta 0.1", "budget 8", "seed 0")), said


def quick_run(*words: str) -> Result:
    return run("run", "mine.toml", "--measure", f"{sys.executable} -c 'print(1.0)' {{arm}}", *words)


def test_what_a_dead_run_of_this_machine_held_is_measured_by_the_next() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    ok("new", "mine.toml", "--budget", "8")
    dead = f"run on {socket.gethostname()}, process {gone.pid}"
    assert len(Session.load("sqlite:///surepick.db").ask(3, worker=dead)) == 3
    assert quick_run().exit_code == 1  # the budget is spent, before the lease of three days ends
    assert answer("status")["n_told"] == 8
    assert "withdrawn" in {event["kind"] for event in answer("log", "--last", "0")}


def test_a_run_waits_for_what_others_hold_and_says_so() -> None:
    ok("new", "mine.toml", "--budget", "8", "--lease", "4")
    Session.load("sqlite:///surepick.db").ask(4, worker="truck 7")
    result = quick_run("--jobs", "1")
    assert result.exit_code == 1
    assert "truck 7" in result.stderr
    assert answer("status")["n_told"] >= 8


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_a_run_that_is_asked_to_end_gives_back_what_it_holds(folder: Path) -> None:
    words = ["run", "mine.toml", "--measure", "sh -c 'touch begun; sleep 60' {arm}", "--jobs", "2"]
    here = {**os.environ, "PYTHONPATH": str(Path(sp.__file__).parents[1])}
    program = [sys.executable, "-m", "surepick"]
    process = subprocess.Popen([*program, *words], stderr=subprocess.PIPE, text=True, env=here)
    until = time.monotonic() + 60
    while not (folder / "begun").exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert Session.load("sqlite:///surepick.db", read_only=True).leases() == []


def test_a_last_call_ends_the_session_with_a_test(folder: Path) -> None:
    ok("new", "mine.toml")
    data = answer("last-call", "40")
    assert data["status"] == "running"
    assert json.loads(run("log", "--json").stdout)[-1]["kind"] == "called"
    assert isinstance(refused("last-call", "40"), SessionError)


# What comes in by files


@pytest.mark.parametrize(
    ("rows", "field"),
    [
        ("token,value\n0.0,1\n1.0,1e155\n", "value"),
        ("token,value\n0.0,1\n1.0,1_000\n", "value"),
        ("token,value,count\n0.0,1,1\n1.0,1,1_0\n", "count"),
        ("token,value\n0.0,1\n1.0.0,1\n", "token"),
        ("token,value\n0.0,1\n9.0,1\n", "token"),
        ("token,arm,value\n0.0,copper,1\n1.0,zinc,1\n", "token"),
        ("token,value\n1.0,3\n0.0,12,5\n", None),
        ("arm,value\ncopper,1\ntin,inf\n", "value"),
    ],
)
def test_a_row_that_cannot_be_keeps_all_rows_out(rows: str, field: str | None) -> None:
    ok("new", "mine.toml")
    ok("ask", "-n", "4")
    Path("lab.csv").write_text(rows)
    assert refused("import", "lab.csv").field == field
    state = answer("status")
    assert (state["n_told"], state["n_unasked"]) == (0, 0)


def test_rows_of_other_sessions_are_left_out() -> None:
    ok("new", "mine.toml", "--name", "mine")
    ok("ask", "-s", "mine", "-n", "4")
    Path("lab.csv").write_text("session,token,value\nmine,0.0,1\ntheirs,1.0,2\n,2.0,3\n")
    assert answer("import", "lab.csv", "-s", "mine")["imported"]["recorded"] == 2
    ok("import", "lab.csv", "-s", "mine", "--rows-of", "theirs")
    told = {m.token: m.value for m in Session.load("surepick.db").measurements()}
    assert told == {"0.0": 1.0, "2.0": 3.0, "1.0": 2.0}
    Path("lab.csv").write_text("session,token,value\ntheirs,1.0,2\n")
    assert "'theirs'" in str(refused("import", "lab.csv", "-s", "mine"))


def test_a_challenge_has_an_exit_code_for_each_answer(folder: Path) -> None:
    means = measuring(folder, f"{MEANS}\nprint(means[arm])")
    better = run("challenge", "mine.toml", "--incumbent", "plan 2", "--measure", means, "--json")
    assert better.exit_code == 0, better.output
    assert json.loads(better.stdout)["answer"] != "plan 2"
    flat = measuring(folder, "print(1)")
    wide = ("--epsilon", "9", "--name", "kept", "--measure", flat)
    kept = run("challenge", "mine.toml", "--incumbent", "plan 2", *wide, "--json")
    assert (kept.exit_code, json.loads(kept.stdout)["answer"]) == (5, "plan 2")
    unknown = ("--budget", "8", "--name", "unknown", "--measure", flat)
    assert run("challenge", "mine.toml", "--incumbent", "plan 2", *unknown).exit_code == 1
    assert "'x'" in str(refused("challenge", "mine.toml", "--incumbent", "x", "--measure", flat))
