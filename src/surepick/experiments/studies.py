"""The studies of `surepick reproduce`: which families and methods meet, and how they are shown.

`knapsack` and `transport` are Tables 1 and 2 of Nakamura & Sugiyama (CombGapE): mean and standard deviation
of each method's measurements relative to CombGapE's on the same instance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from surepick.errors import ParameterError, suggestion
from surepick.experiments.cases import LARGEST_GAP, MEANS_NORM
from surepick.experiments.instances import Spec, instance_from_spec
from surepick.experiments.study import NEVER, Family, Method, Rule, Study


def _by_pace(**most: int) -> dict[str, Rule]:
    """Cut a method off at a number of measurements that depends on its pace."""
    return {"": lambda method, problem, delta: most[method.pace]}


def _times_limit(method: Method, problem: Spec, delta: float) -> int:
    """Cut a method off at 60 times the limit; methods of phases are not cut off."""
    return NEVER if method.pace == "phases" else math.ceil(60 * instance_from_spec(problem).limit.at(delta))


def _times_t_star(multiple: float) -> Rule:
    """Give every method a multiple of T*, and enough to see every arm once."""

    def budget(method: Method, problem: Spec, delta: float) -> int:
        limit = instance_from_spec(problem).limit
        return max(math.ceil(multiple * limit.time.value), limit.once.n + 1)

    return budget


def _methods(*names: str, questions: str = "", **more: Any) -> tuple[Method, ...]:
    """Return methods that share all but their names; questions are separated by spaces."""
    return tuple(Method(name, questions=tuple(questions.split() or [""]), **more) for name in names)


def _knapsack(n_items: int, name: str = "", **more: Any) -> Family:
    problem = {"kind": "knapsack", "n_items": n_items}
    return Family(name or f"knapsack-{n_items}", f"knapsacks of {n_items} items", problem, **more)


def _arms(name: str, label: str, means: Sequence[float], runs: int, **more: Any) -> Family:
    """Return a family of single arms with these means."""
    plans = [[float(s == k) for s in range(len(means))] for k in range(len(means))]
    problem = {"kind": "given", "plans": plans, "means": list(means)}
    return Family(name, label, problem, runs, drawn=False, **more)


_THREE_OF_TEN = {"kind": "top_k", "n_arms": 10, "k": 3}
_ONE_OF_TEN = {**_THREE_OF_TEN, "k": 1}
_BETTING = Method("BetGapE", pace="phases")
_LIMIT_COLUMNS = ("mean x limit", "x limit", "measurements", "wrong", "CPU s", "proof")

# --- Tables 1 and 2 of the paper -------------------------------------------------------------------------

_PUBLISHED = "CombGapE:radius=published"
_NAIVE = f"{_PUBLISHED}:arm_rule=naive"
_PEACE = f"Peace:max_gap={LARGEST_GAP}"
_PAPER_COLUMNS = ("ratio", "paper", "median", "q90", "largest", "wrong", "x limit", "CPU s")
_PAPER_NOTES = """
ratio: measurements over those of CombGapE (published radius) on the same instance, mean ± standard
deviation, beside the values that the paper prints; then the median, 90% quantile and largest ratio.

The paper does not print its delta. CombGapE with its usual radius (proved) and BetGapE are not in the
paper.

Peace gets the true largest gap of each instance, which is unknown in practice.
"""
_PRINTED: dict[int, dict[str, tuple[float, float]]] = {
    5: {_NAIVE: (2.6, 4.1), "GenTSExplore": (65, 81), "RAGE": (1.8e4, 3.5e4), _PEACE: (82, 96)},
    7: {_NAIVE: (3.0, 3.3), "GenTSExplore": (58, 45), "RAGE": (8.4e3, 1.3e4), _PEACE: (39, 29)},
    9: {_NAIVE: (2.2, 2.5), "GenTSExplore": (74, 75), "RAGE": (2.0e4, 4.0e4), _PEACE: (55, 49)},
}
KNAPSACK = Study(
    "knapsack",
    "Table 1: knapsack",
    tuple(_knapsack(d, f"d{d}", quick=10, printed=printed) for d, printed in _PRINTED.items()),
    (
        *_methods(_PUBLISHED, _NAIVE, "CombGapE"),
        *_methods("RAGE", _PEACE, "BetGapE", pace="phases"),
        Method("GenTSExplore", pace="draws", seconds=8.0),
    ),
    _PAPER_COLUMNS,
    _by_pace(phases=NEVER, steps=10**8, draws=10**5),
    reference=_PUBLISHED,
    notes=_PAPER_NOTES
    + """
