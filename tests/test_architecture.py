"""Who may import whom: imports point down this list only, and rooms keep to their own tools."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "surepick"

# From the bottom up; modules on one line may import each other.
LAYERS = [
    {"_version", "errors", "plugins"},
    {"core", "layout", "policy"},
    {
        "compiled",
        "radius",
        "design",
        "limits",
        "unlisted_limit",
        "kernels",
        "bet_kernels",
        "bet_tuning",
        "block_kernels",
        "row_kernels",
        "draw_kernels",
        "round_words",
    },
    {"policies", "problems", "forecasts", "environments"},
    {"simulation"},
    {"comparison", "advice", "codec", "store"},
    {"session", "handing_out", "replica", "certificate", "ledger", "run_state", "trace"},
    {"views"},
    {"experiments", "plots", "report", "web", "testing"},
    {"cli", "__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
KERNEL = {name for names in LAYERS[:3] for name in names} | {"policies"}
FORBIDDEN = {
    "kernel": {
        "sqlalchemy",
        "logging",
        "os",
        "time",
        "random",
        "pathlib",
        "rich",
        "typer",
        "json",
        "sqlite3",
    },
    "store": {"numpy", "scipy", "numba"},
    "problems": {"sqlalchemy", "rich", "typer", "logging", "time"},
}
ALLOWED_IN_KERNEL = {("core", "pathlib")}  # plans may be given as the path of a CSV file


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path):
    """Every module this file imports, with the room it belongs to if it is one of ours."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "surepick":
                yield from (f"surepick.{alias.name}" for alias in node.names)
            else:
                yield node.module


FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path):
    room = room_of(path)
    assert room in LEVEL, f"{room} has no place in the layers; give it one"
    for module in imported(path):
        if module.startswith("surepick."):
            other = module.split(".")[1]
            assert LEVEL[other] <= LEVEL[room], f"{room} must not import {other}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_rooms_touch_only_what_they_may(path):
    room = room_of(path)
    kind = "kernel" if room in KERNEL else room
    for module in imported(path):
        top = module.split(".")[0]
        if (room, top) not in ALLOWED_IN_KERNEL:
            assert top not in FORBIDDEN.get(kind, set()), f"{room} must not touch {top}"


def test_no_global_random_state_anywhere():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np.random":
                assert node.attr in {"Generator", "SeedSequence", "default_rng"}, path
