"""Projects of their own in a real browser: odd names, many columns, trees, jobs, what is killed."""

import errno
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shoal.samples import patients
from shoal.web import work
from thorough import LONG
from web.browsing import Watch, come_in, tab_of
from web.visitor import number_of, served
from web.walk import ask_k, settled
from web.written import others_in

CANARY = "Kanarienvogel"
NAMES = {"name": "<img src=x onerror=alert(1)>", "ward": "c\u202ed", "disease": "=b"}
ODD = "<script>alert(1)</script>"


def odd_table() -> str:
    """Patients with odd names and cells; one has a canary in every column that takes text."""
    frame = patients.generate(120, seed=5).rename(NAMES)
    text = [name for name in frame.columns if name not in ("age", "charge")]
    cells = [
        pl.when(pl.int_range(pl.len()) == 7)
        .then(pl.lit(f"{CANARY}-{number}"))
        .otherwise(pl.col(name).cast(pl.String))
        .alias(name)
        for number, name in enumerate(text)
    ]
    frame = frame.with_columns(cells)
    odd = pl.col("c\u202ed").replace(
        {frame["c\u202ed"][0]: ODD, frame["c\u202ed"][1]: "=cmd()|'a\u202eb"}
    )
    return frame.with_columns(odd).write_csv()


def test_odd_names_are_text_and_no_cell_leaves_the_screen_it_was_asked_for(
    context, tmp_path, capfd
):
    (tmp_path / "t.csv").write_text(odd_table())
    with served(tmp_path / "ward", tmp_path, own_desk=True) as server:
        watch, titles = Watch(context, server), []
        tab = come_in(context, server)
        tab.on("dialog", lambda dialog: watch.said.append("a dialog") or dialog.dismiss())
        tab.on("domcontentloaded", lambda page: titles.append(page.title()))
        tab.check("input[value='t.csv']")
        tab.click("#table-form button.main")
        tab.wait_for_selector("#person-2")
        tab.check("#person-2")
        tab.click("#person-form button.main")
        tab.wait_for_selector(".box.good")
        tab.click("[id^=confirm] button")
        tab.wait_for_selector("[id^=confirm]", state="detached")
        assert NAMES["name"] in tab.inner_text("table.columns")
        tab.goto(f"{server.door.origin}/promises")
        ask_k(tab, 3)
        tab.click("#make")
        tab.wait_for_selector("#verdict >> text=Every promise holds")
        tab.click("#attacker-most-exposed button")
        tab.wait_for_selector("text=The attacker knows")
        for path in ("open", "columns", "promises", "history", "help", "text", "hierarchies"):
            tab.goto(f"{server.door.origin}/{path}")
            assert CANARY not in tab.content(), path
            assert "\u202e" not in tab.content(), path
        tab.goto(f"{server.door.origin}/columns")
        tab.click("#rows button")
        tab.wait_for_selector(f"td.cell >> text={ODD}")
        assert CANARY in tab.inner_text("main")  # where they were asked for, cells are shown
        titles.append(tab.title())
        kept = tab.evaluate(
            "JSON.stringify([document.cookie, {...localStorage, ...sessionStorage}])"
        )
        assert (watch.said, watch.outside, kept) == ([], [], '["",{}]')
        assert CANARY not in " ".join([*watch.asked, *titles])
        for path in server.project.folder.rglob("*"):
            if path.is_file() and path.name not in ("data.csv", "report.html", "shown.json"):
                assert CANARY not in path.read_text("utf-8", "replace"), path
    assert CANARY not in "".join(capfd.readouterr())


def test_300_columns_are_shown_by_pages_and_searched(context, tmp_path):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({f"c{i}": rng.integers(0, 3 + i % 9, 300) for i in range(300)})
    frame.write_csv(tmp_path / "wide.csv")
    with served(tmp_path / "ward", tmp_path) as server:
        tab = come_in(context, server)
        tab.check("input[value='wide.csv']")
        tab.click("#table-form button.main")
        tab.wait_for_url("**/columns")
        tab.goto(f"{server.door.origin}/columns")
        assert "page 1 of 6" in tab.inner_text("#search-form")
        tab.keyboard.press("/")
        tab.keyboard.type("c299")
        tab.keyboard.press("Enter")
        tab.wait_for_url("**q=c299**")
        assert tab.locator("table.columns select").count() == 1


@pytest.fixture(scope="module")
def ward(template, tmp_path_factory):
    """A project whose table is open and whose questions are answered."""
    tables = tmp_path_factory.mktemp("ward")
    shutil.copytree(template, tables, dirs_exist_ok=True)
    with served(tables / "project", tables) as server:
        yield server


