"""Documentation that fails the build: examples run, and everything that exists is described."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.cli import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))


# These take minutes or a user's own program; their own tests run them.
NOT_RUN_HERE = {"reproduce", "run"}


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.S)


@pytest.mark.parametrize("code", blocks(README, "python"))
def test_python_in_the_readme_runs(code, capsys):
    exec(compile(code, "README.md", "exec"), {})
    assert "wrong with probability at most 0.05" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    [line for block in blocks(README, "console") for line in block.splitlines() if "$ surepick" in line],
)
def test_commands_in_the_readme_run(line, monkeypatch):
    monkeypatch.chdir(ROOT)
    words = shlex.split(line.removeprefix("$ surepick "), comments=True)
    if words[0] in NOT_RUN_HERE:
        options = {word for word in words if word.startswith("--")}
        known = CliRunner().invoke(app, [words[0], "--help"]).output
        assert all(option in known for option in options)
        return
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output


def test_the_two_commands_come_first():
    first = blocks(README, "console")[0]
    assert re.findall(r"\$ (.*?)\s+#", first) == ["make demo", "make test"]


@pytest.mark.parametrize("name", sorted(sp.policies.POLICIES))
def test_every_policy_is_described_with_its_guarantee(name):
    assert f"`{name}`" in (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")


def test_every_link_between_documents_leads_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_python_in_the_guide_to_problems_runs():
    names = {}
    for code in blocks((ROOT / "docs" / "problems.md").read_text(encoding="utf-8"), "python"):
        exec(compile(code, "problems.md", "exec"), names)
    assert names["outcome"].status is sp.Status.CONFIDENT
    assert sum(names["outcome"].plan) == 20
