"""The planner's journey: a spreadsheet, a browser and a telephone, from an empty store to a certificate."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import openpyxl
import pytest

from page_code import blocks, lines
from surepick.sessions.session import Session
from web_tools import running

pytest.importorskip("playwright.sync_api")

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parent.parent.parent
PICTURES = ROOT / "build" / "screenshots"
SHEET = """plan;bridge;centre;park;ring
goal;smallest;;;
unit;min;;;
noise;2,5;;;
through the centre;1;1;;
past the park;1;;1;
around;;;;1
"""
MINUTES = {"bridge": "12,5", "centre": "9", "park": "21.5", "ring": "44"}


def record_until_sure(page: Page) -> int:
    """Enter what the page asks for, as somebody with a telephone would; how many values that took."""
    for n in range(100):
        if page.locator(".badge").first.inner_text() == "confident":
            return n
        arm = page.get_by_label("What was measured").locator("option:checked").inner_text().split(" (")[0]
        page.get_by_label("Value", exact=True).fill(MINUTES[arm])
        with page.expect_navigation():
            page.get_by_role("button", name="Record").tap()
        page.get_by_text(f"Recorded: {arm} = {MINUTES[arm].replace(',', '.')}").wait_for()
    raise AssertionError("it never got sure")


def typed(command: str, folder: Path) -> str:
    """Type the line of the guide with this command, in this folder; what it prints."""
    guide = ROOT / "docs" / "start" / "without-python.md"
    (line,) = (
        line
        for block in blocks(guide)
        if block.language == "console"
        for line in lines(block)
        if line.startswith(f"surepick {command} ")
    )
    words = [sys.executable, "-m", *shlex.split(line)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
    return done.stdout


def fill_in(sheet: Path) -> None:
    book = openpyxl.load_workbook(sheet)
    for _, arm, value, *_ in book.active.iter_rows(min_row=2):
        value.value = MINUTES[arm.value]
    book.save(sheet)


def download(page: Page, name: str, folder: Path) -> Path:
    with page.expect_download() as waiting:
        page.get_by_role("link", name=name, exact=True).click()
    saved = folder / waiting.value.suggested_filename
    waiting.value.save_as(saved)
    return saved


def test_from_a_spreadsheet_to_a_certificate_without_python(
    browser: Browser, memory_disk: Path, tmp_path: Path
) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    sheet = tmp_path / "trips.csv"
    sheet.write_text(SHEET, encoding="utf-8")
    desk, other_desk = memory_disk / "desk", tmp_path / "other desk"
    desk.mkdir()
    other_desk.mkdir()
    store = f"sqlite:///{desk}/trips.db"
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with running(store, write=True) as server:
        context = browser.new_context(**phone, accept_downloads=True)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(server.url)
        page.get_by_role("link", name="New session").first.tap()
        page.get_by_label("Problem file or spreadsheet").set_input_files(sheet)
        page.get_by_label("Name of the session").fill("trips")
        page.get_by_role("button", name="Begin").tap()
        page.wait_for_url("**/sessions/trips")
        typed("sheet", desk)
        fill_in(desk / "monday.xlsx")
        assert "4 recorded" in typed("import", desk)
        page.reload()
        assert record_until_sure(page) >= 1
        answer = page.locator(".answer")
        assert "“through the centre" in answer.inner_text()
        assert 0 < answer.bounding_box()["y"] < 844, "the answer is what is seen first"
        page.screenshot(path=PICTURES / "journey-answer.png")
        report, certificate, _ = (
            download(page, what, other_desk)
            for what in ("Download the report", "Download the certificate", "log")
        )
        context.close()
    assert "through the centre" in report.read_text(encoding="utf-8")
    assert json.loads(certificate.read_text())["status"] == "confident"
    assert "holds" in typed("verify", other_desk)
    told = {m.arm_name: m.value for m in Session.load(store, "trips", read_only=True).measurements()}
    assert told["bridge"] == 12.5, "a decimal comma is one"
