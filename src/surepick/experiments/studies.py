"""The studies of `surepick reproduce`: which families and methods meet, and how they are shown.

`knapsack` and `transport` are Tables 1 and 2 of Nakamura & Sugiyama (CombGapE): mean and standard deviation
of each method's measurements relative to CombGapE's on the same instance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from surepick.errors import ParameterError, all_names
from surepick.experiments.cases import prepared
from surepick.experiments.specs import LARGEST_GAP, MEANS_NORM, Spec, hours_spec
from surepick.experiments.study import NEVER, Family, Method, Pace, Rule, Study
from surepick.problems.cities import KNOWN


def _by_pace(**most: int) -> Rule:
    """Return a rule that cuts a method off at a number of measurements that depends on its pace."""

    def budget(method: Method, problem: Spec, delta: float) -> int:
        return most[method.pace]

    return budget


def _times_limit(multiple: float) -> Rule:
    """Return a rule that cuts off at a multiple of the limit; methods of phases are not cut off."""

    def budget(method: Method, problem: Spec, delta: float) -> int:
        if method.pace == "phases":
            return NEVER
        return math.ceil(multiple * prepared(problem).limit.at(delta))

    return budget


def _times_t_star(multiple: float) -> Rule:
    """Return a rule that gives every method a multiple of T*, and enough to see every arm once."""

    def budget(method: Method, problem: Spec, delta: float) -> int:
        limit = prepared(problem).limit
        return max(math.ceil(multiple * limit.time.value), limit.once.n + 1)

    return budget


# --- Tables 1 and 2 of the paper -------------------------------------------------------------------------


def _knapsack(n_items: int) -> Spec:
    return {"kind": "knapsack", "n_items": n_items}


_PUBLISHED = {"policy": "CombGapE", "radius": "published"}
_PEACE_NOTE = "Peace gets the true largest gap of each instance, which is unknown in practice."


def _paper_methods(*more: Method, **seconds: float) -> tuple[Method, ...]:
    """Return the methods of the paper and ours; `seconds` of a run by method, for the order."""
    methods = (
        Method("CombGapE", "CombGapE", _PUBLISHED),
        Method("CombGapE-naive", "CombGapE (naive)", {**_PUBLISHED, "arm_rule": "naive"}),
        Method("RAGE", "RAGE", {"policy": "RAGE"}, "phases"),
        Method("Peace", "Peace", {"policy": "Peace", "max_gap": LARGEST_GAP}, "phases", note=_PEACE_NOTE),
        Method("GenTSExplore", "GenTS-Explore", {"policy": "GenTSExplore"}, "draws"),
        Method(
            "CombGapE-normal-mixture",
            "CombGapE (proved)",
            {"policy": "CombGapE", "radius": "normal-mixture"},
            note="CombGapE (proved) has the normal-mixture radius; it and BetGapE are not in the paper.",
        ),
        Method("BetGapE", "BetGapE", {"policy": "BetGapE"}, "phases"),
        *more,
    )
    return tuple(replace(method, seconds=seconds.get(method.policy["policy"], 0.1)) for method in methods)


_PAPER_COLUMNS = ("ratio", "paper", "median", "q90", "largest", "wrong", "x limit", "CPU s")
_RATIO_NOTE = (
    "ratio: measurements over those of CombGapE (published radius) on the same instance, mean ± standard "
    "deviation, beside the values that the paper prints; then the median, 90% quantile and largest ratio."
)
_PAPER_NOTES = (_RATIO_NOTE, "The paper does not print its delta.")
_TAIL_NOTE = (
    "The naive rule's ratio has a heavy tail: a few instances decide its mean, so a mean of 30 instances "
    "cannot settle it. Compare medians and quantiles."
)
_PRINTED: dict[int, dict[str, tuple[float, float]]] = {
    5: {"CombGapE-naive": (2.6, 4.1), "GenTSExplore": (65, 81), "RAGE": (1.8e4, 3.5e4), "Peace": (82, 96)},
    7: {"CombGapE-naive": (3.0, 3.3), "GenTSExplore": (58, 45), "RAGE": (8.4e3, 1.3e4), "Peace": (39, 29)},
    9: {"CombGapE-naive": (2.2, 2.5), "GenTSExplore": (74, 75), "RAGE": (2.0e4, 4.0e4), "Peace": (55, 49)},
}
KNAPSACK = Study(
    "knapsack",
    "Table 1: knapsack",
    families=tuple(
        Family(
            f"d{d}", f"knapsacks of {d} items", {"kind": "knapsack", "n_items": d}, 30, 10, printed=printed
        )
        for d, printed in _PRINTED.items()
    ),
    methods=_paper_methods(GenTSExplore=8.0),
    columns=_PAPER_COLUMNS,
    budgets={"": _by_pace(phases=NEVER, steps=10**8, draws=10**5)},
    quick_budgets={"": _by_pace(phases=NEVER, steps=10**6, draws=10**4)},
    reference="CombGapE",
    notes=(*_PAPER_NOTES, _TAIL_NOTE),
)

_GREAT_CIRCLE_NOTE = (
    "The paper read travel hours from a map service on an unstated day; here they are great-circle "
    "kilometres x 1.25 / 95."
)
_FREEWAY_NOTE = (
    "Travel hours are freeway miles / 61.1. Roads share segments, so many plans tie and no method can tell "
    "them apart."
)
_ALL_PLANS = Method(
    "BetGapE-all",
    "BetGapE, all plans",
    {"policy": "BetGapE"},
    "phases",
    note="BetGapE, all plans: the same instances decided between all transports, without a list. Its x limit "
    "is of that question, its ratio is to CombGapE's measurements for the best of the list.",
    all_plans=True,
)
TRANSPORT = Study(
    "transport",
    "Table 2: optimal transport",
    families=(
        Family(
            "d81",
            "transports between 9 and 9 cities, 81 arms",
            {"kind": "transport", "distances": "great-circle"},
            30,
            6,
            printed={"CombGapE-naive": (2.08, 1.55), "RAGE": (25.7, 16.6), "Peace": (29.7, 23.5)},
        ),
    ),
    # GenTS-Explore takes many minutes an instance, and the paper has no value of it
    methods=tuple(
        replace(method, named_only=method.pace == "draws")
        for method in _paper_methods(_ALL_PLANS, CombGapE=8.0, RAGE=1.0, Peace=2.0, BetGapE=0.4)
    ),
    columns=_PAPER_COLUMNS,
    budgets={"": _by_pace(phases=NEVER, steps=10**7, draws=10**6)},
    quick_budgets={"": _by_pace(phases=NEVER, steps=3 * 10**6, draws=2 * 10**4)},
    reference="CombGapE",
    notes=(*_PAPER_NOTES, _GREAT_CIRCLE_NOTE),
)


def with_distances(study: Study, distances: str) -> Study:
    """Return the transport study with other travel hours: great-circle, freeway, or a CSV file.

    The header of the file names the demanders, its first column the suppliers.

    >>> with_distances(TRANSPORT, "freeway").families[0].problem["distances"]
    'freeway'
    """
    if distances == "great-circle":
        return study
    if study is not TRANSPORT:
        raise ParameterError("--distances is for transport", field="distances")
    if distances not in KNOWN and not Path(distances).exists():
        raise ParameterError(
            f"no distances and no file named {distances!r}; {all_names(distances, KNOWN)}", field="distances"
        )
    hours: Any = distances if distances in KNOWN else hours_spec(distances)
    note = _FREEWAY_NOTE if distances in KNOWN else f"Travel hours: those of {Path(distances).name}."
    families = tuple(replace(f, problem={**f.problem, "distances": hours}) for f in study.families)
    notes = tuple(note if old == _GREAT_CIRCLE_NOTE else old for old in study.notes)
    return replace(study, families=families, notes=notes)


# --- What a budget buys ----------------------------------------------------------------------------------

_THREE_OF_TEN = {"kind": "top_k", "n_arms": 10, "k": 3}
_ONE_OF_TEN = {**_THREE_OF_TEN, "k": 1}
# T* of at least four measurements of each relevant arm, so that a quarter of it measures each once
_BUDGET_FAMILY: dict[str, Any] = {"times": (4.0, 150_000), "first_seed": 70_000, "quick": 4}
BUDGET = Study(
    "budget",
    "What a budget buys",
    families=(
        *(
            Family(
                f"knapsack-{d}", f"knapsacks of {d} items", _knapsack(d), runs=25, repeats=8, **_BUDGET_FAMILY
            )
            for d in (5, 9)
        ),
        Family(
            "three-of-ten",
            "three of ten arms",
            _THREE_OF_TEN,
            20,
            plans="matroid",
            repeats=8,
            **_BUDGET_FAMILY,
        ),
        Family("ten-arms", "one of ten arms", _ONE_OF_TEN, 20, plans="single", repeats=8, **_BUDGET_FAMILY),
        Family(
            "transport",
            "transport, 81 arms",
            {"kind": "transport"},
            6,
            repeats=4,
            weight=10,
            **_BUDGET_FAMILY,
        ),
    ),
    methods=(
        Method("Pick", "Pick", {"policy": "Pick"}),
        Method(
            "BetGapE",
            "BetGapE, stopped",
            {"policy": "BetGapE", "delta": 0.05},
            note="BetGapE has delta = .05 and is stopped by the budget.",
        ),
        Method(
            "Uniform",
            "Uniform",
            {"policy": "Uniform", "delta": 1e-9},
            note="Uniform measures all arms equally often; its delta of 1e-9 keeps it from stopping early.",
        ),
        Method("CSA", "CSA", {"policy": "CSA"}),
        Method("CSAR", "CSAR", {"policy": "CSAR"}, takes=("sets",), note="CSAR decides as CSA does on sets."),
        Method("MinimaxCombSAR", "Minimax-CombSAR", {"policy": "MinimaxCombSAR"}),
        Method(
            "LinearOCBA",
            "OCBA, linear plans",
            {"policy": "LinearOCBA"},
            note="OCBA for linear plans is reconstructed: the same goal, climbed one measurement at a time.",
        ),
        Method("OCBA", "OCBA", {"policy": "OCBA"}, takes=("single",)),
    ),
    columns=("wrong leads", "loss"),
    budgets={f"{m:g} T*": _times_t_star(m) for m in (0.25, 0.5, 1, 2, 4)},
    reference="Uniform",
    notes=(
        "The budget ends every run: no method guarantees anything. A proved answer needs 2.65 T* on average.",
        "wrong: runs whose leading plan is not the best, in % ± one standard error; bold: the fewest.",
        "loss: how much worse than the best that plan is, over Uniform's loss.",
    ),
)

# --- The arena -------------------------------------------------------------------------------------------

_QUESTIONS = ("exact", "vectors", "plays", "epsilon")
_ARENA: dict[str, Any] = {"times": (0.0, 20_000), "first_seed": 80_000}


def _arms(name: str, label: str, question: str, means: Sequence[float], runs: int) -> Family:
    """Return a family of single arms with these means."""
    plans = [[float(s == k) for s in range(len(means))] for k in range(len(means))]
    problem = {"kind": "given", "plans": plans, "means": list(means)}
    epsilon = 0.3 if question == "epsilon" else 0.0
    return Family(name, label, problem, runs, 4, "single", question, drawn=False, epsilon=epsilon)


def _vectors(name: str, label: str, problem: Spec, runs: int, **more: Any) -> Family:
    kind = "vectors" if name == "transductive" else "whole plans"
    return Family(name, label, problem, runs, 2, kind, "vectors", weight=10, **more)


_SLIPPAGE = (0.3, *[0.0] * 9)
_MONOTONE = tuple(-0.3 * i for i in range(10))
ARENA_FAMILIES = (
    Family(
        "knapsack", "knapsacks of 7 items", {"kind": "knapsack", "n_items": 7}, 30, question="exact", **_ARENA
    ),
    Family(
        "transport",
        "optimal transport, 81 arms",
        {"kind": "transport"},
        8,
        2,
        question="exact",
        weight=20,
        **_ARENA,
    ),
    Family("three-of-ten", "three of ten arms", _THREE_OF_TEN, 20, 4, "matroid", "exact", **_ARENA),
    Family("ten-arms", "one of ten arms", _ONE_OF_TEN, 20, 4, "single", "exact", **_ARENA),
    _arms("slippage", "ten arms, one better by .3", "exact", _SLIPPAGE, 30),
    _arms("monotone", "ten arms, each worse by .3", "exact", _MONOTONE, 30),
    _arms("near-tie", "two arms that differ by .1", "exact", (0.1, 0.0), 60),
    _vectors("soare", "Soare, d = 10, angle .1", {"kind": "soare", "d": 10, "angle": 0.1}, 20, drawn=False),
    _vectors(
        "sphere", "100 vectors on a sphere, d = 10", {"kind": "sphere", "n": 100, "d": 10}, 10, **_ARENA
    ),
    _vectors(
        "transductive", "transductive, 2 x 10 vectors", {"kind": "transductive", "d": 10}, 10, drawn=False
    ),
    _vectors("totals", "three of ten arms, totals", {**_THREE_OF_TEN, "probes": "plans"}, 10, **_ARENA),
    Family(
        "trees",
        "the 20,736 spanning trees of E20, played",
        {"kind": "published_tree", "name": "E20"},
        20,
        2,
        "oracle plays",
        "plays",
        drawn=False,
        weight=10,
    ),
    Family(
        "three-played",
        "three of ten arms, played",
        {**_THREE_OF_TEN, "probes": "plan arms", "seed": 80_000},
        20,
        2,
        "listed plays",
        "plays",
        drawn=False,
        weight=10,
    ),
    _arms("zone-two", "two arms that differ by .3", "epsilon", (0.3, 0.0), 100),
    _arms("zone-slippage", "ten arms, one better by .3", "epsilon", _SLIPPAGE, 60),
    _arms("zone-monotone", "ten arms, each worse by .3", "epsilon", _MONOTONE, 60),
)


def _enter(name: str, label: str = "", *, pace: Pace = "steps", **settings: Any) -> Method:
    """Return a method: the policy named before a dash; what is no field of `Method` is its setting."""
    mine = {key: settings.pop(key) for key in list(settings) if key in Method.__dataclass_fields__}
    mine.setdefault("questions", ("exact",))
    return Method(name, label or name, {"policy": name.partition("-")[0], **settings}, pace, **mine)


def _single(name: str, label: str = "", **settings: Any) -> Method:
    return _enter(name, label, takes=("single",), **settings)


_BOTH = ("exact", "epsilon")
_ANYWHERE: dict[str, Any] = {"takes": ("any", "vectors", "listed plays"), "questions": _QUESTIONS}
_PLAYS: dict[str, Any] = {"takes": ("listed plays", "oracle plays"), "questions": ("plays",)}
_AUTHORS: dict[str, Any] = {"variant": "authors", "slow_on": ("three-played",), **_PLAYS}
_VECTORS: dict[str, Any] = {"takes": ("vectors",), "questions": ("vectors",)}
_HEURISTIC: dict[str, Any] = {"radius": "heuristic"}
ARENA_METHODS = (
    _enter("BetGapE", pace="phases", takes=(*_ANYWHERE["takes"], "oracle plays"), questions=_QUESTIONS),
    _enter("CombGapE", questions=_BOTH),
    _enter("CombGapE-published", "CombGapE, published radius", radius="published", questions=_BOTH),
    _enter("CombGapE-heuristic", "CombGapE, heuristic", **_HEURISTIC),
    _enter("Uniform", **_ANYWHERE),
    _enter("CLUCB"),
    _enter("RAGE", pace="phases"),
    _enter(
        "RAGE-authors",
        "RAGE, authors' code",
        pace="phases",
        variant="authors",
        takes=("any", "vectors"),
        questions=("exact", "vectors"),
    ),
    _enter("Peace", pace="phases", max_gap=LARGEST_GAP, note=_PEACE_NOTE),
    _enter("GenTSExplore", "GenTS-Explore", pace="draws", named_only=True, seconds=60.0),
    _enter("TSExplore", "TS-Explore", pace="draws", takes=("sets",), named_only=True, seconds=60.0),
    _enter("GenLUCB", takes=("sets",), slow_on=("three-of-ten",)),
    _enter("NaiveGapElim", pace="phases", takes=("sets",)),
    _enter("ExactExpGap", pace="phases", takes=("matroid",)),
    _enter(
        "LinGapE",
        norm_bound=MEANS_NORM,
        slow_on=("sphere", "transductive", "totals"),
        note="LinGapE gets the norm of the true means, which is unknown in practice.",
        seconds=0.5,
        **_VECTORS,
    ),
    _enter("XYAdaptive", "XY-adaptive", pace="phases", slow_on=("sphere", "totals"), **_VECTORS),
    _enter("PolyALBA", pace="phases", takes=("whole plans",), questions=("vectors",)),
    _enter("LinGame", slow_on=("sphere", "totals"), seconds=0.5, **_VECTORS),
    _enter(
        "LinGame-heuristic", "LinGame, heuristic", slow_on=("totals",), seconds=0.3, **_HEURISTIC, **_VECTORS
    ),
    _enter("FWS", slow_on=("totals",), seconds=0.3, **_VECTORS),
    _enter("FWS-heuristic", "FWS, heuristic", slow_on=("totals",), seconds=0.3, **_HEURISTIC, **_VECTORS),
    _enter("PFWS", "P-FWS, heuristic", seconds=0.5, **_PLAYS),
    _enter(
        "PFWS-authors",
        "P-FWS, authors' program",
        seconds=0.5,
        note="The authors' program of P-FWS and CombGame departs from the papers (docs/benchmarks.md).",
        **_AUTHORS,
    ),
    _enter("CombGame", "CombGame, heuristic", seconds=0.5, **_PLAYS),
    _enter("CombGame-authors", "CombGame, program of P-FWS", seconds=0.5, **_AUTHORS),
    _single("TrackAndStop", "Track-and-Stop (D)", questions=_BOTH, seconds=0.5),
    _single("TrackAndStop-heuristic", "Track-and-Stop (D), heuristic", seconds=0.5, **_HEURISTIC),
    _single("TTUCB", questions=_BOTH),
    _single("TTUCB-heuristic", "TTUCB, heuristic", **_HEURISTIC),
    _single("EBTCI", "EB-TCI", questions=_BOTH),
    _single("EBTCI-heuristic", "EB-TCI, heuristic", **_HEURISTIC),
    _single("TTTS-heuristic", "TTTS, heuristic", **_HEURISTIC),
    _single("LUCB", questions=_BOTH),
    _single("LilUCB", "lil'UCB"),
    _single("LilUCB-heuristic", "lil'UCB, heuristic", variant="heuristic"),
    _single(
        "KN",
        questions=("epsilon",),
        note="KN, KN++ and Rinott estimate the noise scale, which the others know; their zone is .3. An "
        "answer that is not the best arm counts as wrong for them, one worse by more than .3 for the others.",
    ),
    _single("KNPlusPlus", "KN++", questions=("epsilon",)),
    _single("Rinott", questions=("epsilon",)),
)
_LIMIT_COLUMNS = ("mean x limit", "median x limit", "measurements", "wrong", "CPU s", "proof")
_CUT_OFF = 60  # times the limit, where a method that measures one by one is cut off
_LIMIT_NOTE = (
    f"Methods that measure one by one are cut off at {_CUT_OFF} times the limit. A method without a proof "
    "may need less because it guarantees nothing."
)
ARENA = Study(
    "arena",
    "The arena: every method on the same instances",
    ARENA_FAMILIES,
    ARENA_METHODS,
    _LIMIT_COLUMNS,
    {"": _times_limit(_CUT_OFF)},
    notes=(_LIMIT_NOTE, "Instances have T* below 20,000."),
)

# --- Our own policies ------------------------------------------------------------------------------------


def _network(shape: str, size: int, words: str, *, listed: bool) -> Family:
    problem = {"kind": "network", "shape": shape, "size": size, "plans": "listed" if listed else "oracle"}
    plans, weight = ("any", 1.0) if listed else ("oracle", 10.0)
    name = f"{shape}-{size}{'-listed' if listed else ''}"
    label = f"{words}, {'listed' if listed else 'behind an oracle'}"
    return Family(name, label, problem, 20, 2, plans, weight=weight, times=(0.0, 150_000), first_seed=90_000)


ORACLE = Study(
    "oracle",
    "Plans behind an oracle beside the same plans in a list",
    families=(
        *(
            _network(shape, size, words, listed=listed)
            for shape, size, words in (
                ("paths", 4, "paths in a 4 x 4 grid"),
                ("trees", 5, "spanning trees of K5"),
                ("matchings", 4, "4 x 4 matchings"),
            )
            for listed in (True, False)
        ),
        _network("trees", 10, "the 10^8 spanning trees of K10", listed=False),
        _network("matchings", 8, "8 x 8 matchings", listed=False),
    ),
    methods=(Method("BetGapE", "BetGapE", {"policy": "BetGapE"}, "phases", ("any", "oracle")),),
    columns=_LIMIT_COLUMNS,
    budgets={"": _times_limit(_CUT_OFF)},
    notes=("The instances of a listed family and of the same family behind an oracle are the same.",),
)


def _polytope(name: str, label: str, problem: Spec, epsilon: float = 0.0) -> Family:
    words = f"{label}, within {epsilon:g}" if epsilon else label
    full = f"{name}-{epsilon:g}" if epsilon else name
    return Family(
        full, words, problem, 20, 2, "polytope", times=(0.0, 300_000), first_seed=400, epsilon=epsilon
    )


POLYTOPE = Study(
    "polytope",
    "All plans of a polytope",
    families=(
        *(
            _polytope(f"{m}x{n}", f"transport {m} x {n}", {"kind": "rectangle", "m": m, "n": n}, epsilon)
            for m, n in ((3, 3), (5, 4), (9, 9))
            for epsilon in (0.0, 0.05)
        ),
        _polytope("mix", "a product mix", {"kind": "mix"}),
        _polytope("mix", "a product mix", {"kind": "mix"}, 0.1),
    ),
    methods=(Method("BetGapE", "BetGapE", {"policy": "BetGapE"}, "phases", ("polytope",), seconds=0.3),),
    columns=_LIMIT_COLUMNS,
    budgets={"": _times_limit(_CUT_OFF)},
    notes=("The limit is that of the exact question, also within epsilon.",),
)

_HARD = (
    ("two-.02", "two arms, gap .02", (0.02, 0.0)),
    ("three-.05", "three arms, gap .05", (0.05, 0.0, 0.0)),
)
RADII = Study(
    "radii",
    "How often each radius of CombGapE is wrong",
    families=tuple(replace(_arms(name, label, "", means, 2000), quick=100) for name, label, means in _HARD),
    methods=(
        *(
            Method(radius, radius, {"policy": "CombGapE", "radius": radius}, seconds=0.02)
            for radius in ("published", "heuristic", "kaufmann-koolen", "normal-mixture")
        ),
        Method("BetGapE", "BetGapE", {"policy": "BetGapE"}, "phases", seconds=0.01),
    ),
    columns=("wrong", "measurements", "proof"),
    budgets={"": _by_pace(phases=200_000, steps=200_000)},
    notes=("Instances made to catch a radius that is too small; runs are cut off at 200,000 measurements.",),
)

STUDIES: Mapping[str, Study] = {
    study.name: study for study in (KNAPSACK, TRANSPORT, BUDGET, ARENA, ORACLE, POLYTOPE, RADII)
}


def study_named(name: str) -> Study:
    """Return the study of this name.

    >>> study_named("knapsack").title
    'Table 1: knapsack'
    """
    if name not in STUDIES:
        raise ParameterError(f"no study named {name!r}; {all_names(name, STUDIES)}", field="study")
    return STUDIES[name]
