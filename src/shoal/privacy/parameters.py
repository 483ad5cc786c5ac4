"""What a promise may be asked with, refused early and in words."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from fractions import Fraction

from shoal.errors import InputError


def whole(model: str, name: str, given: object, low: int) -> int:
    """A whole number of at least `low`; booleans and fractions are refused, 3.0 included."""
    message = (
        f"promise '{model}': {name} must be a whole number of at least {low}; correct it in the"
        " policy"
    )
    if isinstance(given, bool):
        raise InputError(message)
    try:
        number = operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(message) from None
    if number < low:
        raise InputError(message)
    return number


def decimal(
    model: str, name: str, given: object, low: float, high: float, above: bool = False
) -> float:
    """A finite number from `low` to `high`, or strictly above `low`."""
    number = float(given) if _is_number(given) else math.nan  # type: ignore[arg-type]
    if not (math.isfinite(number) and low <= number <= high and not (above and number == low)):
        start = f"above {low:g}" if above else f"at least {low:g}"
        end = f" and at most {high:g}" if math.isfinite(high) else ""
        raise InputError(
            f"promise '{model}': {name} must be a number {start}{end}; correct it in the policy"
        )
    return number


def as_written(number: float) -> Fraction:
    """The decimal that a person wrote: 0.15 is 15/100, not the nearest binary fraction."""
    return Fraction(str(number))


def names(model: str, name: str, given: object, required: bool = True) -> tuple[str, ...]:
    """Attribute names as a tuple; one name alone may stand without a list."""
    listed = (given,) if isinstance(given, str) else given
    if not isinstance(listed, Iterable) or not all(
        isinstance(entry, str) and entry for entry in listed
    ):
        raise InputError(
            f"promise '{model}': {name} must list attribute names; correct it in the policy"
        )
    found = tuple(listed)
    if required and not found:
        raise InputError(f"promise '{model}': {name} names no attribute; name at least one")
    if len(set(found)) < len(found):
        raise InputError(f"promise '{model}': {name} names an attribute twice; name it once")
    return found


def one_name(model: str, name: str, given: object) -> str:
    """The name of one attribute."""
    if not isinstance(given, str) or not given:
        raise InputError(
            f"promise '{model}': {name} must be one attribute's name; correct it in the policy"
        )
    return given


def choice(model: str, name: str, given: object, choices: Sequence[str]) -> str:
    """One of a few words."""
    if given not in choices:
        known = ", ".join(choices)
        raise InputError(
            f"promise '{model}': {name} must be one of {known}; correct it in the policy"
        )
    return str(given)


def _is_number(given: object) -> bool:
    return hasattr(given, "__float__") and not isinstance(given, (bool, str))
