"""What is said of a session in which little has happened yet, with every policy: nothing that is false."""

import itertools
import re

import pytest
from rich.console import Console

import surepick as sp
from surepick import problems, views
from surepick.cli.screen import screen
from surepick.core.guarantee import Promise
from surepick.policies import POLICIES, parse_policy
from surepick.report import report

LISTED = sp.Problem(
    [[1, 0, 1], [0, 1, 1], [1, 1, 0]],
    arms=["ferry", "tunnel", "bridge"],
    plan_names=["North", "South", "Ring"],
    noise=0.5,
    goal="largest",
)
CHOICES = problems.top_k([f"p{s}" for s in range(6)], 3, list_plans=False, noise=1, goal="largest")
AMOUNTS = problems.portfolio([5, 4, 3], upper=0.5, noise=1)
OF_A_BUDGET = {"CSA", "CSAR", "MinimaxCombSAR", "SuccessiveRejects"}
OF_AMOUNTS = {"amounts", "CTnS", "CGE"}
# The package's own policies and one peer of each kind: phased, drawn, of a budget, of a zone, of amounts.
SHOWN = sorted(name for name, kind in POLICIES.items() if not kind.__module__.startswith("surepick.peers"))
SHOWN += ["amounts", "choices", "RAGE", "TSExplore", "CSAR", "Rinott", "CTnS"]
TEXTS = {"Challenge": "Challenge:incumbent=North", "amounts": "BetGapE", "choices": "BetGapE"}


def problem_for(name):
    return CHOICES if name == "choices" else AMOUNTS if name in OF_AMOUNTS else LISTED


def begun(name):
    text = TEXTS.get(name, f"{name}:budget=500" if name in OF_A_BUDGET else name)
    budget = 500 if name in OF_A_BUDGET else None
    return sp.Session.create(
        "memory://", "fresh", problem_for(name), policy=parse_policy(text), budget=budget
    )


def shown(session):
    """What the terminal, the report (of the page's own parts) and a notebook say."""
    console = Console(width=300)
    with console.capture() as caught:
        console.print(screen(views.page(views.look(session))))
    words = re.sub(r"<[^>]*>", " ", re.sub(r"<(style|script).*?</\1>", " ", report(session), flags=re.S))
    return tuple(" ".join(text.split()) for text in (caught.get(), words, session.line()))


@pytest.mark.parametrize("name", SHOWN)
def test_in_a_fresh_session_nothing_is_measured_and_nothing_leads(name):
    session = begun(name)
    summary = views.summary(views.look(session))
    assert (summary.lead, summary.rival, summary.confidence, summary.toward) == (None, None, None, None)
    assert (summary.n_told, summary.n_measurements) == (0, 0)
    assert f'data-answer="{summary.state} "' in report(session)
    terminal, page, _ = shown(session)
    for text in (terminal, page):
        assert summary.no_confidence in text
        assert not re.search(r"Rivals left [–-]? ?of \d", text)


@pytest.mark.parametrize("name", SHOWN)
def test_a_round_that_is_not_complete_counts_what_was_told(name):
    session = begun(name)
    request = session.ask()[0]
    session.tell(request, 1.0)
    terminal, page, _ = shown(session)
    missing = len(session.pending())
    if missing and session.ledger().n_rounds == 0:
        assert "measured 1" in terminal
        assert re.search(r"Measurements 1 ", page)
    assert views.summary(views.look(session)).n_told == 1


@pytest.mark.parametrize("name", SHOWN)
def test_a_lead_without_a_bound_says_why_there_is_none(name):
    session = begun(name)
    values = itertools.cycle([1.0, 1.3, 0.8, 1.1, 0.9])
    for _ in range(25):  # rounds
        if session.status != "running" or session.ledger().run.standing().lead is not None:
            break
        for request in session.pending():
            session.tell(request, next(values))
    summary = views.summary(views.look(session))
    if summary.lead is None or session.status != "running":
        pytest.skip("nothing leads before the end")
    proved = Promise.read(session.policy.guarantee).proved
    assert summary.is_proved == proved
    assert ("promise" in {warning.kind for warning in summary.warnings}) == (not proved)
    if summary.confidence is None:
        for text in shown(session)[:2]:
            assert summary.no_confidence in text


@pytest.mark.parametrize("n_told", [0, 1])
def test_a_plan_that_is_ahead_by_the_guess_is_named(n_told):
    past = sp.Past.from_guess(LISTED, [3.0, 1.0, 2.0], 0.5)
    session = sp.Session.create("memory://", "guessed", LISTED, policy=sp.BetGapE(), prior=past)
    for request in session.pending()[:n_told]:
        session.tell(request, 1.0)
    summary = views.summary(views.look(session))
    assert (summary.lead, summary.n_told, summary.n_rounds) == ("North", n_told, 0)
    for text in shown(session)[:2]:
        assert "“North" in text
        assert "± inf" not in text


def test_problems_without_a_list_say_how_many_plans_there_are():
    for name, n_plans, arms in (("choices", 20, "6 arms"), ("amounts", 3, "3 arms")):
        session = begun(name)
        assert views.summary(views.look(session)).n_plans == n_plans
        assert arms in shown(session)[0]
    assert "20 choices" in shown(begun("choices"))[0]


def test_long_names_of_plans_and_large_numbers_do_not_flood_the_page():
    problem = problems.trees([(f"village {i}", f"village {j}") for i in range(12) for j in range(i)], noise=1)
    session = sp.Session.create("memory://", "trees", problem, policy=sp.BetGapE())
    while session.ledger().n_rounds == 0:
        for request in session.pending():
            session.tell(request, float(request.arm % 7))
    summary = views.summary(views.look(session))
    assert len(summary.lead) > 200
    assert len(summary.sentence) < 300
    terminal, page, _ = shown(session)
    for text in (terminal, page):
        assert "6.2e10" in text
        assert "61,917,364" not in text
    assert summary.lead in page  # the whole plan is there once
