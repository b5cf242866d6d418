"""What `surepick run` makes of a user's program: which number it printed, and what the shell gets to see."""

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
NASTY += ["a b", "*", "-n", "$HOME", "x\\", "&& touch pwned", "| touch pwned", "> pwned", "tea\ncoffee"]


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize(
    "template", ["./show.sh {arm}", "./show.sh --road={arm} ; true", 'x={arm}; ./show.sh "$x"']
)
def test_a_name_is_only_a_name_to_the_shell(
    name: str, template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "show.sh"
    script.write_text('#!/bin/sh\nprintf "%s" "$1" > seen\necho 5\n')
    script.chmod(0o755)
    assert Command(template).measure(request(name)) == 5
    assert (tmp_path / "seen").read_text().removeprefix("--road=") == name
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    "template", ['echo "{arm}" 5', "echo '{arm}' 5", 'sh -c "drive {arm}"', "echo 'it'\"s {token}\""]
)
def test_a_placeholder_inside_quotes_is_refused_with_the_right_form(template: str) -> None:
    with pytest.raises(SessionError, match=r"inside quotes.*write it without, as in ./drive.sh \{"):
        Command(template)


@pytest.mark.parametrize("template", [r"echo \" {arm} 5", "echo 'a' {arm} \"b\" 5"])
def test_quotes_that_are_closed_or_escaped_are_no_matter(template: str) -> None:
    Command(template)


def test_a_command_that_begins_while_all_are_being_stopped_is_stopped_too() -> None:
    command = Command("sleep 600 # {arm}")
    command.stop()  # as when it comes between the start of a process and its being known
    with pytest.raises(MeasureError, match="failed"):
        command.measure(request("tin"))
