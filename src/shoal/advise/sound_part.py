"""What is left of a policy that its checker refuses, so that a check can go on and list more.

Only for listing findings: nothing is ever published by what is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from shoal.policy.findings import place_of
from shoal.policy.model import PolicyModel

_ROUNDS = 5  # what is taken out may uncover more
_STAND_INS: dict[str, Any] = {
    "version": 1,
    "role": "plain",
    "promises": [{"model": "k-anonymity", "k": 2}],
}


def sound_part(content: Mapping[str, Any]) -> tuple[PolicyModel | None, bool]:
    """The policy without what is refused, None where nothing is left; and whether only keys that
    are unknown are missing from it, so that all else still means what was meant.
    """
    left, is_whole = deepcopy(dict(content)), True
    for _ in range(_ROUNDS):
        try:
            return PolicyModel.model_validate(left), is_whole
        except ValidationError as invalid:
            errors = invalid.errors()
            is_whole &= all(error["type"] == "extra_forbidden" for error in errors)
            # the last items of lists first, so that the others keep their numbers
            places = {place_of(error, left) for error in errors}
            for place in sorted(places, key=lambda place: [str(part) for part in place])[::-1]:
                _take_out(left, place)
    return None, False


def _take_out(content: Any, place: tuple[str | int, ...]) -> None:
    """Removes what stands at a place, or puts something sound where there must be something."""
    if not place:
        return
    *above, last = place
    for part in above:
        try:
            content = content[part]
        except (KeyError, IndexError, TypeError):
            return  # already gone
    if isinstance(content, list) and isinstance(last, int):
        del content[last : last + 1]
    elif isinstance(content, dict) and last in _STAND_INS:
        content[str(last)] = deepcopy(_STAND_INS[str(last)])
    elif isinstance(content, dict):
        removed = content.pop(last, None)
        if above == ["attributes"] and removed is not None:  # its column is still named
            content[last] = {"role": _STAND_INS["role"]}