The naive rule's ratio has a heavy tail: a few instances decide its mean, so a mean of 30 instances cannot
settle it. Compare medians and quantiles.
""",
)
_TABLE_2 = Family(
    "d81",
    "transports between 9 and 9 cities, 81 arms",
    {"kind": "transport", "distances": "great-circle"},
    quick=6,
    printed={_NAIVE: (2.08, 1.55), "RAGE": (25.7, 16.6), _PEACE: (29.7, 23.5)},
)
_FREEWAY = {"kind": "transport", "distances": "freeway"}
TRANSPORT = Study(
    "transport",
    "Table 2: optimal transport",
    (
        _TABLE_2,
        replace(_TABLE_2, name="freeway", label="the same by freeway", problem=_FREEWAY, named_only=True),
    ),
    (
        *_methods(_PUBLISHED, _NAIVE, "CombGapE", seconds=8.0),
        *_methods("RAGE", _PEACE, pace="phases", seconds=2.0),
        *_methods("BetGapE", pace="phases", seconds=0.4),
        Method("BetGapE, all plans", "BetGapE", "phases", problem={"kind": "all_transports"}),
        # it takes many minutes an instance, and the paper has no value of it
        Method("GenTSExplore", pace="draws", seconds=600.0, named_only=True),
    ),
    _PAPER_COLUMNS,
    _by_pace(phases=NEVER, steps=10**7, draws=10**6),
    reference=_PUBLISHED,
    notes=_PAPER_NOTES
    + """
BetGapE, all plans: the same instances decided between all transports, without a list. Its x limit is of
that question, its ratio is to CombGapE's measurements for the best of the list.

The paper read travel hours from a map service on an unstated day; here they are great-circle kilometres x
1.25 / 95, or (the family freeway) freeway miles / 61.1: those roads share segments, so many plans tie.
""",
)

# --- What a budget buys ----------------------------------------------------------------------------------

# T* of at least four measurements of each relevant arm, so that a quarter of it measures each once
_MODERATE: dict[str, Any] = {"times": (4.0, 150_000), "first_seed": 70_000}
_MODERATE_FAMILIES = (
    *(_knapsack(d, runs=25, repeats=8, **_MODERATE) for d in (5, 9)),
    Family("three-of-ten", "three of ten arms", _THREE_OF_TEN, 20, repeats=8, **_MODERATE),
    Family("ten-arms", "one of ten arms", _ONE_OF_TEN, 20, repeats=8, **_MODERATE),
    Family("transport", "transport", {"kind": "transport"}, 6, repeats=4, weight=10, **_MODERATE),
)
BUDGET = Study(
    "budget",
    "What a budget buys",
    _MODERATE_FAMILIES,
    _methods(
        *("Pick", "BetGapE", "Uniform:delta=1e-9", "CSA", "CSAR", "MinimaxCombSAR", "OCBA"),
        "SuccessiveRejects",
    ),
    ("wrong leads", "loss"),
    {f"{m:g} T*": _times_t_star(m) for m in (0.25, 0.5, 1, 2, 4)},
    notes="""
The budget ends every run: no method guarantees anything. A proved answer needs 2.65 T* on average. BetGapE
is stopped by the budget; Uniform measures all arms equally often, its delta of 1e-9 keeps it from stopping
early.

wrong leads: runs whose leading plan is not the best, in % ± one standard error. loss: how much worse than the
best that plan is, in units of the gap of the second best plan.

