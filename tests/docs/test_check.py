"""The independent checker says what a log guarantees, and refuses forged logs."""

import ast
import contextlib
import copy
import itertools
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import surepick as sp
from common import largest
from forged_logs import lines_of, move, sealed
from hulls import hull
from surepick.core.oracle_problem import OracleProblem
from surepick.files.log import LogFile
from surepick.inference.learned_scale import scale_bounds
from surepick.policies import Challenge, Limited, Tied
from surepick.problems import NewArm, PriorData
from surepick.sessions import codec
from surepick.sessions.session import Session
from surepick.sessions.verify import verify_events

PAGE = Path(__file__).parents[2] / "docs" / "check.py"
FILES = PAGE, PAGE.with_name("check_unlisted.py")
PLANS = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
SHARED = np.array(list(itertools.product([0.0, 1.0], repeat=7)))[1:70]
MEANS = np.array([1.6, 0.8, 0.0])
LIMIT = {"epsilon": 1.0, "tolerance": 1.0, "loads": -PLANS}
QUESTIONS = {
    "best": (sp.BetGapE(0.1), PLANS),
    "few": (sp.BetGapE(0.1, epsilon=1.0), PLANS),
    "many that share arms": (sp.BetGapE(0.1, epsilon=1.8), SHARED),
    "many arms": (sp.BetGapE(0.1, epsilon=1.0), 3.0 * np.eye(67)),
    "best of many arms": (sp.BetGapE(0.1), 3.0 * np.eye(66)),
    "replace": (Challenge(1, 0.1, 0.2), PLANS),
    "keep": (Challenge(0, 0.1, 0.8), PLANS),
    "tied": (Tied(0.1, 2.0), PLANS),
    "limited": (Limited(0.1, at_most=-1.2, **LIMIT), PLANS),
    "none": (Limited(0.1, at_most=-5.0, **LIMIT), PLANS),
    "vertex": (sp.BetGapE(0.1), PLANS),
    "amounts": (sp.BetGapE(0.1, epsilon=0.4), PLANS),
    "oracle": (sp.BetGapE(0.1), PLANS),
    "oracle within": (sp.BetGapE(0.1, epsilon=0.6), PLANS),
}
POLYTOPE, ORACLE = ("vertex", "amounts"), ("oracle", "oracle within")
LEARNED = [(question, "unknown") for question in ORACLE]  # the size of the noise
BY_SCALE = {
    "amounts": ("known", "bounded"),
    "oracle": ("known", "bounded"),
    "oracle within": ("known", "bounded"),
}
NOISE = {
    "known": {"noise": 1.2, "goal": "smallest"},
    "variance": {"noise": 1.0, "noise_kind": "bounded variance"},
    "unknown": {"noise": None},
    "bounded": {"low": -9.0, "high": 9.0},
}
CASES = [(q, n) for q in QUESTIONS for n in NOISE if n == "known" or len(QUESTIONS[q][1]) < 9]
CASES = [(q, n) for q, n in CASES if n in BY_SCALE.get(q, NOISE)]


@pytest.fixture(scope="module")
def checker():
    with loaded() as module:
        yield module


@contextlib.contextmanager
def loaded(right="", wrong=""):
    """Give the checker with both its files, and with a mistake in one of them if it is named."""
    kept = {path.stem: sys.modules.get(path.stem) for path in FILES}
    texts = {path.stem: path.read_text(encoding="utf-8") for path in FILES}
    assert not right or sum(text.count(right) for text in texts.values()) == 1
    try:
        for name, text in texts.items():
            sys.modules[name] = ModuleType(name)
            exec(compile(text.replace(right, wrong), name, "exec"), vars(sys.modules[name]))
        yield sys.modules["check"]
    finally:
        sys.modules.update({name: module for name, module in kept.items() if module})


def begun(question, noise, prior=None, **options):
    policy, plans = QUESTIONS[question]
    given = {"goal": "largest", **NOISE[noise], **options}
    if question in POLYTOPE:
        kind = given.pop("noise_kind", None)
        problem = hull(plans, **{"noise": None, **given})
        problem = problem.with_settings(noise_kind=kind) if kind else problem
    elif question in ORACLE:
        problem = sp.OracleProblem(best_of(plans, given["goal"]), plans.shape[1], **given)
    else:
        problem = sp.Problem(plans, **given)
    return Session.create("memory://", "s", problem, policy=policy, prior=prior)


