"""The report and `watch`: they show the views, and no name that people type breaks them."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

import surepick as sp
from session_tools import SCALE, Tapes, problem, run_to_end, tell_all
from surepick import views
from surepick.cli import app
from surepick.report import LAST_EVENTS, report
from surepick.sessions.session import Session
from surepick.views.text import number

EVIL = "<script>alert('x')</script>\"'&$\\frac{1}$\x1b[31m[bold]\u202e"


def session(*, n: int = 30, evil: bool = False, delta: float = 0.1) -> Session:
    chosen = problem()
    if evil:
        chosen = sp.Problem(
            chosen.plans,
            arms=[f"{EVIL}arm {s}" for s in range(4)],
            plan_names=[f"{EVIL}plan {k}" for k in range(5)],
            noise=0.3,
            goal="largest",
        )
    name = f"{EVIL}alloys" if evil else "alloys"
    made = Session.create("memory://", name, chosen, policy=sp.BetGapE(delta=delta))
    tapes = Tapes()
    while made.status == "running" and made.ledger().n_told < n:
        tell_all(made, made.ask(worker=EVIL if evil else None), tapes)
    return made


@pytest.fixture(scope="module")
def running() -> str:
    """The report of a session that has not ended."""
    return report(session())


class Page(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_answer_comes_first_then_the_evidence_then_the_log() -> None:
    made = session(n=10**6)
    page = Page(report(made))
    words = [
        page.text.index(word) for word in ("is the best plan", "How sure", "rivals", "Certificate", "The log")
    ]
    assert words == sorted(words)
    assert made.fingerprint.checksum in page.text
    assert str(made.certificate()) in page.text


def test_on_a_phone_parts_are_folded_behind_what_is_in_them_and_elsewhere_they_are_open() -> None:
    text = report(session(n=10**6))
    folds = re.findall(r'<details class="fold"[^>]*><summary>(.*?)</summary>', text)
    assert len(folds) == 4
    assert "@media (min-width: 30.01rem) {\n  .fold::details-content { content-visibility: visible" in text


def test_a_report_with_doubts_has_them_in_its_headline() -> None:
    made = Session.create("memory://", "alloys", problem(), policy=sp.CombGapE(delta=0.3))
    run_to_end(made, Tapes(scale=4 * SCALE))
    text = report(made)
    assert re.search(r'class="card hero" data-state="confident" data-trusted="false"', text)
    assert re.findall(r'data-doubt="(\w+)"', text) == [doubt.code for doubt in made.doubts]
    assert 'data-trusted="true"' not in text


def test_a_report_with_epsilon_says_what_was_proved_of_a_rival() -> None:
    made = Session.create("memory://", "alloys", problem(), policy=sp.BetGapE(delta=0.1, epsilon=2.0))
    run_to_end(made, Tapes())
    titles = set(re.findall(r'title="([^"]*)" data-ruled-out', report(made)))
    assert titles == {views.rivals(views.look(made)).ruled_out_words(made.problem.about.unit)}


def test_nothing_is_fetched_and_nothing_runs(running: str) -> None:
    page = Page(running)
    outside = {"script", "iframe", "object", "embed", "link", "img", "form"}
    assert not outside & {tag for tag, _ in page.tags}
    links = ("src", "href", "xlink:href")
    targets = [found[key] for _, found in page.tags for key in links if key in found]
    assert all(target.startswith(("#", "data:application/json")) for target in targets)
    assert "url(http" not in running
    assert len(running) < 200_000


@pytest.mark.parametrize("n", [0, 3, 10**6], ids=["empty", "begun", "ended"])
def test_script_in_every_name_stays_text(n: int) -> None:
    made = session(evil=True, n=n)
    if n == 3:
        made.note(EVIL)
        made.add_extra(0, 1.0, note=EVIL)
        made.release(made.ask(worker=EVIL)[0], reason=EVIL)
    page = Page(report(made))
    assert "script" not in {tag for tag, _ in page.tags}
    assert not any(key.startswith("on") for _, found in page.tags for key in found)
    assert "alert('x')" in page.text


def test_drawings_say_what_they_show_and_take_the_colours_of_the_page(running: str) -> None:
    page = Page(running)
    drawn = [found for tag, found in page.tags if tag == "svg"]
    assert len(drawn) > 5
    assert all(found.get("aria-label") or found.get("aria-hidden") == "true" for found in drawn)
    assert not [found for _, found in page.tags if "fill" in found and found["fill"] != "none"]


def test_every_number_of_the_rivals_and_the_arms_can_be_read() -> None:
    made = session()
    page = Page(report(made))
    seen = views.page(views.look(made))
    flat = " ".join(page.text.split())
    for rival in seen.rivals.rows:
        name = f"{rival.name} {rival.role}".rstrip()
        assert f"{name} {number(rival.gap, 3)} ± {number(rival.error, 2)}" in flat
        assert f"{number(rival.low, 3)} to {number(rival.high, 3)}" in flat
    for arm in seen.arms.rows:
        assert f"{arm.name} {number(arm.mean)} ± {number(arm.error, 2)} {arm.count}" in flat


def test_a_long_log_is_cut_but_its_remarks_stay() -> None:
    made = session(n=3, delta=1e-9)
    made.note("the scale was cleaned")
    tapes = Tapes()
    while made.status == "running":
        tell_all(made, made.ask(), tapes)
    events = list(made.events())
    assert len(events) > 2 * LAST_EVENTS
    page = Page(report(made))
    rows = page.text.split("Remarks, decisions")[1]
    assert "the scale was cleaned" in rows
    assert rows.count("measured") < LAST_EVENTS
    assert f"{len(events)} events" in page.text


WITHOUT = """
import sys
import surepick as sp
for name in {missing!r}:
    sys.modules[name] = None
