"""Builds the site: docs/ and what is made (command line, gallery, figures) into build/docs, then HTML of it.

    python tools/site/build.py            # into site/, with warnings as errors

Nothing that is made is kept in the repository: it is made anew whenever the site is built, and an example
that fails fails the build. Zensical reads `mkdocs.yml`; of what a page needs it checks links and anchors, so
that pictures are checked here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE, SITE = ROOT / "build" / "docs", ROOT / "site"
IMAGE = re.compile(r"<img\b[^>]*\bsrc=\"([^\":]+)\"")

sys.path.insert(0, str(HERE))


def build() -> None:
    """Make the pages, build the site, and see that no picture is missing."""
    write_pages()
    shutil.rmtree(SITE, ignore_errors=True)
    paths = [str(ROOT / "src"), str(HERE), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    if subprocess.run(command, cwd=ROOT, env=environment).returncode != 0:
        sys.exit("the site has warnings, see above")
    if missing := list(missing_pictures()):
        sys.exit("\n".join(["pictures are missing:", *missing]))


def write_pages() -> None:
    """Write docs/ and all that is made into one folder."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE)
    for name, content in made():
        path = SOURCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def made() -> Iterator[tuple[str, str | bytes]]:
    """The pages and pictures that are made, by their names."""
    import commands

    import gallery

    yield "icon.svg", (ROOT / "src" / "surepick" / "web" / "static" / "icon.svg").read_bytes()
    yield "reference/command-line.md", commands.page()
    yield from gallery.pages()
    yield from gallery.pictures()


def missing_pictures() -> Iterator[str]:
    """Pictures that a page shows and the site does not have."""
    for page in SITE.rglob("*.html"):
        for source in IMAGE.findall(page.read_text(encoding="utf-8")):
            place = SITE / source.lstrip("/") if source.startswith("/") else page.parent / source
            if not place.exists():
                yield f"{page.relative_to(SITE)}: {source}"


if __name__ == "__main__":
    build()
