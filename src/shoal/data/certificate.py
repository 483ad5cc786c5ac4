"""What a release proves about itself, as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

SCHEMA = "shoal.certificate/1"


class Certificate(Mapping[str, Any]):
    """The keys that the public contract names, read-only; holds no value of the data."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = {"schema": SCHEMA, **_plain(content)}

    def __getitem__(self, key: str) -> Any:
        return self._content[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __repr__(self) -> str:
        return f"Certificate({self.to_json()})"

    @property
    def holds(self) -> bool:
        """Whether every promise holds and, where that was checked, every cell is true."""
        return all(promise["holds"] for promise in self["promises"]) and all(
            count == 0 for count in self._content.get("faults", {}).values()
        )

    def extended(self, **more: Any) -> Certificate:
        return Certificate({**self._content, **more})

    def to_json(self) -> str:
        return json.dumps(self._content, indent=2, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """The value in JSON's own types; what is not a number becomes null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