def best_of(plans, goal):
    """Return an oracle of listed plans."""
    sign = -1 if goal == "smallest" else 1
    return lambda weights: plans[np.argmax(sign * plans @ weights)]


def measured(session, most=9000, *, at_once=300):
    """Answer so many requests, with values that depend on probe and place alone."""
    problem, n = session.problem, 0
    means = np.append(MEANS, np.full(problem.n_arms - 3, -0.8)) * problem.sign
    rows = np.eye(problem.n_arms) if problem.probes is None else problem.probes.rows.toarray()
    while n < most and (requests := session.ask(min(most - n, at_once))):
        for request in requests:
            probe, place = map(int, request.token.split("."))
            reads = slice(probe, probe + 1) if problem.probes is None else problem.probes.readings_of(probe)
            values = rows[reads] @ means
            values = values + np.random.default_rng([probe, place]).standard_normal(len(values))
            values = np.clip(values, -9, 9).tolist()
            session.tell(request, values if len(values) > 1 else values[0])
        n += len(requests)
    return session


def exported(log):
    events = sealed(log)
    return LogFile("s", tuple(events), events[-1].head).to_json()


def certificate_of(session):
    """Return the certificate as a file has it; nothing before an end."""
    return json.loads(codec.dumps(session.certificate().to_json())) if session.status == "confident" else None


def words(checker, log, *files):
    """Return what the checker says."""
    try:
        return str(checker.check(exported(log), *files))
    except SystemExit as end:
        return str(end)


def verdict(checker, log, *files):
    return words(checker, log, *files).split(":")[0]


def files_of(session):
    """Return what the checker takes beside the log: the certificate, and the oracle if there is one."""
    problem = session.problem
    has_oracle = not problem.is_listed and not isinstance(problem, sp.Polytope)
    return certificate_of(session), (problem.best, problem.best_within) if has_oracle else None


def said(checker, session):
    """Return the verdict on the log of a session, with its certificate and oracle."""
    return verdict(checker, lines_of(session), *files_of(session))


def holds(log, problem=None):
    events = sealed(log)
    oracle = problem if isinstance(problem, OracleProblem) and not isinstance(problem, sp.Polytope) else None
    return verify_events("s", events, events[-1].head, oracle=oracle).holds


@pytest.mark.parametrize(("question", "noise"), CASES)
def test_honest_logs_hold_after_a_removal_and_a_smaller_delta(checker, question, noise):
    session = begun(question, noise, goal="smallest" if noise == "known" else "largest")
    measured(session, 20).tell(0, 0.7)
    measured(session)
    assert said(checker, session) == "HOLDS"
    session.remove("0.1", "a slip")
    measured(session)
    assert said(checker, session) == "HOLDS"
    session.extend(delta=0.02)
    measured(session)
    assert said(checker, session) == "HOLDS"
    log = lines_of(session)
    assert "at most 0.02" in words(checker, log, *files_of(session))
    assert holds(log, session.problem)


FINAL = [(q, "known") for q in ("best", "few", "many that share arms", "replace", "keep", "vertex")]
FINAL += [(q, n) for q in ("best", "vertex") for n in ("variance", "unknown", "bounded")]
FINAL += [(q, n) for q in BY_SCALE for n in BY_SCALE[q]]
FINAL += LEARNED


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize(("question", "noise"), FINAL)
def test_a_final_batch_that_proves_the_answer(checker, question, noise, gaussian):
    session = measured(begun(question, noise), 20)
    if not session.state().is_over:
        session.final_batch(200, gaussian=gaussian and noise == "known")
    log = lines_of(measured(session))
    files = files_of(session)
    assert holds(log, session.problem)
    assert verdict(checker, log, *files) == ("FAILED" if session.outcome.plan is None else "HOLDS")
    if session.outcome.plan is not None and log[-1].kind == "stopped":
        without = [line for line in log if line.kind != "final-batch"]
        assert len(without) == len(log) or verdict(checker, without, *files) == "FAILED"


def opening(log, at):
    return [line for line in log if line.kind == "asked" and line.body.get("decision")][at]


def decisions(log):
    return [line.body["decision"] for line in log if line.kind == "asked" and line.body.get("decision")]


def changed_value(log, at=-1):
    last = log.index(opening(log, at))
    next(line for line in log[last:] if line.kind == "measured").body["values"][0] += 1e-3


def changed_end(name, value):
    def forge(log):
        next(line for line in log if line.kind == "stopped").body[name] = value

    return forge


def changed_decision(name, value, at=-2):
    def forge(log):
        opening(log, at).body["decision"][name] = value

    return forge


