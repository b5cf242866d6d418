"""Decisions by a program, rehearsals, and what is sent to others."""

import json
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from command_line import MINUTES, surepick, view, write_trips

DRIVE = f"""#!{sys.executable}
import os, random, sys
minutes = {MINUTES!r}
print("warming up")
print(minutes[sys.argv[1]] + random.Random(os.environ["SUREPICK_SEED"] + sys.argv[1]).gauss(0, 1))
"""


@pytest.fixture(autouse=True)
def program(folder):
    (folder / "drive.py").write_text(DRIVE)
    (folder / "drive.py").chmod(0o755)


def run(*words, program=("./drive.py", "{arm}")):
    return surepick("run", *words, "--", *program)


def test_a_program_is_called_until_confident_and_again_resumes():
    said = run("trips.csv", "--epsilon", "2", "--jobs", "2", "--json")
    assert said.code == 0
    assert said.json["plan"] == "Tunnel + station"
    n = said.json["n_measured"]
    again = run("trips.csv", "--epsilon", "2")
    assert again.code == 0
    assert again.out.startswith('Take "Tunnel + station"')
    assert view()["n_measured"] == n
    other = run("trips.csv", "--epsilon", "3", "--json")
    assert (other.code, other.error["class"]) == (2, "SessionError")
    assert run(program=("./drive.py", "{arm}")).code == 0, "a session that was begun needs no file"


def test_exit_codes_say_how_it_ended():
    assert run("trips.csv", "-s", "spent", "--budget", "5", "--epsilon", "0").code == 1
    stays = run("trips.csv", "-s", "stays", "--incumbent", "Tunnel + station", "--epsilon", "2", "--json")
    assert (stays.code, stays.json["proved"]["claim"]) == (4, "incumbent_stays")
    better = run("trips.csv", "-s", "better", "--incumbent", "Bridge + harbour", "--epsilon", "1", "--json")
    assert (better.code, better.json["proved"]["claim"]) == (0, "better_than_incumbent")
    final = run("trips.csv", "-s", "final", "--budget", "60", "--final-batch", "20", "--json")
    assert final.code in (0, 1)
    assert run("trips.csv", "-s", "x", "--final-batch", "20").code == 2


@pytest.mark.parametrize("printed", ["1,234", "", "mean=4 sd=2", "nan"])
def test_what_is_no_number_ends_the_run_and_keeps_the_rest(folder, printed):
    (folder / "bad.py").write_text(f"#!{sys.executable}\nprint({printed!r})\n")
    said = run("trips.csv", "--json", program=(sys.executable, "bad.py", "{arm}"))
    assert (said.code, said.error["class"]) == (2, "MeasureError")
    assert view()["n_assigned"] == 0


