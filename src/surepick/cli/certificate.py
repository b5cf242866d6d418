"""`certificate`: what a session found and what it rests on, as a file for others, signed if you like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from surepick.cli.opening import open_session
from surepick.cli.options import DEFAULT_STORE, First, Named, StoreUrl
from surepick.cli.render import say


def certificate(
    session: First = None,
    named: Named = None,
    to: Annotated[Path | None, typer.Option("-o", "--to", help="A file; the terminal unless given.")] = None,
    sign: Annotated[
        Path | None, typer.Option("--sign", help="Sign it with this private Ed25519 key (PEM or OpenSSH).")
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Write the certificate of a session that has ended, as JSON; `surepick verify` checks it.

    With the log (`surepick export --format json`) it can be checked anywhere, without the store. A signature
    says who vouches for it; whoever has your public key checks it with `surepick verify --key`.
    """
    data = open_session(store, session or named, read_only=True).certificate().to_json()
    if sign is not None:
        from surepick.certificates import signing

        key = signing.read_private_key(sign, lambda: str(typer.prompt("password", hide_input=True, err=True)))
        data = signing.sign(data, key)
    text = json.dumps(data, indent=1)
    if to is None:
        say(text)
        return
    to.write_text(text + "\n", encoding="utf-8")
    typer.echo(f"written to {to}")
