"""`init`: write a problem file that runs, to be changed into one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surepick.cli.render import console


def init(
    kind: Annotated[str, typer.Argument(help="A kind of problem: table, paths, ...; drives has probes.")],
    into: Annotated[Path, typer.Option(help="The folder to write to.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Write KIND.toml and its attachments: a commented problem that runs, to be changed into yours.

    Try: surepick init paths, then surepick check paths.toml
    """
    from surepick.inputs.starters import write_starter

    written = write_starter(kind, into, force=force)
    for path in written:
        console.print(f"wrote {path}", soft_wrap=True)
    first = written[0]
    console.print(
        f"Next: [bold]surepick check {first}[/], then [bold]surepick simulate {first}[/]", soft_wrap=True
    )
