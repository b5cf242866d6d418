"""Decisions by hand: begin, ask, record, correct, read sheets, extend, add plans, close."""

import csv
from pathlib import Path

import openpyxl
import pytest

import surepick as sp
from command_line import MINUTES, drive, surepick, view, write_trips

EXIT_NOTHING = 1


def test_from_the_sheet_to_an_answer_that_fits_a_screen():
    begun = surepick("new", "trips.csv", "--epsilon", "1", "--json").json
    assert (begun["state"], begun["epsilon"], begun["proved"]["claim"]) == ("running", 1.0, "one_of")
    assert surepick("new", "trips.csv", "--json").error["class"] == "NameTakenError"
    drive()
    data = view()
    assert (data["state"], data["plan"]) == ("confident", "Tunnel + station")
    assert data["proved"]["claim"] == "within_epsilon"
    said = surepick("ask")
    assert (said.code, said.out.strip()) == (EXIT_NOTHING, "")
    shown = surepick("status")
    assert len(shown.out.splitlines()) + len(shown.err.splitlines()) <= 24
    assert max(map(len, shown.out.splitlines())) <= 80
    words = [line.split(":")[0] for line in shown.out.splitlines() if not line.startswith(" ")]
    assert words[1:4] == ["Proved", "Our bet", "Runner-up"]
    assert "›" not in shown.out
    assert "export -o report.html" in shown.err
    everything = surepick("status", "--all").out
    assert all(name in everything for name in ("Ring west", "Bridge + harbour"))


def test_a_value_goes_to_the_own_request_first_and_otherwise_is_extra():
    surepick("new", "trips.csv")
    arm = surepick("ask", "--json").json["requests"][0]["arm"]
    assert surepick("ask", "--json").json["requests"][0]["arm"] == arm, "the same until it is recorded"
    assert surepick("ask", "--json", "--worker", "Pat").json["requests"][0]["arm"] != arm
    told = surepick("tell", arm, "10,5", "--yes", "--json").json
    assert told["recorded"] == [{"number": 1, "result": "recorded"}]
    assert told["view"]["last"]["value"] == 10.5
    told = surepick("tell", "Depot road", "6", "--json").json
    assert told["recorded"] == [{"number": 2, "result": "extra"}], "not asked for"
    assert view()["n_extra"] == 1


def test_a_key_records_once_and_several_values_are_several():
    surepick("new", "trips.csv")
    for _ in range(2):
        said = surepick("tell", "Tunnel", "10.5", "--key", "protocol 7", "--json")
    assert said.json["recorded"][0]["result"] == "repeated"
    assert view()["n_measured"] == 1
    surepick("tell", "Tunnel", "10.5", "10.6", "--yes")
    assert view()["n_measured"] == 3


def test_a_surprising_value_is_refused_until_it_is_said_to_be_right():
    surepick("new", "trips.csv")
    said = surepick("tell", "Tunnel", "104", "--json")
    assert (said.code, said.error["field"]) == (2, "values")
    assert view()["n_measured"] == 0
    assert surepick("tell", "Tunnel", "104", "--yes").code == 0
    assert view()["n_measured"] == 1


def test_a_mistake_is_removed_by_its_number_and_a_lost_one_is_asked_for_again():
    surepick("new", "trips.csv")
    arm = surepick("ask", "--json").json["requests"][0]["arm"]
    surepick("tell", arm, "10.4", "--yes")
    assert surepick("session", "remove", "1", "--json").error["field"] in ("reason", "--reason")
    assert surepick("session", "remove", "9", "--reason", "x", "--json").error["field"] == "number"
    other = surepick("ask", "--json").json["requests"][0]["arm"]
    kept = surepick("tell", other, "9.4", "--yes", "--json").json
    assert surepick("session", "remove", "1", "--reason", "typo").code == 0
    data = view()
    assert (data["last"]["number"], data["last"]["value"]) == (kept["recorded"][0]["number"], 9.4)
    assert (data["n_removed"], arm in [one["arm"] for one in data["open"]]) == (1, True)
    assert len(surepick("status", "--log", "--json").json["events"]) >= 4
    arm = surepick("ask", "--json").json["requests"][0]["arm"]
    assert surepick("tell", arm, "--lost", "--note", "road closed").code == 0
    assert view()["n_open"] == data["n_open"]


