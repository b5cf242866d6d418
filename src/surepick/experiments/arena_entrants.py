"""Who meets where in the arena: families of problems, and methods with what they can take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from surepick.experiments.specs import LARGEST_GAP, MEANS_NORM, Spec

# What a family's plans are, and what a method can take: any list of plans, sets of arms, bases of a matroid,
# single arms; plans where vectors are measured, or the plans themselves; plans that are played, listed or
# behind an oracle.
Plans: TypeAlias = Literal[
    "any", "sets", "matroid", "single", "vectors", "whole plans", "listed plays", "oracle plays"
]
BELOW: dict[Plans, tuple[Plans, ...]] = {  # methods that take a family of this kind
    "any": ("any",),
    "sets": ("any", "sets"),
    "matroid": ("any", "sets", "matroid"),
    "single": ("any", "sets", "matroid", "single"),
    "vectors": ("vectors",),
    "whole plans": ("vectors", "whole plans"),
    "listed plays": ("listed plays",),
    "oracle plays": ("oracle plays",),
}
QUESTIONS = {
    "exact": "Which plan is the best?",
    "vectors": "Which plan is the best, where vectors are measured?",
    "plays": "Which plan is the best, where whole plans are played?",
    "epsilon": "A plan within .3 of the best",
    "budget": "What a budget buys",
}


@dataclass(frozen=True)
class ArenaFamily:
    """Problems of one kind; instances are drawn anew for each run unless the problem has no seed."""

    name: str
    label: str
    question: str  # of QUESTIONS
    problem: Spec = field(hash=False)
    plans: Plans  # what its plans are
    runs: int = 40
    quick: int = 4
    is_drawn: bool = True  # False: the same problem in every run


@dataclass(frozen=True)
class Entrant:
    """A method in the arena: `takes` says which plans it can take, `questions` which it answers."""

    name: str  # on the command line
    label: str
    spec: Spec = field(hash=False)
    takes: tuple[Plans, ...] = ("any",)
    questions: tuple[str, ...] = ("exact",)
    in_phases: bool = False  # whole phases at once: never cut off in the middle of one
    slow_on: tuple[str, ...] = ()  # families where a run takes minutes: it must be named
    note: str = ""


def _single(means: Sequence[float]) -> dict[str, Any]:
    plans = [[float(s == k) for s in range(len(means))] for k in range(len(means))]
    return {"kind": "given", "plans": plans, "means": list(means)}


def _given(name: str, label: str, question: str, means: Sequence[float], *n: int) -> ArenaFamily:
    runs, quick = n
    return ArenaFamily(name, label, question, _single(means), "single", runs, quick, is_drawn=False)


def _vectors(name: str, label: str, problem: Spec, runs: int, *, is_drawn: bool = False) -> ArenaFamily:
    measured: Plans = "vectors" if name == "transductive" else "whole plans"
    return ArenaFamily(name, label, "vectors", problem, measured, runs, 2, is_drawn=is_drawn)


_TWO = (0.3, 0.0)
_SLIPPAGE = (0.3, *[0.0] * 9)
_MONOTONE = tuple(-0.3 * i for i in range(10))
_THREE_OF_TEN = {"kind": "top_k", "n_arms": 10, "k": 3}
_SPHERE = {"kind": "sphere", "n": 100, "d": 10}
_TOTALS = {**_THREE_OF_TEN, "probes": "plans"}
_PLAYED = {**_THREE_OF_TEN, "probes": "plan arms", "seed": 80_000}  # T* in the hundreds
_TREES = {"kind": "published_tree", "name": "E20"}
ARENA_FAMILIES = (
    ArenaFamily("knapsack", "knapsacks of 7 items", "exact", {"kind": "knapsack", "n_items": 7}, "any", 30),
    ArenaFamily("transport", "optimal transport, 81 routes", "exact", {"kind": "transport"}, "any", 8, 2),
    ArenaFamily("three-of-ten", "three of ten arms", "exact", _THREE_OF_TEN, "matroid", 20),
    ArenaFamily("ten-arms", "one of ten arms", "exact", {**_THREE_OF_TEN, "k": 1}, "single", 20),
    _given("slippage", "ten arms, one better by .3", "exact", _SLIPPAGE, 30, 4),
    _given("monotone", "ten arms, each worse by .3", "exact", _MONOTONE, 30, 4),
    _given("near-tie", "two arms that differ by .1", "exact", (0.1, 0.0), 60, 10),
    _vectors("soare", "Soare, d = 10, angle .1", {"kind": "soare", "d": 10, "angle": 0.1}, 20),
    _vectors("sphere", "100 vectors on a sphere, d = 10", _SPHERE, 10, is_drawn=True),
    _vectors("transductive", "transductive, 2 x 10 vectors", {"kind": "transductive", "d": 10}, 10),
    _vectors("totals", "three of ten arms, totals are measured", _TOTALS, 10, is_drawn=True),
    ArenaFamily(
        "trees", "the 20,736 spanning trees of E20", "plays", _TREES, "oracle plays", 20, 2, is_drawn=False
    ),
    ArenaFamily(
        "three-played", "three of ten arms, played", "plays", _PLAYED, "listed plays", 20, 2, is_drawn=False
    ),
    _given("zone-two", "two arms that differ by .3", "epsilon", _TWO, 100, 20),
    _given("zone-slippage", "ten arms, one better by .3", "epsilon", _SLIPPAGE, 60, 6),
    _given("zone-monotone", "ten arms, each worse by .3", "epsilon", _MONOTONE, 60, 6),
)

_BOTH = ("exact", "epsilon")
_EVERYWHERE: dict[str, Any] = {
    "takes": ("any", "vectors", "listed plays"),
    "questions": ("exact", "vectors", "plays", "epsilon"),
}
_OF_PLAYS: dict[str, Any] = {"takes": ("listed plays", "oracle plays"), "questions": ("plays",)}
_AS_PRINTED: dict[str, Any] = {"variant": "authors", "slow_on": ("three-played",), **_OF_PLAYS}
_OF_VECTORS: dict[str, Any] = {"takes": ("vectors",), "questions": ("vectors",)}
_MANY = ("totals",)  # more vectors and plans than a step in Python looks at quickly
_ALWAYS_SLOW = tuple(family.name for family in ARENA_FAMILIES)  # draws before every measurement
_ZONE_NOTE = (
    "KN, KN++ and Rinott do not know the noise scale and estimate it; their zone is .3, and an answer that "
    "is not the best arm counts as wrong. The others know it, have epsilon = .3, and are wrong if the answer "
    "is worse than the best by more than that."
)
_AUTHORS_NOTE = (
    "The program of the authors of P-FWS, which also has CombGame, is repeated with what it takes for the "
    "shares of arms and for the closest plan; neither is what the papers describe."
)


def _entrant(name: str, label: str = "", **settings: Any) -> Entrant:
    """The policy that is named before a dash; what is no field of an entrant is a setting of the policy."""
    mine = {key: settings.pop(key) for key in list(settings) if key in Entrant.__dataclass_fields__}
    return Entrant(name, label or name, {"policy": name.partition("-")[0], **settings}, **mine)


def _single_arms(name: str, label: str = "", **settings: Any) -> Entrant:
    return _entrant(name, label, takes=("single",), **settings)


ENTRANTS = (
    _entrant("BetGapE", in_phases=True, **_EVERYWHERE),
    _entrant("CombGapE", questions=_BOTH),
    _entrant("CombGapE-published", "CombGapE, published radius", radius="published", questions=_BOTH),
    _entrant("CombGapE-heuristic", "CombGapE, heuristic", radius="heuristic"),
    _entrant("Uniform", **_EVERYWHERE),
    _entrant("CLUCB"),
    _entrant("RAGE", in_phases=True),
    _entrant(
        "RAGE-authors",
        "RAGE, authors' code",
        variant="authors",
        takes=("any", "vectors"),
        questions=("exact", "vectors"),
        in_phases=True,
    ),
    _entrant(
        "Peace",
        max_gap=LARGEST_GAP,
        in_phases=True,
        note="Peace is told the true largest gap of each instance, which nobody has in practice.",
    ),
    _entrant("GenTSExplore", "GenTS-Explore", slow_on=_ALWAYS_SLOW),
    _entrant("TSExplore", "TS-Explore", takes=("sets",), slow_on=_ALWAYS_SLOW),
    _entrant("GenLUCB", takes=("sets",), slow_on=("three-of-ten",)),
    _entrant("NaiveGapElim", takes=("sets",), in_phases=True),
    _entrant("ExactExpGap", takes=("matroid",), in_phases=True),
    _entrant(
        "LinGapE",
        norm_bound=MEANS_NORM,
        slow_on=("sphere", "transductive", "totals"),
        note="LinGapE is told the norm of the true means, which nobody has in practice.",
        **_OF_VECTORS,
    ),
    _entrant("XYAdaptive", "XY-adaptive", in_phases=True, slow_on=("sphere", "totals"), **_OF_VECTORS),
    _entrant("PolyALBA", takes=("whole plans",), questions=("vectors",), in_phases=True),
    _entrant("LinGame", slow_on=("sphere", "totals"), **_OF_VECTORS),
    _entrant("LinGame-heuristic", "LinGame, heuristic", radius="heuristic", slow_on=_MANY, **_OF_VECTORS),
    _entrant("FWS", slow_on=_MANY, **_OF_VECTORS),
    _entrant("FWS-heuristic", "FWS, heuristic", radius="heuristic", slow_on=_MANY, **_OF_VECTORS),
    _entrant("OBet", takes=("oracle plays",), questions=("plays",)),
    _entrant("PFWS", "P-FWS, heuristic", **_OF_PLAYS),
    _entrant("PFWS-authors", "P-FWS, authors' program", note=_AUTHORS_NOTE, **_AS_PRINTED),
    _entrant("CombGame", "CombGame, heuristic", **_OF_PLAYS),
    _entrant("CombGame-authors", "CombGame, program of P-FWS", **_AS_PRINTED),
    _single_arms("TrackAndStop", "Track-and-Stop (D)", questions=_BOTH),
    _single_arms("TrackAndStop-heuristic", "Track-and-Stop (D), heuristic", radius="heuristic"),
    _single_arms("TTUCB", questions=_BOTH),
    _single_arms("TTUCB-heuristic", "TTUCB, heuristic", radius="heuristic"),
    _single_arms("EBTCI", "EB-TCI", questions=_BOTH),
    _single_arms("EBTCI-heuristic", "EB-TCI, heuristic", radius="heuristic"),
    _single_arms("TTTS-heuristic", "TTTS, heuristic", radius="heuristic"),
    _single_arms("LUCB", questions=_BOTH),
    _single_arms("LilUCB", "lil'UCB"),
    _single_arms("LilUCB-heuristic", "lil'UCB, heuristic", variant="heuristic"),
    _single_arms("KN", questions=("epsilon",), note=_ZONE_NOTE),
    _single_arms("KNPlusPlus", "KN++", questions=("epsilon",)),
    _single_arms("Rinott", questions=("epsilon",)),
)
