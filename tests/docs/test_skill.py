"""The skill file that comes with the package: it is in the wheel, its code runs, its commands exist."""

import subprocess
import sys
import zipfile
from importlib.resources import files
from pathlib import Path

from page_code import Reader, blocks, printed

ROOT = Path(__file__).parents[2]
SKILL = ROOT / "src" / "surepick" / ".agents" / "skills" / "surepick" / "SKILL.md"


def test_it_comes_with_the_wheel(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert "surepick/.agents/skills/surepick/SKILL.md" in zipfile.ZipFile(wheel).namelist()
    assert files("surepick").joinpath(".agents/skills/surepick/SKILL.md").is_file()


def test_its_code_runs(tmp_path, monkeypatch):
    assert {block.language for block in blocks(SKILL)} == {"python", "console"}
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREPICK_STORE", raising=False)
    assert "confident by land" in printed(Reader(tmp_path), SKILL)
