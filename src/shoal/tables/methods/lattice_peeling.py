"""Lattice peeling: the finest generalization that makes a crowd takes its crowds away, then the
next finest.

Ours, not from a paper. Full-domain generalization of the whole table is one vector of levels, one
level for each attribute (Samarati, IEEE TKDE 2001; Incognito, SIGMOD 2005). Applying it again to
what it suppressed is known as local recoding by iteration (Prasser, Bild, Eicher, Spengler, Kuhn:
ARX). We do not search for a vector at each turn but take all of them once, by ascending mean loss:

1. Every attribute has levels: a hierarchy's own (the highest node above a leaf that stands no
   higher than l), the values and 32, 24, 16, 12, 8, 6, 4, 3, 2, 1 equal bins of the range for a
   linear attribute. A vector's loss is the mean loss of its nodes over the records of the table.
2. Under each vector the records that are still there are grouped by their nodes. A group that keeps
   every promise becomes a class and leaves.
3. What is left in the end has fewer than k people, or breaks a promise together: each record of it
   joins the class that it costs least, by the shared repair.
4. Classes of 2k records and more are cut, as by the rounded partition.
5. Ours as there, `refine`: records of near classes change places while that lowers the loss; from
   `full` on they are annealed, and over hierarchies rebuilt. A thorough search without hierarchies,
   for k alone up to 20, begins with the whole table cut as in step 4, into classes a tenth larger:
   where classes may be resized, records to spare bring more than a better start.

Promise: a group becomes a class only if it holds k people, counted by the kernel, and
`Promises.holds` says yes where more is promised; steps 3 to 5 keep that by their own arguments. For
k alone the outcome is the same for any order of the records: groups are sets, and records of equal
codes, taken in the order they come, are the same to k.

Bounds: of more than `vectors` vectors we take those at ranks N * (i / vectors)**2, so that the fine
end, where most records leave, is nearly complete. Very large lattices lose levels before they are
written down.
"""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from shoal.data.hierarchies.hierarchy import climbed, heights_of
from shoal.data.numbers import weighted_sum
from shoal.data.option import parameter
from shoal.data.partition import Matrix, Partition
from shoal.data.progress import Progress
from shoal.protocols import Promises, SearchingPartitioner
from shoal.search.clustering import Targets, targets_of
from shoal.search.efforts import REFINE, REFINE_HELP, SECONDS, STEPS, STOP, Effort
from shoal.search.kernels import cuts, nearest_class, rounded_cut
from shoal.search.segments import (
    costs_of,
    repair,
    require_people,
    rows_of,
    rule_cutter,
    split_by_level,
    tiles,
)
from shoal.tables.kernels import peeling
from shoal.tables.methods.rounded_partition import EXACT_ROWS, Exchange

BINS = (32, 24, 16, 12, 8, 6, 4, 3, 2, 1)  # of a linear attribute's range
LARGEST_LATTICE = 200_000  # vectors written down; above, levels are dropped
MOST_STEPS = 500_000_000  # units times vectors: up to ten seconds
MOST_ASKED = 1_000_000_000  # records times vectors where more than k is promised: about as long
SMALL_CLASSES, MANY = 20, 100  # a thorough search of more than MANY begins with larger ones
RULES = (rounded_cut.SAME, True, True, rounded_cut.TIES_LEXICOGRAPHIC)
EXCHANGES = {"light": Exchange(64, 2, 1), "full": Exchange(2048, 8, 3)}


class Level(NamedTuple):
    """One level. node: (values,) int64, group of each value, without gaps; loss: (values,)."""

    node: np.ndarray
    loss: np.ndarray


class Units(NamedTuple):
    """Records that no step before the last needs to tell apart.

    rows: (units, d + 1) int32, rank of each attribute's value, and the unit's number.
    first: (units,) a record of each. amounts: (units,) int64 records.
    people: (units,) int32, empty where every record is its own person.
    of_record: (n,) the unit of each record. values: for each attribute, the code of each rank.
    """

    rows: np.ndarray
    first: np.ndarray
    amounts: np.ndarray
    people: np.ndarray
    of_record: np.ndarray
    values: list[np.ndarray]


