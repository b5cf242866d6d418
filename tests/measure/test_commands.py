"""Programs that measure: which number they printed, and what a name can do."""

import shlex
import subprocess

import pytest

from common import refuses
from surepick.errors import MeasureError, ParameterError
from surepick.measure.commands import Command, one_number, readings
from surepick.sessions.leases import Request


def request(name):
    return Request("0.7", 0, name, 1, "", 0.0)


@pytest.mark.parametrize(
    ("output", "value"),
    [("3", 3.0), ("run 3 of 4\n-2.5e3\n\n", -2500.0), (" .5 ", 0.5), ("+1e-3", 0.001), ("12.", 12.0)],
)
def test_the_last_line_is_the_value(output, value):
    assert one_number(output, "tin") == value


# among them a minus sign that is not the keyboard's, and digits of another script
NO_NUMBERS = ["", "5 \u00b1 0.2", "12:30", "3,5", "1 234", "12.5h", "\u22125", "\u0661\u0662", "1_000", "nan"]


@pytest.mark.parametrize("output", [*NO_NUMBERS, "1e999", "5\ndone"])
def test_what_is_not_one_number_is_refused(output):
    with pytest.raises(MeasureError):
        one_number(output, "tin")


def test_several_readings_are_a_json_object_on_the_last_line():
    wanted = ["A-B", "B-C"]
    assert readings('warm\n{"B-C": 4, "time": 7, "A-B": 3.2}\n', "loop", wanted) == {"A-B": 3.2, "B-C": 4.0}


@pytest.mark.parametrize("output", ["3.2 4.1", "[3.2, 4.1]", '{"A-B": 3.2}', "[" * 100_000])
def test_readings_in_any_other_form_are_refused(output):
    with pytest.raises(MeasureError):
        readings(output, "loop", ["A-B", "B-C"])


@pytest.mark.parametrize("value", ['"4"', "true", "NaN", "null"])
def test_a_reading_that_is_no_number_is_refused(value):
    with pytest.raises(MeasureError):
        readings(f'{{"A-B": 3.2, "B-C": {value}}}', "loop", ["A-B", "B-C"])


NASTY = ["$(touch pwned)", "`touch pwned`", "; touch pwned #", "'; touch pwned; '", '"; touch pwned; "']
NASTY += ["a b", "*", "-n", "--help", "$HOME", "x\\", "&& touch pwned", "| touch pwned", "> pwned"]
NASTY += ["tea\ncoffee", "tea\n$(touch pwned)", "-c touch${IFS}pwned", "\ttouch pwned", "{seed}"]


@pytest.mark.parametrize(
    "template",
    [
        "./show.sh {arm}",
        "./show.sh --road={arm}",
        './show.sh "--road={arm}"',
        "sh -c './show.sh \"$1\"' -- {arm}",
        "env ROAD={arm} sh -c './show.sh \"$ROAD\"'",
    ],
)
def test_a_name_is_only_a_name(template, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "show.sh").write_text('#!/bin/sh\nprintf "%s" "$1" > seen\necho 5\n')
    (tmp_path / "show.sh").chmod(0o755)
    for name in NASTY:
        assert Command(shlex.split(template)).measure(request(name)) == 5
        assert (tmp_path / "seen").read_text().removeprefix("--road=") == name
        assert sorted(path.name for path in tmp_path.iterdir()) == ["seen", "show.sh"], name


def test_the_control_with_a_shell_runs_what_a_name_says(tmp_path, monkeypatch):
    """The same names as text of a shell: what the test above looks for does happen there."""
    monkeypatch.chdir(tmp_path)
    ran = 0
    for name in NASTY:
        subprocess.run(f"echo {name} 5", shell=True, check=False, capture_output=True)
        ran += (tmp_path / "pwned").exists()
        (tmp_path / "pwned").unlink(missing_ok=True)
    assert ran >= 6


@pytest.mark.parametrize(
    "template",
    [
        "./drive.sh {road}",
        "./drive.sh {arm} | tail -1",
        "cd x && ./drive.sh {arm}",
        "sh -c './drive.sh {arm}'",
        "/bin/bash -ec {arm}",
        "ssh -p 22 lab ./drive.sh --road {arm}",
        "eval ./drive.sh {probe}",
    ],
)
def test_a_command_that_needs_a_shell_or_feeds_one_is_refused(template):
    with refuses("measure", ParameterError):
        Command(shlex.split(template))


def test_the_environment_has_the_name_and_a_seed_of_its_own(tmp_path):
    script = tmp_path / "show.sh"
    seen = '"$SUREPICK_ARM/$SUREPICK_PROBE/$SUREPICK_SEED/$SUREPICK_READINGS/$1"'
    script.write_text(f'#!/bin/sh\nprintf "%s" {seen} > "$0.seen"\necho 5\n')
    script.chmod(0o755)
    Command([str(script), "-s{seed}"]).measure(request("$(tin)"))
    assert (tmp_path / "show.sh.seen").read_text() == "$(tin)/$(tin)/28/value/-s28"


def test_a_command_that_begins_while_all_are_being_stopped_is_stopped_too():
    command = Command(["sleep", "600", "{arm}"])
    command.stop()  # as when it comes between the start of a process and its being known
    with pytest.raises(MeasureError):
        command.measure(request("0"))


@pytest.mark.parametrize(
    ("program", "name"), [("echo", "a\0b"), ("echo", "half \ud800 a letter"), ("./not-there", "tin")]
)
def test_a_program_that_cannot_be_started_is_a_failed_measurement(program, name):
    with pytest.raises(MeasureError):
        Command([program, "{arm}", "5"]).measure(request(name))
