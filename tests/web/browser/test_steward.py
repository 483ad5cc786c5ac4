"""A steward's way by mouse: from a workbook with a title, German dates and `k.A.` to a release that
a key signed; and what happens where a surname is left as it is.
"""

import re

import numpy as np
import pytest

from shoal.auditor.signatures import new_key
from shoal.auditor.verify import verify
from web.browsing import PATIENCE, come_in
from web.visitor import number_of, served
from web.walk import accept, answer, ask_k, attack, confirm, go_to_promises, save, settled, sign

playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install it")
xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra 'excel' is not installed")
HEADINGS = ["Patientennummer", "Nachname", "Geburtsdatum", "Geschlecht", "Hauptdiagnose (ICD-10)"]
HEADINGS += ["Größe (cm)"]
SHELL_WORDS = re.compile(r"--\w|\bpip\b|\bstderr\b|\bstdin\b|exit status")


class Clicks:
    """A tab that counts what a mouse does."""

    def __init__(self, tab) -> None:
        self.tab, self.count = tab, 0

    def __getattr__(self, name: str):
        return getattr(self.tab, name)

    def click(self, place: str) -> None:
        self.count += 1
        self.tab.click(place)

    def check(self, place: str) -> None:
        self.count += 1
        self.tab.check(place)

    def select_option(self, place: str, value: str) -> None:
        self.count += 2
        self.tab.select_option(place, value)

    def fill(self, place: str, text: str) -> None:
        self.count += 1
        self.tab.fill(place, text)


def workbook(path) -> None:
    """300 stays of 200 people, below a title."""
    rng = np.random.default_rng(7)
    names = [
        f"{first}{last}" for first in "Mei Schul Neu Hof Berg".split() for last in "er mann".split()
    ]
    rows = [["Fallzahlen Klinik Nord, Stand 1. Mai"], HEADINGS]
    for row in range(300):
        who = row % 200
        born = f"{1 + who % 28:02}.{1 + who % 12:02}.{1940 + who % 60}"
        size = "k.A." if row % 12 == 5 else 150 + who % 40
        code = f"{'IJE'[int(rng.integers(3))]}{10 + int(rng.integers(4))}.0"
        rows.append([f"P{who:04}", names[who % 10], born, "mw"[who % 2], code, size])
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for at, cells in enumerate(rows):
            sheet.write_row(at, 0, cells)


@pytest.fixture
def steward(context, tmp_path):
    """The page over a folder with the workbook and a key."""
    workbook(tmp_path / "faelle.xlsx")
    new_key(str(tmp_path / "schluessel"), None)
    with served(tmp_path / "projekt", tmp_path) as server:
        tab = come_in(context, server)
        tab.set_default_timeout(5 * PATIENCE)
        yield Clicks(tab), server


def opened(page: Clicks) -> None:
    page.click("input[value='faelle.xlsx']")
    page.wait_for_selector("#lines")
    page.click("#line-2")
    page.wait_for_selector("#beginning >> text=Geburtsdatum")
    page.click("#table-form button.main")
    page.wait_for_url("**/columns")
    page.wait_for_selector("#person-form [name=person]:checked")
    page.click("#person-form button.main")
    page.wait_for_selector(".box.good")


def draft(page: Clicks) -> None:
    confirm(page)
    go_to_promises(page)
    settled(page)
    ask_k(page, 5)
    settled(page)
    page.click("#make")
    page.wait_for_selector("#verdict")


def test_from_a_workbook_to_a_signed_release_in_sixty_clicks(steward, tmp_path):
    page, server = steward
    opened(page)
    settled(page)
    assert "k.A." in page.inner_text("main")
    draft(page)
    attack(page)
    answer(page)
    accept(page)
    save(page)
    sign(page)
    page.wait_for_selector("#release-form button:enabled")
    assert not SHELL_WORDS.search(page.inner_text("main"))
    page.click("#release-form summary")
    page.fill("[name=private_key]", "schluessel.pem")
    page.click("#release-form button")
    page.wait_for_selector("text=Released:")
    (release,) = (server.project.folder / "releases").iterdir()
    checks = verify(release / "data.csv", trust=[str(tmp_path / "schluessel.pub.pem")])
    assert {check.name: check.ok for check in checks}["signature"] is True
    assert all(check.ok is not False for check in checks)
    assert page.count < 60


def test_a_surname_that_is_left_as_it_is_keeps_the_gate_shut_until_somebody_says_why(steward):
    page, server = steward
    opened(page)
    page.select_option(f"#role-{number_of(server, 'Nachname')}", "plain")
    page.wait_for_selector("text='Nachname' is not protected")
    draft(page)
    assert "Every promise holds" in page.inner_text("#verdict")
    assert "ask" in page.get_attribute("#verdict", "class")
    attack(page)
    answer(page)
    save(page)
    sign(page)
    page.wait_for_selector("#gate tr:has-text('Signed off') .ok")
    page.wait_for_selector("#gate tr:has-text('Nachname leaves as it is, not protected') .warn")
    assert page.is_disabled("#release-form button")
    settled(page)
    accept(page)
    save(page, "Nachname leaves as it is")
    sign(page)
    page.wait_for_selector("#release-form button:enabled")
    page.click("#release-form button")
    page.wait_for_selector("text=Released:")
    (release,) = (server.project.folder / "releases").iterdir()
    for name in ("report.html", "dossier.html"):
        assert "&#39;Nachname&#39; is not protected" in (release / name).read_text("utf-8")
    assert "Nachname: for a group that must not link" in (release / "dossier.html").read_text(
        "utf-8"
    )


def test_a_file_that_is_chosen_before_the_script_is_there_is_looked_at(browser, tmp_path):
    workbook(tmp_path / "faelle.xlsx")
    with served(tmp_path / "projekt", tmp_path) as server:
        context, held = browser.new_context(), []
        context.route("**/shoal.js", lambda route: held.append(route))
        tab = come_in(context, server, has_script=False)
        tab.click("input[value='faelle.xlsx']")
        assert not tab.query_selector("#lines")
        held[0].continue_()
        tab.wait_for_selector("#lines")
        context.close()
