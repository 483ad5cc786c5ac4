"""Classes as runs of rows: how methods split a table top down, and merge what breaks a promise.

The argument why the promises hold: a segment is only replaced by its parts where every part holds
`k` people (asked by the kernel that cut) and, where more than k is promised, `Promises.holds` says
yes to every part. Nothing else ever makes a class.

The shared repair is not from a paper; every method may be followed by it, whatever is promised.
Promise: every class holds, or InfeasibleError. Each round merges every failing class with another
one, so the failing classes become fewer until none is left or all records are one class.
Nearest: least loss added by the box of both, weighted by records; ties to the lowest class number.
In one round a failing class may join a class that holds, however many others do, or make a pair
with one failing class; then all merged classes are measured once. So a table where nearly every
class fails takes about as many rounds as doublings, not as many as there are classes.
Classes whose cells are equal are one class to readers of the release. A union of classes that
hold holds unless they share subjects; where subjects have several records, such classes are judged
together.
Promises about the release as a whole are not asked class by class; where one fails, classes with
fewer people than it can do with merge, too.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import isclose

import numpy as np

from shoal.data.classes import Classes
from shoal.data.numbers import weighted_sum
from shoal.data.partition import Matrix, Partition
from shoal.errors import InfeasibleError
from shoal.protocols import Promises
from shoal.search.kernels import cuts, nearest_class

CODES, ROWS, STABLE = "codes", "rows", "stable"
"""How records with equal codes at a cut are ordered: by their other attributes, the widest first;
as the table has them; or as earlier cuts left them, each of which sorted its segment stably."""

Cutter = Callable[[np.ndarray, np.ndarray, np.ndarray, int], tuple[np.ndarray, np.ndarray]]
"""`cutter(starts, ends, attempts, depth) -> (parts, flat ends of the parts)`; see `split_by_level`.
"""
Hold = Callable[[np.ndarray, int], np.ndarray]
"""`hold(labels, count)`: whether each class holds, as `Promises.holds`."""

TILE = 16
"""Classes in a tile of the search at least; at most twice as many."""


def require_people(matrix: Matrix, promises: Promises) -> None:
    """Raises InfeasibleError when the table has fewer people than one class needs."""
    if matrix.people < promises.k:
        remedy = f" or lower k to {matrix.people}" if matrix.people else ""
        raise InfeasibleError(
            f"k-anonymity with k = {promises.k}: the table has {matrix.people} subjects; add"
            f" records{remedy}"
        )


def rows_of(matrix: Matrix) -> np.ndarray:
    """Records as rows that a kernel may move: codes, record number and, if known, person."""
    d = matrix.attributes
    rows = np.empty((matrix.records, d + 1 if matrix.subjects is None else d + 2), dtype=np.int32)
    rows[:, :d] = matrix.codes
    rows[:, d] = np.arange(matrix.records, dtype=np.int32)
    if matrix.subjects is not None:
        rows[:, d + 1] = matrix.subjects
    return rows


def marks_of(matrix: Matrix) -> np.ndarray:
    """Room to mark the people that a kernel counted; empty where each record is its own."""
    return np.zeros(0 if matrix.subjects is None else matrix.people + 1, dtype=np.int64)


def loss_of(matrix: Matrix, partition: Partition) -> float:
    """What the classes lose: the loss of their spans on all attributes, summed over records."""
    return weighted_sum(partition.sizes(), losses_of(matrix, partition))


def losses_of(matrix: Matrix, partition: Partition) -> np.ndarray:
    """What a record of each class loses: its spans' loss on all attributes; (count,) float64."""
    lo, hi, _ = nearest_class.boxes(matrix.codes, partition.labels, partition.count)
    loss: np.ndarray = ((hi - lo.astype(np.int64)) * matrix.scale).sum(axis=1)
    for j in np.flatnonzero(matrix.base >= 0).tolist():
        loss += matrix.width[lowest_nodes(matrix, j, lo[:, j], hi[:, j])]
    return loss


def span_costs(matrix: Matrix, rows: np.ndarray) -> np.ndarray:
    """What each attribute loses if all of these rows show the same; (d,) float64."""
    codes = matrix.codes[rows]
    lo, hi = codes.min(axis=0), codes.max(axis=0)
    costs: np.ndarray = (hi - lo.astype(np.int64)) * matrix.scale
    for j in np.flatnonzero(matrix.base >= 0).tolist():
        costs[j] = matrix.width[lowest_nodes(matrix, j, lo[j : j + 1], hi[j : j + 1])[0]]
    return costs


