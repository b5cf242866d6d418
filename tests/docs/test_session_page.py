"""What docs/sessions.md shows works, and it names every command and every rule of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from surepick.sessions.leasing import AHEAD, AHEAD_PER_WORKER
from surepick.sessions.settings import LEASE

PAGE = (Path(__file__).parent.parent.parent / "docs" / "sessions.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", PAGE, flags=re.S))
def test_the_example_runs(
    code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "sessions.md", "exec"), {})
    assert "plan 0 confident" in capsys.readouterr().out


def test_the_numbers_in_the_text_are_those_of_the_code() -> None:
    assert (AHEAD, AHEAD_PER_WORKER, LEASE) == (64, 4, 3600.0)
    for result in ("repeated", "extra"):
        assert f"`{result}`" in PAGE