@dataclass(frozen=True)
class LatticePeeling(SearchingPartitioner):
    """Parameters of the method."""

    name: ClassVar[str] = "lattice-peeling"
    paper: ClassVar[str] = (
        "ours; related: full-domain generalization repeated on what it suppressed, as in ARX"
    )

    vectors: int = parameter(
        "vectors of levels tried at most: fewer are faster and lose more", default=20_000, low=1
    )
    refine: str = parameter(REFINE_HELP, default="auto", choices=REFINE)
    seconds: int = field(default=60, metadata=SECONDS)
    steps: int = field(default=0, metadata=STEPS)
    stop: int = field(default=-1, metadata=STOP)

    def search(
        self, matrix: Matrix, promises: Promises, rng: np.random.Generator, progress: Progress
    ) -> Partition:
        """Classes of `promises.k` people that keep every promise; only refining draws numbers."""
        require_people(matrix, promises)
        units = units_of(matrix)
        k_alone = matrix.subjects is None and not promises.needs_more_than_k
        many_small = promises.k <= min(SMALL_CLASSES, matrix.records // MANY)
        if self.refine == "thorough" and many_small and k_alone and not (matrix.base >= 0).any():
            partition = Partition(np.zeros(matrix.records, dtype=np.int32), 1)
            tenth_more = (11 * promises.k + 9) // 10
            partition = self._cut_and_exchanged(matrix, units, partition, tenth_more)
            return self._effort.refined(matrix, partition, promises, rng, progress)
        levels = [levels_of(matrix, j, values) for j, values in enumerate(units.values)]  # step 1
        vectors = vectors_of(levels, units, self._most_vectors(matrix, units, promises))
        targets = targets_of(promises, matrix.records)
        asked = targets if matrix.subjects is None and len(targets.limit) else None
        group = _peel(units, levels, vectors, promises, asked)  # step 2
        partition = _with_leftovers(matrix, units, group, promises)  # step 3
        # with more to ask than k records, every cut is put to the promises
        if k_alone:
            partition = self._cut_and_exchanged(matrix, units, partition, promises.k)
        else:
            partition = _cut_where_promises_hold(matrix, partition, promises)
        return self._effort.refined(matrix, partition, promises, rng, progress)

    @property
    def _effort(self) -> Effort:
        return Effort(self.refine, self.seconds, self.steps, self.stop, resizes=True)

    def _cut_and_exchanged(
        self, matrix: Matrix, units: Units, partition: Partition, k: int
    ) -> Partition:
        """Classes of less than 2k; unless rebuilding follows, they exchange records."""
        partition = _side_by_side(matrix, partition)
        # class after class, equal records next to each other: cuts then keep them together
        rows = rows_of(matrix)[np.lexsort((units.of_record, partition.labels))]
        costs = costs_of(matrix)
        starts = _cut(rows, partition, k, costs)  # step 4
        effort = self._effort.for_k_alone(matrix.records)
        has_trees = bool((matrix.base >= 0).any())
        if effort in ("light", "exchange") or (effort in ("full", "thorough") and not has_trees):
            exchange = EXCHANGES["light" if effort == "light" else "full"]
            exchange.refine(rows, starts, costs)  # step 5
        return Partition.of_runs(rows[:, -1], starts)

    def _most_vectors(self, matrix: Matrix, units: Units, promises: Promises) -> int:
        """As many as asked for, fewer where they would take long; the same on any computer."""
        asked = MOST_ASKED // matrix.records if promises.needs_more_than_k else self.vectors
        return max(1, min(self.vectors, MOST_STEPS // len(units.rows), asked))


def units_of(matrix: Matrix) -> Units:
    """Equal records as one unit, by code; with several records a person, person by person."""
    n, d = matrix.codes.shape
    ranks = np.empty((n, d), dtype=np.int32)
    values = []
    for j in range(d):
        present, ranks[:, j] = _ranked(matrix.codes[:, j])
        values.append(present)
    if matrix.subjects is None:
        # nobody owns two records: equal records are one unit with an amount
        first, of_record, amounts = _distinct(ranks, [len(present) for present in values])
        people = np.zeros(0, dtype=np.int32)
    else:
        # a unit is a record; those of a person follow each other, so that people can be counted
        first = np.lexsort((*ranks.T[::-1], matrix.subjects))
        of_record = np.empty(n, dtype=np.int64)
        of_record[first] = np.arange(n)
        amounts, people = np.ones(n, dtype=np.int64), matrix.subjects[first]
    rows = np.column_stack([ranks[first], np.arange(len(first), dtype=np.int32)])
    return Units(
        np.ascontiguousarray(rows, dtype=np.int32), first, amounts, people, of_record, values
    )


def levels_of(matrix: Matrix, j: int, values: np.ndarray) -> list[Level]:
    """The levels of attribute j, the finest first, that group its values (codes that occur)
    differently; the last one puts all of them together.
    """
    levels: list[Level] = []
    candidates = _bins(matrix, j, values) if matrix.base[j] < 0 else _nodes(matrix, j, values)
    for node, loss in candidates:
        number = np.unique(node, return_inverse=True)[1]
        if not levels or number.max() < levels[-1].node.max():
            levels.append(Level(number, loss))
    return levels


def vectors_of(levels: list[list[Level]], units: Units, most: int) -> np.ndarray:
    """At most about `most` vectors of levels by ascending mean loss; the last is one group."""
    means = []
    for j, of_attribute in enumerate(levels):
        amounts = np.bincount(units.rows[:, j], units.amounts)
        means.append(np.array([weighted_sum(amounts, level.loss) for level in of_attribute]))
    kept = thinned(means, LARGEST_LATTICE)
    # the mean loss of every vector: sums over the product of all levels
    loss = np.zeros(1)
    for mean, chosen in zip(means, kept, strict=True):
        loss = np.add.outer(loss, mean[chosen]).ravel()
    order = np.argsort(loss, kind="stable")
    if len(order) > most:
        # denser among the cheap ones; from the last one, so that it is among them
        ranks = (len(order) - 1) * np.linspace(1, 0, most) ** 2
        order = order[np.unique(ranks.astype(np.int64))]
    columns = []
    for chosen in reversed(kept):  # the last attribute's level changes fastest
        columns.append(np.array(chosen)[order % len(chosen)])
        order = order // len(chosen)
    return np.stack(columns[::-1], axis=1)


def thinned(means: list[np.ndarray], most: int) -> list[list[int]]:
    """The levels of each attribute that are kept so that at most `most` vectors remain.

    means: loss of each level. First goes the level between the finest and the coarsest whose loss
    is nearest a neighbour's; when none is left between, the finest of the attribute that it gains
    least. Coarsest ones stay.
    """
    kept = [list(range(len(mean))) for mean in means]
    while np.prod([len(chosen) for chosen in kept], dtype=float) > most:
        between = [
            (min(mean[b] - mean[a], mean[c] - mean[b]), j, b)
            for j, (mean, chosen) in enumerate(zip(means, kept, strict=True))
            for a, b, c in zip(chosen, chosen[1:], chosen[2:], strict=False)
        ]
        finest = [
            (mean[chosen[1]] - mean[chosen[0]], j, chosen[0])
            for j, (mean, chosen) in enumerate(zip(means, kept, strict=True))
            if len(chosen) > 1
        ]
        _, j, dropped = min(between or finest)
        kept[j].remove(dropped)
    return kept


def _peel(
    units: Units,
    levels: list[list[Level]],
    vectors: np.ndarray,
    promises: Promises,
    targets: Targets | None = None,
) -> np.ndarray:
    """The group of each unit, (units,) int32; -1 where no vector finds one.

    targets: tell groups that are too far for t-closeness, so that nothing else is asked of them.
    """
    parts, place = _key_parts(levels)
    group = np.full(len(units.rows), -1, dtype=np.int32)
    rows, count, vector, ask = units.rows.copy(), 0, 0, promises.needs_more_than_k
    while True:
        vector, found = peeling.peel(
            rows,
            units.amounts,
            units.people,
            parts,
            place,
            vectors,
            vector,
            promises.k,
            ask,
            group,
            count,
        )
        if not ask or found == count:
            return group
        # groups that break a promise are taken apart again, the others numbered without gaps
        proposed = group >= count
        number = np.where(proposed, group - count, -1).astype(np.int32)
        holds = _held(number[units.of_record], found - count, promises, targets)
        renumbered = np.where(holds, count + np.cumsum(holds) - 1, -1)
        group[proposed] = renumbered[number[proposed]]
        count += int(holds.sum())
        rows = rows[group[rows[:, -1]] < 0]


def _held(
    labels: np.ndarray, count: int, promises: Promises, targets: Targets | None
) -> np.ndarray:
    """Whether each group holds; `Promises.holds` is asked about few of many."""
    if targets is None:
        return promises.holds(labels, count)
    near = np.flatnonzero(~targets.too_far(labels, count))
    holds = np.zeros(count, dtype=bool)
    if len(near):
        number = np.full(count + 1, -1, dtype=np.int32)  # the last one for those in no group
        number[near] = np.arange(len(near), dtype=np.int32)
        holds[near] = promises.holds(number[labels], len(near))
    return holds


def _with_leftovers(
    matrix: Matrix, units: Units, group: np.ndarray, promises: Promises
) -> Partition:
    """Units without a group in their nearest class; classes in order of their first unit."""
    # each unit alone is a class of its own, which the repair merges with its nearest
    alone = group < 0
    group[alone] = group.max(initial=-1) + 1 + np.arange(alone.sum(), dtype=np.int32)
    partition = repair(matrix, Partition(group[units.of_record], int(group.max()) + 1), promises)
    numbered = Partition.of(partition.labels[units.first])
    return Partition(numbered.labels[units.of_record], numbered.count)


def _key_parts(levels: list[list[Level]]) -> tuple[np.ndarray, np.ndarray]:
    """What each value of each level adds to a group's key, and where the parts of (attribute,
    level) start.

    Keys are mixed-radix numbers where 64 bits hold them. Else the parts are scrambled, and two
    groups of m share a key with a chance of m**2 / 2**65; they would be one class: a loss, never a
    broken promise.
    """
    radices = [int(of_attribute[0].node.max()) + 1 for of_attribute in levels]
    exact = np.prod(radices, dtype=float) < 2.0**63
    place = np.zeros((len(levels), max(map(len, levels))), dtype=np.int64)
    parts, used, unit = [], 0, 1
    for j, of_attribute in enumerate(levels):
        for number, level in enumerate(of_attribute):
            place[j, number] = used
            used += len(level.node)
            parts.append(
                level.node.astype(np.uint64) * np.uint64(unit)
                if exact
                else _scrambled(j, level.node)
            )
        unit *= radices[j] if exact else 1
    return np.concatenate(parts), place


def _scrambled(j: int, node: np.ndarray) -> np.ndarray:
    """A 64-bit number for each node of attribute j (splitmix64: Steele, Lea, Flood 2014)."""
    mixed = ((np.uint64(j + 1) << np.uint64(32)) + node.astype(np.uint64)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _nodes(matrix: Matrix, j: int, values: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each level of a hierarchy, the node above each value no higher than it, and its loss."""
    node = matrix.base[j] + values.astype(np.int64)
    height = heights_of(matrix.parent)
    levels = []
    for level in range(int(height.max(initial=0)) + 1):
        node = climbed(node, matrix.parent, height, level)
        levels.append((node, matrix.width[node]))
    return levels


def _bins(matrix: Matrix, j: int, values: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The values of a linear attribute, then ever fewer equal bins of its range; and losses."""
    offset = values.astype(np.int64) - int(values[0])
    levels = [(np.arange(len(values)), np.zeros(len(values)))]
    for bins in BINS:
        bin_of = offset * bins // (int(offset[-1]) + 1)
        first = np.searchsorted(bin_of, bin_of, side="left")
        last = np.searchsorted(bin_of, bin_of, side="right") - 1
        levels.append((bin_of, (offset[last] - offset[first]) * matrix.scale[j]))
    return levels


def _ranked(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The codes that occur, ascending, and each record's rank; sorts only codes far apart."""
    least = int(codes.min())
    reach = int(codes.max()) - least + 1
    if reach > 4 * len(codes) + 1024:
        return np.unique(codes, return_inverse=True)
    offset = codes - np.int32(least)
    present = np.bincount(offset, minlength=reach) > 0
    return np.flatnonzero(present) + least, (np.cumsum(present) - 1)[offset]


def _distinct(ranks: np.ndarray, radices: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct rows in lexicographic order: a record of each, that of each record, the amounts."""
    key, reach = np.zeros(len(ranks), dtype=np.int64), 1
    for j, radix in enumerate(radices):
        if reach * radix >= 2**62:
            _, key = np.unique(key, return_inverse=True)
            reach = int(key.max()) + 1
        key = key * radix + ranks[:, j]
        reach *= radix
    _, first, of_record, amounts = np.unique(
        key, return_index=True, return_inverse=True, return_counts=True
    )
    return first, of_record, amounts


def _side_by_side(matrix: Matrix, partition: Partition) -> Partition:
    """The classes, numbered so that near ones have near numbers: by halving at the medians of
    their middles.

    Refining looks for partners among near numbers only.
    """
    lo, hi, _ = nearest_class.boxes(matrix.codes, partition.labels, partition.count)
    order, _ = tiles(costs_of(matrix), lo, hi, 1)
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return Partition(number[partition.labels], partition.count)


def _cut(rows: np.ndarray, partition: Partition, k: int, costs: np.ndarray) -> np.ndarray:
    """Cuts classes of 2k and more to less than 2k, in place; where each starts in `rows`, and n."""
    nodes = np.concatenate([[0], np.cumsum(partition.sizes())])
    columns = np.ascontiguousarray(rows.T)
    starts = rounded_cut.cut(columns, nodes, k, RULES, EXACT_ROWS, costs)
    rows[:] = columns.T
    return starts


def _cut_where_promises_hold(matrix: Matrix, partition: Partition, promises: Promises) -> Partition:
    """Classes of 2k and more cut as long as both sides keep every promise."""
    rows = rows_of(matrix)[np.argsort(partition.labels, kind="stable")]
    ends = np.cumsum(partition.sizes())
    cutter = rule_cutter(matrix, rows, cuts.ROUNDED, promises.k)
    return split_by_level(matrix, rows, promises, cutter, np.concatenate([[0], ends[:-1]]), ends)
