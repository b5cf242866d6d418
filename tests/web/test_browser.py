"""The pages in a real browser: phone and desk, live, without scripts, attacked by another site."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import session_tools as tools
import surepick as sp
from surepick.sessions.session import Session
from web_tools import DRIVES, TOKEN, positions, running

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect

PICTURES = Path(__file__).parents[2] / "build" / "screenshots"
MINUTES = {"Tunnel": "10,4", "Old town": "13", "Bridge": "12.5", "Ring east": "19", "Ring west": "21"}
MINUTES |= {"Station road": "5", "Harbour": "9"}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


def log_in(page, server, path="/"):
    page.goto(f"{server.url}{path}#token={TOKEN.replace(' ', '%20')}")
    page.wait_for_url(f"**{path}")


def begin(store, name):
    return Session.create(store, name, tools.problem(), policy=sp.BetGapE())


def test_the_printed_link_logs_in_and_opens_the_page_that_was_asked_for(page, writing):
    log_in(page, writing, "/s/middle")
    assert "token" not in page.url
    expect(page.locator(".headline")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login")
    page.goto(f"{writing.url}/s/middle")
    page.get_by_label("Token").fill("wrong wrong wrong wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#token-error")).to_be_visible()


def test_from_the_example_to_a_certificate_on_a_phone(browser, tmp_path):
    """The planner: an example, values with decimal commas, a slip, a surprise, an answer, a report."""
    store = f"sqlite:///{tmp_path}/trips.db"
    with running(store) as server:
        context = browser.new_context(**PHONE, accept_downloads=True)
        page = context.new_page()
        page.set_default_timeout(20_000)
        log_in(page, server)
        page.get_by_role("link", name="New").first.tap()
        page.get_by_role("button", name="Example").tap()
        expect(page.locator("[data-plan]")).to_have_count(6, timeout=60_000)
        expect(page.locator("[data-epsilon]").first).to_be_visible()
        page.locator("[data-fill]").last.tap()
        page.get_by_role("button", name="Begin").tap()
        page.wait_for_url("**/s/trips")
        page.fill("#tell-value", "104")
        page.fill("#tell-worker", "Pat")
        page.get_by_role("button", name="Record").tap()
        expect(page.locator("[data-surprising]")).to_be_visible()
        page.get_by_role("button", name="Correct it").tap()
        n = 0
        while page.locator("[data-answer]").get_attribute("data-state") == "running" and n < 200:
            arm = page.locator("input[name='arm']:checked").get_attribute("value")
            page.fill("#tell-value", MINUTES[arm])
            with page.expect_navigation():
                page.get_by_role("button", name="Record").tap()
            n += 1
            if n == 3:
                page.get_by_role("button", name="Undo").tap()
                expect(page.locator(".good.notice")).to_be_visible()
        session = Session.load(store, "trips")
        view = session.view()
        assert (view.state, view.plan, view.n_removed) == ("confident", "Tunnel + station", 1)
        assert session.verify().holds
        with page.expect_download() as download:
            page.get_by_role("link", name="Report").first.tap()
        assert "Tunnel + station" in Path(download.value.path()).read_text(encoding="utf-8")
        context.close()


def test_it_updates_live_and_leaves_what_is_typed_alone(page, writing, store):
    session = begin(store, "watched")
    log_in(page, writing, "/s/watched")
    expect(page.locator("[data-light]")).to_have_attribute("data-state", "live")
    first = session.view().open[0].arm
    page.fill("#tell-value", "12.3")
    page.fill("#tell-worker", "Pat")
    page.locator("#log summary").click()
    for request in session.ask(64, worker="Kim", wait=False):
        session.tell(request, 1.0)
    expect(page.locator("#part-history")).to_contain_text("Kim")
    expect(page.locator("#tell-value")).to_have_value("12.3")
    assert page.locator("input[name='arm']:checked").get_attribute("value") == first
    expect(page.locator("#log")).to_have_attribute("open", "")
    session.close("done")
    expect(page.locator("[data-notice]")).to_be_visible()
    expect(page.locator("#tell-value")).to_have_value("12.3")


def test_menu_and_folds_work_without_scripts(browser, writing, store):
    session = begin(store, "plain")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{writing.url}/s/plain")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/s/plain")
    page.fill("#tell-value", "1,5")
    page.get_by_role("button", name="Record").click()
    assert session.view().n_measured == 1
    page.locator("#history summary").first.click()
    page.get_by_label("Why was it a mistake?").fill("a slip")
    page.get_by_role("button", name="Remove").click()
    assert session.view().n_removed == 1
    page.locator("#menu > summary").click()
    page.locator("#menu-close > summary").click()
    page.get_by_label("Why?").fill("road works")
    page.get_by_role("button", name="Close").click()
    assert session.view().state == "closed"
    context.close()


def test_only_the_fields_of_the_chosen_probe_are_shown(page, writing, store):
    Session.create(store, "loops", DRIVES, policy=sp.BetGapE())
    log_in(page, writing, "/s/loops")
    for one, other in (("north loop", "south loop"), ("south loop", "north loop")):
        page.locator(f"input[name='arm'][value='{one}']").check()
        expect(page.locator(f"[data-arm='{one}']")).to_be_visible()
        expect(page.locator(f"[data-arm='{other}']")).to_be_hidden()
        expect(page.locator("#tell-value")).to_be_hidden()


@pytest.fixture
def evil(writing):
    """A page of another site that tries to write and to read here with the visitor's cookie."""
    body = f"""<script>
    const at = "{writing.url}/api/sessions/fresh/";
    const form = new URLSearchParams({{arm: "copper", value: "1"}});
    Promise.allSettled([
      fetch(at + "tell", {{method: "POST", body: form, mode: "no-cors", credentials: "include"}}),
      fetch(at + "tell", {{method: "POST", body: '{{"arm":"copper","value":1}}', credentials: "include",
                           headers: {{"content-type": "application/json"}}}}),
      fetch("{writing.url}/api/sessions", {{credentials: "include"}}).then((answer) => answer.text()),
    ]).then((all) => {{ document.title = all.map((one) => one.status).join(" "); }});
    </script>""".encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://localhost:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_page_of_another_site_can_neither_write_nor_read(browser, writing, store, evil):
    before = positions(store)
    page = browser.new_page()
    log_in(page, writing)
    page.goto(evil)
    page.wait_for_function("document.title.split(' ').length === 3")
    assert page.title().split()[1:] == ["rejected", "rejected"]
    assert positions(store) == before
    page.close()


