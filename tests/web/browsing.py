"""A real browser at the page: how it comes in, what is watched of it, keys that are counted."""

import shutil

from shoal.web import policy_text
from shoal.web.app import opening_page

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic"]
PATIENCE = 120_000  # milliseconds; the machine may be busy


def tab_of(context):
    tab = context.new_page()
    tab.set_default_timeout(PATIENCE)
    return tab


def come_in(context, server, has_script=True):
    """A tab that came in by the project's file, as a browser that `shoal ui` opens does.

    has_script: whether it waits for the page's script, which begins a little after the page shows.
    """
    path = server.project.folder / ".ui" / "open.html"
    policy_text.made(path.parent)
    policy_text.write(path, opening_page(server))
    tab = tab_of(context)
    tab.goto(path.as_uri())
    tab.wait_for_url(f"{server.door.origin}/*")
    tab.wait_for_selector("html.script main" if has_script else "main")
    return tab


class Watch:
    """What a context asked for, and what it complained about."""

    def __init__(self, context, server) -> None:
        self.asked: list[str] = []
        self.said: list[str] = []
        self._own = (server.door.origin, "file:", "data:")
        context.on("request", lambda r: self.asked.append(r.url))
        context.on("console", lambda m: self.said.append(m.text))
        context.on("weberror", lambda e: self.said.append(str(e.error)))

    @property
    def outside(self) -> list[str]:
        return [url for url in self.asked if not url.startswith(self._own)]


class Keys:
    """Somebody without a mouse; every press is counted."""

    def __init__(self, tab) -> None:
        self.tab, self.presses = tab, 0

    def press(self, *keys: str) -> None:
        for key in keys:
            self.tab.keyboard.press(key)
            self.presses += 1

    def type(self, text: str) -> None:
        """Words are typed by everybody: they are not counted."""
        self.tab.keyboard.type(text)

    def go(self, selector: str, most: int = 40) -> None:
        """Tab until a control has the focus."""
        # without script, a page reloads itself while something runs
        self.tab.wait_for_selector("meta[http-equiv=refresh]", state="detached")
        self.tab.wait_for_load_state()  # a new page's script moves the focus to the content
        for _ in range(most):
            if self.tab.evaluate(IS_FOCUSED, selector):
                return
            self.press("Tab")
        raise AssertionError(f"{selector} is more than {most} presses of Tab away")

    def use(self, selector: str, key: str = "Enter", most: int = 40) -> None:
        self.go(selector, most)
        self.press(key)


IS_FOCUSED = "selector => document.activeElement.matches(selector)"
