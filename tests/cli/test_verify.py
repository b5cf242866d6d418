"""Certificates and logs as files: checked anywhere, signed, announced, imported; and damage that shows."""

from __future__ import annotations

import copy
import json
import shlex
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

import surepick as sp
from session_tools import Tapes, problem, run_to_end
from surepick.cli import app
from surepick.errors import FileError, SessionError, SurepickError
from surepick.files.log import log_of, put_log
from surepick.sessions.session import Session
from surepick.store import MemoryStore, open_store

SCALE = 0.05


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished session, its certificate and its log."""
    folder = tmp_path_factory.mktemp("made")
    store = str(folder / "surepick.db")
    session = Session.create(store, "trips", problem(noise=SCALE), policy=sp.BetGapE())
    run_to_end(session, Tapes(scale=SCALE))
    session.store.close()
    assert run("certificate", "-o", str(folder / "certificate.json"), "--store", store).exit_code == 0
    exporting = ("export", "--format", "json", "-o", str(folder / "log.json"), "--store", store)
    assert run(*exporting).exit_code == 0
    return folder


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, made: Path) -> Path:
    """A copy of it, where each test works."""
    for name in ("surepick.db", "certificate.json", "log.json"):
        shutil.copy(made / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREPICK_STORE", raising=False)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def exported() -> Any:
    return json.loads(Path("log.json").read_text())


def write(name: str, data: Any) -> None:
    Path(name).write_text(json.dumps(data))


@pytest.mark.parametrize(
    "files", [("certificate.json", "log.json"), ("log.json", "certificate.json"), ("log.json",)]
)
def test_a_certificate_is_checked_without_the_store(files: tuple[str, ...]) -> None:
    Path("surepick.db").unlink()
    result = run("verify", *files, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["holds"]


def test_a_certificate_that_is_not_of_the_log_does_not_hold_without_the_store() -> None:
    certificate = json.loads(Path("certificate.json").read_text())
    write("certificate.json", {**certificate, "delta": 0.001})
    result = run("verify", "certificate.json", "log.json")
    assert result.exit_code == 1
    assert json.loads(run("verify", "certificate.json", "log.json", "--json").stdout)["fields"] == ["delta"]


def test_an_export_holds_the_log_and_the_certificate_and_nothing_else() -> None:
    assert set(exported()) == {"log", "certificate"}


@pytest.mark.parametrize("name", ["measurements", "policy", "status"])
def test_what_nothing_checks_is_refused_in_a_log_file(name: str) -> None:
    data = exported()
    write("log.json", {**data, name: [{"value": 99}]})
    refused = run("verify", "log.json").exception
    assert isinstance(refused, FileError)
    assert refused.field == name
    data["log"]["events"][3]["mood"] = "good"
    write("log.json", data)
    refused = run("verify", "log.json").exception
    assert isinstance(refused, FileError)
    assert refused.field == "mood"


@pytest.mark.parametrize("words", [("log.json",), ("certificate.json", "log.json")])
def test_a_changed_certificate_in_a_log_file_does_not_hold_beside_the_right_one(
    words: tuple[str, ...],
) -> None:
    data = exported()
    data["certificate"]["plan_name"] = "Harbour"
    write("log.json", data)
    result = run("verify", *words, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["holds"] is False


def test_verify_says_what_holds() -> None:
    session = Session.load("surepick.db", "trips")
    session.remove("0.0", "a slip")
    session.extend(delta=0.01)
    session.extend(budget=5000)
    run_to_end(session, Tapes(scale=SCALE))
    said = json.loads(run("verify", "--json").stdout)
    certificate = session.certificate()
    assert said["holds"] is True
    assert (said["claim"], said["assumption"]) == (certificate.guarantee, certificate.noise)
    assert (said["delta"], said["epsilon"], said["n_removed"]) == (0.01, 0.0, 1)
    assert said["n_values"] == sum(not m.voided for m in session.measurements())
    assert [(to["delta"], to["budget"]) for to in said["extensions"]] == [(0.01, None), (0.01, 5000)]
    times = [event.time for event in session.events()]
    assert (said["first_time"], said["last_time"]) == (times[0], times[-1])
    assert certificate.first_delta == 0.05
    assert [to["delta"] for to in certificate.extensions] == [0.01, 0.01]
    shown = run("verify").stdout
    assert all(str(fact) in shown for fact in (certificate.guarantee, certificate.noise))


def test_a_log_file_that_was_changed_does_not_hold() -> None:
    data = exported()
    data["log"]["events"][3]["body"] = data["log"]["events"][3]["body"].replace(".", ".1", 1)
    write("log.json", data)
    result = run("verify", "log.json")
    assert result.exit_code == 1
    with pytest.raises(SessionError):
        raise run("import", "log.json", "--session", "again").exception  # type: ignore[misc]
    assert open_store("surepick.db").names() == ["trips"]


def test_numbers_may_have_lost_their_points_on_the_way() -> None:
    """As programs write them that have one kind of numbers."""
    data = exported()
    for event in data["log"]["events"]:
        event["time"] = int(event["time"]) if event["time"].is_integer() else event["time"]
    write("log.json", data)
    assert run("verify", "log.json").exit_code == 0


def test_an_imported_session_is_the_same_and_goes_on() -> None:
    assert run("import", "log.json", "--store", "other.db").stdout.startswith("session 'trips' imported")
    other = open_store("other.db")
    assert other.head("trips") == open_store("surepick.db").head("trips")
    assert run("verify", "certificate.json", "--store", "other.db").exit_code == 0
    session = Session.load(other, "trips")
    session.extend(delta=0.01)
    run_to_end(session, Tapes(scale=SCALE))
    assert session.verify(session.certificate().to_json()).holds


def test_an_imported_session_may_get_another_name() -> None:
    refused = run("import", "log.json").exception
    assert isinstance(refused, sp.SurepickError)
    assert run("import", "log.json", "--session", "again").exit_code == 0
    result = run("verify", "certificate.json", "--session", "again")
    assert result.exit_code == 0, result.output
    assert "'trips'" in result.stdout


def test_a_log_of_a_function_needs_it() -> None:
    from session_tools import best_plan, oracle_problem

    session = Session.create("memory://", "mine", oracle_problem(), policy=sp.BetGapE(delta=0.1))
    log, other = log_of(session.store, "mine"), MemoryStore()
    with pytest.raises(sp.SurepickError):
        put_log(other, log)
    assert put_log(other, log, oracle=best_plan) == "mine"


ODD: list[Any] = [None, [], 5, "x", {}, [[]], {"log": 5}, {"log": {"events": 5}}, {"certificate": []}]
ODD += [{"log": {"events": [5], "session": "a", "position": 1, "checksum": "x"}}]
ODD += [{"log": {"events": [], "session": "a", "position": 1, "checksum": "x"}}]
ODD += [{"log": {"events": [{}], "session": 5, "position": "1", "checksum": None}}]


@pytest.mark.parametrize("odd", ODD)
def test_odd_files_are_refused_in_words(odd: Any) -> None:
    write("odd.json", odd)
    for words in (("verify", "odd.json"), ("verify", "certificate.json", "odd.json"), ("import", "odd.json")):
        result = run(*words)
        assert result.exit_code == 1
        assert isinstance(result.exception, SurepickError | SystemExit), result.exception


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "\ufeff{}",
        "[" * 100_000,
        '{"log_checksum":' + "[" * 100_000,
        "1" * 10_000,
        '{"a": "\\ud800"}',
    ],
)
def test_what_is_no_json_is_refused_in_words(text: str) -> None:
    Path("odd.json").write_text(text, encoding="utf-8")
    for words in (("verify", "odd.json"), ("import", "odd.json")):
        assert isinstance(run(*words).exception, SurepickError)


@pytest.mark.parametrize("field", ["position", "kind", "key", "time", "body", "checksum"])
def test_odd_events_are_refused_in_words(field: str) -> None:
    true = exported()
    for value in (None, True, -1, 10**400, 1e300, "", "\ud800", [], {}):
        data = copy.deepcopy(true)
        if data["log"]["events"][2][field] == value:
            continue
        data["log"]["events"][2][field] = value
        write("log.json", data)
        result = run("verify", "log.json")
        assert result.exit_code != 0
        assert isinstance(result.exception, SurepickError | SystemExit), result.exception


DAMAGE = {
    "its last event is lost": "DELETE FROM surepick_events WHERE position = "
    "(SELECT max(position) FROM surepick_events)",
    "its last half is lost": "DELETE FROM surepick_events WHERE position > 9",
    "an event is lost": "DELETE FROM surepick_events WHERE position = 5",
    "the first event is lost": "DELETE FROM surepick_events WHERE position = 1",
    "all events are lost": "DELETE FROM surepick_events",
    "it says it ends earlier": "UPDATE surepick_sessions SET position = position - 1, checksum = "
    "(SELECT checksum FROM surepick_events WHERE surepick_events.position = surepick_sessions.position - 1)",
    "it says it ends otherwise": "UPDATE surepick_sessions SET checksum = 'f00'",
    "it says it ends later": "UPDATE surepick_sessions SET position = position + 1",
    "it is not listed": "DELETE FROM surepick_sessions",
    "an event was changed": "UPDATE surepick_events SET body = '{}' WHERE position = 4",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_verify_and_doctor_agree(damage: str) -> None:
    assert (run("verify").exit_code, run("doctor").exit_code) == (0, 0)
    with closing(sqlite3.connect("surepick.db")) as connection, connection:
        connection.execute(DAMAGE[damage])
    doctor, verify = run("doctor"), run("verify", "--session", "trips")
    assert doctor.exit_code == 1, doctor.output
    assert verify.exit_code == 1, verify.output
    assert isinstance(verify.exception, SurepickError | SystemExit), verify.exception


@pytest.mark.parametrize("share", [0.6, 0.3])
def test_verify_and_doctor_agree_on_a_file_that_was_cut(share: float) -> None:
    size = Path("surepick.db").stat().st_size
    with Path("surepick.db").open("r+b") as stream:
        stream.truncate(int(size * share))
    doctor, verify = run("doctor"), run("verify", "--session", "trips")
    assert doctor.exit_code == 1
    assert verify.exit_code == 1
    assert isinstance(verify.exception, SurepickError | SystemExit), verify.exception


# What is announced


def test_a_question_is_announced_and_recognised() -> None:
    text = 'kind = "table"\nplans = [[1, 0], [0, 1]]\nnoise = 0.1\n'
    Path("mine.toml").write_text(text)
    begun = run("new", "mine.toml", "--announce", "--store", "a.db")
    (line,) = [line for line in begun.stdout.splitlines() if line.startswith("question ")]
    question = line.split()[1]
    assert len(question) == 64
    again = json.loads(run("new", "mine.toml", "--announce", "--json", "--store", "b.db").stdout)
    assert again["question"] == question  # of the question alone, not of the time or the store
    assert run("verify", "--announced", question.upper(), "--store", "a.db").exit_code == 0
    assert run("new", "mine.toml", "--delta", "0.1", "--store", "c.db").exit_code == 0
    other = run("verify", "--announced", question, "--store", "c.db", "--json")
    assert other.exit_code == 1
    assert json.loads(other.stdout)["question"] != question


# Signatures


def keys(name: str, form: str, password: bytes | None = None) -> None:
    from cryptography.hazmat.primitives import serialization as form_of
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, ssh = Ed25519PrivateKey.generate(), form == "ssh"
    encryption = form_of.NoEncryption() if password is None else form_of.BestAvailableEncryption(password)
    private = form_of.PrivateFormat.OpenSSH if ssh else form_of.PrivateFormat.PKCS8
    public = form_of.PublicFormat.OpenSSH if ssh else form_of.PublicFormat.SubjectPublicKeyInfo
    encoding = form_of.Encoding.OpenSSH if ssh else form_of.Encoding.PEM
    Path(name).write_bytes(key.private_bytes(form_of.Encoding.PEM, private, encryption))
    Path(f"{name}.pub").write_bytes(key.public_key().public_bytes(encoding, public))


@pytest.mark.parametrize("form", ["ssh", "pem"])
def test_a_signed_certificate_is_checked_with_the_public_key(form: str) -> None:
    keys("mine", form)
    keys("other", form)
    assert run("certificate", "--sign", "mine", "-o", "signed.json").exit_code == 0
    assert run("verify", "signed.json", "--key", "mine.pub").exit_code == 0
    assert run("verify", "signed.json", "log.json", "--key", "mine.pub").exit_code == 0
    unchecked = run("verify", "signed.json", "--json")
    assert (unchecked.exit_code, len(json.loads(unchecked.stdout)["remarks"])) == (0, 1)
    for words in (("signed.json", "--key", "other.pub"), ("certificate.json", "--key", "mine.pub")):
        result = run("verify", *words, "--json")
        assert (result.exit_code, len(json.loads(result.stdout)["objections"])) == (1, 1)


def test_a_certificate_changed_after_it_was_signed_is_noticed() -> None:
    keys("mine", "ssh")
    run("certificate", "--sign", "mine", "-o", "signed.json")
    data = json.loads(Path("signed.json").read_text())
    assert len(data["signature"]["value"]) == 128
    for changed in (
        {**data, "n_rounds": data["n_rounds"] + 1},
        {**data, "signature": {**data["signature"], "value": "00" * 64}},
        {**data, "signature": {**data["signature"], "value": 5}},
        {**data, "signature": "mine"},
        {**data, "signature": {}},
    ):
        write("changed.json", changed)
        result = run("verify", "changed.json", "--key", "mine.pub", "--json")
        assert result.exit_code == 1
        assert json.loads(result.stdout)["objections"]


@pytest.mark.parametrize("form", ["ssh", "pem"])
def test_a_key_with_a_password_asks_for_it(form: str) -> None:
    keys("mine", form, b"secret")
    signed = CliRunner().invoke(app, ["certificate", "--sign", "mine", "-o", "signed.json"], input="secret\n")
    assert signed.exit_code == 0, signed.output
    assert run("verify", "signed.json", "--key", "mine.pub").exit_code == 0
    wrong = CliRunner().invoke(app, ["certificate", "--sign", "mine"], input="wrong\n")
    assert isinstance(wrong.exception, FileError)


def test_what_is_no_key_is_refused_in_words() -> None:
    keys("mine", "pem")
    Path("text").write_text("hello")
    for words in (
        ("certificate", "--sign", "text"),
        ("certificate", "--sign", "absent"),
        ("certificate", "--sign", "mine.pub"),
        ("verify", "certificate.json", "--key", "text"),
        ("verify", "certificate.json", "--key", "mine"),
        ("verify", "--key", "mine.pub"),
    ):
        assert isinstance(run(*words).exception, FileError), words


def test_who_has_a_certificate_and_no_store_is_told_what_else_it_takes(folder: Path) -> None:
    for words in (["certificate", "-o", "my certificate.json"], ["export", "-o", "log.json"]):
        assert words[2] in run(*words).output
    (folder / "surepick.db").unlink()
    refused = str(run("verify", "my certificate.json").exception)
    hint = refused.split("it takes the log: ")[1].split(", where")[0]
    assert "holds" in run(*shlex.split(hint)[1:]).output
