"""How the answer of a rehearsal compares with the truth: of its list, and of the whole family of plans."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surepick.core.about import Listing
    from surepick.core.run import Answer
    from surepick.problems.truth import Truth
    from surepick.simulation.outcome import Outcome

ROUNDING = 1e-9  # of a plan's value: a smaller loss is none
ALL_PLANS = "To choose among all plans, write list_plans = false in place of n_draws, n_best, every and seed."


def truth_sentence(loaded: Truth, result: Outcome) -> str:
    """Whether the truth of a simulation agrees with the answer; empty where one of them is not known."""
    if loaded.means is None or result.plan is None:
        return ""
    listing, unit = loaded.problem.about.listing, _unit(loaded)
    best = _best_of(loaded.problem.is_listed, listing)
    lost, of_all = losses(loaded, result.plan)
    found = f"it is {best}" if lost == 0 else f"it is {lost:.3g}{unit} worse than {best}"
    text = f"The truth of this simulation{' agrees' if lost == 0 else ''}: {found}"
    if of_all > lost:
        return f"{text}; the best of all plans, which is not in the list, is better by {of_all:.3g}{unit}."
    return f"{text}, and no plan outside the list is better." if "listed" in best else f"{text}."


def _best_of(is_listed: bool, listing: Listing | None) -> str:
    """What the answer is to be the best of; a list that somebody gave is all that there is."""
    if listing is not None and not listing.is_complete:
        return f"the best of {listing.words}"
    return "the best plan" if is_listed and listing is None else "the best of all plans"


def losses(loaded: Truth, plan: Answer) -> tuple[float, float]:
    """How much worse under the truth this plan is than the best of the list, and of the whole family."""
    from surepick.problems.found import FoundProblem
    from surepick.simulation.comparison import loss

    problem, means = loaded.problem, loaded.true_means
    listed = _without_rounding(loss(problem, plan, means), loaded, plan)
    if not isinstance(problem, FoundProblem):
        return listed, listed
    ahead = problem.sign * float(problem.family.best(means) @ means - problem.vector(plan) @ means)
    return listed, max(listed, _without_rounding(ahead, loaded, plan))


def truth_data(loaded: Truth, result: Outcome) -> dict[str, Any]:
    """The same as JSON values."""
    listing = loaded.problem.about.listing
    known = loaded.means is not None and result.plan is not None
    listed, of_all = losses(loaded, result.plan) if known and result.plan is not None else (None, None)
    return {
        "loss": listed,
        "loss_in_family": of_all,
        "listing": None if listing is None else asdict(listing),
    }


def listing_warning(loaded: Truth, delta: float) -> str | None:
    """What to say before and after, where the best plan of all is probably not listed."""
    listing = loaded.problem.about.listing
    warning = None if listing is None else listing.warning(delta)
    if warning is None:
        return None
    return f"{warning[0].upper()}{warning[1:]}. {ALL_PLANS}"


def _without_rounding(ahead: float, loaded: Truth, plan: Answer) -> float:
    return (
        0.0 if ahead <= ROUNDING * float(abs(loaded.true_means) @ abs(loaded.problem.vector(plan))) else ahead
    )


def _unit(loaded: Truth) -> str:
    return f" {loaded.problem.about.unit}" if loaded.problem.about.unit else ""
