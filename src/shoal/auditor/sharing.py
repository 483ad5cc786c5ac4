"""Who belongs to every class that somebody is in: what is left of people whose rows are linked; and
who fits which class by what is known of their quasi-identifiers.

FADS paper, section 2.1, has the attack; the algorithm is ours.
Letters: K(p), the classes of p in all releases; M(E), who fits class E; C(p), the intersection of
M(E) over K(p).

What fits a class may be people - its members, or everybody whom its cells cover - or the values
that it shows: the count is the same. People with the same classes are counted once.

Attackers may know that one person was published, and of the others only what they are like. Of
somebody who is not in a release, its quasi-identifiers are read from the other originals, where a
column has the same name. What nobody knows fits no cell but the suppression mark.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from shoal.auditor.reading import who_fits
from shoal.data.classes import Classes
from shoal.data.encoding import values_beside
from shoal.data.numbers import alike, places_among, run_entries
from shoal.data.release import Release
from shoal.data.schema import Schema
from shoal.data.truth import Truth
from shoal.data.warnings import HOUSEHOLD_JOINED, ROWS_LINKED, ReleaseWarning
from shoal.errors import InputError

BLOCK = 1 << 20  # pairs that are compared at a time
LARGE = 64  # a class that more than one person in this number fits is a bit set
_ONES = np.array([number.bit_count() for number in range(256)], dtype=np.uint8)


@dataclass(frozen=True)
class Links:
    """Which items belong to which classes: members, people who fit, or values that are shown.

    items, classes: (m,) int64, distinct pairs in ascending order of item and then class.
    item_count, class_count: how many there are of either, whether they occur or not.
    """

    items: np.ndarray
    classes: np.ndarray
    item_count: int
    class_count: int

    @classmethod
    def of(
        cls, items: np.ndarray, classes: np.ndarray, item_count: int, class_count: int
    ) -> "Links":
        """Pairs in any order, some of them several times."""
        keys = np.unique(items.astype(np.int64) * max(class_count, 1) + classes)
        return cls(keys // max(class_count, 1), keys % max(class_count, 1), item_count, class_count)

    @cached_property
    def starts(self) -> np.ndarray:
        """(items + 1,) where the classes of each item begin."""
        return np.searchsorted(self.items, np.arange(self.item_count + 1))

    @cached_property
    def degrees(self) -> np.ndarray:
        """(items,) how many classes each item belongs to."""
        return np.diff(self.starts)

    @cached_property
    def sizes(self) -> np.ndarray:
        """(classes,) how many items belong to each class."""
        return np.bincount(self.classes, minlength=self.class_count)

    @cached_property
    def postings(self) -> tuple[np.ndarray, np.ndarray]:
        """The items of each class: (classes + 1,) where they begin, and (m,) int64."""
        order = np.argsort(self.classes, kind="stable")
        return np.concatenate(([0], np.cumsum(self.sizes))), self.items[order]

    @cached_property
    def _keys(self) -> np.ndarray:
        return self.items * max(self.class_count, 1) + self.classes

    def has(self, items: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Whether each of these pairs is one; (n,) bool."""
        asked = items * max(self.class_count, 1) + classes
        return places_among(self._keys, asked) >= 0

    def of_items(self, kept: np.ndarray) -> "Links":
        """Those of some of the items, which keep their numbers; kept: (items,) bool."""
        rows = kept[self.items]
        return Links(self.items[rows], self.classes[rows], self.item_count, self.class_count)

    def of_classes(self, kept: np.ndarray) -> "Links":
        """Those of some of the classes, which keep their numbers; kept: (classes,) bool."""
        rows = kept[self.classes]
        return Links(self.items[rows], self.classes[rows], self.item_count, self.class_count)


def together(each: Iterable[Links]) -> Links:
    """Items in the classes of several releases, which are numbered through."""
    releases = list(each)
    first = np.cumsum([0, *(release.class_count for release in releases)])
    items = np.concatenate([release.items for release in releases])
    classes = [release.classes + start for release, start in zip(releases, first, strict=False)]
    return Links.of(items, np.concatenate(classes), releases[0].item_count, int(first[-1]))


def profiles_of(places: Links) -> tuple[np.ndarray, np.ndarray]:
    """(items,) int64, equal where items have the same classes, -1 without; and one item of each."""
    number = sequences(places.starts, places.classes)
    alone = int((places.degrees == 0).any())  # who is in no class has the least number
    return number - alone, np.unique(number, return_index=True)[1][alone:]