def smaller_delta(log):
    log[0].body["policy"]["parameters"]["delta"] = 1e-9


def another_answer(log):
    body = next(line for line in log if line.kind == "stopped").body
    plan = body["plan"]
    body["plan"] = [1.0, 0.0, 1.0] if isinstance(plan, list) else 3 if plan is not None else 0


def another_leader(log):
    decision = opening(log, -2).body["decision"]
    leader = decision["leader"]
    decision["leader"] = (leader + 1) % 4 if isinstance(leader, int) else leader[1:] + leader[:1]


def raised_stake(log):
    """Raise the first stake."""
    for decision in decisions(log):
        if stake := decision.get("stake"):
            decision["stake"] = [0.95, *stake[1:]] if isinstance(stake, list) else 0.95
            return


def two_readings(log):
    line = next(line for line in log[::-1] if line.kind == "measured")
    line.body["values"] *= 2


FORGERIES = {
    "a value": changed_value,
    "a value of the first batch": lambda log: changed_value(log, 0),
    "a smaller delta": smaller_delta,
    "another answer": another_answer,
    "an answer that there is not": changed_end("plan", 7),
    "the end's sum": changed_end("value_sum", 1.0),
    "the sum of values": changed_decision("value_sum", 0.3),
    "wealth": changed_decision("wealth", 0.3, -1),
    "another leader": another_leader,
    "no rivals": changed_decision("rivals", [], -1),
    "uses": changed_decision("uses", [[0, 3]]),
    "a stake of all": changed_decision("stake", [1.0, 0.0]),
    "a stake twice": changed_decision("stake", [0.5, 2.0]),
    "a higher stake": raised_stake,
    "a huge batch": changed_decision("uses", [[0, 10**9]]),
    "a final batch": changed_decision("final", True),
    "no replicates": changed_decision("replicates", 0),
    "a value left out": lambda log: log.remove(next(line for line in log if line.kind == "measured")),
    "a value twice": lambda log: log.insert(4, copy.deepcopy(log[3])),
    "values for another use": two_readings,
    "a decision left out": lambda log: log.remove(opening(log, 1)),
    "no end": lambda log: log.remove(next(line for line in log if line.kind == "stopped")),
}


def nested(name, *path, by=99):
    """Return a forgery of one number in the last decision but one that has this field."""

    def forge(log):
        found = [decision for decision in decisions(log) if name in decision]
        part = found[max(len(found) - 2, 0)][name]
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] += by

    return forge


def other_rates(log):
    next(found for found in decisions(log) if found.get("rates"))["rates"][0] *= 1.01


BETS = {
    "bets on other rivals": changed_decision("bets", [[1] * 5, [1] * 5]),
    "no bets": lambda log: opening(log, -2).body["decision"].pop("bets"),
    "smaller bets": nested("bets", 1, 0, by=-160),  # larger ones may be cut by the cap of bounded readings
}
FREED = {
    "a fixed arm": lambda log: opening(log, -2).body["decision"]["free"].pop(),
    "larger bets": nested("sizes", 0, by=0.5),
    "bets below 0": nested("sizes", 0, by=-99),
}
SPECIAL = {
    "few": {
        "other weights": nested("weights", 1, by=5),
        "no sizes": lambda log: next(found for found in decisions(log) if "sizes" in found).pop("sizes"),
    },
    "bounded": {
        "other centres": changed_decision("centres", [2000, 1500, 2500]),
        "a centre beyond the bounds": changed_decision("centres", [0, 0, 4097]),
        "a bet that one reading may ruin": changed_decision("cap", 0.9),
    },
    "unknown": {"more noise": changed_decision("noise", [99, 99, 99])},
    "many arms": {"all that waits": changed_decision("waiting", [1.0, [[1, 9]]]), **BETS},
    "best": BETS,
    "keep": BETS,
    "vertex": {**BETS, "no basis": changed_decision("leader", "2222")},
    "amounts": {"no basis": changed_decision("leader", "2222"), "other bets": other_rates},
    "replace": {
        "a higher stake on the challenger": nested("challenge_stake", 0, by=0.2),
        "smaller bets on the challenger": nested("challenge", 1, 0, by=-160),
    },
    "limited": {"another limit": lambda log: log[0].body["policy"]["parameters"].update(at_most=-9.0)},
    "oracle": FREED,
    "oracle within": FREED,
    "tied": {"another grey zone": lambda log: log[0].body["policy"]["parameters"].update(grey=0.1)},
}


