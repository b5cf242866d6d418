"""Figures, the report and `watch`: they show the views, and no name that people type breaks them."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

import surepick as sp
from session_tools import Tapes, problem, run_to_end, tell_all
from surepick import plots, views
from surepick.cli import app
from surepick.plots.style import INK
from surepick.report import report
from surepick.report.html import Html, table, tag
from surepick.sessions.session import Session

EVIL = "<script>alert('x')</script>\"'&$\\frac{1}$\x1b[31m[bold]\u202e"


def session(
    policy: sp.Policy | None = None, *, n: int = 30, evil: bool = False, **options: object
) -> Session:
    chosen = problem()
    if evil:
        chosen = sp.Problem(
            chosen.plans,
            arm_names=[f"{EVIL}arm {s}" for s in range(4)],
            plan_names=[f"{EVIL}plan {k}" for k in range(5)],
            noise_scale=0.3,
        )
    name = f"{EVIL}alloys" if evil else "alloys"
    made = Session.create("memory://", chosen, sp.BetGapE(delta=0.1), name=name)
    tapes = Tapes()
    while not made.status and made.ledger().n_told < n:
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
        made.record(0, 1.0, note=EVIL)
        made.withdraw(made.ask(worker=EVIL)[0], reason=EVIL)
    page = Page(report(made))
    assert "script" not in {tag for tag, _ in page.tags}
    assert not any(key.startswith("on") for _, found in page.tags for key in found)
    assert "alert('x')" in page.text


def test_ids_of_two_figures_never_meet(running: str) -> None:
    ids = re.findall(r'\bid="([^"]*)"', running)
    assert len(ids) > 20
    assert len(ids) == len(set(ids))


def test_figures_take_the_colours_of_the_page(running: str) -> None:
    drawn = running.split("</style>", 1)[1]
    assert "currentColor" in drawn
    assert INK not in drawn


def test_text_is_escaped_unless_it_was_made_here() -> None:
    assert tag("p", "<b>", Html("<i></i>"), title='"') == '<p title="&quot;">&lt;b&gt;<i></i></p>'
    assert "<td" in table(("a", "b"), [("<", 1)])
    assert '<td class="text">&lt;</td>' in table(("a", "b"), [("<", 1)])


# Figures


def test_every_figure_shows_the_numbers_of_its_view() -> None:
    seen = views.look(session())
    page = views.page(seen)
    left, right = plots.rivals(page.rivals).axes
    assert [label.get_text() for label in left.get_yticklabels()] == [row.label for row in page.rivals.rows]
    assert [bar.get_width() for bar in right.patches] == [row.toward for row in page.rivals.rows]
    (bars,) = plots.arms(page.arms).axes
    assert [bar.get_width() for bar in bars.patches] == [row.count for row in page.arms.rows]
    (curve,) = plots.progress(page.progress).axes
    assert curve.lines[0].get_ydata()[-1] == page.progress.now.toward
    (entries,) = plots.picture(page.picture).axes
    assert [bar.get_width() for bar in entries.patches][: page.picture.n_entries] == [
        entry.amount for entry in page.picture.entries
    ]


def test_figures_for_screens_show_the_same() -> None:
    seen = views.look(session(evil=True))
    page = views.page(seen)
    rivals = plots.screen.rivals(page.rivals)
    assert sorted(x for trace in rivals.data for x in trace.x) == sorted(row.gap for row in page.rivals.rows)
    assert list(plots.screen.arms(seen).data[0].x) == [row.count for row in views.arms(seen).rows]
    assert plots.screen.progress(seen).data[0].y[-1] == page.progress.now.toward
    figure = plots.screen.picture(seen)
    assert all(row.yaxis.zeroline is False for row in (rivals.layout, plots.screen.arms(seen).layout))
    assert "<script>" not in figure.to_json().replace("\\u003c", "<")


@pytest.mark.parametrize("kind", ["knapsack", "path", "tree", "matching", "transport"])
def test_every_kind_of_plan_can_be_drawn(kind: str) -> None:
    chosen = {
        "knapsack": lambda: sp.problems.knapsack([4, 5], guess=[4.0, 5.0], capacity=11, spread=1.0),
        "path": lambda: sp.problems.paths([("A", "B", 1), ("B", "C", 1), ("A", "C", 3)], "A", "C"),
        "tree": lambda: sp.problems.trees([("A", "B", 1), ("B", "C", 1), ("A", "C", 1)]),
        "matching": lambda: sp.problems.matchings([[2, 3], [2, 2]]),
        "transport": lambda: sp.problems.transport([3, 2], [4, 1], guess=[[2, 3], [2, 2]]),
    }[kind]()
    made = Session.create("memory://", chosen, sp.CombGapE(), name=kind)
    for request in made.ask(chosen.n_arms):
        made.tell(request, float(request.arm))
    drawn = views.picture(views.look(made))
    assert drawn is not None
    assert plots.picture(drawn).axes
    assert plots.screen.picture(drawn).data


def test_a_session_without_a_lead_has_no_picture() -> None:
    with pytest.raises(sp.SurepickError, match="no lead yet"):
        plots.picture(session(n=0))


# In the terminal


@pytest.fixture
def url(tmp_path: Path) -> str:
    place = f"sqlite:///{tmp_path / 'plans.db'}"
    made = Session.create(place, problem(), sp.BetGapE(delta=0.1), name="alloys")
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
    assert "sure at 0.9" in flat
    assert page.work.tokens[0].token in flat
    assert "\x1b[31m" not in shown
    assert "\u202e" not in shown


def test_watch_ends_with_the_session_and_says_how(url: str) -> None:
    made = Session.load(url)
    run_to_end(made, Tapes(), worker=EVIL)
    found = CliRunner().invoke(app, ["watch", "--store", url])
    assert found.exit_code == 0
    assert found.output.startswith("sure: “plan 4” is the best plan")
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
