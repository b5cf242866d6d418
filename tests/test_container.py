"""The container image: its steps are run here one by one, as far as they need no other system."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
import zipfile
from pathlib import Path

import pytest

from surepick.cli.serve import serve

ROOT = Path(__file__).parent.parent
FILE = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
STEPS = [line.split(maxsplit=1) for line in FILE.splitlines() if line and not line.startswith("#")]
UNPRIVILEGED = 10001


def step(word):
    """What follows the last line that begins with this word."""
    return [rest for name, rest in STEPS if name == word][-1]


def test_the_image_runs_as_a_user_without_rights_and_keeps_its_data():
    assert step("USER") == "surepick"
    assert f"--uid {UNPRIVILEGED}" in FILE
    assert step("VOLUME") == step("WORKDIR") == "/data"
    names = [name for name, _ in STEPS]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert not [rest for name, rest in STEPS[names.index("USER") :] if name == "RUN"], (
        "root has done its part"
    )


def copy_what_is_copied(folder):
    """The COPY lines of the first stage."""
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", FILE, re.M):
        for source in sources.split():
            place = ROOT / source
            copy = shutil.copytree if place.is_dir() else shutil.copy
            (folder / source).parent.mkdir(parents=True, exist_ok=True)
            copy(place, folder / source)


def test_what_is_copied_is_enough_to_build_the_package(tmp_path):
    copy_what_is_copied(tmp_path)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert "surepick/web/templates/session.html" in zipfile.ZipFile(wheel).namelist()
    kept = (ROOT / ".containerignore").read_text().split()
    assert {f"!{name}" for name in ("pyproject.toml", "README.md", "LICENSE", "requirements", "src")} <= set(
        kept
    )


@pytest.mark.slow
def test_the_lines_that_build_it_install_all_that_is_locked_and_it_decides(tmp_path):
    """The RUN lines of the first stage as they are, into a folder of the test; they need a package index."""
    source, place = tmp_path / "source", tmp_path / "surepick"
    source.mkdir()
    copy_what_is_copied(source)
    first = FILE[: FILE.index("\nFROM ", FILE.index("\nFROM ") + 1)]
    lines = re.findall(r"^RUN (.+)$", first, re.M)
    assert len(lines) == 3
    for line in lines:
        words = shlex.split(line.replace("/opt/surepick", str(place)))
        words[0] = sys.executable if words[0] == "python" else words[0]
        done = subprocess.run(words, cwd=source, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    commands = ("init table", "simulate table.toml --json", "new table.toml", "status --json")
    for command in commands:
        done = subprocess.run(
            [place / "bin" / "surepick", *command.split()],
            cwd=tmp_path,
            env={**alone, "NUMBA_DISABLE_JIT": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["session"]


def without_rights():
    """How to start a process as the image's user; nothing where that user could not read this Python."""
    options = {"user": UNPRIVILEGED, "group": UNPRIVILEGED, "extra_groups": []}
    try:
        subprocess.run([sys.executable, "-c", "import surepick"], check=True, capture_output=True, **options)
    except (OSError, subprocess.SubprocessError):
        return {}
    return options


@pytest.fixture
def served(tmp_path):
    """The server that the image starts, with its own words, as a user without rights where that can be."""
    token, data = tmp_path / "token", tmp_path / "data"
    token.write_text("a token that is hard to guess")
    token.chmod(0o644)
    data.mkdir()
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    words = [*json.loads(step("ENTRYPOINT")), *json.loads(step("CMD"))]
    words = [word.replace("/run/secrets/token", str(token)).replace("0.0.0.0", "127.0.0.1") for word in words]
    variables = dict(pair.split("=", 1) for pair in shlex.split(step("ENV")))
    store = variables["SUREPICK_STORE"].replace("/data", str(data))
    environment = {**os.environ, "SUREPICK_STORE": store, "NUMBA_DISABLE_JIT": "1", "HOME": "/nonexistent"}
    options = without_rights()
    if options:
        shutil.chown(data, UNPRIVILEGED)
    command = [sys.executable, "-m", *words, "--port", "0"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, **options)
    try:
        yield process.stdout.readline().split("/login#")[0], data
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.mark.skipif(os.name != "posix", reason="containers are Linux")
def test_its_server_starts_and_its_health_check_tells_whether_it_answers(served):
    url, data = served
    check = json.loads(step("HEALTHCHECK").split("CMD", 1)[1])
    check = [sys.executable, *check[1:-1], check[-1].replace("http://127.0.0.1:8000", url)]
    assert subprocess.run(check, capture_output=True).returncode == 0
    nowhere = [*check[:-1], check[-1].replace(url, "http://127.0.0.1:9")]
    assert subprocess.run(nowhere, capture_output=True).returncode != 0
    request = urllib.request.Request(
        f"{url}/api/sessions", headers={"authorization": "Bearer a token that is hard to guess"}
    )
    assert json.loads(urllib.request.urlopen(request, timeout=20).read())["sessions"] == []
    deadline = time.monotonic() + 10
    while not (data / "surepick.db").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (data / "surepick.db").exists(), "the store is in the volume"


def test_it_listens_where_the_image_says():
    assert step("EXPOSE") == str(serve.__defaults__[1]) == "8000"
