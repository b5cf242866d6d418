"""`ask`, `tell`, `void` and `withdraw`: measurements by hand or by a program of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.doubts import Yes, ask_if_doubtful
from surepick.cli.hints import command
from surepick.cli.opening import open_session
from surepick.cli.options import ALL_HELD, DEFAULT_STORE, ENDED, NOT_SURE, Json, Name, StoreUrl, Worker
from surepick.cli.render import answer, as_number, remark, say
from surepick.cli.status import state_of
from surepick.core.wording import how_many
from surepick.errors import SessionError

if TYPE_CHECKING:
    from surepick.sessions.requests import Request
    from surepick.sessions.session import Session


_LATE = {
    True: "late: another worker told this token first; your value is kept, and counts as one that nobody "
    "asked for once the open round is complete",
    False: "late: another worker told this token first; your value is kept and decides nothing, since this "
    "policy counts no measurements that it did not ask for",
}


def ask(
    n: Annotated[int, typer.Option("-n", help="How many measurements.")] = 1,
    worker: Worker = "",
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Say what to measure next: a token and the name of the arm, one per line.

    Asking again gives the same tokens until something is told. Exit code 3: the session has ended; 4: other
    workers hold everything that can be measured now. Both are said on standard error: standard output holds
    tokens alone.
    """
    opened = open_session(store, session)
    requests = opened.ask(n, worker=worker, wait=False)
    answer(
        lambda: {"requests": [_request(request) for request in requests], **state_of(opened)},
        as_json,
        lambda: _print_requests(requests, opened, store),
    )
    if not requests:
        raise typer.Exit(ALL_HELD if opened.status is None else ENDED)


def tell(
    token: Annotated[str, typer.Argument(help="The token, or the name of an arm that is asked for.")],
    values: Annotated[
        list[float], typer.Argument(parser=as_number, help="What was measured: one number or several.")
    ],
    mean_of: Annotated[
        int | None, typer.Option(help="Treat VALUES as the mean of this many measurements.")
    ] = None,
    unasked: Annotated[
        bool,
        typer.Option(
            "--unasked", help="A measurement that nobody asked for; counted if the policy's proof allows it."
        ),
    ] = False,
    picked: Annotated[
        bool, typer.Option("--picked", help="Chosen after looking at values: kept and never counted.")
    ] = False,
    key: Annotated[
        str, typer.Option(help="Idempotency key: recording the same key again keeps a single copy.")
    ] = "",
    yes: Yes = False,
    worker: Worker = "",
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Record what was measured; it is on disk when the command ends. Try: surepick tell 0.0 12.5

    A value that nobody would expect is asked about first; in scripts say --yes. Exit code 1: another worker
    told the token first, and the policy does not count what nobody asked for; the value is kept.
    """
    opened = open_session(store, session)
    if key and not (unasked or picked):
        raise SessionError("--key is for unasked measurements; a token is a key already")
    if unasked or picked:
        ask_if_doubtful(opened, [(token, value) for value in values], yes=yes)
        opened.record(token, values, picked=picked, key=key)
        opened.keep_snapshot()
        counts = opened.counts_unasked and not picked
        text = f"kept; it {'counts once the open round is complete' if counts else 'decides nothing'}"
        answer({"receipt": "unasked", "will_count": counts, **state_of(opened)}, as_json, lambda: say(text))
        return
    found = _token_of(opened, token)
    ask_if_doubtful(opened, [(opened.arm_of(found), value) for value in values], yes=yes)
    if mean_of is not None:
        if len(values) != 1:
            raise SessionError(f"--mean-of takes one number, the mean, got {len(values)}")
        receipt = opened.tell(found, mean=values[0], count=mean_of, worker=worker)
    else:
        receipt = opened.tell(found, values, worker=worker)
    opened.keep_snapshot()
    late = receipt == "late"
    counts = not late or (mean_of is None and opened.counts_unasked)
    told = f"{opened.problem.arm_names[opened.arm_of(found)]} = {', '.join(f'{value:g}' for value in values)}"
    answer(
        lambda: {"receipt": str(receipt), "will_count": counts, **state_of(opened)},
        as_json,
        lambda: _print_told(_LATE[counts] if late else f"{receipt}: {told}", opened, store),
    )
    if not counts:
        raise typer.Exit(NOT_SURE)


def withdraw(
    token: Annotated[str, typer.Argument(help="A token from `ask`.")],
    reason: Annotated[str, typer.Option(help="Why, for the log.")] = "",
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Give a token back unmeasured; it will be handed out again."""
    open_session(store, session).withdraw(token, reason)
    say(f"{token} will be handed out again")


def void(
    token: Annotated[
        str,
        typer.Argument(
            help="The token whose value was a mistake; of an unasked one the number that `log` has."
        ),
    ],
    reason: Annotated[str, typer.Option(help="What went wrong, for the log.")],
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Take back a value that was no measurement: a slip of the pen, the wrong road. The log keeps both.

    Its arm is asked for again. If the policy has seen the value it starts over and reads all others as if
    that one had never been. A value that is right stays, however odd: its size is no reason.

    Try: surepick void 0.0 --reason "typed 1200 for 12.00"
    """
    opened = open_session(store, session)
    seen = opened.void(token, reason)
    opened.keep_snapshot()
    arm = opened.problem.arm_names[opened.arm_of(token)]
    again = "; the policy had seen it, and has read the other measurements again without it" if seen else ""
    what = f"event {token}" if token.isdecimal() else token
    text = f"the value of {what} ({arm}) is taken back{again}"
    answer({"seen": seen, **state_of(opened)}, as_json, lambda: _print_told(text, opened, store))


def _token_of(session: Session, given: str) -> str:
    """The token itself, or the first one that is asked for of the arm with this name.

    A token that is open beats an arm of the same name: `ask` has just printed it.
    """
    held = {lease.token for lease in session.leases()}
    pending = session.pending()
    plain = _plain_token(given)
    if plain in held or any(request.token == plain for request in pending):
        return plain
    if given not in session.problem.arm_names and plain.replace(".", "", 1).isdigit():
        return plain
    arm = session.problem.arm(given)
    for request in pending:
        if request.arm == arm:
            return request.token
    raise SessionError(
        f"arm {given!r} is not asked for now; see `surepick ask`, or keep a measurement that nobody asked "
        "for with --unasked"
    )


def _plain_token(given: str) -> str:
    """The token as the log has it, where this is one as sheets have it."""
    from surepick.sessions.requests import Token

    try:
        return str(Token.parse(given))
    except ValueError:
        return given


def _request(request: Request) -> dict[str, Any]:
    return {"token": request.token, "arm": request.arm_name, "wanted": request.wanted}


def _print_requests(requests: list[Request], session: Session, store: str) -> None:
    for request in requests:
        say(f"{request.token}\t{request.arm_name}")
    if not requests and session.status is None:
        remark("other workers hold everything that can be measured now; try again later")
    elif not requests:
        remark(ending(session, store))


def _print_told(what: str, session: Session, store: str) -> None:
    say(f"{what}; {how_many(session.ledger().n_told, 'measurement')} told")
    if session.status is not None:
        say(ending(session, store))


def ending(session: Session, store: str) -> str:
    """That the session has ended, with what, and where to see it."""
    from surepick.views import look, summary

    sentence = summary(look(session)).sentence
    return f"the session has ended. {sentence} See: {command('status', session, store)}"
