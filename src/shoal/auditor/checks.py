"""One check of a release, and what a certificate states that checks compare with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shoal.data.certificate import EARLIER, Certificate
from shoal.data.printable import printable

Path = tuple[str | int, ...]
MOST_NAMED = 4


@dataclass(frozen=True)
class Check:
    """What one check found. ok: None where it could not be made."""

    name: str
    ok: bool | None
    text: str

    def __post_init__(self) -> None:
        # what a certificate names may be a forger's
        object.__setattr__(self, "text", printable(self.text))

    @property
    def mark(self) -> str:
        return "--" if self.ok is None else "ok" if self.ok else "FAIL"

    def __str__(self) -> str:
        return f"{self.mark:<4} {self.name}: {self.text}"


@dataclass(frozen=True)
class Stated:
    """What a certificate states; None for what it does not.

    compared: the paths of keys that some check has compared with the file, the policy or the
        original, each with all that stands below it.
    """

    certificate: Certificate
    compared: set[Path] = field(default_factory=set)

    @property
    def is_earlier(self) -> bool:
        """Whether it is of the schema before this one."""
        return bool(self.certificate["schema"] == EARLIER)

    @property
    def verb(self) -> str:
        return str(self.certificate["verb"])

    @property
    def promises(self) -> list[Mapping[str, Any]]:
        return list(self.certificate["promises"])

    @property
    def published(self) -> list[str]:
        """The names of the published columns, in their order."""
        columns = self.at("columns") or []
        return [column["name"] for column in columns if column["technique"] != "removed"]

    @property
    def grouped(self) -> list[str]:
        """The columns that classes and promises are made of, as the certificate names them."""
        columns = self.at("columns") or []
        return [column["name"] for column in columns if column["role"] in ("quasi", "sensitive")]

    def at(self, *keys: str) -> Any:
        """What stands below these keys."""
        value: Any = self.certificate
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def lacks(self, name: str) -> Check:
        return Check(name, None, "a certificate of schema 1 names none")

    def note(self, *path: str | int) -> None:
        """Notes that what stands here was compared."""
        self.compared.add(path)

    def not_compared(self) -> Iterator[Path]:
        """Every figure and text that it states and that no check has compared."""
        for path in _leaves(self.certificate, ()):
            if not any(path[:end] in self.compared for end in range(1, len(path) + 1)):
                yield path


def _leaves(value: Any, path: Path) -> Iterator[Path]:
    """The paths to all that is stated; lists of single values are one."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _leaves(below, (*path, key))
    elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        for index, one in enumerate(value):
            yield from _leaves(one, (*path, index))
    elif value is not None and value != []:
        yield path


def listed(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Names, the first few of them if there are many."""
    more = len(names) - most
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:most])} and {more} more"
