"""The site builds without a warning, its gallery runs, and it needs nothing from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ASSET = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=\"?(https?:)?//[^>]*>")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; building runs every example of the gallery."""
    target = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(target)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return target


def test_pages_figures_and_links(site):
    pages = {str(path.relative_to(site)) for path in site.rglob("*.html")}
    assert {"index.html", "reference/api.html", "reference/command-line.html", "gallery/index.html"} <= pages
    examples = sorted((ROOT / "examples" / "gallery").glob("[!d]*.py"))
    assert len(examples) >= 8
    for example in examples:
        figure = site / "gallery" / f"{example.stem}.svg"
        assert figure.stat().st_size > 5000
        page = (site / "gallery" / f"{example.stem}.html").read_text(encoding="utf-8")
        assert f'src="{example.stem}.svg"' in page
        assert "It prints" in page
    nothing_from_elsewhere(site)
    every_command_has_a_section(site)
    examples_of_the_reference_are_code(site)


def nothing_from_elsewhere(site):
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        text = path.read_text(encoding="utf-8")
        wanted = [match.group(0) for match in ASSET.finditer(text) if 'rel="canonical"' not in match.group(0)]
        assert not wanted, f"{path.relative_to(site)} wants {wanted[0]}"
        assert not re.search(r"url\(['\"]?https?:|@import", text), path
    assert ASSET.search('<script src="https://cdn.example.org/x.js"></script>')  # it would be seen


def every_command_has_a_section(site):
    import typer

    from surepick.cli import app

    page = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    for name, command in typer.main.get_command(app).commands.items():
        assert f'id="{name}"' in page
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name != "help":
                assert parameter.opts[0] in page


def examples_of_the_reference_are_code(site):
    page = (site / "reference" / "api.html").read_text(encoding="utf-8")
    assert "&gt;&gt;&gt; </span>" in page
    assert "<blockquote>" not in page