LOOKS = {
    "phone": PHONE,
    "desk": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
}


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_fits_and_keeps_its_sizes(browser, writing, look):
    context = browser.new_context(**LOOKS[look])
    page = context.new_page()
    log_in(page, writing)
    for path in ("/", "/new", "/s/sure", "/s/middle", "/s/fresh", "/s/middle/sheet"):
        page.goto(writing.url + path)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{path} is {wide} px too wide"
        PICTURES.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=PICTURES / f"{look}{path.replace('/', '-')}.png", full_page=True)
        sizes = page.eval_on_selector_all(
            "main button, .button, main select, main input:not([type=hidden],[type=radio])",
            "all => all.filter((one) => one.checkVisibility()).map((one) => one.offsetHeight)",
        )
        assert all(size >= 44 for size in sizes), (path, sizes)
        if path.startswith("/s/") and not path.endswith("sheet"):
            size = page.locator(".headline").evaluate("one => getComputedStyle(one).fontSize")
            assert size == "32px"
    order = page.goto(f"{writing.url}/s/middle") and page.evaluate(
        """['part-answer', 'next', 'plans', 'history']
            .map((id) => document.getElementById(id).getBoundingClientRect().top)"""
    )
    if look == "phone":
        assert order == sorted(order), "answer, measure next, all plans, history"
    else:
        assert order[1] == order[2], "the chart stands beside what to measure"
    context.close()


def test_a_sheet_prints_without_the_page_around_it(page, writing):
    log_in(page, writing, "/s/middle/sheet")
    page.emulate_media(media="print")
    expect(page.locator(".top")).to_be_hidden()
    expect(page.get_by_role("button", name="Print")).to_be_hidden()
    expect(page.locator("table.sheet")).to_be_visible()


def test_keyboards_and_screen_readers_find_everything(page, writing):
    for path in ("/", "/new", "/s/middle", "/s/sure"):
        log_in(page, writing, path) if path == "/" else page.goto(writing.url + path)
        unnamed = page.eval_on_selector_all(
            "input:not([type=hidden]), select, button, summary, a",
            """all => all.filter((one) => !(one.textContent.trim() || one.ariaLabel || one.labels?.length
                || one.getAttribute('aria-labelledby'))).map((one) => one.outerHTML)""",
        )
        assert unnamed == []
        assert page.locator("h1").count() == 1
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()


def test_times_are_those_of_the_readers_clock(browser, writing):
    shown = {}
    for zone in ("UTC", "Asia/Kolkata"):
        context = browser.new_context(timezone_id=zone)
        page = context.new_page()
        log_in(page, writing, "/s/sure")
        shown[zone] = page.locator("#history time").first.inner_text()[-5:]
        context.close()
    minutes = {zone: int(text[:2]) * 60 + int(text[3:]) for zone, text in shown.items()}
    assert (minutes["Asia/Kolkata"] - minutes["UTC"]) % 1440 == 330
