"""What an attacker sees of one person of a release: what is common to one table and to several.

Unlike all other figures of a release these are about one person and name values, because the owner
asks; they belong on the owner's screen.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from shoal.data.notebook import Figures
from shoal.errors import InputError

MOST_EXPOSED, MOST_DISTORTED = "most-exposed", "most-distorted"
WhichRow = int | str
SCHEMA = "shoal.attacker-view/1"


@dataclass(frozen=True, repr=False)
class PossibleValue(Figures):
    """A sensitive value that people who look the same have. share: of those who look the same;
    base: of everybody in the release. Who has several records may have several values.
    """

    value: str = field(repr=False)
    people: int
    share: float
    base: float


@dataclass(frozen=True, repr=False)
class Learnt(Figures):
    """What the attacker learns about one sensitive attribute.

    values: the likeliest first, ties by text; the first is the best guess. truth: the value of the
    row, or all values of the person's rows. is_possible: whether all of it is among the values.
    true_values: how many it is; 0 of somebody without a row.
    """

    attribute: str
    values: tuple[PossibleValue, ...]
    truth: str = field(repr=False)
    is_possible: bool
    true_values: int = 1

    def _figures(self) -> dict[str, object]:
        share = None if self.best is None else self.best.share
        return {
            "attribute": self.attribute,
            "the truth is possible": self.is_possible,
            "share of the likeliest": share,
        }

    @property
    def best(self) -> PossibleValue | None:
        """What the attacker would guess; None where nobody looks the same."""
        return self.values[0] if self.values else None


@dataclass(frozen=True, repr=False)
class KnownRows(Figures):
    """What the attacker knows of a person's rows in one table.

    known: `all`, `count`, or of how many of these rows they know the cells. rows: how many there
    are. columns, cells: of each row, as the original has them; none where only the count is known.
    """

    table: str
    known: str
    rows: int
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...] = field(repr=False)


@dataclass(frozen=True, repr=False)
class AttackerView(Figures):
    """One row of the original, from 1, as an attacker finds it.

    known: quasi-identifiers in the original. shown: the cells of its class; None where it is not
    known which class it is in, or it is in none. people: those who look the same, themselves
    counted; 0 where the row is withheld. unit: `people`, `records` where each is taken to be a
    person, or `rows` where it is not known whose they are. fitting_classes: classes whose cells
    cover what is known; fitting_people: those in them. tables: what is known of the person's rows
    in each table below people's.
    """

    row: int
    known: Mapping[str, str]
    shown: Mapping[str, str] | None
    people: int
    unit: str
    fitting_classes: int
    fitting_people: int
    learnt: tuple[Learnt, ...]
    tables: tuple[KnownRows, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON can hold it; it holds values."""
        found = {"schema": SCHEMA, **asdict(self)}
        return found if self.tables else {k: v for k, v in found.items() if k != "tables"}


class AttackerViews(Figures, ABC):
    """Views of any row of one release, prepared once; see `attacker_view`."""

    def of_row(self, row: WhichRow) -> AttackerView:
        """The view of one row; raises InputError where there is no such row."""
        if row == MOST_EXPOSED:
            return self.of(self.most_exposed())
        if row == MOST_DISTORTED:
            return self.of(self.most_distorted())
        if isinstance(row, bool) or not isinstance(row, Integral) or not 1 <= row <= self.rows:
            raise InputError(
                f"row: is not in the table; give a number from 1 to {self.rows}, '{MOST_EXPOSED}'"
                f" or '{MOST_DISTORTED}'"
            )
        return self.of(int(row))

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows there are to look at, from 1."""

    @abstractmethod
    def of(self, row: int) -> AttackerView:
        """The view of a row of the original; row: from 1."""

    @abstractmethod
    def most_exposed(self) -> int:
        """The row, from 1, whose true value the attacker would give the greatest chance."""

    @abstractmethod
    def most_distorted(self) -> int:
        """The row, from 1, whose cells are the widest of those that show something."""


def possible_values(
    cells: Sequence[str], counts: np.ndarray, people: int, base: np.ndarray, everybody: int
) -> tuple[PossibleValue, ...]:
    """The values that somebody among some people has, the likeliest first. counts, base: (cells,)
    how many of these people, and of everybody, have each.
    """
    values = (
        PossibleValue(
            cells[int(code)],
            int(counts[code]),
            int(counts[code]) / people,
            int(base[code]) / everybody,
        )
        for code in np.flatnonzero(counts)
    )
    return tuple(sorted(values, key=lambda one: (-one.people, one.value)))
