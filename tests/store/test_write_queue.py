"""Those who wait for a file: who is woken, who yields, and who takes the place of one that is gone."""

from __future__ import annotations

import os
import threading
import time
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