# what does not bear on a guarantee: without a list no rivals are recorded, and behind an oracle no stakes;
# plans are ruled out at any time, on free arms or fixed ones; limits of readings may be a noise scale
UNUSED = ["no rivals", "a stake of all", "a stake twice"]
FREE = {
    "amounts": [*UNUSED, *SPECIAL["bounded"]],
    "oracle": [*UNUSED, "a higher stake", "a fixed arm", "more noise"],
    "oracle within": [*UNUSED, "a higher stake", "a fixed arm", "more noise"],
}


@pytest.mark.parametrize(("question", "noise"), CASES + LEARNED)
def test_forged_logs_are_refused(checker, question, noise):
    session = measured(begun(question, noise), at_once=1)  # none is recorded ahead
    log, files, held = lines_of(session), files_of(session), []
    assert verdict(checker, log, *files) == "HOLDS"
    for name, forge in (FORGERIES | SPECIAL.get(question, {}) | SPECIAL.get(noise, {})).items():
        forged = copy.deepcopy(log)
        forge(forged)
        held += [name] if verdict(checker, forged, *files) != "FAILED" else []
    assert {*held} <= {*FREE.get(question, ())}


def test_bets_after_their_values_are_refused_or_an_assumption(checker):
    log = lines_of(measured(begun("best", "known"), at_once=1))
    first = log.index(opening(log, -1))
    for n in range(1, len(log) - first):
        forged = copy.deepcopy(log)
        move(forged, first, first + n)
        said = words(checker, forged)
        assert said.startswith("FAILED") or "recorded ahead" in said


@pytest.mark.parametrize(("at_once", "is_ahead"), [(1, False), (300, True)])
def test_values_that_were_there_before_their_batch_was_decided_are_an_assumption(checker, at_once, is_ahead):
    log = lines_of(measured(begun("best", "known"), at_once=at_once))
    assert ("recorded ahead" in words(checker, log)) is is_ahead


@pytest.mark.parametrize("kind", ["removed", "extended", "plan-added", "measured", "asked", "stopped"])
def test_an_event_that_is_left_out_is_missed(checker, kind):
    session = measured(begun("best", "known", goal="largest"), 20)
    session.add_plan("another", [0.5, 0.0, 1.0])
    measured(session).remove("0.1", "a slip")
    measured(session).extend(delta=0.02)
    log = lines_of(measured(session))
    assert verdict(checker, log) == "HOLDS"
    end = max(at for at, line in enumerate(log) if line.kind == "stopped")  # later values are not used
    dropped = [[line for line in log if line is not one] for one in log[: end + 1] if one.kind == kind]
    assert {verdict(checker, without) for without in dropped} == {"FAILED"}


def test_extra_values_stand_at_the_end_of_their_stream(checker):
    session = measured(begun("best", "known"), 20, at_once=1)
    session.tell(0, 0.7)
    log = lines_of(measured(session, at_once=1))
    assert verdict(checker, log) == "HOLDS"
    body = next(line for line in log if line.kind == "measured" and not line.body["request"]).body
    body["index"] += 1
    assert verdict(checker, log) == "FAILED"


def test_a_broken_chain_is_refused(checker):
    log = exported(lines_of(measured(begun("best", "known"))))
    for at, name, value in ((5, "body", '{"values":[9.0]}'), (3, "checksum", "0" * 64), (4, "time", 0.0)):
        broken = copy.deepcopy(log)
        broken["events"][at][name] = value
        with pytest.raises(SystemExit):
            checker.check(broken)
    with pytest.raises(SystemExit):
        checker.check({**log, "events": log["events"][:-1]})


def test_known_arms_and_prior_data(checker):
    known = {"arm 2": 0.1, "arm 1": (-0.5, 2.0)}
    assert verdict(checker, lines_of(measured(begun("best", "unknown", known=known)))) == "HOLDS"
    log = lines_of(measured(begun("few", "bounded", known=known), at_once=1))
    assert verdict(checker, log) == "HOLDS"
    changed_decision("wealth", 0.3)(log)
    assert verdict(checker, log) == "FAILED"
    known_arm = {"arm 2": 0.1}
    assert verdict(checker, lines_of(measured(begun("vertex", "known", known=known_arm)))) == "HOLDS"
    for question, incumbent in (("keep", 0), ("replace", 1), ("replace", 2)):
        worse = {"arm 1": 5.0, "arm 2": (-0.1, 0.1)}  # some plans are surely worse than others
        problem = sp.Problem(PLANS, noise=1.0, goal="largest", known=worse)
        session = Session.create("memory://", question, problem, policy=Challenge(incumbent, 0.1, 0.1))
        log = lines_of(measured(session))
        assert verdict(checker, log) == ("HOLDS" if session.outcome.plan is not None else "FAILED")
    problem = largest(PLANS)
    for question in ("best", "few", "keep", "vertex"):
        prior = PriorData.from_history(problem, [3, 9, 4], [0.1, 0.9, 0.3])
        session = measured(begun(question, "variance", prior))
        assert verdict(checker, lines_of(session)) == "HOLDS"


