"""Bundles: people whose rows in all tables are published alike.

Ours. Nearest: Nergiz, Clifton, Nergiz. Multirelational k-anonymity (ICDE 2007), for people over
several relations; Tamersoy, Loukides, Denny, Malin (2012), who align sequences.
Promise: every class has k people, and every slot of its template a row of each of them. So whoever
knows all quasi cells of a person's rows, how many there are, and what hangs from what, finds k
people or more whose bundles are published equal. Classes and slots follow from quasi cells, counts
and the random numbers alone; so whoever among k people owns which other cells doesn't show.
Steps: 1 bands of people with about equally many rows. 2 Bands are cut where both parts cost least,
priced as if the j-th row of each member went to slot j. 3 The rows of a class are aligned: each
member's rows go to the slots at the least cost; then the rows below these. Rows without a slot are
withheld. 4 Classes that break a promise unite with the nearest, and are aligned anew.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from shoal.data.linked import Bundles, Templates
from shoal.data.numbers import weighted_sum
from shoal.data.option import parameter
from shoal.data.partition import Matrix, Partition
from shoal.errors import InfeasibleError
from shoal.linked.kernels import cuts
from shoal.linked.kernels.align import align, price_below
from shoal.protocols import BundlePromises, Bundler
from shoal.search.segments import costs_of, losses_of, merge_failing

FAR = 1000.0
"""What uniting two people costs who have to stay apart, in losses of all of their cells at most."""
CUT_ROWS = 6
"""Rows of a person by whose values people are cut, in each table."""


@dataclass(frozen=True)
class BundleMethod(Bundler):
    """Classes of people, and slots of rows. Draws random numbers, to part what is equal."""

    name: ClassVar[str] = "bundles"
    paper: ClassVar[str] = "ours; see docs/methods/bundles.md"

    band: int = parameter(
        "how many times k people are gathered, by their number of rows, before they are cut",
        default=10,
        low=1,
    )

    def bundle(
        self, bundles: Bundles, promises: BundlePromises, rng: np.random.Generator
    ) -> Templates:
        """Templates of at least `promises.k` people; raises InfeasibleError where there are fewer,
        or all in one class break a promise.
        """
        k = promises.k
        require_people(bundles, k)
        ordered = OrderedBundles.of(bundles, rng)
        classes = classes_of(ordered.bundles, k, self.band * k)

        def template(labels: np.ndarray) -> Templates:
            return ordered.of_input(aligned(ordered.bundles, labels))

        if promises.needs_more_than_k:
            classes = united(ordered, classes, promises, template)
        return template(classes)


def require_people(bundles: Bundles, k: int) -> None:
    """Raises InfeasibleError where too few people may be in one class."""
    sizes = np.unique(bundles.apart, return_counts=True)[1]
    fewest = int(sizes.min(initial=bundles.people))
    if fewest >= k:
        return
    if len(sizes) > 1:
        raise InfeasibleError(
            f"k-anonymity with k = {k}: {fewest} people have to stay apart from all others by the"
            " day of the week of their anchor, or as they have none; lower k, or leave out 'keep'"
            " and 'gaps' of the anchor"
        )
    raise InfeasibleError(
        f"k-anonymity with k = {k}: the table of people has {fewest}; add people, or lower k"
    )


# Order: of people by how many rows they have, of rows by their codes; equal ones as drawn.


@dataclass(frozen=True)
class OrderedBundles:
    """Bundles in an order that nothing but quasi cells, counts and random numbers decide.

    source: by table, the row of the input that each row was.
    """

    bundles: Bundles
    source: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, bundles: Bundles, rng: np.random.Generator) -> "OrderedBundles":
        draws = [rng.permutation(rows.matrix.records) for rows in bundles.tables]
        as_they_came = cls._of_people(bundles, np.arange(bundles.people), draws).bundles
        values = _dimensions(as_they_came)
        people = np.lexsort((draws[0], *values[::-1], -_total_rows(bundles), bundles.apart))
        return cls._of_people(bundles, people, draws)

    @classmethod
    def _of_people(
        cls, bundles: Bundles, people: np.ndarray, draws: list[np.ndarray]
    ) -> "OrderedBundles":
        """people: (n,) in their order. draws: what parts equal rows of each table."""
        first = bundles.tables[0]
        tables = [replace(first, matrix=first.matrix.take(people))]
        sources = [people]
        for rows, drawn in zip(bundles.tables[1:], draws[1:], strict=True):
            above = sources[rows.parent]
            place = _inverse(above)[rows.parents]
            source = np.lexsort((drawn, *rows.matrix.codes.T[::-1], place))
            starts = starts_of(np.diff(rows.starts)[above])
            tables.append(replace(rows, matrix=rows.matrix.take(source), starts=starts))
            sources.append(source)
        return cls(Bundles(tuple(tables), bundles.apart[people]), tuple(sources))

    def people_of_input(self, values: np.ndarray) -> np.ndarray:
        """What belongs to each person, as they came."""
        return values[_inverse(self.source[0])]

    def of_input(self, templates: Templates) -> Templates:
        """The templates of the bundles as they came."""
        sources = zip(templates.slots, self.source, strict=True)
        return Templates(tuple(slots[_inverse(source)] for slots, source in sources))


def starts_of(counts: np.ndarray) -> np.ndarray:
    """Where runs of these lengths begin, and the end."""
    return np.concatenate(([0], np.cumsum(counts)))


def _inverse(permutation: np.ndarray) -> np.ndarray:
    inverse = np.empty_like(permutation)
    inverse[permutation] = np.arange(len(permutation))
    return inverse


def _total_rows(bundles: Bundles) -> np.ndarray:
    """(people,) rows of each person in all tables."""
    starts = map(bundles.starts_by_person, range(1, len(bundles.tables)))
    return sum((np.diff(start) for start in starts), np.zeros(bundles.people, np.int64))


# Steps 1 and 2: bands, and cuts in them.


def classes_of(bundles: Bundles, k: int, least_band: int) -> np.ndarray:
    """The class of each person, (people,) int64."""
    bands = _bands(bundles, least_band)
    values = np.array(_dimensions(bundles), dtype=np.int32).reshape(-1, bundles.people)
    band = np.repeat(np.arange(len(bands) - 1), np.diff(bands))
    order = np.empty((len(values) + 1, bundles.people), np.int32)
    for j, value in enumerate(values):
        order[j] = np.argsort(band << 32 | value.astype(np.int64), kind="stable")
    order[-1] = np.arange(bundles.people)
    starts = cuts.cut(order, values, k, bands, *_flat(bundles))
    classes = np.empty(bundles.people, np.int64)
    classes[order[-1]] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return classes


def _bands(bundles: Bundles, least: int) -> np.ndarray:
    """Where bands begin, and the end, none of people who have to stay apart."""
    rows = _total_rows(bundles)
    ends = np.append(np.flatnonzero(np.diff(bundles.apart)) + 1, len(rows)).tolist()
    starts = [np.zeros(1, np.int64)]
    for first, end in pairwise([0, *ends]):
        starts.append(first + band_starts(rows[first:end], least)[1:])
    return np.concatenate(starts)


def band_starts(rows: np.ndarray, least: int) -> np.ndarray:
    """Where the bands of people begin, and the end; people of equally many rows are in one band.

    rows: (people,) of each person, descending. least: people of a band; the last takes in those
    who are too few to be one.
    """
    ends = np.append(np.flatnonzero(np.diff(rows)) + 1, len(rows))
    starts = [0]
    for end in ends.tolist():
        if end - starts[-1] >= least:
            starts.append(end)
    if starts[-1] < len(rows):
        starts[max(len(starts) - 1, 1) :] = [len(rows)]
    return np.array(starts)


def _dimensions(bundles: Bundles) -> list[np.ndarray]:
    """What people are cut by, for each the values of all: their own columns, those of their first
    rows, an absent one the lowest, and counts of rows.
    """
    values = list(bundles.tables[0].matrix.codes.T)
    counts = []
    for number, rows in enumerate(bundles.tables[1:], start=1):
        starts = bundles.starts_by_person(number)
        counts.append(np.diff(starts))
        for j in range(min(CUT_ROWS, int(counts[-1].max(initial=0)))):
            has = counts[-1] > j
            for codes in rows.matrix.codes.T:
                value = np.zeros(bundles.people, np.int32)
                value[has] = codes[starts[:-1][has] + j] + 1
                values.append(value)
    return values + counts


def _flat(bundles: Bundles) -> tuple[cuts.FlatBundles, int, int]:
    """What the cutting loop takes, and how many spans and losses a template may have."""
    people, *others = bundles.tables
    starts = [bundles.starts_by_person(t) for t in range(1, len(bundles.tables))]
    cell, column, span, slot = 0, people.matrix.attributes, people.matrix.attributes, 0
    tables = np.zeros((len(others), 5), np.int64)
    for t, rows in enumerate(others):
        d = rows.matrix.attributes
        tables[t] = cell, d, column, span, slot
        most = int(np.diff(starts[t]).max(initial=0))
        cell, column = cell + rows.matrix.codes.size, column + d
        span, slot = span + most * d, slot + most
    cells = [np.zeros(0, np.int32), *(rows.matrix.codes.ravel() for rows in others)]
    flat = cuts.FlatBundles(
        people.matrix.codes,
        np.concatenate(cells),
        np.array(starts, dtype=np.int64).reshape(len(others), bundles.people + 1),
        tables,
        np.array([rows.row_weight for rows in others]),
        costs_of(joined([rows.matrix for rows in bundles.tables])),
    )
    return flat, span, slot


def joined(matrices: list[Matrix]) -> Matrix:
    """The columns of several matrices, without records."""
    nodes = np.cumsum([0, *(len(m.parent) for m in matrices)])
    base = [np.where(m.base < 0, -1, m.base + at) for m, at in zip(matrices, nodes, strict=False)]
    parent = [
        np.where(m.parent < 0, -1, m.parent + at) for m, at in zip(matrices, nodes, strict=False)
    ]
    return Matrix(
        np.zeros((0, 0), np.int32),
        np.concatenate([m.scale for m in matrices]),
        np.concatenate(base),
        np.concatenate(parent),
        np.concatenate([m.last for m in matrices]),
        np.concatenate([m.width for m in matrices]),
    )


def with_columns(matrix: Matrix, columns: list[np.ndarray], reach: list[float]) -> Matrix:
    """The matrix with some more linear columns. reach: the width of each that costs 1."""
    beside = Matrix.from_columns(np.column_stack(columns), [*reach])
    return replace(joined([matrix, beside]), codes=np.column_stack((matrix.codes, beside.codes)))


# Step 3: alignment of rows, table by table from the people down.


def aligned(bundles: Bundles, classes: np.ndarray) -> Templates:
    """The template of each class. classes: (people,) numbered without gaps."""
    slots = [classes, *(np.full(rows.matrix.records, -1) for rows in bundles.tables[1:])]
    for number in range(1, len(bundles.tables)):
        slots[number] = slots_of_rows(bundles, number, slots[bundles.tables[number].parent])
    return Templates(tuple(slots))


def slots_of_rows(bundles: Bundles, number: int, above: np.ndarray) -> np.ndarray:
    """The slot of each row of a table. above: that of each row of the table over it."""
    rows = bundles.tables[number]
    members = np.argsort(above, kind="stable")[int((above < 0).sum()) :]
    sizes = np.bincount(above[members])
    starts = starts_of(sizes)
    counts = np.diff(rows.starts)[members]
    widths = np.minimum.reduceat(counts, starts[:-1]) if len(sizes) else np.zeros(0, np.int64)
    below, below_start, spared = np.zeros(0), np.zeros(0, np.int64), np.zeros(0)
    if bundles.below(number):
        leads = members[_first_least(counts, starts, widths)]
        spans, lead_spans = _spans(rows.starts, members), _spans(rows.starts, leads)
        lead_spans = np.repeat(lead_spans, sizes, axis=0)
        cells = counts * np.repeat(widths, sizes)
        below_start = np.cumsum(cells) - cells
        below = _price_below(bundles, number, spans, lead_spans)
        spared = _weight_below(bundles, number)
    codes, costs, ordered = rows.matrix.codes, costs_of(rows.matrix), rows.ordered
    taken = align(
        members, starts, widths, rows.starts, codes, costs, 0, below, below_start, spared, ordered
    )
    slots = np.full(rows.matrix.records, -1)
    slots[taken] = np.repeat(np.arange(int(widths.sum())), np.repeat(sizes, widths))
    return slots


def _first_least(counts: np.ndarray, starts: np.ndarray, least: np.ndarray) -> np.ndarray:
    """The first place of each run where the least count of the run stands."""
    places = np.where(
        counts == np.repeat(least, np.diff(starts)), np.arange(len(counts)), len(counts)
    )
    return np.minimum.reduceat(places, starts[:-1])


def _spans(starts: np.ndarray, members: np.ndarray) -> np.ndarray:
    """(m, 2) the rows of each member, from and up to."""
    return np.column_stack((starts[members], starts[members + 1]))


def _price_below(bundles: Bundles, number: int, rows: np.ndarray, leads: np.ndarray) -> np.ndarray:
    """What the rows below rows of a table cost beside those below other rows; see `price_below`."""
    total = np.zeros(0)
    for child in bundles.below(number):
        about = bundles.tables[child]
        inside = _price_below(bundles, child, about.starts[rows], about.starts[leads])
        codes, costs, weight = about.matrix.codes, costs_of(about.matrix), about.row_weight
        priced = price_below(rows, leads, about.starts, codes, costs, 0, inside, weight)
        total = priced if not len(total) else total + priced
    return total


# Step 4: classes that break a promise unite with the nearest, and are aligned anew.


def united(
    ordered: OrderedBundles,
    classes: np.ndarray,
    promises: BundlePromises,
    template: Callable[[np.ndarray], Templates],
) -> np.ndarray:
    """Classes of which each keeps every promise; nearest by people's cells and counts of rows.

    template: of people in classes; those of -1 are in none.
    """

    def hold(labels: np.ndarray, count: int) -> np.ndarray:
        return promises.holds(template(labels), count)

    bundles = ordered.bundles
    people = bundles.tables[0].matrix
    counts = [np.diff(bundles.starts_by_person(number)) for number in range(1, len(bundles.tables))]
    # far more than all else: people who have to stay apart unite only where nobody else is left
    prices = [1 / rows.row_weight for rows in bundles.tables[1:]]
    matrix = with_columns(people, [bundles.apart, *counts], [1 / (FAR * bundles.people), *prices])
    partition = Partition(classes.astype(np.int32), int(classes.max()) + 1)
    united = merge_failing(matrix, partition, hold).labels
    first = np.unique(united, return_index=True)[1]
    if (bundles.apart[first][united] != bundles.apart).any():
        raise InfeasibleError(
            "no classes keep every promise where people stay apart by the day of the week of their"
            " anchor; promise less, or leave out 'keep' of the anchor"
        )
    return united


def _weight_below(bundles: Bundles, number: int) -> np.ndarray:
    """What is lost below each row of a table where it has no slot, (N,) float64."""
    total = np.zeros(bundles.tables[number].matrix.records)
    for child in bundles.below(number):
        rows = bundles.tables[child]
        each = rows.row_weight + _weight_below(bundles, child)
        total += np.bincount(rows.parents, weights=each, minlength=len(total))
    return total


def bundle_loss(bundles: Bundles, templates: Templates, weight: np.ndarray | None = None) -> float:
    """Widths of all published cells, 1 for those withheld, by the original quasi cells.

    weight: (people,) float64, of each; 0 for whoever has no slot. By default all count alike.
    """
    lost, cells = 0.0, 0.0
    of_person = np.ones(bundles.people) if weight is None else weight
    for number, rows in enumerate(bundles.tables):
        d, slots = rows.matrix.attributes, templates.slots[number]
        covered = templates.covered[number]
        of_row = np.repeat(of_person, np.diff(bundles.starts_by_person(number)))
        partition = Partition(covered.astype(np.int32), int(slots.max(initial=-1)) + 1)
        losses = np.append(losses_of(rows.matrix, partition), d)  # the last is of withheld rows
        weights = np.bincount(slots + 1, of_row, len(losses))
        lost += weighted_sum(np.roll(weights, -1), losses)
        cells += d * float(weights.sum())
    return lost / max(cells, 1)
