"""Items: people among whom nobody is found by any m known rows.

Ours; the theorem and its proof are in `shoal.linked.known_rows`.
Promise: every class has k people alike in their own cells and in the tables that are known as a
whole, and whoever knows m rows of a person in the other tables finds k people of the class or more
who fit them. Rows are published at nodes of values, by one function for all of a class.
Steps: 1 classes of `size` people, as `bundles` makes them, by what is known as a whole; those that
look alike are one. 2 In each, every value is a node of its own; one that fewer than k people hold
goes to `other X`, a node for all values under its parent X that are not published themselves, which
takes in others of them while fewer than k people hold it, and then goes to the parent's. 3 While
fewer than k people hold some multiset of m nodes, the nodes with most of these are raised in the
same way. 4 Rows that a person has at one node are published as far as k people have as many.
Reading: `other X` takes in the value of least support that is published anywhere under X.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from shoal.data.linked import Bundles, Templates
from shoal.data.numbers import alike
from shoal.data.option import parameter
from shoal.data.partition import Matrix
from shoal.errors import InputError
from shoal.linked.known_rows import KnownRows, ValueTrees
from shoal.linked.methods import bundles as bundling
from shoal.linked.methods.bundles import OrderedBundles
from shoal.protocols import BundlePromises, Bundler

SIZES = (2, 5, 20, 100, 500)
"""People of a class that are tried, in multiples of k; and all."""

SAMPLE = 32
"""People whose classes a size is tried on."""

Making = Callable[[np.ndarray], Templates]
"""The templates of people in classes; (people,) int64, -1 for those in none."""


@dataclass(frozen=True)
class Items(Bundler):
    """Nodes of values for any m known rows. Draws random numbers, to part what is equal."""

    name: ClassVar[str] = "items"
    paper: ClassVar[str] = "ours; see docs/methods/items.md"

    size: int = parameter(
        "people of a class, at least 2 k; 0: the size that loses least on some classes",
        default=0,
        low=0,
    )
    band: int = parameter(
        "how many times `size` people are gathered, by their number of rows, before they are cut",
        default=10,
        low=1,
    )

    def bundle(
        self, bundles: Bundles, promises: BundlePromises, rng: np.random.Generator
    ) -> Templates:
        """Templates of at least `promises.k` people for any m known rows.

        Raises InfeasibleError where there are fewer people, or all in one class break a promise,
        and InputError where no table has a number of known rows, or classes are too small for it.
        """
        k = promises.k
        if all(rows.known is None for rows in bundles.tables):
            raise InputError(
                "method 'items': attackers know every table as a whole; say 'known: 2' of one, or"
                " choose 'bundles'"
            )
        if 0 < self.size < 2 * k:
            raise InputError(
                f"method 'items': classes of {self.size} people withhold nearly all values at"
                f" k = {k}; choose 'size' of at least {2 * k}, or 'bundles'"
            )
        bundling.require_people(bundles, k)
        draws = [rng.permutation(rows.matrix.records) for rows in bundles.tables]
        sizes = [size * k for size in SIZES if size * k < bundles.people] + [bundles.people]
        sizes = [self.size] if self.size else sizes
        tried = [self._classes(bundles, promises, size, rng) for size in sizes]
        makings = [partial(_templates, bundles, k, draws, ordered) for ordered, _ in tried]
        best = 0
        if len(tried) > 1:
            seed = rng.integers(2**32)
            losses = [
                _sampled_loss(bundles, ordered, classes, making, np.random.default_rng(seed))
                for (ordered, classes), making in zip(tried, makings, strict=True)
            ]
            best = int(np.argmin(losses))
        (ordered, classes), making = tried[best], makings[best]
        while promises.needs_more_than_k:  # of classes that look alike since, as one, too
            kept = bundling.united(ordered, classes, promises, making)
            classes = _distinct(bundles, promises, ordered, kept)
            if classes is kept:
                break
        return making(classes)

    def _classes(
        self, bundles: Bundles, promises: BundlePromises, size: int, rng: np.random.Generator
    ) -> tuple[OrderedBundles, np.ndarray]:
        """What is known as a whole, in order, and each person's class by it."""
        whole = bundles.without(_not_whole(bundles))
        ordered = OrderedBundles.of(replace(whole, apart=_apart(bundles, size)), rng)
        classes = bundling.classes_of(ordered.bundles, size, self.band * size)
        apart = bundles.apart[ordered.source[0]]
        ordered = replace(ordered, bundles=replace(ordered.bundles, apart=apart))
        return ordered, _distinct(bundles, promises, ordered, classes)


