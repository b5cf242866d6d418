"""Live pages: what changed is sent once it has changed, to all viewers."""

import asyncio
import json
import threading

import session_tools as tools
import surepick as sp
from surepick.sessions.session import Session
from surepick.web import live
from surepick.web.live import Live
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


def test_the_parts_are_those_of_the_page(looking):
    page = looking.client.get("/s/sure").text
    with looking.client.stream("GET", "/api/sessions/sure/stream?parts=page") as stream:
        sent = parts(next(messages(stream.iter_lines())))
    for name, html in sent.items():
        assert f'id="part-{name}"' in page
        assert html.strip() in page


def test_a_hundred_viewers_share_the_looks_and_none_is_set_back(store, monkeypatch):
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.02)
    looks, now = [], [0]
    monkeypatch.setattr(live, "moment", lambda session: now[0])

    def render(session):
        looks.append(now[0])
        return {"answer": f"after {now[0]}", "plan": "the same"}

    async def view(streams, least):
        """The answers that one viewer sees; the first is no older than `least`."""
        seen = []
        async for message in streams.stream("sure", render):
            if message.startswith(b"event:"):
                sent = json.loads(message.split(b"data: ")[1])["parts"]
                assert ("plan" in sent) == (not seen), "what has not changed is not sent again"
                seen.append(int(sent["answer"].split()[1]))
                if len(seen) == 3:
                    break
        assert seen[0] >= least
        assert seen == sorted(set(seen))

    async def watch():
        cache = SessionCache(store, read_only=True)
        streams = Live(cache)
        viewers = []
        for at in range(100):
            now[0] = at // 10  # recorded, and the page that shows it asks for its stream
            viewers.append(asyncio.create_task(view(streams, now[0])))
            await asyncio.sleep(0)
        while not all(viewer.done() for viewer in viewers):
            now[0] += 1
            await asyncio.sleep(0.03)
        await asyncio.gather(*viewers)
        cache.close()

    asyncio.run(watch())
    assert len(looks) < 100


def test_a_session_that_cannot_be_read_is_said_and_shown_again_later(store, monkeypatch):
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.02)
    wrong = [False]

    def moment(session):
        if wrong[0]:
            raise OSError("the disk is gone")
        return 1

    monkeypatch.setattr(live, "moment", moment)

    async def watch():
        cache = SessionCache(store, read_only=True)
        messages = Live(cache).stream("sure", lambda session: {"answer": "yes"})
        seen = []
        async for message in messages:
            if message.startswith(b"event:"):
                seen.append(json.loads(message.split(b"data: ")[1])["parts"])
                wrong[0] = len(seen) == 1
                if len(seen) == 3:
                    break
        cache.close()
        return seen

    first, second, third = asyncio.run(watch())
    assert first == {"answer": "yes", "trouble": ""}
    assert "the disk is gone" in second["trouble"]
    assert third == {"trouble": ""}


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
