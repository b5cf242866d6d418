"""The site builds without a warning, its gallery runs, and it needs nothing from elsewhere."""

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ASSET = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=\"?(https?:)?//[^>]*>")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; building runs every example of the gallery."""
    place = tmp_path_factory.mktemp("site")
    for name in ("docs", "tools"):
        shutil.copytree(ROOT / name, place / name)
    shutil.copy(ROOT / "mkdocs.yml", place)
    for name in ("src", "examples"):
        (place / name).symlink_to(ROOT / name)
    done = build(place)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return place / "site"


def build(place):
    command = [sys.executable, str(place / "tools" / "site" / "build.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)


def test_formulas_are_typeset_without_scripts(site):
    page = (site / "benchmarks.html").read_text(encoding="utf-8")
    assert page.count("<math") > 10
    prose = re.sub(r"<(code|script|annotation)\b.*?</\1>", "", page, flags=re.S)
    assert "$" not in re.sub(r"<[^>]*>", "", prose), "a formula was left as it was written"
    assert (site / "fonts" / "stix-math.woff2").exists()
    assert re.search(r"<mi>V</mi><mrow><mspace [^>]*><mi>log</mi><mspace [^>]*></mrow>", page), (
        "V log, not Vlog"
    )


def test_a_page_asks_for_nothing_from_elsewhere_in_a_browser(site):
    """What scripts fetch cannot be seen in the files."""
    pytest.importorskip("playwright")
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no chromium on this machine")
    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    asked = []
    with sync_playwright() as tool:
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        browser = tool.chromium.launch(executable_path=path, args=["--no-sandbox"] if root else [])
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.on("request", lambda request: asked.append(request.url))
        for name in ("index.html", "guarantees.html"):
            page.goto(f"http://127.0.0.1:{server.server_port}/{name}", wait_until="networkidle")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
        browser.close()
    server.shutdown()
    assert any(url.endswith("index.html") for url in asked)
    assert [url for url in asked if f"//127.0.0.1:{server.server_port}/" not in url] == []


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_a_missing_picture_is_noticed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "site"))
    import build as tool

    monkeypatch.setattr(tool, "SITE", tmp_path)
    (tmp_path / "here.svg").write_text("<svg/>")
    (tmp_path / "a.html").write_text('<img alt="" src="here.svg"><img src="gone.svg"><img src="data:x">')
    assert list(tool.missing_pictures()) == ["a.html: gone.svg"]


def test_pages_figures_and_links(site):
    pages = {str(path.relative_to(site)) for path in site.rglob("*.html")}
    assert {"index.html", "reference/python.html", "gallery/index.html"} <= pages
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
    from surepick.cli import COMMANDS, command_of

    page = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f'id="{name.replace(" ", "-")}"' in page
        for parameter in command_of(name).params:
            if parameter.param_type_name == "option" and parameter.name != "help":
                assert parameter.opts[0] in page


def examples_of_the_reference_are_code(site):
    page = (site / "reference" / "python.html").read_text(encoding="utf-8")
    assert "&gt;&gt;&gt; </span>" in page
    assert "<blockquote>" not in page
