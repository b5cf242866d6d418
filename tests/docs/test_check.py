"""The independent checker says what a log guarantees, and refuses forged logs."""

from __future__ import annotations

import ast
import copy
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import surepick as sp
from forged_logs import Log, lines_of, sealed
from surepick.files.log import LogFile
from surepick.sessions.session import Session
from surepick.sessions.verify import verify_events

PAGE = Path(__file__).parents[2] / "docs" / "check.py"
PLANS = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
MEANS = np.array([0.8, 0.4, 0.0])
POLICIES = {"best": sp.BetGapE(0.1), "replace": sp.Challenge(1, 0.1, 0.1), "keep": sp.Challenge(0, 0.1, 0.4)}
NOISE: dict[str, dict[str, Any]] = {
    "known": {"noise_scale": [1.0, 0.8, 1.2]},
    "variance": {"noise_scale": 1.0, "noise": "bounded variance"},
    "unknown": {"noise_scale": None},
}


@pytest.fixture(scope="module")
def checker() -> ModuleType:
    module = ModuleType("check")
    exec(compile(PAGE.read_text(encoding="utf-8"), str(PAGE), "exec"), vars(module))
    return module


def begun(question: str, noise: str, **options: Any) -> Session:
    problem = sp.Problem(PLANS, **{**NOISE[noise], **options}, goal="largest")
    return Session.create("memory://", "s", problem, policy=POLICIES[question])


def measured(session: Session, most: int = 4000) -> Session:
    sign = -1.0 if session.problem.minimize else 1.0
    for _ in range(most):
        requests = session.ask(1)
        if not requests:
            break
        arm, place = map(int, requests[0].token.split("."))
        session.tell(requests[0], sign * MEANS[arm] + np.random.default_rng([arm, place]).standard_normal())
    return session


def exported(log: Log) -> dict[str, Any]:
    events = sealed(log)
    return LogFile("s", tuple(events), events[-1].head).to_json()


def verdict(checker: ModuleType, log: Log) -> str:
    """Return the first word of what the checker says."""
    try:
        return str(checker.check(exported(log))).split(":")[0]
    except SystemExit as end:
        return str(end).split(":")[0]


def holds(log: Log) -> bool:
    events = sealed(log)
    return verify_events("s", events, events[-1].head).holds


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("question", POLICIES)
def test_honest_logs_hold_after_a_removal_and_a_smaller_delta(checker, question, noise):
    session = begun(question, noise, goal="smallest" if noise == "known" else "largest")
    measured(session, 20).add_extra(0, 0.7)
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


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("question", POLICIES)
def test_a_final_batch_that_proves_the_answer(checker, question, gaussian):
    session = measured(begun(question, "known"), 60)
    if not session.ledger().is_over:
        session.final_batch(200, gaussian=gaussian)
    log = lines_of(measured(session))
    assert holds(log)
    assert verdict(checker, log) == ("HOLDS" if session.outcome.plan is not None else "FAILED")


def opening(log: Log, at: int) -> Any:
    return [line for line in log if line.kind == "asked" and "decision" in line.body][at]


def changed_value(log: Log) -> None:
    last = log.index(opening(log, -1))
    next(line for line in log[last:] if line.kind == "measured").body["value"] += 1e-3


def changed_end(name: str, value: Any) -> Any:
    def forge(log: Log) -> None:
        next(line for line in log if line.kind == "stopped").body[name] = value

    return forge


def changed_decision(name: str, value: Any, at: int = 2) -> Any:
    def forge(log: Log) -> None:
        opening(log, at).body["decision"][name] = value

    return forge


def smaller_delta(log: Log) -> None:
    log[0].body["policy"]["parameters"]["delta"] = 1e-9


FORGERIES = {
    "a value": changed_value,
    "a smaller delta": smaller_delta,
    "another answer": changed_end("plan", 3),
    "an answer that there is not": changed_end("plan", 7),
    "the end's wealth": changed_end("wealth", 1.0),
    "wealth": changed_decision("wealth", 0.3),
    "evidence": changed_decision("evidence", 0.3),
    "another leader": changed_decision("leader", 3),
    "no rivals": changed_decision("rivals", []),
    "uses": changed_decision("uses", [[0, 3]]),
    "a huge batch": changed_decision("uses", [[0, 10**9]]),
    "a final batch": changed_decision("final", True),
    "a value left out": lambda log: log.remove(next(line for line in log if line.kind == "measured")),
    "a value twice": lambda log: log.insert(4, copy.deepcopy(log[3])),
    "a decision left out": lambda log: log.remove(opening(log, 1)),
}


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("question", POLICIES)
def test_forged_logs_are_refused(checker, question, noise):
    log, held = lines_of(measured(begun(question, noise))), []
    assert verdict(checker, log) == "HOLDS"
    for name, forge in FORGERIES.items():
        forged = copy.deepcopy(log)
        forge(forged)
        held += [name] if verdict(checker, forged) != "FAILED" else []
    assert held == []


def test_a_broken_chain_is_refused(checker):
    log = exported(lines_of(measured(begun("best", "known"))))
    for at, name, value in ((5, "body", '{"value":9.0}'), (3, "checksum", "0" * 64), (4, "time", 0.0)):
        broken = copy.deepcopy(log)
        broken["events"][at][name] = value
        with pytest.raises(SystemExit):
            checker.check(broken)
    with pytest.raises(SystemExit):
        checker.check({**log, "events": log["events"][:-1]})


def test_what_is_not_covered_never_holds(checker):
    sessions = [
        begun("best", "known", measure="plans", noise=1.0),
        Session.create(
            "memory://",
            "s",
            sp.Problem(PLANS, noise=1.0, goal="largest"),
            policy=sp.BetGapE(0.1, epsilon=0.2),
        ),
        Session.create(
            "memory://", "s", sp.Problem(PLANS, noise=1.0, goal="largest"), policy=sp.CombGapE(0.1)
        ),
        Session.create(
            "memory://", "s", sp.Problem(PLANS, low=-9.0, high=9.0, goal="largest"), policy=sp.BetGapE(0.1)
        ),
        measured(begun("best", "known"), 6),
    ]
    sessions[-1].add_plan("another", [0.3, 0.2, 0.1])
    for session in sessions:
        assert verdict(checker, lines_of(session)) == "NOT COVERED"


def test_it_is_one_page_that_imports_numpy_alone(tmp_path):
    text = PAGE.read_text(encoding="utf-8")
    tree, found = ast.parse(text), set[str]()
    for node in ast.walk(tree):
        found |= {name.name for name in node.names} if isinstance(node, ast.Import) else set()
        found |= {str(node.module)} if isinstance(node, ast.ImportFrom) else set()
    assert found - set(sys.stdlib_module_names) == {"numpy"}
    assert text.count("\n") <= 300
    path, log = tmp_path / "log.json", lines_of(measured(begun("best", "known")))
    path.write_text(json.dumps({"log": exported(log)}), encoding="utf-8")
    done = subprocess.run([sys.executable, str(PAGE), str(path)], check=False, capture_output=True)
    assert (done.returncode, done.stdout.split(b":")[0]) == (0, b"HOLDS")
    smaller_delta(log)
    path.write_text(json.dumps(exported(log)), encoding="utf-8")
    assert subprocess.run([sys.executable, str(PAGE), str(path)], check=False).returncode == 1