@pytest.mark.parametrize("question", ["best", "few", "many that share arms"])
@pytest.mark.parametrize("noise", ["known", "bounded"])
def test_plans_and_arms_that_arrive(checker, question, noise):
    session = measured(begun(question, noise), 15)
    session.add_plan("another", np.full(session.problem.n_arms, 0.2).tolist())
    measured(session, 10)
    bounds = {"low": -9.0, "high": 9.0} if noise == "bounded" else {}
    amounts = {session.problem.arm_names[0]: 1.0, "fresh": 0.5}
    session.add_plan("with an arm", amounts, arms=[NewArm("fresh", **bounds)])
    measured(session)
    log = lines_of(session)
    assert session.outcome.plan is not None
    assert holds(log)
    assert verdict(checker, log) == "HOLDS"


MIXED = np.array([[1, 0, 0], [0, 1, 1], [1, 0, -1], [0, 0, 1]])
PAIR = {"pair": ["arm 0", "arm 1"], "third": ["arm 2"]}
PAIRED = {**PAIR, "pair": sp.Probe(["arm 0", "arm 1"], covariance=[[1.0, 0.8], [0.8, 1.0]])}
GUESSED = {"pair": sp.Probe(["arm 0", "arm 1"], noise=[0.3, 0.7]), "third": ["arm 2"]}


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("best", {"noise": 1.0, "measure": MIXED}),
        ("few", {"noise": 1.0, "measure": MIXED, "noise_kind": "bounded variance"}),
        ("keep", {"noise": None, "measure": MIXED}),
        ("best", {"low": -9.0, "high": 9.0, "measure": MIXED}),
        ("best", {"noise": 1.0, "measure": PAIRED}),
        ("tied", {"noise": None, "measure": PAIR}),
        ("best", {"noise": None, "measure": GUESSED}),
        ("limited", {"low": -9.0, "high": 9.0, "measure": PAIR}),
        ("replace", {"noise": 1.0, "measure": "plans"}),
        ("best", {"noise": 1.0, "measure": MIXED, "known": {"arm 2": 0.0}}),
    ],
)
def test_logs_of_probes_hold_and_changed_values_do_not(checker, question, options):
    policy, plans = QUESTIONS[question]
    problem = sp.Problem(plans, goal="largest", **options)
    session = measured(Session.create("memory://", "s", problem, policy=policy), at_once=1)
    log = lines_of(session)
    assert session.outcome.plan is not None
    assert holds(log)
    assert verdict(checker, log) == "HOLDS"
    forgeries = [changed_value, smaller_delta, two_readings, changed_decision("wealth", 0.3)]
    if "factors" in decisions(log)[-1] and options.get("low") is None:
        forgeries.append(nested("factors", 0, 1, 1, 1, by=0.5))
    for forge in forgeries:
        forged = copy.deepcopy(log)
        forge(forged)
        assert verdict(checker, forged) == "FAILED"


def test_a_plan_that_arrives_beside_known_arms_and_bounds_that_differ(checker):
    session = measured(begun("best", "known", known={"arm 2": 0.0}, goal="largest"), 10)
    session.add_plan("another", [0.5, 0.0, 1.0])
    assert verdict(checker, lines_of(measured(session))) == "HOLDS"
    bounds = {"low": [-9.0, -10.0, -12.0], "high": [9.0, 11.0, 9.5]}
    log = lines_of(measured(begun("few", "bounded", **bounds)))
    assert (verdict(checker, log), holds(log)) == ("HOLDS", True)


