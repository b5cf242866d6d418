"""`simulate`: rehearse a decision in the file's truth, or compare policies."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surepick.cli import output
from surepick.core.wording import how_many
from surepick.errors import FileError
from surepick.views.numbers import count, value

if TYPE_CHECKING:
    from surepick.core.policy import Policy
    from surepick.problems.truth import Truth
    from surepick.simulation.outcome import Outcome

MOST = 10**7  # measurements of a run, unless a budget is given
MOST_COMPARED = 10**6  # of a run that is compared
TOLERANCE, UNLISTED_TOLERANCE = 1e-4, 0.25  # of the limit


def simulate(
    file: output.File,
    delta: output.Delta = None,
    epsilon: output.Epsilon = None,
    budget: output.Budget = None,
    policy: Annotated[
        list[str] | None, typer.Option(help="As in CombGapE:radius=published; repeat to compare. [BetGapE]")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each policy.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Fixes all randomness.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    to: Annotated[Path | None, typer.Option("-o", help="Write a row per run to this CSV file.")] = None,
) -> None:
    """Rehearse a decision, or compare policies.

    The file needs a truth.

    Example: surepick simulate ship.toml --policy BetGapE --policy CombGapE --runs 20
    """
    from surepick.policies import policy_for
    from surepick.report.check import USUAL, asked_of

    if to is not None:
        output.refuse_existing(to, force=False)
    loaded = output.load_file(file)
    asked = {**USUAL, **asked_of(loaded, {"delta": delta, "epsilon": epsilon, "budget": budget})}
    names: Sequence[str | None] = policy or [None]
    chosen = [
        policy_for(loaded.policy(name), delta=asked["delta"], epsilon=asked["epsilon"]) for name in names
    ]
    most = asked["budget"] or (MOST if runs == 1 else MOST_COMPARED)
    calls = [(loaded, one, seed + r, most) for one in chosen for r in range(runs)]
    found: list[Outcome] = []
    with output.Progress() as progress, ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        for outcome in map(one_run, calls) if pool is None else pool.map(one_run, calls):
            found.append(outcome)
            progress.say(f"run {len(found)} of {len(calls)}")
    if to is not None:
        _write_rows(to, found)
    if len(found) == 1:
        raise typer.Exit(_show_one(loaded, found[0]))
    _show_comparison(chosen, [found[k * runs : (k + 1) * runs] for k in range(len(chosen))])


def one_run(call: tuple[Truth, Policy, int, int]) -> Outcome:
    """Run a policy once in the file's truth; the guess guides it as in a session.

    A policy that cannot learn unknown noise gets that of the truth.
    """
    from surepick.simulation.comparison import knowing_noise
    from surepick.simulation.fitting import environment_of
    from surepick.simulation.simulate import simulate as run

    loaded, policy, seed, budget = call
    if not loaded.problem.knows_noise and loaded.noise_scale is None:
        raise FileError(
            "the noise is unknown, and a simulation has to draw with some; add noise = 1, or what it is, "
            "under [truth], or a row noise to a spreadsheet",
            field="truth.noise",
        )
    truth = environment_of(loaded.problem, loaded.true_means, loaded.noise_scale)
    prior = loaded.prior if policy.takes_prior else None
    problem = knowing_noise(loaded.problem, policy, truth)
    return run(problem, truth, policy=policy, seed=seed, budget=budget, prior=prior)


def _in_words(loaded: Truth, outcome: Outcome, least: float | None) -> str:
    """Return how a rehearsal ended and how good its plan truly is; `least` is the limit of any method."""
    n = how_many(outcome.n_measured, "measurement")
    limit = "" if least is None else f" (limit: {count(least)})"
    if outcome.plan is None and outcome.state == "confident":
        return f"Confident after {n}: no plan will do."
    if outcome.plan is None:
        leads = f"{outcome.leader_name} leads. Give a larger --budget or --epsilon"
        return f"Not confident after {n}{limit}; {leads}."
    ended = "Confident" if outcome.policy.guarantee.proved else "Ended, with no guarantee,"
    verdict = "the true best plan"
    if loaded.limited:
        verdict = f"{outcome.plan_name} is {'the right' if outcome.correct else 'a wrong'} answer"
    elif outcome.loss:
        verdict = f"{value(outcome.loss, loaded.problem.about.unit)} worse than the best"
    return f"{ended} after {n}{limit}; {verdict}."


def _show_one(loaded: Truth, outcome: Outcome) -> int:
    """Print how one rehearsal ended, and return the exit code."""
    least = limit_of(loaded, outcome.policy)
    data = {
        "state": str(outcome.state),
        "plan": outcome.plan_name,
        "leader": outcome.leader_name,
        "policy": outcome.policy.name,
        "correct": outcome.correct,
        "loss": None if outcome.plan is None else outcome.loss,
        "n_measured": outcome.n_measured,
        "n_batches": outcome.n_rounds,
        "cost": outcome.cost,
        "limit": least,
        "counts": dict(zip(loaded.problem.counted_names, outcome.counts.tolist(), strict=True)),
        "seed": outcome.seed,
        "seconds": outcome.seconds,
    }
    output.answer(data, output.wrapped(_in_words(loaded, outcome, least), indent=2))
    return output.DONE if outcome.plan is not None else output.NO


def limit_of(loaded: Truth, policy: Policy) -> float | None:
    """Return the lower limit on the measurements of any method under the file's truth; None if unknown.

    The limit assumes Gaussian noise. Readings between low and high may need fewer measurements.
    """
    from surepick.limits.limit import limit

    delta = policy.delta  # 1 for a policy that guarantees nothing: then there is no limit
    is_gaussian = loaded.known.noise_scale is not None and loaded.problem.bounds is None
    if loaded.means is None or not is_gaussian or delta >= 1:
        return None
    tolerance = TOLERANCE if loaded.problem.is_listed else UNLISTED_TOLERANCE
    found = limit(loaded.known, loaded.means, delta=delta, tolerance=tolerance, epsilon=policy.epsilon)
    return found.measurements if found.is_finite else None


def _show_comparison(policies: Sequence[Policy], outcomes: list[list[Outcome]]) -> None:
    """Print a row per policy: measurements, how often wrong, how often cut off."""
    from surepick.policies import describe
    from surepick.simulation.comparison import summary

    rows = [summary(policy, own) for policy, own in zip(policies, outcomes, strict=True)]
    wide = max(len("policy"), *(len(describe(row.policy)) for row in rows))
    lines = [f"{'policy':<{wide}}  {'mean':>10}  {'median':>10}  {'wrong':>6}  {'not confident':>13}"]
    lines += [
        f"{describe(row.policy):<{wide}}  {count(row.mean):>10}  {count(row.median):>10}  {row.errors:>6}  "
        f"{row.cut_off:>13}"
        for row in rows
    ]
    data = [{**vars(row), "policy": describe(row.policy)} for row in rows]
    output.answer({"policies": data}, lines)


def _write_rows(file: Path, outcomes: Sequence[Outcome]) -> None:
    from surepick.policies import describe

    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(("policy", "seed", "state", "plan", "loss", "n_measured", "cost", "seconds"))
        for outcome in outcomes:
            lost = "" if outcome.plan is None else outcome.loss
            row = (outcome.state, outcome.plan_name or "", lost, outcome.n_measured, outcome.cost)
            writer.writerow((describe(outcome.policy), outcome.seed, *row, f"{outcome.seconds:.3f}"))
