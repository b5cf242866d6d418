"""A report is one file: the answer first, nothing to fetch or run, and its log inside."""

import re

import numpy as np
import pytest

import surepick as sp
from session_tools import Tapes, answer, problem, run_to_end
from surepick.files.log import certificate_in, log_in
from surepick.report import objection_to_page, read_report, report, write_report
from surepick.sessions.session import Session

EVIL = "<script>alert('x')</script>\"'&</script><!--\u202e"


def evil_session():
    chosen = problem()
    made = sp.Problem(
        chosen.plans,
        goal="largest",
        arms=[f"{EVIL}arm {s}" for s in range(4)],
        plan_names=[f"{EVIL}plan {k}" for k in range(5)],
        noise=0.3,
        title=EVIL,
    )
    session = Session.create("memory://", EVIL, made)
    return answer(session, Tapes().answer, n=10, worker=EVIL)


def test_names_are_text_and_nothing_is_fetched_or_run(tmp_path):
    session = evil_session()
    page = report(session)
    assert "<script>" not in page
    assert re.findall(r"<script[^>]*>", page) == ['<script type="application/json" id="surepick-log">']
    assert not re.search(r"""(src|href)=["'](?!https://surepick)""", page)
    assert "url(" not in page
    assert "@import" not in page
    file = write_report(session, tmp_path / "report.html")
    log = log_in(read_report(file))
    assert log is not None
    assert log.name == EVIL
    assert objection_to_page(file, log) is None


def test_the_answer_stands_first_and_the_log_replays(tmp_path):
    session = Session.create("memory://", "alloys", problem())
    run_to_end(session, Tapes())
    view = session.view()
    file = session.export(tmp_path / "report.html")
    page = file.read_text(encoding="utf-8")
    assert 'data-state="confident" data-trusted="true"' in page
    assert page.index("<h1") < page.index("Proved:") < page.index("<svg") < page.index("<h2>Values</h2>")
    assert page.count("<tr data-status=") == view.n_plans
    data = read_report(file)
    log, certificate = log_in(data), certificate_in(data)
    assert log is not None
    assert log.verify(certificate).holds
    assert page.count('<tr><td class="n">') >= view.n_measured


def test_doubts_replace_the_headline():
    quiet = problem().with_noise(np.full(4, 0.05))
    session = Session.create("memory://", "alloys", quiet, delta=0.1)
    view = answer(session, Tapes(scale=1.0).answer, n=400, at_once=5).view()
    assert not view.trusted
    page = report(session)
    assert 'class="doubt"' in page
    assert 'data-trusted="false"' in page
    assert "Proved:" not in page


def test_a_file_that_is_no_report_is_refused(tmp_path):
    (tmp_path / "page.html").write_text("<p>hello</p>")
    with pytest.raises(sp.SurepickError):
        read_report(tmp_path / "page.html")
