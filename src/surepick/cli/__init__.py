"""The command line: each command parses, makes one call and prints; a command stands in the file of its name.

`ask.py` also holds `tell`, `void` and `withdraw`, `status.py` `list` and `log`, `export.py` `import`,
`extend.py` `close`, and `doctor.py` `backup`. Options that commands share are in `options`, what they print
with is in `render`. A command's module is imported when it is named, and heavy modules by the command that
needs them, so that small commands are quick.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any

import typer
from typer.core import TyperCommand

from surepick.cli.stdout import answers_only
from surepick.errors import ParameterError, SurepickError, suggestion

# The functions of the commands, in the order of the help, by the kind of work; and who has another's file.
_PLANNING = "demo init check simulate compare limit reproduce"
_SESSIONS = (
    "new ask sheet tell void withdraw status list_ log export import_ extend add_plan last_call new_epoch "
    "close verify doctor backup run challenge aa"
)
_LOOKING = "watch report certificate serve mcp"
_KINDS = {"PLANNING": _PLANNING, "SESSIONS": _SESSIONS, "LOOKING": _LOOKING}
_ELSEWHERE = {
    **dict.fromkeys(("tell", "void", "withdraw"), "ask"),
    **dict.fromkeys(("list_", "log"), "status"),
    **dict.fromkeys(("add_plan", "last_call", "new_epoch", "close"), "extend"),
    "import_": "export",
    "backup": "doctor",
}


def __getattr__(name: str) -> Any:
    """`app`, the whole command line; PLANNING, SESSIONS and LOOKING, the functions of its commands."""
    if name == "app":
        value: Any = make_app(" ".join(_KINDS.values()).split())
    elif name in _KINDS:
        value = tuple(map(_function, _KINDS[name].split()))
    else:
        raise AttributeError(f"module 'surepick.cli' has no attribute {name!r}")
    globals()[name] = value
    return value


_GOAL = (
    "which plan is best stands in the file: a row goal,smallest in a spreadsheet, goal = 'smallest' in TOML"
)
_HINTS = dict.fromkeys(("--minimize", "--minimise", "--maximize", "--maximise", "--goal"), _GOAL)


class _Command(TyperCommand):
    """A command that takes -0.5 as a value; words with two dashes must be options all the same."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The words of the command, once those that look like options are known to be some."""
        own: dict[str, bool] = dict.fromkeys(ctx.help_option_names, False)  # whether a value follows
        for option in self.params:
            if option.param_type_name == "option":
                follows = not getattr(option, "is_flag", False)
                own.update(dict.fromkeys((*option.opts, *option.secondary_opts), follows))
        words = iter(args)
        for word in words:
            name, given, _ = word.partition("=")
            if word == "--":
                break
            if own.get(name) and not given:
                next(words, None)
            elif word.startswith("--") and name not in own:
                ctx.fail(f"There is no option {name}; {_HINTS.get(name) or _nearest(name, own)}")
        ctx.ignore_unknown_options = True
        return super().parse_args(ctx, args)


def _nearest(name: str, options: Iterable[str]) -> str:
    """The option that was meant, perhaps; the dashes that all of them have say nothing.

    >>> _nearest("--reson", ["--reason", "--json"]), _nearest("--count", ["--json", "--store", "-n"])
    ("did you mean '--reason'?", "known: '--json', '--store', '-n'")
    """
    by_word = {option.lstrip("-"): option for option in options}
    said = suggestion(name.lstrip("-"), by_word)
    for word, option in by_word.items():
        said = said.replace(repr(word), repr(option))
    return said


def make_app(functions: Iterable[str]) -> typer.Typer:
    """The command line with these commands; only their modules are imported."""
    app = typer.Typer(
        name="surepick",
        help="Find the best plan with the fewest measurements, and know that it is best.",
        epilog="Exit codes: 0 done; 1 no: budget spent, session ended, does not hold, damaged; 2 bad input; "
        "3 confident with doubts: the guarantee does not apply; 4 other workers hold all requests; "
        "5 the incumbent stays.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        callback=_surepick,
    )
    for name in functions:
        needs_words = name in _PLANNING.split() and name != "demo"
        app.command(_command_name(name), cls=_Command, no_args_is_help=needs_words)(_function(name))
    return app


def _function(name: str) -> Callable[..., None]:
    module = importlib.import_module(f"surepick.cli.{_ELSEWHERE.get(name, name)}")
    function: Callable[..., None] = getattr(module, name)
    return function


def _command_name(function: str) -> str:
    return function.rstrip("_").replace("_", "-")


def _wanted(arguments: list[str]) -> list[str]:
    """The function of the command that is named, so that no other is made; all where none is."""
    functions = " ".join(_KINDS.values()).split()
    named = [name for name in functions if arguments and _command_name(name) == arguments[0]]
    return named or functions


def _print_version(wanted: bool) -> None:
    if wanted:
        from surepick._version import __version__

        typer.echo(f"surepick {__version__}")
        raise typer.Exit


def _surepick(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Find the best plan with the fewest measurements, and know that it is best.

    New here? **surepick demo** decides a transport problem between eighteen cities while you watch.
    """


def _refuse_odd_letters(arguments: list[str]) -> None:
    """Refuse arguments that are not text in the terminal's encoding; no store or file could keep them."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise ParameterError(f"the argument {argument!a} is not UTF-8 text; write it again") from None


def main() -> None:
    """Run the command line; a known error is one clear line, never a traceback."""
    try:
        _refuse_odd_letters(sys.argv[1:])
        with answers_only():
            make_app(_wanted(sys.argv[1:]))()
    except SurepickError as error:
        print(f"surepick: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        where = "" if error.filename is None else f" {str(error.filename)!r}"
        print(f"surepick: cannot read or write{where}: {error.strerror or error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("surepick: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
