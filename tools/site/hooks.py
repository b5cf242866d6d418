"""What mkdocs adds to docs/: the command line from its own help, the gallery and figures by running them.

Nothing of it is kept in the repository: it is made anew whenever the site is built, and an example that fails
fails the build.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

import commands

import gallery


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made at build time to what lies in docs/."""
    for uri, content in _made():
        files.append(File.generated(config, uri, content=content))
    return files


def _made() -> Iterator[tuple[str, str | bytes]]:
    yield "reference/command-line.md", commands.page()
    yield from gallery.pages()
    yield from gallery.pictures()
