"""`ask`, `tell`, `void` and `withdraw`: measurements by hand or by a program of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.doubts import Yes, ask_if_doubtful
from surepick.cli.hints import command
from surepick.cli.opening import open_session
from surepick.cli.options import ALL_HELD, DEFAULT_STORE, ENDED, NOT_SURE, Json, Name, StoreUrl, Worker
from surepick.cli.render import Typed, answer, as_typed, remark, say
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
    """Say what to measure next: a token and the name of the arm or probe, one per line.

    Of a probe with several readings their names follow.

    Asking again gives the same tokens until something is told. Exit code 1: the session has ended; 4: other
    workers hold everything that can be measured now. Both are said on standard error: standard output holds
    tokens alone.
    """
    opened = open_session(store, session)
    requests = opened.ask(n, worker=worker, wait=False)
    answer(
        lambda: {"requests": [request_to_json(request, opened) for request in requests], **state_of(opened)},
        as_json,
        lambda: _print_requests(requests, opened, store),
    )
    if not requests:
        raise typer.Exit(ALL_HELD if opened.status == "running" else ENDED)


def tell(
    token: Annotated[str, typer.Argument(help="The token, or the name of what is asked for.")],
    values: Annotated[
        list[Typed],
        typer.Argument(
            parser=as_typed,
            metavar="VALUES...",
            help="What was measured: one number or several; of a probe NAME=NUMBER for each reading.",
        ),
    ],
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

    A probe with several readings is told by their names, as in `tell 2.0 A-B=3.2 B-C=4.1`, or by numbers in
    the order that `ask` prints. Readings that are missing can be told later, unless a covariance is given.
    A value that nobody would expect is asked about first; in scripts say --yes. Exit code 1: another worker
    told the token first, and the policy does not count what nobody asked for; the value is kept.
    """
    opened = open_session(store, session)
    if key and not (unasked or picked):
        raise SessionError("--key is for unasked measurements; a token is a key already")
    if unasked or picked:
        probe = opened.problem.probe(token)
        told = _told(opened, probe, opened.problem.reads(probe), values)
        ask_if_doubtful(opened, [(probe, use) for use in told], yes=yes)
        opened.add_extra(probe, told, picked=picked, key=key)
        opened.keep_snapshot()
        counts = opened.counts_unasked and not picked
        text = f"kept; it {'counts once the open round is complete' if counts else 'decides nothing'}"
        answer({"receipt": "extra", "will_count": counts, **state_of(opened)}, as_json, lambda: say(text))
        return
    found = _token_of(opened, token)
    probe = opened.probe_of(found)
    told = _told(opened, probe, opened.readings_wanted(found), values)
    ask_if_doubtful(opened, [(probe, use) for use in told], yes=yes)
    receipt = opened.tell(found, told if isinstance(told[0], float) else told[0], worker=worker)
    opened.keep_snapshot()
    late = receipt.result == "extra"
    counts = not late or opened.counts_unasked
    shown = ", ".join(f"{one.reading}{one.reading and ' '}{one.value:g}" for one in values)
    text = f"{receipt}: {opened.problem.probe_names[probe]} = {shown}"
    if receipt.result == "partial":
        missing = ", ".join(opened.readings_wanted(found))
        text += f"; still to come under {found}: {missing} (if never, withdraw {found})"
    answer(
        lambda: {"receipt": str(receipt), "will_count": counts, **state_of(opened)},
        as_json,
        lambda: _print_told(_LATE[counts] if late else text, opened, store),
    )
    if not counts:
        raise typer.Exit(NOT_SURE)


