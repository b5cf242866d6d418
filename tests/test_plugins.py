"""Policies of other packages: those of docs/adding-a-policy.md.

`test_first_policy.py` installs them as a reader does and runs the page's commands.
"""

import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import surepick as sp
from common import largest, refuses
from surepick.core.run import Measure
from surepick.errors import ParameterError, PluginError
from surepick.policies import describe, parse_policy, policy_named
from surepick.sessions import codec
from surepick.simulation import Gaussian

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "adding-a-policy.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`([\w.]+)`\n\n```\w+\n(.*?)```", PAGE, flags=re.S | re.M))
ENTRY_POINTS = tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"]


def install(folder, package, entry_points, version="0.1"):
    """What pip leaves behind of a package: its metadata, found wherever its modules are found."""
    info = folder / f"{package}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in entry_points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed packages."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.modules.pop("doubling", None)


@pytest.fixture
def installed(site):
    for name, text in FILES.items():
        (site / name).write_text(text, encoding="utf-8")
    install(site, "doubling", ENTRY_POINTS)
    return site


def test_a_policy_of_another_package_is_found_whatever_the_case(installed):
    policy = parse_policy("doubling", delta=0.2)
    assert type(policy).__module__ == "doubling"
    assert policy.delta == 0.2
    assert describe(policy) == "Doubling"
    assert codec.policy_from_json(codec.policy_to_json(policy)) == policy


def test_nothing_is_imported_before_its_name_is_asked_for(installed):
    assert policy_named("BetGapE") is sp.BetGapE
    with refuses("policy", ParameterError):
        policy_named("Doublink")
    assert "doubling" not in sys.modules


def test_sessions_keep_a_policy_of_another_package(installed, sqlite_url):
    problem = sp.Problem([[1, 0], [0, 1]], noise=0.5, goal="largest")
    session = sp.Session.create(sqlite_url, "trips", problem, policy=parse_policy("Doubling"))
    means = [1.0, 0.0]
    while requests := session.ask():
        for request in requests:
            session.tell(request, means[request.probe])
    again = sp.Session.load(sqlite_url, "trips")
    assert again.outcome.plan == 0
    assert again.outcome.policy.name == "Doubling"


@pytest.mark.parametrize(
    ("module", "value"),
    [
        ("import nowhere_to_be_found\n", "broken:Mine"),
        ("class Other: pass\n", "broken:Mine"),
        ("def Mine(): pass\n", "broken:Mine"),
        ("from surepick import CombGapE as Mine\n", "broken:Mine"),
    ],
)
def test_errors_name_the_package(site, module, value):
    (site / "broken.py").write_text(module)
    install(site, "acme-picks", {"surepick.policies": {"Mine": value}}, "3.1")
    try:
        with pytest.raises(PluginError) as caught:
            policy_named("Mine")
        assert "acme-picks" in str(caught.value)
        assert policy_named("CombGapE") is sp.CombGapE
    finally:
        sys.modules.pop("broken", None)


def test_no_package_takes_the_name_of_our_own(site):
    (site / "broken.py").write_text("raise RuntimeError('imported')\n")
    install(site, "impostor", {"surepick.policies": {"BetGapE": "broken:X"}})
    assert policy_named("betgape") is sp.BetGapE


BAD_DECISIONS = {
    "asked for nothing": lambda run: Measure(np.zeros(2, dtype=np.int64)),
    "a negative number": lambda run: Measure(np.array([3, -1])),
    "decided None": lambda run: None,
}


@pytest.fixture(params=BAD_DECISIONS)
def stubborn(request, installed, monkeypatch):
    """Return a policy that makes an invalid decision after two phases."""
    policy = parse_policy("Doubling", delta=1e-9)
    run, good = sys.modules["doubling"].DoublingRun, sys.modules["doubling"].DoublingRun.decide
    bad = BAD_DECISIONS[request.param]
    monkeypatch.setattr(run, "decide", lambda self, rng: good(self, rng) if self.phase < 2 else bad(self))
    return policy


def test_a_simulation_of_a_policy_that_asks_for_nothing_ends_with_an_error(stubborn):
    policy = stubborn
    problem = largest([[1, 0], [0, 1]])
    with pytest.raises(PluginError):
        sp.simulate(problem, Gaussian([1.0, 0.0]), policy=policy)


def test_a_session_of_such_a_policy_says_so_and_keeps_what_was_told(stubborn, sqlite_url):
    policy = stubborn
    session = sp.Session.create(sqlite_url, "trips", largest([[1, 0], [0, 1]]), policy=policy)
    told = []

    def measure_for_ever():
        while requests := session.ask():
            for request in requests:
                told.append(float(len(told)))
                session.tell(request, told[-1])

    with pytest.raises(PluginError):
        measure_for_ever()
    again = sp.Session.load(sqlite_url, "trips")
    assert [m.value for m in again.measurements()] == told
    for opened in (session, again):
        with pytest.raises(PluginError):
            opened.ask()
    assert again.verify().holds


@pytest.mark.parametrize("bad", BAD_DECISIONS.values(), ids=BAD_DECISIONS)
def test_a_session_whose_policy_asks_for_nothing_at_first_is_not_begun(
    bad, installed, sqlite_url, monkeypatch
):
    policy = parse_policy("Doubling", delta=1e-9)
    monkeypatch.setattr(sys.modules["doubling"].DoublingRun, "decide", lambda self, rng: bad(self))
    with pytest.raises(PluginError):
        sp.Session.create(sqlite_url, "trips", largest([[1, 0], [0, 1]]), policy=policy)
