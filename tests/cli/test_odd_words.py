"""Words that nobody means to type: one line says what was wrong, and there is never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from surepick.cli import main

PROBLEM = 'kind = "table"\nnoise = 1\nplans = [[1, 0], [0, 1]]\narms = ["1.0", "-x"]\n'
SUBSETS = 'kind = "subsets"\narms = ["a", "b", "c"]\nk = 2\nguess = [1, 2, 3]\nspread = 1\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(PROBLEM)
    return tmp_path


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    monkeypatch.setattr(sys, "argv", ["surepick", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("new", "mine.toml", "--seed", "-1"), "seed"),
        (("new", "mine.toml", "--lease", "inf"), "lease"),
        (("new", "mine.toml", "--lease", "nan"), "lease"),
        (("new", "mine.toml", "--lease", "-1"), "lease"),
        (("new", "mine.toml", "--budget", "0"), "budget"),
        (("new", "mine.toml", "--delta", "nan"), "delta"),
        (("new", "mine.toml", "--epsilon", "inf"), "epsilon"),
        (("simulate", "mine.toml", "--seed", "-1"), "seed"),
        (("new", "mine.toml", "--minimise"), "goal,smallest"),
        (("check", "mine.toml", "--polcy=BetGapE"), "There is no option --polcy"),
        (("new", "mine.toml", "--polcy", "BetGapE"), "did you mean '--policy'?"),
        (("tell", "-x", "-0.5", "--wroker", "ann"), "did you mean '--worker'?"),
        (("new", "/dev/zero"), "/dev/zero"),
        (("import", "/dev/zero"), "/dev/zero"),
        (("verify", "/dev/zero"), "/dev/zero"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_it_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    if words[0] in ("import", "verify"):
        monkeypatch.setattr(sys, "argv", ["surepick", "new", "mine.toml"])
        with pytest.raises(SystemExit):
            main()
        capsys.readouterr()
    assert says in refused(monkeypatch, capsys, *words)
    assert words[0] != "new" or not Path("surepick.db").exists()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("n_draws = 500_000_000", "n_draws"),
        ('truth.means = "/dev/zero"', "/dev/zero"),
        ("seed = -1", "seed"),
        ("noise = inf", "noise"),
    ],
)
def test_a_line_of_a_file_that_would_never_end_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, says: str
) -> None:
    Path("odd.toml").write_text(SUBSETS + line + "\n")
    assert says in refused(monkeypatch, capsys, "check", "odd.toml")


@pytest.mark.skipif(os.name != "posix", reason="arguments are bytes on POSIX alone")
@pytest.mark.parametrize("word", [b"\xff.toml", b"--name=\xff", b"\xed\xa0\x80"])
def test_words_that_are_no_text_are_refused(word: bytes) -> None:
    words = [sys.executable.encode(), b"-m", b"surepick", b"new", b"mine.toml", word]
    done = subprocess.run(words, capture_output=True, check=False, timeout=120)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert b"UTF-8" in done.stderr
    assert not Path("surepick.db").exists()
