"""What people are told by `status`, `ask`, `import` and `simulate`: answers in words, and nothing false."""

import http.server
import json
import re
import sys
import threading
import time
from typing import ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick import views
from surepick.cli import app
from surepick.errors import SurepickError
from surepick.inputs.load import read_problem
from surepick.report import report

ROADS = """
kind = "table"
title = "The way to the customer"
unit = "min"
plans = [[1, 0, 1, 0], [0, 1, 1, 0], [0, 1, 0, 2]]
arms = ["ring road", "bridge", "tunnel", "ferry"]
goal = "smallest"
noise = 0.5
"""
MINUTES = {"ring road": 9.0, "bridge": 5.0, "tunnel": 4.0, "ferry": 8.0}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREPICK_STORE", raising=False)
    (tmp_path / "roads.toml").write_text(ROADS)
    return tmp_path


def run(*words, code=0):
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, (result.output, result.exception)
    return result


def measure(n=10**6):
    session = sp.Session.load("surepick.db")
    for _ in range(n):
        requests = session.ask()
        if not requests:
            break
        session.tell(requests[0], MINUTES[requests[0].arm_name])
    return session


def test_status_gives_the_answer_with_value_and_unit(folder):
    run("new", "roads.toml")
    measure()
    shown = run("status").stdout
    for fact in ("The way to the customer", "plan 1 (bridge, tunnel)", "9 ± ", "min", "runner-up"):
        assert fact in shown


def test_after_closing_status_and_certificate_show_the_lead_and_its_risk(folder):
    run("new", "roads.toml")
    session = measure(6)
    shown = run("close").stdout
    risk = session.standing().risk
    assert risk is not None
    certificate = json.loads(run("status", "--json").stdout)["certificate"]
    assert (certificate["plan"], certificate["lead_name"], certificate["risk"]) == (None, "plan 1", risk)
    assert certificate["lead_amounts"] == {"bridge": 1.0, "tunnel": 1.0}
    assert "plan 1 (bridge, tunnel)" in " ".join(shown.replace("│", " ").split())


def test_what_was_closed_asks_for_nothing(folder):
    run("new", "roads.toml")
    assert views.page(views.look(sp.Session.load("surepick.db"))).work.n_missing > 0
    measure(5)
    run("close")
    assert views.page(views.look(sp.Session.load("surepick.db"))).work.n_missing == 0
    assert run("ask", code=1).stdout == ""


def test_import_says_that_the_session_ended(folder):
    run("new", "roads.toml")
    measure()
    run("export", "--to", "told.csv")
    run("new", "roads.toml", "--name", "again")
    told = json.loads(run("import", "told.csv", "--session", "again", "--json").stdout)
    assert (told["status"], told["answer"]) == ("confident", "plan 1")


def test_import_refuses_a_token_of_another_arm_and_names_both(folder):
    run("new", "roads.toml")
    measure(3)
    run("export", "--to", "told.csv")
    inserted = ROADS.replace('["ring road", ', '["ring road", "new road", ').replace(
        "plans = [[1, 0, 1, 0], [0, 1, 1, 0], [0, 1, 0, 2]]",
        "plans = [[1, 0, 0, 1, 0], [0, 0, 1, 1, 0], [0, 0, 1, 0, 2]]",
    )
    (folder / "inserted.toml").write_text(inserted)
    run("new", "inserted.toml")
    result = CliRunner().invoke(app, ["import", "told.csv", "--session", "inserted"])
    assert isinstance(result.exception, SurepickError)
    assert sp.Session.load("surepick.db", "inserted").ledger().n_told == 0


def test_the_rival_is_the_same_plan_in_certificate_and_status_and_the_runner_up_is_named(folder):
    run("new", "roads.toml")
    session = measure()
    certificate = session.certificate()
    page = views.page(views.look(session))
    assert certificate.closest_rival == page.summary.rival == page.picture.other
    assert certificate.runner_up == page.summary.runner_up
    assert page.summary.rival == page.rivals.rows[0].name


