"""What commands answer that only count: sentences, or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

import typer

from shoal.data.printable import printable


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
