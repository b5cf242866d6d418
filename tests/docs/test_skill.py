"""The skill file that comes with the package: its code runs, its commands exist."""

from pathlib import Path

from page_code import Reader, blocks, printed

ROOT = Path(__file__).parents[2]
SKILL = ROOT / "src" / "surepick" / ".agents" / "skills" / "surepick" / "SKILL.md"


def test_its_code_runs(tmp_path, monkeypatch):
    assert {block.language for block in blocks(SKILL)} == {"python", "console"}
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREPICK_STORE", raising=False)
    assert "confident by land" in printed(Reader(tmp_path), SKILL)
