"""JSON at a boundary, where nothing has given its parts a type yet, or no longer does."""

from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
"""An object of JSON, or what YAML and TOML write instead."""


class RepeatedKey(ValueError):
    """An object that names a key twice: programs differ in which of the two values they read."""

    problem = "a key is named a second time"


def distinct_keys(pairs: list[tuple[str, Any]]) -> Json:
    """What `json` reads as an object; raises RepeatedKey."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RepeatedKey
    return found
