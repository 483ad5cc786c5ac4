"""What a user can set: fields of the frozen dataclasses of methods, promises and hierarchies."""

from dataclasses import MISSING, field
from typing import Any


def parameter(
    help: str,
    *,
    default: Any = MISSING,
    low: float | None = None,
    high: float | None = None,
    above: bool | None = None,
    choices: tuple[Any, ...] | None = None,
) -> Any:
    """A field that may be set; without a default it must be. above: `low` itself is too low."""
    bounds = {"low": low, "high": high, "above": above, "choices": choices}
    said = {name: bound for name, bound in bounds.items() if bound is not None}
    return field(default=default, metadata={"help": help, **said})
