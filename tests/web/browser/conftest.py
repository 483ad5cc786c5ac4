"""One Chromium for all tests in it, and one page that they share."""

from importlib.util import find_spec

import pytest

from shoal.samples import patients
from web.browsing import BROWSER, FLAGS, Watch, come_in
from web.test_page import draft
from web.visitor import served
from web.walk import walk

HERE = __name__.rpartition(".")[0]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    why = "no Chromium: 'make browser' installs it" if BROWSER is None else None
    if find_spec("playwright") is None:
        why = "no Playwright: pip install it"
    for item in items:
        if item.module.__name__.startswith(HERE):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.long)
            if why is not None:
                item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="package")
def place(tmp_path_factory):
    """The page of a newcomer, whose project is empty."""
    tables = tmp_path_factory.mktemp("browser")
    patients.generate(300, seed=3).write_csv(tables / "patients.csv")
    with served(tables / "ward", tables) as server:
        yield server


@pytest.fixture(scope="package")
def browser(place):
    """Chromium, for which the page's address has a second name, as rebinding would give it."""
    from playwright.sync_api import sync_playwright

    mapped = f"--host-resolver-rules=MAP rebound.test {place.door.host}"
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=BROWSER, args=[*FLAGS, mapped])
        yield found
        found.close()


@pytest.fixture
def context(browser):
    found = browser.new_context(viewport={"width": 1280, "height": 900})
    yield found
    found.close()


@pytest.fixture(scope="package")
def visit(browser, place):
    """One newcomer's way from an empty project to a draft, by mouse; everything watched."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    watch = Watch(context, place)
    tab = come_in(context, place)
    way = walk(tab, place, "patients.csv", "4")
    assert "result" in way
    tab.way = way
    return tab, watch


@pytest.fixture
def gate(context, opened):
    """The gate of a draft, in a browser."""
    opened.edit("k", k="4")
    draft(opened)
    tab = come_in(context, opened.server)
    tab.goto(f"{opened.server.door.origin}/release")
    return tab