ROWS = [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1]]
POLYTOPES = {
    "a transport, whose rows depend on each other": {
        "A_eq": ROWS,
        "b_eq": [3, 4, 2, 2, 3],
        "goal": "smallest",
    },
    "fractions": {"A_ub": [[1.5, 0.3, 1], [0.2, 7.1, 2]], "b_ub": [3, 4], "upper": 1.7, "goal": "largest"},
    "a fixed arm": {
        "A_ub": [[1, 2, 1]],
        "b_ub": [3],
        "lower": [0, 0, 1],
        "upper": [2, 2, 1],
        "goal": "largest",
    },
}


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("name", POLYTOPES)
def test_plans_of_a_polytope(checker, name, epsilon):
    problem, policy = sp.Polytope(noise=0.5, **POLYTOPES[name]), sp.BetGapE(0.1, epsilon=epsilon)
    session = measured(Session.create("memory://", "s", problem, policy=policy), at_once=1)
    log, certificate = lines_of(session), certificate_of(session)
    assert (verdict(checker, log, certificate), holds(log)) == ("HOLDS", True)
    for forge in (changed_value, smaller_delta, another_leader, raised_stake):
        forged = copy.deepcopy(log)
        forge(forged)
        assert verdict(checker, forged, certificate) == "FAILED"


def forged_trees(boxes):
    """Yield trees of boxes with something left out or changed, none of which rules out all plans."""
    yield "no boxes", []
    yield "a box left out", boxes[:-1]
    yield "a box too many", [*boxes, boxes[-1]]
    for at, box in enumerate(boxes):
        if box["split"] is None:
            yield "a cut left out", [*boxes[:at], {**box, "cuts": []}, *boxes[at + 1 :]]
    at, kept = 0, boxes[:1]
    while boxes[at]["split"]:  # lower parts, whose boxes come first, are not searched
        left, at = 1, at + 1
        while left:
            left += 1 if boxes[at]["split"] else -1
            at += 1
        kept.append(boxes[at])
    yield "lower parts left out", kept


def test_a_tree_that_leaves_out_a_box_is_refused_and_a_checker_that_does_not_search_it_is_caught(checker):
    session = measured(begun("amounts", "known"))
    log, certificate = lines_of(session), certificate_of(session)
    proof = certificate["proof"]

    def held(program):
        trees = forged_trees(proof["series"]["boxes"])
        made = [(name, {**proof, "series": {**proof["series"], "boxes": tree}}) for name, tree in trees]
        return {name for name, one in made if verdict(program, log, {"proof": one}) == "HOLDS"}

    assert held(checker) == set()
    for right, wrong, missed in (
        ("[(above, high), (low, below)]", "[(above, high)]", "lower parts left out"),
        ("return not boxes", "return True", "no boxes"),
        ("if missing < 0:", "if missing < 1:", "a cut left out"),
    ):
        with loaded(right, wrong) as planted:
            assert missed in held(planted), right


def test_a_tangent_of_rounding_alone_proves_nothing(checker):
    session = measured(begun("amounts", "known"))
    log, proof = lines_of(session), certificate_of(session)["proof"]
    prices = [0] * (len(proof["rows"]) + 1)
    for point in (10.0 ** np.random.default_rng(1).uniform([10, -5], [25, 3], (300, 2))).tolist():
        forged = {"series": {"boxes": [{"cuts": [[point, 1.0, prices]], "split": None}]}}
        assert verdict(checker, log, {"proof": {**proof, **forged}}) == "FAILED"


def test_an_incumbent_of_a_polytope(checker):
    session = Session.create("memory://", "s", hull(PLANS), policy=Challenge("arm 0 + arm 1", 0.1))
    assert verdict(checker, lines_of(measured(session))) == "HOLDS"


CHOICES = np.array([row for row in itertools.product([0.0, 1.0], repeat=6) if sum(row) == 3])
CHOICE_MEANS = np.array([1.6, 1.3, 1.0, 0.4, 0.2, 0.0])


def chosen(noise, epsilon=0.0):
    """Return a session that has chosen three of six arms, behind an oracle."""
    problem = sp.OracleProblem(best_of(CHOICES, "largest"), 6, **NOISE[noise] | {"goal": "largest"})
    session = Session.create("memory://", "s", problem, policy=sp.BetGapE(0.1, epsilon=epsilon))
    while requests := session.ask(300):
        for request in requests:
            arm, place = map(int, request.token.split("."))
            value = CHOICE_MEANS[arm] + np.random.default_rng([arm, place]).standard_normal()
            session.tell(request, float(np.clip(value, -9, 9)))
    return session


