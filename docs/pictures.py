"""Draw the pictures of the README again: `make pictures`, or with names only those.

Needs matplotlib (the extra `plots`); pictures of pages need a Chromium on the path.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import numpy as np
from PIL import Image

import surepick as sp
from surepick.experiments import STUDIES, Settings, run_study
from surepick.experiments.figures import draw
from surepick.plots.style import styled
from surepick.report import write_report
from surepick.sessions.session import Session

DOCS = Path(__file__).parent
ROWS = DOCS.parent / "results" / "knapsack" / "rows.jsonl"  # of `surepick reproduce knapsack`
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
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
    """The page of the same session half-way, served from a file as people have it."""
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{Path(folder) / 'trips.db'}"
        _measured(store, at_most=3700)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [
            sys.executable,
            "-m",
            "surepick",
            "serve",
            "--no-token",
            "--store",
            store,
            "--port",
            str(port),
        ]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
            try:
                address = f"http://127.0.0.1:{port}"
                _wait_for(address)
                screenshot(f"{address}/sessions/{quote(NAME)}", path, width=1180, height=1400)
            finally:
                server.terminate()


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
    while session.status == "running" and (at_most is None or session.ledger().n_told < at_most):
        ledger = session.ledger()
        wanted: dict[int, list[int]] = {}
        for token in ledger.tapes.wanted():
            wanted.setdefault(token.probe, []).append(token.index)
        for arm, indices in wanted.items():
            values = instance.means[arm] + rng.standard_normal(len(indices))
            session.tell(f"{arm}.{indices[0]}", values.tolist())
    return session


def screenshot(address: str, path: Path, *, width: int, height: int) -> None:
    """The page at this address as a small PNG."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"{path.name} is a picture of a page and needs a browser: one of {', '.join(BROWSERS)}")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--timeout=30000"]
    size, target = f"--window-size={width},{height}", f"--screenshot={path}"
    subprocess.run([browser, *options, size, target, address], check=True, capture_output=True, timeout=120)
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
