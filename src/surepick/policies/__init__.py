"""Every policy, by its stable name."""

from __future__ import annotations

from surepick.errors import ParameterError, suggestion
from surepick.policies.comb_gap_e import CombGapE
from surepick.policies.uniform import Uniform
from surepick.policy import Policy

POLICIES: dict[str, type[Policy]] = {
    "CombGapE": CombGapE,
    "Uniform": Uniform,
}


def policy_named(name: str) -> type[Policy]:
    """The policy with this name, whatever its case.

    >>> policy_named("combgape").name
    'CombGapE'
    """
    found = {known.lower(): policy for known, policy in POLICIES.items()}.get(name.lower())
    if found is None:
        raise ParameterError(f"there is no policy named {name!r}; {suggestion(name, POLICIES)}")
    return found


__all__ = ["POLICIES", "CombGapE", "Uniform", "policy_named"]
