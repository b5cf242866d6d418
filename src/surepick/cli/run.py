"""`run`: call a program for each measurement until confident; also against an incumbent, or A against A."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surepick.cli import output
from surepick.cli.new import begin, show_view
from surepick.core.wording import how_many
from surepick.errors import MeasureError, ParameterError
from surepick.measure.commands import Command
from surepick.measure.workers import Workers, ended_as_interrupted
from surepick.views.numbers import value

if TYPE_CHECKING:
    from surepick.sessions.session import Session
    from surepick.views.view import View

AN_HOUR = 3600.0  # seconds for which a measurement is reserved if --timeout does not say
EXAMPLE = "surepick run FILE -- ./drive.sh {arm}"
PAIRS = 20  # of measurements of `--aa`
PATIENCE = 10.0  # seconds for a notification


def run(
    file: output.MaybeFile = None,
    session: output.Name = None,
    delta: output.Delta = None,
    epsilon: output.Epsilon = None,
    budget: output.Budget = None,
    low: output.Low = None,
    high: output.High = None,
    policy: output.Policy = None,
    jobs: Annotated[int, typer.Option(min=1, help="Measurements at the same time; 1 for timings.")] = 1,
    timeout: Annotated[float | None, typer.Option(help="Seconds that a measurement may take.")] = None,
    retries: Annotated[int, typer.Option(min=0, help="Further tries if a measurement fails.")] = 0,
    incumbent: Annotated[str | None, typer.Option(help="The plan in use: is another better?")] = None,
    final_batch: Annotated[
        int | None, typer.Option(min=1, help="Make the last N of the budget one final batch.")
    ] = None,
    aa: Annotated[str | None, typer.Option(help="Measure this arm against itself; record nothing.")] = None,
    notify: Annotated[str | None, typer.Option(help="POST the answer as JSON to this address.")] = None,
) -> None:
    """Call a program for each measurement until confident.

    The program's last line is one number, or a JSON object for a probe with several readings. It is called
    without a shell. Interrupt it and start it again as you like: it resumes.

    Example: surepick run routes.csv --jobs 4 -- ./drive.sh {arm}
    """
    if not output.settings.program:
        raise ParameterError(f"which program? Put it after two dashes: {EXAMPLE}", field="program")
    program = Command(output.settings.program, timeout)
    if aa is not None:
        _against_itself(file, aa, program)
        return
    lease = AN_HOUR if timeout is None else 2 * timeout * (retries + 1)
    given = {"delta": delta, "epsilon": epsilon, "budget": budget, "policy": policy, "incumbent": incumbent}
    if file is None:
        opened = output.open_session(session)
    else:
        opened = begin(file, session, (low, high), given, is_new=False, lease=lease)
    _measure(opened, program, jobs, retries, final_batch)
    view = opened.view()
    show_view(view, output.place_name(opened.store), output.name_for_hints(opened, session))
    if notify is not None:
        post_view(notify, view)
    raise typer.Exit(exit_code(view))


def _measure(session: Session, program: Command, jobs: int, retries: int, final_batch: int | None) -> None:
    """Measure until the session has ended; the first Ctrl-C records what was started."""
    from surepick.measure.loop import measure_all

    with output.Progress() as line:

        def show(session: Session, waiting: bool) -> None:
            if line.is_due:
                line.say("waiting for other workers" if waiting else session.view().line())

        try:
            with ended_as_interrupted():
                workers = Workers(program.measure, end=program.stop)
                measure_all(
                    session, workers, jobs=jobs, retries=retries, final_batch=final_batch, progress=show
                )
            return
        except MeasureError as error:
            raise MeasureError(f"{error}. {_resume_hint(session)}.", field=error.field) from error
        except KeyboardInterrupt:
            pass
    print(f"interrupted; {_resume_hint(session)}", file=sys.stderr)
    raise typer.Exit(output.INTERRUPTED)


def _resume_hint(session: Session) -> str:
    """Return how many values an interrupted run has kept, and how to resume it."""
    kept = how_many(session.view().n_measured, "value is", "values are")
    return f"{kept} kept, and the same command resumes"


def exit_code(view: View) -> int:
    """Return 0 if confident, 1 if not, 3 with doubts, 4 if the incumbent stays or no plan will do."""
    if view.state != "confident":
        return output.NO
    if not view.trusted:
        return output.DOUBTFUL
    return output.NOTHING_TO_TAKE if view.proved.claim in ("incumbent_stays", "no_plan") else output.DONE


def _against_itself(file: Path | None, arm: str, program: Command) -> None:
    """Measure one arm as if it were two, and say whether anything differs that should not."""
    from surepick.noise.aa import against_itself, turns
    from surepick.sessions.leases import Request

    if file is None:
        raise ParameterError(
            "--aa needs the problem file: surepick run FILE --aa ARM -- COMMAND", field="file"
        )
    problem = output.load_file(file).problem
    probe = problem.probe(arm)
    reads = problem.reads(probe)
    labels = turns(PAIRS, 0)
    uses = list[dict[str, float]]()
    with ended_as_interrupted(), output.Progress() as progress:
        for at in range(len(labels)):
            request = Request(f"{probe}.{at}", probe, arm, 1, "", 0.0, reads)
            found = program.measure(request)
            given = found if isinstance(found, Mapping) else {reads[0]: found}
            uses.append({name: float(str(value)) for name, value in given.items()})
            progress.say(f"{arm} against itself: {at + 1} of {len(labels)}")
    noise = problem.noise_scale
    scales = [None if noise is None else float(noise[k]) for k in problem.readings_of(probe)]
    result = against_itself(labels, uses, dict(zip(reads, scales, strict=True)))
    unit = problem.about.unit
    lines = [f"{n}: A minus B {value(m, unit, e)}" for n, (m, e) in result.difference.items()]
    lines += [f"{doubt.reading}: {doubt.what}" for doubt in result.doubts]
    data = {
        "arm": arm,
        "pairs": result.n_pairs,
        "honest": result.is_honest,
        "difference": {n: {"mean": m, "se": e} for n, (m, e) in result.difference.items()},
        "doubts": [vars(doubt) for doubt in result.doubts],
    }
    verdict = "Fine" if result.is_honest else "Not fine"
    output.answer(data, [output.wrapped(f"{verdict}: {result.sentence}.", indent=2), *lines])
    raise typer.Exit(output.DONE if result.is_honest else output.NO)


def post_view(url: str, view: View) -> None:
    """POST the View as JSON; a failure is reported and changes nothing."""
    from urllib.request import Request, urlopen

    try:
        if not url.lower().startswith(("http://", "https://")):
            raise ValueError("an address begins with http:// or https://")
        data = json.dumps(view.to_json()).encode()
        request = Request(url, data, {"Content-Type": "application/json"}, method="POST")
        urlopen(request, timeout=PATIENCE).close()
    except Exception as error:  # a wrong address, no network, a server that is down or answers nonsense
        output.note(f"could not notify {url!r} ({error}); the session is kept as it is")
