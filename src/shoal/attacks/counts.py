"""How many people of each class have each sensitive value."""

from dataclasses import dataclass
from math import sqrt
from typing import TypedDict

import numpy as np

from shoal.data.attack_scene import ShownRelease
from shoal.data.classes import people_with


@dataclass(frozen=True)
class ClassValues:
    """The values that occur in each class, sorted by class, then value.

    classes, values, counts: (k,), how many people of the class have the value. people: (classes,)
    everybody of each class. totals: (values,) people who have the value, class by class.
    """

    classes: np.ndarray
    values: np.ndarray
    counts: np.ndarray
    people: np.ndarray
    totals: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        """(classes + 1,) where the entries of each class begin."""
        return np.searchsorted(self.classes, np.arange(len(self.people) + 1))

    def distinct(self) -> np.ndarray:
        """(classes,) how many values occur in each class."""
        return np.bincount(self.classes, minlength=len(self.people))


def class_values(release: ShownRelease, attribute: str) -> ClassValues:
    """The counts of one sensitive attribute, in people."""
    column = release.sensitive[attribute]
    kept = release.labels >= 0
    persons = None if release.subjects is None else release.subjects[kept]
    labels, values = release.labels[kept], column.codes[kept]
    return _counted(labels, values, persons, release.boxes.people, column.values)


def values_by_class(
    labels: np.ndarray, values: np.ndarray, persons: np.ndarray | None, count: int
) -> ClassValues:
    """The counts of values (n,) in classes 0..count-1; persons: None where each is its own."""
    classes, of_class = people_with(labels, persons)
    people = np.zeros(count, dtype=np.int64)
    people[classes] = of_class
    return _counted(labels, values, persons, people, int(values.max(initial=0)) + 1)


def _counted(
    labels: np.ndarray,
    values: np.ndarray,
    persons: np.ndarray | None,
    people: np.ndarray,
    size: int,
) -> ClassValues:
    size = max(size, 1)
    keys, counts = people_with(labels.astype(np.int64) * size + values, persons)
    value = keys % size
    totals = np.bincount(value, weights=counts, minlength=size).astype(np.int64)
    return ClassValues(keys // size, value, counts, people, totals)


def mode(
    counts: ClassValues, label: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(classes,) people of each class who have its most frequent value, and for records (n,) the
    chance that guessing it is right: equally frequent ones share it.
    """
    most = np.zeros(len(counts.people), dtype=np.int64)
    np.maximum.at(most, counts.classes, counts.counts)
    is_most = counts.counts == most[counts.classes]
    tied = np.bincount(counts.classes[is_most], minlength=len(most))
    size = len(counts.totals)
    keys = counts.classes * size + counts.values
    entry = np.searchsorted(keys, label.astype(np.int64) * size + values)
    return most, is_most[entry] / tied[label]


def people_in(release: ShownRelease, inside: np.ndarray | None = None) -> int:
    """How many different people have a record in some class; inside: (n,) bool, only such ones."""
    kept = release.in_classes if inside is None else release.in_classes & inside
    if release.subjects is None:
        return int(kept.sum())
    return len(np.unique(release.subjects[kept]))


def parts_of_people(release: ShownRelease) -> np.ndarray:
    """(n,) what part of its person each record in a class is: one of r records is a part of 1/r.

    An attack that meets one record of a person at random is right in this share of cases.
    """
    kept, parts = release.in_classes, np.zeros(release.records)
    parts[kept] = parts_of(release.persons[kept])
    return parts


def parts_of(persons: np.ndarray) -> np.ndarray:
    """(n,) what part of its person each record is."""
    number = np.unique(persons, return_inverse=True)[1]
    return 1.0 / np.bincount(number)[number] if len(number) else np.zeros(0)


# How certain a measured share is.
#
# Wilson. JASA 22, 1927; Newcombe. Statistics in Medicine 17, 1998, method 10; the residual as
# Giomi and others, PETS 2023: what an attack gains beyond a control, of all that could be gained.
# Every interval is at 95 %.


Z = 1.959964
CONFIDENCE = 0.95


class Share(TypedDict):
    """A number, out of how many, its interval, and how that was found."""

    share: float | None
    of: int | None
    ci: list[float] | None
    how: str


def counted(hits: float, of: int) -> Share:
    """A share of a whole that was counted, not estimated; null where there is no whole."""
    return exact(hits / of if of else None, of)


def exact(share: float | None, of: int | None = None) -> Share:
    """A number that follows from the release, not from a sample."""
    return {"share": share, "of": of, "ci": None, "how": "exact"}


def wilson_ends(hits: float, of: int) -> tuple[float, float]:
    """The interval of a share; hits may be broken where ties were."""
    share = hits / of
    middle = share + Z * Z / (2 * of)
    reach = Z * sqrt(max(share * (1 - share), 0.0) / of + Z * Z / (4 * of * of))
    whole = 1 + Z * Z / of
    return max((middle - reach) / whole, 0.0), min((middle + reach) / whole, 1.0)


def wilson(hits: float, of: int) -> Share:
    """A share of people that were drawn; null where nobody was."""
    if not of:
        return {"share": None, "of": 0, "ci": None, "how": "wilson"}
    return {"share": hits / of, "of": of, "ci": list(wilson_ends(hits, of)), "how": "wilson"}


def newcombe(one: tuple[float, int], other: tuple[float, int]) -> Share:
    """The difference of two samples' shares, (hits, of) each; null where either is empty."""
    if not one[1] or not other[1]:
        return {"share": None, "of": 0, "ci": None, "how": "newcombe"}
    p1, p2 = one[0] / one[1], other[0] / other[1]
    (l1, u1), (l2, u2) = wilson_ends(*one), wilson_ends(*other)
    d = p1 - p2
    ends = [d - sqrt((p1 - l1) ** 2 + (u2 - p2) ** 2), d + sqrt((u1 - p1) ** 2 + (p2 - l2) ** 2)]
    return {"share": d, "of": one[1], "ci": ends, "how": "newcombe"}


def over(one: tuple[float, int], known: float) -> Share:
    """What a sample's share and its interval exceed a known share by."""
    found = wilson(*one)
    if found["share"] is None or found["ci"] is None:
        return found
    return found | {"share": found["share"] - known, "ci": [end - known for end in found["ci"]]}


def scaled(found: Share, room: float) -> Share:
    """A difference as a part of what there was room for; null where there was none."""
    if found["share"] is None or found["ci"] is None or room <= 0:
        return found | {"share": None, "ci": None}
    return found | {"share": found["share"] / room, "ci": [end / room for end in found["ci"]]}


def mean_of(fractions: np.ndarray) -> Share:
    """The mean of what each of a sample's people gives away, by the normal approximation."""
    of = len(fractions)
    if not of:
        return {"share": None, "of": 0, "ci": None, "how": "normal"}
    mean = float(fractions.mean())
    spread = float(fractions.std(ddof=1)) / sqrt(of) if of > 1 else 0.0
    ends = [max(mean - Z * spread, 0.0), min(mean + Z * spread, 1.0)]
    return {"share": mean, "of": of, "ci": ends, "how": "normal"}
