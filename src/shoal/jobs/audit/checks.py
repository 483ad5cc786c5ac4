"""One check of a release, and what a certificate states that checks compare with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shoal.data.certificate import Certificate


@dataclass(frozen=True)
class Check:
    """What one check found. ok: None where it could not be made."""

    name: str
    ok: bool | None
    text: str

    @property
    def mark(self) -> str:
        return "--" if self.ok is None else "ok" if self.ok else "FAIL"

    def __str__(self) -> str:
        return f"{self.mark:<4} {self.name}: {self.text}"


@dataclass(frozen=True)
class Stated:
    """What a certificate states; None for what it does not."""

    certificate: Certificate

    @property
    def schema(self) -> str:
        return str(self.certificate["schema"]).rpartition("/")[2]

    @property
    def promises(self) -> list[Mapping[str, Any]]:
        found = self.certificate.get("promises")
        if isinstance(found, list) and all(isinstance(promise, Mapping) for promise in found):
            return found
        return []

    def at(self, *keys: str) -> Any:
        """What stands below these keys."""
        value: Any = self.certificate
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def lacks(self, name: str) -> Check:
        return Check(name, None, f"a certificate of schema {self.schema} names none")
