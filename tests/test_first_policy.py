"""What a reader of docs/adding-a-policy.md does, as printed: write the files, install, test, reproduce."""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from page_code import ROOT, blocks, lines

PAGE = ROOT / "docs" / "adding-a-policy.md"


def test_the_page_does_what_it_says_from_the_first_file_to_the_last_command(tmp_path):
    folder, place = tmp_path / "project", tmp_path / "venv"
    folder.mkdir()
    for block in blocks(PAGE):
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
    python = environment(place)
    commands = [line for block in blocks(PAGE) if block.language == "console" for line in lines(block)]
    assert [command.split()[0] for command in commands[:2]] == ["pip", "pytest"]
    assert any(command.startswith("surepick reproduce") for command in commands)
    for command in commands:
        done = run(python, command, folder)
        assert done.returncode == 0, f"{command}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        if command.startswith("pytest"):
            assert re.search(r"\b[3-9]\d passed", done.stdout), done.stdout[-300:]
        if "Doubling" in command and "BetGapE" in command:
            assert "Doubling" in done.stdout


def environment(place):
    """A virtual environment with surepick and its dependencies, and without the reader's package."""
    venv.create(place, with_pip=False)
    python = place / "bin" / "python"
    here = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    kept = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), str(ROOT / "src")]
    (here / "surepick-and-friends.pth").write_text("\n".join(dict.fromkeys(kept)) + "\n")
    return python


def run(python, command, folder):
    """Run a command of the page in that environment, without a network."""
    program, *words = shlex.split(command)
    if program == "pip":
        offline = ["--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check"]
        line = [sys.executable, "-m", "pip", "--python", str(python), words[0], *offline, *words[1:]]
    else:
        options = ["-q", "-p", "no:cacheprovider"] if program == "pytest" else []
        line = [str(python), "-m", program, *options, *words]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        line, cwd=folder, env=clean, capture_output=True, text=True, timeout=300, check=False
    )