def withdraw(
    token: Annotated[str, typer.Argument(help="A token from `ask`.")],
    reason: Annotated[str, typer.Option(help="Why, for the log.")] = "",
    worker: Annotated[str, typer.Option(help="Whose token it is, if it was asked for under a name.")] = "",
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Give a token back unmeasured; it will be handed out again. A token that another worker has is refused.

    Of a probe that was told in part, the readings that are missing count as lost, and are read again by
    another use of it. Whether a reading is lost must have nothing to do with its value.

    Try: surepick withdraw 0.0 --reason "the road is closed"
    """
    opened = open_session(store, session)
    partly = opened.told(_plain_token(token))
    opened.release(token, reason, worker=worker)
    again = f"what is missing of {token} is lost, and is asked for again under another token"
    say(again if partly else f"{token} will be handed out again")


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

    Its arm, or its probe with all readings, is asked for again. If the policy has seen the value it starts
    over and reads all others as if that one had never been. A value that is right stays, however odd: its
    size is no reason.

    Try: surepick void 0.0 --reason "typed 1200 for 12.00"
    """
    opened = open_session(store, session)
    seen = opened._remove(token, reason)
    opened.keep_snapshot()
    name = opened.problem.probe_names[opened.probe_of(token)]
    again = "; the policy had seen it, and has read the other measurements again without it" if seen else ""
    what = f"event {token}" if token.isdecimal() else token
    text = f"the value of {what} ({name}) is taken back{again}"
    answer({"seen": seen, **state_of(opened)}, as_json, lambda: _print_told(text, opened, store))


def _token_of(session: Session, given: str) -> str:
    """The token itself, or the first one that is asked for of the arm or probe with this name.

    A token that is open beats an arm of the same name: `ask` has just printed it.
    """
    held = {lease.token for lease in session.leases()}
    plain = _plain_token(given)
    if plain in held or session.is_pending(plain):
        return plain
    problem = session.problem
    if given not in problem.probe_names and plain.replace(".", "", 1).isdigit():
        return plain
    for request in session.pending(1, probe=problem.probe(given)):
        return request.token
    raise SessionError(
        f"{problem.probe_word} {given!r} is not asked for now; see `surepick ask`, or keep a measurement "
        "that nobody asked for with --unasked"
    )


def _plain_token(given: str) -> str:
    """The token as the log has it, where this is one as sheets have it."""
    from surepick.sessions.requests import Token

    try:
        return str(Token.parse(given))
    except ValueError:
        return given


def _told(session: Session, probe: int, wanted: tuple[str, ...], typed: list[Typed]) -> list[Any]:
    """What was typed, by measurement: several numbers of an arm, or the readings of one use of a probe."""
    name, reads = session.problem.probe_names[probe], session.problem.reads(probe)
    if len(reads) == 1:
        wrong = next((one.reading for one in typed if one.reading not in ("", reads[0])), None)
        if wrong is not None:
            raise SessionError(f"one measurement of {name!r} is one number, got one of {wrong!r}")
        return [one.value for one in typed]
    named = [one for one in typed if one.reading]
    names = [one.reading for one in named]
    if named and (len(named) < len(typed) or len(set(names)) < len(names)):
        raise SessionError("give every reading once, with its name, or all of them as numbers in their order")
    if named:
        return [{one.reading: one.value for one in named}]
    order = reads if len(typed) == len(reads) or len(typed) != len(wanted) else wanted
    if len(typed) != len(order):
        listed = ", ".join(order)
        raise SessionError(
            f"one use of {name!r} gives {len(reads)} readings, got {len(typed)} numbers; give "
            f"NAME=NUMBER for those that you have, or all in this order: {listed}"
        )
    return [{name: one.value for name, one in zip(order, typed, strict=True)}]


def request_to_json(request: Request, session: Session) -> dict[str, Any]:
    """A request as JSON values; of a probe with the names of the readings that are wanted."""
    word = session.given_problem.probe_word
    readings = {} if word == "arm" else {"readings": list(request.readings)}
    return {"token": request.token, word: request.probe_name, **readings, "wanted": request.wanted}


def _print_requests(requests: list[Request], session: Session, store: str) -> None:
    for request in requests:
        several = len(session.reads(request.probe)) > 1
        say(
            "\t".join(
                [request.token, request.probe_name, *([", ".join(request.readings)] if several else [])]
            )
        )
    if not requests and session.status == "running":
        remark("other workers hold everything that can be measured now; try again later")
    elif not requests:
        remark(ending(session, store))


def _print_told(what: str, session: Session, store: str) -> None:
    say(f"{what}; {how_many(session.ledger().n_told, 'measurement')} told")
    if session.status != "running":
        say(ending(session, store))


def ending(session: Session, store: str) -> str:
    """That the session has ended, with what, and where to see it."""
    from surepick.views import look, summary

    sentence = summary(look(session)).sentence
    return f"the session has ended. {sentence} See: {command('status', session, store)}"
