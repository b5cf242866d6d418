"""PostgreSQL behind a transaction pooler, and with settings that are not the usual ones."""

import os
import shutil
import threading

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import surepick as sp
from pooler import Pooler
from session_tools import Tapes, problem, run_to_end, same_run
from store_contract import append_held, in_threads, note
from store_workers import query
from surepick.sessions.session import Session
from surepick.store import open_store

POLICY = sp.CombGapE(delta=1e-3)
SETTINGS = ("synchronous_commit", "default_transaction_isolation", "plan_cache_mode")
# Writes down, at the very end of each transaction that appends, whether its commit will wait for the disk.
WATCH_COMMITS = """
    CREATE TABLE commits (waits TEXT);
    CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO commits VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER watching AFTER INSERT ON surepick_events
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION watch();
"""


@pytest.fixture
def pooled_url(postgres_url, memory_disk):
    """The address of a fresh schema through a pooler with three connections."""
    login = {name: str(part) for name, part in conninfo_to_dict(postgres_url).items()}
    folder = memory_disk / f"pooler-{os.getpid()}"
    folder.mkdir()
    parts = {"user": login["user"], "database": login["dbname"], "options": login["options"]}
    pooler = Pooler(folder, f"{login['host']}/.s.PGSQL.5432", parts)
    yield f"postgresql://postgres@/postgres?host={folder}"
    pooler.close()
    shutil.rmtree(folder)


def test_a_session_behind_a_pooler_decides_as_ever(pooled_url):
    session, tapes = Session.create(pooled_url, "mine", problem(), policy=POLICY, seed=3), Tapes()
    assert same_run(run_to_end(session, tapes), sp.simulate(problem(), Tapes(), policy=POLICY, seed=3))
    assert Session.load(pooled_url, "mine").verify().holds


def test_threads_behind_a_pooler_lose_nothing(pooled_url):
    log = open_store(pooled_url).create("trips", [note()])

    def work(i):
        for j in range(20):
            append_held(log, note(key=f"{i}-{j}"))
            log.claim([f"w{i}", f"t{j}"], worker=str(i), until=10.0, now=0.0)

    in_threads(5, work)
    keys = [str(event.key) for event in log.read()][1:]
    assert sorted(keys) == sorted(f"{i}-{j}" for i in range(5) for j in range(20))


def test_every_append_waits_for_the_disk_whatever_others_have_set(pooled_url):
    log = open_store(pooled_url).create("trips", [note()])
    head = log.head()
    with psycopg.connect(pooled_url, autocommit=True, prepare_threshold=None) as other:
        other.execute(WATCH_COMMITS)
        for _ in range(9):  # each time on another connection of the pooler
            other.execute("SET synchronous_commit = off")
        for _ in range(6):
            log.claim(["a"], worker="w", now=0.0, until=1.0)
            log.look(after=head)
            head = log.append([note()], expected=head)
            with log.transaction(after=head):
                assert query(log, "SHOW synchronous_commit") == [("on",)]
                head = log.append([note()], expected=head)
        waits = other.execute("SELECT waits FROM commits").fetchall()
    assert waits == [("on",)] * 12


def test_a_stronger_setting_of_the_server_is_kept(postgres_url):
    log = open_store(postgres_url + "%20-csynchronous_commit%3Dremote_apply").create("trips", [note()])
    with log.transaction(after=log.head()):
        assert query(log, "SHOW synchronous_commit") == [("remote_apply",)]


def test_nothing_that_a_store_sets_reaches_other_programs(pooled_url):
    with psycopg.connect(pooled_url, autocommit=True, prepare_threshold=None) as other:

        def settings():
            return [
                tuple(str(other.execute(f"SHOW {name}").fetchone()) for name in SETTINGS) for _ in range(7)
            ]

        before = settings()
        log = open_store(pooled_url).create("trips", [note()])
        head = log.head()
        for _ in range(5):
            log.claim(["a"], worker="w", now=0.0, until=1.0)
            log.look(after=head)
            with log.transaction(after=head, durable=False):
                log.claim(["b"], worker="w", now=0.0, until=1.0)
            head = log.append([note()], expected=head)
        assert settings() == before


@pytest.mark.parametrize("level", ["serializable", "repeatable read"])
def test_a_server_that_is_set_to_stricter_isolation_refuses_nobody(postgres_url, level):
    strict = f"{postgres_url}%20-cdefault_transaction_isolation%3D{level.replace(' ', '%5C%20')}"
    Session.create(strict, "mine", problem(), policy=POLICY, seed=3)
    lock, told = threading.Lock(), Tapes()

    def work(i):
        session = Session.load(strict, "mine")
        for _ in range(8):
            for request in session.ask(worker=f"w{i}"):
                with lock:
                    value = told.value(request.token)
                session.tell(request, value)

    in_threads(4, work)
    assert query(open_store(strict), "SHOW default_transaction_isolation") == [(level,)]
    assert Session.load(strict, "mine").verify().holds
