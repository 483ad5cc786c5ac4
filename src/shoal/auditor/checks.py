"""One check of a release, and what a certificate states that checks compare with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shoal.data.certificate import EARLIER, Certificate
from shoal.data.printable import printable
from shoal.policy import registry

Path = tuple[str | int, ...]
MOST_NAMED = 4
K_ANONYMITY = "k-anonymity"
CLOSE = 1e-9  # relative; sums in another order differ by less
ABOUT = ("shoal", "build", "date", "verb", "method", "seed", "seconds", "scale")
"""Keys about how the release was made, which no file shows."""
OF_OTHER_CHECKS = ("schema", "policy", "input")


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
    def asked_k(self) -> list[int]:
        """Every k that a promise asks."""
        return [promise["asked"] for promise in self.promises if promise["model"] == K_ANONYMITY]

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

    def at(self, *path: str | int) -> Any:
        """What stands there."""
        value: Any = self.certificate
        for key in path:
            if isinstance(value, list) and isinstance(key, int):
                value = value[key]
            else:
                value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def lacks(self, name: str) -> Check:
        return Check(name, None, "a certificate of schema 1 names none")

    def note(self, *path: str | int) -> None:
        """Notes that what stands here was compared."""
        self.compared.add(path)

    def differs(self, found: Any, *path: str | int) -> bool:
        """Whether what stands there is not what was found; notes that it was compared."""
        self.note(*path)
        return not is_close(self.at(*path), found)


def not_measured(stated: Stated, has_policy: bool, has_original: bool) -> Check:
    """What no check has compared, said plainly, and what would let it be.

    A reader takes it on the word of whoever wrote it.
    """
    left = [
        path
        for path in _leaves(stated.certificate, ())
        if path[0] not in OF_OTHER_CHECKS
        and not any(path[:end] in stated.compared for end in range(1, len(path) + 1))
    ]
    figures = [*_names((path for path in left if path[0] not in ABOUT), stated)]
    about = list(dict.fromkeys(str(path[0]) for path in left if path[0] in ABOUT))
    method = stated.at("method", "name")
    if method is not None and not registry.is_known_method(method, stated.verb):
        about = [f"{key} (not one of Shoal's)" if key == "method" else key for key in about]
    parts = []
    if figures:
        lacking = [] if has_policy else ["the policy"]
        is_matched = stated.verb not in ("stream", "republish", "fuse")
        lacking += [] if has_original or not is_matched else ["the original"]
        remedy = f" (needs {' and '.join(lacking)})" if lacking else ""
        parts.append(f"{', '.join(figures)}{remedy}")
    if about:
        parts.append(f"{', '.join(about)} (what only its author knows)")
    return Check("not measured again", None, "; ".join(parts) if parts else "nothing")


def _names(paths: Iterable[Path], stated: Stated) -> Iterator[str]:
    """Each part once; with its keys, where others of it were compared: `classes (min, max)`."""
    keys: dict[str, dict[str, None]] = {}
    for path in paths:
        words = [str(key) for key in path if isinstance(key, str)]
        keys.setdefault(words[0], {})["".join(words[1:2])] = None
    compared = {path[0] for path in stated.compared}
    for part, below in keys.items():
        some = [key for key in below if key]
        yield f"{part} ({listed(some)})" if some and part in compared else part


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


def is_close(one: Any, other: Any) -> bool:
    """Whether two figures are equal but for rounding; all else must be equal."""
    numbers = (int, float)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {*one} == {*other} and all(is_close(one[key], other[key]) for key in one)
    if isinstance(one, bool) or not isinstance(one, numbers) or not isinstance(other, numbers):
        return bool(one == other)
    return math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE)
