"""The independent checker says what a log guarantees, and refuses forged logs."""

import ast
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
from forged_logs import lines_of, sealed
from hulls import hull
from surepick.files.log import LogFile
from surepick.policies import Challenge
from surepick.problems import NewArm, Past
from surepick.sessions.session import Session
from surepick.sessions.verify import verify_events

PAGE = Path(__file__).parents[2] / "docs" / "check.py"
PLANS = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
SHARED = np.array(list(itertools.product([0.0, 1.0], repeat=7)))[1:70]
MEANS = np.array([0.8, 0.4, 0.0])
WITHIN = sp.BetGapE(0.1, epsilon=0.5)
QUESTIONS = {
    "best": (sp.BetGapE(0.1), PLANS),
    "few": (WITHIN, PLANS),
    "many that share arms": (sp.BetGapE(0.1, epsilon=0.9), SHARED),
    "many arms": (WITHIN, 3.0 * np.eye(67)),
    "best of many arms": (sp.BetGapE(0.1), 3.0 * np.eye(66)),
    "replace": (Challenge(1, 0.1, 0.1), PLANS),
    "keep": (Challenge(0, 0.1, 0.4), PLANS),
}
NOISE = {
    "known": {"noise": 1.2, "goal": "smallest"},
    "variance": {"noise": 1.0, "noise_kind": "bounded variance"},
    "unknown": {"noise": None},
    "bounded": {"low": -9.0, "high": 9.0},
}
CASES = [(q, n) for q in QUESTIONS for n in NOISE if n == "known" or len(QUESTIONS[q][1]) < 9]


@pytest.fixture(scope="module")
def checker():
    module = ModuleType("check")
    exec(compile(PAGE.read_text(encoding="utf-8"), str(PAGE), "exec"), vars(module))
    return module


def begun(question, noise, prior=None, **options):
    policy, plans = QUESTIONS[question]
    problem = sp.Problem(plans, **{"goal": "largest", **NOISE[noise], **options})
    return Session.create("memory://", "s", problem, policy=policy, prior=prior)


def measured(session, most=9000, *, at_once=300):
    """Answer so many requests, with values that depend on arm and place alone."""
    sign = -1.0 if session.problem.minimize else 1.0
    means = np.append(MEANS, np.full(session.problem.n_arms - 3, -0.4))
    n = 0
    while n < most and (requests := session.ask(min(most - n, at_once))):
        for request in requests:
            arm, place = map(int, request.token.split("."))
            value = sign * means[arm] + np.random.default_rng([arm, place]).standard_normal()
            session.tell(request, float(np.clip(value, -9, 9)))
        n += len(requests)
    return session


def exported(log):
    events = sealed(log)
    return LogFile("s", tuple(events), events[-1].head).to_json()


def verdict(checker, log):
    """Return the first word of what the checker says."""
    try:
        return str(checker.check(exported(log))).split(":")[0]
    except SystemExit as end:
        return str(end).split(":")[0]


def holds(log):
    events = sealed(log)
    return verify_events("s", events, events[-1].head).holds


@pytest.mark.parametrize(("question", "noise"), CASES)
def test_honest_logs_hold_after_a_removal_and_a_smaller_delta(checker, question, noise):
    session = begun(question, noise, goal="smallest" if noise == "known" else "largest")
    measured(session, 20).tell(0, 0.7)
    measured(session)
    assert verdict(checker, lines_of(session)) == "HOLDS"
    session.remove("0.1", "a slip")
    measured(session)
    assert verdict(checker, lines_of(session)) == "HOLDS"
    session.extend(delta=0.02)
    measured(session)
    log = lines_of(session)
    assert verdict(checker, log) == "HOLDS"
    assert "at most 0.02" in checker.check(exported(log))
    assert holds(log)


FINAL = [(q, "known") for q in ("best", "few", "many that share arms", "replace", "keep")]


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize(("question", "noise"), [*FINAL, ("best", "bounded"), ("best", "unknown")])
def test_a_final_batch_that_proves_the_answer(checker, question, noise, gaussian):
    session = measured(begun(question, noise), 60)
    if not session.state().is_over:
        session.final_batch(200, gaussian=gaussian and noise == "known")
    log = lines_of(measured(session))
    assert holds(log)
    is_proved = session.outcome.plan is not None
    assert verdict(checker, log) == (
        "NOT COVERED" if noise == "unknown" else "HOLDS" if is_proved else "FAILED"
    )


def opening(log, at):
    return [line for line in log if line.kind == "asked" and line.body.get("decision")][at]


def changed_value(log):
    last = log.index(opening(log, -1))
    next(line for line in log[last:] if line.kind == "measured").body["values"][0] += 1e-3


