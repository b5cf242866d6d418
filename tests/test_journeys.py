"""Three people from their first file to a certificate that verifies: an engineer, a planner and an analyst.

The engineer's measuring program crashes, hangs and is killed; the planner has a spreadsheet and a terminal,
and the one who checks has just installed surepick; the analyst has problems of every kind. The planner in the
browser is in web/test_journey.py, the skeptic in cli/test_skeptic.py, the researcher in test_first_policy.py.
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.cli import app
from surepick.inputs.load import read_problem

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
    problem = sp.Problem(WAYS, noise=pd.Series(2.0, index=MEANS.index), goal="smallest")
    view = sp.decide(
        problem, measure, workers=3, executor=kind, store=sys.argv[2], session="links",
        timeout=5, retries=1, progress=True, delta=0.01,
    )
    print(view.plan)
    sp.Session.load(sys.argv[2]).to_frame().to_csv("told.csv")


if __name__ == "__main__":
    main()
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bench.py").write_text(BENCH)
    return tmp_path


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE)}


def bench(folder: Path, kind: str, store: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "bench.py", kind, store],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize(("kind", "place"), [("threads", "PostgreSQL"), ("processes", "SQLite")])
def test_the_engineer_gets_a_certificate_through_a_crash_and_a_kill(
    folder: Path, kind: str, place: str, request: pytest.FixtureRequest
) -> None:
    store = f"sqlite:///{folder}/bench.db" if place == "SQLite" else request.getfixturevalue("postgres_url")
    killed = bench(folder, "slow", store)
    (folder / "crashed").touch()
    wait_for_measurements(store, 3)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    before = sp.Session.load(store, "links").ledger().n_told
    (folder / "crashed").unlink()

    again = bench(folder, kind, store)  # its first measurement dies or hangs, and is tried again
    out, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    assert out.strip() == "south"
    assert "links: confident, 'south'" in errors
    session = sp.Session.load(store, "links")
    assert session.ledger().n_told > before >= 3
    assert session.verify(session.certificate().to_json()).holds
    assert len((folder / "told.csv").read_text().splitlines()) == session.ledger().n_told + 1


def wait_for_measurements(store: str, least: int) -> None:
    for _ in range(200):
        time.sleep(0.3)
        with contextlib.suppress(sp.SurepickError):
            if sp.Session.load(store, "links", read_only=True).ledger().n_told >= least:
                return
    raise AssertionError("the bench measured nothing")


def surepick(*words: str) -> str:
    done = CliRunner().invoke(app, words)
    ended = words[0] == "sheet" and done.exit_code == 1  # nothing is left to measure
    assert ended or done.exit_code == 0, f"{words}: {done.output}{done.exception}"
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
    surepick("new", "crossing.xlsx")
    minutes = {"bridge": 8.0, "tunnel": 12.5, "ferry": 27.0}
    for day in range(60):
        sheet = tmp_path / f"day {day}.xlsx"
        surepick("sheet", "-o", sheet.name, "--worker", "Ann")
        if not sheet.exists():  # the session has ended
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
        [installed(tmp_path / "venv"), "-m", "surepick", "verify", "certificate.json"],
        env={**os.environ, "PYTHONPATH": "", "NUMBA_DISABLE_JIT": "1"},  # nothing to compile for so little
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert "holds" in told.stdout


def installed(place: Path) -> Path:
    """The Python of a new environment into which surepick was installed from its wheel; no network."""
    built = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place.parent / "dist")]
    subprocess.run(built, cwd=SOURCE.parent, check=True, capture_output=True)
    (wheel,) = (place.parent / "dist").glob("*.whl")
    venv.create(place, with_pip=False)
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    offline = ["--no-deps", "--no-index", "--disable-pip-version-check", "--quiet"]
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", *offline, wheel], check=True)
    (site,) = place.glob("**/site-packages")
    friends = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    (site / "zz-dependencies.pth").write_text("\n".join(friends) + "\n")  # after surepick itself
    return python


# One of each way to hold plans: a list, a search, amounts, an oracle, a program. test_check.py has all kinds.
KINDS = ("table", "knapsack", "transport", "trees", "production")


@pytest.mark.parametrize("kind", KINDS)
def test_the_analyst_gets_the_best_plan_and_can_prove_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREPICK_STORE", raising=False)
    surepick("init", kind)
    file = f"{kind}.toml"
    assert "forecast:" in surepick("check", file)
    surepick("new", file)
    loaded, session = read_problem(file), sp.Session.load("surepick.db")
    rng = np.random.default_rng(7)
    while requests := session.ask():
        arm, n = requests[0].arm, max(1, min(requests[0].wanted, 100))
        noise = loaded.problem.noise_scale[arm] * rng.standard_normal(n)
        session.tell(requests[0], (loaded.means[arm] + noise).tolist())
    assert session.outcome.plan_name == session.problem.name_of(session.problem.best(loaded.means))
    shown = json.loads(CliRunner().invoke(app, ["status", "--json"]).stdout)
    assert shown["title"] == loaded.title
    what = "the best of the 6 listed plans" if kind == "production" else "the best plan"  # whole numbers
    assert shown["certificate"]["guarantee"].startswith(f"{what}, wrong with probability at most")
    assert {piece["name"] for piece in shown["plan"]["pieces"]} <= set(loaded.problem.arm_names)
    Path("certificate.json").write_text(json.dumps(shown["certificate"]))
    surepick("export", "--to", "log.json")
    assert "holds" in surepick("verify", "certificate.json", "log.json")
    surepick("report", "-o", "report.html")
    assert loaded.title in html.unescape(Path("report.html").read_text(encoding="utf-8"))
