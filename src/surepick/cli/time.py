"""`time`: find the fastest of several commands, without a file."""

from __future__ import annotations

import csv
import io
import json
import secrets
import sys
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.output import INTERRUPTED, Delta, Progress, answer, note, settings, wrapped
from surepick.cli.run import exit_code
from surepick.core.wording import how_many, shortened
from surepick.errors import ParameterError
from surepick.views.numbers import duration, odds
from surepick.views.view import to_json

if TYPE_CHECKING:
    from surepick.core.arrays import FloatArray
    from surepick.measure.timing import CommandTimer
    from surepick.sessions.session import Session
    from surepick.views.view import View

ROUNDS = 1000  # at most, unless a budget is given
BUSY, DRIFTED = 0.5, 0.1  # load of a processor, and change of all times, that are said
LONGEST_NAME, BAR = 20, 10  # letters
CONDITION = "if one command wins at least half of the rounds against each other one,"


def time(
    commands: Annotated[list[str], typer.Argument(help="Each command in quotes: 'sort -n f'.")],
    session: Annotated[str | None, typer.Option("-s", "--session", help="Keep the runs, to resume.")] = None,
    name: Annotated[list[str] | None, typer.Option(help="What to call the commands.")] = None,
    delta: Delta = None,
    epsilon: Annotated[str, typer.Option(help="The difference that does not matter, as in 2%.")] = "0%",
    budget: Annotated[int | None, typer.Option(help="The most runs in all. [1000 per command]")] = None,
    warmup: Annotated[int, typer.Option(min=0, help="Runs of each command that do not count.")] = 1,
    prepare: Annotated[str | None, typer.Option(help="A command to run before each run, untimed.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds that a run may take.")] = None,
    shell: Annotated[bool, typer.Option("--shell", help="Call the commands by a shell.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", help="Also write .json, .md, or all runs: .csv.")
    ] = None,
) -> None:
    """Find the fastest of several commands.

    They run in rounds, each in a new random order, until it is clear which one wins most rounds.

    Example: surepick time 'gzip -1 -c f' 'gzip -9 -c f' --epsilon 2%
    """
    from surepick.measure.timing import CommandTimer, as_words, load, rounds_of

    if output is not None and output.suffix not in (".json", ".md", ".csv"):
        raise ParameterError(f"-o takes a file .json, .md or .csv, got {str(output)!r}", field="o")
    names = names_of(commands, name or [])
    words = {one: as_words(command, shell=shell) for one, command in zip(names, commands, strict=True)}
    before = None if prepare is None else as_words(prepare, shell=shell)
    race = _open(names, session, 0.05 if delta is None else delta, share(epsilon), budget)
    busy = load()
    begin = clock.monotonic()
    is_over = _measure(race, CommandTimer(words, before, timeout), warmup, kept=session)
    taken = clock.monotonic() - begin
    view = race.view()
    rounds = rounds_of(race)
    rows = rows_of(view, commands, rounds)
    remarks = list(remarks_on(busy, rounds))
    data = {
        "commands": [asdict(row) for row in rows],
        "rounds": len(rounds),
        "seconds": taken,
        "remarks": remarks,
        "view": view,
    }
    answer(data, list(lines_of(view, rows, share(epsilon), len(rounds), taken)))
    for remark in [] if settings.json or settings.quiet else remarks:
        note(remark)
    if output is not None:
        output.write_text(_exported(output.suffix, data, rows, rounds), encoding="utf-8")
    raise typer.Exit(exit_code(view) if is_over else INTERRUPTED)


def names_of(commands: Sequence[str], given: Sequence[str]) -> list[str]:
    """Return what the commands are called: as given, else by themselves; a command that comes twice is two.

    >>> names_of(["ls", "ls", "ps"], ["a"])
    ['a', 'ls', 'ps']
    >>> names_of(["ls", "ls"], [])
    ['ls', 'ls (2)']
    """
    if len(commands) < 2:
        raise ParameterError("give at least two commands, each in quotes", field="commands")
    if len(given) > len(commands):
        raise ParameterError(f"{len(given)} names for {len(commands)} commands", field="name")
    names = [*given, *commands[len(given) :]]
    return [one if names.index(one) == k else f"{one} ({k + 1})" for k, one in enumerate(names)]


def share(text: str) -> float:
    """Return a difference in percent as a share.

    >>> share("2%"), share("0")
    (0.02, 0.0)
    """
    try:
        found = float(text.removesuffix("%")) / 100
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1 or (found and not text.endswith("%")):
        raise ParameterError(f"--epsilon is a difference in percent, as in 2%, got {text!r}", field="epsilon")
    return found


def _open(names: list[str], kept: str | None, delta: float, margin: float, budget: int | None) -> Session:
    """Return the session of these commands: a new one in memory, or the kept one, begun or resumed."""
    import numpy as np

    from surepick.core.problem import Problem
    from surepick.policies import SignRace
    from surepick.sessions.session import Session
    from surepick.store import open_store

    problem = Problem(np.eye(len(names)), arms=names, plan_names=names, goal="smallest", unit="s")
    given: dict[str, Any] = {"policy": SignRace(delta, margin), "budget": budget}
    place = open_store("memory://" if kept is None else settings.url, create=True)
    if kept is None or kept not in place.names():
        given["budget"] = budget or ROUNDS * len(names)
        given["seed"] = secrets.randbits(32)  # of the order of each round; kept in the log
    return Session.open(place, kept or "time", problem, **given)