def changed_end(name, value):
    def forge(log):
        next(line for line in log if line.kind == "stopped").body[name] = value

    return forge


def changed_decision(name, value, at=2):
    def forge(log):
        opening(log, at).body["decision"][name] = value

    return forge


def smaller_delta(log):
    log[0].body["policy"]["parameters"]["delta"] = 1e-9


FORGERIES = {
    "a value": changed_value,
    "a smaller delta": smaller_delta,
    "another answer": changed_end("plan", 3),
    "an answer that there is not": changed_end("plan", 7),
    "the end's sum": changed_end("value_sum", 1.0),
    "the sum of values": changed_decision("value_sum", 0.3),
    "wealth": changed_decision("wealth", 0.3, -1),
    "another leader": changed_decision("leader", 3, -1),
    "no rivals": changed_decision("rivals", [], -1),
    "uses": changed_decision("uses", [[0, 3]]),
    "a stake of all": changed_decision("stake", [1.0, 0.0], 1),
    "a stake twice": changed_decision("stake", [0.5, 2.0], 1),
    "a huge batch": changed_decision("uses", [[0, 10**9]]),
    "a final batch": changed_decision("final", True),
    "a value left out": lambda log: log.remove(next(line for line in log if line.kind == "measured")),
    "a value twice": lambda log: log.insert(4, copy.deepcopy(log[3])),
    "a decision left out": lambda log: log.remove(opening(log, 1)),
}


BETS = {
    "fewer bets": changed_decision("bets", [[1], [1]], -1),
    "no bets": lambda log: opening(log, -1).body["decision"].pop("bets"),
    "larger bets": lambda log: opening(log, -1).body["decision"]["bets"][0].__setitem__(0, 999),
}
SPECIAL = {
    "few": {
        "other weights": changed_decision("weights", [0, 5, 0, 0], 0),
        "no sizes": lambda log: opening(log, 0).body["decision"].pop("sizes"),
    },
    "bounded": {
        "a centre beyond the bounds": changed_decision("centres", [0, 0, 4097], 1),
        "a bet that one reading may ruin": changed_decision("cap", 0.9, 1),
        "less noise": lambda log: opening(log, 1).body["decision"]["noise"].__setitem__(0, -99),
    },
    "unknown": {"less noise": lambda log: opening(log, 1).body["decision"]["noise"].__setitem__(0, -99)},
    "many arms": {"all that waits": changed_decision("waiting", [1.0, [[1, 9]]], -1), **BETS},
    "best": BETS,
    "keep": BETS,
    "mixed": {"other units": lambda log: opening(log, -1).body["decision"]["bets"].pop()},
}

FORGED = [
    ("best", "variance"),
    ("few", "known"),
    ("few", "bounded"),
    ("keep", "unknown"),
    ("many arms", "known"),
]


@pytest.mark.parametrize(("question", "noise"), FORGED)
def test_forged_logs_are_refused(checker, question, noise):
    log, held = lines_of(measured(begun(question, noise), at_once=1)), []  # none is recorded ahead
    assert verdict(checker, log) == "HOLDS"
    for name, forge in (FORGERIES | SPECIAL.get(question, {}) | SPECIAL.get(noise, {})).items():
        forged = copy.deepcopy(log)
        forge(forged)
        held += [name] if verdict(checker, forged) != "FAILED" else []
    assert held == []


@pytest.mark.parametrize(("at_once", "is_ahead"), [(1, False), (300, True)])
def test_values_that_were_there_before_their_batch_was_decided_are_an_assumption(checker, at_once, is_ahead):
    log = exported(lines_of(measured(begun("best", "known"), at_once=at_once)))
    assert ("recorded ahead" in checker.check(log)) is is_ahead


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
    assert verdict(checker, lines_of(measured(begun("few", "bounded", known=known)))) == "HOLDS"
    for question, incumbent in (("keep", 0), ("replace", 1), ("replace", 2)):
        worse = {"arm 1": 5.0, "arm 2": (-0.1, 0.1)}  # some plans are surely worse than others
        problem = sp.Problem(PLANS, noise=1.0, goal="largest", known=worse)
        session = Session.create("memory://", question, problem, policy=Challenge(incumbent, 0.1, 0.1))
        log = lines_of(measured(session))
        assert verdict(checker, log) == ("HOLDS" if session.outcome.plan is not None else "FAILED")
    problem = largest(PLANS)
    for question in ("best", "few", "keep"):
        prior = Past.from_history(problem, [3, 9, 4], [0.1, 0.9, 0.3])
        session = measured(begun(question, "variance", prior))
        assert verdict(checker, lines_of(session)) == "HOLDS"


