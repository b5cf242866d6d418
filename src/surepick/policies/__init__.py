"""The methods: every policy by its stable name, surepick's own and what other packages add (see `plugins`).

A family of policies has its own folder here. The room may import `core`, `kernels`, `design`, `plugins` and
`errors`; policies never see problems' builders, true means, files or the clock.
"""

from __future__ import annotations

import dataclasses
from importlib.metadata import EntryPoint
from typing import Any, cast

from surepick import plugins
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import Policy
from surepick.core.polytope import Polytope
from surepick.errors import ParameterError, suggestion
from surepick.policies.betting.bet_gap_e import BetGapE
from surepick.policies.betting.challenge import Challenge
from surepick.policies.betting.obet import OBet
from surepick.policies.betting.poly_bet import PolyBet
from surepick.policies.gap.clucb import CLUCB
from surepick.policies.gap.comb_gap_e import CombGapE
from surepick.policies.gap.lin_gap_e import LinGapE
from surepick.policies.gap.uniform import Uniform
from surepick.policies.phased.peace import Peace
from surepick.policies.phased.rage import RAGE
from surepick.policies.picking.pick import Pick
from surepick.policies.sampling.gen_ts_explore import GenTSExplore
from surepick.policies.sampling.ts_explore import TSExplore

POLICIES: dict[str, type[Policy]] = {
    "BetGapE": BetGapE,
    "CLUCB": CLUCB,
    "Challenge": Challenge,
    "CombGapE": CombGapE,
    "GenTSExplore": GenTSExplore,
    "LinGapE": LinGapE,
    "OBet": OBet,
    "Peace": Peace,
    "PolyBet": PolyBet,
    "Pick": Pick,
    "RAGE": RAGE,
    "TSExplore": TSExplore,
    "Uniform": Uniform,
}
# the policy to use unless one is named; where plans are not listed; where they are all of a polytope
USUAL, UNLISTED, WHOLE_POLYTOPE = "BetGapE", "OBet", "PolyBet"


def policy_named(name: str) -> type[Policy]:
    """The policy with this name, whatever its case.

    >>> policy_named("combgape").name
    'CombGapE'
    """
    wanted = name.strip().lower()
    own = {known.lower(): policy for known, policy in POLICIES.items()}
    if wanted in own:
        return own[wanted]
    others = {known.lower(): entry for known, entry in plugins.offered(plugins.POLICY_GROUP).items()}
    if wanted in others:
        return _loaded(others[wanted])
    names = [*POLICIES, *(entry.name for entry in others.values())]
    raise ParameterError(f"there is no policy named {name!r}; {suggestion(name, names)}", field="policy")


def _loaded(entry: EntryPoint) -> type[Policy]:
    """The policy that another package offers, if it is one."""
    policy = plugins.load(entry)
    needed = ("name", "version", "randomized", "guarantee", "start")
    missing = [part for part in needed if not hasattr(policy, part)]
    if not isinstance(policy, type) or not dataclasses.is_dataclass(policy) or missing:
        lacks = f" without {', '.join(missing)}" if missing else ""
        raise plugins.wrong(
            entry, f"must be a frozen dataclass that keeps surepick.Policy, got {policy!r}{lacks}"
        )
    if policy.name != entry.name:  # type: ignore[attr-defined]
        raise plugins.wrong(entry, f"is called {policy.name!r} by itself; the two names must agree")  # type: ignore[attr-defined]
    return cast(type[Policy], policy)


def parse_policy(text: str, **defaults: Any) -> Policy:
    """The policy that a text such as "CombGapE:radius=published:arm_rule=naive" stands for.

    `defaults` are used where the text is silent and the policy has such a parameter; a default epsilon
    above zero is refused by a policy that has none, since its answer would mean something else.

    >>> parse_policy("CombGapE:radius=published", delta=0.1)
    CombGapE(delta=0.1, epsilon=0.0, radius='published', arm_rule='gap')
    """
    name, *settings = text.split(":")
    policy = policy_named(name)
    known = {f.name: f for f in dataclasses.fields(policy)}  # type: ignore[arg-type]
    if defaults.get("epsilon") and "epsilon" not in known:
        raise ParameterError(
            f"{policy.name} has no epsilon; leave it out or choose another policy", field="epsilon"
        )
    values = {key: value for key, value in defaults.items() if key in known and value is not None}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key not in known:
            hint = suggestion(key, known)
            raise ParameterError(f"{policy.name} has no setting {setting!r}; write name=value, {hint}")
        values[key] = _as_number(value)
    return policy(**values)


def policy_for(problem: AnyProblem, text: str | None = None, **defaults: Any) -> Policy:
    """The policy that the text stands for; without one, the usual one for this kind of problem.

    >>> from surepick.problems import top_k_family
    >>> policy_for(top_k_family(["a", "b", "c"], 1).oracle_problem(), delta=0.1).name
    'OBet'
    """
    return parse_policy(usual_name(problem) if text is None else text, **defaults)


def usual_name(problem: AnyProblem) -> str:
    """BetGapE for a list of plans, PolyBet for a polytope, OBet where plans are behind an oracle.

    >>> from surepick.core.polytope import Polytope
    >>> usual_name(Polytope(A_ub=[[1, 1]], b_ub=[1]))
    'PolyBet'
    """
    if problem.is_listed:
        return USUAL
    return WHOLE_POLYTOPE if isinstance(problem, Polytope) else UNLISTED


def describe(policy: Policy) -> str:
    """The text from which `parse_policy` makes this policy, without delta and epsilon.

    >>> describe(CombGapE(radius="published"))
    'CombGapE:radius=published'
    """
    changed = [
        f"{f.name}={getattr(policy, f.name)}"
        for f in dataclasses.fields(policy)  # type: ignore[arg-type]
        if f.name not in ("delta", "epsilon") and getattr(policy, f.name) != f.default
    ]
    return ":".join([policy.name, *changed])


def _as_number(text: str) -> str | int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


__all__ = [
    "CLUCB",
    "POLICIES",
    "RAGE",
    "BetGapE",
    "Challenge",
    "CombGapE",
    "GenTSExplore",
    "LinGapE",
    "OBet",
    "Peace",
    "Pick",
    "PolyBet",
    "TSExplore",
    "Uniform",
    "describe",
    "parse_policy",
    "policy_named",
]