def test_the_first_interrupt_records_what_was_started(folder):
    (folder / "slow.py").write_text(DRIVE.replace("import os,", "import time; time.sleep(.8)\nimport os,"))
    call = [sys.executable, "-m", "surepick", "run", "trips.csv", "--", sys.executable, "slow.py", "{arm}"]
    process = subprocess.Popen(call, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while time.monotonic() < until and not (Path("surepick.db").exists() and _measured() > 1):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert view()["n_assigned"] == 0
    assert _measured() > 1


def _measured():
    said = surepick("status", "--json")
    return 0 if said.code else int(said.json["n_measured"])


def test_an_honest_set_up_passes_against_itself_and_a_drifting_one_does_not(folder):
    assert run("trips.csv", "--aa", "Tunnel", "--json").json["honest"]
    (folder / "worn.py").write_text(
        f"#!{sys.executable}\nimport os\nprint(10 + 3 * int(os.environ['SUREPICK_SEED']))\n"
    )
    said = run("trips.csv", "--aa", "Tunnel", "--json", program=(sys.executable, "worn.py", "{arm}"))
    assert (said.code, said.json["honest"]) == (1, False)
    assert not Path("surepick.db").exists()


def test_the_end_is_posted_and_a_dead_address_changes_nothing():
    posted = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/done"
    assert run("trips.csv", "--epsilon", "3", "--notify", url).code == 0
    server.shutdown()
    assert posted == [view()]
    said = run("trips.csv", "--epsilon", "3", "--notify", "http://127.0.0.1:9/")
    assert said.code == 0
    assert "could not notify" in said.err


def test_check_reads_the_file_and_counts_what_would_save_measurements():
    def check(*words):
        return surepick("check", "trips.csv", "--rehearsals", "6", *words)

    said = check("--epsilon", "1", "--json").json
    assert (said["goal"], said["n_plans"]) == ("smallest", 6)
    assert said["not_measured"] == {"same in all plans": ["Depot road"]}
    assert 10 < said["forecast"]["low"] <= said["forecast"]["median"] <= said["forecast"]["high"]
    assert abs(sum(said["forecast"]["shares"].values()) - 1) < 1e-9
    counts = {(one["setting"], one["value"]): one["median"] for one in said["choices"]}
    assert said["forecast"]["median"] < counts["epsilon", 0.0]
    assert counts["guess", None] > 0
    exact = check("--json").json
    (near,) = [one for one in exact["choices"] if one["setting"] == "epsilon"]
    assert near["median"] < exact["forecast"]["median"]
    shown = check("--epsilon", "1")
    assert len(shown.out.splitlines()) <= 23
    assert "surepick new trips.csv --epsilon 1" in shown.err
    budget = check("--budget", "10", "--json").json["forecast"]
    assert 0 <= budget["confident"] < 1
    assert check("--limit", "--json").json["limit"] > 0


def test_check_counts_what_a_stated_noise_would_save(folder):
    write_trips(folder, "quiet.csv", noise=None, spread="3")
    said = surepick("check", "quiet.csv", "--epsilon", "2", "--rehearsals", "6", "--json").json
    assert said["noise"] is None
    (stated,) = [one for one in said["choices"] if one["setting"] == "noise"]
    assert stated["median"] <= said["forecast"]["median"]
    write_trips(folder, "bare.csv", guess=None, spread=None, truth=None)
    assert surepick("check", "bare.csv", "--json").json["forecast"] is None


def test_check_forecasts_whole_plans_where_their_noise_is_stated(folder):
    whole = (
        'kind = "table"\ngoal = "largest"\nplans = {left = "A + 2*C", right = "B + C"}\nmeasure = "plans"\n'
    )
    (folder / "whole.toml").write_text(whole + "noise = 1\ntruth = {means = [4, 1, 1]}\n")
    said = surepick("check", "whole.toml", "--json").json
    assert set(said["forecast"]["shares"]) == {"left", "right"}
    (folder / "unknown.toml").write_text(whole + "truth = {means = [4, 1, 1]}\n")
    assert surepick("check", "unknown.toml", "--json").json["forecast"] is None


def test_a_rehearsal_ends_beside_the_limit_and_policies_are_compared(folder):
    one = surepick("simulate", "trips.csv", "--json")
    assert (one.code, one.json["plan"], one.json["correct"]) == (0, "Tunnel + station", True)
    assert one.json["n_measured"] > one.json["limit"]
    near = surepick("simulate", "trips.csv", "--epsilon", "1", "--json").json
    assert near["limit"] < min(one.json["limit"], near["n_measured"])
    with write_trips(folder, "bounded.csv", noise=None).open("a") as file:
        file.write("low,0\nhigh,60\n")
    assert surepick("simulate", "bounded.csv", "--json").json["limit"] is None  # it is one of Gaussian noise
    assert surepick("simulate", "trips.csv", "--budget", "5").code == 1
    policies = ("--policy", "BetGapE", "--policy", "Uniform")
    both = surepick(
        "simulate", "trips.csv", *policies, "--runs", "3", "-o", "rows.csv", "--jobs", "2", "--json"
    )
    assert [row["policy"] for row in both.json["policies"]] == ["BetGapE", "Uniform"]
    assert len((folder / "rows.csv").read_text().splitlines()) == 7
    write_trips(folder, "bare.csv", truth=None)
    assert surepick("simulate", "bare.csv").code == 2


def test_the_demo_decides_and_init_writes_what_check_reads():
    said = surepick("demo", "--json")
    assert (said.code, said.json["plan"]) == (0, "Tunnel + station")
    assert len(surepick("demo").out.splitlines()) <= 24
    kinds = surepick("init", "--json").json["kinds"]
    assert len(kinds) > 8
    assert surepick("init", "tabel", "--json").error["field"] == "kind"
    for kind in ("table", "paths", "transport"):
        assert surepick("init", kind).code == 0
        assert surepick("check", f"{kind}.toml", "--rehearsals", "1").code == 0
    assert surepick("init", "table").code == 2
    assert surepick("init", "table", "--force").code == 0
    assert Path("table.toml").read_text().startswith("#:schema ./surepick.schema.json")
    assert json.loads(Path("surepick.schema.json").read_text())["oneOf"]
    assert surepick("init", "--schema").code == 2, "it is there"


LINKS = """
kind = "table"
goal = "smallest"
epsilon = 2
plans = {cable = "Depot road", radio = "Tunnel", satellite = "Bridge"}
arms = ["Depot road", "Tunnel", "Bridge", "Old town", "Harbour", "Ring west"]
noise = 1
[limit]
at_most = 10
tolerance = 1
load = {cable = "Old town", radio = "Harbour", satellite = "Ring west"}
[truth]
means = [6, 10.4, 12.9, 12.6, 9.1, 20.6]
"""


def test_the_best_plan_that_keeps_the_limit_of_a_file_is_found(folder):
    (folder / "links.toml").write_text(LINKS)
    assert surepick("check", "links.toml", "--json").json["not_measured"] == {}
    rehearsed = surepick("simulate", "links.toml", "--json").json
    assert (rehearsed["plan"], rehearsed["correct"], rehearsed["policy"]) == ("radio", True, "Limited")
    assert run("links.toml", "--policy", "Limited").code == 0
    data = view()
    assert (data["plan"], data["proved"]["claim"]) == ("radio", "own")
    assert surepick("verify").code == 0
    (folder / "links.toml").write_text(LINKS.replace("at_most = 10", "at_most = 5"))
    assert run("links.toml", "-s", "none").code == 4
    assert view("none")["proved"]["claim"] == "no_plan"


def test_plans_that_are_tied_are_all_named():
    assert run("trips.csv", "--policy", "Tied", "--epsilon", "6").code == 0
    data = view()
    assert len(data["proved"]["plans"]) >= 2
    assert all(name in data["headline"] for name in data["proved"]["plans"])
    assert {row["status"] for row in data["plans"]} >= {"leader", "tied"}
