"""A release as it is read beside others about the same people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from shoal.data.certificate import Certificate
from shoal.data.release import Release
from shoal.data.schema import Schema
from shoal.data.truth import Truth

ABSENT = -1


@dataclass(frozen=True)
class ShownValues:
    """The values of one attribute that each class shows.

    classes, codes: (m,) int64, a class and the place in `texts` of a value that it shows.
    texts: the distinct values as they are compared; all that stand for none are empty.
    """

    classes: np.ndarray
    codes: np.ndarray
    texts: tuple[str, ...]


@dataclass(frozen=True)
class ReleaseBeside:
    """Who is in which class of a release, and what else is asked or known of it.

    kind: `table`, `stream` or `ledger`. subjects: the name of each person, or where `token` is not
        None what that makes of it. people, labels: (m,) int64, the place of a person in `subjects`
        and a class 0..count-1 that the person is in, in any order; withheld rows are left out.
    values: by attribute that is not a quasi-identifier. sensitive: which of them are.
    k, least_values: what its policy asks, the latter by sensitive attribute.
    holds: whether it keeps its own promises. sha256: of its file.
    """

    kind: str
    subjects: tuple[str, ...]
    people: np.ndarray
    labels: np.ndarray
    count: int
    values: Mapping[str, ShownValues] = field(default_factory=dict)
    sensitive: tuple[str, ...] = ()
    k: int | None = None
    least_values: Mapping[str, int] = field(default_factory=dict)
    holds: bool = True
    sha256: str | None = None
    token: Callable[[str], str] | None = None


@dataclass(frozen=True)
class Overlap:
    """What other releases say of the people of a new table.

    cells: (names,) int64, equal where people share all of their classes in the other releases;
        ABSENT for newcomers. elsewhere: (cells,) int64, how many people of each are not in the
        table. of_cell, of_class: (m,) int64, a cell and one of the old classes that its people
        are in; several where they have several records, or are in several releases.
    """

    cells: np.ndarray
    elsewhere: np.ndarray
    of_cell: np.ndarray
    of_class: np.ndarray

    def by_class(self, people: np.ndarray) -> np.ndarray:
        """(classes,) float64, the people of each old class, from those of each cell."""
        return np.bincount(self.of_class, weights=people[self.of_cell])


@dataclass(frozen=True)
class Candidates:
    """Of whom an attacker thinks who knows the people of a new table by what they are like.

    groups: (n,) int64, equal where records' people share all classes in the releases that are out;
        ABSENT for newcomers.
    starts, people: who fits all classes of a group: `people[starts[group] : starts[group + 1]]`.
    points: (people, d) float64, what is known of everybody on the quasi-identifiers of the table.
    """

    groups: np.ndarray
    starts: np.ndarray
    people: np.ndarray
    points: np.ndarray


class OwnPresence(Protocol):
    """The releases that are out for an attacker who knows of one person only who is in them."""

    def candidates(self, truth: Truth, schema: Schema) -> Candidates:
        """Who is like the people of a new table; raises InputError where that can't be known."""
        ...

    def report(
        self, k: int, certificate: Certificate, release: Release, schema: Schema, truth: Truth
    ) -> dict[str, Any]:
        """The last check of what is to be published, as a certificate states it."""
        ...


@dataclass(frozen=True)
class BesideGuard:
    """Releases that are out, beside which a table is to be published.

    releases: as certificates state them. overlap: asked by the subjects of the new table.
    strict: whether what is learned of those who are missing from it is guarded, too.
    own: asked where the attacker knows of one person only who is in which release.
    """

    releases: tuple[Mapping[str, object], ...]
    overlap: Callable[[Sequence[str]], Overlap]
    strict: bool = False
    own: OwnPresence | None = None