def _measure(race: Session, timer: CommandTimer, warmup: int, *, kept: str | None) -> bool:
    """Run the rounds; return False if they were interrupted."""
    from surepick.measure.loop import measure_all
    from surepick.measure.workers import Workers, ended_as_interrupted

    policy = race.policy
    with Progress() as line:

        def show(session: Session, waiting: bool) -> None:
            if waiting:
                note(f"Another process runs {session.name!r} too; runs at the same time disturb each other.")
            elif line.is_due:
                state = session.state()
                line.say(
                    f"round {state.n_rounds + 1}, risk {state.standing().risk or 0.0:.2g} of {policy.delta:g}"
                )

        try:
            with ended_as_interrupted():
                for one in list(timer.commands) * (warmup if race.status == "running" else 0):
                    line.say(f"warming up: {one}")
                    timer.time(one)
                workers = Workers(lambda request: timer.time(request.probe_name), end=timer.stop)
                measure_all(race, workers, progress=show)
            return True
        except KeyboardInterrupt:
            kept_words = "the same command resumes" if kept else "nothing is kept without -s NAME"
            print(f"interrupted; {kept_words}", file=sys.stderr)
            return False


@dataclass(frozen=True)
class Row:
    """A command in the answer; `ratio` is the median of its time over the leader's in their common rounds."""

    name: str
    command: str
    median: float | None  # seconds
    ratio: float | None
    rounds: int
    slower_in: int  # of them, than the leader
    status: str


def rows_of(view: View, commands: Sequence[str], rounds: FloatArray) -> list[Row]:
    """Return the commands, the leader first, then by their ratio."""
    import numpy as np

    names = [arm.name for arm in view.arms]
    status = {plan.name: plan.status for plan in view.plans}
    leader = rounds[:, names.index(view.leader or names[0])]
    found = []
    for k, name in enumerate(names):
        own = rounds[:, k]
        both = np.isfinite(own) & np.isfinite(leader)
        ratio = float(np.median(own[both] / leader[both])) if both.any() else None
        median = float(np.nanmedian(own)) if np.isfinite(own).any() else None
        slower = int((own[both] > leader[both]).sum())
        found.append(Row(name, commands[k], median, ratio, int(both.sum()), slower, status[name]))
    return sorted(found, key=lambda row: (row.name != view.leader, row.ratio or np.inf))


def lines_of(view: View, rows: Sequence[Row], margin: float, n_rounds: int, taken: float) -> Iterator[str]:
    """Yield the lines of the answer: the leader, every command with its median and a bar, and what is proved.

    - rows: the commands, the leader first
    - margin: the share by which a command may be slower and still count as fastest
    - taken: seconds that the timing took
    """
    leader = rows[0]
    is_proved = view.state == "confident"
    within = f"at most {100 * margin:g}% slower"
    fastest = f"is fastest, or {within}" if margin else "is fastest"
    yield wrapped(f"{leader.name} {fastest if is_proved else 'leads'}.", indent=2)

    width = min(LONGEST_NAME, max(len(row.name) for row in rows))
    slowest = max(row.median or 0.0 for row in rows)
    for row in rows:
        if row.median is None or row.ratio is None:  # not timed yet
            continue
        bar = _bar(row.median / slowest)
        line = f"  {shortened(row.name, width):<{width}}  {bar:<{BAR}}  {duration(row.median):>8}"
        if row is not leader:
            ratio = f"x {row.ratio:.2f}" if row.ratio >= 2 else f"{row.ratio - 1:+.1%}"
            line += f"  {ratio:>6}  slower in {row.slower_in} of {how_many(row.rounds, 'round')}"
        yield line

    # The proof is about rounds won, not about medians, and assumes that one command wins against all others.
    if is_proved:
        claim = f"this one is {within} than it" if margin else "it is this one"
    elif len(view.proved.plans) < len(rows):
        claim = f"it is one of {', '.join(view.proved.plans)}"
    else:
        claim = ""
    if claim:
        wrong = f"Wrong at most {odds(view.delta)}. Medians are not proved."
        yield wrapped(f"{CONDITION} {claim}. {wrong}", "Proved: ")
    else:
        yield "Proved: nothing yet."
    yield f"{how_many(n_rounds, 'round')} in random order, {duration(taken)}"


def _bar(part: float) -> str:
    """Return a bar of this part of its full length, to an eighth of a letter.

    >>> _bar(0.5), _bar(0.03)
    ('█████', '▎')
    """
    eighths = round(8 * BAR * part)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def remarks_on(busy: float, rounds: FloatArray) -> Iterator[str]:
    """Yield what to know about the machine: other programs on it, and whether it got slower."""
    from surepick.measure.timing import drift

    if busy > BUSY:
        yield f"Other programs used this machine (load {busy:.1f} per processor): more rounds were needed."
    if abs(change := drift(rounds)) > DRIFTED:
        way = "slower" if change > 0 else "faster"
        yield (
            f"The machine became {abs(change):.0%} {way} meanwhile. A round compares at one moment, so the "
            "answer holds; medians and ratios may not."
        )


def _exported(suffix: str, data: Mapping[str, Any], rows: Sequence[Row], rounds: FloatArray) -> str:
    """Return the answer as JSON or as a Markdown table, or the seconds of all runs as CSV."""
    if suffix == ".json":
        return json.dumps(to_json(data), ensure_ascii=False)
    if suffix == ".md":
        lines = ["| command | median | ratio | slower in |", "|---|---|---|---|"]
        for row in rows:
            if row.median is not None:
                wins = f"{row.slower_in} of {row.rounds}"
                lines.append(f"| `{row.name}` | {duration(row.median)} | {row.ratio:.3f} | {wins} |")
        return "\n".join(lines) + "\n"
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["round", *(arm.name for arm in data["view"].arms)])
    for k, times in enumerate(rounds.tolist()):  # NaN where a command had left
        table.writerow([k + 1, *("" if x != x else x for x in times)])
    return text.getvalue()