def _not_whole(bundles: Bundles) -> list[int]:
    """The tables with a number of known rows, and those below them."""
    found: list[int] = []
    for number, rows in enumerate(bundles.tables):
        if rows.known is not None or rows.parent in found:
            found.append(number)
    return found


def _apart(bundles: Bundles, size: int) -> np.ndarray:
    """Whom no class unites: who was apart before, and where counts of rows are known those with
    other counts, if there are enough of each; from the greatest down, else.
    """
    counts = [np.diff(rows.starts) for rows in bundles.tables if rows.counted]
    if not counts:
        return bundles.apart
    by_count = alike(counts, bundles.people)
    found = np.zeros(bundles.people, np.int64)
    for before in np.unique(bundles.apart).tolist():
        members = np.flatnonzero(bundles.apart == before)
        members = members[np.argsort(-by_count[members], kind="stable")]
        starts = bundling.band_starts(by_count[members], size)
        found[members] = found.max() + 1 + np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return found


# Classes that look alike: to readers they are one, in which f maps all rows (`linked.known_rows`).


def _distinct(
    bundles: Bundles, promises: BundlePromises, ordered: OrderedBundles, classes: np.ndarray
) -> np.ndarray:
    """The classes, with those that look alike as one; the same array where no two do.

    Rows are aligned anew in larger classes, after which others may look alike.
    """
    while True:
        labels = ordered.people_of_input(classes)
        own, first = _shown(bundles, promises, 0, labels), np.unique(labels, return_index=True)[1]
        is_rival = np.bincount(own[first])[own] > 1
        if not is_rival.any():
            return classes
        rivals = _dense(np.where(is_rival, labels, -1))[ordered.source[0]]
        slots = _whole_slots(bundles, ordered, rivals)
        cells = [
            own,
            *(_shown(bundles, promises, number, slots[number]) for number in range(1, len(slots))),
        ]
        numbers: dict[tuple[int, ...], int] = {}
        looks = [(int(bundles.apart[p]), *_look(bundles, cells, 0, p)) for p in first.tolist()]
        number = np.array([numbers.setdefault(look, len(numbers)) for look in looks])
        if len(numbers) == len(looks):
            return classes
        classes = number[classes]


def _shown(
    bundles: Bundles, promises: BundlePromises, number: int, slots: np.ndarray
) -> np.ndarray:
    """(n,) equal where rows of a table show the same cells, and counts of rows below; -1 stays."""
    counts = [np.diff(bundles.tables[child].starts) for child in bundles.below(number)]
    spans = [span[slots] for count in counts for span in _count_spans(slots, count)]
    return np.where(slots < 0, -1, alike([promises.shown(number, slots), *spans], len(slots)))


def _look(bundles: Bundles, cells: list[np.ndarray], number: int, row: int) -> tuple[Any, ...]:
    """What a row shows, with the published rows below it in any order.

    cells: by table, of each row, as `_shown`.
    """
    below = (
        tuple(
            sorted(
                _look(bundles, cells, child, other)
                for other in range(*bundles.tables[child].starts[row : row + 2])
                if cells[child][other] >= 0
            )
        )
        for child in bundles.below(number)
    )
    return (int(cells[number][row]), *below)


def _sampled_loss(
    bundles: Bundles,
    ordered: OrderedBundles,
    classes: np.ndarray,
    making: Making,
    rng: np.random.Generator,
) -> float:
    """What the classes of some people lose, by the cells that they have; each as often as one of
    these is in it, however large it is.
    """
    places = ((rng.random() + np.arange(SAMPLE)) * len(classes) / SAMPLE).astype(np.int64)
    drawn, times = np.unique(classes[places], return_counts=True)
    place = np.full(int(classes.max()) + 1, -1)
    place[drawn] = np.arange(len(drawn))
    sampled = place[classes]
    weight = np.append(times / np.bincount(classes)[drawn], 0.0)[sampled]
    return bundling.bundle_loss(bundles, making(sampled), ordered.people_of_input(weight))