def test_a_worker_releases_what_it_has_taken():
    surepick("new", "trips.csv")
    surepick("ask", "-n", "3", "--worker", "Pat")
    assert view()["n_assigned"] == 3
    assert surepick("session", "release", "--worker", "Kim", "--json").error["field"] == "arm"
    assert surepick("session", "release", "--worker", "Pat").code == 0
    assert view()["n_assigned"] == 0


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_measuring_sheet_comes_back_once_however_often_it_is_read(folder, kind):
    surepick("new", "trips.csv")
    file = folder / f"monday.{kind}"
    wanted = surepick("ask", "-o", file, "--json").json["n"]
    assert surepick("ask", "-o", file).code == 2, "it is there already"
    values = [MINUTES[arm] for arm in _arms(file)]
    _fill(file, [str(value).replace(".", ",") for value in values] if kind == "csv" else values)
    first = surepick("tell", "--from", file, "--json")
    assert first.code == 0, first.err
    assert view()["n_measured"] == wanted
    again = surepick("tell", "--from", file, "--json").json["counts"]
    assert again["repeated"] == wanted
    assert view()["n_measured"] == wanted


def test_a_sheet_with_a_value_that_cannot_be_read_records_nothing(folder):
    surepick("new", "trips.csv")
    file = folder / "monday.csv"
    surepick("ask", "-o", file)
    arms = _arms(file)
    _fill(file, ["closed", "5,9 min", *(str(MINUTES[arm]) for arm in arms[2:])])
    said = surepick("tell", "--from", file, "--json")
    assert said.code == 2
    assert view()["n_measured"] == 0


def _arms(file):
    if file.suffix == ".csv":
        return [row["arm"] for row in csv.DictReader(file.open(encoding="utf-8-sig"))]
    return [str(row[0].value) for row in openpyxl.load_workbook(file).active.iter_rows(min_row=2)]


def _fill(file, values):
    """Write values into the second column."""
    if file.suffix == ".csv":
        rows = list(csv.reader(file.open(encoding="utf-8-sig")))
        for row, found in zip(rows[1:], values, strict=True):
            row[1] = str(found)
        with file.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows(rows)
        return
    book = openpyxl.load_workbook(file)
    for row, found in zip(book.active.iter_rows(min_row=2), values, strict=True):
        row[1].value = found
    book.save(file)


def test_a_budget_ends_a_session_and_extending_continues_it():
    surepick("new", "trips.csv", "--budget", "8")
    drive()
    data = view()
    assert (data["state"], data["plan"], data["proved"]["claim"]) == ("budget spent", None, "one_of")
    assert "extend --budget 16" in data["next"][0]["command"]
    assert surepick("export", "-o", "certificate.json", "-o", "log.json").code == 0
    assert surepick("verify", "certificate.json", "log.json").code == 0
    assert surepick("session", "extend", "--budget", "4").code == 2
    assert surepick("session", "extend", "--budget", "4000").code == 0
    drive()
    assert view()["state"] == "confident"
    assert surepick("session", "extend", "--delta", "0.001").code == 0
    assert view()["delta"] == 0.001


def test_plans_arrive_and_a_final_batch_ends_the_session():
    surepick("new", "trips.csv")
    drive(12)
    ferry = ("By ferry", "Harbour + 2*Ferry", "--arm", "Ferry noise=2 cost=3")
    assert surepick("session", "add-plan", *ferry).code == 0
    assert view()["n_plans"] == 7
    assert surepick("session", "add-plan", "x", "Nowhere", "--json").code == 2
    assert surepick("session", "final-batch", "30").code == 0
    drive()
    data = view()
    assert (data["state"] in ("confident", "budget spent"), data["n_measured"] <= 42) == (True, True)


def test_a_session_is_closed_renamed_and_deleted():
    surepick("new", "trips.csv")
    assert surepick("session", "rename", "Trips in May").code == 0
    assert view()["title"] == "Trips in May"
    assert surepick("session", "delete", "--yes").code == 2, "it is running"
    surepick("session", "close", "--reason", "road works")
    assert view()["state"] == "closed"
    assert "road works" in view()["headline"]
    assert surepick("session", "delete", "--json").code == 1, "nobody said yes"
    assert surepick("session", "delete", "--yes", "--json").json == {"deleted": "trips"}
    assert surepick("status", "--json").code == 2


