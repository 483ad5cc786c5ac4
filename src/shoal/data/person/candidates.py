"""Columns that may number people, by their names, their counts and how their cells are written.

rank        how likely a class numbers people, the likeliest first
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shoal.data.person.cells import NO_NUMBERS, STRONG
from shoal.data.person.columns import People, PersonColumn
from shoal.data.person.evidence import Evidence

FEWEST = 10  # distinct values, and repeats, below which a name must say more
MANY = 20  # distinct values of a column that nothing else speaks for

RANK = {
    "civil": 0,
    "person": 1,
    "contact": 2,
    "pair": 2,
    "name": 3,
    "proxy": 4,
    "number": 5,
    "token": 5,
    "event": 6,
    "evidence": 7,
}
NEVER = ("sex", "birth", "age", "keep", "first", "last", "thing", "staff", "group")


@dataclass
class Candidate:
    """One column or several that may number the people.

    kind: why it may, a key of RANK. records, distinct, most: those that have a value, the people
    they would be, and records of the one who has most. is_number: whether its name says that it
    numbers. is_weak: whether its name may mean somebody else than whom the table is about. twins:
    columns that say the same.
    """

    columns: tuple[str, ...]
    kind: str
    people: People
    records: int
    distinct: int
    most: int = 0
    is_number: bool = True
    is_weak: bool = False
    token: str = ""
    evidence: Evidence = field(default_factory=Evidence)
    twins: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Its columns, as a question lists them."""
        return " + ".join(self.columns)

    @property
    def rank(self) -> int:
        return RANK[self.kind]

    @property
    def repeated(self) -> int:
        """Records beyond the first of each of its people."""
        return self.records - self.distinct

    @property
    def is_strong_token(self) -> bool:
        """Whether its cells are made to tell one from all others."""
        return self.token in STRONG


def single_candidates(columns: Sequence[PersonColumn]) -> list[Candidate]:
    """Every column that may number people by itself."""
    found = []
    for column in columns:
        kind = _kind_of(column)
        if kind:
            people = column.people
            found.append(
                Candidate(
                    (column.title,),
                    kind,
                    people,
                    column.records,
                    column.distinct,
                    people.most,
                    column.name.is_number,
                    column.name.is_weak or column.name.is_of_other,
                    column.look.token,
                )
            )
    return found


def counts_only(column: PersonColumn) -> bool:
    """Whether it is named as a count, and not written as what tells people apart."""
    return column.name.is_count and not column.look.token


def _kind_of(column: PersonColumn) -> str:
    """A key of RANK, or nothing."""
    named = column.name.kind
    if not column.varies or column.look.kind in NO_NUMBERS:
        return ""
    if named in NEVER or (counts_only(column) and column.look.kind != "text"):
        return ""
    if not _may_be_many(column) or not column.repeats or column.distinct >= column.records:
        return ""
    if named == "person":
        return "person" if column.name.is_number or column.look.token else ""
    if named in ("civil", "contact"):
        return named if column.distinct >= FEWEST else ""  # fewer are a flag
    if named == "name":
        return "name"
    if column.distinct < FEWEST or column.repeated < FEWEST:
        return ""
    return _kind_of_many(column)


def _may_be_many(column: PersonColumn) -> bool:
    """Whether it has values enough among the rows looked at, where no name speaks for it."""
    return bool(column.name.kind or column.look.token) or column.seen >= MANY


def _kind_of_many(column: PersonColumn) -> str:
    """The kind of a column with many values and many repeats, that is not named for people."""
    named, token = column.name.kind, column.look.token
    has_many = column.distinct >= MANY
    if named in ("proxy", "event"):
        says_number = column.name.is_number or token or named == "proxy"
        return named if says_number or has_many else ""
    if named == "number":
        return "number" if column.look.kind != "whole" and (token or has_many) else ""
    if token:
        return "evidence" if token == "fullname" else "token"
    return "evidence" if has_many and column.look.kind in ("int", "text") else ""
