"""Ids of people that differ in their spelling alone: joint audits would take them for others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from shoal.data.beside import ReleaseBeside
from shoal.errors import InputError

WIDEST = 12
"""Digits of a number with zeros in front that is looked for where names are hidden."""

Named = tuple[str, ReleaseBeside]


def check_spelling(releases: Sequence[Named]) -> None:
    """Raises InputError where people are taken for others, as ids are written otherwise.

    releases: what each is called in findings, and itself.
    """
    named = [one for one in releases if one[1].token is None]
    for (first, ours), (second, theirs) in combinations(named, 2):
        _refuse(first, second, *_of_tables(set(ours.subjects), set(theirs.subjects)))
    for ledger, hidden in releases:
        for other, release in named if hidden.token is not None else ():
            _refuse(ledger, other, *_of_ledger(hidden, set(release.subjects)))


def _refuse(first: str, second: str, taken: int, allowed: int) -> None:
    if taken > allowed:
        raise InputError(
            f"{second}: {taken} of its people are those of {first}, but for capitals, zeros in"
            " front or '.0' in their ids, and would be taken for others; write the ids of all"
            " releases alike"
        )


def _of_tables(ours: set[str], theirs: set[str]) -> tuple[int, int]:
    """How many are taken for others, and for how many of them the spelling is not the cause."""
    alike = ours & theirs
    bare = {_bare(name) for name in ours - alike} & {_bare(name) for name in theirs - alike}
    return len(bare), len(alike) if _tells_apart(ours) or _tells_apart(theirs) else 0


def _of_ledger(ledger: ReleaseBeside, names: set[str]) -> tuple[int, int]:
    """The same of people whose names are hidden, and those of a table."""
    assert ledger.token is not None
    token, known = ledger.token, set(ledger.subjects)
    strange = [name for name in names if token(name) not in known]
    taken = sum(any(token(other) in known for other in _spellings(name)) for name in strange)
    return taken, len(names) - len(strange) if _tells_apart(names) else 0


def _tells_apart(names: set[str]) -> bool:
    """Whether one release has several people whose ids differ in nothing else."""
    return len({_bare(name) for name in names}) < len(names)


def _bare(name: str) -> str:
    return re.sub(r"(?<=\d)\.0+$", "", name.casefold()).lstrip("0")


def _spellings(name: str) -> Iterator[str]:
    """Other ways to write an id."""
    bare = _bare(name)
    yield from (bare, bare.upper(), bare.capitalize(), f"{bare}.0", name.lower(), name.upper())
    if bare.isdigit():
        yield from (bare.zfill(width) for width in range(len(bare) + 1, WIDEST + 1))