def test_the_values_of_a_session_become_prior_data_of_the_next():
    surepick("new", "trips.csv")
    drive(15)
    begun = surepick("new", "--prior", "trips", "-s", "may", "--json").json
    assert (begun["session"], begun["n_measured"]) == ("may", 0)
    assert begun["leader"] is not None
    assert view("trips")["state"] == "closed"


def test_doubts_lead_to_a_session_about_the_changed_file_with_the_old_values(folder):
    write_trips(folder, "loud.csv", noise="0.2")
    surepick("new", "loud.csv", "--epsilon", "1")
    drive(noise=3.0)
    data = view()
    assert (data["trusted"], data["bet"], data["doubts"][0]["code"]) == (False, None, "noise_larger")
    if data["state"] == "confident":
        assert surepick("status").code == surepick("verify").code == 3
    assert "-s" not in surepick("status", "loud").err.split("› ")[1].split(), "it would name the new session"
    hint = data["next"][0]["command"]
    write_trips(folder, "loud.csv", noise=None)
    begun = surepick(*hint.replace("FILE", "loud.csv").split()[1:], "--epsilon", "2", "--json").json
    assert (begun["session"], begun["n_measured"], begun["epsilon"]) == ("loud-2", 0, 2.0)
    assert "unknown" in begun["proved"]["assumes"]
    assert begun["leader"] is not None, "by the old values"
    assert not [one for one in view("loud")["next"] if one["command"] == "surepick ask"]
    surepick("new", "trips.csv", "--prior", "loud-2")
    assert view("loud-2")["state"] == "closed"
    assert (view("trips")["epsilon"], "unknown" in view("trips")["proved"]["assumes"]) == (2.0, False)
    (folder / "other.csv").write_text("plan,x,y\ngoal,smallest\na,1,\nb,,1\n")
    assert surepick("new", "other.csv", "--prior", "trips", "--json").error["field"] == "problem"
    assert view("trips")["state"] == "running", "nothing changed"


def test_probes_are_recorded_by_their_readings(folder):
    surepick("init", "drives")
    assert surepick("new", "drives.toml").code == 0
    (request,) = surepick("ask", "--json").json["requests"]
    assert request["readings"]
    readings = [f"{name}={3.5 + k}" for k, name in enumerate(request["readings"])]
    assert surepick("tell", request["arm"], readings[0], "7", "--json").error["field"] == "values"
    assert surepick("tell", request["arm"], *readings, "--yes").code == 0
    assert view()["n_measured"] >= 1


def test_the_file_says_how_sessions_begin_and_options_win():
    text = Path("trips.csv").read_text(encoding="utf-8")
    Path("trips.csv").write_text(text + "delta,0.2\nepsilon,2\nbudget,30\n", encoding="utf-8")
    begun = surepick("new", "trips.csv", "--epsilon", "1", "--json").json
    assert (begun["delta"], begun["epsilon"], begun["budget"]) == (0.2, 1.0, 30)


def test_limits_replace_the_noise_and_hold_in_a_session_that_begins_again():
    asked = surepick("check", "trips.csv", "--low", "0", "--high", "60", "--rehearsals", "1", "--json").json
    assert (asked["limits"][0], asked["asks_limits"]) == ([0.0, 60.0], False)
    assert surepick("new", "trips.csv", "-s", "mine", "--low", "0", "--high", "60").code == 0
    assert surepick("tell", "Tunnel", "61", "-s", "mine").code == 2, "no value is above 60"
    assert surepick("new", "--prior", "mine", "-s", "again", "--low", "0", "--high", "99").code == 0
    again = sp.Session.load("surepick.db", "again").problem
    assert again.bounds.max() == 99
    for wrong, field in ((("--low", "3"), "high"), (("--low", "3", "--high", "3"), "low")):
        said = surepick("new", "trips.csv", "-s", "wrong", *wrong, "--json")
        assert (said.code, said.error["field"]) == (2, field)