session = sp.Session.create("memory://", "trips", sp.Problem([[1, 0], [0, 1]]), policy=sp.CombGapE())
from surepick.report import report
print(report(session)[:15])
"""


def test_a_report_needs_nothing_but_jinja() -> None:
    code = WITHOUT.format(missing=["matplotlib", "fastapi", "starlette", "uvicorn", "pydantic"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "<!doctype html>\n", done.stderr


def test_without_it_the_extra_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(missing=["jinja2"])], capture_output=True, text=True
    )
    assert "MissingExtraError" in done.stderr
    assert "pip install 'surepick[report]'" in done.stderr


# In the terminal


@pytest.fixture
def url(tmp_path: Path) -> str:
    place = f"sqlite:///{tmp_path / 'plans.db'}"
    made = Session.create(place, "alloys", problem(), policy=sp.BetGapE(delta=0.1))
    tapes = Tapes()
    for _ in range(20):
        tell_all(made, made.ask(worker="truck 7"), tapes)
    made.ask(worker=EVIL)
    return place


def test_watch_once_shows_the_answer_so_far(url: str) -> None:
    shown = CliRunner().invoke(app, ["watch", "--once", "--store", url]).output
    page = views.page(views.look(Session.load(url)))
    flat = re.sub(r"[\s│]+", " ", shown)
    assert page.summary.sentence in flat
    assert f"{1 - page.summary.delta:g}" in flat
    assert page.work.tokens[0].token in flat
    assert "\x1b[31m" not in shown
    assert "\u202e" not in shown


def test_watch_ends_with_the_session_and_says_how(url: str) -> None:
    made = Session.load(url)
    run_to_end(made, Tapes(), worker=EVIL)
    found = CliRunner().invoke(app, ["watch", "--store", url])
    assert found.exit_code == 0
    assert found.output.split(":")[0] == "confident"
    made.extend(delta=1e-9)
    made.close()
    assert CliRunner().invoke(app, ["watch", "alloys", "--store", url]).exit_code == 1


def test_report_writes_one_file(url: str, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    found = CliRunner().invoke(app, ["report", "alloys", "-o", str(target), "--store", url])
    assert found.exit_code == 0
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_python_in_the_guide_to_seeing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    guide = (Path(__file__).parent.parent.parent / "docs" / "seeing.md").read_text(encoding="utf-8")
    for code in re.findall(r"```python\n(.*?)```", guide, flags=re.S):
        exec(compile(code, "seeing.md", "exec"), names)
    assert "leads after 3 measurements" in capsys.readouterr().out
    assert isinstance(names["problem"], sp.Problem)
