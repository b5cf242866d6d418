"""A server that goes away in the middle of a write: nothing acknowledged is lost, nothing counts twice."""

import os
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

import surepick as sp
from session_tools import Tapes, problem, run_to_end, same_run, tell_until_refused
from surepick.errors import StoreError
from surepick.sessions.session import Session

POLICY = sp.CombGapE(delta=1e-3)
END_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'surepick'"
# What the wire carries then: events as JSON, the end of a transaction.
APPEND, COMMIT = b'"checksum"', b"COMMIT\0"


class Wire:
    """Stands between client and server, and breaks the next connection that writes, before or after it."""

    def __init__(self, folder, server):
        self._server, self.broken, self.is_down = server, 0, False
        self.url = ""  # of the server through this wire
        self._when: str | None = None
        self._words = APPEND
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def break_next(self, when, words=APPEND):
        """Break the next connection with these words, "before" the server sees them or "after" it did."""
        self._when, self._words = when, words

    def close(self):
        self._listener.close()

    def _serve(self):
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.is_down:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                doomed = threading.Event()
                threading.Thread(target=self._ask, args=(client, server, doomed), daemon=True).start()
                threading.Thread(target=self._answer, args=(client, server, doomed), daemon=True).start()

    def _ask(self, client, server, doomed):
        with suppress(OSError):
            while data := client.recv(1 << 16):
                if self._words in data and (self._when == "before" or (self._when and self._words == APPEND)):
                    when, self._when = self._when, None
                    self.broken += 1
                    if when == "before":
                        break
                    doomed.set()
                server.sendall(data)
        _shut(client, server)

    def _answer(self, client, server, doomed):
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if self._when == "after" and self._words == COMMIT and COMMIT in data:
                    self._when = None
                    self.broken += 1
                    doomed.set()
                if doomed.is_set():
                    break  # the server has done it, and nobody hears of it
                client.sendall(data)
        _shut(client, server)


def _shut(*ends):
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


@pytest.fixture
def wire(postgres_url, tmp_path_factory):
    folder = tmp_path_factory.mktemp("w")
    link = Wire(folder, f"{_host(postgres_url)}/.s.PGSQL.5432")
    link.url = postgres_url.replace(_host(postgres_url), str(folder))
    yield link
    link.close()


def _host(url):
    return url.split("host=")[1].split("&")[0]


@pytest.fixture
def session(wire):
    return Session.create(wire.url, "mine", problem(), policy=POLICY, seed=3)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_told_value_is_counted_once_when_the_connection_breaks(session, wire, when, postgres_url):
    tapes, told = Tapes(), []
    for _ in range(4):
        for request in session.ask(2):
            wire.break_next(when)
            _until_it_works(lambda request=request: session.tell(request, tapes.value(request.token)))
            told.append(request.token)
    assert wire.broken >= 8
    kept = [m.token for m in Session.load(postgres_url, "mine").measurements()]
    assert sorted(kept) == sorted(told)
    assert same_run(run_to_end(session, tapes), sp.simulate(problem(), Tapes(), policy=POLICY, seed=3))
    assert session.verify(session.certificate().to_json()).holds


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_record_without_a_key_is_not_doubled_by_a_broken_connection(session, wire, when):
    wire.break_next(when)
    assert _until_it_works(lambda: session.tell("tin", 1.0)).result == "recorded"
    assert wire.broken == 1
    assert [m.value for m in session.measurements()] == [1.0]


def test_a_transaction_that_the_server_has_ended_is_known_to_be(wire, postgres_url):
    session = Session.create(wire.url, "mine", problem(), policy=POLICY, seed=3)
    wire.break_next("after", COMMIT)
    assert session.tell("tin", 1.0).result == "recorded"
    assert wire.broken == 1
    assert [m.value for m in Session.load(postgres_url, "mine").measurements()] == [1.0]
    wire.break_next("before", COMMIT)
    with pytest.raises(StoreError):
        session.tell("tin", 2.0)
    assert session.tell("tin", 2.0).result in ("recorded", "extra")
    assert [m.value for m in Session.load(postgres_url, "mine").measurements()] == [1.0, 2.0]


def _until_it_works(step):
    """As somebody who reads the error and does what it says: repeat this step."""
    try:
        return step()
    except StoreError as error:
        if "repeat this step" not in str(error):
            raise
    return step()


def test_a_server_that_is_away_is_said_clearly_and_awaited(session, wire):
    request = session.ask()[0]
    wire.is_down = True
    wire.break_next("before")
    with pytest.raises(StoreError) as caught:
        session.tell(request, 1.0)
    assert "check that the server is running" in str(caught.value)
    wire.is_down = False
    assert session.tell(request, 1.0).result == "recorded"
    assert [m.value for m in session.measurements()] == [1.0]


def test_connections_that_an_administrator_ends_are_opened_again(postgres_server, postgres_url):
    url, tapes = f"{postgres_url}&application_name=surepick", Tapes()
    session = Session.create(url, "mine", problem(), policy=POLICY, seed=3)
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        for _ in range(5):
            for request in session.ask(2):
                ended = admin.execute(END_ALL).fetchall()
                assert ended
                session.tell(request, tapes.value(request.token))
    assert same_run(run_to_end(session, tapes), sp.simulate(problem(), Tapes(), policy=POLICY, seed=3))


@pytest.fixture
def tiny_tablespace(postgres_server, memory_disk):
    """A place for tables on a small file system of its own, called tiny."""
    folder = memory_disk / "tiny"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=6000000", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        folder.rmdir()
        pytest.skip(f"a file system can be mounted by root only, where the kernel permits it ({error})")
    owner = Path(_host(postgres_server)).stat()
    os.chown(folder, owner.st_uid, owner.st_gid)
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"CREATE TABLESPACE tiny LOCATION '{folder}'")
        yield folder
        admin.execute("DROP TABLESPACE IF EXISTS tiny")
    subprocess.run(["umount", "-l", str(folder)], check=True)
    folder.rmdir()


def test_a_session_survives_a_full_disk_of_the_server(tiny_tablespace, postgres_url):
    url, tapes = postgres_url + "%20-cdefault_tablespace%3Dtiny", Tapes()
    session = Session.create(url, "mine", problem(), policy=sp.CombGapE(delta=1e-6), seed=3)
    room = os.statvfs(tiny_tablespace)
    filler = tiny_tablespace / "filler"
    filler.write_bytes(bytes(room.f_bavail * room.f_bsize - 100_000))
    told, request, error = tell_until_refused(session, tapes)
    assert "the server's disk is full" in error
    assert "make room and repeat" in error
    assert told
    assert sorted(told) == sorted(
        str(m.token) for m in Session.load(url, "mine", read_only=True).measurements()
    )
    filler.unlink()
    if request is not None:
        assert session.tell(request, tapes.value(request.token)).result == "recorded"
    expected = sp.simulate(problem(), Tapes(), policy=sp.CombGapE(delta=1e-6), seed=3)
    assert same_run(run_to_end(session, tapes), expected)
    assert session.verify(session.certificate().to_json()).holds
    session.store.close()
    with psycopg.connect(url, autocommit=True) as admin:  # or the place of the tables could not go
        for table in ("snapshots", "leases", "events", "sessions", "schema"):
            admin.execute(f"DROP TABLE surepick_{table}")
