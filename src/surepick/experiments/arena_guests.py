"""Guests of the arena: policies of other packages, and surepick's own with settings that it does not list.

They are named on the command line as everywhere, `Doubling` or `CombGapE:radius=kaufmann-koolen`. Whether a
guest can take a family is found by starting it there.
"""

from __future__ import annotations

import dataclasses
import functools

from surepick.core.policy import start
from surepick.errors import ParameterError, SurepickError
from surepick.experiments.arena_entrants import ARENA_FAMILIES, QUESTIONS, ArenaFamily, Entrant
from surepick.experiments.specs import instance_from_spec, policy_from_spec, policy_spec
from surepick.policies import parse_policy, policy_named

SETTLED = ("delta", "epsilon", "zone", "version")  # what the arena says for everybody
_NOTHING_TO_ANSWER = "it has neither epsilon nor zone"


def is_policy(text: str) -> bool:
    """Whether the text begins with the name of a policy, surepick's own or another package's.

    >>> is_policy("CombGapE:radius=kaufmann-koolen"), is_policy("CombGapE-published")
    (True, False)
    """
    try:
        policy_named(text.partition(":")[0])
    except ParameterError:
        return False
    return True


def guest(text: str) -> Entrant:
    """The policy that this text stands for, as an entrant.

    >>> guest("CombGapE:radius=kaufmann-koolen").spec["radius"]
    'kaufmann-koolen'
    """
    policy = parse_policy(text)
    known = [field.name for field in dataclasses.fields(policy)]  # type: ignore[arg-type]
    if "delta" not in known:
        raise ParameterError(
            f"{policy.name} has no delta, and the arena counts what methods need until they are sure; see "
            "what a budget buys: surepick reproduce budget",
            field="policy",
        )
    spec = {name: value for name, value in policy_spec(policy).items() if name not in SETTLED}
    questions = tuple(question for question in QUESTIONS if question != "budget")
    return Entrant(text, text, spec, questions=questions)


def refusal(entrant: Entrant, family: ArenaFamily) -> str | None:
    """Why this guest is not on this family; None if it is."""
    return _refusal(entrant.name, family.name)


@functools.lru_cache(maxsize=256)
def _refusal(text: str, family_name: str) -> str | None:
    family = next(family for family in ARENA_FAMILIES if family.name == family_name)
    policy = policy_from_spec(guest(text).spec)
    if family.question == "epsilon" and not (hasattr(policy, "epsilon") or hasattr(policy, "zone")):
        return _NOTHING_TO_ANSWER
    problem = {"seed": 1, **family.problem} if family.is_drawn else family.problem
    try:
        start(policy, instance_from_spec(problem).problem)
    except SurepickError as error:
        return str(error)
    return None
