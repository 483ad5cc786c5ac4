"""Text from files, as it may stand in a line for people."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text on one line, without what moves a cursor: a name in a file must not pass for a line
    that a program says.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
