"""`serve`: the dashboard."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Annotated

import typer

from surepick.cli.output import settings as call
from surepick.errors import FileError, missing_extra

TOKEN_VARIABLE = "SUREPICK_TOKEN"


def serve(
    host: Annotated[
        str, typer.Option(help="Where to listen; beyond this machine it needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8321,
    write: Annotated[bool, typer.Option("--write", help="Allow measurements and new sessions.")] = False,
    token_file: Annotated[
        Path | None, typer.Option(help=f"A file with the token; or set {TOKEN_VARIABLE}.")
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let everybody in who is on this machine.")
    ] = False,
    public_url: Annotated[
        str | None,
        typer.Option(help="Behind a proxy: where browsers find it, as in https://plans.example.org."),
    ] = None,
    trust_proxy: Annotated[
        list[str] | None,
        typer.Option(help="A proxy's address or network, whose X-Forwarded-Proto and -Host are believed."),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A further name under which the server may be addressed.")
    ] = None,
    mcp: Annotated[
        bool, typer.Option("--mcp", help="Serve programs that speak MCP, over standard input and output.")
    ] = False,
) -> None:
    """Open the sessions in a browser, here or on a phone.

    Without a token of your own one is made, and the link that is printed holds it: follow it once.

    Example: surepick serve --store trips.db
    """
    if mcp:
        from surepick.cli.mcp import make_server as make_tools

        make_tools(call.url).run("stdio")
        return
    try:
        from surepick.web.server import listen, make_server
        from surepick.web.settings import Settings, is_loopback
    except ModuleNotFoundError as error:
        raise missing_extra(error.name or "fastapi", "web") from None

    token = _token(token_file)
    made = secrets.token_urlsafe() if token is None and not no_token and is_loopback(host) else None
    settings = Settings(
        call.url,
        host=host,
        port=port,
        write=write,
        token=token or made,
        allowed_hosts=tuple(name.lower() for name in allow_host or ()),
        public_url=public_url,
        trusted_proxies=tuple(trust_proxy or ()),
    )
    server, address = make_server(settings, log_requests=not call.quiet), listen(settings)
    # What follows the # stays in the browser: it is in no log, and no page that is linked to sees it.
    link = f"{settings.public_url or address.url}{'' if made is None else f'/login#token={made}'}"
    typer.echo(f"surepick dashboard at {link} (Ctrl-C ends it)")
    server.run(sockets=[address.socket])


def _token(path: Path | None) -> str | None:
    if path is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot read a token from {str(path)!r}: {error}") from None
