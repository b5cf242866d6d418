"""What the tests of the dashboard share: a real server in a thread, and sessions worth looking at."""

import threading
from contextlib import contextmanager
from dataclasses import replace

import httpx

import session_tools as tools
import surepick as sp
from surepick.sessions.session import Session
from surepick.web.server import Server, listen, make_server
from surepick.web.settings import Settings

TOKEN = "a token that nobody guesses"
PROBLEM = """
kind = "table"
plans = [[1, 0, 1], [0, 1, 1], [1, 1, 0]]
arms = ["ferry", "tunnel", "bridge"]
plan_names = ["North", "South", "Ring"]
noise = 0.5
goal = "smallest"
"""

DRIVES = sp.Problem(
    {"north": "AB + BD", "south": "AC + CD"},
    goal="smallest",
    measure={"north loop": ["AB", "BD"], "south loop": ["AC", "CD"]},
    noise=1,
)


class Running:
    """A server that runs in a thread, with a client for it."""

    def __init__(self, settings):
        self.settings = settings
        self.server: Server = make_server(settings)
        address = listen(replace(settings, port=0))
        self.url = address.url
        self.stranger = httpx.Client(base_url=self.url, timeout=30, headers={"accept": "text/html"})
        self.client = httpx.Client(
            base_url=self.url, timeout=30, headers={"accept": "text/html", "origin": self.url}
        )
        self.api = httpx.Client(
            base_url=self.url, timeout=30, headers={"authorization": f"Bearer {settings.token}"}
        )
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [address.socket]})
        self._thread.start()
        self.client.post("/login", data={"token": settings.token})

    def post(self, path, files=None, **fields):
        """Send a form as a browser does."""
        kind = {} if files else {"content-type": "application/x-www-form-urlencoded"}  # of an empty one too
        return self.client.post(path, data=fields, files=files, headers=kind)

    def do(self, session, action, **body):
        """Send JSON as a program does."""
        answer = self.api.post(f"/api/sessions/{session}/{action}", json=body)
        return answer.status_code, answer.json()

    def act(self, session, action, *, by_form, **body):
        """Send what a form or a program sends; return the status, which is 303 or 200 when it was done."""
        if not by_form:
            return self.do(session, action, **body)[0]
        fields = {key: "yes" if given is True else str(given) for key, given in body.items()}
        return self.post(f"/api/sessions/{session}/{action}", **fields).status_code

    def stop(self):
        for client in (self.client, self.api, self.stranger):
            client.close()
        self.server.handle_exit(2, None)
        self._thread.join(timeout=20)
        assert not self._thread.is_alive(), "the server did not stop"


@contextmanager
def running(store, **options):
    server = Running(Settings(store, TOKEN, **options))
    try:
        yield server
    finally:
        server.stop()


def three_sessions(url):
    """One that is sure, one in the middle of a round with two workers, and one that nobody has touched."""
    tapes = tools.Tapes()
    tools.run_to_end(Session.create(url, "sure", tools.problem(), policy=sp.CombGapE()), tapes)
    middle = Session.create(url, "middle", tools.problem(), policy=sp.BetGapE())
    tools.answer(middle, tapes.answer, n=20)
    middle.ask(worker="truck 7")
    middle.ask(worker="Ann")
    Session.create(url, "fresh", tools.problem(noise=None), policy=sp.BetGapE())


def positions(url):
    """Everything in the store that looking must not change."""
    from surepick.store import open_store

    store = open_store(url, create=False)
    found: dict[str, object] = {
        log.name: (log.head(), log.leases(), log.snapshot()) for log in map(store.log, store.names())
    }
    store.close()
    return found


def problem_file(folder):
    path = folder / "trips.toml"
    path.write_text(PROBLEM, encoding="utf-8")
    return path