@pytest.fixture(scope="module")
def tab(browser, ward):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield come_in(context, ward)
    context.close()


def test_a_table_is_looked_into_before_it_is_opened(context, tmp_path):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    rows = [f"P{i};0{i % 9 + 1}.05.1980;{i},5;M\u00fcnchen" for i in range(60)]
    text = "\n".join(["Ward list", "", "patient;born;weight;place", *rows, ""])
    (tmp_path / "german.csv").write_bytes(text.encode("cp1252"))
    book = xlsxwriter.Workbook(tmp_path / "two.xlsx")
    for name in ("cover", "people"):
        sheet = book.add_worksheet(name)
        for number, line in enumerate(text.splitlines() if name == "people" else ["nothing"]):
            sheet.write_row(number, 0, line.split(";"))
    book.close()
    with served(tmp_path / "ward", tmp_path) as server:
        watch, tab = Watch(context, server), come_in(context, server)
        tab.wait_for_selector("#table-form button.main:disabled")
        assert tab.is_visible("text=Mark a file first")
        tab.check("input[value='german.csv']")
        assert tab.is_enabled("#table-form button.main")
        tab.select_option("#table-form [name=encoding]", "cp1252")
        tab.click("#lines label:text-is('3')")
        tab.select_option("#table-form [name=decimal]", ",")
        tab.select_option("#table-form [name=dates]", "%d.%m.%Y")
        tab.wait_for_selector("#beginning th:has-text('born') >> text=dates")
        assert "numbers" in tab.inner_text("#beginning th:has-text('weight')")
        assert "M\u00fcnchen" in tab.inner_text("#beginning")
        tab.check("input[value='two.xlsx']")
        tab.check("#table-form [name=sheet][value=people]")
        tab.wait_for_selector("#lines >> text=patient")
        tab.click("#lines bdi:text-is('patient')")
        tab.wait_for_selector("#beginning th:has-text('born')")
        assert "--" not in tab.inner_text("main")
        tab.click("#table-form button.main")
        tab.wait_for_selector("#person-form")
        assert server.project.policy["read"]["sheet"] == "people"
        assert server.project.about["columns"] == ["patient", "born", "weight", "place"]
        assert (watch.said, watch.outside) == ([], [])


FAST = """() => {
  for (const [name, role] of Object.entries(ROLES)) {
    const field = document.getElementById(name);
    field.value = role;
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }
  document.querySelector(".steps a[href='/promises']").click();
}"""


def test_fast_changes_of_one_window_are_all_made_before_it_goes_on(context, opened):
    project, origin = opened.server.project, opened.server.door.origin
    wanted = {"ward": "drop", "charge": "quasi", "sex": "drop", "name": "drop"}
    tab = come_in(context, opened.server)
    tab.goto(f"{origin}/columns")
    settled(tab)
    roles = {f"role-{number_of(opened.server, name)}": role for name, role in wanted.items()}
    tab.evaluate(FAST.replace("ROLES", json.dumps(roles)))
    tab.wait_for_selector("html.script >> h1:text('What do you promise?')")
    attributes = project.policy["attributes"]
    assert {name: attributes[name]["role"] for name in wanted} == wanted
    for k in (13, 16):
        tab.evaluate("document.querySelector('#k-form [data-step=\"1\"]').click();" * 3)
        tab.wait_for_selector(f"#policy >> text=k: {k}")
    tab.evaluate("document.querySelector('#undo button').click();" * 2)
    tab.wait_for_selector("#policy >> text=k: 13")


ONE_WRONG = """() => {
  const [good, wrong] = ROLES.map((id) => document.getElementById(id));
  good.value = "drop";
  wrong.add(new Option("wrong", "wrong"));
  wrong.value = "wrong";
  for (const field of [good, wrong]) field.dispatchEvent(new Event("change", { bubbles: true }));
}"""


def test_a_change_made_while_a_refusal_is_on_its_way_is_none_of_another_window(context, opened):
    """The page's own change before the refused one has changed the policy under it."""
    project, held = opened.server.project, []
    good, wrong, late = (
        f"role-{number_of(opened.server, name)}" for name in ("ward", "sex", "charge")
    )
    tab = come_in(context, opened.server)
    tab.goto(f"{opened.server.door.origin}/columns")
    settled(tab)
    tab.route("**/columns", lambda route: route.continue_() if held else held.append(route))
    tab.evaluate(ONE_WRONG.replace("ROLES", json.dumps([good, wrong])))
    while not held:
        tab.wait_for_timeout(50)
    tab.select_option(f"#{late}", "plain")
    held[0].continue_()
    tab.wait_for_selector("#policy >> text=charge: {role: plain")
    assert tab.is_hidden("text=Changed elsewhere")
    assert project.attributes["ward"]["role"] == "drop"