def lowest_nodes(matrix: Matrix, j: int, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """The lowest node of attribute j's hierarchy over each span of codes, (m,) int32."""
    node = matrix.base[j] + lo
    while (short := matrix.last[node] < hi).any():
        node[short] = matrix.parent[node[short]]
    return node


def history_of(matrix: Matrix, least: int, ties: str) -> np.ndarray:
    """Room for what `kernels.cuts` has to know of the cuts that led to segments of `least` rows."""
    rows = 0 if ties == CODES else matrix.records // least + 1
    return np.full((rows, matrix.attributes + 1 if ties == STABLE else 1), -1, dtype=np.int32)


def cut_by_rule(matrix: Matrix, promises: Promises, rule: int, ties: str = CODES) -> Partition:
    """Cuts an attribute that allows it, again and again, by one rule of `kernels.cuts`.

    ties: CODES, ROWS or STABLE, for rules that share equal codes.
    """
    rows = rows_of(matrix)
    k = promises.k
    if promises.needs_more_than_k:
        return split_by_level(matrix, rows, promises, rule_cutter(matrix, rows, rule, k, ties))
    return partition_of(matrix, rows, *cut_to_end(matrix, rows, rule, k, k, ties))


def cut_to_end(
    matrix: Matrix, rows: np.ndarray, rule: int, least: int, people: int, ties: str = CODES
) -> tuple[np.ndarray, np.ndarray]:
    """Cuts segments of 2 * least rows and more while all sides keep people; starts and ends."""
    ends = np.empty(len(rows) // least + 1, dtype=np.int64)
    count = cuts.split_to_end(
        rows,
        matrix.attributes,
        rule,
        least,
        people,
        costs_of(matrix),
        marks_of(matrix),
        history_of(matrix, least, ties),
        ends,
    )
    return np.concatenate([[0], ends[: count - 1]]), ends[:count]


def rule_cutter(matrix: Matrix, rows: np.ndarray, rule: int, k: int, ties: str = CODES) -> Cutter:
    """The next cut of many segments by a rule of `kernels.cuts`, for `split_by_level`."""
    costs, seen, history = costs_of(matrix), marks_of(matrix), history_of(matrix, k, ties)
    cut_at = np.empty(len(rows), dtype=np.int64)

    def cutter(
        starts: np.ndarray, ends: np.ndarray, attempts: np.ndarray, depth: int
    ) -> tuple[np.ndarray, np.ndarray]:
        parts = cuts.propose(
            rows,
            starts,
            ends,
            attempts,
            matrix.attributes,
            rule,
            k,
            k,
            costs,
            seen,
            history,
            cut_at,
        )
        return parts, flat_ends(starts, parts, cut_at)

    return cutter


def split_by_level(
    matrix: Matrix,
    rows: np.ndarray,
    promises: Promises,
    cutter: Cutter,
    starts: np.ndarray | None = None,
    ends: np.ndarray | None = None,
) -> Partition:
    """Splits until no attempt is left: all open segments at once, their promises asked in one call.

    starts, ends: (s,) int64 segments to begin with; one of all rows when None.
    A refused segment comes back with its next attempt; an accepted one is replaced by its parts.
    The cutter counts its attempts up in `attempts` and reports 0 parts where none is left.
    """
    closed: list[np.ndarray] = []
    if starts is None or ends is None:
        starts, ends = np.zeros(1, dtype=np.int64), np.array([len(rows)], dtype=np.int64)
    attempts = np.zeros(len(starts), dtype=np.int64)
    depth = 0
    while len(starts):
        parts, part_ends = cutter(starts, ends, attempts, depth)
        part_starts = _starts_of_parts(starts, parts, part_ends)
        accepted = parts > 0
        if promises.needs_more_than_k:
            accepted[accepted] = _every_part_holds(
                rows, matrix, promises, parts[accepted], part_starts, part_ends
            )
        closed.append(np.stack([starts[parts == 0], ends[parts == 0]]))
        refused = (parts > 0) & ~accepted
        entering = np.repeat(accepted, parts)
        starts = np.concatenate([starts[refused], part_starts[entering]])
        ends = np.concatenate([ends[refused], part_ends[entering]])
        attempts = np.concatenate(
            [attempts[refused], np.zeros(int(entering.sum()), dtype=np.int64)]
        )
        depth += 1
    return partition_of(matrix, rows, *np.concatenate(closed, axis=1))


def flat_ends(starts: np.ndarray, parts: np.ndarray, cut_at: np.ndarray) -> np.ndarray:
    """The ends of all parts, segment by segment, from the places where a kernel leaves them."""
    first = np.cumsum(parts) - parts
    return cut_at[np.arange(int(parts.sum())) + np.repeat(starts - first, parts)]


def partition_of(
    matrix: Matrix, rows: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> Partition:
    """The segments as classes, numbered in order of their first record."""
    labels = np.full(matrix.records, -1, dtype=np.int32)
    cuts.number_segments(rows, matrix.attributes, starts, ends, labels)
    return Partition.of(labels)


def _starts_of_parts(starts: np.ndarray, parts: np.ndarray, part_ends: np.ndarray) -> np.ndarray:
    part_starts = np.empty_like(part_ends)
    part_starts[1:] = part_ends[:-1]
    split = parts > 0
    part_starts[(np.cumsum(parts) - parts)[split]] = starts[split]
    return part_starts


def _every_part_holds(
    rows: np.ndarray,
    matrix: Matrix,
    promises: Promises,
    parts: np.ndarray,
    part_starts: np.ndarray,
    part_ends: np.ndarray,
) -> np.ndarray:
    """For each cut segment, whether all its parts keep every promise; (len(parts),) bool."""
    if not len(parts):
        return np.zeros(0, dtype=bool)
    labels = np.full(matrix.records, -1, dtype=np.int32)
    cuts.number_segments(rows, matrix.attributes, part_starts, part_ends, labels)
    holds = promises.holds(labels, len(part_ends))
    return np.logical_and.reduceat(holds, np.cumsum(parts) - parts)


# What spans of codes cost, in the form that kernels take.


def costs_of(matrix: Matrix, further: float | None = None) -> np.ndarray:
    """What a span of codes costs, as the one table that kernels take: (d + nodes, 4) float64.

    A row for each attribute: loss per unit of code, row of its first node or -1, and the fraction
    that its losses are multiples of. Then one for each node: row of its parent or -1, last leaf
    covered, loss, 0. Row numbers and leaves are int64, kept as the bits of a float64.

    further: loss per unit of one more linear attribute, put after the matrix's own.
    """
    scale = matrix.scale if further is None else np.append(matrix.scale, further)
    base = matrix.base if further is None else np.append(matrix.base, -1)
    d = len(scale)
    costs = np.zeros((d + len(matrix.parent), 4))
    numbers = costs.view(np.int64)
    costs[:d, 0] = scale
    numbers[:d, 1] = np.where(base < 0, -1, base + d)
    for j in range(d):
        loss = float(scale[j])
        if base[j] >= 0:  # of a tree: of each leaf beyond a node's first
            loss = float(matrix.width[matrix.root(j)]) / max(matrix.leaves(j) - 1, 1)
        costs[j, 2:] = _fraction(loss)
    numbers[d:, 0] = np.where(matrix.parent < 0, -1, matrix.parent + d)
    numbers[d:, 1] = matrix.last
    costs[d:, 2] = matrix.width
    return costs


@cache
def _fraction(unit: float) -> tuple[int, int]:
    """The plain fraction that was rounded to this float: a weight over the width of a domain.

    Others with a denominator up to 2**32 differ by far more than rounding does.
    """
    found = Fraction(unit).limit_denominator(1 << 32)
    if not isclose(found, unit, rel_tol=1e-15):  # a weight of many digits
        found = Fraction(unit).limit_denominator(1 << 52)
    return found.numerator or 1, found.denominator


# The repair.


def repair(matrix: Matrix, partition: Partition, promises: Promises) -> Partition:
    """The partition with every class that fails `promises.holds` merged away; unchanged where none
    does.

    Suppressed records stay suppressed. Raises InfeasibleError when one class of everybody fails.
    """
    partition = merge_failing(matrix, partition, promises.holds)
    while partition.count and matrix.subjects is not None and promises.needs_more_than_k:
        united = as_read(matrix, partition)
        if united.count == partition.count or promises.holds(united.labels, united.count).all():
            break
        partition = merge_failing(matrix, united, promises.holds)
    labels, count = partition.labels, partition.count
    if promises.about_release and not promises.release_holds(labels, count):
        return merge_failing(matrix, partition, _of_enough_people(matrix, promises))
    return partition


def _of_enough_people(matrix: Matrix, promises: Promises) -> Hold:
    """Whether each class also has as many people as a promise about the whole can do with.

    A method that counts records may have made smaller ones where people have several.
    """

    def hold(labels: np.ndarray, count: int) -> np.ndarray:
        enough = Classes(labels, count, matrix.subjects).people() >= promises.k
        return promises.holds(labels, count) & enough

    return hold


def holds_as_read(matrix: Matrix, partition: Partition, promises: Promises) -> bool:
    """Whether every promise holds where classes that show the same cells are one."""
    united = as_read(matrix, partition)
    return bool(promises.holds(united.labels, united.count).all())


def as_read(matrix: Matrix, partition: Partition) -> Partition:
    """Classes that show the same cells, in bounds or lowest nodes, as one."""
    lo, hi, _ = nearest_class.boxes(matrix.codes, partition.labels, partition.count)
    for j in np.flatnonzero(matrix.base >= 0).tolist():
        lo[:, j] = hi[:, j] = lowest_nodes(matrix, j, lo[:, j], hi[:, j])
    number = np.unique(np.concatenate((lo, hi), axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    return Partition.of(np.where(partition.labels >= 0, number[partition.labels], -1))


def merge_failing(matrix: Matrix, partition: Partition, hold: Hold) -> Partition:
    """The partition with every class that fails `hold` merged away."""
    labels, count = partition.labels, partition.count
    failing = ~hold(labels, count)
    if not failing.any():
        return partition
    costs = costs_of(matrix)
    while failing.any():
        if count == 1:
            raise InfeasibleError(
                f"no partition keeps every promise: all {matrix.people} subjects in one class still"
                " fail; promise less (a lower k or l, a higher t) or add records"
            )
        renumbered = _merge_round(matrix.codes, costs, labels, count, failing)
        asked = np.zeros(int(renumbered.max()) + 1, dtype=bool)
        asked[renumbered[failing]] = True
        labels = np.where(labels >= 0, renumbered[labels], np.int32(-1))
        count = len(asked)
        failing = _failing_among(hold, labels, asked)
    return Partition.of(labels)


def _merge_round(
    codes: np.ndarray, costs: np.ndarray, labels: np.ndarray, count: int, failing: np.ndarray
) -> np.ndarray:
    """One merge for every failing class that finds a partner: the new number of each class."""
    lo, hi, sizes = nearest_class.boxes(codes, labels, count)
    order, ends = tiles(costs, lo, hi, TILE)
    partner = nearest_class.partners(lo, hi, sizes, failing, order, ends, costs)
    chosen = np.flatnonzero(failing & (partner >= 0))
    joined = np.arange(count, dtype=np.int32)
    joined[chosen] = np.where(
        failing[partner[chosen]], np.minimum(chosen, partner[chosen]), partner[chosen]
    )
    return np.unique(joined, return_inverse=True)[1].astype(np.int32)


def tiles(
    costs: np.ndarray, lo: np.ndarray, hi: np.ndarray, least: int
) -> tuple[np.ndarray, np.ndarray]:
    """The classes in tiles that lie close together, halved at the medians of their middles.

    least: classes in a tile; at most twice as many. Also where each tile ends.
    """
    count, d = lo.shape
    rows = np.empty((count, d + 1), dtype=np.int32)
    rows[:, :d] = lo + (hi.astype(np.int64) - lo) // 2
    rows[:, d] = np.arange(count)
    ends = np.empty(count // least + 1, dtype=np.int64)
    nobody, no_history = np.zeros(0, dtype=np.int64), np.zeros((0, d), dtype=np.int32)
    found = cuts.split_to_end(rows, d, cuts.HALVES, least, least, costs, nobody, no_history, ends)
    return rows[:, d].copy(), ends[:found]


def _failing_among(hold: Hold, labels: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Which classes fail: measured for those asked, the others hold as they did."""
    number = np.full(len(asked), -1, dtype=np.int32)
    number[asked] = np.arange(int(asked.sum()), dtype=np.int32)
    holds = hold(np.where(labels >= 0, number[labels], np.int32(-1)), int(asked.sum()))
    failing = np.zeros(len(asked), dtype=bool)
    failing[asked] = ~holds
    return failing
