"""Draw the pictures of the README again: `make pictures`, or with names only those.

Needs matplotlib (the extra `plots`); pictures of pages need a Chromium on the path.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import numpy as np
from PIL import Image

import surepick as sp
from surepick.experiments import STUDIES, Settings, run_study
from surepick.experiments.tables import draw
from surepick.plots.style import styled
from surepick.report import write_report
from surepick.sessions.session import Session

DOCS = Path(__file__).parent
ROWS = DOCS.parent / "results" / "knapsack" / "rows.jsonl"  # of `surepick reproduce knapsack`
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
TOKEN = "pictures-of-pages-only"
NAME = "transport, 18 cities"  # of the session that is shown
COLOURS = 96  # of a picture of a page: a third of the size, and nobody can tell


def table_1(path: Path) -> None:
    """Table 1 of the paper; runs that are missing are made first, which takes minutes."""
    result = run_study(STUDIES["knapsack"], Settings(), ROWS)
    with styled() as plt:
        figure = draw(result, plt)
        figure.savefig(path, dpi=110)
        plt.close(figure)


def report(path: Path) -> None:
    """The top of the report of a transport between eighteen cities, measured until it was sure."""
    with tempfile.TemporaryDirectory() as folder:
        page = write_report(_measured("memory://"), Path(folder) / "report.html")
        screenshot(page.as_uri(), path, width=860, height=1500)


def dashboard(path: Path) -> None:
    """The page of the example half-way, served from a file as people have it."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{Path(folder) / 'trips.db'}"
        _example(store, n=14)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "surepick", "serve", "--store", store, "--port", str(port)]
        environment = {**os.environ, "SUREPICK_TOKEN": TOKEN}
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as server:
            try:
                address = f"http://127.0.0.1:{port}"
                _wait_for(f"{address}/login")
                with sync_playwright() as tool:
                    shown = tool.chromium.launch(executable_path=_browser(), args=["--no-sandbox"])
                    page = shown.new_page(viewport={"width": 1180, "height": 860})
                    page.goto(f"{address}/s/trips#token={TOKEN}")
                    page.locator("[data-light][data-state=live]").wait_for()
                    page.screenshot(path=path)
                    shown.close()
            finally:
                server.terminate()
        _shrink(path)


def _example(store: str, n: int) -> Session:
    """The example of the browser with this many values; always the same ones."""
    from surepick.inputs.load import read_problem

    loaded = read_problem(Path(sp.__file__).parent / "inputs" / "starters" / "trips.csv")
    policy = sp.BetGapE(delta=0.05, epsilon=1.0)
    session = Session.create(store, "trips", loaded.problem, policy=policy, prior=loaded.prior)
    truth = dict(zip(loaded.problem.arm_names, loaded.true_means.tolist(), strict=True))
    rng, workers = np.random.default_rng(0), ("Pat", "Kim")
    for k in range(n):
        (request,) = session.ask(worker=workers[k % 2], wait=False)
        session.tell(request, round(truth[request.probe_name] + rng.normal(), 1), sure=True)
    session.ask(worker="Kim", wait=False)
    return session


def _wait_for(address: str) -> None:
    """Until the server answers."""
    for _ in range(120):
        with suppress(OSError), urlopen(address, timeout=5):
            return
        time.sleep(0.5)
    sys.exit(f"nothing answered at {address} within a minute")


def _measured(store: str, at_most: int | None = None) -> Session:
    """A session that has come to its answer, or to this many measurements; always the same one."""
    instance = sp.problems.transport_instance(2, n_draws=200)
    policy = sp.BetGapE(delta=0.05, epsilon=0.05)  # a plan within three minutes of the best will do
    session = Session.create(store, NAME, instance.problem, policy=policy)
    rng = np.random.default_rng(1)
    while session.status == "running" and (at_most is None or session.state().n_values < at_most):
        for request in session.ask(64):
            session.tell(request, instance.means[request.probe] + rng.standard_normal())
    return session


def screenshot(address: str, path: Path, *, width: int, height: int) -> None:
    """The page at this address as a small PNG."""
    browser = _browser()
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--timeout=30000"]
    size, target = f"--window-size={width},{height}", f"--screenshot={path}"
    subprocess.run([browser, *options, size, target, address], check=True, capture_output=True, timeout=120)
    _shrink(path)


def _browser() -> str:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"a picture of a page needs a browser: one of {', '.join(BROWSERS)}")
    return browser


def _shrink(path: Path) -> None:
    with Image.open(path) as taken:
        taken.convert("RGB").quantize(COLOURS).save(path, optimize=True)


PICTURES = {"table-1": table_1, "report": report, "dashboard": dashboard}


def main() -> None:
    """Draw the pictures that are named, all of them unless some are."""
    for name in sys.argv[1:] or PICTURES:
        path = DOCS / f"{name}.png"
        PICTURES[name](path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