def test_the_runner_up_is_in_every_table_of_rivals_however_few_it_shows(folder):
    noise = [0.1, 0.1, 30, 30, 30]
    problem = sp.Problem(
        [*map(list, np.eye(5))], plan_names=["lead", "second", "c", "d", "e"], noise=noise, goal="largest"
    )
    session = sp.Session.create("surepick.db", "noisy", problem, policy=sp.BetGapE())
    while (requests := session.ask()) and session.ledger().n_rounds < 3:
        session.tell(requests[0], [10.0, 9.0, 0.0, 0.0, 0.0][requests[0].arm])
    page = views.page(views.look(session), n_rivals=2)
    assert (page.summary.rival, page.summary.runner_up) == ("c", "second")
    assert [(row.name, row.role) for row in page.rivals.rows] == [
        ("c", "closest rival"),
        ("second", "runner-up"),
    ]
    others = json.loads(run("status", "--plans", "2", "--json").stdout)["other_plans"]
    assert "second" in [row["name"] for row in others]
    table = report(session).split('aria-label="Rivals"')[1].split("</table>")[0]
    assert re.search(r"second\s*<span class=\"note\">runner-up", table)


def test_a_plan_has_no_value_while_an_arm_of_it_was_never_measured(folder):
    problem = sp.Problem([[1, 1, 0], [1, 0, 1]], arms=["shared", "b", "c"], noise=0.3, goal="largest")
    session = sp.Session.create("surepick.db", "shared", problem, policy=sp.BetGapE())
    for _ in range(4):  # what all plans share is never measured
        (request,) = session.ask()
        session.tell(request, 1.0 if request.arm_name == "b" else 0.8)
    found = json.loads(run("status", "--json").stdout)
    assert (found["value"], [row["value"] for row in found["other_plans"]]) == (None, [None])


def test_one_gap_has_one_uncertainty_everywhere(folder):
    """The interval that the policy has to clear is another thing, and is wider."""
    run("new", "roads.toml")
    session = measure()
    page = views.page(views.look(session))
    closest, certificate = page.rivals.rows[0], session.certificate()
    in_certificate = {rival.plan_name: (rival.gap, rival.error) for rival in certificate.rivals}
    assert in_certificate[closest.name] == pytest.approx((closest.gap, closest.error))
    as_json = json.loads(run("status", "--json").stdout)["other_plans"][0]
    assert (as_json["gap"], as_json["error"]) == (closest.gap, closest.error)
    gap, error = f"{closest.gap:.3g}", f"{closest.error:.2g}"
    status, text = run("status").stdout, str(certificate)
    assert f"{gap} ± {error}" in status
    assert f"{closest.gap:.4g} ± {error}" in text
    assert f"{gap} ± {error}" in " ".join(re.sub(r"<[^>]*>", "", report(session)).split())
    assert closest.low < closest.gap - closest.error


SITES = "\n".join(
    ['kind = "trees"', "n_draws = 60", "spread = 4.0", "noise = 1.0", "edges = ["]
    + [f'  ["s{i}", "s{j}", {5 + (7 * i + 3 * j) % 5}],' for i in range(8) for j in range(i)]
    + ["]", "[truth]", 'means = "guess"']
)


def test_a_list_that_lacks_plans_promises_the_best_of_the_listed_ones_alone(folder):
    (folder / "sites.toml").write_text(SITES)
    problem = read_problem(folder / "sites.toml").problem
    missing = problem.candidates.chance_of_new
    assert missing > 0.05
    assert f"{problem.n_plans:,}" in run("simulate", "sites.toml", "--epsilon", "3").stdout
    data = json.loads(run("simulate", "sites.toml", "--epsilon", "3", "--json").stdout)
    assert data["loss_in_family"] >= data["loss"]
    assert data["listing"]["chance_missing"] == missing
    session = sp.Session.create("memory://", "sites", problem, policy=sp.BetGapE(epsilon=3.0))
    while requests := session.ask():
        session.tell(requests[0], 5.0 if requests[0].arm % 2 else 9.0)
    certificate = session.certificate()
    assert f"{problem.n_plans:,}" in certificate.guarantee
    assert certificate.listing["chance_missing"] == missing
    assert session.verify(certificate.to_json()).holds
    forged = {**certificate.to_json(), "listing": {**certificate.listing, "chance_missing": 0.0}}
    assert not session.verify(forged).holds


def test_an_implausible_value_is_refused_where_nobody_can_be_asked(folder):
    (folder / "roads.toml").write_text(ROADS + "plausible = [0, 60]\n")
    run("new", "roads.toml")
    refused = CliRunner().invoke(app, ["tell", "0.0", "1200"])
    assert "--yes" in str(refused.exception)
    (folder / "told.csv").write_text("arm,value\nring road,9\nbridge,1200\n")
    refused = CliRunner().invoke(app, ["import", "told.csv", "--answers"])
    assert "'bridge'" in str(refused.exception)
    assert sp.Session.load("surepick.db").ledger().n_told == 0
    run("tell", "0.0", "1200", "--yes")
    warnings = views.summary(views.look(sp.Session.load("surepick.db"))).warnings
    assert "value" in {warning.kind for warning in warnings}
    run("void", "0.0", "--reason", "a slip")
    assert "1200" not in run("export").stdout