def wrongly_out(program, log):
    """Return how many boxes are said to be ruled out, at some level, though a plan of them is not."""
    run = program.read(exported(log), None, (best_of(CHOICES, "largest"), None)).replay()
    answer, found = np.array(next(line for line in log if line.kind == "stopped").body["plan"]), 0
    account = run.accounts[run.key(answer)]
    run.fix(account, answer, True)
    evidence = np.array([run.evidence(account, plan) for plan in CHOICES])
    for claim, least in itertools.product(account.claims, np.sort(evidence) + 1e-3):
        low, high = claim[-2:]
        inside = ((low <= CHOICES) & (high >= CHOICES)).all(axis=1) & (answer != CHOICES).any(axis=1)
        if run.rules_out(account, (*claim[:3], least, *claim[4:])):
            found += evidence[inside].min(initial=np.inf) < least - 1e-6
    return found


def test_amounts_behind_an_oracle_are_parts_of_one(checker):
    log = lines_of(chosen("known"))
    run = checker.read(exported(log), None, (best_of(CHOICES, "largest"), None)).replay()
    answer = np.array(next(line for line in log if line.kind == "stopped").body["plan"])
    account = run.accounts[run.key(answer)]
    for batch in account.batches:  # that shows no gap
        batch.leader, batch.common = answer, 0 * batch.common
    assert len(account.stakes) > 1
    assert run.evidence(account, answer) == pytest.approx(0.0, abs=1e-9)


def test_the_search_through_all_plans_agrees_with_a_list_and_mistakes_in_it_are_caught(checker):
    logs = [lines_of(chosen("known")), lines_of(chosen("bounded"))]
    assert sum(wrongly_out(checker, log) for log in logs) == 0
    for right, wrong in (
        ("boxes += others(low, high, s, worst[s])", "boxes += others(low, high, s, worst[s])[1:]"),
        ("low, high) < least", "low, high) < least - 4"),
        ("p @ (a + b @ plan - log_shares)", "p @ (a + b @ plan - 2 * log_shares)"),
    ):
        with loaded(right, wrong) as planted:
            assert any(wrongly_out(planted, log) for log in logs), right


@pytest.mark.parametrize(("question", "noise"), LEARNED)
def test_noise_of_unknown_size_behind_an_oracle(checker, question, noise):
    session = measured(begun(question, noise), 20)
    session.remove("0.1", "a slip")
    measured(session)
    assert said(checker, session) == "HOLDS"
    log, files = lines_of(measured(begun(question, noise))), files_of(session)
    assert verdict(checker, log, *files) == "HOLDS"
    for name, change in (("bounds", -12), ("centres", 50)):
        forged = copy.deepcopy(log)
        decision = decisions(forged)[-1]
        decision[name] = [step + change for step in decision[name]]
        assert verdict(checker, forged, *files) == "FAILED"
    assert "--oracle" in session.certificate().checker
    session.extend(delta=0.02)  # bets begin anew, and a wrong answer has a second chance
    assert said(checker, measured(session)) == "NOT COVERED"
    assert session.certificate().checker == ""


def mean_factor(unlisted, centre, noise, bound):
    """Return the mean of the factor of one reading of mean 0, of a bet of size 1, by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    x, one = noise * nodes, np.ones(len(nodes))
    S = np.column_stack([x, (x - centre) ** 2, bound * one])
    return weights @ np.exp(unlisted.learned(S, one, one[:, None], 0.0)[:, 0]) / weights.sum()


def test_the_factor_of_noise_of_unknown_size_is_fair_and_a_smaller_one_is_not(checker):
    cases = [(c, noise, bound) for c in (-1, 0, 0.3, 1) for bound in (0.3, 0.9) for noise in (0.1, 0.3, 0.9)]
    cases = [(c, noise, bound) for c, noise, bound in cases if noise <= bound] + [(0.81, 0.9, 0.9)]
    unlisted = sys.modules["check_unlisted"]
    assert max(mean_factor(unlisted, *case) for case in cases) <= 1 + 1e-9
    with loaded("np.expm1(V) /", "0.98 * np.expm1(V) /"):
        assert max(mean_factor(sys.modules["check_unlisted"], *case) for case in cases) > 1 + 1e-3


def test_a_bound_on_the_noise_is_at_least_that_of_the_values(checker):
    problem = sp.OracleProblem(best_of(PLANS, "largest"), 3, noise=None, goal="largest")
    log = lines_of(Session.create("memory://", "s", problem, policy=sp.BetGapE(0.1)))
    data = checker.read(exported(log)).question().data
    values = np.random.default_rng(1).standard_normal((40, 3))
    for part in (values[:5], values[5:]):
        data.read(1, {arm: own[:, None].tolist() for arm, own in enumerate(part.T)})
    squares = ((values - values.mean(axis=0)) ** 2).sum(axis=0)
    bounds = 16 * np.log2(scale_bounds(squares, np.full(3, 39), data.level))
    data.check_bounds(np.ceil(bounds + 0.1).astype(int).tolist())
    for arm in range(3):
        with pytest.raises(SystemExit):
            data.check_bounds((np.ceil(bounds + 0.1) - 2 * (np.arange(3) == arm)).astype(int).tolist())


def test_an_oracle_and_a_list_of_plans_as_files(checker, tmp_path):
    session = chosen("known", 0.3)
    assert "--oracle" in session.certificate().checker
    session.export(tmp_path / "log.json")
    table = [session.problem.arm_names, *CHOICES.astype(int).tolist()]
    rows = [",".join(map(str, row)) for row in table]
    (tmp_path / "plans.csv").write_text("\n".join(rows))
    (tmp_path / "fewer.csv").write_text("\n".join(row for row in rows if row != "1,1,1,0,0,0"))
    code = """import numpy as np
