"""The command line: each command parses, makes one call and prints."""

from __future__ import annotations

import sys

import typer

from surepick.cli import sessions, watching
from surepick.cli.advising import advise
from surepick.cli.decisions import compare, demo, limit, simulate
from surepick.cli.files import check, init
from surepick.cli.output import answers_only
from surepick.cli.reproduce import reproduce
from surepick.cli.serving import serve
from surepick.errors import SurepickError

app = typer.Typer(
    name="surepick",
    help="Find the best plan with the fewest measurements, and know that it is best.",
    epilog="Exit codes: 0 done; 1 no: budget spent, does not hold, damaged; 2 bad input or usage; "
    "3 the session has ended; 4 all tokens are held by others.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
for _command in (demo, init, check, advise, simulate, compare, limit, reproduce):
    app.command(no_args_is_help=_command is not demo)(_command)
sessions.register(app)
watching.register(app)
app.command()(serve)


def _print_version(wanted: bool) -> None:
    if wanted:
        from surepick._version import __version__

        typer.echo(f"surepick {__version__}")
        raise typer.Exit


@app.callback()
def surepick(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Show it."),
) -> None:
    """Find the best plan with the fewest measurements, and know that it is best.

    New here? **surepick demo** decides a transport problem between eighteen cities while you watch.
    """


def main() -> None:
    """Run the command line; a known error is one clear line, never a traceback."""
    try:
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
