"""Who fits which class by what is known of their quasi-identifiers: attackers who know that one
person was published, and of the others only what they are like.

Of somebody who is not in a release, its quasi-identifiers are read from the other originals,
where a column has the same name. What nobody knows fits no cell but the suppression mark.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.auditor.reading import class_spans
from shoal.auditor.sharing import Links, together
from shoal.data.encoding import values_beside
from shoal.data.release import Release, spans_cover
from shoal.data.schema import Schema
from shoal.data.truth import Truth
from shoal.errors import InputError

ABSENT = -1
UNKNOWN = np.inf  # NaN is a missing value, which the cell of a missing value covers
OWN_BLOCK = 1 << 22  # pairs of a class and a point that are compared at a time


@dataclass(frozen=True)
class KnownPeople:
    """The original of a release, and whose each row of it is.

    persons: (records,) int64, in numbers that all releases share.
    """

    truth: Truth
    schema: Schema
    persons: np.ndarray
    what: str

    def check(self) -> None:
        """Raises InputError where a cell hides what it spans."""
        hidden = [a.name for a in self.schema.quasi if a.shown.hides_span]
        if hidden:
            raise InputError(
                f"{self.what}: shows one value of '{hidden[0]}' for each class and no ranges, so"
                " nobody can tell who fits a class; leave out 'own'"
            )


def people_who_fit(releases: Sequence[Release], known: Sequence[KnownPeople], people: int) -> Links:
    """Which of all people fit each class; classes are numbered through, release by release.

    known: the original of each release, and others in which people are known.
    """
    fits = []
    for number, release in enumerate(releases):
        known[number].check()
        person, label = _fitting(release, *points_of(known, number, people))
        fits.append(Links.of(person, label, people, release.classes.count))
    return together(fits)


def points_of(
    known: Sequence[KnownPeople], number: int, people: int
) -> tuple[np.ndarray, np.ndarray]:
    """(m, d) float64 what is known of people on a release's quasi-identifiers, and (m,) whose.

    Everybody in its original with all of their records; others with the first of theirs.
    """
    own = known[number]
    quasi = own.truth.encoded.attributes
    rows = np.column_stack([encoded.value_of_code()[encoded.codes] for encoded in quasi])
    strangers = np.ones(people, dtype=bool)
    strangers[own.persons] = False
    found = np.full((people, len(quasi)), UNKNOWN)
    seen = np.zeros((people, len(quasi)), dtype=bool)
    for other in (*known[:number], *known[number + 1 :]):
        persons, first = np.unique(other.persons, return_index=True)
        original = other.truth.original
        for j, encoded in enumerate(quasi):
            if encoded.attribute.name not in original.names:
                continue
            column = original.column(encoded.attribute.name)
            values = values_beside(encoded.attribute, column, own.schema)
            fresh = strangers[persons] & ~seen[persons, j]
            found[persons[fresh], j] = values[column.codes[first[fresh]]]
            seen[persons[fresh], j] = True
    left = np.flatnonzero(strangers)
    return np.concatenate([rows, found[left]]), np.concatenate([own.persons, left])


def _fitting(
    published: Release, points: np.ndarray, persons: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """People and the classes whose every cell covers a point of theirs; (m,) int64 each."""
    labels, count = published.classes.labels, published.classes.count
    lo, hi = class_spans(published.columns, labels, count)
    found = [(np.zeros(0, dtype=np.int64),) * 2]
    step = max(OWN_BLOCK // max(len(points), 1), 1)
    for start in range(0, count, step):
        block = slice(start, start + step)
        fits = np.ones((len(lo[block]), len(points)), dtype=bool)
        for j in range(lo.shape[1]):
            fits &= spans_cover(lo[block, j, None], hi[block, j, None], points[:, j])
        label, point = np.nonzero(fits)
        found.append((persons[point], label + start))
    person, label = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return person, label