def best(weights):
    plan = np.zeros(6)
    plan[np.argsort(-weights)[:{}]] = 1
    return plan
"""
    (tmp_path / "best.py").write_text(code.format(3))
    (tmp_path / "other.py").write_text(code.format(2))

    def ends(*files):
        command = [sys.executable, str(PAGE), str(tmp_path / "log.json"), *files]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
        return (done.stdout or done.stderr).split(":")[0]

    assert ends() == "NOT COVERED"
    assert ends("--plans", "plans.csv") == "HOLDS"
    assert ends("--plans", "fewer.csv") == "FAILED"
    assert ends("--oracle", "best.py") == "HOLDS"
    assert ends("--oracle", "other.py") == "FAILED"


@pytest.mark.parametrize(
    "problem",
    [
        sp.problems.production([[2, 3, 1]], [6], [1, 1, 1], whole=True, upper=2, noise=1, list_plans=False),
        sp.problems.knapsack([3, 5, 7, 4], None, 20, noise=1, list_plans=False),
        sp.problems.top_k(list("abcde"), 2, goal="smallest", noise=1, list_plans=False, known={"b": 0.7}),
    ],
)
def test_whole_numbers_and_known_arms_behind_an_oracle(checker, problem):
    session = measured(Session.create("memory://", "s", problem, policy=sp.BetGapE(0.1, epsilon=0.5)))
    assert said(checker, session) == "HOLDS"


def test_what_is_not_covered_never_holds(checker):
    for problem, policy in (
        (largest(PLANS), sp.CombGapE(0.1)),
        (sp.problems.knapsack([3, 5, 7, 4], None, 20, noise=None, list_plans=False), sp.BetGapE()),
        (hull(PLANS, noise=None), sp.BetGapE(epsilon=0.1)),
    ):
        session = Session.create("memory://", "s", problem, policy=policy)
        assert verdict(checker, lines_of(session)) == "NOT COVERED"


@pytest.mark.parametrize("question", ["amounts", "oracle"])
def test_bounded_variance_does_not_pass_for_noise_with_light_tails(checker, question):
    session = measured(begun(question, "known"))
    log = lines_of(session)
    log[0].body["problem"]["noise"] = "bounded variance"
    assert verdict(checker, log, *files_of(session)) == "NOT COVERED"


def imported(tree):
    """Return the modules that a program imports, beside those of Python."""
    found = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    found |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return found - set(sys.stdlib_module_names)


def test_it_imports_numpy_alone_and_its_second_file_only_for_plans_that_are_not_listed(tmp_path):
    core, unlisted = (ast.parse(path.read_text(encoding="utf-8")) for path in FILES)
    assert imported(core) == {"numpy", "check_unlisted"}
    assert imported(unlisted) == {"numpy", "check"}
    (tmp_path / "check.py").write_bytes(PAGE.read_bytes())  # alone
    page = tmp_path / "check.py"
    path, log = tmp_path / "log.json", lines_of(measured(begun("best", "known")))
    path.write_text(json.dumps({"log": exported(log)}), encoding="utf-8")
    done = subprocess.run([sys.executable, str(page), str(path)], check=False, capture_output=True)
    assert (done.returncode, done.stdout.split(b":")[0]) == (0, b"HOLDS"), done.stderr
    smaller_delta(log)
    path.write_text(json.dumps(exported(log)), encoding="utf-8")
    assert subprocess.run([sys.executable, str(page), str(path)], check=False).returncode == 1
