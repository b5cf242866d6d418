"""The page of the command line, from the program's own help."""

from __future__ import annotations

from typing import Any

from surepick.cli import COMMANDS, HELP, command_of

INTRODUCTION = f"""\
# Commands

```text
{HELP}```

`--store` and `--json` work before and after the command. `-s NAME` defaults to the only session.

| exit code | meaning |
|---|---|
| 0 | done; `run`: confident |
| 1 | `verify` fails; `run` is not confident; `ask` has nothing |
| 2 | a mistake; nothing was changed |
| 3 | confident with doubts: values contradict the assumption (`run`, `status`, `verify`) |
| 4 | `run --incumbent`: the plan in use stays |
| 130 | interrupted; what was started is recorded |
"""


def page() -> str:
    """Return every command with its arguments and options."""
    return "\n".join([INTRODUCTION, *(_section(name, command_of(name)) for name in COMMANDS)])


def _section(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    usage = " ".join(["surepick", name, *(_usage(p) for p in arguments), *(["[OPTIONS]"] if options else [])])
    lines = [f"## {name}", "", _text(command.help), "", "```text", usage, "```", ""]
    if arguments or options:
        lines += ["| | meaning | default |", "|---|---|---|", *(_row(p) for p in [*arguments, *options]), ""]
    return "\n".join(lines)


def _usage(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name).upper() + ("..." if parameter.nargs == -1 else "")
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
