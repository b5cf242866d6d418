"""`check`: how a file was read, how many measurements to expect, and what would save some."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from surepick.cli.output import Budget, Delta, Epsilon, File, Progress, answer, hint, load_file, note, wrapped
from surepick.cli.screen import listed
from surepick.cli.simulate import limit_of
from surepick.core.wording import how_many, in_short, plural
from surepick.errors import ParameterError
from surepick.views.numbers import count, value

if TYPE_CHECKING:
    from surepick.core.arrays import FloatArray
    from surepick.problems.truth import Truth
    from surepick.simulation.forecast import Choice, Forecast

BUSIEST = 3  # arms named in the forecast


def check(
    file: File,
    delta: Delta = None,
    epsilon: Epsilon = None,
    budget: Budget = None,
    rehearsals: Annotated[int, typer.Option(min=1, help="Simulated runs for the forecast.")] = 20,
    limit: Annotated[
        bool, typer.Option("--limit", help="Also the fewest any method needs (needs truth).")
    ] = False,
) -> None:
    """Show how a file was read and forecast the measurements.

    Example: surepick check routes.csv --epsilon 1
    """
    loaded = load_file(file)
    asked = question(loaded, delta, epsilon, budget)
    with Progress() as progress:
        forecast, choices = rehearse(loaded, asked, rehearsals, progress.count("rehearsal"))
    least = limit_of(loaded, asked.policy()) if limit else None
    if limit and loaded.means is None:
        raise ParameterError("--limit needs the true means: add a row truth", field="limit")
    lines = [*described(loaded), *_forecast_lines(loaded, asked, forecast), *_choice_lines(loaded, choices)]
    if least is not None and least.is_finite:
        low, high = count(least.measurements), count(least.upper_bound)
        lines.append(f"Limit     {low if low == high else f'{low} to {high}'} for any method, on average")
    data = {**read_data(loaded), "forecast": forecast_data(forecast)}
    data["choices"] = [asdict(choice) for choice in choices]
    data["limit"] = None if least is None else [least.measurements, least.upper_bound]
    answer(data, lines)
    missing = (
        None if loaded.problem.about.listing is None else loaded.problem.about.listing.warning(asked.delta)
    )
    if missing is not None:
        note(missing)
    hint(f"surepick new {shlex.quote(str(file))}{asked.options()}")


def question(loaded: Truth, delta: float | None, epsilon: float | None, budget: int | None) -> Question:
    """Return what is asked: by the options, else by the file."""
    stated = loaded.settings
    return Question(
        stated.get("delta", 0.05) if delta is None else delta,
        stated.get("epsilon", 0.0) if epsilon is None else epsilon,
        stated.get("budget") if budget is None else budget,
    )


@dataclass(frozen=True)
class Question:
    """What is asked: delta, epsilon and budget."""

    delta: float
    epsilon: float
    budget: int | None

    def policy(self) -> Any:
        """Return the usual policy with these settings."""
        from surepick.policies import policy_for

        return policy_for(None, delta=self.delta, epsilon=self.epsilon)

    def options(self) -> str:
        """Return the options that differ from the defaults."""
        given = [("delta", self.delta, 0.05), ("epsilon", self.epsilon, 0.0), ("budget", self.budget, None)]
        return "".join(f" --{name} {now:g}" for name, now, usual in given if now != usual and now is not None)


def describe_file(
    file: Path, delta: float = 0.05, epsilon: float = 0.0, budget: int | None = None
) -> dict[str, Any]:
    """Return how a file was read, with a forecast, as JSON values."""
    loaded = load_file(file)
    forecast, choices = rehearse(loaded, Question(delta, epsilon, budget), 20, None)
    return {**read_data(loaded), "forecast": forecast_data(forecast), "choices": choices}


def forecast_data(found: Forecast | None) -> dict[str, Any] | None:
    """Return the forecast as JSON values."""
    fields = ("median", "low", "high", "confident", "shares")
    return None if found is None else {name: getattr(found, name) for name in fields}


def read_data(loaded: Truth) -> dict[str, Any]:
    """Return how a file was read, as JSON values."""
    problem = loaded.problem
    noise = problem.noise_scale
    return {
        "title": loaded.title,
        "kind": loaded.kind,
        "goal": "smallest" if problem.sign < 0 else "largest",
        "unit": problem.about.unit,
        "n_plans": problem.n_plans,
        "plans": list(problem.plan_names[:200]) if problem.is_listed else [],
        "n_arms": problem.n_arms,
        "measured": _arms_by_role(loaded)["measured"],
        "not_measured": {k: v for k, v in _arms_by_role(loaded).items() if k != "measured" and v},
        "noise": None if noise is None or not problem.knows_noise else noise.tolist(),
        "limits": None if problem.bounds is None else problem.bounds.tolist(),
        "merged": [list(pair) for pair in problem.duplicates] if problem.is_listed else [],
        "has_guess": loaded.guess is not None,
        "has_truth": loaded.means is not None,
    }


def _arms_by_role(loaded: Truth) -> dict[str, list[str]]:
    problem = loaded.problem
    found: dict[str, list[str]] = {"measured": [], "known": [], "same": []}
    for name, known, matters in zip(problem.arm_names, problem.is_known, problem.relevant, strict=True):
        found["known" if known else "measured" if matters else "same"].append(name)
    return found


def described(loaded: Truth) -> Iterator[str]:
    """How the file was read, in a few lines."""
    problem = loaded.problem
    plans = "all plans" if problem.n_plans is None else f"{in_short(problem.n_plans)} plans"
    goal = "smallest" if problem.sign < 0 else "largest"
    unit = f"; {problem.about.unit}" if problem.about.unit else ""
    yield wrapped(f"{loaded.title}: {plans} over {problem.n_arms} arms; the {goal} total is best{unit}")
    if problem.is_listed:
        yield wrapped(listed(problem.plan_names, 6), "Plans     ")
    roles = _arms_by_role(loaded)
    words = f"{len(roles['measured'])} to measure."
    if roles["same"]:
        same = plural(len(roles["same"]), "is", "are")
        words += f" {listed(roles['same'], 3)} {same} the same in all plans: not measured."
    if roles["known"]:
        words += f" Known: {listed(roles['known'], 3)}."
    yield wrapped(words, "Arms      ")
    if problem.probes is not None:
        yield wrapped(f"{problem.probes.summary}.", "Probes    ")
    yield wrapped(_noise_words(loaded), "Noise     ")
    if problem.is_listed and problem.duplicates:
        gone, kept = problem.duplicates[0]
        yield wrapped(
            f"{how_many(len(problem.duplicates), 'plan')} like others, as {gone!r} and {kept!r}.",
            "Merged    ",
        )


def _noise_words(loaded: Truth) -> str:
    problem, unit = loaded.problem, loaded.problem.about.unit
    if problem.bounds is not None:
        low, high = value(float(problem.bounds.min())), value(float(problem.bounds.max()), unit)
        return f"learned: every reading is between {low} and {high}."
    if not problem.knows_noise or problem.noise_scale is None:
        return "unknown: learned while measuring."
    least, most = float(problem.noise_scale.min()), float(problem.noise_scale.max())
    scale = value(most, unit) if least == most else f"{value(least)} to {value(most, unit)}"
    return f"{scale}, stated. If it is larger, nothing is guaranteed."


# The forecast


def rehearse(
    loaded: Truth, asked: Question, rehearsals: int, progress: Callable[[int, int], object] | None
) -> tuple[Forecast | None, list[Choice]]:
    """Return the forecast and what would save measurements; nothing without a guess or a noise."""
    from surepick.policies import BetGapE
    from surepick.simulation.forecast import Rehearsals

    centre = loaded.means if loaded.guess is None else loaded.guess
    noise = _rough_noise(loaded)
    if centre is None or (noise is None and loaded.problem.noise_scale is None):
        return None, []
    stage = Rehearsals.around(
        loaded.problem,
        centre,
        0.0 if loaded.spread is None else loaded.spread,
        noise=noise,
        budget=asked.budget,
        rehearsals=rehearsals,
        progress=progress,
    )
    return stage.advise(loaded.problem, BetGapE(asked.delta, asked.epsilon), loaded.past)


def _rough_noise(loaded: Truth) -> FloatArray | None:
    """Return a standard deviation to rehearse with; where it is unknown, half of the spread."""
    for known in (loaded.problem.noise_scale, loaded.noise_scale):
        if known is not None:
            return known
    if loaded.spread is None or not (loaded.spread > 0).any():
        return None
    return np.asarray(np.maximum(loaded.spread / 2, loaded.spread.max() / 20))


def _forecast_lines(loaded: Truth, asked: Question, found: Forecast | None) -> Iterator[str]:
    if found is None:
        missing = "a guess of each arm, with its spread" if loaded.guess is None else "a spread, or the noise"
        yield wrapped(f"none: add {missing}.", "Forecast  ")
        return
    if asked.budget is not None:
        text = f"{count(asked.budget)} end confident in {found.confident:.0%} of rehearsals"
        rest = "" if found.confident == 1 else "; else a few plans remain"
        yield wrapped(f"{text}{rest}.", "Forecast  ")
    elif not math.isfinite(found.median):
        yield wrapped("no end in sight: the best plans are close to a tie", "Forecast  ")
    else:
        high = "no end" if not math.isfinite(found.high) else count(found.high, about=True)
        about = f"about {count(found.median, about=True)} measurements"
        yield f"Forecast  {about}; {count(found.low, about=True)} to {high} in 8 of 10 rehearsals"
    busy = sorted(found.shares.items(), key=lambda pair: -pair[1])
    named = [f"{name} {share:.0%}" for name, share in busy[:BUSIEST] if share > 0]
    others = [share for _, share in busy[BUSIEST:] if share > 0]
    rest = f", {how_many(len(others), 'other')} {sum(others):.0%}" if others else ""
    yield wrapped(f"{', '.join(named)}{rest}", " " * 10)


def _choice_lines(loaded: Truth, choices: Sequence[Choice]) -> Iterator[str]:
    """Yield lines with the measurements that another epsilon, a stated noise or the guess would need."""
    words = [_choice_words(loaded, one) for one in choices]
    first, second = (max((len(pair[k]) for pair in words), default=0) for k in (0, 1))
    for k, (one, (what, how)) in enumerate(zip(choices, words, strict=True)):
        label = "Choices   " if k == 0 else " " * 10
        about = f"about {count(one.median, about=True)}" if math.isfinite(one.median) else "no end in sight"
        yield f"{label}{what:<{first}}  {how:<{second}}  {about}"


def _choice_words(loaded: Truth, one: Choice) -> tuple[str, str]:
    """Return what the choice is, and the option or row that makes it."""
    amount = value(one.value, loaded.problem.about.unit)
    if one.setting == "epsilon":
        what = f"within {amount} of the best" if one.value else "the very best plan"
        return what, f"--epsilon {one.value or 0:g}"
    if one.setting == "noise":
        return f"a noise of {amount} stated", "row noise"
    return ("without your guess", "no row guess") if one.value is None else ("with a guess", "row guess")
