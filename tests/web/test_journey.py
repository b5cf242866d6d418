"""The planner's journey: a spreadsheet, a browser and a telephone, from an empty store to a certificate."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

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
        if page.locator(".badge").first.inner_text() == "sure":
            return n
        arm = page.get_by_label("What was measured").locator("option:checked").inner_text().split(" (")[0]
        page.get_by_label("Value", exact=True).fill(MINUTES[arm])
        with page.expect_navigation():
            page.get_by_role("button", name="Record").tap()
        page.get_by_text(f"Recorded: {arm} = {MINUTES[arm].replace(',', '.')}").wait_for()
    raise AssertionError("it never got sure")


def download(page: Page, name: str, folder: Path) -> Path:
    with page.expect_download() as waiting:
        page.get_by_role("link", name=name).click()
    saved = folder / waiting.value.suggested_filename
    waiting.value.save_as(saved)
    return saved


def test_from_a_spreadsheet_to_a_certificate_without_python(
    browser: Browser, memory_disk: Path, tmp_path: Path
) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    sheet = tmp_path / "trips.csv"
    sheet.write_text(SHEET, encoding="utf-8")
    store = f"sqlite:///{memory_disk}/journey.db"
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
        assert record_until_sure(page) >= 4
        answer = page.locator(".answer")
        assert "“through the centre" in answer.inner_text()
        assert 0 < answer.bounding_box()["y"] < 844, "the answer is what is seen first"
        page.screenshot(path=PICTURES / "journey-answer.png")
        report, certificate = (
            download(page, f"Download the {what}", tmp_path) for what in ("report", "certificate")
        )
        context.close()
    assert "through the centre" in report.read_text(encoding="utf-8")
    assert json.loads(certificate.read_text())["status"] == "confident"
    words = [sys.executable, "-m", "surepick", "verify", str(certificate), "--store", store]
    verdict = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert verdict.returncode == 0, verdict.stderr
    assert "holds" in verdict.stdout
    told = {m.arm_name: m.value for m in Session.load(store, "trips", read_only=True).measurements()}
    assert told["bridge"] == 12.5, "a decimal comma is one"