def sequences(starts: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(parents,) int64 dense, equal where parents have the same labels in the same order; shorter
    ones come first. They are ways to the nodes of a tree, which is followed place by place.
    """
    counts = np.diff(starts)
    node = np.zeros(len(counts), dtype=np.int64)
    nodes, left = 1, np.flatnonzero(counts)
    for place in range(int(counts.max(initial=0))):
        left = left[counts[left] > place]
        number = alike([node[left], labels[starts[left] + place]], len(left))
        node[left] = nodes + number
        nodes += int(number.max()) + 1
    return np.unique(node, return_inverse=True)[1]


def fitting(places: Links, fits: Links) -> np.ndarray:
    """|C(p)|: for each item of `places`, how many items of `fits` fit all of its classes.

    (items,) int64; 0 for who is in no class. The smallest class of a person is read, and every
    member looked up in the others; among classes that many fit, bit sets are intersected.
    """
    profile, first = profiles_of(places)
    counts = np.zeros(len(first), dtype=np.int64)
    order = _by_size(places, fits)
    large = fits.sizes[order[places.starts[first]]] * LARGE > fits.item_count
    small = np.flatnonzero(~large)
    for rows, number, _ in _survivors(places, fits, order, first[small]):
        counts[small[rows]] = np.bincount(number, minlength=len(rows))
    counts[large] = _by_bits(places, fits, first[large])
    return np.where(profile >= 0, np.append(counts, 0)[profile], 0)


def fitting_pairs(places: Links, fits: Links) -> Links:
    """Which items of `fits` fit all classes of each item of `places`, which become classes."""
    profile, first = profiles_of(places)
    found = [(np.zeros(0, dtype=np.int64),) * 2]
    for rows, number, candidate in _survivors(places, fits, _by_size(places, fits), first):
        found.append((candidate, rows[number]))
    items, owners = (np.concatenate(parts) for parts in zip(*found, strict=True))
    # back from profiles to all who share them
    members = np.flatnonzero(profile >= 0)
    shared = Links.of(owners, items, len(first), fits.item_count)
    row, place = entries_of(profile[members], shared.starts)
    return Links.of(shared.classes[place], members[row], fits.item_count, places.item_count)


def _by_size(places: Links, fits: Links) -> np.ndarray:
    """The classes of every item, from the one that fewest fit on."""
    return places.classes[np.lexsort((fits.sizes[places.classes], places.items))]


def _survivors(
    places: Links, fits: Links, order: np.ndarray, people: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Block by block: places in `people`; pairs of one of these and an item that fits all classes.

    order: of `_by_size`. people: (n,) items of `places` that are in some class.
    """
    starts, members = fits.postings
    smallest = order[places.starts[people]]
    block = (np.cumsum(fits.sizes[smallest]) - 1).clip(0) // BLOCK
    for rows in np.split(np.arange(len(people)), np.flatnonzero(np.diff(block)) + 1):
        begin, degrees = places.starts[people[rows]], places.degrees[people[rows]]
        row, place = entries_of(smallest[rows], starts)
        candidate = members[place]
        for depth in range(1, int(degrees.max(initial=0))):
            deeper = degrees[row] > depth
            at = np.where(deeper, begin[row] + depth, 0)
            kept = ~deeper | fits.has(candidate, order[at])
            row, candidate = row[kept], candidate[kept]
        yield rows, row, candidate


def _by_bits(places: Links, fits: Links, first: np.ndarray) -> np.ndarray:
    """The items that fit, where many fit every class: bit sets, intersected.

    There are at most `LARGE` times as many such classes as an item of `fits` has of them.
    """
    counts = np.zeros(len(first), dtype=np.int64)
    row, place = entries_of(first, places.starts)
    known, number = np.unique(places.classes[place], return_inverse=True)
    starts, members = fits.postings
    sets = np.zeros((len(known), (fits.item_count + 7) // 8), dtype=np.uint8)  # who fits each
    for index, label in enumerate(known.tolist()):
        bits = np.zeros(fits.item_count, dtype=bool)
        bits[members[starts[label] : starts[label + 1]]] = True
        sets[index] = np.packbits(bits)
    ends = np.cumsum(np.bincount(row, minlength=len(first)))
    begin = ends - np.diff(ends, prepend=0)
    step = max(BLOCK * 8 // max(sets.shape[1], 1), 1)
    for start in range(0, len(first), step):
        own = slice(start, start + step)
        at, stop = begin[own], ends[own]
        common = sets[number[at]]
        left = np.arange(len(at))
        depth = 1
        while len(left := left[at[left] + depth < stop[left]]):
            common[left] &= sets[number[at[left] + depth]]
            depth += 1
        counts[own] = _ONES[common].sum(axis=1, dtype=np.int64)
    return counts


def entries_of(chosen: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All entries of the chosen spans: which of the chosen each belongs to, and the entry.

    starts: (spans + 1,) where the entries of each span begin.
    """
    return run_entries(starts[chosen], starts[chosen + 1] - starts[chosen])


# The rows of one person in one release, which columns that pass through may link.


def rows_linked(
    classes: Classes, columns: Mapping[str, np.ndarray], k: int
) -> ReleaseWarning | None:
    """Who is left among fewer than k once the rows are linked that show the same in columns that
    stay the same for most people; None where nobody is, or where nobody knows whose the rows are.

    columns: (n,) codes of those that pass through. What several people show links no rows.
    """
    if classes.subjects is None or not columns:
        return None
    kept = classes.labels >= 0
    people, labels = classes.subjects[kept].astype(np.int64), classes.labels[kept]
    shown = {name: codes[kept] for name, codes in columns.items()}
    linking = [name for name, codes in shown.items() if _stays_for_most(people, codes)]
    if not linking:
        return None
    found = alike([shown[name] for name in linking], len(people))
    count, everybody = int(found.max(initial=-1)) + 1, int(people.max(initial=-1)) + 1
    is_one = Links.of(found, people, count, everybody).degrees == 1
    rows = is_one[found]
    places = Links.of(found[rows], labels[rows], count, classes.count)
    left = fitting(places, Links.of(people, labels, everybody, classes.count))
    is_joined = places.degrees > 1
    few, alone = (len(np.unique(people[(is_joined & (left < most))[found]])) for most in (k, 2))
    if not few:
        return None
    named = " and ".join(f"'{name}'" for name in linking)
    text = (
        f"{named} link{'' if linking[1:] else 's'} the rows of one person: {few} of"
        f" {len(np.unique(people))} people are then left among fewer than {k}, {alone} of them"
        " alone; the promises hold for one row at a time. Drop what links rows, or publish one row"
        " of each person"
    )
    return ReleaseWarning(ROWS_LINKED, text)


def _stays_for_most(people: np.ndarray, codes: np.ndarray) -> bool:
    """Whether most people with several rows show one value."""
    rows = np.bincount(people)
    values = Links.of(people, codes, len(rows), int(codes.max(initial=0)) + 1).degrees
    several = rows > 1
    return bool(several.any()) and 2 * int((values[several] == 1).sum()) > int(several.sum())


def household_shown(names: Collection[str], schema: Schema) -> str | None:
    """The column of pseudonyms by which readers can join the rows of a household, if any.

    names: the columns of the release.
    """
    home = schema.household
    return home.name if home is not None and home.pseudonym and home.name in names else None


def household_joined(name: str, homes: np.ndarray, labels: np.ndarray) -> ReleaseWarning:
    """Says that readers can join the rows of a household, and how many households are then alone.

    homes: (n,) codes of the column of pseudonyms. labels: (n,) class of each row, -1 where it is
    withheld.
    """
    rows = pl.DataFrame({"home": homes, "label": labels})
    shown = rows.group_by("home").agg(pl.col("label").sort()).group_by("label").len()["len"]
    text = (
        f"'{name}' joins the rows of a household, and no promise counts what they show together:"
        f" {int((shown == 1).sum())} of {int(shown.sum())} households are alone with it."
        " Publish no pseudonym of it"
    )
    return ReleaseWarning(HOUSEHOLD_JOINED, text, name)


# Who fits which class, by what is known of their quasi-identifiers.


ABSENT = -1
UNKNOWN = np.inf  # NaN is a missing value, which the cell of a missing value covers


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
    found = np.full((people, len(quasi)), UNKNOWN)
    # whoever is in several others is as the first of them says
    for other in reversed((*known[:number], *known[number + 1 :])):
        persons, first = np.unique(other.persons, return_index=True)
        original = other.truth.original
        for j, attribute in enumerate(encoded.attribute for encoded in quasi):
            if attribute.name in original.names:
                column = original.column(attribute.name)
                values = values_beside(attribute, column, own.schema)
                found[persons, j] = values[column.codes[first]]
    strangers = np.setdiff1d(np.arange(people), own.persons)
    return np.concatenate([rows, found[strangers]]), np.concatenate([own.persons, strangers])


def _fitting(
    published: Release, points: np.ndarray, persons: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """People and the classes whose every cell covers a point of theirs; (m,) int64 each."""
    found = [(np.zeros(0, dtype=np.int64),) * 2]
    for block, fits in who_fits(published.columns, published.classes, points):
        label, point = np.nonzero(fits)
        found.append((persons[point], label + block.start))
    person, label = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return person, label
