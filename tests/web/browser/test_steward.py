"""A steward's way by mouse: from a workbook with a title, German dates and `k.A.` to a release that
a key signed; and what happens where a surname is left as it is.
"""

import re

import numpy as np
import pytest

from shoal.auditor.signatures import new_key
from shoal.auditor.verify import verify
from web.browsing import PATIENCE, come_in
from web.visitor import served
from web.walk import ANSWERS, accepting, settled

playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install it")
xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra 'excel' is not installed")
HEADINGS = ["Patientennummer", "Nachname", "Geburtsdatum", "Geschlecht", "Hauptdiagnose (ICD-10)"]
HEADINGS += ["Größe (cm)"]
SHELL_WORDS = re.compile(r"--\w|\bpip\b|\bstderr\b|\bstdin\b|exit status")


class Clicks:
    """A page that counts what a mouse does."""

    def __init__(self, tab) -> None:
        self.tab, self.count = tab, 0

    def click(self, place: str) -> None:
        self.count += 1
        self.tab.click(place)

    def choose(self, place: str, value: str) -> None:
        self.count += 2
        self.tab.select_option(place, value)

    def type(self, place: str, text: str) -> None:
        self.count += 1
        self.tab.fill(place, text)

    def until(self, place: str) -> None:
        self.tab.wait_for_selector(place)


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
def steward(browser, tmp_path):
    """The page over a folder with the workbook and a key."""
    workbook(tmp_path / "faelle.xlsx")
    new_key(str(tmp_path / "schluessel"), None)
    with served(tmp_path / "projekt", tmp_path) as server:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        tab = come_in(context, server)
        tab.set_default_timeout(5 * PATIENCE)
        yield Clicks(tab), server
        context.close()


def opened(page: Clicks) -> None:
    page.click("input[value='faelle.xlsx']")
    page.until("#lines")
    page.click("#line-2")
    page.until("#beginning >> text=Geburtsdatum")
    page.click("#table-form button.main")
    page.tab.wait_for_url("**/columns")
    page.until("#person-form [name=person]:checked")
    page.click("#person-form button.main")
    page.until(".box.good")


def number(server, name: str) -> int:
    return server.project.about["columns"].index(name) + 1


def drafted(page: Clicks) -> None:
    settled(page.tab)
    while form := page.tab.query_selector("[id^=confirm]"):
        asked = f"#{form.get_attribute('id')}"
        page.click(f"{asked} button")
        page.tab.wait_for_selector(asked, state="detached")
        settled(page.tab)
    for screen in ("hierarchies", "promises"):
        page.click(".foot a.main")
        page.tab.wait_for_url(f"**/{screen}")
    settled(page.tab)
    page.type("#k", "5")
    page.tab.press("#k", "Tab")
    page.until("#policy >> text=k: 5")
    settled(page.tab)
    page.click("#make")
    page.until("#verdict")


def answered(page: Clicks) -> None:
    page.click(".foot a.main")
    page.click("#attack-form button")
    page.until("#gate tr:has-text('Attacks tried') .ok")
    for name, text in ANSWERS.items():
        page.type(f"#answers [name={name}]", text)
    page.click("#answers [value=none]")
    for place in page.tab.query_selector_all("#answers [name^=why]"):
        page.count += 1
        place.fill("needed for the purpose")


def accepted(page: Clicks) -> None:
    for at, field in enumerate(page.tab.query_selector_all("#accept label"), 1):
        page.type(f"[name=accept-{at}]", accepting(field.inner_text().strip(), ord("a") + at))


def signed(page: Clicks, met: str = "A reason for every column") -> None:
    """Saves the answers, which meet a condition, and signs them and the draft off."""
    page.click("#answers button.main")
    page.until(f"#gate tr:has-text('{met}') .ok")
    page.type("#sign-form [name=name]", "Ada Byron")
    page.choose("#sign-form [name=decision]", "accept")
    page.click("#sign-form button")


def test_from_a_workbook_to_a_signed_release_in_sixty_clicks(steward, tmp_path):
    page, server = steward
    opened(page)
    settled(page.tab)
    assert "k.A." in page.tab.inner_text("main")
    drafted(page)
    answered(page)
    accepted(page)
    signed(page)
    page.until("#release-form button:enabled")
    assert not SHELL_WORDS.search(page.tab.inner_text("main"))
    page.click("#release-form summary")
    page.type("[name=private_key]", "schluessel.pem")
    page.click("#release-form button")
    page.until("text=Released:")
    (release,) = (server.project.folder / "releases").iterdir()
    checks = verify(release / "data.csv", trust=[str(tmp_path / "schluessel.pub.pem")])
    assert {check.name: check.ok for check in checks}["signature"] is True
    assert all(check.ok is not False for check in checks)
    assert page.count < 60


def test_a_surname_that_is_left_as_it_is_keeps_the_gate_shut_until_somebody_says_why(steward):
    page, server = steward
    opened(page)
    page.choose(f"#role-{number(server, 'Nachname')}", "plain")
    page.until("text='Nachname' is not protected")
    drafted(page)
    assert "Every promise holds" in page.tab.inner_text("#verdict")
    assert "ask" in page.tab.get_attribute("#verdict", "class")
    answered(page)
    signed(page)
    page.until("#gate tr:has-text('Signed off') .ok")
    page.until("#gate tr:has-text('Nachname leaves as it is, not protected') .warn")
    assert page.tab.is_disabled("#release-form button")
    settled(page.tab)
    accepted(page)
    signed(page, "Nachname leaves as it is")
    page.until("#release-form button:enabled")
    page.click("#release-form button")
    page.until("text=Released:")
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
