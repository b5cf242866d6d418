"""The command line. `COMMANDS` says which function in which module is which command.

A module is imported when its command is named, and heavy modules by the command that needs them, so that
small commands are quick. `output` has what all commands share, `screen` prints a View.
"""

from __future__ import annotations

import difflib
import importlib
import json
import re
import sys
from collections.abc import Sequence
from typing import Any

from surepick.cli.output import BAD_INPUT, INTERRUPTED, Settings, answers_only, settings, wrapped
from surepick.errors import NameTakenError, ParameterError, SurepickError, suggestion

_MODULES = {  # and their commands; the function has the command's name
    "start": ("demo", "init"),
    "check": ("check",),
    "simulate": ("simulate",),
    "run": ("run",),
    "time": ("time",),
    "new": ("new", "status"),
    "ask": ("ask", "tell"),
    "serve": ("serve",),
    "share": ("export", "verify"),
    "reproduce": ("reproduce",),
    "session": ("remove", "release", "extend", "final-batch", "close", "add-plan", "rename", "delete"),
}
COMMANDS = {  # by name: the module and the function
    f"session {name}" if module == "session" else name: (module, name.replace("-", "_"))
    for module, names in _MODULES.items()
    for name in names
}
EXPECTED = {  # names that people try, and the command that does it; a name within `session` needs no row
    "import": "tell --from FILE",
    "backup": "export -o FILE.db",
    "void": "session remove NUMBER --reason WHY",
    "report": "export -o report.html",
    "certificate": "export -o certificate.json",
    "log": "status --log",
    "list": "status",
    "watch": "status --watch",
    "sheet": "ask -o FILE.xlsx",
    "forecast": "check FILE",
    "limit": "check FILE --limit",
    "compare": "simulate FILE --policy A --policy B",
    "mcp": "serve --mcp",
    "help": "--help",
}
HELP = """\
surepick: find the best plan with the fewest measurements, and know it is best.

Usage: surepick COMMAND [--store FILE] [--json]

Start
  demo       Watch surepick choose between six routes.
  init       Write an example problem to change into yours.
  check      Show how a file was read and forecast the measurements.
  simulate   Rehearse a decision, or compare policies.
Decide with a program
  run        Call a program for each measurement until confident.
  time       Find the fastest of several commands.
Decide by hand
  new        Begin a session.
  ask        Show what to measure next, or write a measuring sheet.
  tell       Record measurements.
  status     Show the answer so far and the next step.
  serve      Open the sessions in a browser, here or on a phone.
Share and check
  export     Write a report, certificate, table or backup.
  verify     Replay a log and check every step.
More
  session    Remove a value, extend, close, add a plan, rename, delete.
  reproduce  Run the experiments of the paper and our own.
Options
  --store FILE  Where sessions are kept. [surepick.db or $SUREPICK_STORE]
  --json        Print the answer as JSON.
  -q, --quiet   No progress, no hints.
  --version

First time? surepick demo        A spreadsheet? surepick check routes.xlsx
"""
SESSION_HELP = """\
Usage: surepick session COMMAND [-s NAME] [--store FILE] [--json]

  remove NUMBER        Remove a value recorded by mistake.
  release [ARM]        Release an assigned measurement.
  extend               Tighten delta, raise the budget.
  final-batch N        Make the next N measurements the last.
  close                End a session.
  add-plan NAME PLAN   Add a plan, as in 'A + 2*Ferry'.
  rename NEW           Rename a session.
  delete               Delete a session.

Each has --help.
"""
GLOBAL = "Also: --store FILE, --json, -q, before or after the command."
GOAL = "the goal stands in the file: a row goal | smallest, or goal = 'smallest' in TOML"
NOT_OPTIONS = dict.fromkeys(("--minimize", "--minimise", "--maximize", "--maximise", "--goal"), GOAL) | {
    "--measure": "put the program after two dashes: surepick run FILE -- ./drive.sh {arm}",
    "--name": "name the session with -s",
    "--to": "name the file with -o",
}
NAME_TAKEN = "-s NAME chooses another name; surepick status shows the session that is there"
NEGATIVE = re.compile(r"-[\d.,]")  # how a negative number begins, and no option


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        with answers_only():
            code = call(sys.argv[1:])
    except SurepickError as error:  # the answer could not be written
        code = _report(type(error).__name__, error.field, str(error))
    raise SystemExit(code)


