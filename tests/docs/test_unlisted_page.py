"""What docs/when-plans-cannot-be-listed.md shows works."""

import re
from math import comb
from pathlib import Path

import surepick as sp
from surepick import problems
from surepick.inputs.load import read_problem

PAGE = (Path(__file__).parent.parent.parent / "docs" / "when-plans-cannot-be-listed.md").read_text(
    encoding="utf-8"
)


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.S)


def test_the_python_examples_run_in_their_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in blocks("python"):
        exec(compile(code, "when-plans-cannot-be-listed.md", "exec"), names)
    first, chosen, holds = capsys.readouterr().out.splitlines()
    assert first == "A - B + A - C + C - D"
    best = [f"north {s}" for s in (9, 10, 11)] + [f"south {s}" for s in (7, 8, 9, 10, 11)]
    assert chosen == " + ".join(best)
    assert holds == "True"
    assert names["problem"].n_plans == sum(comb(12, n) * comb(12, 8 - n) for n in (3, 4, 5))


def test_the_file_is_decided(tmp_path):
    (text,) = blocks("toml")
    (tmp_path / "cables.toml").write_text(text)
    loaded = read_problem(tmp_path / "cables.toml")
    outcome = sp.simulate(loaded.problem, sp.Gaussian(loaded.means, 0.5), policy=sp.BetGapE(), seed=1)
    assert outcome.plan_name == "A - B + A - C + C - D"


def test_every_family_of_the_table_exists():
    for name in re.findall(r"^\| `(\w+_family)\(", PAGE, flags=re.M):
        assert callable(getattr(problems, name))