@pytest.mark.parametrize("question", ["best", "few", "many that share arms"])
@pytest.mark.parametrize("noise", ["known", "bounded"])
def test_plans_and_arms_that_arrive(checker, question, noise):
    session = measured(begun(question, noise), 50)
    session.add_plan("another", np.full(session.problem.n_arms, 0.2).tolist())
    measured(session, 20)
    bounds = {"low": -9.0, "high": 9.0} if noise == "bounded" else {}
    amounts = {session.problem.arm_names[0]: 1.0, "fresh": 0.5}
    session.add_plan("with an arm", amounts, arms=[NewArm("fresh", **bounds)])
    measured(session)
    log = lines_of(session)
    assert session.outcome.plan is not None
    assert holds(log)
    assert verdict(checker, log) == "HOLDS"


MIXED = np.array([[1, 0, 0], [0, 1, 1], [1, 0, -1], [0, 0, 1]])
PAIRED = {"pair": sp.Probe(["arm 0", "arm 1"], covariance=[[1.0, 0.8], [0.8, 1.0]]), "third": ["arm 2"]}


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("best", {"noise": 1.0, "measure": MIXED}),
        ("few", {"noise": 1.0, "measure": MIXED, "noise_kind": "bounded variance"}),
        ("keep", {"noise": None, "measure": MIXED}),
        ("best", {"low": -9.0, "high": 9.0, "measure": MIXED}),
        ("best", {"noise": 1.0, "measure": PAIRED}),
        ("replace", {"noise": 1.0, "measure": "plans"}),
        ("best", {"noise": 1.0, "measure": MIXED, "known": {"arm 2": 0.0}}),
    ],
)
def test_logs_of_probes_hold_and_changed_values_do_not(checker, question, options):
    policy, plans = QUESTIONS[question]
    problem = sp.Problem(plans, goal="largest", **options)
    session, rng = Session.create("memory://", "s", problem, policy=policy), np.random.default_rng(2)
    rows = np.asarray(problem.probes.rows.todense())
    while requests := session.ask(1):
        for request in requests:
            means = rows[problem.probes.readings_of(int(request.token.split(".")[0]))] @ MEANS
            values = np.clip(means + rng.standard_normal(len(means)), -9, 9).tolist()
            session.tell(request, values if len(values) > 1 else values[0])
    log = lines_of(session)
    assert session.outcome.plan is not None
    assert verdict(checker, log) == "HOLDS"
    wealth = [] if "known" in options else [changed_decision("wealth", 0.3, -1)]
    for forge in (changed_value, smaller_delta, *wealth):
        forged = copy.deepcopy(log)
        forge(forged)
        assert verdict(checker, forged) == "FAILED"


def test_a_plan_that_arrives_beside_known_arms_and_bounds_that_differ(checker):
    session = measured(begun("best", "known", known={"arm 2": 0.0}, goal="largest"), 30)
    session.add_plan("another", [0.5, 0.0, 1.0])
    assert verdict(checker, lines_of(measured(session))) == "HOLDS"
    bounds = {"low": [-9.0, -10.0, -12.0], "high": [9.0, 11.0, 9.5]}
    log = lines_of(measured(begun("few", "bounded", **bounds)))
    assert (verdict(checker, log), holds(log)) == ("HOLDS", True)


def test_what_is_not_covered_never_holds(checker):
    for problem, policy in (
        (largest(PLANS), sp.CombGapE(0.1)),
        (sp.problems.top_k(list("abc"), 2, goal="largest", list_plans=False, noise=1), sp.BetGapE()),
        (hull(PLANS), sp.BetGapE()),
    ):
        session = Session.create("memory://", "s", problem, policy=policy)
        assert verdict(checker, lines_of(session)) == "NOT COVERED"


def test_it_is_one_page_that_imports_numpy_alone(tmp_path):
    text = PAGE.read_text(encoding="utf-8")
    tree, found = ast.parse(text), set()
    for node in ast.walk(tree):
        found |= {name.name for name in node.names} if isinstance(node, ast.Import) else set()
        found |= {str(node.module)} if isinstance(node, ast.ImportFrom) else set()
    assert found - set(sys.stdlib_module_names) == {"numpy"}
    assert text.count("\n") <= 560
    path, log = tmp_path / "log.json", lines_of(measured(begun("best", "known")))
    path.write_text(json.dumps({"log": exported(log)}), encoding="utf-8")
    done = subprocess.run([sys.executable, str(PAGE), str(path)], check=False, capture_output=True)
    assert (done.returncode, done.stdout.split(b":")[0]) == (0, b"HOLDS")
    smaller_delta(log)
    path.write_text(json.dumps(exported(log)), encoding="utf-8")
    assert subprocess.run([sys.executable, str(PAGE), str(path)], check=False).returncode == 1
