"""What is shipped works where nothing but it is installed, and says everywhere the same about itself."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import surepick

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = [
    line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if re.search(r"Python :: \d\.\d+$", line)
]
OTHER_PYTHONS = [v for v in PYTHONS if v != "{}.{}".format(*sys.version_info[:2])]

# What needs each extra, as a user would meet it; run where no extra is installed.
NEEDS = {
    "problems": "open('x.graphml', 'w').close(); sp.problems.as_network('x.graphml')",
    "plots": "from surepick import plots; plots.plans(SESSION)",
    "postgres": "surepick.store.open_store('postgresql://localhost/x').names()",
    "cluster": "sp_experiments.run_cases([CASE], 'rows.jsonl', jobs='tcp://127.0.0.1:9')",
    "testing": "import surepick.testing",
    "web": "from surepick.cli.serve import serve; serve()",
    "mcp": "from surepick.web.mcp import make_server; make_server('x.db')",
    "sign": "from surepick.certificates import signing; signing.require_cryptography()",
    "sheets": "open('x.xlsx', 'w').close(); sp.load('x.xlsx')",
}
SCRIPT = """
import sys
import surepick, surepick.store
import surepick as sp
import surepick.experiments as sp_experiments
from surepick.inputs.load import read_problem
ARMS = {"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0]}
CASE = sp_experiments.Case(ARMS, "Uniform", seed=0, budget=10)
SESSION = sp.Session.create("memory://", "trips", sp.Problem([[1, 0], [0, 1]], goal="largest"))
for extra, code in %r.items():
    try:
        exec(code)
    except sp.SurepickError as error:
        assert f"pip install 'surepick[{extra}]'" in str(error), error
    else:
        raise SystemExit(f"{extra} was not missed by {code!r}")
print("every extra is named")
"""


def run(*command, cwd, **environment):
    """The output of a command that must succeed."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": "", **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def build(source, target):
    """The wheel and the sdist of a source tree."""
    run(sys.executable, "-m", "hatchling", "build", "-d", target, cwd=source)
    return next(target.glob("*.whl")), next(target.glob("*.tar.gz"))


def install(wheel, folder, python=sys.executable):
    """The interpreter of a fresh environment that holds the wheel and what it requires, from pip's index."""
    run(python, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    inside = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", inside, "--disable-pip-version-check"]
    options = ["--quiet", "--retries", "0", "--timeout", "10"]
    done = subprocess.run(
        [str(word) for word in [*pip, "install", *options, wheel]],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
    )
    if "No matching distribution" in done.stderr:
        pytest.skip(f"pip has no index here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr[-3000:]
    return inside


def try_the_core(python, folder):
    """A decision and a session with nothing but the core."""
    surepick_command = python.parent / "surepick"
    assert run(surepick_command, "--version", cwd=folder).strip() == f"surepick {surepick.__version__}"
    assert json.loads(run(surepick_command, "demo", "--json", cwd=folder))["state"] == "confident"
    run(surepick_command, "init", "table", cwd=folder)
    answer = run(surepick_command, "simulate", "table.toml", "--json", cwd=folder)
    assert json.loads(answer)["state"] == "confident"
    run(surepick_command, "new", "table.toml", cwd=folder)
    assert run(surepick_command, "ask", cwd=folder).strip() in json.loads(answer)["counts"]


def test_wheel_in_a_clean_environment_works_and_names_every_missing_extra(tmp_path):
    wheel, _ = build(ROOT, tmp_path / "dist")
    python = install(wheel, tmp_path / "clean")
    try_the_core(python, tmp_path)
    assert "every extra is named" in run(python, "-c", SCRIPT % NEEDS, cwd=tmp_path)


def test_every_extra_has_something_that_needs_it():
    assert set(PROJECT["optional-dependencies"]) - {"all", "fast"} == set(NEEDS)  # nothing needs `fast`


@pytest.mark.parametrize("name", ["test.txt", "image.txt"])
def test_what_is_installed_by_hash_is_all_that_is_declared(name):
    """`make lock` writes the files again."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8").replace("\\\n", " ")
    assert "://" not in text, "plain names alone: the user who installs chooses the index"
    lines = [line for line in text.splitlines() if line.strip()]
    assert all(re.fullmatch(r"\S+==\S+( ; [^#]+?)?( +--hash=sha256:[0-9a-f]{64})+ *", line) for line in lines)
    locked = {line.split("==")[0] for line in lines}
    declared = [*PROJECT["dependencies"]]
    for extra, packages in PROJECT["optional-dependencies"].items():
        declared += packages if extra != "testing" or name == "test.txt" else []
    names = {re.match(r"[\w.-]+", package)[0].lower().replace("_", "-") for package in declared}
    assert names - {"surepick"} <= locked


# The first versions without the advisories that were known when they were written down here.
WITHOUT_ADVISORY = {
    "pygments": "2.20",
    "fonttools": "4.61",
    "pillow": "12.3",
    "jinja2": "3.1.6",
    "starlette": "1.3.1",
    "h11": "0.16",
    "idna": "3.15",
    "python-multipart": "0.0.31",
}


def numbers(version):
    return tuple(map(int, re.findall(r"\d+", version)))


def test_no_version_with_a_known_advisory_is_allowed_or_locked():
    declared = [
        *PROJECT["dependencies"],
        *(p for of in PROJECT["optional-dependencies"].values() for p in of),
    ]
    found = dict(re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", package).groups() for package in declared
                 if ">=" in package)  # fmt: skip
    locked = (ROOT / "requirements" / "test.txt").read_text(encoding="utf-8")
    for package, first in WITHOUT_ADVISORY.items():
        assert numbers(found[package]) >= numbers(first), package
        assert numbers(re.search(rf"^{package}==([\d.]+)", locked, re.M)[1]) >= numbers(first), package


def test_the_sdist_makes_the_same_wheel_and_holds_what_it_needs(tmp_path):
    wheel, sdist = build(ROOT, tmp_path / "dist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    again, _ = build(tmp_path / sdist.name.removesuffix(".tar.gz"), tmp_path / "again")
    names = [sorted(zipfile.ZipFile(one).namelist()) for one in (wheel, again)]
    assert names[0] == names[1]
    needed = ("py.typed", "inputs/starters/paths.toml", ".agents/skills/surepick/SKILL.md")
    assert {f"surepick/{name}" for name in needed} <= set(names[0])
    assert not [name for name in names[0] if not name.startswith(("surepick/", "surepick-"))]


def interpreter(version):
    """Another Python of this version, on the path or among those of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for python in (shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))):
        if python and subprocess.run([python, "--version"], capture_output=True).returncode == 0:
            return str(python)
    pytest.skip(f"there is no Python {version} here")


@pytest.mark.slow
@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_the_wheel_works_on_the_other_supported_pythons(version, tmp_path):
    python = interpreter(version)
    wheel, _ = build(ROOT, tmp_path / "dist")
    try_the_core(install(wheel, tmp_path / "clean", python), tmp_path)


@pytest.mark.slow
def test_everything_has_wheels_for_the_newest_supported_python():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "wheels.py", PYTHONS[-1]], capture_output=True, text=True
    )
    if "No matching distribution found for hatchling" in done.stdout or "Could not fetch" in done.stdout:
        pytest.skip("pip has no index here")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_the_code_is_read_by_the_other_supported_pythons(version):
    code = "import ast, pathlib; [ast.parse(p.read_text()) for p in pathlib.Path('src').rglob('*.py')]"
    run(interpreter(version), "-c", code, cwd=ROOT)


def test_the_supported_pythons_are_the_same_everywhere():
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"  # no upper end: Numba has one of its own
    for file in ("README.md", "Makefile", "docs/start/first-decision.md"):
        assert f"Python {PYTHONS[0]} or newer" in (ROOT / file).read_text(encoding="utf-8")
    assert f"{PYTHONS[0]} to {PYTHONS[-1]}" in (ROOT / "docs/start/first-decision.md").read_text(
        encoding="utf-8"
    )


def test_the_version_has_one_place():
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT
    version = surepick.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {version} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
