"""The page of the command line, from the application itself."""

from __future__ import annotations

from typing import Any

import typer

from surepick.cli import app

INTRODUCTION = """\
# Command line

Every command has `--help`, and `--json` where it answers something. `FILE` is a
[problem file](../problem-files.md). Sessions are kept in `--store`, or `SUREPICK_STORE`, or `surepick.db` in
the current folder. This page is made from the program's own help.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | no: ended without certainty, does not hold, damaged |
| 2 | bad input or usage; the message says what to do |
| 3 | `ask`: the session has ended |
| 4 | `ask`: other workers hold everything that can be measured now |
"""


def page() -> str:
    """Every command with its arguments and options."""
    group: Any = typer.main.get_command(app)
    return "\n".join([INTRODUCTION, *(_section(name, one) for name, one in group.commands.items())])


def _section(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    usage = " ".join(["surepick", name, *(_usage(p) for p in arguments), *(["[OPTIONS]"] if options else [])])
    lines = [f"## {name}", "", _text(command.help), "", "```text", usage, "```", ""]
    if arguments or options:
        lines += ["| | meaning | default |", "|---|---|---|", *(_row(p) for p in [*arguments, *options]), ""]
    return "\n".join(lines)


def _usage(parameter: Any) -> str:
    name = parameter.name.upper() + ("..." if parameter.nargs == -1 else "")
    return str(name if parameter.required else f"[{name}]")


def _row(parameter: Any) -> str:
    argument = parameter.param_type_name == "argument"
    names = parameter.name.upper() if argument else ", ".join(parameter.opts)
    default = parameter.default
    shown = "" if default in (None, False, "", ...) or callable(default) else f"`{default}`"
    meaning = _text(parameter.help or "").replace("|", "/")
    return f"| `{names}` | {meaning} | {'required' if parameter.required else shown} |"


def _text(text: str) -> str:
    return text.replace("\b", "").replace("[", "\\[").strip()
