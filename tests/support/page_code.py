"""Runs the code of a page: Python in one namespace, console lines as typed, files where they are named.

A block with the name of a file in the line before it is that file. Everything happens in one folder, which
holds the examples of the repository and a stand-in for the user's own measuring program.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from command_line import surepick
from surepick.cli import COMMANDS

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^(?:`(?P<file>[\w./-]+)`\n\n)?```(?P<language>\w*)\n(?P<text>.*?)^```", re.S | re.M)

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Pages whose code is run by a test of its own.
ELSEWHERE = {
    "adding-a-policy.md": "tests/test_plugins.py",
    "benchmarks.md": "tests/experiments/test_reproduce_command.py",
    "problem-files.md": "tests/inputs/test_load.py",
}

# Lines that are not run here, and why. Their options are still checked.
NOT_RUN = [
    (r"^make ", "sets up an environment of its own and takes minutes; continuous integration runs make test"),
    (r"^pip install", "tests/test_release.py installs the wheel in a clean environment"),
    (
        r"^dask |--jobs tcp",
        "needs other machines, or a minute; tests/experiments/test_running.py has a cluster",
    ),
    (
        r"^surepick reproduce (?!.*--runs \d\b)",
        "minutes; tests/experiments runs the reproduction with fewer runs",
    ),
    (r"^surepick serve|^curl |^ +-d ", "runs until stopped; tests/web drives a real server"),
    (r"^podman ", "needs a container tool; tests/test_container.py runs the steps of the image"),
    (r"mykey", "needs a key of the user; tests/cli/test_share.py makes keys and signs"),
    (r"^surepick status.*--watch", "runs until the session ends; its own tests drive it"),
]
SHELL = re.compile(r"[|>&;]|^\./|^(chmod|export|cat|echo|python|curl) ")
STAND_IN = """\
#!/bin/sh
# stands for the user's own program: prints a number
case "$1" in ring) base=90 ;; bridge) base=40 ;; *) base=15 ;; esac
awk -v base="$base" 'BEGIN { srand(); print base + rand() }'
"""


@dataclass(frozen=True)
class Block:
    """One block of code of a page."""

    file: str | None
    language: str
    text: str


def name_of(page):
    """The page as one would write it."""
    return str(page.relative_to(ROOT))


def blocks(page):
    """Every block of a page."""
    text = page.read_text(encoding="utf-8")
    return [Block(m["file"], m["language"], m["text"]) for m in BLOCK.finditer(text)]


def lines(block):
    """The commands of a console block, without their comments."""
    joined = block.text.replace("\\\n", " ")
    return [
        re.sub(r"\s{2,}#.*$", "", line[2:]).strip() for line in joined.splitlines() if line.startswith("$ ")
    ]


def reason_not_to_run(line):
    """Why this line is not run, if it is not."""
    return next((reason for pattern, reason in NOT_RUN if re.search(pattern, line)), None)


class Reader:
    """A reader of a page, who tries everything on it."""

    def __init__(self, folder):
        self.folder = folder
        self.names: dict[str, object] = {"__name__": "page"}
        for example in ("routes.toml", "routes.csv"):
            shutil.copy(ROOT / "examples" / example, folder)
        (folder / "examples").symlink_to(ROOT / "examples")
        (folder / "drive.sh").write_text(STAND_IN)
        (folder / "drive.sh").chmod(0o755)
        self.bin = folder / ".bin"
        self.bin.mkdir()
        command = self.bin / "surepick"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m surepick "$@"\n')
        command.chmod(0o755)

    def try_out(self, block):
        """Do what the block says; anything that goes wrong is an error."""
        if block.file is not None:
            path = self.folder / block.file
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            self._python(block.text)
        elif block.language == "console":
            self._console(lines(block))
        elif block.language == "toml":
            tomllib.loads(block.text)

    def _python(self, code):
        if "__name__" in code:  # starts processes, which import the file again
            (self.folder / "script.py").write_text(code, encoding="utf-8")
            self._shell("python script.py")
        else:
            exec(compile(code, "a page", "exec"), self.names)

    def _console(self, commands):
        commands = [line for line in commands if self._wanted(line)]
        if any(SHELL.search(line) and not line.startswith("surepick ") for line in commands):
            self._shell("set -e\n" + "\n".join(commands))
            return
        for line in commands:
            if SHELL.search(line.replace("./drive.sh", "").replace("./weigh.sh", "")):
                self._shell(line)
                continue
            result = surepick(*shlex.split(line, comments=True)[1:])
            assert result.code == 0, f"{line}\n{result.out}{result.err}"

    def _wanted(self, line):
        if reason_not_to_run(line) is None:
            return True
        if line.startswith("surepick "):
            check_options(line)
        return False

    def _shell(self, script):
        path = os.pathsep.join([str(self.bin), str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src")}
        how = {"cwd": self.folder, "env": environment, "capture_output": True, "text": True, "timeout": 600}
        done = subprocess.run(["bash", "-c", script], check=False, **how)
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"


def check_options(line):
    """Every option of a command that is not run is one that it has."""
    words = shlex.split(line.split(" &")[0], comments=True)[1:]
    name = " ".join(words[:2]) if words[0] == "session" else words[0]
    assert name in COMMANDS, f"{line}: there is no command {name}"
    help_text = surepick(*name.split(), "--help").out + "--store --json --quiet"
    for word in words[: words.index("--")] if "--" in words else words:
        if word.startswith("--"):
            assert word.split("=")[0] in help_text, f"{line}: {name} has no option {word}"


def printed(reader, page):
    """What the Python of a page prints when everything on it is tried in order."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for block in blocks(page):
            reader.try_out(block)
    return out.getvalue()
