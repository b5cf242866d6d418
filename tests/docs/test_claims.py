"""What README and docs say of other methods is what the committed tables show."""

from __future__ import annotations

import csv
import math
import re

from page_code import ROOT

RESULTS = ROOT / "benchmarks" / "results"


def words(page: str) -> str:
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def rows(file: str, heading: str) -> list[dict[str, str]]:
    """The table under this heading of a page of results, a row each."""
    _, _, rest = (RESULTS / file).read_text(encoding="utf-8").partition(heading)
    lines = [line for line in rest.partition("\n#")[0].splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


def arena(file: str) -> dict[tuple[str, str], dict[str, str]]:
    """The rows of an arena's CSV file, by family and method."""
    with (RESULTS / file).open(encoding="utf-8", newline="") as lines:
        return {(row["family"], row["method"]): row for row in csv.DictReader(lines)}


def test_the_transport_figures_of_the_readme_are_those_of_its_table() -> None:
    of = {row["method"]: row["mean × limit"] for row in rows("transport/table.md", "## Details")}
    methods = ("BetGapE", "CombGapE †", "CombGapE (sound)", "Peace", "RAGE", "PolyBet, all plans")
    shown = " | ".join(of[name].replace("≥", "at least") for name in methods)
    assert f"| {shown} of its own limit |" in words("README.md")


def test_where_the_paper_s_radius_needs_fewer_measurements_the_readme_says_so() -> None:
    details = rows("knapsack/table.md", "## Details")
    of = {
        name: sorted(float(row["mean × limit"]) for row in details if row["method"] == name)
        for name in ("CombGapE †", "CombGapE (sound)", "BetGapE")
    }
    unproved, ours = of["CombGapE †"], of["BetGapE"]
    said = (
        f"needs fewer measurements than BetGapE, {unproved[0]} to {unproved[-1]} times the limit against "
        f"{ours[0]} to {ours[-1]:.1f}; its stop has no proof"
    )
    assert said in words("README.md")
    assert all(mine < other for mine, other in zip(ours, of["CombGapE (sound)"], strict=True))


def test_who_has_fewer_wrong_leads_than_pick_is_named() -> None:
    """More than two standard errors, over all families and budgets."""
    text = (RESULTS / "budget" / "table.md").read_text(encoding="utf-8")
    ahead = []
    for family in re.findall(r"^## (.*?):", text, re.M):
        table = {row["method"]: row for row in rows("budget/table.md", f"## {family}:")}
        for budget in (".25 T*", ".5 T*", "T*", "2 T*", "4 T*"):
            wrong = {name: re.findall(r"[\d.]+", row[budget]) for name, row in table.items()}
            mine, error = map(float, wrong["Pick"])
            for name, (theirs, other) in wrong.items():
                if mine - float(theirs) > 2 * math.hypot(error, float(other)):
                    ahead.append((family, name, budget, f"{theirs} +- {other}% against {mine} +- {error}%"))
    assert [row[:3] for row in ahead] == [("One of ten arms", "OCBA", "T*")]
    assert ahead[0][3] in words("docs/how-to/what-can-i-say-now.md")


def test_what_the_arena_s_page_says_of_stops_without_a_proof_is_in_its_table() -> None:
    shown, said = arena("arena-exact/table.csv"), words("docs/arena.md")
    pair = [shown["slippage", name] for name in ("CombGapE-heuristic", "BetGapE")]
    assert [row["proved"] for row in pair] == ["False", "True"]
    few, many = (f"{round(float(row['measurements_mean']), -2):,.0f}" for row in pair)
    assert f"({few} against {many})" in said
    for name in ("CombGapE-published", "CombGapE-heuristic"):
        row = shown["near-tie", name]
        assert f"{row['wrong']} of {int(row['answers']):,}" in said


def test_the_page_on_soare_s_vectors_has_the_figures_of_its_table() -> None:
    said = words("docs/arena.md")
    found = rows("soare.md", "# FWS and LinGame")
    assert [row["d"] for row in found] == ["6", "2", "2", "10"]
    for row in found:
        cells = (row[name] for name in ("limit", "FWS", "LinGame", "BetGapE", "RAGE", "XYAdaptive"))
        assert f"| {' | '.join(cells)} |" in said
