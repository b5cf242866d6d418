"""Who may import whom: the picture in `CONTRIBUTING.md`, enforced."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "surepick"

# Every room, with the rooms that its modules may import beside its own; imports go down this list only.
ROOMS: dict[str, set[str]] = {
    "_version": set(),
    "errors": set(),
    "core": {"errors"},
    "tables": {"errors", "core"},  # CSV and Excel files, opened here alone
    "policy": {"core"},  # the documented path of plug-in authors
    "kernels": {"core"},
    "design": {"errors", "core"},
    "inference": {"errors", "core", "design"},
    "policies": {"errors", "core", "kernels", "design", "inference"},
    "peers": {"errors", "core", "kernels", "design", "policies"},
    "problems": {"errors", "core", "tables", "kernels"},
    "inputs": {"errors", "core", "tables", "problems"},
    "simulation": {"errors", "core", "kernels", "policies", "problems"},
    "limits": {"errors", "core", "design", "policies"},
    "store": {"errors"},
    "noise": {"core"},
    "certificates": {"_version", "errors", "core", "tables", "policies", "simulation"},
    "sessions": {
        *("_version", "errors", "core", "tables", "policies", "problems", "simulation", "store"),
        *("noise", "certificates"),
    },
    "measure": {"errors", "core", "policies", "store", "sessions", "views"},
    "files": {"errors", "core", "tables", "store", "sessions"},
    "views": {"errors", "core", "tables", "design", "simulation", "sessions", "store"},
    "plots": {"errors", "core", "sessions", "views"},
}
SHOWN = "sessions/session.py"  # a session shows itself by its View and figures, imported when it is asked to
REGISTRY = "policies/__init__.py"  # names the peers, and imports one when it is first used
EDGES = {"cli", "experiments", "report", "testing", "web"}  # may import every room above, and these edges:
BETWEEN_EDGES = {
    "cli": {"experiments", "report", "web"},  # each command hands over to its room
    "experiments": {"plots"},
    "web": {"report"},  # the report to be downloaded
}
EVERYTHING_BELOW = set(ROOMS) - {"plots"}
ROOMS |= {edge: EVERYTHING_BELOW | BETWEEN_EDGES.get(edge, set()) for edge in EDGES}
ROOMS["__main__"] = {"cli"}

# What the rooms of numbers must not touch, and who else keeps off what.
MACHINE = {"logging", "os", "time", "random", "pathlib", "rich", "typer", "json", "sqlite3", "psycopg"}
FORBIDDEN = {
    **dict.fromkeys(("core", "kernels", "design", "inference", "policies", "peers"), MACHINE),
    "store": {"numpy", "scipy", "numba"},
    "problems": {"sqlite3", "psycopg", "rich", "typer", "logging", "time"},
}
ALLOWED = {
    ("problems/kinds/program.py", "time"),  # programs are given up when their time is over
}


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


def test_ls_shows_the_picture():
    files = [path.name for path in SOURCE.iterdir() if path.is_file() and path.suffix == ".py"]
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert len(files) <= 8, files
    assert rooms <= set(ROOMS), f"{rooms - set(ROOMS)} have no place in the picture; give them one"


def test_imports_follow_the_picture():
    wrong = []
    for path in FILES:
        room, file = room_of(path), str(path.relative_to(SOURCE))
        named = {REGISTRY: {"peers"}, SHOWN: {"views", "plots", "report"}}.get(file, set())
        for module in imported(path):
            other = module.split(".")[1] if module.startswith("surepick.") else room
            if other != room and other not in ROOMS[room] | named:
                wrong.append(f"{file} must not import {other}")
    assert not wrong


def test_rooms_touch_only_what_they_may():
    wrong = []
    for path in FILES:
        room, file = room_of(path), str(path.relative_to(SOURCE))
        tops = {module.split(".")[0] for module in imported(path)}
        wrong += [
            f"{file} must not use {top}"
            for top in tops & FORBIDDEN.get(room, set())
            if (file, top) not in ALLOWED
        ]
    assert not wrong


def test_no_global_random_state_anywhere():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np.random":
                assert node.attr in {"Generator", "SeedSequence", "default_rng"}, path


def test_one_module_alone_imports_numba():
    using = {
        str(path.relative_to(SOURCE))
        for path in FILES
        for module in imported(path)
        if module.split(".")[0] == "numba"
    }
    assert using == {"kernels.py"}
