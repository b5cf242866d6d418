"""Those who wait for a file: who is woken, who yields, and who takes the place of one that is gone."""

from __future__ import annotations

import errno
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from store_workers import crowd, wait_for
from surepick.store import bells, mailbox
from surepick.store.bells import Bell, ring
from surepick.store.write_queue import ServedError, Service, Turn, Wait, WriteQueue

LONG = 30.0  # seconds; nobody sleeps so long here who is woken

needs_bells = pytest.mark.skipif(not bells.ARE_THERE, reason="this system has no sockets without files")


@pytest.fixture
def queue(tmp_path: Path) -> WriteQueue:
    (tmp_path / "store").touch()
    return another(tmp_path)


def another(folder: Path) -> WriteQueue:
    """The same line, as another process would open it."""
    return WriteQueue(folder / "queue", folder / "store")


@needs_bells
def test_a_bell_wakes_who_sleeps_by_it_in_another_process() -> None:
    number = int.from_bytes(os.urandom(8), "little")
    bell = Bell(number)
    (caller,) = crowd(1, lambda i: ring(number))
    began = time.monotonic()
    bell.sleep(LONG)
    caller.join()
    assert time.monotonic() - began < LONG
    bell.close()
    ring(number)  # nobody hears it, and nothing happens


def test_without_bells_one_sleeps_until_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bells, "ARE_THERE", False)
    bell = Bell(1)
    assert not bell.can_ring
    ring(1)
    bell.sleep(0.001)
    bell.close()


def test_who_was_served_before_posts_and_does_not_try(queue: WriteQueue, tmp_path: Path) -> None:
    with Turn(queue, LONG, Wait(log="mine", wish="a wish", yields=True)) as turn:
        assert not turn.is_mine()
        with Service(another(tmp_path), "mine") as service:
            (wish,) = service.begin()
            wish.reply = "done"
            service.take()
            assert not turn.is_mine()
        assert not turn.is_mine()
        with pytest.raises(ServedError) as served:
            turn.wait("here")
    assert served.value.reply == "done"


def test_who_was_not_served_before_tries_at_once(queue: WriteQueue) -> None:
    with Turn(queue, LONG, Wait(log="mine", wish="a wish")) as turn:
        assert turn.is_mine()


@needs_bells
def test_who_waits_for_its_wish_is_woken_by_the_reply(queue: WriteQueue, tmp_path: Path) -> None:
    post = queue.post("mine", "a wish")
    assert post is not None
    assert post.can_be_woken

    def serve(i: int) -> None:
        with Service(another(tmp_path), "mine") as service:
            for wish in service.begin():
                wish.reply = "done"
            service.take()

    (worker,) = crowd(1, serve)
    began = time.monotonic()
    post.sleep(LONG)
    assert time.monotonic() - began < LONG
    assert post.look() == (mailbox.DONE, b"done")
    worker.join()
    post.withdraw()


