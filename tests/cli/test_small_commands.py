"""Commands of a session of hand entries run without compiled code and scipy, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROUTES = Path(__file__).parent.parent.parent / "examples" / "routes.toml"
SLOW = ("numba", "scipy", "pandas", "matplotlib", "fastapi")
RUN = f"""
import sys
from surepick.cli import main
try:
    main()
except SystemExit as end:
    code = end.code
print(*[name for name in {SLOW} if name in sys.modules], file=sys.stderr)
sys.exit(code)
"""
FIRST_ARMS = ["ring road", "old bridge", "tunnel", "market street", "ferry"]


def surepick(folder: Path, *words: str) -> tuple[str, list[str]]:
    """What the command prints, and which of the slow packages it has loaded."""
    ran = subprocess.run(
        [sys.executable, "-c", RUN, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, ran.stderr.splitlines()[-1].split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session whose first round is complete, and whose second has one measurement."""
    folder = tmp_path_factory.mktemp("hand")
    _, loaded = surepick(folder, "new", str(ROUTES))
    assert "numba" not in loaded
    for arm, minutes in zip(FIRST_ARMS, ("30", "17", "15", "23", "40"), strict=True):
        assert surepick(folder, "tell", arm, minutes, "--yes")[1] == []
    _, loaded = surepick(folder, "tell", "harbour road", "20", "--yes")
    assert "numba" not in loaded  # the round is complete: the policy decides, in NumPy
    token, _ = surepick(folder, "ask")[0].split("\t")
    assert surepick(folder, "tell", token, "29", "--yes")[1] == []
    return folder


def test_the_control_a_policy_with_compiled_rounds_is_seen_to_load_them(tmp_path: Path) -> None:
    assert "numba" in surepick(tmp_path, "new", str(ROUTES), "--policy", "CombGapE")[1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--help"], "the fewest measurements"),
        (["status", "--json"], '"risk"'),
        (["log"], "measured"),
        (["ask"], "\t"),
        (["sheet"], "measuring-sheet"),
        (["tell", "ferry", "41", "--unasked", "--key", "note 1"], "kept"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_a_small_command_loads_no_compiled_code_and_no_scipy(
    folder: Path, words: list[str], says: str
) -> None:
    out, loaded = surepick(folder, *words)
    assert says in out
    assert loaded == []


def test_what_was_kept_says_what_the_log_says(folder: Path) -> None:
    """The status from the snapshot of the last command is that of a replay of the whole log."""
    kept, _ = surepick(folder, "status", "--json")
    copy = folder / "copy"
    copy.mkdir()
    surepick(folder, "export", "--format", "json", "--to", str(copy / "log.json"))
    surepick(copy, "import", str(copy / "log.json"))
    replayed, _ = surepick(copy, "status", "--json")
    assert replayed == kept


SUBSETS = 'kind = "subsets"\narms = ["a", "b", "c", "d"]\nk = 2\nnoise = 1.0\n'
MIX = """kind = "portfolio"
asset_names = ["stocks", "bonds", "gold"]
budget = 1.0
upper = 0.6
guess = [0.7, 0.5, 0.3]
noise = 1.0
"""


@pytest.mark.parametrize(
    ("text", "options"),
    [(SUBSETS, ["--policy", "BetGapE"]), (MIX, ["--epsilon", "0.2"])],
    ids=["oracle", "polytope"],
)
def test_sessions_of_plans_that_are_not_listed_need_none_either(
    tmp_path: Path, text: str, options: list[str]
) -> None:
    (tmp_path / "plans.toml").write_text(text)
    surepick(tmp_path, "new", "plans.toml", *options)
    token, arm = surepick(tmp_path, "ask")[0].split("\t")
    assert surepick(tmp_path, "tell", token, "0.5")[1] == []
    out, loaded = surepick(tmp_path, "status", "--json")
    assert json.loads(out)["n_rounds"] == 0
    assert loaded == []
    assert f"{arm.strip()} = 0.5" in surepick(tmp_path, "log")[0]


def test_nor_do_sessions_with_probes(tmp_path: Path) -> None:
    surepick(tmp_path, "init", "drives")
    assert "numba" not in surepick(tmp_path, "new", "drives.toml")[1]
    for words in (["ask"], ["list"], ["log"], ["export"]):
        assert surepick(tmp_path, *words)[1] == [], words
    token = surepick(tmp_path, "ask")[0].split("\t")[0]
    assert surepick(tmp_path, "tell", token, "3", "3", "3", "--yes")[1] == []