CSAR decides as CSA does on sets.
""",
)

# --- The arena -------------------------------------------------------------------------------------------

_ARENA: dict[str, Any] = {"times": (0.0, 20_000), "first_seed": 80_000}
_EXACT: dict[str, Any] = {"question": "exact", **_ARENA}
_VECTORS: dict[str, Any] = {"quick": 2, "question": "vectors", "weight": 10}
_PLAYS: dict[str, Any] = {"quick": 2, "question": "plays", "weight": 10, "drawn": False}
_ZONE: dict[str, Any] = {"question": "epsilon", "epsilon": 0.3}
_SLIPPAGE, _MONOTONE = (0.3, *[0.0] * 9), tuple(-0.3 * i for i in range(10))
_SOARE, _SPHERE = {"kind": "soare", "d": 10, "angle": 0.1}, {"kind": "sphere", "n": 100, "d": 10}
_TURNED, _TOTALS = {"kind": "transductive", "d": 10}, {**_THREE_OF_TEN, "probes": "plans"}
_E20, _PLAYED = {"kind": "tree", "name": "E20"}, {**_THREE_OF_TEN, "probes": "plan arms", "seed": 80_000}
_ARENA_FAMILIES = (
    _knapsack(7, "knapsack", **_EXACT),
    Family("transport", "optimal transport, 81 arms", {"kind": "transport"}, 8, 2, weight=20, **_EXACT),
    Family("three-of-ten", "three of ten arms", _THREE_OF_TEN, 20, **_EXACT),
    Family("ten-arms", "one of ten arms", _ONE_OF_TEN, 20, **_EXACT),
    _arms("slippage", "ten arms, one better by .3", _SLIPPAGE, 30, question="exact"),
    _arms("monotone", "ten arms, each worse by .3", _MONOTONE, 30, question="exact"),
    _arms("near-tie", "two arms that differ by .1", (0.1, 0.0), 60, question="exact"),
    Family("soare", "Soare, d = 10, angle .1", _SOARE, 20, drawn=False, **_VECTORS),
    Family("sphere", "100 vectors on a sphere, d = 10", _SPHERE, 10, **_VECTORS, **_ARENA),
    Family("transductive", "transductive, 2 x 10 vectors", _TURNED, 10, drawn=False, **_VECTORS),
    Family("totals", "three of ten arms, totals", _TOTALS, 10, **_VECTORS, **_ARENA),
    Family("trees", "the 20,736 spanning trees of E20, played", _E20, 20, **_PLAYS),
    Family("three-played", "three of ten arms, played", _PLAYED, 20, **_PLAYS),
    _arms("zone-two", "two arms that differ by .3", (0.3, 0.0), 100, **_ZONE),
    _arms("zone-slippage", "ten arms, one better by .3", _SLIPPAGE, 60, **_ZONE),
    _arms("zone-monotone", "ten arms, each worse by .3", _MONOTONE, 60, **_ZONE),
)


def _heuristic(*names: str, **more: Any) -> tuple[Method, ...]:
    return _methods(*(f"{name}:radius=heuristic" for name in names), **more)


ARENA = Study(
    "arena",
    "The arena: every method on the same instances",
    _ARENA_FAMILIES,
    (
        Method("BetGapE", pace="phases", questions=None),
        Method("Uniform", questions=None),
        *_methods("CombGapE", _PUBLISHED, "TTUCB", "EBTCI", "LUCB", "UGapE", questions="exact epsilon"),
        *_methods("CLUCB", questions="exact"),
        *_heuristic("CombGapE", "TTUCB", "EBTCI", "TTTS", questions="exact"),
        *_methods("RAGE", _PEACE, "NaiveGapElim", "ExactExpGap", pace="phases", questions="exact"),
        *_methods("RAGE:variant=authors", pace="phases", questions="exact vectors"),
        *_methods("TrackAndStop", seconds=0.5, questions="exact epsilon"),
        *_heuristic("TrackAndStop", seconds=0.5, questions="exact"),
        *_methods("GenLUCB", slow_on=("three-of-ten",), questions="exact"),
        *_methods(
            "GenTSExplore", "TSExplore", pace="draws", named_only=True, seconds=60.0, questions="exact"
        ),
        *_methods("PolyALBA", pace="phases", questions="vectors"),
        *_methods("XYAdaptive", pace="phases", slow_on=("sphere", "totals"), questions="vectors"),
        *_methods("LinGame", slow_on=("sphere", "transductive", "totals"), seconds=0.5, questions="vectors"),
        *_methods("FWS", slow_on=("transductive", "totals"), seconds=0.3, questions="vectors"),
        *_heuristic("LinGame", "FWS", slow_on=("totals",), seconds=0.3, questions="vectors"),
        *_methods(
            f"LinGapE:norm_bound={MEANS_NORM}",
            slow_on=("sphere", "transductive", "totals"),
            seconds=0.5,
            questions="vectors",
        ),
        *_methods("PFWS", "CombGame", questions="plays", seconds=10.0),
        *_methods("KN", "Rinott", questions="epsilon"),
    ),
    _LIMIT_COLUMNS,
    {"": _times_limit},
    notes="""