# Templates: of what is known as a whole as in `bundles`, then of the other tables.


def _templates(
    bundles: Bundles, k: int, draws: list[np.ndarray], ordered: OrderedBundles, classes: np.ndarray
) -> Templates:
    """The templates of classes of the ordered bundles, for those that came."""
    others, slots = _not_whole(bundles), _whole_slots(bundles, ordered, classes)
    asked = [number for number in others if bundles.tables[number].known]
    tables = [_known_rows(bundles, number, slots, draws[number], k) for number in asked]
    m = bundles.tables[asked[0]].known or 0
    ends = np.cumsum([bundles.tables[number].matrix.records for number in asked])[:-1]
    nodes, is_kept = (np.split(one, ends) for one in KnownRows.joined(tables).published(k, m))
    covered = slots.copy()
    for number, found, kept in zip(asked, nodes, is_kept, strict=True):
        covered[number] = _dense(found)
        slots[number] = np.where(kept, covered[number], -1)
    for number in (number for number in others if number not in asked):
        above = slots[bundles.tables[number].parent]
        slots[number] = covered[number] = bundling.slots_of_rows(bundles, number, above)
    return Templates(tuple(slots), tuple(covered))


def _whole_slots(
    bundles: Bundles, ordered: OrderedBundles, classes: np.ndarray
) -> list[np.ndarray]:
    """The slots of rows in tables that are known as a whole; -1 for all rows of others."""
    others = _not_whole(bundles)
    whole = iter(ordered.of_input(bundling.aligned(ordered.bundles, classes)).slots)
    return [
        np.full(rows.matrix.records, -1) if number in others else next(whole)
        for number, rows in enumerate(bundles.tables)
    ]


def _dense(slots: np.ndarray) -> np.ndarray:
    """Slots numbered without gaps; -1 stays."""
    kept = slots >= 0
    found = slots.copy()
    found[kept] = np.unique(slots[kept], return_inverse=True)[1]
    return found


def _known_rows(
    bundles: Bundles, number: int, slots: list[np.ndarray], drawn: np.ndarray, k: int
) -> KnownRows:
    """The rows of one table, each below the slot of the row that it hangs from.

    Where counts are known and the members of a class have several, each of them publishes as many
    rows as the one with the fewest, which show nothing: so a count tells as little as they do.
    """
    rows, starts = bundles.tables[number], bundles.starts_by_person(number)
    counts = np.diff(starts)
    person = np.repeat(np.arange(bundles.people), counts)
    group = slots[rows.parent][rows.parents]
    is_even = np.ones(len(person), dtype=bool)
    if rows.counted:
        least, most = _count_spans(slots[0], counts)
        is_even = (least == most)[slots[0][person]]
        place = np.empty(len(person), np.int64)
        place[np.lexsort((drawn, person))] = np.arange(len(person)) - starts[person]
        group = np.where(is_even | (place < least[slots[0][person]]), group, -1)
    trees = ValueTrees.of(_with_counts(bundles, number), group, person, k)
    return KnownRows(
        replace(trees, leaf=np.where(is_even, trees.leaf, trees.roots(trees.leaf))),
        person,
        np.where(group < 0, -1, slots[0][person]),
        np.full(len(person), rows.counted),
        np.full(len(person), rows.row_weight),
        drawn,
    )


def _with_counts(bundles: Bundles, number: int) -> Matrix:
    """A table's columns, and how many rows hang from each of its rows."""
    rows, below = bundles.tables[number], [bundles.tables[t] for t in bundles.below(number)]
    if not below:
        return rows.matrix
    counts = [np.diff(one.starts) for one in below]
    return bundling.with_columns(rows.matrix, counts, [1 / one.row_weight for one in below])


def _count_spans(classes: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The fewest and the most rows of a member of each class, and last of nobody."""
    number = int(classes.max(initial=-1)) + 2
    least, most = np.full(number, np.iinfo(np.int64).max), np.zeros(number, np.int64)
    np.minimum.at(least, classes, counts)
    np.maximum.at(most, classes, counts)
    return least, most
