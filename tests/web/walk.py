"""A newcomer's way by mouse, from an empty project to a release, signed off: in the tests and the
docs' pictures. Each step is named where a picture of it would be taken.
"""

import re
from collections.abc import Iterator
from functools import partial
from html import unescape

from web.visitor import number_of

ANSWERS = {
    "who": "Health services group",
    "purpose": "Waiting times by age and district",
    "controls": "No linking, no passing on",
    "review_by": "2031-01-01",
}
SCHOOLING = "none primary secondary vocational bachelor master doctorate".split()


def walk(tab, server, table: str, k: str) -> Iterator[str]:
    """Steps of the way, by name; each is done when the next is asked for."""
    number = partial(number_of, server)
    tab.check(f"input[value='{table}']")
    yield "open"
    tab.click("#table-form button.main")
    tab.wait_for_url("**/columns")
    tab.wait_for_selector("#lone")
    tab.wait_for_selector("#person-form [name=person]:checked")
    yield "person"
    tab.click("#person-form button.main")
    tab.wait_for_selector(".box.good")
    tab.click("[id^=confirm] button")
    tab.wait_for_selector("[id^=confirm]", state="detached")
    tab.select_option(f"#role-{number('ward')}", "plain")
    tab.wait_for_selector(".warn >> text=alone, if others know it")
    settled(tab)
    yield "columns"
    tab.click(".foot a.main")
    tab.click(f".tabs a[href='/hierarchies/{number('education')}']")
    tab.wait_for_selector(".tabs [aria-current] >> text=education")
    tab.click("summary:text('An order of values')")
    tab.fill("#way-order textarea", "\n".join(SCHOOLING))
    yield "hierarchies"
    tab.click("#way-order button")
    tab.wait_for_selector(".tabs [aria-current] >> text=ranges in their order")
    tab.click(".foot a.main")
    tab.wait_for_selector("#k")
    ask_k(tab, k)
    tab.wait_for_selector("#policy >> text=l-diversity")  # as proposed
    settled(tab)
    yield "promises"
    tab.dblclick("#make")
    tab.wait_for_selector("#verdict")
    tab.click("#attacker-most-exposed button")
    tab.wait_for_selector("text=The best guess is")
    yield "result"
    tab.goto(f"{server.door.origin}/result")
    attack(tab)
    yield "gate"
    answer(tab)
    tab.select_option("#answers [name=kind]", "restricted")
    accept(tab)
    save(tab)
    tab.fill("#sign-form [name=role]", "data protection officer")
    sign(tab)
    tab.wait_for_selector("#release-form button:enabled")
    yield "signed"
    tab.click("#release-form button")
    tab.wait_for_selector("#released:focus >> text=data.csv.certificate.json")
    yield "released"


def confirm(tab) -> None:
    """Answers every question about a column as it is proposed."""
    settled(tab)
    while form := tab.query_selector("[id^=confirm]"):
        asked = f"#{form.get_attribute('id')}"
        tab.click(f"{asked} button")
        tab.wait_for_selector(asked, state="detached")
        settled(tab)


def go_to_promises(tab) -> None:
    for screen in ("hierarchies", "promises"):
        tab.click(".foot a.main")
        tab.wait_for_url(f"**/{screen}")


def ask_k(tab, k: int | str) -> None:
    tab.fill("#k", str(k))
    tab.press("#k", "Tab")
    tab.wait_for_selector(f"#policy >> text=k: {k}")


def attack(tab, met: str = "Attacks tried") -> None:
    """Goes from the result to the gate and meets its condition about attacks."""
    tab.click(".foot a.main")
    tab.click("#attack-form button")
    tab.wait_for_selector(f"#gate tr:has-text('{met}') .ok")


def answer(tab) -> None:
    """Fills in what the gate asks, but for what somebody has to accept."""
    for name, text in ANSWERS.items():
        tab.fill(f"#answers [name={name}]", text)
    tab.check("#answers [value=none]")
    for field in tab.query_selector_all("#answers [name^=why]"):
        tab.fill(f"[name={field.get_attribute('name')}]", "needed for the purpose")


def accept(tab) -> None:
    for at, label in enumerate(tab.query_selector_all("#accept label"), ord("a")):
        name = label.query_selector("[name]").get_attribute("name")
        tab.fill(f"[name={name}]", accepting(label.inner_text().strip(), at))


def save(tab, met: str = "A reason for every column") -> None:
    """Saves the answers, which meet a condition."""
    tab.click("#answers button.main")
    tab.wait_for_selector(f"#gate tr:has-text('{met}') .ok")


def sign(tab) -> None:
    tab.fill("#sign-form [name=name]", "Ada Byron")
    tab.select_option("#sign-form [name=decision]", "accept")
    tab.click("#sign-form button")


def accepting(label: str, number: int) -> str:
    """Words that accept a point of the gate: of a column by its name, and of no other point."""
    about, is_column, _ = label.partition(" leaves as it is")
    return f"{about if is_column else 'this'}: for a group that must not link, point {number:c}"


def acceptances(page: str) -> dict[str, str]:
    """Words that accept each point of a page, by its field."""
    asked = re.findall(
        r'<label class="field">((?:(?!<label).)*)<textarea name="(accept-\d+)"', page, re.DOTALL
    )
    said = [
        (field, " ".join(unescape(re.sub("<[^>]+>", "", label)).split())) for label, field in asked
    ]
    return {field: accepting(text, number) for number, (field, text) in enumerate(said, ord("a"))}


def settled(tab) -> None:
    """Waits until nothing is counted any more."""
    tab.wait_for_selector("body:not([data-waits])", state="attached")
