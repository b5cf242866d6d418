"""Experiments side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from surepick.errors import ParameterError
from surepick.experiments import Case, run_case
from surepick.experiments.rows import row_to_line
from surepick.web.settings import Settings
from web_tools import running

POLICIES = ({"policy": "CombGapE"}, {"policy": "CombGapE", "radius": "published"}, {"policy": "Uniform"})


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    cases = [
        Case(
            {"kind": "knapsack", "n_items": 5, "seed": seed},
            {**policy, "delta": 0.1},
            seed=seed,
            budget=10**4,
        )
        for seed in range(2)
        for policy in POLICIES
    ]
    (folder / "bags").mkdir()
    lines = [row_to_line(run_case(case)) for case in cases]
    (folder / "bags" / "rows.jsonl").write_text("\n".join([*lines, "damaged"]) + "\n")
    (folder / "secret.txt").write_text("nobody's business")
    return folder


def test_experiments_are_compared_method_by_method(results: Path) -> None:
    with running("memory://", results=results) as server:
        listed = server.client.get("/api/experiments").json()["files"]
        assert [file["name"] for file in listed] == ["bags/rows.jsonl"]
        page = server.client.get(f"/experiments/{listed[0]['slug']}")
        data = server.client.get(f"/api/experiments/{listed[0]['slug']}").json()
        assert "bags/rows.jsonl" in server.client.get("/experiments").text
        for other in ("secret.txt", "~c2VjcmV0LnR4dA", "~Li4vc2VjcmV0LnR4dA", "nothing.jsonl"):
            assert server.client.get(f"/experiments/{other}").status_code == 404
    assert page.status_code == 200
    assert "promises nothing" in page.text
    family = data["families"][0]
    assert family["name"] == "knapsack, n_items 5"
    assert [method["summary"]["label"] for method in family["methods"]] == [
        "CombGapE",
        "CombGapE (radius published)",
        "Uniform",
    ]
    assert [method["summary"]["n_runs"] for method in family["methods"]] == [2, 2, 2]
    assert sum(method["least"] for method in family["methods"]) >= 1
    assert (data["n_rows"], data["n_bad"]) == (6, 1)


def test_a_folder_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="no folder of results"):
        Settings("memory://", results=tmp_path / "nothing")
