"""Every string of page, report and dossier comes from the catalogue: a pseudo-language shows it."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from runpy import run_path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

from shoal.web.project import COPIES

ROOT = Path(__file__).resolve().parents[2]
catalogue = run_path(str(ROOT / "docs" / "_ext" / "catalogue.py"))
OPEN, SHUT = "⟦", "⟧"
SHOWN = (
    "title placeholder aria-label aria-valuetext data-unreachable data-copied data-nobody".split()
)
UNREAD = ("style", "script", "code", "pre", "textarea")  # of commands, policies and files
WORD = re.compile(r"[^\W\d_]{2,}")


def test_the_catalogue_is_up_to_date_and_make_catalogue_renews_it():
    assert catalogue["CATALOGUE"].read_bytes() == catalogue["catalogue"]()


def in_brackets() -> bytes:
    """The pseudo-language: every message in brackets."""
    found = Catalog(locale="en")
    for message in catalogue["messages"]():
        if message.id:
            texts = message.id if message.pluralizable else (message.id,)
            marked = tuple(f"{OPEN}{text}{SHUT}" for text in texts)
            found.add(message.id, marked if message.pluralizable else marked[0])
    written = BytesIO()
    write_mo(written, found)
    return written.getvalue()


class Texts(HTMLParser):
    """What a page shows, in order; elements part the texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.attributes: list[str] = []
        self._unread = 0
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self._unread += tag in UNREAD
        self.parts.append("\0")
        self.attributes += [value for name, value in attrs if name in SHOWN]

    def handle_endtag(self, tag):
        self._unread -= tag in UNREAD
        self.parts.append("\0")

    def handle_data(self, data):
        self.parts.append("" if self._unread else data)


def outside(text: str) -> list[str]:
    """The texts with words that stand in no brackets."""
    while text != (text := re.sub(f"{OPEN}[^{OPEN}{SHUT}]*{SHUT}", "", text)):
        pass
    pieces = [" ".join(piece.split()) for piece in text.split("\0")]
    return [piece for piece in pieces if WORD.search(piece)]


@pytest.fixture(scope="module")
def start(tmp_path_factory) -> Path:
    """A folder with pages in the pseudo-language, and their data."""
    folder, locale = tmp_path_factory.mktemp("start"), tmp_path_factory.mktemp("locale")
    catalogues = locale / "qps" / "LC_MESSAGES"
    catalogues.mkdir(parents=True)
    (catalogues / "shoal.mo").write_bytes(in_brackets())
    tests = str(Path(__file__).parents[1])
    stated = {"LANGUAGE": "qps", "TEXTDOMAINDIR": str(locale), "PYTHONPATH": tests}
    subprocess.run(
        [sys.executable, "-m", "web.screens", str(folder)], check=True, env={**os.environ, **stated}
    )
    return folder


NAMES = {*"Shoal project SHA UTF kB attacking Grave more".split(), *(copy.name for copy in COPIES)}
CHECKS = re.compile(r'<table[^>]* id="checks".*?</table>', re.DOTALL)  # of shoal verify
BELOW = "attacks auditor advise data fusion ledgers policy privacy streams tables".split()


@pytest.fixture(scope="module")
def data(start) -> tuple[str, str]:
    """What a page may show as it is: words of the project's own files, and English sentences of
    the layers below, which certificates state and the command line prints, too.
    """
    pages = start / "pages"
    places = [path for path in start.rglob("*") if pages not in path.parents]
    source = ROOT / "src" / "shoal"
    below = [path for part in BELOW for path in (source / part).rglob("*.py")]
    code = "".join(path.read_text() for path in below)
    sentences = " ".join(re.sub(r'"\s+f?"', "", code).lower().split())
    names = " ".join(str(path.relative_to(start)) for path in places)
    files = [path for path in places if path.is_file() and path.suffix != ".html"]
    files += [path for part in BELOW for path in (source / part).rglob("*.yaml")]
    texts = [path.read_text(errors="ignore") for path in files]
    return "\n".join([names, *texts]), sentences


def is_data(text: str, own: str, sentences: str) -> bool:
    """Whether a text, or each of its parts, is a name or a value, or a sentence from below."""
    text = re.sub(r"\b[0-9a-f]{32,}\b", "", text).strip(" .,:;·!?()→[]/'–-%")
    name = text.strip(" -.%0123456789")
    if not WORD.search(text) or name in NAMES:
        return True
    if " " in text and text.lower() in sentences:
        return True
    stated = f"{text[:1].lower()}{text[1:]}".removeprefix("column ")  # as certificates begin it
    written = "|".join(map(re.escape, (name, text, stated)))
    if re.search(rf"(?<!\w)({written})(?!\w)", own):
        return True
    for sign in (r"\. ", "[;:] ", r", | · | – | and (?=\d)", r" ?\("):
        parts = re.split(sign, text)
        if len(parts) > 1 and all(is_data(part, own, sentences) for part in parts):
            return True
    return False


@pytest.mark.long
def test_no_word_of_a_page_stands_outside_the_catalogue_but_data(start, data):
    pages = sorted((start / "pages").glob("*.html"))
    assert len(pages) > 20
    found = {}
    for page in pages:
        texts = Texts(CHECKS.sub("", page.read_text()))
        shown = outside("".join(texts.parts)) + outside("\0".join(texts.attributes))
        assert OPEN in "".join(texts.parts), page.name
        found[page.name] = [text for text in shown if not is_data(text, *data)]
    assert {page: texts for page, texts in found.items() if texts} == {}
