"""Two people from their first file to a certificate that verifies: an engineer and a planner.

The engineer's measuring program crashes, hangs and is killed; the planner has a spreadsheet and a terminal.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import openpyxl
import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.cli import app

SOURCE = Path(__file__).parents[1] / "src"
LINKS = {"cable": 9.0, "radio": 12.0, "mirror": 10.5}

BENCH = '''
"""A bench of links: which way through the network is fastest? Crashes now and then, as benches do."""
import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

import surepick as sp

WAYS = pd.DataFrame(
    {"cable": [1, 0, 1], "radio": [1, 1, 0], "mirror": [0, 1, 1]}, index=["north", "east", "south"]
)
MEANS = pd.Series({"radio": 12.0, "mirror": 10.5, "cable": 9.0})  # not in the order of the arms
FIRST = Path("crashed")


def measure(link):
    if sys.argv[1] == "slow":
        time.sleep(0.5)
    rng = np.random.default_rng()
    if not FIRST.exists():
        FIRST.touch()
        os._exit(9) if sys.argv[1] == "processes" else time.sleep(60)
    return MEANS[link] + rng.normal(0, 2.0)


def main():
    kind = sys.argv[1] if sys.argv[1] == "processes" else "threads"
    problem = sp.Problem(WAYS, noise_scale=pd.Series(2.0, index=MEANS.index), minimize=True)
    session = sp.decide(
        problem, measure, workers=3, executor=kind, store="sqlite:///bench.db", name="links",
        timeout=5, retries=1, progress=True, delta=0.01,
    )
    print(session.outcome.plan_name)
    session.to_frame().to_csv("told.csv")


if __name__ == "__main__":
    main()
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bench.py").write_text(BENCH)
    return tmp_path


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE)}


def bench(folder: Path, kind: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "bench.py", kind],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_the_engineer_gets_a_certificate_through_a_crash_and_a_kill(folder: Path, kind: str) -> None:
    killed = bench(folder, "slow")
    (folder / "crashed").touch()
    wait_for_measurements(folder / "bench.db", 3)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    before = sp.Session.load(f"sqlite:///{folder}/bench.db", "links").ledger().n_told
    (folder / "crashed").unlink()

    again = bench(folder, kind)  # its first measurement dies or hangs, and is tried again
    out, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    assert out.strip() == "south"
    assert "links: confident, 'south' after" in errors
    session = sp.Session.load(f"sqlite:///{folder}/bench.db", "links")
    assert session.ledger().n_told > before >= 3
    assert session.verify(session.certificate().to_json()).holds
    assert len((folder / "told.csv").read_text().splitlines()) == session.ledger().n_told + 1


def wait_for_measurements(store: Path, least: int) -> None:
    for _ in range(200):
        time.sleep(0.3)
        if store.exists():
            try:
                if sp.Session.load(f"sqlite:///{store}", "links", read_only=True).ledger().n_told >= least:
                    return
            except sp.SurepickError:
                continue
    raise AssertionError("the bench measured nothing")


def surepick(*words: str) -> str:
    done = CliRunner().invoke(app, words)
    assert done.exit_code in (0, 3), f"{words}: {done.output}{done.exception}"
    return done.output


def test_the_planner_gets_a_certificate_from_a_spreadsheet_in_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    book = openpyxl.Workbook()
    for row in (
        ["plan", "bridge", "tunnel", "ferry"],
        ["goal", "smallest"],
        ["unit", "min"],
        ["guess", 8, 11, 25],
        ["spread", 2],
        ["noise", 1],
        ["over the bridge, twice", 2],
        ["bridge and tunnel", 1, 1],
        ["ferry", None, None, 1],
    ):
        book.active.append(row)
    book.save(tmp_path / "crossing.xlsx")
    assert "the smallest is best" in surepick("check", "crossing.xlsx")
    assert "by hand" in " ".join(
        surepick("advise", "crossing.xlsx", "--budget", "200", "--worlds", "2").split()
    )
    surepick("new", "crossing.xlsx")
    minutes = {"bridge": 8.0, "tunnel": 12.5, "ferry": 27.0}
    for day in range(60):
        sheet = tmp_path / f"day {day}.xlsx"
        if "has ended" in surepick("sheet", "-o", sheet.name, "--worker", "Ann"):
            break
        filled = openpyxl.load_workbook(sheet)
        assert [cell.value for cell in filled.active[1]][:3] == ["token", "arm", "value"]
        for row in filled.active.iter_rows(min_row=2):
            row[2].value = f"{minutes[row[1].value]:.1f}".replace(".", ",")  # as a German writes it
        filled.save(sheet)
        surepick("import", sheet.name)
    assert "over the bridge, twice" in surepick("status")
    data = json.loads(CliRunner().invoke(app, ["status", "--json"]).stdout)
    assert data["status"] == "confident"
    assert data["certificate"]["unit"] == "min"
    (tmp_path / "certificate.json").write_text(json.dumps(data["certificate"]))
    told = subprocess.run(
        [sys.executable, "-m", "surepick", "verify", "certificate.json"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "holds" in told.stdout
