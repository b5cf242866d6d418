"""The command line: each command parses, makes one call and prints; a command stands in the file of its name.

`ask.py` also holds `tell`, `void` and `withdraw`, `status.py` `list` and `log`, `export.py` `import`,
`extend.py` `close`, and `verify.py` `doctor`. Options that commands share are in `options`, what they print
with is in `render`. Heavy modules are imported by the command that needs them, so that `surepick --help` is
quick.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer

from surepick.cli.advise import advise
from surepick.cli.ask import ask, tell, void, withdraw
from surepick.cli.certificate import certificate
from surepick.cli.challenge import challenge
from surepick.cli.check import check
from surepick.cli.compare import compare
from surepick.cli.demo import demo
from surepick.cli.export import export, import_
from surepick.cli.extend import add_plan, close, extend, last_call, new_epoch
from surepick.cli.init import init
from surepick.cli.limit import limit
from surepick.cli.mcp import mcp
from surepick.cli.new import new
from surepick.cli.report import report
from surepick.cli.reproduce import reproduce
from surepick.cli.run import run
from surepick.cli.serve import serve
from surepick.cli.sheet import sheet
from surepick.cli.simulate import simulate
from surepick.cli.status import list_, log, status
from surepick.cli.stdout import answers_only
from surepick.cli.verify import doctor, verify
from surepick.cli.watch import watch
from surepick.errors import ParameterError, SurepickError

app = typer.Typer(
    name="surepick",
    help="Find the best plan with the fewest measurements, and know that it is best.",
    epilog="Exit codes: 0 done; 1 no: budget spent, does not hold, damaged; 2 bad input or usage; "
    "3 the session has ended; 4 all tokens are held by others; 5 the incumbent stays.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
PLANNING: tuple[Callable[..., None], ...] = (demo, init, check, advise, simulate, compare, limit, reproduce)
SESSIONS: tuple[Callable[..., None], ...] = (
    *(new, ask, sheet, tell, void, withdraw, status, list_, log, export),
    *(import_, extend, add_plan, last_call, new_epoch, close, verify, doctor, run, challenge),
)
LOOKING: tuple[Callable[..., None], ...] = (watch, report, certificate, serve, mcp)
_NEGATIVE = {"ignore_unknown_options": True}  # so that -0.5 is a value, not an option
for _command in PLANNING:
    app.command(no_args_is_help=_command is not demo)(_command)
for _command in SESSIONS:
    app.command(_command.__name__.rstrip("_").replace("_", "-"), context_settings=_NEGATIVE)(_command)
for _command in LOOKING:
    app.command()(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        from surepick._version import __version__

        typer.echo(f"surepick {__version__}")
        raise typer.Exit


@app.callback()
def surepick(
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
            app()
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
