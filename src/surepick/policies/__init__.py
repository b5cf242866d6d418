"""The methods: every policy by its stable name, surepick's own and what other packages add.

A family of policies has its own folder here; settings and guarantees that families share are in `sound`.
Published methods to compare with are in `peers`; this registry alone names them. Policies import `core`,
`kernels`, `design` and `errors`; they never see true means, files or the clock.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, cast

from surepick.core.policy import Policy
from surepick.errors import ParameterError, PluginError, suggestion

if TYPE_CHECKING:
    from surepick.policies.betting.bet_gap_e import BetGapE as BetGapE
    from surepick.policies.betting.challenge import Challenge as Challenge
    from surepick.policies.betting.limited import Limited as Limited
    from surepick.policies.betting.sign_race import SignRace as SignRace
    from surepick.policies.betting.tied import Tied as Tied
    from surepick.policies.gap.comb_gap_e import CLUCB as CLUCB
    from surepick.policies.gap.comb_gap_e import CombGapE as CombGapE
    from surepick.policies.gap.comb_gap_e import Uniform as Uniform
    from surepick.policies.picking import Pick as Pick

# Where policies stand; a module is imported when one of them is first used, since a command needs one or two.
_MODULES = {
    "policies.betting.bet_gap_e": "BetGapE",
    "policies.betting.challenge": "Challenge",
    "policies.betting.limited": "Limited",
    "policies.betting.sign_race": "SignRace",
    "policies.betting.tied": "Tied",
    "policies.gap.comb_gap_e": "CLUCB CombGapE Uniform",
    "policies.picking": "Pick",
    "peers.budget": "CSA CSAR MinimaxCombSAR OCBA SuccessiveRejects",
    "peers.confidence": "GenLUCB LUCB UGapE",
    "peers.constrained": "CGE CTnS",
    "peers.lin_gap_e": "LinGapE",
    "peers.linear": "FWS LinGame",
    "peers.linear_phases": "PolyALBA XYAdaptive",
    "peers.matroid": "ExactExpGap",
    "peers.phases": "NaiveGapElim Peace RAGE",
    "peers.playing": "CombGame PFWS",
    "peers.selection": "KN Rinott",
    "peers.tracking": "EBTCI TTTS TTUCB TrackAndStop",
    "peers.ts_explore": "GenTSExplore TSExplore",
}
_HOMES = dict(sorted((name, module) for module, names in _MODULES.items() for name in names.split()))


class _Policies(Mapping[str, type[Policy]]):
    """Every policy by its stable name."""

    def __getitem__(self, name: str) -> type[Policy]:
        home = importlib.import_module(f"surepick.{_HOMES[name]}")
        return cast(type[Policy], getattr(home, name))

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


POLICIES: Mapping[str, type[Policy]] = _Policies()
USUAL = "BetGapE"  # the policy to use unless one is named


def policy_named(name: str) -> type[Policy]:
    """Return the policy with this name, whatever its case.

    Packages offer policies by entry points of the group `surepick.policies`. They are looked at only when the
    name is none of surepick's own, and imported only when it is theirs.

    >>> policy_named("combgape").name
    'CombGapE'
    """
    wanted = name.strip().lower()
    own = {known.lower(): known for known in POLICIES}
    if wanted in own:
        return POLICIES[own[wanted]]
    offered = entry_points(group="surepick.policies")
    for entry in offered:
        if entry.name.lower() == wanted:
            return _loaded(entry)
    names = [*POLICIES, *(entry.name for entry in offered)]
    raise ParameterError(f"there is no policy named {name!r}; {suggestion(name, names)}", field="policy")


def _loaded(entry: EntryPoint) -> type[Policy]:
    """Return the policy of another package, or raise an error that names the package."""
    try:
        policy: Any = entry.load()
        is_policy = issubclass(policy, Policy) and bool(dataclasses.is_dataclass(policy))
        if not is_policy or policy.name != entry.name:
            raise TypeError(f"got {policy!r}")
    except Exception as error:
        raise PluginError(
            f"the policy {entry.name!r} ({entry.value}) of the package {entry.dist and entry.dist.name!r} is "
            f"no dataclass that derives from surepick.policy.Policy and has this name: {error}; repair that "
            "package or uninstall it"
        ) from error
    return cast(type[Policy], policy)


def parse_policy(text: str, **defaults: Any) -> Policy:
    """The policy that a text such as "CombGapE:radius=published:arm_rule=naive" stands for.

    `defaults` are used where the text is silent and the policy has such a parameter; a default epsilon
    above zero is refused by a policy that has none, since its answer would mean something else.

    >>> parse_policy("CombGapE:radius=published", delta=0.1)
    CombGapE(delta=0.1, epsilon=0.0, radius='published', arm_rule='gap')
    """
    name, settings = parse_settings(text)
    policy = policy_named(name)
    known = {f.name: f for f in dataclasses.fields(policy)}  # type: ignore[arg-type]
    if defaults.get("epsilon") and "epsilon" not in known:
        raise ParameterError(
            f"{policy.name} has no epsilon; leave it out or choose another policy", field="epsilon"
        )
    values = {key: value for key, value in defaults.items() if key in known and value is not None}
    for key in settings:
        if key not in known:
            raise ParameterError(
                f"{policy.name} has no setting {key!r}; {suggestion(key, known)}", field="policy"
            )
    return policy(**{**values, **settings})


def parse_settings(text: str) -> tuple[str, dict[str, str | int | float]]:
    """Return the name and the settings of a policy that is written as a text.

    >>> parse_settings("CombGapE:epsilon=2:arm_rule=naive")
    ('CombGapE', {'epsilon': 2, 'arm_rule': 'naive'})
    """
    name, *settings = text.split(":")
    found = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ParameterError(f"a setting of {name} is name=value, got {setting!r}", field="policy")
        found[key] = _as_number(value)
    return name, found


def policy_for(
    policy: str | Policy | Mapping[str, Any] | None = None,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    incumbent: str | int | None = None,
) -> Policy:
    """Return the policy that these settings mean: an instance as it is, else one of this name, or BetGapE.

    A mapping has the settings of a policy beside its name.

    >>> policy_for(delta=0.1).name, policy_for("CombGapE").delta, policy_for(incumbent="rail").name
    ('BetGapE', 0.05, 'Challenge')
    """
    if isinstance(policy, Mapping):
        settings = {key: of for key, of in policy.items() if key != "name"}
        if incumbent is None:
            return parse_policy(policy["name"], delta=delta, epsilon=epsilon, **settings)
        policy = str(policy["name"])
    if policy is not None and not isinstance(policy, str):
        for name, value in (("delta", delta), ("epsilon", epsilon), ("incumbent", incumbent)):
            if value is not None:
                raise ParameterError(
                    f"{name} belongs to the policy that is given; state it there, or give the policy by name",
                    field=name,
                )
        if not isinstance(policy, Policy):
            raise ParameterError(
                f"a policy derives from surepick.policy.Policy, got {policy!r:.80}", field="policy"
            )
        return policy
    if incumbent is None:
        return parse_policy(USUAL if policy is None else policy, delta=delta, epsilon=epsilon)
    if policy not in (None, "BetGapE", "Challenge"):
        raise ParameterError(
            f"{policy} does not compare with an incumbent; leave the policy out", field="policy"
        )
    return parse_policy("Challenge", incumbent=incumbent, delta=delta, epsilon=epsilon)


def describe(policy: Policy) -> str:
    """The text from which `parse_policy` makes this policy, without delta and epsilon.

    >>> import surepick as sp
    >>> describe(sp.CombGapE(radius="published"))
    'CombGapE:radius=published'
    """
    changed = [
        f"{f.name}={getattr(policy, f.name)}"
        for f in dataclasses.fields(policy)  # type: ignore[arg-type]
        if f.name not in ("delta", "epsilon", "loads") and getattr(policy, f.name) != f.default
    ]
    return ":".join([policy.name, *changed])


def _as_number(text: str) -> str | int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = POLICIES[name]
    return globals()[name]


__all__ = ["POLICIES", "describe", "parse_policy", "policy_named", *sorted(_HOMES)]
