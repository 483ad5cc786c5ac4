"""Labels as a policy writes them in YAML, as text."""

from __future__ import annotations

from datetime import date
from typing import Any

from shoal.errors import InputError


def as_label(item: Any, maker: str) -> str:
    """The text of a label; raises InputError for what YAML did not read as text or a whole number.

    A bare `no` is a truth value in YAML and `1.50` a number that forgets its zero: both must be
    quoted.
    """
    if isinstance(item, str) and item.strip():
        return item
    if isinstance(item, int) and not isinstance(item, bool):
        return str(item)
    if isinstance(item, date):
        return item.isoformat()
    raise InputError(
        f"hierarchy maker '{maker}' takes labels as text, not {_what(item)}; write every label in"
        " quotes"
    )


def _what(item: Any) -> str:
    if isinstance(item, bool):
        return "a truth value (a bare yes, no, on or off is one)"
    if isinstance(item, float):
        return "a decimal number"
    if item is None or isinstance(item, str):
        return "nothing"
    return "a list or mapping"
