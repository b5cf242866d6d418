"""What `surepick run` makes of a user's program: which number it printed, and what the shell gets to see."""

import subprocess
from pathlib import Path

import pytest

from surepick.cli.measure import Command, MeasureError, last_number
from surepick.errors import SessionError
from surepick.sessions.requests import Request


def request(name: str) -> Request:
    return Request("0.0", 0, name, 1, "", 0.0)


@pytest.mark.parametrize(
    ("output", "value"),
    [
        ("3", 3.0),
        ("a 1\nb -2.5e3\n", -2500.0),
        ("x=.5;", 0.5),
        ("v1.2 took 7 s", 7.0),
        ("took 4s 8", 8.0),
        ("12.5,13.5", 13.5),
        ("12,5", 12.5),
        ("run 3: 2,5 h\n", 2.5),
        ("value=-0,125", -0.125),
        ("1, 2, 3", 3.0),
        ("(3,4) gives 5.5", 5.5),
        ("[12.5]", 12.5),
        ("$12.50.", 12.5),
        ("value: 1e-3", 0.001),
    ],
)
def test_the_last_number_printed_is_the_value(output: str, value: float) -> None:
    assert last_number(output, "tin") == value


@pytest.mark.parametrize(
    "output",
    [
        "(12,5)",
        "took 1,234.5",
        "x=1,2,3\n",
        "1,234",
        "\u22125",  # a minus sign that is not the keyboard's
        "1'234.5",
        "1\u2019234.5",
        "1\u00a0234.5",
        "1\u202f234",
        "took 1 234.5",
        "12.5\u00b12",
        "12.5+-2",
        "run 3 took 12.5h",
        "1/2",
        "0x1F",
        "1_000",
        "12..5",
        "5-",
        "--5",
        "\u0661\u0662",  # digits of another script
        "10^3",
    ],
)
def test_what_is_not_plainly_one_number_is_refused_with_what_to_print(output: str) -> None:
    with pytest.raises(MeasureError, match="not plainly one number; print the value last") as caught:
        last_number(output, "tin")
    assert repr(output.strip()) in str(caught.value)


@pytest.mark.parametrize("output", ["nan", "took inf", "-infinity"])
def test_numbers_that_are_not_finite_are_refused(output: str) -> None:
    with pytest.raises(MeasureError, match="not a finite number"):
        last_number(output, "tin")


NASTY = ["$(touch pwned)", "`touch pwned`", "; touch pwned #", "'; touch pwned; '", '"; touch pwned; "']
NASTY += ["a b", "*", "-n", "--help", "$HOME", "x\\", "&& touch pwned", "| touch pwned", "> pwned"]
NASTY += ["tea\ncoffee", "tea\n$(touch pwned)", "-c touch${IFS}pwned", "\ttouch pwned", "{token}"]
# Each form that a template takes, and how the program gets the name then.
TAKEN = [
    "./show.sh {arm}",
    "./show.sh --road={arm}",
    "./show.sh --road={arm} ; true",
    'x={arm}; ./show.sh "$x"',
    "echo $(./show.sh {arm})",
    "echo `./show.sh {arm}`",
    "(./show.sh {arm}) && true || touch never",
    "sh -c './show.sh \"$1\"' -- {arm}",
    "./show.sh {arm} 2>&1 # and {arm}",
    "printf '%s' {arm} | ./read.sh",
    "./read.sh <<END\n$SUREPICK_ARM\nEND",
    "env ROAD={arm} sh -c './show.sh \"$ROAD\"'",
    'if test -n {arm}; then ./show.sh "$SUREPICK_ARM"; fi # {index}',
]
INSIDE_QUOTES = [
    'echo "{arm}" 5',
    "echo '{arm}' 5",
    'sh -c "drive {arm}"',
    "sh -c 'drive {arm}'",
    'echo "$(drive {arm})"',
    'ssh host "drive {arm}"',
    "echo 'it'\"s {token}\"",
    "echo $'{arm}' 5",
    "echo \\{arm} 5",
]
READ_AGAIN = [
    "eval drive {arm}",
    "sh -c {arm}",
    "bash -ec {arm}",
    "/bin/sh -c {arm}; echo 5",
    "ssh host ./drive.sh {arm}",
    "true && ssh -p 22 host ./drive.sh --road {arm}",
]


@pytest.mark.parametrize("template", TAKEN)
def test_a_name_is_only_a_name_to_the_shell(
    template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for script, seen in (("show.sh", 'printf "%s" "$1"'), ("read.sh", "cat")):
        (tmp_path / script).write_text(f"#!/bin/sh\n{seen} > seen\necho 5\n")
        (tmp_path / script).chmod(0o755)
    if "{" not in template:
        template += " # {arm}" if "END" not in template else "\n: {arm}"
    for name in NASTY:
        assert Command(template).measure(request(name)) == 5
        seen = (tmp_path / "seen").read_text().removeprefix("--road=")
        assert (seen[:-1] if "<<END" in template else seen) == name
        assert sorted(path.name for path in tmp_path.iterdir()) == ["read.sh", "seen", "show.sh"], name


@pytest.mark.parametrize("template", INSIDE_QUOTES)
def test_a_placeholder_inside_quotes_is_refused_with_the_right_form(template: str) -> None:
    with pytest.raises(SessionError, match=r"inside quotes.*write it without, as in ./drive.sh \{"):
        Command(template)


@pytest.mark.parametrize("template", READ_AGAIN)
def test_a_name_that_another_shell_would_read_is_refused_with_the_right_form(template: str) -> None:
    with pytest.raises(SessionError, match=r"where a shell reads it as a command.*printf %s \{arm\} \| ssh"):
        Command(template)
    Command(template.replace("{arm}", "{index}"))  # a number is no command
    Command("printf %s {arm} | ssh host 'read -r arm; ./drive.sh \"$arm\"'")


def test_the_control_without_quoting_runs_what_a_name_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same names where they do become text of the shell: what the tests above look for does happen."""
    monkeypatch.chdir(tmp_path)
    ran = 0
    for name in NASTY:
        subprocess.run(f"echo {name} 5", shell=True, check=False, capture_output=True)
        ran += (tmp_path / "pwned").exists()
        (tmp_path / "pwned").unlink(missing_ok=True)
    assert ran >= 6


@pytest.mark.parametrize("template", [r"echo \" {arm} 5", "echo 'a' {arm} \"b\" 5"])
def test_quotes_that_are_closed_or_escaped_are_no_matter(template: str) -> None:
    Command(template)


def test_a_command_that_begins_while_all_are_being_stopped_is_stopped_too() -> None:
    command = Command("sleep 600 # {arm}")
    command.stop()  # as when it comes between the start of a process and its being known
    with pytest.raises(MeasureError, match="failed"):
        command.measure(request("tin"))


@pytest.mark.parametrize("name", ["a\0b", "half \ud800 a letter"])
def test_a_name_that_no_program_can_be_given_is_refused_in_words(name: str) -> None:
    with pytest.raises(MeasureError, match="cannot be handed to a program"):
        Command("echo {arm} 5").measure(request(name))
