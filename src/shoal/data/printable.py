"""Text from files, as it may stand in a line or on a page for people.

Names of columns, and answers in a context file, may be a forger's: a line end in one passes for the
next line of a summary, an escape hides what follows on a terminal, and a mark of direction turns
the rest of a sentence round.
"""

import unicodedata
from collections.abc import Iterable

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