Methods that measure one by one are cut off at 60 times the limit. A method without a proof may need less
because it guarantees nothing. Instances have T* below 20,000.

Peace gets the true largest gap, LinGapE the norm of the true means; both are unknown in practice.

KN and Rinott estimate the noise scale, which the others know; their zone is .3. An answer that is not
the best arm counts as wrong for them, one worse by more than .3 for the others.
""",
)

# --- Our own policies ------------------------------------------------------------------------------------


def _network(shape: str, size: int, words: str, *, listed: bool) -> Family:
    problem = {"kind": "network", "shape": shape, "size": size, "plans": "listed" if listed else "oracle"}
    name = f"{shape}-{size}{'-listed' if listed else ''}"
    label = f"{words}, {'listed' if listed else 'behind an oracle'}"
    weight = 1.0 if listed else 10.0
    return Family(name, label, problem, 20, 2, weight=weight, times=(0.0, 150_000), first_seed=90_000)


ORACLE = Study(
    "oracle",
    "Plans behind an oracle beside the same plans in a list",
    (
        *(_network("paths", 4, "paths in a 4 x 4 grid", listed=listed) for listed in (True, False)),
        *(_network("trees", 5, "spanning trees of K5", listed=listed) for listed in (True, False)),
        *(_network("matchings", 4, "4 x 4 matchings", listed=listed) for listed in (True, False)),
        _network("trees", 10, "the 10^8 spanning trees of K10", listed=False),
        _network("matchings", 8, "8 x 8 matchings", listed=False),
    ),
    (_BETTING,),
    _LIMIT_COLUMNS,
    {"": _times_limit},
    notes="The instances of a listed family and of the same family behind an oracle are the same.",
)


def _polytope(name: str, label: str, problem: Spec, epsilon: float) -> Family:
    if epsilon:
        name, label = f"{name}-{epsilon:g}", f"{label}, within {epsilon:g}"
    return Family(name, label, problem, 20, 2, times=(0.0, 300_000), first_seed=400, epsilon=epsilon)


POLYTOPE = Study(
    "polytope",
    "All plans of a polytope",
    (
        *(
            _polytope(f"{m}x{n}", f"transport {m} x {n}", {"kind": "rectangle", "m": m, "n": n}, epsilon)
            for m, n in ((3, 3), (5, 4), (9, 9))
            for epsilon in (0.0, 0.05)
        ),
        *(_polytope("mix", "a product mix", {"kind": "mix"}, epsilon) for epsilon in (0.0, 0.1)),
    ),
    (_BETTING,),
    _LIMIT_COLUMNS,
    {"": _times_limit},
    notes="The limit is that of the exact question, also within epsilon.",
)
RADII = Study(
    "radii",
    "How often each radius of CombGapE is wrong",
    (
        _arms("two-.02", "two arms, gap .02", (0.02, 0.0), 2000, quick=100),
        _arms("three-.05", "three arms, gap .05", (0.05, 0.0, 0.0), 2000, quick=100),
    ),
    (
        *_methods(_PUBLISHED, "CombGapE:radius=kaufmann-koolen", "CombGapE", seconds=0.02),
        *_heuristic("CombGapE", seconds=0.02),
        _BETTING,
    ),
    ("wrong", "measurements", "proof"),
    _by_pace(phases=200_000, steps=200_000),
    notes="Instances made to catch a radius that is too small; runs are cut off at 200,000 measurements.",
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
        what = f"no study named {name!r}" if name else "name a study"
        raise ParameterError(f"{what}; {suggestion(name, STUDIES)}", field="study")
    return STUDIES[name]
