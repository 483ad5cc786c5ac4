"""What a page of HTML holds, whatever its lines are broken like."""

import re
from html.parser import HTMLParser

NEVER_CLOSED = {"meta", "br", "link", "img", "input", "hr"}


def on_one_line(page: str) -> str:
    """The page without white space beside its tags, and one blank where there was more."""
    return re.sub(r" ?(<[^>]*>) ?", r"\1", " ".join(page.split()))


class Page(HTMLParser):
    """A page as its reader sees it: sections, text, links; closing tags must fit."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.loaded: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "data", "action"):
                self.loaded.append(value)
        if tag not in NEVER_CLOSED:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in NEVER_CLOSED:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open, f"{tag} closed, nothing open"
        assert self.open[-1] == tag
        self.open.pop()

    def handle_data(self, words):
        if "style" not in self.open:
            self.words.append(words)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def assert_needs_nothing_else(html: str) -> None:
    """Nothing is loaded from elsewhere, and all that the page refers to is in it, once."""
    page = Page(html)
    assert not re.search(r"https?://|//[a-z]|@import|url\((?!#)", html)
    assert not {"script", "img", "link", "iframe", "object", "embed"} & set(page.tags)
    assert all(target.startswith("#") for target in page.loaded)
    assert {target[1:] for target in page.loaded} <= set(page.ids)
    assert set(re.findall(r"url\(#([^)]+)\)", html)) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
