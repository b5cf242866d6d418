"""What every command shares: global settings, exit codes, options, and printing.

Standard output has the answer alone. Hints, progress and warnings go to standard error.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.core.wording import first_of, shortened
from surepick.errors import FileError, ParameterError

if TYPE_CHECKING:
    from surepick.problems.truth import Truth
    from surepick.sessions.session import Session
    from surepick.store import Store
    from surepick.views.view import View

WIDTH = 80
LONGEST_NAME = 60  # letters of a plan or arm
NO_BREAK = "\N{NO-BREAK SPACE}"
DONE, NO, BAD_INPUT, DOUBTFUL, NOTHING_TO_TAKE, INTERRUPTED = 0, 1, 2, 3, 4, 130  # exit codes
DEFAULT_STORE = "surepick.db"
A_MINUTE = 60.0  # seconds between two lines of progress where standard error is no terminal

File = Annotated[Path, typer.Argument(help="A spreadsheet (.xlsx, .csv) or problem file (.toml, .json).")]
MaybeFile = Annotated[Path | None, typer.Argument(help="As for check; not needed to continue a session.")]
Delta = Annotated[float | None, typer.Option(help="How often the answer may be wrong. [0.05]")]
Epsilon = Annotated[float | None, typer.Option(help="The difference that does not matter. [0]")]
Budget = Annotated[int | None, typer.Option(help="The most measurements. [no limit]")]
Low = Annotated[float | None, typer.Option(help="No value is below this. [the file's]")]
High = Annotated[float | None, typer.Option(help="No value is above this: no noise is assumed.")]
Name = Annotated[str | None, typer.Option("-s", "--session", help="Which session. [the only one]")]
Policy = Annotated[str | None, typer.Option(help="Chooses measurements, as in CombGapE. [BetGapE]")]
Worker = Annotated[str, typer.Option(help="Who measures.")]


@dataclass
class Settings:
    """The global options of this call; `main` sets them before the command runs."""

    store: str | None = None  # as it was given
    json: bool = False
    quiet: bool = False
    program: list[str] = field(default_factory=list)  # after two dashes: what `run` calls

    @property
    def url(self) -> str:
        """The address of the store; a file name stands for a SQLite file."""
        given = self.store or os.environ.get("SUREPICK_STORE") or DEFAULT_STORE
        return given if "://" in given else f"sqlite:///{given}"


settings = Settings()


# What is printed


def answer(data: Any, text: str | Sequence[str]) -> None:
    """Print the answer: with --json the data, else the text, a string or lines."""
    if settings.json:
        from surepick.views.view import to_json

        print(json.dumps(to_json(data() if callable(data) else data), ensure_ascii=False, default=str))
    else:
        print(text if isinstance(text, str) else "\n".join(text))
    sys.stdout.flush()


def note(text: str) -> None:
    """Print a warning or remark on standard error."""
    print(wrapped(text, "! "), file=sys.stderr)


def hint(command: str, what: str = "Next", *, session: str | None = None) -> None:
    """Print what to type next on standard error, with the store and session that were given."""
    if not (settings.quiet or settings.json):
        label = what if what.endswith("?") else f"{what}:"
        print(f"› {label} {with_options(command, session)}", file=sys.stderr)


def with_options(command: str, session: str | None = None) -> str:
    """Return the command with the --store and -s that this call was given; for `new`, -s means another name.

    >>> with_options("surepick ask", "my trips"), with_options("surepick new FILE --prior a", "a")
    ("surepick ask -s 'my trips'", 'surepick new FILE --prior a')
    """
    if session is not None and not command.startswith("surepick new"):
        command += f" -s {shlex.quote(session)}"
    return command if settings.store is None else f"{command} --store {shlex.quote(settings.store)}"


def wrapped(text: str, label: str = "", indent: int | None = None) -> str:
    """Return the text within 80 columns behind its label, further lines indented.

    >>> wrapped("word " * 20, "Proved: ").splitlines()[1][:12]
    '        word'
    """
    space = " " * (len(label) if indent is None else indent)
    lines = textwrap.fill(text, WIDTH, initial_indent=label, subsequent_indent=space, break_long_words=False)
    return lines.replace(NO_BREAK, " ")


def unbroken(names: Iterable[str]) -> list[str]:
    """Return the names such that `wrapped` breaks lines between them, never within one."""
    return [shortened(name, LONGEST_NAME).replace(" ", NO_BREAK) for name in names]


class Progress:
    """A line on standard error: in place on a terminal, otherwise once a minute. Ends with the block."""

    def __init__(self) -> None:
        self._in_place, self._shown = sys.stderr.isatty(), ""
        self._next = 0.0 if self._in_place else time.monotonic() + A_MINUTE

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._in_place and self._shown:
            print("\r" + " " * len(self._shown) + "\r", end="", file=sys.stderr, flush=True)
            self._shown = ""

    @property
    def is_due(self) -> bool:
        """Whether it is time for another line."""
        return not settings.quiet and time.monotonic() >= self._next

    def say(self, line: str) -> None:
        """Show this line, if it is time for one and it is another."""
        if not self.is_due or line == self._shown:
            return
        self._next = time.monotonic() + (0.2 if self._in_place else A_MINUTE)
        line = line[: WIDTH - 1]
        end = "" if self._in_place else "\n"
        start = "\r" if self._in_place else ""
        print(f"{start}{line:<{len(self._shown)}}", end=end, file=sys.stderr, flush=True)
        self._shown = line

    def count(self, what: str) -> Any:
        """Return a callback (done, total) that says how far this work is."""
        return lambda done, total: self.say(f"{what}: {done} of {total}")


# Files, stores, sessions


def load_file(file: Path) -> Truth:
    """Return the problem of this file, with its guess and truth."""
    from surepick.inputs.load import read_problem

    with Progress() as progress:
        return read_problem(file, progress=progress.count("finding plans"))


def open_place(*, create: bool = False) -> Store:
    """Return the store of this call."""
    from surepick.store import open_store

    return open_store(settings.url, create=create)


def open_session(name: str | None, *, read_only: bool = False) -> Session:
    """Return the session of this name, or the only one of the store."""
    from surepick.sessions.session import Session

    place = open_place()
    return Session.load(place, name or only_name(place), read_only=read_only)


def only_name(place: Store) -> str:
    """Return the name of the only session of a store."""
    names = place.names()
    if len(names) == 1:
        return names[0]
    if not names:
        raise ParameterError(f"{place_name(place)} has no session; begin one: surepick new FILE")
    raise ParameterError(
        f"{place_name(place)} has {len(names)} sessions; choose one with -s: {first_of(names)}",
        field="session",
    )


def name_for_hints(session: Session, given: str | None) -> str | None:
    """Return what -s has to say in the next command: the name that was given, or that of one of several."""
    return session.name if given is None and len(session.store.names()) > 1 else given


def place_name(place: Store) -> str:
    """Return what people call the store: its file, or its address without a password."""
    return str(place.place).removeprefix("sqlite:///")


def show(view: View, lines: Sequence[str], name: str | None, data: Any = None) -> None:
    """Print what a command did to a session and the next step; with --json the View, or other data."""
    answer(view if data is None else data, lines)
    next_step(view, name)


def next_step(view: View, name: str | None) -> None:
    """Print the next command, behind "Next" or, where it is no matter of course, behind what it does."""
    from surepick.views.view import upper

    is_plain = view.trusted and view.state in ("running", "confident")
    for step in view.next[:1]:
        hint(step.command, "Next" if is_plain else upper(step.text), session=name)


def show_remarks(view: View) -> None:
    """Print what to know before relying on the answer."""
    if not (settings.json or settings.quiet):
        for remark in view.remarks[:4]:
            note(remark.text)


def where(view: View) -> list[str]:
    """Return a line about the open measurements, or about the end of the session."""
    if view.state != "running":
        return [f"{view.session} is {view.state}: {view.headline}."]
    return [wrapped(f"{first_of(unbroken(one.arm for one in view.open), 6)}.", "Open: ")] if view.open else []


def refuse_existing(file: Path, *, force: bool) -> None:
    """Refuse to replace a file unless that was asked for."""
    if file.exists() and not force:
        raise FileError(f"{str(file)!r} is already there; move it away, or name another", field="o")


@contextmanager
def answers_only() -> Iterator[None]:
    """Let `sys.stdout` alone reach standard output; what else is written there goes to standard error.

    HiGHS, which solves linear programs, writes to file descriptor 1 on some of them, which would spoil JSON.
    """
    given = sys.stdout
    if not _owns_streams():
        yield
        return
    given.flush()
    buffering = 1 if given.isatty() else -1
    # `sys.stdout` writes to a copy of descriptor 1, which itself leads to standard error meanwhile
    answers = os.fdopen(os.dup(1), "w", encoding=given.encoding, errors=given.errors, buffering=buffering)
    sys.stdout = answers
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout = given
        os.dup2(answers.fileno(), 1)  # as it was
        try:
            answers.close()
        except BrokenPipeError:  # a reader such as `head` had enough
            raise SystemExit(1) from None
        except OSError as error:
            raise FileError(
                f"the answer cannot be written to standard output ({error.strerror}); send it elsewhere; "
                "what the command recorded stays recorded"
            ) from None


def _owns_streams() -> bool:
    """Return whether standard output and error are the process's own rather than a test's."""
    try:
        return sys.stdout.fileno() == 1 and sys.stderr.fileno() == 2
    except (AttributeError, OSError, ValueError):
        return False
