"""Whoever holds the log does the work of those who wait: once, on disk before anybody hears of it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import surepick as sp
from session_tools import problem
from store_workers import crowd, wait_for
from surepick._version import __version__
from surepick.errors import StoreError
from surepick.sessions.combining import Combining
from surepick.sessions.requests import Receipt
from surepick.sessions.session import Session
from surepick.store import mailbox, open_store
from surepick.store.write_queue import ServedError, Turn, Wait, WriteQueue

N = 6
NOWHERE: Any = None  # no file: of a wish that is not answered


def queue_of(url: str) -> WriteQueue:
    path = Path(url.removeprefix("sqlite:///"))
    return WriteQueue(path.with_name(path.name + "-queue"), path)


def all_at_once(url: str, folder: Path, task: Callable[..., None], *arguments: object) -> None:
    """Let N processes do this while the file is held, until each of them has posted what it wishes."""
    workers = crowd(N, task, url, folder, *arguments)
    holder = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)  # none of them inherits it
    holder.execute("BEGIN IMMEDIATE")
    (folder / "go").touch()
    wait_for(lambda: len(queue_of(url).wishes("mine")) == N)
    holder.execute("ROLLBACK")
    holder.close()
    for worker in workers:
        worker.join(60)


def begin(url: str) -> list[str]:
    """A session in which N workers have a token each."""
    session = Session.create(url, problem(), sp.CombGapE(delta=0.01), name="mine")
    for i in range(N):
        session.ask(worker=f"worker {i}")
    return [lease.token for lease in session.leases()]


def tell(i: int, url: str, folder: Path, prepare: Callable[[Path], None]) -> None:
    """Tell the token of this worker; write down what it was told, and whether others did it."""
    session = Session.load(url, "mine")
    prepare(folder)
    (token,) = [lease.token for lease in session.leases() if lease.worker == f"worker {i}"]
    wait_for((folder / "go").exists)
    receipt = session.tell(token, float(i), worker=f"worker {i}")
    (folder / f"{i}").write_text(f"{token} {receipt} {session._replica.is_crowded}")


def told_by(folder: Path) -> dict[str, tuple[str, bool]]:
    lines = [file.read_text().split() for file in folder.glob("[0-9]*")]
    return {token: (receipt, others == "True") for token, receipt, others in lines}


def run(
    url: str, folder: Path, prepare: Callable[[Path], None]
) -> tuple[dict[str, tuple[str, bool]], Counter[str | None]]:
    """What everybody heard, and what the log has, after all told at once."""
    begin(url)
    all_at_once(url, folder, tell, prepare)
    session = Session.load(url, "mine")
    assert session.verify().holds
    return told_by(folder), Counter(m.token for m in session.measurements())


def as_it_is(folder: Path) -> None:
    """Nothing special happens."""


def test_one_turn_serves_everybody_who_waits(sqlite_url: str, tmp_path: Path) -> None:
    heard, told = run(sqlite_url, tmp_path, as_it_is)
    assert told == Counter(heard.keys())
    assert len(told) == N
    assert {receipt for receipt, _ in heard.values()} == {str(Receipt.ACCEPTED)}
    assert sum(by_others for _, by_others in heard.values()) >= N // 2


def die_once(folder: Path) -> None:
    """End this process by kill -9, unless another one has."""
    with suppress(FileExistsError):
        os.close(os.open(folder / "died", os.O_CREAT | os.O_EXCL))
        os.kill(os.getpid(), signal.SIGKILL)


def die_before_the_commit(folder: Path) -> None:
    take = mailbox.Wish.take
    mailbox.Wish.take = lambda self: (take(self), die_once(folder))[0]  # type: ignore[method-assign]


def die_before_the_replies(folder: Path) -> None:
    mailbox.Wish.send = lambda self: die_once(folder)  # type: ignore[method-assign]


def reply_before_the_commit_and_die(folder: Path) -> None:
    def hasty(self: mailbox.Wish) -> None:
        self.send()
        if self.reply is not None:
            die_once(folder)

    mailbox.Wish.take = hasty  # type: ignore[method-assign]


@pytest.mark.parametrize("prepare", [die_before_the_commit, die_before_the_replies])
def test_the_death_of_who_does_the_work_loses_nothing(
    prepare: Callable[[Path], None], sqlite_url: str, tmp_path: Path
) -> None:
    heard, told = run(sqlite_url, tmp_path, prepare)
    assert (tmp_path / "died").exists()
    assert len(heard) == N - 1
    assert set(heard) <= set(told)
    assert set(told.values()) == {1}


def test_a_reply_before_the_commit_would_be_noticed_here(sqlite_url: str, tmp_path: Path) -> None:
    heard, told = run(sqlite_url, tmp_path, reply_before_the_commit_and_die)
    assert (tmp_path / "died").exists()
    assert set(heard) - set(told)  # acknowledged, and gone


def ask(i: int, url: str, folder: Path) -> None:
    """Ask in a crowd, and write down what was given."""
    session = Session.load(url, "mine")
    session._replica.is_crowded = True
    wait_for((folder / "go").exists)
    (request,) = session.ask(worker=f"asker {i}")
    (folder / f"{i}").write_text(f"{request.token} {request.wanted} {request.arm_name} {request.worker}")


def test_those_who_ask_get_measurements_of_their_own(sqlite_url: str, tmp_path: Path) -> None:
    session = Session.create(sqlite_url, problem(), sp.CombGapE(delta=0.01), name="mine")
    all_at_once(sqlite_url, tmp_path, ask)
    given = {line[0]: line[3] for file in tmp_path.glob("[0-9]") for line in [file.read_text().split(" ", 3)]}
    assert len(given) == N
    assert given == {lease.token: lease.worker for lease in session.leases()}
    for file in tmp_path.glob("[0-9]"):
        token, wanted, name, _ = file.read_text().split(" ", 3)
        assert name == session.problem.arm_names[session.arm_of(token)]
        probe, index = session._token(token)
        assert int(wanted) == session.ledger().tapes.of[probe].n_wanted(index)


def test_who_asks_while_nothing_is_free_is_answered_when_something_is(sqlite_url: str) -> None:
    session = Session.create(sqlite_url, problem(), sp.CombGapE(delta=0.01), name="mine")
    while session.ask(worker=f"worker {len(session.leases())}", wait=False):
        pass  # until all that may be measured ahead is in the hands of somebody
    leasing, wish = session._leasing, wish_of(session, "ask", 1, "late", 60.0)
    with session._replica.my_turn(durable=False):
        leasing.grant([wish], session.leases())
    assert wish.reply is None  # it stays, and its owner reads nothing in vain
    session.close()
    with session._replica.my_turn(durable=False):
        leasing.grant([wish], session.leases())
    assert wish.reply == "[]"  # now there is nothing to wait for


def wish_of(session: Session, *wish: object) -> mailbox.Wish:
    """What somebody would post who has the same session open."""
    text = json.dumps([__version__, session._created.checksum, *wish])
    return mailbox.Wish(NOWHERE, 0, 0, b"mine\0" + text.encode())


def test_what_is_refused_or_told_already_waits_for_its_own_turn(sqlite_url: str) -> None:
    first, second, *_ = begin(sqlite_url)
    session = Session.load(sqlite_url, "mine")
    session.tell(first, 1.0)
    helper = Combining(session._replica, session._telling, session._leasing)
    refused = [
        wish_of(session, "tell", first, 2.0, "somebody"),  # has its value
        wish_of(session, "tell", "99.0", 2.0, "somebody"),  # there is no such arm
        wish_of(session, "tell", second, 1e300, "somebody"),  # no measurement
        wish_of(session, "tell", second),  # of another surepick
        wish_of(session, "dance"),
        mailbox.Wish(NOWHERE, 0, 0, b"mine\0[]"),
        mailbox.Wish(NOWHERE, 0, 0, b"mine\0no JSON"),
    ]
    assert list(helper.changes(refused)) == []
    assert [wish.reply for wish in refused] == [None] * len(refused)
    good = wish_of(session, "tell", second, 2.0, "somebody")
    assert [change.events[0].kind for change in helper.changes([good])] == ["measured"]


ODD_WISHES: list[list[object]] = [
    ["tell", "99.0", 2.0, "somebody"],  # no arm of this session
    ["tell", "0.0", 2.0, ["somebody"]],
    ["tell", "0.0", 2.0, "half a pair: \ud800"],
    ["tell", [], {}, None],
    ["ask", 1, ["somebody"], 60.0],
    ["ask", 1, "somebody", float("nan")],
    ["ask", "one", "somebody", 60.0],
    ["ask", -1, "somebody", 60.0],
]


@pytest.mark.parametrize("wish", ODD_WISHES, ids=str)
def test_whoever_does_the_work_of_others_takes_no_harm_from_what_they_wish(
    wish: list[object], sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, *_ = begin(sqlite_url)
    session = Session.load(sqlite_url, "mine")
    good = wish_of(session, "tell", second, 2.0, "worker 1")
    monkeypatch.setattr(good, "take", lambda: None)  # its owner has no slot here,
    monkeypatch.setattr(good, "send", lambda: None)  # and hears nothing
    monkeypatch.setattr(WriteQueue, "wishes", lambda *_: [wish_of(session, *wish), good])
    assert session.tell(first, 1.0, worker="worker 0") == Receipt.ACCEPTED
    session._replica.is_crowded = True
    session.ask(worker="worker 0")
    told = {m.token for m in session.measurements()}
    assert told == {first, second}
    assert session.ledger().n_told == Session.load(sqlite_url, "mine").ledger().n_told == len(told)
    assert session.verify().holds


ODD_REPLIES = [
    "",
    "{}",
    "[[]]",
    "null",
    "dance",
    '[["x.y", 1, 9.0, ["a"]]]',
    '[["99.0", 1, 9.0, ["a"]]]',
    "[" * 900,
]


@pytest.mark.parametrize("reply", ODD_REPLIES, ids=lambda reply: reply[:20])
def test_one_who_gets_a_reply_that_makes_no_sense_sees_for_itself(
    reply: str, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(sqlite_url)
    session = Session.load(sqlite_url, "mine")
    session._replica.is_crowded = True
    my_turn = session._replica.my_turn

    def served(*, durable: bool = True, wish: Any = None) -> Any:
        if wish is not None:
            raise ServedError(reply)
        return my_turn(durable=durable)

    monkeypatch.setattr(session._replica, "my_turn", served)
    (request,) = session.ask(worker="me")
    assert session.tell(request, 1.0) == Receipt.ACCEPTED
    assert [m.token for m in session.measurements()] == [request.token]


def test_the_wish_of_a_dead_process_is_nobodys(sqlite_url: str) -> None:
    begin(sqlite_url)
    queue = queue_of(sqlite_url)

    def post_and_die(i: int) -> None:
        assert queue.post("mine", "a wish") is not None
        assert [wish.text for wish in queue.wishes("mine")] == ["a wish"]
        os.kill(os.getpid(), signal.SIGKILL)

    (worker,) = crowd(1, post_and_die)
    worker.join(60)
    assert queue.wishes("mine") == []


def test_a_wish_is_known_to_its_owner_as_its_own(tmp_path: Path) -> None:
    (tmp_path / "store").touch()
    queue = WriteQueue(tmp_path / "queue", tmp_path / "store")
    post = queue.post("mine", "a wish")
    assert post is not None
    (seen,) = queue.wishes("mine")
    assert queue.wishes("another") == []
    late = mailbox.Wish(seen._file, seen._slot, seen._number + 1, b"mine\0an earlier wish")
    late.reply = "not for this one"
    late.send()
    assert post.look() == (mailbox.POSTED, b"")  # and posted again
    (seen,) = queue.wishes("mine")
    seen.reply = "done"
    seen.take()
    assert post.look()[0] == mailbox.TAKEN
    seen.send()
    assert post.look() == (mailbox.DONE, b"done")
    post.withdraw()
    assert queue.wishes("mine") == []


def test_a_wish_that_is_too_long_is_not_posted(tmp_path: Path) -> None:
    (tmp_path / "store").touch()
    queue = WriteQueue(tmp_path / "queue", tmp_path / "store")
    assert queue.post("mine", "x" * mailbox.SIZE) is None


def test_one_who_gives_up_says_that_it_may_yet_be_written(sqlite_url: str) -> None:
    begin(sqlite_url)
    queue = queue_of(sqlite_url)
    with Turn(queue, 0.0, Wait(log="mine", wish="a wish")) as turn:
        turn.was_busy(sqlite3.OperationalError("database is locked"))
        with pytest.raises(StoreError, match="may yet write this, and repeating it is harmless"):
            turn.wait("here")
    assert queue.wishes("mine") == []
    assert open_store(sqlite_url).names() == ["mine"]
