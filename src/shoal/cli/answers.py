"""What commands answer: what was counted, as sentences or JSON, and which files were written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import typer

from shoal.data.printable import printable
from shoal.errors import InputError, ShoalError


class Counted(Protocol):
    """What was counted, as JSON has it."""

    def to_dict(self) -> dict[str, Any]: ...


Answer = TypeVar("Answer", bound=Counted)


def answer(found: Answer, in_words: Callable[[Answer], Iterable[str]], as_json: bool) -> None:
    """Prints what was counted, a sentence a line or as JSON."""
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2))
        return
    for line in in_words(found):
        typer.echo(printable(line))


@contextmanager
def published_already(what: str | None) -> Iterator[None]:
    """An error behind a publication says that it is out. what: is out; None: nothing is."""
    try:
        yield
    except ShoalError as failed:
        if what is None:
            raise
        raise type(failed)(f"{what} is published; {failed.args[0]}", failed.findings) from None
    except OSError as failed:
        if what is None:
            raise
        raise InputError(
            f"{what} is published; what is written beside it failed ({failed.strerror}); free some"
            " space, or name another place"
        ) from None


def listed(names: Sequence[str]) -> str:
    """The names of files as a sentence has them."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
