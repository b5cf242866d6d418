"""The order of measuring within a round: balanced and drawn from the seed, and nothing is decided by it."""

import itertools

import numpy as np

import surepick as sp
from session_tools import Tapes, answer
from surepick.policies import RAGE
from surepick.sessions.session import Session

NAMES = ["a", "b", "c"]


def problem(order="balanced"):
    return sp.Problem(np.eye(3), arms=NAMES, noise=4.0, goal="largest").with_about(order=order)


def begun(seed, order="balanced"):
    return Session.create("memory://", "mine", problem(order), policy=RAGE(delta=0.1), seed=seed)


def passes(session):
    requests = session.ask(12)
    names = [request.probe_name for request in requests]
    return [names[i : i + 3] for i in range(0, 12, 3)]


def test_passes_have_each_arm_once_and_every_second_one_is_the_one_before_backwards():
    first, second, third, fourth = passes(begun(0))
    assert sorted(first) == sorted(third) == NAMES
    assert (second, fourth) == (first[::-1], third[::-1])


def test_the_order_is_drawn_from_the_seed_and_every_order_comes():
    assert passes(begun(3)) == passes(begun(3))
    assert len({tuple(passes(begun(seed))[0]) for seed in range(40)}) == 6


def longest_run(names):
    return max(len(list(group)) for _, group in itertools.groupby(names))


def test_single_arms_are_balanced_unless_the_listed_order_is_asked_for():
    assert {request.probe for request in begun(0, order="listed").ask(4)} == {0}
    for policy in (sp.BetGapE(delta=0.1), RAGE(delta=0.1)):
        session = Session.create("memory://", "mine", problem(""), policy=policy)
        handed_out = []
        while len(handed_out) < 60 and (requests := session.ask(5)):  # some of them ahead of the round
            for request in requests:
                handed_out.append(request.probe_name)
                session.tell(request, 0.1 * request.probe)
        assert longest_run(handed_out[:36]) <= 3
        early = [handed_out[:18].count(name) for name in NAMES]
        assert max(early) - min(early) <= 4


def test_what_is_shown_as_wanted_is_in_the_order_in_which_it_is_handed_out():
    session = begun(2, order="")
    shown = [request.token for request in session.pending(6)]
    assert [one.arm for one in session.view().open] == list(
        dict.fromkeys(one.arm for one in session.pending(6))
    )
    assert shown == [request.token for request in session.ask(6)]


def test_nothing_is_decided_by_the_order():
    tapes, ends = Tapes(means=np.array([0.0, 2.0, 4.0]), scale=1.0), []
    for order in ("balanced", "listed"):
        session = Session.create(
            "memory://", "mine", problem(order), policy=sp.BetGapE(delta=0.3), budget=300
        )
        answer(session, lambda request: tapes.value(request.token), at_once=7)
        ends.append([e.body for e in session.events() if e.kind in ("asked", "stopped")])
    assert ends[0] == ends[1]
