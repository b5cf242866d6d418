"""What README and docs say of other methods is what the committed tables show."""

import math
import re

from page_code import ROOT

RESULTS = ROOT / "benchmarks" / "results"


def words(page):
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def rows(file, heading):
    """The table under this heading of a page of results, a row each."""
    _, _, rest = (RESULTS / file).read_text(encoding="utf-8").partition(heading)
    lines = [line for line in rest.partition("\n#")[0].splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


def test_the_transport_figures_of_the_readme_are_those_of_its_table():
    of = {row["method"]: row["x limit"] for row in rows("transport.md", "### Transports")}
    methods = ("BetGapE", "CombGapE", "CombGapE (proved)", "Peace", "RAGE", "BetGapE, all plans")
    shown = " | ".join(of[name].replace("≥", "at least") for name in methods)
    assert f"| {shown} of its own limit |" in words("README.md")


def test_where_the_paper_s_radius_needs_fewer_measurements_the_readme_says_so():
    details = [row for d in (5, 7, 9) for row in rows("knapsack.md", f"### Knapsacks of {d} items")]
    of = {
        name: [float(row["x limit"]) for row in details if row["method"] == name]
        for name in ("CombGapE", "CombGapE (proved)", "BetGapE")
    }
    unproved, ours = of["CombGapE"], of["BetGapE"]
    said = (
        f"needs fewer measurements than BetGapE, {min(unproved)} to {max(unproved)} times the limit against "
        f"{min(ours)} to {max(ours)}; its stop has no proof"
    )
    assert said in words("README.md")
    assert all(mine < other for mine, other in zip(ours, of["CombGapE (proved)"], strict=True))


def test_the_naive_rule_s_tail_is_on_the_page_as_in_its_table():
    found = [rows("knapsack-naive.md", f"### Knapsacks of {d} items")[1] for d in (5, 7, 9)]
    cells = [" | ".join(f"{float(row[name].strip('≥ ')):.1f}" for row in found) for name in ("median", "q90")]
    page = words("docs/benchmarks.md")
    assert f"| median ratio | {cells[0]} |" in page
    assert f"| 90% quantile | {cells[1]} |" in page


def test_who_has_fewer_wrong_leads_than_pick_is_named():
    """More than two standard errors, over all families and budgets."""
    text = (RESULTS / "budget.md").read_text(encoding="utf-8")
    ahead = []
    for family in re.findall(r"^## (.*?):", text, re.M):
        table = {row["method"]: row for row in rows("budget.md", f"## {family}:")}
        for budget in (".25 T*", ".5 T*", "T*", "2 T*", "4 T*"):
            wrong = {name: re.findall(r"[\d.]+", row[budget]) for name, row in table.items()}
            mine, error = map(float, wrong["Pick"])
            for name, (theirs, other) in wrong.items():
                if mine - float(theirs) > 2 * math.hypot(error, float(other)):
                    ahead.append((family, name, budget, f"{theirs} +- {other}% against {mine} +- {error}%"))
    assert [row[:3] for row in ahead] == [("One of ten arms", "OCBA", "T*")]
    assert ahead[0][3] in words("docs/how-to/budget.md")


def test_what_the_arena_s_page_says_of_a_stop_without_a_proof_is_in_its_table():
    table = {row["method"]: row for row in rows("arena.md", "### Ten arms, one better by .3:")}
    pair = [table[name] for name in ("CombGapE, heuristic", "BetGapE")]
    assert [row["proof"] for row in pair] == ["no", "yes"]
    few, many = (f"{float(row['measurements']):,.0f}" for row in pair)
    assert f"({few} against {many})" in words("docs/benchmarks.md")


def test_the_first_table_of_the_benchmarks_is_that_of_the_studies():
    transport = {row["method"]: row["x limit"] for row in rows("transport.md", "### Transports")}
    knapsacks = [
        {row["method"]: row["x limit"] for row in rows("knapsack.md", f"### Knapsacks of {d} items")}
        for d in (5, 7, 9)
    ]
    page = words("docs/benchmarks.md").replace("**", "")
    for method in ("BetGapE", "CombGapE (proved)", "CombGapE", "Peace", "RAGE"):
        multiples = " / ".join(f"{float(of[method]):,g}" for of in knapsacks)
        assert f"| {transport[method].replace('≥', 'at least')} | {multiples} |" in page


def test_the_wrong_answers_of_each_radius_are_those_of_its_study():
    two, three = (
        {row["method"]: row["wrong"].split()[0] for row in rows("radii.md", heading)}
        for heading in ("### Two arms, gap .02", "### Three arms, gap .05")
    )
    page = words("docs/benchmarks.md").replace("**", "").replace(", more than the 100 allowed", "")
    for radius in ("published", "heuristic", "normal-mixture", "kaufmann-koolen"):
        assert f"| {radius} | {two[radius]} | {three[radius]} |" in page
