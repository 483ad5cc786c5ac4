"""What a value of JSON must be: all findings at once, each naming the key and no value.

A rule takes a value and the path of keys to it, and yields a finding for all that does not fit.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Annotated, Any, NotRequired, get_args, get_origin, get_type_hints

Rule = Callable[[Any, str], Iterator[str]]
MOST = 1 << 63
"""Whole numbers below this fit every count, and every float that they are compared with."""


def value(words: str, fits: Callable[[Any], bool]) -> Rule:
    """A rule for a single value. words: what it must be."""

    def rule(found: Any, path: str) -> Iterator[str]:
        if not fits(found):
            yield f"'{path}' must be {words}"

    return rule


def is_number(found: Any) -> bool:
    """Whether it is a number that a float can hold; true and false are none."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False
    return math.isfinite(found) if isinstance(found, float) else abs(found) < MOST


def _is_whole(found: Any) -> bool:
    return isinstance(found, int) and is_number(found) and found >= 0


def matching(words: str, pattern: str) -> Rule:
    """A text of this pattern."""
    return value(words, lambda found: isinstance(found, str) and bool(re.fullmatch(pattern, found)))


def one_of(*words: str) -> Rule:
    """One of these texts."""
    return value(f"one of {', '.join(words)}", lambda found: found in words)


def _is_text(found: Any) -> bool:
    """Whether it is a text that can be written: it has no half of a character."""
    return isinstance(found, str) and found.encode(errors="replace").decode() == found


def _is_plain(found: Any) -> bool:
    """Whether all numbers in it can be computed with, and all texts written."""
    if isinstance(found, Mapping):
        return all(_is_text(key) and _is_plain(one) for key, one in found.items())
    if isinstance(found, list):
        return all(map(_is_plain, found))
    return found is None or isinstance(found, bool) or _is_text(found) or is_number(found)


ANYTHING = value("made of numbers below 2^63 and whole characters", _is_plain)
TEXT = value("a text", _is_text)
FLAG = value("true or false", lambda found: isinstance(found, bool))
NUMBER = value("a number", is_number)
WHOLE = value("a whole number of at least 0", _is_whole)
SHARE = value("a number from 0 to 1", lambda found: is_number(found) and 0 <= found <= 1 + 1e-9)
POSITIVE = value("a number above 0", lambda found: is_number(found) and found > 0)
NOTHING = value("null", lambda found: found is None)
SHA256 = matching("a SHA-256, 64 hexadecimal digits", "[0-9a-f]{64}")


def nullable(rule: Rule) -> Rule:
    """What the rule asks for, or null."""

    def either(found: Any, path: str) -> Iterator[str]:
        if found is not None:
            for finding in rule(found, path):
                # what stands below the key is not null for sure
                yield f"{finding} or null" if f"'{path}' must" in finding else finding

    return either


def many(rule: Rule) -> Rule:
    """A list of such values."""

    def each(found: Any, path: str) -> Iterator[str]:
        if not isinstance(found, list):
            yield f"'{path}' must be a list"
            return
        for index, one in enumerate(found):
            yield from rule(one, f"{path}[{index}]")

    return each


def named(rule: Rule) -> Rule:
    """An object of any keys with such values."""
    return record({}, others=rule)


def record(
    required: Mapping[str, Rule],
    optional: Mapping[str, Rule] | None = None,
    others: Rule = ANYTHING,
) -> Rule:
    """An object with these keys. others: the rule of all further ones."""
    known = {**required, **(optional or {})}

    def keys(found: Any, path: str) -> Iterator[str]:
        if not isinstance(found, Mapping):
            yield f"'{path}' must be an object"
            return
        within = f"{path}." if path else ""
        yield from (f"'{within}{key}' is missing" for key in required if key not in found)
        for key, one in found.items():
            yield from known.get(key, others)(one, f"{within}{key}")

    return keys


_OF_TYPE: Mapping[type, Rule] = {str: TEXT, bool: FLAG, int: WHOLE, float: NUMBER}


def rule_of(stated: Any) -> Rule:
    """The rule of a type: of a plain value, a list, an object, one of these or null."""
    made_of, arguments = get_origin(stated), get_args(stated)
    if made_of is Annotated:
        return arguments[1]
    if made_of is NotRequired:
        return rule_of(arguments[0])
    if NoneType in arguments:
        return nullable(rule_of(arguments[0]))
    if made_of is list:
        return many(rule_of(arguments[0]))
    return _OF_TYPE[stated] if stated in _OF_TYPE else record(*keys_of(stated))


def keys_of(part: type) -> tuple[dict[str, Rule], dict[str, Rule]]:
    """The rules of the keys that an object of this type must have, and of those that it may."""
    must: dict[str, Rule] = {}
    may: dict[str, Rule] = {}
    for key, stated in get_type_hints(part, include_extras=True).items():
        rules = may if get_origin(stated) is NotRequired else must
        rules[key] = rule_of(stated)
    return must, may


def absent(found: Any, path: str) -> Iterator[str]:
    """The rule of a key that must not be there."""
    yield f"'{path}' does not belong there"
