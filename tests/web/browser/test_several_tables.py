"""A hospital's way by mouse: from a workbook of three sheets to a release in which people hide by
all of their rows, through one gate.
"""

import csv
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from shoal.auditor.verify import verify
from shoal.samples import clinic
from web.browsing import PATIENCE, Watch, come_in
from web.visitor import number_of, served
from web.walk import accept, answer, ask_k, attack, confirm, go_to_promises, save, settled, sign

playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install it")
xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra 'excel' is not installed")
SHEETS = {"people": "patients", "visits": "visits", "drugs": "drugs"}
PEOPLE, K = 120, 5


def workbook(path: Path) -> dict[str, int]:
    """An invented clinic in three sheets, one with German dates, one below a title; the rows of
    each.
    """
    tables = clinic.generate_tables(PEOPLE, seed=3)
    days = pl.col("day").cast(pl.String).str.to_date().dt.strftime("%d.%m.%Y")
    tables["visits"] = tables["visits"].with_columns(days)
    with xlsxwriter.Workbook(path) as book:
        for name, sheet in SHEETS.items():
            place = book.add_worksheet(sheet)
            if name == "drugs":
                place.write(0, 0, "Drugs that were given")
            tables[name].write_excel(book, place, position=(2 if name == "drugs" else 0, 0))
    return {name: frame.height for name, frame in tables.items()}


def walk_of_tables(tab, server) -> Iterator[str]:
    """Steps of the way, by name; each is done when the next is asked for."""

    number = partial(number_of, server)
    tab.click("input[value='clinic.xlsx']")
    tab.wait_for_selector("#all-sheets:checked")  # since the sheets belong together
    tab.wait_for_selector("#sheets >> text=packs")
    assert not tab.query_selector("#error, #lines, #beginning")
    yield "open"
    tab.click("#table-form button.main")
    tab.wait_for_url("**/columns")
    tab.wait_for_selector("#who.good >> text=Everybody with the same patient")
    tab.wait_for_selector("#tables svg.entities")
    settled(tab)
    yield "person"
    confirm(tab)
    tab.select_option(f"#role-{number('visits.day')}", "drop")
    tab.wait_for_selector("#policy >> text=day: {role: drop")
    tab.select_option(f"#role-{number('drugs.packs')}", "plain")
    tab.wait_for_selector("#policy >> text=packs: {role: plain")
    settled(tab)
    yield "columns"
    go_to_promises(tab)
    tab.select_option("#known form:has-text('drugs') select", "count")
    tab.wait_for_selector("#policy >> text=known: count")
    ask_k(tab, K)
    settled(tab)
    yield "promises"
    tab.click("#make")
    tab.wait_for_selector("#verdict")
    settled(tab)
    yield "result"
    attack(tab, "People matched")
    answer(tab)
    accept(tab)
    save(tab)
    yield "gate"
    sign(tab)
    tab.click("#release-form button:enabled >> nth=-1")
    tab.wait_for_selector("#released")
    yield "released"


def rows_of(folder: Path, table: str) -> list[dict[str, str]]:
    with (folder / f"{table}.csv").open() as file:
        return list(csv.DictReader(file))


def alike(folder: Path) -> Counter:
    """How many people show the same in all tables, by plain Python from the files alone."""
    visits = defaultdict(list)
    for row in rows_of(folder, "visits"):
        visits[row["patient"]].append((row["kind"], row["drugs.rows"]))
    own = ("age", "sex", "district", "visits.rows")
    return Counter(
        (*(row[name] for name in own), *sorted(visits[row["patient"]]))
        for row in rows_of(folder, "people")
    )


def test_from_three_sheets_to_a_release_in_which_people_hide_by_all_their_rows(context, tmp_path):
    rows = workbook(tmp_path / "clinic.xlsx")
    with served(tmp_path / "project", tmp_path) as server:
        watch, tab = Watch(context, server), come_in(context, server)
        tab.set_default_timeout(5 * PATIENCE)
        for step in walk_of_tables(tab, server):
            if step == "person":
                picture = tab.get_attribute("#tables svg.entities", "aria-label")
                assert picture.startswith(
                    f"patients: {PEOPLE} people; visits: {rows['visits']} rows"
                )
                assert f"drugs: {rows['drugs']} rows" in picture
                _, *below = picture.split("; ")
                assert [text.rpartition("by ")[2] for text in below] == ["patient", "visit"]
                left = "all => all.map(one => +one.getAttribute('x'))"
                indents = tab.eval_on_selector_all("#tables svg.entities rect", left)
                assert indents == sorted({*indents})  # each table below the one it belongs to
                assert len(indents) == 3
                assert f"{PEOPLE} people have" in tab.inner_text("#who")
            elif step == "result":
                said = tab.inner_text("#verdict")
                assert "Every promise holds" in said
                assert f"{PEOPLE} people hide in" in said
                for name in ("visits", "drugs"):
                    assert f"of {rows[name]} rows of {name} are published" in said
                assert f"everybody hides among at least {K}" in tab.inner_text("#by-table")
            elif step == "gate":
                assert tab.locator("#gate").count() == 1
        (release,) = (server.project.folder / "releases").iterdir()
        assert min(alike(release / "data").values()) >= K
        assert sum(alike(release / "data").values()) == PEOPLE
        policy, original = release / "policy.yaml", tmp_path / "clinic.xlsx"
        checks = verify(release / "data", policy=policy, original=original)
        assert {check.name for check in checks if check.ok} >= {"file", "figures", "promises"}
        assert all(check.ok is not False for check in checks)
        assert {"dossier.html", "report.html", "for-the-recipient.zip"} <= {
            path.name for path in release.iterdir()
        }
        assert not watch.outside
        assert not watch.said


@pytest.mark.parametrize("table", ["clinic.xlsx", "people.csv"])
def test_a_click_on_open_waits_for_the_look_into_a_file_and_opens_no_sheet_unasked(
    context, tmp_path, table
):
    workbook(tmp_path / "clinic.xlsx")
    clinic.generate_tables(PEOPLE, seed=3)["people"].write_csv(tmp_path / "people.csv")
    with served(tmp_path / "project", tmp_path) as server:
        tab, held = come_in(context, server), []
        tab.route("**/table", lambda route: route.continue_() if held else held.append(route))
        tab.click(f"input[value='{table}']")
        tab.wait_for_selector("#looking >> text=Looking into the file")
        assert tab.is_hidden("#unmarked")
        tab.click("#table-form button.main")
        held[0].continue_()
        if table == "people.csv":
            tab.wait_for_url("**/columns")
        else:
            tab.wait_for_selector("#sheets:focus >> text=Only patients")
            assert tab.is_hidden("#looking")
            assert server.project.table is None
            tab.click("#table-form button.main")
            tab.wait_for_url("**/columns")
        assert server.project.table.name == table
