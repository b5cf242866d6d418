"""What each peer cannot take is refused, with the field that is to blame."""

import numpy as np
import pytest

import probe_cases
import surepick as sp
from common import largest, refuses
from surepick import policies as pol
from surepick.peers.sequential import single_arms

PAIRS = [[1.0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]]
REAL = largest([[0.5, 1.0], [1.0, 0.5]])
ARMS = largest(np.eye(2))
TOTALS = largest(PAIRS, measure="plans")
PLAYED = largest(PAIRS, measure="plan arms")
LOOSE = sp.Problem(np.eye(3), measure={"ab": ["arm 0", "arm 1"], "c": ["arm 2"]}, goal="largest")
SOARE, TURNED = probe_cases.soare(3, 0.5)[0], probe_cases.transductive(3)[0]
HIDDEN = sp.OracleProblem(lambda w: np.eye(2)[np.argmax(w)], n_arms=2, noise=1, goal="largest")

CASES = [
    *[(policy, REAL) for policy in (pol.CSAR(), pol.TSExplore(), pol.GenLUCB(), pol.NaiveGapElim())],
    *[(policy, ARMS) for policy in (pol.CTnS(), pol.CGE(), pol.PFWS(), pol.CombGame())],
    *[(policy, TOTALS) for policy in (pol.PFWS(), pol.CombGame(), pol.KN(), pol.Rinott(), pol.Peace())],
    *[(policy, LOOSE) for policy in (pol.LinGame(), pol.FWS(), pol.XYAdaptive(), pol.LinGapE())],
    *[(policy, HIDDEN) for policy in (pol.GenTSExplore(), pol.PFWS(), pol.CombGame())],  # how many plans?
    *[(pol.PolyALBA(), problem) for problem in (PLAYED, TURNED, largest(PAIRS))],
    (pol.XYAdaptive(), PLAYED),
    *[(pol.RAGE(variant=variant), problem) for variant, problem in (("authors", LOOSE), ("paper", SOARE))],
    # no bases of a matroid
    *[(pol.ExactExpGap(), p) for p in (REAL, largest(PAIRS[::2]), largest([[1, 1, 0], [0, 0, 1]]))],
]


@pytest.mark.parametrize(("policy", "problem"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_a_problem_that_a_method_cannot_take_is_refused(policy, problem):
    with pytest.raises(sp.SurepickError):
        policy.start(problem)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (pol.LinGame, {"radius": "published"}),
        (pol.CTnS, {"radius": "published"}),
        (pol.CSA, {"budget": 0}),
        (pol.MinimaxCombSAR, {"beta": 1.0}),
        (pol.OCBA, {"first": 0}),
        (pol.KN, {"zone": 0.0}),
        (pol.Rinott, {"first": 1}),
        (pol.GenTSExplore, {"q": 0.5}),
        (pol.Peace, {"max_gap": 0.0}),
        (pol.RAGE, {"variant": "mine"}),
        (pol.LinGapE, {"norm_bound": -1.0}),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_its_name(kind, settings):
    with refuses(*settings, sp.SurepickError):
        kind(**settings)


@pytest.mark.parametrize(
    "plans",
    [[[1, 0], [0, 1], [1, 1]], [[1, 1, 0], [0, 1, 1], [1, 0, 0]], [[1.0], [2.0]], [[1, 0], [2, 0], [0, 3]]],
)
def test_plans_that_share_arms_are_refused_where_each_must_have_its_own(plans):
    with refuses("policy"):
        single_arms(largest(plans), "LUCB")
