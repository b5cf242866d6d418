"""`serve`: the sessions in a browser, or for programs that speak MCP."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from surepick.cli.output import settings as call
from surepick.errors import missing_extra

TOKEN_VARIABLE = "SUREPICK_TOKEN"
BLACK_ON_WHITE = "\x1b[97;40m{}\x1b[0m"  # white blocks on black, whatever the terminal's own colours are
EVERYWHERE = "0.0.0.0"
Level = Literal["debug", "info", "warning"]


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8000,
    lan: Annotated[bool, typer.Option("--lan", help="Let phones and others on this network in.")] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Show sessions, change nothing.")] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help=f"Keeps the token; or set {TOKEN_VARIABLE}.", show_default="~/.local/state/surepick/token"
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A further name under which browsers may reach it.")
    ] = None,
    trust_proxy: Annotated[
        list[str] | None,
        typer.Option(help="Address or network of a proxy whose X-Forwarded headers are believed."),
    ] = None,
    log_level: Annotated[Level, typer.Option(help="warning: errors, but no requests.")] = "info",
    mcp: Annotated[bool, typer.Option("--mcp", help="Speak MCP on standard input and output.")] = False,
) -> None:
    """Open the sessions in a browser, here or on a phone.

    Open the printed link once; the browser is remembered for 30 days.

    Example: surepick serve --lan
    """
    if mcp:
        from surepick.web.mcp import make_server as make_mcp_server

        make_mcp_server(call.url).run("stdio")
        return
    try:
        from surepick.web.server import listen, make_server
        from surepick.web.settings import Settings, default_token_file, token_in
    except ModuleNotFoundError as error:
        raise missing_extra(error.name or "starlette", "web") from None

    given = None if token_file else os.environ.get(TOKEN_VARIABLE)
    token = given or token_in(token_file or default_token_file())
    settings = Settings(
        call.url,
        token,
        host=EVERYWHERE if lan else host,
        port=port,
        read_only=read_only,
        allowed_hosts=tuple(name.lower() for name in allow_host or ()),
        trusted_proxies=tuple(trust_proxy or ()),
    )
    server = make_server(settings, log_level="warning" if call.quiet else log_level)
    address = listen(settings)
    # What follows the # stays in the browser: no server, log or linked page sees it.
    link = f"{address.url}/login#token={token}"
    typer.echo(link)
    if lan and not call.quiet:
        typer.echo(f"{qr_code(link)}\n› Scan this with a phone on the same network.", err=True)
    typer.echo("› Open this link once. Ctrl-C ends the server.", err=True)
    server.run(sockets=[address.socket])


def qr_code(text: str) -> str:
    """Return the text as a QR code for the terminal, two rows of squares in each line.

    >>> len(qr_code("http://192.168.1.20:8000/login#token=abcdefghjkmnpqrstuvw").splitlines())
    19
    """
    from segno import make

    drawn = io.StringIO()
    make(text, error="m", micro=False).terminal(drawn, border=2, compact=True)
    return "\n".join(BLACK_ON_WHITE.format(line) for line in drawn.getvalue().splitlines())