LABELS = "none primary secondary vocational bachelor master doctorate".split()
TREE = {
    label: f"{label};{'low' if number < 3 else 'high'};*\n" for number, label in enumerate(LABELS)
}
TREES = {
    "gap": "".join(line for label, line in TREE.items() if label != "vocational"),
    "twice": TREE["none"] + "".join(TREE.values()),
    "two-parents": "none;high;*\n" + "".join(TREE.values()),
}


def test_a_gap_blocks_until_it_is_mended_in_a_copy_and_two_parents_are_refused(tab, ward):
    trees = ward.project.start / "trees"
    trees.mkdir()
    for name, text in TREES.items():
        (trees / f"{name}.csv").write_text(text)
    number = number_of(ward, "education")
    found = f"{ward.door.origin}/hierarchies/{number}?f=trees"
    tab.goto(found)
    assert "sound" in tab.inner_text("tr:has-text('twice.csv')")  # it says the same twice
    assert "sound" not in tab.inner_text("tr:has-text('two-parents.csv')")
    before = ward.project.policy_text
    if tab.locator("tr:has-text('two-parents.csv') button").count():
        tab.click("tr:has-text('two-parents.csv') button")
        tab.wait_for_selector("#error")
        tab.goto(found)
    assert ward.project.policy_text == before
    tab.click("tr:has-text('gap.csv') button")
    tab.wait_for_selector("#gap >> text=1 value has no place in education")
    tab.goto(f"{ward.door.origin}/promises")
    tab.wait_for_selector("#findings")
    assert "1 gap" in tab.inner_text("nav.steps")
    tab.goto(f"{ward.door.origin}/hierarchies/{number}")
    tab.select_option("#put-1 select", "high")
    tab.click("#put-1 button")
    tab.wait_for_selector("nav.steps >> text=5 of 5 fit")
    for name, text in TREES.items():
        assert (trees / f"{name}.csv").read_text() == text
    assert "vocational;high;*" in (ward.project.folder / "hierarchies/education.csv").read_text()


@pytest.fixture
def held(monkeypatch):
    """Processes of jobs rest as soon as they are started: none is done before it is disturbed."""
    start = work._started

    async def stopped(module):
        process = await start(module)
        if module == "shoal.web.job":
            os.kill(process.pid, signal.SIGSTOP)
        return process

    monkeypatch.setattr(work, "_started", stopped)


def started(tab, ward):
    """A draft that runs, as soon as it does."""
    tab.goto(f"{ward.door.origin}/promises")
    tab.click("#make")
    tab.wait_for_selector(".job")
    job = ward.jobs.last("draft")
    while job.process is None:
        time.sleep(0.01)
    return job


def test_a_cancelled_draft_is_gone_and_looks_go_on_meanwhile(tab, ward, held):
    job = started(tab, ward)
    other = tab_of(tab.context)
    other.goto(f"{ward.door.origin}/columns")
    assert other.is_visible(".job")
    other.wait_for_selector("main >> text=people in 300 rows")
    other.close()
    tab.click("[id^=cancel] button")
    while not job.asked.get("is_cancelled"):
        time.sleep(0.01)
    os.kill(job.process.pid, signal.SIGCONT)
    tab.wait_for_selector("text=Stopped. Nothing was written.")
    assert [run for run in ward.project.runs if run.state != "done"] == []
    assert others_in(ward.project.folder) == []


@pytest.mark.parametrize("turn", range(1, 20 if LONG else 2))
def test_a_draft_that_is_cancelled_at_some_stage_is_gone_or_done(tab, ward, turn):
    job = started(tab, ward)
    while not job.is_over and len({e.get("stage") for e in job.events}) < turn:
        time.sleep(0.01)  # each time a stage later
    tab.evaluate("document.querySelector('[id^=cancel] button')?.click()")
    tab.wait_for_selector(":text('Stopped. Nothing was written.'), #verdict")
    while not job.is_over:
        time.sleep(0.01)
    assert others_in(ward.project.folder) == []


def test_a_killed_job_says_so_leaves_nothing_and_the_next_one_runs(tab, ward, held, monkeypatch):
    before = set(ward.project.folder.rglob("data.csv"))
    job = started(tab, ward)
    os.kill(job.process.pid, signal.SIGKILL)
    monkeypatch.undo()
    tab.wait_for_selector("#verdict >> text=It stopped before the end")
    assert "ended from outside" in tab.inner_text("#verdict")
    assert set(ward.project.folder.rglob("data.csv")) <= before
    tab.click("#draft-form button")
    tab.wait_for_selector("#verdict >> text=Every promise holds")
    assert others_in(ward.project.folder) == []


