"""Live pages: what changed is sent once it has changed, to everybody, from one watcher."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator

import pytest

import session_tools as tools
import surepick as sp
from surepick.sessions.session import Session
from surepick.web import live
from surepick.web.live import Channel, Edition, Hub, TooManyViewersError
from surepick.web.session_cache import SessionCache
from web_tools import Running


def messages(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    """The events of a stream."""
    message: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            message[name] = value
        elif message:
            if "data" in message:
                yield message
            message = {}


def parts(message: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = json.loads(message["data"])["parts"]
    return found


def test_a_page_is_updated_when_somebody_tells(looking: Running, store: str) -> None:
    session = Session.create(store, "live", tools.problem(), policy=sp.BetGapE())
    with looking.client.stream("GET", "/sessions/live/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        arriving = messages(stream.iter_lines())
        first = next(arriving)
        assert set(parts(first)) >= {"answer", "next", "rivals", "arms", "log", "about"}
        for request in session.ask():
            session.tell(request, 1.0, worker="Ann")
        news = next(arriving)
        assert "by Ann" in parts(news)["log"]
        assert "plan" not in parts(news), "what has not changed is not sent again"
    with looking.client.stream(
        "GET", "/sessions/live/events", headers={"last-event-id": first["id"]}
    ) as stream:
        assert "by Ann" in parts(next(messages(stream.iter_lines())))["log"]


def test_the_parts_are_those_of_the_page(looking: Running) -> None:
    page = looking.client.get("/sessions/sure").text
    with looking.client.stream("GET", "/sessions/sure/events") as stream:
        sent = parts(next(messages(stream.iter_lines())))
    for name, html in sent.items():
        assert f'id="part-{name}"' in page
        assert html.strip() in page


def test_the_list_of_sessions_is_live_too(looking: Running, store: str) -> None:
    with looking.client.stream("GET", "/events") as stream:
        arriving = messages(stream.iter_lines())
        assert "just begun" not in parts(next(arriving))["sessions"]
        Session.create(store, "just begun", tools.problem(), policy=sp.BetGapE())
        assert "just begun" in parts(next(arriving))["sessions"]


def test_a_hundred_viewers_share_one_look(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.01)
    looks, number = [], [0]

    def look() -> dict[str, str]:
        looks.append(threading.get_ident())
        return {"answer": str(number[0])}

    async def view(channel: Channel, most: int) -> list[bytes]:
        seen = []
        async for message in channel.view(""):
            if message.startswith(b"id:"):
                seen.append(message)
                if len(seen) == most:
                    return seen
        return seen

    async def watch() -> list[list[bytes]]:
        cache = SessionCache(store, write=False)
        channel = Hub(cache).channel("one", look)
        viewers = [asyncio.create_task(view(channel, 3)) for _ in range(100)]
        while not all(viewer.done() for viewer in viewers):
            number[0] += 1
            await asyncio.sleep(0.03)
        assert channel.n_viewers == 0
        cache.close()
        return [viewer.result() for viewer in viewers]

    seen = asyncio.run(watch())
    assert all(len(messages) == 3 for messages in seen)
    assert len(looks) < 100


def test_a_new_page_is_never_set_back_to_what_was_seen_before_it_came(store: str) -> None:
    number = [0]

    async def first(channel: Channel) -> bytes:
        async for message in channel.view(""):
            if message.startswith(b"id:"):
                return message
        raise AssertionError("the stream ended")

    async def watch() -> bytes:
        cache = SessionCache(store, write=False)
        channel = Hub(cache).channel("one", lambda: {"answer": f"after {number[0]}"})
        stays = channel.view("")
        while not (await anext(stays)).startswith(b"id:"):
            pass
        number[0] = 1  # told, and the page that shows it asks for its stream before the next look
        newcomer = await first(channel)
        await stays.aclose()
        cache.close()
        return newcomer

    assert b"after 1" in asyncio.run(watch())


def test_a_slow_viewer_skips_what_is_out_of_date() -> None:
    edition = Edition()
    for number in range(1, 1001):
        edition = edition.next({"answer": str(number), "plan": "the same"})
    assert edition.number == 1000
    assert (
        edition.since(999, "run") == b'id: run.1000\nevent: update\ndata: {"parts": {"answer": "1000"}}\n\n'
    )
    assert b'"plan"' in edition.since(0, "run")
    assert edition.next(dict(edition.parts)) is edition, "nothing new is no edition"


def test_a_quiet_stream_says_that_it_is_alive(looking: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "HEARTBEAT_SECONDS", 0.05)
    with looking.client.stream("GET", "/sessions/sure/events") as stream:
        assert next(line for line in stream.iter_lines() if line.startswith(":")) == ": still here"


def test_there_is_a_last_viewer(looking: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST_VIEWERS", 0)
    answer = looking.client.get("/sessions/sure/events")
    assert answer.status_code == 503
    assert answer.headers["retry-after"]


def test_streams_end_with_the_server(store: str) -> None:
    from web_tools import running

    with running(store) as server:
        ended = threading.Event()

        def follow() -> None:
            with server.client.stream("GET", "/sessions/sure/events") as stream:
                for _ in stream.iter_lines():
                    started.set()
            ended.set()

        started = threading.Event()
        thread = threading.Thread(target=follow)
        thread.start()
        assert started.wait(20)
        server.server.handle_exit(2, None)
        assert ended.wait(20), "the stream is still open"
        thread.join()


def test_a_stopped_hub_takes_nobody() -> None:
    hub = Hub(SessionCache("memory://", write=True))
    hub.stop()
    with pytest.raises(TooManyViewersError):
        hub.channel("one", dict)
