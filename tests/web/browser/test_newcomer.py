"""A newcomer's way by mouse, from an empty project to a release; then what that page withstands.

The tests stand in the order of that way, on one page.
"""

import shlex
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from shoal.auditor.verify import verify
from shoal.cli.main import status_of
from shoal.samples import patients
from shoal.web.policy_text import read, written
from shoal.web.work import Job
from web.browsing import come_in, tab_of
from web.visitor import in_loop, number_of
from web.walk import ask_k, settled
from web.written import others_in

playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install it")
AXE = Path(__file__).parent.parent / "vendor" / "axe.min.js"
SCREENS = (
    "open columns hierarchies promises compare result release history help text check watch"
).split()


def test_a_newcomer_gets_a_draft_that_counts_people(visit, place):
    tab, _ = visit
    people = len(set(patients.generate(300, seed=3)["patient"]))
    assert "Every promise holds" in tab.inner_text("#verdict")
    assert f"{people} people hide in" in tab.inner_text("#verdict")
    assert "The tenth of the rows that pays most loses" in tab.inner_text("#pays")
    assert len(place.project.runs) == 1  # of a double click
    tab.reload()
    tab.go_back()
    tab.wait_for_selector("main h1")
    assert len(place.project.runs) == 1


def test_the_copied_command_gives_the_same_bytes_as_the_draft(visit, place, monkeypatch):
    context = visit[0].context
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=place.door.origin)
    tab = tab_of(context)
    tab.goto(f"{place.door.origin}/promises")
    tab.click("[data-copy=command]")
    tab.wait_for_selector("text=Copied.")
    copied = tab.evaluate("navigator.clipboard.readText()")
    tab.close()
    monkeypatch.chdir(place.project.folder)
    assert status_of([*shlex.split(copied)[1:], "-q"]) == 0
    made = [Path("draft.csv"), Path("draft.csv.certificate.json")]
    assert made[0].read_bytes() == (place.project.runs[0].folder / "data.csv").read_bytes()
    for path in made:
        path.unlink()


def test_nothing_outside_is_asked_and_no_rule_is_broken(visit):
    _, watch = visit
    assert watch.outside == []
    assert watch.said == []


@pytest.fixture(scope="module")
def released(visit):
    """The rest of the way: attacked, answered, signed off and released."""
    *_, last = visit[0].way
    assert last == "released"


def test_then_it_is_signed_and_released(visit, place, released):
    _, watch = visit
    (release,) = (place.project.folder / "releases").iterdir()
    assert all(check.ok is not False for check in verify(release / "data.csv"))
    assert others_in(place.project.folder) == []
    assert {path.name for path in place.project.start.iterdir()} == {"patients.csv", "ward"}
    assert watch.said == []
    tab = visit[0]
    with tab.context.expect_page() as opened:
        tab.click("a:text-is('dossier')")
    opened.value.wait_for_url(f"**/releases/{release.name}/dossier")
    opened.value.close()
    tab.wait_for_selector(f"code:text('releases/{release.name}')")


def test_its_report_opens_in_a_sandbox(visit, place):
    tab = tab_of(visit[0].context)
    answer = tab.goto(f"{place.door.origin}/runs/0001/report")
    assert answer.headers["content-security-policy"].startswith("sandbox;")
    assert tab.is_visible("text=Every promise holds") or "holds" in tab.inner_text("body")
    tab.close()


def test_the_browser_keeps_no_value_and_no_token(visit, place):
    tab, _ = visit
    assert tab.evaluate("document.cookie") == ""
    assert tab.evaluate("JSON.stringify({...localStorage, ...sessionStorage})") == "{}"
    cookie = tab.context.cookies()[0]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert "token" not in tab.url


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


def test_another_name_for_the_same_address_is_told_nothing(visit, place):
    tab, got = tab_of(visit[0].context), []
    tab.on("response", lambda answer: got.append((answer.status, answer.headers["content-length"])))
    with suppress(playwright.Error):  # the page may have no body
        tab.goto(f"http://rebound.test:{place.door.port}/columns")
    assert got == [(400, "0")]
    tab.close()


def test_the_page_is_accessible_in_both_themes_and_fits_320_pixels(visit, place):
    context = visit[0].context
    tab = tab_of(context)
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


def test_seven_windows_are_all_live_while_a_job_runs(visit, place):
    """A browser opens six connections to one server: one window listens for all of them."""
    job = Job("900", "verify", {}, "running")
    in_loop(job.tell, {"stage": "measuring"})
    place.jobs._all[job.id] = job
    tabs = [tab_of(visit[0].context) for _ in range(7)]
    for tab in tabs:
        tab.goto(f"{place.door.origin}/help")
        tab.wait_for_selector(".job")
    in_loop(place.jobs._over, job, "done")
    for tab in tabs:
        tab.wait_for_selector(".job", state="detached")
        tab.close()