def test_a_killed_desk_is_said_and_the_next_look_works(tab, ward):
    tab.goto(f"{ward.door.origin}/columns")
    settled(tab)
    os.kill(ward.desk.pid, signal.SIGKILL)
    tab.click("#rows button")
    tab.wait_for_selector('td.cell, :text("The table\'s process has ended")')
    tab.goto(f"{ward.door.origin}/columns")
    tab.click("#rows button")
    tab.wait_for_selector("td.cell")


def test_a_disk_that_refuses_is_said_and_nothing_is_changed(tab, ward, monkeypatch):
    tab.goto(f"{ward.door.origin}/promises")
    settled(tab)
    before = {p: p.read_bytes() for p in ward.project.folder.rglob("*") if p.is_file()}
    for number in (errno.ENOSPC, errno.EROFS):

        def refused(*given, number=number):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr("shoal.web.policy_text.os.fsync", refused)
        tab.click("#k-form [data-step='1']")
        tab.wait_for_selector(f"#error >> text={os.strerror(number)}")
        monkeypatch.undo()
        assert "make the folder writable; nothing was changed" in tab.inner_text("#error")
        assert {p: p.read_bytes() for p in before} == before
        tab.goto(f"{ward.door.origin}/promises")
    tab.click("#k-form [data-step='1']")
    tab.wait_for_selector("#policy >> text=k: 11")


def test_what_no_release_keeps_names_the_nearest_that_one_would(tab, ward):
    tab.goto(f"{ward.door.origin}/promises")
    ask_k(tab, 299)
    tab.click("#make")
    tab.wait_for_selector("#verdict >> text=Nothing was made")
    people = len(set(patients.generate(300, seed=3)["patient"]))
    tab.click(f"text=Ask for k = {people} instead")
    tab.wait_for_selector(f"#policy >> text=k: {people}")


def test_a_broken_promise_is_withheld(tab, ward):
    earlier, run = ward.project.last_draft, ward.project.new_run()
    (run.folder / "run.json").write_text(
        '{"state": "refused", "kind": "PromiseError", "message": "k-anonymity: measured 3"}'
    )
    tab.goto(f"{ward.door.origin}/result")
    assert "Withheld: a promise was measured" in tab.inner_text("#verdict")
    now = ward.project.last_draft
    assert (now and now.number) == (earlier and earlier.number)
    tab.goto(f"{ward.door.origin}/release")
    assert f"Release draft {run.number}" not in tab.inner_text("h1")


class Started:
    """`shoal ui` in a process of its own, which can be killed."""

    def __init__(self, folder: Path) -> None:
        import subprocess
        import sys

        self.opening = folder / ".ui" / "open.html"
        self.opening.unlink(missing_ok=True)
        command = [sys.executable, "-m", "shoal", "ui", str(folder), "--no-browser"]
        self.process = subprocess.Popen(
            [*command, "--tables", str(folder.parent)], stderr=subprocess.DEVNULL
        )
        while not self.opening.exists():
            assert self.process.poll() is None
            time.sleep(0.02)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def test_a_killed_server_is_said_and_the_same_command_goes_on(context, tmp_path):
    folder = tmp_path / "ward"
    first = Started(folder)
    tab = tab_of(context)
    try:
        token = first.opening.read_text().partition('name="token" value="')[2].partition('"')[0]
        tab.goto(first.opening.as_uri())
        tab.wait_for_selector("html.script >> h1:text('Which table?')")  # else nothing could say it
        assert token
        assert token.encode() not in b"".join(commands())
        client = context.new_cdp_session(tab)
        went = client.send("Page.getNavigationHistory")["entries"]
        assert not any(token in entry["url"] for entry in went)
        half = folder / "runs" / "0001"
        half.mkdir(parents=True)
        (half / "data.csv").write_text("half a rel")
    finally:
        first.kill()
    tab.click("#sample-form button")
    tab.wait_for_selector("#status >> text=Is shoal ui still running?")
    second = Started(folder)
    try:
        tab.goto(second.opening.as_uri())
        tab.wait_for_selector("text=Interrupted: nothing was made.")
        assert not list(folder.rglob("data.csv"))
    finally:
        second.kill()


def commands() -> Iterator[bytes]:
    """How every process was called, where the system says so."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            yield path.read_bytes()
