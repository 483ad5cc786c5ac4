"""The page in a real browser: by mouse, by keyboard, without script; what it sends and keeps."""

from __future__ import annotations

import shutil
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from shoal.jobs.audit.verify import verify
from shoal.samples import patients
from shoal.web import folder as files
from shoal.web.app import opening_page
from web.visitor import Visitor, served
from web.walk import walk

playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install it")

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium: 'make browser' installs it"),
]
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic"]
SCREENS = (
    "open columns hierarchies promises compare result release history help text check watch"
).split()
PATIENCE = 60_000  # milliseconds; the machine may be busy


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A page with a draft, for tests that only look."""
    tables = tmp_path_factory.mktemp("browser")
    patients.generate(300, seed=3).write_csv(tables / "patients.csv")
    with served(tables / "ward", tables) as server:
        yield server


def come_in(context, server):
    """A tab that came in by the project's file, as a browser that `shoal ui` opens does."""
    path = server.project.folder / ".ui" / "open.html"
    files.made(path.parent)
    files.write(path, opening_page(server))
    tab = context.new_page()
    tab.set_default_timeout(PATIENCE)
    tab.goto(path.as_uri())
    tab.wait_for_url(f"{server.door.origin}/*")
    tab.wait_for_selector("main")
    return tab


class Watch:
    """What a context asked for, and what it complained about."""

    def __init__(self, context, server) -> None:
        self.outside: list[str] = []
        self.said: list[str] = []
        own = (server.door.origin, "file:", "data:")
        context.on("request", lambda r: r.url.startswith(own) or self.outside.append(r.url))
        context.on("console", lambda m: self.said.append(m.text))
        context.on("weberror", lambda e: self.said.append(str(e.error)))


@pytest.fixture(scope="module")
def visit(browser, place):
    """One newcomer's way from an empty project to a draft, by mouse; everything watched."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    watch = Watch(context, place)
    tab = come_in(context, place)
    way = walk(tab, place, "patients.csv", "4")
    assert "result" in way
    tab.way = way
    return tab, watch


def test_a_newcomer_gets_a_draft_that_counts_people(visit, place):
    tab, _ = visit
    people = len(set(patients.generate(300, seed=3)["patient"]))
    assert "Every promise holds" in tab.inner_text("#verdict")
    assert f"{people} people hide in" in tab.inner_text("#verdict")
    assert len(place.project.runs) == 1  # of a double click
    tab.reload()
    tab.go_back()
    tab.wait_for_selector("main h1")
    assert len(place.project.runs) == 1


def test_nothing_outside_is_asked_and_no_rule_is_broken(visit):
    _, watch = visit
    assert watch.outside == []
    assert watch.said == []


def test_then_it_is_signed_and_released(visit, place):
    tab, watch = visit
    assert list(tab.way)[-1] == "released"
    (released,) = (place.project.folder / "releases").iterdir()
    assert all(check.ok is not False for check in verify(released / "data.csv"))
    assert watch.said == []


def test_the_browser_keeps_no_value_and_no_token(visit, place):
    tab, _ = visit
    assert tab.evaluate("document.cookie") == ""
    assert tab.evaluate("JSON.stringify({...localStorage, ...sessionStorage})") == "{}"
    cookie = tab.context.cookies()[0]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert "token" not in tab.url


def test_a_link_opens_the_page_once(browser, place):
    context = browser.new_context()
    come_in(context, place)
    other = browser.new_context().new_page()
    other.goto((place.project.folder / ".ui" / "open.html").as_uri())
    other.wait_for_selector("text=This link is used or too old")


def test_another_local_server_gets_no_cookie(visit, place):
    got = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self):
            got.append(self.headers.get("cookie"))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words):
            pass

    other = HTTPServer(("127.0.0.1", 0), Other)
    Thread(target=other.handle_request, daemon=True).start()
    tab = visit[0].context.new_page()
    tab.goto(f"http://127.0.0.1:{other.server_port}/")
    other.server_close()
    assert got == [None]
    tab.close()


FOREIGN = """<form id=f method=post action="{0}/policy"><input name=edit value=k></form>
<iframe src="{0}/columns"></iframe><script>
const out = [];
fetch("{0}/columns", {{credentials: "include"}}).then(r => out.push(r.status), e => out.push("no"));
const events = new EventSource("{0}/jobs/1/events", {{withCredentials: true}});
events.onerror = () => out.push("no events");
setTimeout(() => document.title = JSON.stringify(out), 700);</script>"""


def test_a_foreign_page_can_neither_look_nor_change(visit, place):
    context, before = visit[0].context, place.project.policy_text
    tab = context.new_page()
    tab.route("http://evil.test/", lambda route: route.fulfill(
        body=FOREIGN.format(place.door.origin), content_type="text/html"))  # fmt: skip
    tab.goto("http://evil.test/")
    tab.wait_for_function("document.title.startsWith('[')")
    assert set(tab.evaluate("out")) <= {"no", "no events"}
    frames = [frame for frame in tab.frames if frame.url.startswith(place.door.origin)]
    assert all("What does each column" not in frame.content() for frame in frames)
    tab.evaluate("document.getElementById('f').submit()")
    tab.wait_for_url("**/policy")
    assert place.project.policy_text == before
    tab.close()


def test_the_page_is_accessible_in_both_themes_and_fits_320_pixels(visit, place):
    context = visit[0].context
    tab = context.new_page()
    tab.set_default_timeout(PATIENCE)
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        for path in SCREENS:
            tab.set_viewport_size({"width": 1280, "height": 900})
            tab.goto(f"{place.door.origin}/{path}")
            tab.wait_for_selector("main h1")
            tab.evaluate(AXE.read_text())
            found = tab.evaluate(
                "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa']})"
                ".then(r => r.violations.map(v => [v.id, v.nodes[0].html]))"
            )
            assert found == [], (scheme, path)
            if scheme == "light":
                tab.set_viewport_size({"width": 320, "height": 700})
                assert tab.evaluate("document.documentElement.scrollWidth") <= 320, path
    tab.close()


def test_seven_tabs_are_all_live(visit, place):
    context = visit[0].context
    tabs = [context.new_page() for _ in range(7)]
    for tab in tabs:
        tab.goto(f"{place.door.origin}/promises")
    for tab in tabs:
        assert tab.inner_text("h1") == "What do you promise?"
        tab.close()


def test_odd_names_and_cells_are_text_and_break_no_rule(browser, tmp_path):
    lines = [
        ",".join(f'"{name}"' for name in ("age", "sex", "<img src=x onerror=alert(1)>", "c\u202ed"))
    ]
    cells = '"<script>alert(1)</script>","=cmd()|\'a\u202eb"'
    (tmp_path / "t.csv").write_text(
        "\n".join([*lines, *[f"{i % 7},f,{cells}" for i in range(60)], ""])
    )
    with served(tmp_path / "ward", tmp_path) as server:
        context = browser.new_context()
        watch = Watch(context, server)
        tab = come_in(context, server)
        tab.on("dialog", lambda dialog: watch.said.append("a dialog") or dialog.dismiss())
        tab.check("input[value='t.csv']")
        tab.click("#table-form button.main")
        tab.wait_for_selector("#person-form")
        tab.click("#rows button")
        tab.wait_for_selector("td.cell >> text=<script>alert(1)</script>")
        assert "\u202e" not in tab.content()
        assert watch.said == []
        assert watch.outside == []


def by_keyboard(tab, server):
    """The same way as the newcomer's, without a mouse; the policy that comes of it."""
    tab.focus("input[value='patients.csv']")
    tab.keyboard.press("Space")
    tab.focus("#table-form button.main")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/columns")
    for _ in range(300):
        if tab.query_selector("#person-form [name=person]:checked"):
            break
        tab.wait_for_timeout(200)
        tab.reload()
    tab.focus("#person-form button.main")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".box.good")
    tab.focus("[id^=confirm] button")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("[id^=confirm]", state="detached")
    tab.goto(f"{server.door.origin}/promises")
    tab.focus("#k")
    tab.keyboard.press("Control+A")
    tab.keyboard.type("4")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#policy >> text=k: 4")
    assert tab.inner_text("h1") == "What do you promise?"  # and no conflict with oneself
    return server.project.policy_text


