"""How a field of a request is asked for on the command line.

A request is one frozen dataclass of what a verb is asked; a field `Annotated` with an `Option` is
an option of its command, which the command line makes from it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """form: as the manual shows it, such as `-o, --output FILE`, or `SOURCE` for an argument. help:
    what it does. low: the least number that it takes. choices: all that it takes.
    """

    form: str
    help: str
    low: float | None = None
    choices: tuple[str, ...] = ()
