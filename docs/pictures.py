"""Draw the pictures of the README again: `make pictures`, or with names only those.

Needs matplotlib (the extra `plots`); pictures of pages need a Chromium on the path.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import surepick as sp
from surepick.experiments.figures import table_figure
from surepick.experiments.paper import KNAPSACK, Settings
from surepick.experiments.reproduction import summarize_experiment
from surepick.experiments.rows import read_rows
from surepick.plots.style import styled
from surepick.report import write_report
from surepick.session import Session

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "benchmarks" / "results"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
COLOURS = 96  # of a picture of a page: a third of the size, and nobody can tell


def table_1(path: Path) -> None:
    """Table 1 of the paper, from the reference results that are kept in the repository."""
    rows = {row.case: row for row in read_rows(RESULTS / "knapsack" / "rows.jsonl").rows}
    with styled() as plt:
        figure = table_figure(summarize_experiment(KNAPSACK, Settings(), rows))
        figure.savefig(path, dpi=110)
        plt.close(figure)


def report(path: Path) -> None:
    """The top of the report of a transport between eighteen cities, measured until it was sure."""
    with tempfile.TemporaryDirectory() as folder:
        page = write_report(_decided(), Path(folder) / "report.html")
        screenshot(page.as_uri(), path, width=860, height=1500)


def _decided() -> Session:
    """A session that has come to its answer, always the same one."""
    instance = sp.problems.transport_instance(2, n_draws=200)
    policy = sp.BetGapE(delta=0.05, epsilon=0.05)  # a plan within three minutes of the best will do
    session = Session.create("memory://", instance.problem, policy, name="transport, 18 cities")
    rng = np.random.default_rng(1)
    while session.status is None:
        ledger = session.ledger()
        wanted: dict[int, list[int]] = {}
        for slot in ledger.wanted():
            wanted.setdefault(slot.arm, []).append(slot.place)
        for arm, places in wanted.items():
            values = instance.means[arm] + rng.standard_normal(len(places))
            session.tell(f"{arm}.{places[0]}", values.tolist())
    return session


def screenshot(address: str, path: Path, *, width: int, height: int) -> None:
    """The page at this address as a small PNG."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"{path.name} is a picture of a page and needs a browser: one of {', '.join(BROWSERS)}")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    size, target = f"--window-size={width},{height}", f"--screenshot={path}"
    subprocess.run([browser, *options, size, target, address], check=True, capture_output=True, timeout=120)
    with Image.open(path) as taken:
        taken.convert("RGB").quantize(COLOURS).save(path, optimize=True)


PICTURES = {"table-1": table_1, "report": report}


def main() -> None:
    """Draw the pictures that are named, all of them unless some are."""
    for name in sys.argv[1:] or PICTURES:
        path = DOCS / f"{name}.png"
        PICTURES[name](path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
