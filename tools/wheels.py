"""Whether all that surepick needs has wheels for each Python that it is declared for; nothing is installed.

    python tools/wheels.py            # all declared versions
    python tools/wheels.py 3.14 3.15  # these

A dry run of pip with wheels alone, with all extras; it needs an index and a minute for each version.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def declared() -> list[str]:
    """The versions of Python among the classifiers."""
    found = (re.search(r"Python :: (\d\.\d+)$", line) for line in PROJECT["classifiers"])
    return [match[1] for match in found if match]


def missing(version: str, wheel: Path) -> str:
    """What pip says when it cannot put everything together from wheels; empty when it can."""
    extras = ",".join(PROJECT["optional-dependencies"])
    with tempfile.TemporaryDirectory() as place:
        command = [
            *(sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--disable-pip-version-check"),
            *("--ignore-installed", "--target", place, "--only-binary", ":all:"),
            *("--implementation", "cp", "--python-version", version, f"{wheel}[{extras}]"),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
    said = "\n".join(line for line in done.stderr.splitlines() if line.startswith("ERROR"))
    return "" if done.returncode == 0 else said or f"pip ended with {done.returncode}"


def main(versions: list[str]) -> int:
    """Try each version and say what came out."""
    with tempfile.TemporaryDirectory() as place:
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = Path(place).glob("*.whl")
        found = {version: missing(version, wheel) for version in versions}
    for version, trouble in found.items():
        print(f"Python {version}: {trouble or 'wheels for everything, all extras included'}")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or declared()))
