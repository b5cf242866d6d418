"""Live pages: what changed is sent once it has changed, to everybody, from one watcher."""

import asyncio
import json
import threading

import session_tools as tools
import surepick as sp
from surepick.sessions.session import Session
from surepick.web import live
from surepick.web.live import Edition, Hub
from surepick.web.session_cache import SessionCache


def messages(lines):
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


def parts(message):
    found: dict[str, str] = json.loads(message["data"])["parts"]
    return found


STREAM = "/api/sessions/live/stream"


def test_page_and_view_are_sent_when_a_value_is_recorded(looking, store):
    session = Session.create(store, "live", tools.problem(), policy=sp.BetGapE())
    with looking.client.stream("GET", f"{STREAM}?parts=page") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        arriving = messages(stream.iter_lines())
        first = next(arriving)
        assert set(parts(first)) >= {"answer", "plans", "next", "history", "folds"}
        with looking.api.stream("GET", STREAM) as views:
            view = messages(views.iter_lines())
            assert json.loads(next(view)["data"])["n_measured"] == 0
            for request in session.ask():
                session.tell(request, 1.0, worker="Ann")
            assert json.loads(next(view)["data"])["last"]["worker"] == "Ann"
        news = next(arriving)
        assert "Ann" in parts(news)["history"]
        assert "trouble" not in parts(news), "what has not changed is not sent again"
    headers = {"last-event-id": first["id"]}
    with looking.client.stream("GET", f"{STREAM}?parts=page", headers=headers) as stream:
        assert "Ann" in parts(next(messages(stream.iter_lines())))["history"]


def test_the_parts_are_those_of_the_page(looking):
    page = looking.client.get("/s/sure").text
    with looking.client.stream("GET", "/api/sessions/sure/stream?parts=page") as stream:
        sent = parts(next(messages(stream.iter_lines())))
    for name, html in sent.items():
        assert f'id="part-{name}"' in page
        assert html.strip() in page


def test_a_hundred_viewers_share_one_look(store, monkeypatch):
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.01)
    looks, number = [], [0]

    def look():
        looks.append(threading.get_ident())
        return {"answer": str(number[0])}

    async def view(channel, most):
        seen = []
        async for message in channel.view(""):
            if message.startswith(b"id:"):
                seen.append(message)
                if len(seen) == most:
                    return seen
        return seen

    async def watch():
        cache = SessionCache(store, read_only=True)
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


def test_a_new_page_is_never_set_back_to_what_was_seen_before_it_came(store):
    number = [0]

    async def first(channel):
        async for message in channel.view(""):
            if message.startswith(b"id:"):
                return message
        raise AssertionError("the stream ended")

    async def watch():
        cache = SessionCache(store, read_only=True)
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


def test_a_slow_viewer_skips_what_is_out_of_date():
    edition = Edition()
    for number in range(1, 1001):
        edition = edition.next({"answer": str(number), "plan": "the same"})
    assert edition.number == 1000
    assert (
        edition.since(999, "run") == b'id: run.1000\nevent: update\ndata: {"parts": {"answer": "1000"}}\n\n'
    )
    assert b'"plan"' in edition.since(0, "run")
    assert edition.next(dict(edition.parts)) is edition, "nothing new is no edition"


def test_a_quiet_stream_says_that_it_is_alive(looking, monkeypatch):
    monkeypatch.setattr(live, "HEARTBEAT_SECONDS", 0.05)
    with looking.client.stream("GET", "/api/sessions/sure/stream") as stream:
        assert next(line for line in stream.iter_lines() if line.startswith(":")) == ": alive"


def test_there_is_a_last_viewer(looking, monkeypatch):
    monkeypatch.setattr(live, "MOST_VIEWERS", 0)
    answer = looking.client.get("/api/sessions/sure/stream")
    assert answer.status_code == 503
    assert answer.headers["retry-after"]


def test_streams_end_with_the_server(store):
    from web_tools import running

    with running(store) as server:
        ended = threading.Event()

        def follow():
            with server.client.stream("GET", "/api/sessions/sure/stream") as stream:
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