@pytest.mark.parametrize("has_script", [True, False])
def test_keyboard_alone_does_it_with_and_without_script(browser, tmp_path, has_script):
    patients.generate(120, seed=3).write_csv(tmp_path / "patients.csv")
    with served(tmp_path / "ward", tmp_path) as server:
        context = browser.new_context(java_script_enabled=has_script)
        if has_script:
            tab = come_in(context, server)
        else:
            path = tmp_path / "open.html"
            path.write_text(opening_page(server))
            tab = context.new_page()
            tab.set_default_timeout(PATIENCE)
            tab.goto(path.as_uri())
            tab.focus("button")
            tab.keyboard.press("Enter")
            tab.wait_for_url("**/open")
        POLICIES.append(by_keyboard(tab, server))
        context.close()
    assert len(set(POLICIES)) == 1


POLICIES: list[str] = []


def test_a_tree_is_walked_folded_and_found_by_keys(browser, tmp_path):
    patients.generate(120, seed=3).write_csv(tmp_path / "patients.csv")
    groups = {"none": "low", "primary": "low", "secondary": "low", "vocational": "low"}
    groups |= dict.fromkeys(("bachelor", "master", "doctorate"), "high")
    table = "".join(f"{value};{group};*\n" for value, group in groups.items())
    (tmp_path / "schooling.csv").write_text(table)
    with served(tmp_path / "ward", tmp_path) as server:
        visitor = Visitor(server)
        visitor.post("/table", path="patients.csv")
        place = f"/hierarchies/{server.project.about['columns'].index('education') + 1}"
        visitor.post(place, do="use", file="schooling.csv", base=server.project.policy_sha)
        tab = come_in(browser.new_context(), server)
        tab.goto(server.door.origin + place)

        def after(*keys):
            for key in keys:
                tab.keyboard.press(key)
            return tab.evaluate("document.activeElement.querySelector('.label')?.textContent")

        tab.focus("#node-0")
        assert after("ArrowDown", "ArrowDown") == "bachelor"
        assert after("ArrowLeft") == "high"
        assert after("ArrowLeft", "ArrowDown") == "low"  # what is folded is passed over
        assert after("ArrowUp", "ArrowRight", "ArrowRight") == "bachelor"
        assert after("End") == "vocational"
        assert after("Home", "m", "a") == "master"
        assert after(" ") == "master"
        assert tab.is_checked("tr:has(.label:text-is('master')) [name=of]")
        assert after("l") == "low"
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#rename-form")
