"""Text for people: messages of page, report and dossier in the reader's language, from one
catalogue, English without; and text from files, as it may stand in a line or on a page.

Names of columns, and answers in a context file, may be a forger's: a line end in one passes for the
next line of a summary, an escape hides what follows on a terminal, and a mark of direction turns
the rest of a sentence round.
"""

import os
import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from gettext import NullTranslations, translation
from pathlib import Path


@cache
def catalogue() -> NullTranslations:
    """The catalogue of the environment's language; an empty one, which leaves the English of the
    source, where there is none. TEXTDOMAINDIR: a folder of catalogues in place of Shoal's own.
    """
    folder = os.environ.get("TEXTDOMAINDIR") or Path(__file__).parents[1] / "locale"
    return translation("shoal", folder, fallback=True)


def gettext(message: str, /, **values: object) -> str:
    """The message in the reader's language, with the values that it names in braces."""
    text = catalogue().gettext(message) if message else ""  # else its header
    return text.format(**values) if values else text


def ngettext(one: str, many: str, count: int, /, **values: object) -> str:
    """The message for this count, which it may name as {count}."""
    return catalogue().ngettext(one, many, count).format(count=count, **values)


def capitalised(text: str) -> str:
    """The text as a sentence begins, which may name a column first."""
    return f"Column {text}" if text.startswith("'") else f"{text[:1].upper()}{text[1:]}"


_FORMS = re.compile(r"\[(.*?)\|(.*?)\]")


def inflected(message: str, count: int) -> str:
    """A message in English alone, with the count in place of `{}`, and of `[one|many]` the form
    that goes with it.
    """
    said = message.replace("{}", str(count))
    return _FORMS.sub(lambda forms: forms[1 if count == 1 else 2], said)


JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"  # Persian, Hindi and others need them
LINE_ENDS = "\r\n\t"


def printable(text: str) -> str:
    """The text on one line, without what moves a cursor: a name in a file must not pass for a line
    that a program says.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def printable_lines(lines: Iterable[str]) -> str:
    """The lines one below the other: as many as were given, whatever stands in them."""
    return "\n".join(map(printable, lines))


def readable(text: str) -> str:
    """The text as a page may show it: it keeps its lines, spaces and letters of any script, without
    what reorders or hides the text around it.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or _is_harmless(letter) else "\N{REPLACEMENT CHARACTER}"
        for letter in text
    )


def _is_harmless(letter: str) -> bool:
    return letter in LINE_ENDS or letter in JOINERS or unicodedata.category(letter) == "Zs"