def test_a_value_that_nobody_had_asked_for_is_taken_back_by_the_number_of_its_event(folder):
    run("new", "roads.toml")
    run("tell", "ferry", "1200", "--unasked")
    number = json.loads(run("log", "--json").stdout)[-1]["position"]
    run("void", str(number), "--reason", "a slip")
    assert "1200" not in run("export").stdout
    seen = views.summary(views.look(sp.Session.load("surepick.db")))
    assert "voided" in {warning.kind for warning in seen.warnings}


def test_a_person_at_a_terminal_is_asked(folder, monkeypatch):
    (folder / "roads.toml").write_text(ROADS + "plausible = [0, 60]\n")
    run("new", "roads.toml")
    monkeypatch.setattr("surepick.cli.doubts._can_ask", lambda: True)
    no = CliRunner().invoke(app, ["tell", "0.0", "1200"], input="n\n")
    assert (no.exit_code, sp.Session.load("surepick.db").ledger().n_told) == (1, 0)
    assert CliRunner().invoke(app, ["tell", "0.0", "1200"], input="y\n").exit_code == 0
    assert sp.Session.load("surepick.db").ledger().n_told == 1


@pytest.mark.parametrize(("policy", "code"), [("BetGapE", 0), ("RAGE", 1)])
def test_a_late_value_is_kept_and_the_exit_code_says_whether_it_counts(folder, policy, code):
    run("new", "roads.toml", "--lease", "0.01", "--policy", policy)
    run("ask", "--worker", "slow")
    time.sleep(0.02)
    run("ask", "--worker", "quick")
    run("tell", "0.0", "9", "--worker", "quick")
    told = json.loads(run("tell", "0.0", "9.5", "--worker", "slow", "--json", code=code).stdout)
    assert (told["receipt"], told["will_count"]) == ("extra", code == 0)
    assert sp.Session.load("surepick.db").ledger().n_unasked == 1


def test_hand_work_gets_days_and_a_program_its_own_lease(folder):
    run("new", "roads.toml")
    assert sp.Session.load("surepick.db", "roads").lease == 3 * 86400
    command = f"{sys.executable} -c 'print(7)' {{arm}}"
    run("run", "roads.toml", "--name", "r", "--measure", command, "--timeout", "30", "--budget", "3", code=1)
    assert sp.Session.load("surepick.db", "r").lease == 60


class Receiver(http.server.BaseHTTPRequestHandler):
    told: ClassVar[list[dict]] = []

    def do_POST(self):
        self.told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_the_end_is_posted_and_a_dead_address_harms_nothing(folder):
    run("new", "roads.toml")
    measure()
    with http.server.HTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        run("watch", "--notify", f"http://127.0.0.1:{server.server_port}/end")
    told = Receiver.told[-1]
    assert (told["event"], told["answer"]) == ("ended", "plan 1")
    assert told["certificate"]["log_checksum"] == sp.Session.load("surepick.db").certificate().log_checksum
    for address in (f"http://127.0.0.1:{server.server_port}/gone", "file:///etc/passwd", "nonsense"):
        assert address in run("watch", "--notify", address).stderr


def test_a_redirect_is_not_followed_and_a_slow_answer_has_an_end(folder, monkeypatch):
    from surepick.cli import notify

    asked = []

    class Elsewhere(Receiver):
        def do_POST(self):
            asked.append(self.path)
            if self.path == "/slow":
                for _ in range(100):  # a byte at a time: no single read takes long
                    self.wfile.write(b"H")
                    time.sleep(0.05)
            self.send_response(307)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")
            self.end_headers()

        do_GET = do_POST  # noqa: N815

    monkeypatch.setattr(notify, "PATIENCE", 1.0)
    run("new", "roads.toml")
    measure()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for path in ("/redirect", "/slow"):
            address = f"http://127.0.0.1:{server.server_port}{path}"
            assert address in run("watch", "--notify", address).stderr
        server.shutdown()
    assert asked == ["/redirect", "/slow"]