def conditions(tab, place) -> str:
    """The gate's open conditions."""
    tab.goto(f"{place.door.origin}/release")
    return " | ".join(tab.locator("#gate tr:has(.warn)").all_inner_texts())


def test_what_is_touched_after_the_draft_shuts_the_gate_by_its_name(visit, place, released):
    tab, project = visit[0], place.project
    assert conditions(tab, place) == ""
    table, policy = project.table, project.folder / "policy.yaml"
    tree = project.folder / "hierarchies" / "new.csv"
    for path, text, name in (
        (table, table.read_text() + table.read_text().splitlines()[1] + "\n", "table changed"),
        (policy, written({**read(policy.read_text()), "seed": 8}), "policy changed"),
        (tree, "a;*\n", "hierarchies changed"),
    ):
        before = path.read_bytes() if path.exists() else None
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        assert name in conditions(tab, place)
        assert not tab.is_enabled("#release-form button")
        path.unlink() if before is None else path.write_bytes(before)
        if path == table:
            tab.click("#again button")  # a new time stamp: it is read, and is the same
            tab.wait_for_selector("#again", state="detached")
    assert conditions(tab, place) == ""


def test_two_tabs_are_asked_about_the_same_lines_and_merge_others(visit, place):
    context, project = visit[0].context, place.project
    first, second = tab_of(context), tab_of(context)
    for tab in (first, second):
        tab.goto(f"{place.door.origin}/promises")
        settled(tab)
    other = tab_of(context)
    other.goto(f"{place.door.origin}/columns")
    settled(other)
    first.click("#k-form [data-step='1']")
    first.wait_for_selector("#policy >> text=k: 5")
    second.fill("#k", "9")
    second.press("#k", "Tab")
    second.wait_for_selector("h1:text('Changed elsewhere')")
    assert not second.is_visible("#merge")
    other.select_option(f"#role-{number_of(place, 'ward')}", "drop")
    other.click("#merge button")
    other.wait_for_selector("h1:text('What does each column tell')")
    assert project.policy["promises"][0]["k"] == 5
    assert project.policy["attributes"]["ward"] == {"role": "drop"}
    for tab in (first, second, other):
        tab.close()


def test_twelve_edits_are_undone_and_each_hash_returns(visit, place):
    tab, project = visit[0], place.project
    tab.goto(f"{place.door.origin}/promises")

    def shown_after(act) -> None:
        before = project.policy_sha
        act()
        tab.wait_for_selector(f"#undo [name=base]:not([value='{before}'])", state="attached")

    hashes, k = [], project.policy["promises"][0]["k"]
    for _ in range(12):
        hashes.append(project.policy_sha)
        shown_after(lambda: tab.click("#k-form [data-step='1']"))
    assert project.policy["promises"][0]["k"] == k + 12
    tab.focus("#main")
    tab.on("dialog", lambda dialog: dialog.accept())  # whether to undo this
    for expected in reversed(hashes):
        shown_after(lambda: tab.keyboard.press("u"))
        assert project.policy_sha == expected


def test_a_link_opens_the_page_once(browser, place):
    context = browser.new_context()
    come_in(context, place)
    other = tab_of(browser.new_context())
    other.goto((place.project.folder / ".ui" / "open.html").as_uri())
    other.wait_for_selector("text=This link is used or too old")


def wide(tab, selector: str) -> list[float]:
    """Of every element, how wide it is, and how much of what it holds is cut off."""
    return tab.eval_on_selector_all(
        selector, "all => all.map(e => [e.clientWidth, e.scrollWidth - e.clientWidth])"
    )


def test_nothing_is_cut_off_at_the_widths_of_screens(visit, place, released):
    tab, project = visit[0], place.project
    tab.goto(f"{place.door.origin}/promises")
    settled(tab)
    ask_k(tab, 6)
    tab.click("#make")
    tab.wait_for_selector("#verdict >> text=Every promise holds")
    last, first = project.runs[0].name, project.runs[-1].name
    for width in (1280, 1920):
        tab.set_viewport_size({"width": width, "height": 900})
        tab.goto(f"{place.door.origin}/result/{last}?with={first}")
        assert [cut for _, cut in wide(tab, "#beside .scroll")] == [0]
        labels = tab.locator(".report svg text").all_text_contents()
        assert {"none", "vocational", "doctorate"} <= {*labels}
        assert not any(cut for _, cut in wide(tab, ".tile strong, .tile"))
        tab.goto(f"{place.door.origin}/release")
        assert all(own > 150 for own, _ in wide(tab, "[name^=why]"))
        assert not any(cut for _, cut in wide(tab, ".card"))
        tab.goto(f"{place.door.origin}/promises")
        tab.click("details:has([id^=add-]) summary")
        assert not any(cut for _, cut in wide(tab, ".card"))
    tab.set_viewport_size({"width": 1280, "height": 900})