def call(arguments: Sequence[str]) -> int:
    """Run one call and return its exit code; a known error is a few plain lines, never a traceback."""
    import typer

    UsageError: Any = typer.BadParameter.__bases__[0]  # typer does not name it
    try:
        words, program = take_global_options(arguments)
        return _call(words, program)
    except UsageError as error:
        option = getattr(error, "option_name", None)
        field = option or getattr(getattr(error, "param", None), "name", None)
        return _report(
            "UsageError", field and field.lstrip("-"), error.format_message(), NOT_OPTIONS.get(option or "")
        )
    except SurepickError as error:
        hint = NAME_TAKEN if isinstance(error, NameTakenError) else None
        return _report(type(error).__name__, error.field, str(error), hint)
    except OSError as error:
        where = "" if error.filename is None else f" {str(error.filename)!r}"
        return _report("FileError", None, f"cannot read or write{where}: {error.strerror or error}")
    except (KeyboardInterrupt, EOFError, typer.Abort):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def take_global_options(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Set the global options, and return the other words, and those after two dashes."""
    settings.__dict__.update(Settings().__dict__)
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise ParameterError(f"the argument {argument!a} is not UTF-8 text") from None
    words, given = list[str](), iter(arguments)
    for word in given:
        name, equals, text = word.partition("=")
        if word == "--":
            break
        if name == "--store":
            settings.store = text if equals else next(given, "")
            if not settings.store:
                raise ParameterError("--store needs a file, as in --store trips.db", field="store")
        elif word == "--json":
            settings.json = True
        elif word in ("-q", "--quiet"):
            settings.quiet = True
        else:
            words.append(word)
    return words, list(given)


def _call(words: list[str], program: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(HELP, end="")
        return 0
    if words[0] == "--version":
        from surepick._version import __version__

        print(f"surepick {__version__}")
        return 0
    name, rest = words[0], words[1:]
    if name == "session":
        if not rest or rest[0] in ("-h", "--help"):
            print(SESSION_HELP, end="")
            return 0
        name, rest = f"session {rest[0]}", rest[1:]
    if name not in COMMANDS:
        raise ParameterError(_unknown(name), field="command")
    rest = [f" {word}" if NEGATIVE.match(word) else word for word in rest]  # so that it is taken for a value
    if name == "run":
        settings.program = program
    elif program:
        rest += ["--", *program]
    code = command_of(name).main(rest, prog_name=f"surepick {name}", standalone_mode=False)
    return code if isinstance(code, int) else 0


def _unknown(name: str) -> str:
    """Return the message for a command that does not exist."""
    inside = {one.removeprefix("session "): one for one in COMMANDS if one.startswith("session ")}
    if name.startswith("session "):
        return f"there is no command {name!r}; {suggestion(name.removeprefix('session '), inside)}"
    plain = ["session", *(one for one in COMMANDS if " " not in one)]
    close = difflib.get_close_matches(name, [*plain, *EXPECTED, *inside], n=1)
    meant = {**inside, **EXPECTED}.get(close[0] if close else "")
    advice = f"use: surepick {meant}" if meant else suggestion(name, plain)
    return f"there is no command {name!r}; {advice}"


def command_of(name: str) -> Any:
    """Return the command of this name as click knows it; its module is imported now."""
    import typer

    module, function = COMMANDS[name]
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name, epilog=GLOBAL)(getattr(importlib.import_module(f"surepick.cli.{module}"), function))
    return typer.main.get_command(app)


def _report(kind: str, field: str | None, message: str, hint: str | None = None) -> int:
    """Print an error on standard error and return the exit code."""
    if settings.json:
        found = {"class": kind, "field": field, "message": message, "hint": hint}
        print(json.dumps({"error": found}, ensure_ascii=False), file=sys.stderr)
        return BAD_INPUT
    first, *more = message.splitlines() or [""]
    print(wrapped(first, "error: "), *more, *([f"› {hint}"] if hint else []), sep="\n", file=sys.stderr)
    return BAD_INPUT