def test_when_nobody_serves_the_first_in_line_reads_on_and_tries_and_the_others_wait(
    queue: WriteQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("surepick.store.write_queue.LEAST_WINDOW", 0.0)
    queue.service = 0.0
    read = []
    wait = Wait(lambda: read.append("me"), "mine", "a wish", yields=True)

    def try_in_vain(i: int) -> None:
        theirs = another(tmp_path)
        theirs.service = 0.0
        with Turn(theirs, LONG, wait) as turn:
            assert not turn.is_mine()
            assert not read

    with Turn(queue, LONG, wait) as turn:
        assert turn.is_mine()
        assert read == ["me"]
        read.clear()
        (worker,) = crowd(1, try_in_vain)
        worker.join(60)
        assert worker.exitcode == 0


class Watch:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_one_who_serves_waits_a_moment_for_those_it_has_served(
    queue: WriteQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch()
    monkeypatch.setattr("surepick.store.write_queue.time", watch)

    def post() -> list[mailbox.Post]:
        posts = [another(tmp_path).post("mine", f"wish {k}") for k in range(3)]
        return [post for post in posts if post is not None]

    def serve(posts: list[mailbox.Post]) -> None:
        with Service(queue, "mine") as service:
            for wish in service.begin():
                wish.reply = "done"
            service.take()
            watch.now += 0.01  # what it took
        for post in posts:
            post.withdraw()

    own = Wait(log="mine", wish="its own")
    serve(post())
    with Turn(queue, LONG, own) as turn:
        assert not turn.is_mine()  # they are on their way back
        again = post()
        assert turn.is_mine()
    serve(again)
    watch.now += 0.02
    with Turn(queue, LONG, own) as turn:
        assert turn.is_mine()  # they stay away


def test_one_who_has_served_nobody_waits_for_nobody(queue: WriteQueue) -> None:
    with Service(queue, "mine") as service:
        assert service.begin() == []
        service.take()
    assert not queue.expects_wishes()


def test_threads_that_wait_are_woken_by_their_own_replies(queue: WriteQueue, tmp_path: Path) -> None:
    heard: list[str] = []

    def wait_for_reply(k: int) -> None:
        with Turn(queue, LONG, Wait(log="mine", wish=f"{k}", yields=True)) as turn:
            try:
                while not turn.is_mine():
                    turn.wait("here")
            except ServedError as served:
                heard.append(f"{k} {served.reply}")

    queue.service = LONG  # so that nobody gives up
    threads = [threading.Thread(target=wait_for_reply, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(queue.wishes("mine")) == 4)
    with Service(another(tmp_path), "mine") as service:
        for wish in service.begin():
            wish.reply = f"reply to {wish.text}"
        service.take()
    for thread in threads:
        thread.join(60)
    assert sorted(heard) == [f"{k} reply to {k}" for k in range(4)]


def link(path: Path, foreign: Path) -> None:
    path.symlink_to(foreign)


def second_name(path: Path, foreign: Path) -> None:
    path.hardlink_to(foreign)


def pipe(path: Path, foreign: Path) -> None:
    os.mkfifo(path)


def folder(path: Path, foreign: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("plant", [link, second_name, pipe, folder])
def test_what_is_no_plain_file_is_no_line_and_nothing_is_written_there(
    plant: Callable[[Path, Path], None], queue: WriteQueue, tmp_path: Path
) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"of somebody else")
    foreign.chmod(0o640)
    plant(tmp_path / "queue", foreign)
    assert queue.post("mine", "a wish") is None
    assert queue.wishes("mine") == []
    with Turn(queue, LONG, Wait(log="mine", wish="a wish", yields=True)) as turn:
        assert turn.is_mine()  # there is nobody to yield to
    assert foreign.read_bytes() == b"of somebody else"
    assert foreign.stat().st_mode & 0o777 == 0o640


def test_a_plain_file_is_a_line(queue: WriteQueue, tmp_path: Path) -> None:
    (tmp_path / "queue").write_bytes(b"of somebody else")
    post = queue.post("mine", "a wish")
    assert post is not None
    assert (tmp_path / "queue").stat().st_size > 16
    post.withdraw()


def test_a_disk_that_takes_nothing_more_is_no_error_of_those_who_wait(
    queue: WriteQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = queue.post("mine", "a wish")
    assert post is not None

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with Service(queue, "mine") as service:
        for wish in service.begin():
            wish.reply = "done"
        service.take()
    assert post.look()[0] == mailbox.POSTED  # it sees for itself when its turn comes
    post.withdraw()


def test_of_a_file_with_odd_bytes_nothing_is_read(queue: WriteQueue, tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(mailbox.TEXTS + mailbox.SLOTS * mailbox.SIZE)
    for content in (noise, noise[:3000], b"\xff" * 5000, b""):
        (tmp_path / "queue").write_bytes(content)
        assert queue.wishes("mine") == []
        queue.close()
