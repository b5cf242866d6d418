"""The dashboard in a real browser; pictures are kept in build/screenshots."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import surepick as sp
from surepick.inputs.load import read_problem
from surepick.report import write_report
from surepick.sessions.session import Session
from teller import MEANS
from web_tools import Running, positions, problem_file, running

expect = pytest.importorskip("playwright.sync_api").expect

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parent.parent.parent
PICTURES = ROOT / "build" / "screenshots"


@pytest.fixture(autouse=True)
def folder() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)


def begin(page: Page, server: Running, file: Path, name: str) -> None:
    """Begin a session through the form."""
    page.goto(f"{server.url}/new")
    page.get_by_label("Problem file or spreadsheet").set_input_files(file)
    page.get_by_label("Name of the session").fill(name)
    page.get_by_role("button", name="Begin").click()
    page.wait_for_url("**/sessions/*")


def answer(page: Page) -> str:
    return page.locator(".answer").inner_text()


def measured(page: Page) -> int:
    text = (
        page.locator(".facts dt", has_text=re.compile("^Measurements$")).locator("xpath=../dd").inner_text()
    )
    return int(text.split("\n")[0].replace(",", ""))


def test_the_printed_link_logs_in_and_keeps_the_token_out_of_the_address(page: Page, store: str) -> None:
    words = [sys.executable, "-m", "surepick", "serve", "--store", store, "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "SUREPICK_TOKEN"}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        link = re.search(r"(http://\S+)/login#token=(\S+)", process.stdout.readline())
        assert link is not None
        page.goto(f"{link[1]}/")
        expect(page.get_by_label("Token")).to_be_visible()  # without the link nobody gets in
        page.goto(link[0])
        expect(page.get_by_role("link", name="middle")).to_be_visible()
        assert link[2] not in page.url
        assert page.evaluate("document.cookie") == ""  # scripts cannot read it
        page.reload()
        expect(page.get_by_role("link", name="middle")).to_be_visible()
        page.get_by_role("button", name="Log out").click()
        page.goto(f"{link[1]}/sessions/middle")
        expect(page.get_by_label("Token")).to_be_visible()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_from_a_file_to_a_certificate_by_hand(
    page: Page, writing: Running, store: str, tmp_path: Path
) -> None:
    begin(page, writing, problem_file(tmp_path), "by hand")
    assert "Nothing is measured yet" in answer(page)
    page.get_by_label("Your name").fill("Ann")
    page.get_by_label("Value", exact=True).fill("about three")
    page.get_by_role("button", name="Record").click()
    assert "expected a number" in page.get_by_role("alert").inner_text()
    assert page.get_by_label("Value", exact=True).input_value() == "about three"
    assert page.get_by_label("Your name").input_value() == "Ann"
    for _ in range(200):
        if page.locator(".badge").first.inner_text() == "confident":
            break
        arm = page.get_by_label("What was measured").locator("option:checked").inner_text().split(" (")[0]
        page.get_by_label("Value", exact=True).fill(str(MEANS[arm]))
        with page.expect_navigation():
            page.get_by_role("button", name="Record").click()
        assert page.get_by_text(f"Recorded: {arm} = {MEANS[arm]:g} (").is_visible()
    assert "South" in answer(page)
    page.screenshot(path=PICTURES / "by-hand.png", full_page=True)
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download the certificate").click()
    saved = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(saved)
    words = [sys.executable, "-m", "surepick", "verify", str(saved), "--store", store, "-s", "by hand"]
    verdict = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert verdict.returncode == 0, verdict.stderr
    assert "answer 'South'" in verdict.stdout
    changed = {**json.loads(saved.read_text()), "plan_name": "North"}
    assert not Session.load(store, "by hand").verify(changed).holds


def test_it_updates_live_while_another_process_tells(
    page: Page, looking: Running, store: str, tmp_path: Path
) -> None:
    Session.create(store, "from elsewhere", read_problem(problem_file(tmp_path)).problem, policy=sp.BetGapE())
    page.goto(f"{looking.url}/sessions/from elsewhere")
    page.get_by_text("live", exact=True).wait_for()
    page.evaluate("window.loadedOnce = true")
    assert measured(page) == 0
    teller = subprocess.Popen(
        [sys.executable, str(Path(__file__).parents[1] / "support" / "teller.py"), store, "from elsewhere"]
    )
    try:
        a_round_is_complete = re.compile("leads after|is the best plan")
        expect(page.locator(".answer")).to_contain_text(a_round_is_complete, timeout=60_000)
        assert measured(page) > 0
        page.locator(".badge[data-state=confident]").wait_for()
    finally:
        assert teller.wait(timeout=60) == 0
    assert "“South” is the best plan" in answer(page)
    assert page.evaluate("window.loadedOnce") is True, "the page was never loaded again"
    expect(page.locator("#voice")).to_contain_text("is the best plan", timeout=10_000)  # for screen readers
    assert measured(page) == Session.load(store, "from elsewhere").ledger().n_measurements
    assert page.get_by_text("second process").first.is_visible()
    page.screenshot(path=PICTURES / "live.png", full_page=True)


def test_the_slider_shows_the_past(page: Page, looking: Running) -> None:
    page.goto(f"{looking.url}/sessions/sure")
    page.get_by_label("Look back").focus()
    page.keyboard.press("Home")
    page.locator("#past h3").wait_for()
    then = int(re.sub(r"\D", "", page.locator("#past h3").inner_text()))
    assert then < measured(page)
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**/history?at=*")


def test_what_somebody_types_is_left_alone_by_updates(
    page: Page, writing: Running, store: str, tmp_path: Path
) -> None:
    session = Session.create(
        store, "typing", read_problem(problem_file(tmp_path)).problem, policy=sp.BetGapE()
    )
    page.goto(f"{writing.url}/sessions/typing")
    page.get_by_text("live", exact=True).wait_for()
    page.get_by_label("Value", exact=True).fill("12.5")
    session.tell(session.pending()[1], 1.0)
    page.locator("#part-log", has_text="measured").wait_for()
    assert page.get_by_label("Value", exact=True).input_value() == "12.5"


def test_a_choice_stays_when_another_person_records_it_meanwhile(
    page: Page, browser: Browser, writing: Running, store: str, tmp_path: Path
) -> None:
    session = Session.create(
        store, "two people", read_problem(problem_file(tmp_path)).problem, policy=sp.BetGapE()
    )
    first, second = session.pending()[:2]
    page.goto(f"{writing.url}/sessions/two people")
    page.get_by_text("live", exact=True).wait_for()
    chosen = page.get_by_label("What was measured").locator("option:checked")
    page.get_by_label("Your name").fill("Ann")
    page.get_by_label("Value", exact=True).fill("8.1")

    context = browser.new_context()
    other = context.new_page()
    other.goto(f"{writing.url}/sessions/two people")
    other.get_by_label("Your name").fill("Bob")
    other.get_by_label("Value", exact=True).fill("5.25")
    other.get_by_role("button", name="Record").click()
    other.get_by_text(f"Recorded: {first.arm_name} = 5.25").wait_for()
    context.close()

    page.get_by_text(f"Bob has recorded it meanwhile: {first.arm_name} = 5.25").wait_for()
    assert chosen.inner_text().startswith(first.arm_name), "the choice jumped"
    assert page.get_by_label("Value", exact=True).input_value() == "8.1"
    page.screenshot(path=PICTURES / "meanwhile.png", full_page=True)
    page.get_by_role("button", name="Record").click()
    page.get_by_text("Bob was first").wait_for()
    assert [(m.token, m.value) for m in session.measurements() if m.token] == [(first.token, 5.25)]

    page.get_by_label("Value", exact=True).fill("9.5")  # now the next one is chosen, and the page says so
    assert chosen.inner_text().startswith(second.arm_name)
    page.get_by_role("button", name="Record").click()
    page.get_by_text(f"Recorded: {second.arm_name} = 9.5").wait_for()


def test_what_was_entered_survives_the_end_of_the_session(
    page: Page, writing: Running, store: str, tmp_path: Path
) -> None:
    session = Session.create(store, "ends", read_problem(problem_file(tmp_path)).problem, policy=sp.BetGapE())
    page.goto(f"{writing.url}/sessions/ends")
    page.get_by_text("live", exact=True).wait_for()
    page.get_by_label("Value", exact=True).fill("8.1")
    session.close("enough")
    page.get_by_text("This session has ended meanwhile").wait_for()
    assert page.get_by_label("Value", exact=True).input_value() == "8.1"


def test_what_was_taken_is_chosen(page: Page, writing: Running, store: str, tmp_path: Path) -> None:
    session = Session.create(
        store, "taking", read_problem(problem_file(tmp_path)).problem, policy=sp.BetGapE()
    )
    (held,) = session.ask(worker="Bob")
    page.goto(f"{writing.url}/sessions/taking")
    chosen = page.get_by_label("What was measured").locator("option:checked")
    assert held.arm_name not in chosen.inner_text(), "what another holds is not offered first"
    page.get_by_label("Your name").fill("Ann")
    page.get_by_role("button", name="Take the next one").click()
    (lease,) = [lease for lease in session.leases() if lease.worker == "Ann"]
    taken = session.problem.arm_names[int(lease.token.split(".")[0])]
    page.get_by_text(f"{taken} ({lease.token}) is yours").wait_for()
    assert chosen.inner_text() == f"{taken} ({lease.token}, Ann)"


def test_a_telephone_shows_the_form_first_and_a_keypad(
    browser: Browser, writing: Running, store: str, tmp_path: Path
) -> None:
    Session.create(store, "out there", read_problem(problem_file(tmp_path)).problem, policy=sp.BetGapE())
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, device_scale_factor=2
    )
    page = context.new_page()
    page.goto(f"{writing.url}/sessions/out there")
    value = page.get_by_label("Value", exact=True)
    record = page.get_by_role("button", name="Record").bounding_box()
    assert record["y"] + record["height"] <= 844, "without scrolling"
    assert value.get_attribute("inputmode") == "decimal"
    page.get_by_role("button", name="All keys").tap()
    assert value.get_attribute("inputmode") == "text"
    value.fill("-3.5")
    page.screenshot(path=PICTURES / "phone-form.png")
    page.get_by_role("button", name="Record").tap()
    page.get_by_text("Recorded: ").wait_for()
    page.screenshot(path=PICTURES / "phone-recorded.png")
    context.close()


def test_everything_but_the_live_updates_works_without_scripts(
    browser: Browser, writing: Running, tmp_path: Path
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    begin(page, writing, problem_file(tmp_path), "no scripts")
    page.get_by_label("Value", exact=True).fill("1.5")
    page.get_by_role("button", name="Record").click()
    assert "Thank you" in page.content()
    page.goto(f"{writing.url}/sessions/sure")
    page.get_by_role("button", name="Show").click()
    assert "After" in page.locator("#past").inner_text()
    context.close()


def test_script_in_every_name_stays_text(page: Page, memory_disk: Path) -> None:
    script = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg onload=alert(3)>"
    url = f"sqlite:///{memory_disk}/browser-script.db"
    names = {
        "arms": [f"{i}{script}" for i in range(3)],
        "plan_names": [f"p{i}{script}" for i in range(3)],
    }
    problem = sp.Problem([[1, 0, 1], [0, 1, 1], [1, 1, 0]], noise=0.5, **names, goal="largest")
    session = Session.create(url, script, problem, policy=sp.BetGapE())
    with running(url, write=True) as server:
        page.goto(server.url)
        page.get_by_role("link", name=script).click()
        page.get_by_text("live", exact=True).wait_for()
        for request in session.ask(3, worker=script):
            session.tell(request, float(request.arm))
        session.note(script)
        page.locator("#part-log", has_text="noted").wait_for()
        assert page.locator("h1").inner_text() == script
        for here in ("rivals", "arms", "log"):
            page.goto(f"{page.url.split('/sessions/')[0]}/sessions/{session_slug(script)}/{here}")
            assert script in page.locator("nav.crumbs").inner_text()
        assert page.locator("main script, main img, main svg[onload]").count() == 0


def session_slug(name: str) -> str:
    from surepick.web.session_cache import slug_of

    return slug_of(name)


@pytest.fixture
def evil(writing: Running) -> Iterator[str]:
    """Another site, whose pages try to write here and to read from here."""
    page = f"""<!doctype html><meta charset="utf-8"><title>evil</title><iframe name="sink"></iframe>
    <form id="f" method="post" target="sink" action="{writing.url}/sessions/middle/tell">
    <input name="token" value="0.0"><input name="value" value="666"></form>
    <script>
    (async () => {{
      const at = "{writing.url}/api/sessions/middle/tell", body = '{{"token": "0.0", "value": 666}}';
      const tries = [
        fetch(at, {{method: "POST", body, mode: "no-cors", headers: {{"content-type": "text/plain"}}}}),
        fetch(at, {{method: "POST", body, headers: {{"content-type": "application/json"}}}}),
        fetch("{writing.url}/api/sessions/middle").then((answer) => answer.text()),
        new Promise((good, bad) => {{
          const stream = new EventSource("{writing.url}/sessions/middle/events");
          stream.onmessage = good; stream.addEventListener("update", good); stream.onerror = bad;
        }}),
      ];
      const ends = await Promise.allSettled(tries);
      document.getElementById("f").submit();
      setTimeout(() => {{ window.ends = ends.map((e) => e.status + " " + (e.value?.type || "")); }}, 500);
    }})();
    </script>"""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_page_of_another_site_can_neither_write_nor_read(
    browser: Browser, writing: Running, store: str, evil: str
) -> None:
    before = positions(store)
    context = browser.new_context()
    page = context.new_page()
    page.goto(evil)
    page.wait_for_function("window.ends !== undefined")
    assert page.evaluate("window.ends") == ["rejected "] * 4
    assert positions(store) == before
    context.close()


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_it_fits_a_phone_and_a_desk_by_day_and_by_night(
    browser: Browser, writing: Running, width: int, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    for name, path in {"home": "/", "middle": "/sessions/middle", "new": "/new"}.items():
        page.goto(writing.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        sideways = (
            "[...document.querySelectorAll('.scroll')].map(part => part.scrollWidth - part.clientWidth)"
        )
        assert max(page.evaluate(sideways), default=0) <= 2, path
        small = """() => [...document.querySelectorAll("button, input:not([type=hidden]), select")].filter(
            (e) => e.checkVisibility() && e.getBoundingClientRect().height < 32).length"""
        assert page.evaluate(small) == 0, "too small for a thumb"
        page.screenshot(path=PICTURES / f"{name}-{width}-{scheme}.png", full_page=True)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) > 380) == (scheme == "light")
    context.close()


def test_on_a_phone_the_parts_below_the_answer_are_folded_and_open_by_a_tap(
    browser: Browser, looking: Running
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{looking.url}/sessions/middle")
    expect(page.locator(".answer")).to_be_visible()
    rivals = page.locator("#part-rivals")
    expect(rivals).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollHeight") < 3 * 844
    page.get_by_text("The lead and its closest rivals").tap()
    expect(rivals).to_be_visible()
    page.goto(f"{looking.url}/sessions/sure")
    expect(page.get_by_role("link", name="Download the certificate")).to_be_visible()  # what one came for
    context.close()
    desk = browser.new_page()
    desk.goto(f"{looking.url}/sessions/middle")
    expect(desk.locator("#part-rivals")).to_be_visible()
    desk.close()


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_a_report_fits_a_phone_and_a_desk_and_asks_for_nothing(
    browser: Browser, store: str, tmp_path: Path, width: int, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for name in ("sure", "middle"):
        file = write_report(Session.load(store, name, read_only=True), tmp_path / f"{name}.html")
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        event = page.locator(".log td").first
        assert not event.is_visible(), "the log is folded"
        if width < 480:
            assert page.evaluate("document.documentElement.scrollHeight") < 2.25 * 800, name
            guarantee = page.locator("[data-part=guarantee] dt").first
            assert not guarantee.is_visible()
            page.locator("[data-part=guarantee] > summary").click()
            assert guarantee.is_visible()
        page.get_by_text("Remarks, decisions").click()
        assert event.is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.screenshot(path=PICTURES / f"report-{name}-{width}-{scheme}.png", full_page=True)
    assert len(asked) == 2, "only the files themselves"
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) > 380) == (scheme == "light")
    context.close()


def test_keyboards_and_screen_readers_find_everything(page: Page, writing: Running) -> None:
    for path in ("/", "/sessions/sure", "/sessions/middle", "/new", "/login"):
        page.goto(writing.url + path)
        unnamed = """() => [...document.querySelectorAll("input:not([type=hidden]), select")].filter(
            (e) => e.labels.length === 0).map((e) => e.outerHTML)"""
        assert page.evaluate(unnamed) == []
        assert page.locator("h1").count() == 1
        for landmark in ("banner", "main", "contentinfo"):
            assert page.get_by_role(landmark).count() == 1
        drawings = page.locator("svg:not([aria-hidden])")
        assert all(drawings.nth(i).get_attribute("aria-label") for i in range(drawings.count()))
        twice = "() => { const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);"
        assert page.evaluate(twice + " return ids.filter((id, i) => ids.indexOf(id) !== i); }") == []
    page.goto(f"{writing.url}/sessions/middle")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.get_by_label("Value", exact=True).focus()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


def test_times_are_those_of_the_readers_clock(browser: Browser, writing: Running, store: str) -> None:
    far = browser.new_context(timezone_id="Asia/Kolkata").new_page()
    far.goto(f"{writing.url}/sessions/middle")
    times = far.locator("#part-log time")
    expect(times.first).not_to_contain_text("UTC")
    sent = datetime.fromisoformat(times.first.get_attribute("datetime"))
    local = sent.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert times.first.inner_text() == local.strftime("%Y-%m-%d %H:%M:%S")
    assert times.first.get_attribute("title").endswith("UTC")
    Session.load(store, "middle").note("another line")
    expect(far.locator("#part-log")).to_contain_text("another line")
    expect(times.first).not_to_contain_text("UTC")  # what comes later, too
    far.context.close()
