"""t-closeness: the sensitive values of a class are distributed as in the whole table.

Li, Li, Venkatasubramanian. ICDE 2007; several attributes, the worst counts: Wang, Zhu, Chen, Chang.
Journal of Computer Science and Technology 33(6):1231-1242, 2018.
Reading: the whole table is every record that is in a class; suppressed records are in none. A
distribution weighs (subject, value) pairs: a subject counts once for each different value it has
there, so neither many equal records nor a large class outweigh anybody.
Joint, ours: the combinations of all listed attributes are the values; how far apart they are is
said below. A class that is close so is as close on each attribute alone, where every subject
has one record.
Reading: every text that stands for no value is a value of its own. Where values have an order or a
tree, all of them have one last place or leaf there; if several occur, a class is also as far from
the table as half the sum of |p - q| over "has a value" and each of these texts.
Reading: the paper has no suppressed records; with `reference: input`, as in ARX, the whole table is
every record of it, suppressed or not.
Reading: of a growing table no source says whether a class is compared with its release or with all
that is published; see `reference`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from shoal.data.classes import Classes, Closeness, SensitiveColumn
from shoal.data.hierarchies.hierarchy import Alias, Hierarchy
from shoal.data.numbers import alike
from shoal.data.option import parameter
from shoal.errors import InputError
from shoal.privacy import promise
from shoal.privacy.earth_mover import Distance, distance_to
from shoal.privacy.promise import INPUT, NEARLY, Promise, as_written, sign
from shoal.privacy.value_counts import ValueCounts, counts_of, sensitive_column, table_frequencies

RELEASE, TABLE = "release", "table"
REFERENCES = (RELEASE, TABLE, INPUT)
View = Callable[[SensitiveColumn], SensitiveColumn]


@dataclass(frozen=True)
class TCloseness(Promise):
    """Every class lies at most t from the whole table, on each attribute.

    The distance is the earth mover's, over the distance that each attribute declares: equal,
    ordered or hierarchical. It is convex in the class, so a union of classes is no farther than the
    farther of them, and everybody in one class is at distance 0.
    """

    model: ClassVar[str] = "t-closeness"
    letter: ClassVar[str] = "t"
    source: ClassVar[str] = "Li, Li, Venkatasubramanian 2007"
    definition: ClassVar[str] = (
        "In every class and for every listed attribute, the earth mover's distance between the"
        " values of the class and those of the whole table is at most t; with joint, between their"
        " combinations of values. A missing value counts as a value of its own."
    )
    monotone: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = False
    states_if_chosen: ClassVar[tuple[str, ...]] = ("joint", "reference")

    attributes: tuple[str, ...] = parameter("sensitive attributes; the worst counts")
    t: float = parameter("greatest distance of a class from the whole table", low=0.0, high=1.0)
    joint: bool = parameter(
        "whether combinations of the attributes' values are compared", default=False
    )
    reference: str = parameter(
        "what a class is compared with: the release, which is the records that are kept;"
        " input, which is all records, the suppressed ones, too; in a ledger: its release,"
        " or the whole published table as of it",
        default=RELEASE,
        choices=REFERENCES,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.joint and len(self.attributes) < 2:
            raise InputError(
                f"promise '{self.model}': joint needs two attributes at least; list them, or leave"
                " it out"
            )
        if self.joint and self.reference == TABLE:
            raise InputError(
                f"promise '{self.model}': joint can't be compared with a whole ledger; leave out"
                " joint or reference"
            )

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        return self.judged_against(classes, classes)

    def judged_against(self, table: Classes, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        """Distance and whether it holds for each class, compared with a table of the same codes.

        With `joint`, that is the same table, or one whose combinations have codes in both already.
        """
        if classes is table:
            classes = table = self.extended(table)
        return self._judge(classes, self._distances(table))

    @property
    def works_in_parts(self) -> bool:
        """Combinations of values are numbered over a whole table."""
        return not self.joint and super().works_in_parts

    def against(self, table: Classes) -> Callable[[Classes], np.ndarray]:
        distances = self._distances(table)
        return lambda classes: self._judge(classes, distances)[1]

    def extended(self, table: Classes) -> Classes:
        """The table with combinations of values as a sensitive column, where they are compared."""
        if not self.joint:
            return table
        columns = [
            view(sensitive_column(table, name))
            for name in self.attributes
            for view in self._views(table, name)
        ]
        name = self.compared[0]
        return replace(
            table,
            sensitive={**table.sensitive, name: joint_column(name, columns, table.labels >= 0)},
        )

    def closeness(self, table: Classes) -> tuple[Closeness, ...]:
        """The terms for each attribute, for methods that build classes towards it."""
        asked = []
        for name in self.compared:
            for view in self._views(table, name):
                column = view(sensitive_column(table, name))
                asked.append(Closeness(column, self._frequencies(table, column), self.t))
        return tuple(asked)

    def _views(self, table: Classes, name: str) -> tuple[View, ...]:
        """The ways to see an attribute, in each of which classes must be close.

        Where values have an order or a tree, texts that stand for no value have one place in it;
        if several occur, the share of each is compared besides.
        """
        column = sensitive_column(table, name)
        if column.distance == "equal":
            return (lambda column: column,)
        is_one = column.missing < 2
        if not is_one:
            often = self._frequencies(table, column)[column.values - column.missing :]
            is_one = int((often > 0).sum()) < 2
        more = () if is_one else (SensitiveColumn.missing_texts,)
        return (SensitiveColumn.with_missing_as_one, *more)

    def _frequencies(self, table: Classes, column: SensitiveColumn) -> np.ndarray:
        """How often each value counts in what classes are compared with; (values,) int64."""
        own = table_frequencies(table, column, self.compares_with_input)
        is_own = self.reference != TABLE or column.earlier is None
        return own if is_own else own + column.earlier

    @property
    def compared(self) -> tuple[str, ...]:
        """The sensitive columns whose distributions are compared."""
        return (" and ".join(self.attributes) + " together",) if self.joint else self.attributes

    def _distances(self, table: Classes) -> list[tuple[str, View, Distance]]:
        """To the distribution of every view among all records that are in a class."""
        seen = [(name, view) for name in self.compared for view in self._views(table, name)]
        return [
            (name, view, distance_to(asked.column, asked.frequencies))
            for (name, view), asked in zip(seen, self.closeness(table), strict=True)
        ]

    def _judge(
        self, classes: Classes, distances: Sequence[tuple[str, View, Distance]]
    ) -> tuple[np.ndarray, np.ndarray]:
        measured, holds = np.zeros(classes.count), np.ones(classes.count, dtype=bool)
        for name, view, to in distances:
            counts = counts_of(classes, view(sensitive_column(classes, name)))
            distance, close = _compare(counts, to, as_written(self.t))
            measured, holds = np.maximum(measured, distance), holds & close
        return measured, holds


def _compare(counts: ValueCounts, distance: Distance, t: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """Distance of every class, NaN where it has no record, and whether it is at most t, exactly.

    What is found of a class does not depend on the others: each is counted in whole numbers if its
    own size allows that.
    """
    size = counts.total()
    fits = 4.0 * float(distance.pairs) * float(distance.span) * size < promise.ROOM
    if fits.all():
        return _compare_whole(counts, size, distance, t)
    measured, holds = np.empty(len(size)), np.empty(len(size), dtype=bool)
    for chosen, compare in ((fits, _compare_whole), (~fits, _compare_floats)):
        classes = np.flatnonzero(chosen)
        if len(classes):
            found = compare(counts.only(classes), size[classes], distance, t)
            measured[classes], holds[classes] = found
    return measured, holds


def _compare_whole(
    counts: ValueCounts, size: np.ndarray, distance: Distance, t: Fraction
) -> tuple[np.ndarray, np.ndarray]:
    """`_compare` of classes whose costs are whole numbers of 64 bits."""
    cost, occupied = distance.cost(counts, np.int64), size > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        measured = cost / (float(distance.pairs) * float(distance.span) * size)
    holds = sign(cost, size * (distance.pairs * distance.span), t) <= 0
    return np.where(occupied, measured, np.nan), occupied & holds


def _compare_floats(
    counts: ValueCounts, size: np.ndarray, distance: Distance, t: Fraction
) -> tuple[np.ndarray, np.ndarray]:
    """`_compare` of classes, none of them empty, too large for that; exactly where it is close."""
    measured = distance.cost(counts, np.float64)
    measured = measured / (float(distance.pairs) * float(distance.span) * size)
    holds = measured <= float(t)
    near = np.flatnonzero(np.abs(measured - float(t)) <= NEARLY)
    cost_exactly = distance.cost(counts.only(near), object)
    holds[near] = (
        sign(cost_exactly, size[near].astype(object) * (distance.pairs * distance.span), t) <= 0
    )
    return measured, holds


# Several sensitive attributes as one: their combinations, and how far apart two of them are.
#
# Ours, not from a paper: the k-means++ t-closeness paper names the joint distribution as future
# work. Two combinations are as far apart as on the attribute where they are farthest. There, two
# values are
# - equal: 0 if they are the same, else 1;
# - hierarchical: height of their lowest common node over that of the root;
# - ordered: m values that occur are halved into 1, 2, 4, ... nearly equal runs; of the shortest run
#   that holds both, (its length - 1) / (m - 1), length meaning that of the longest run of that
#   halving.
# Every one of these is at least the distance that t-closeness takes on the attribute alone, so a
# class whose combinations are within t is within t on each attribute, where nobody has several
# records. All are distances on trees, and so is the greatest of them: combinations are the leaves
# of one hierarchy, and everything that is known of hierarchical attributes serves here. Distances
# are rounded up to whole units of 1 / UNITS.


UNITS = 100_800
"""Of the greatest distance: halves to tenths and hundredths of it are whole."""


def joint_column(
    name: str, columns: Sequence[SensitiveColumn], kept: np.ndarray
) -> SensitiveColumn:
    """The combinations of these columns as one hierarchical column.

    kept: (n,) bool, the records whose values count; the others get any code.
    """
    if not kept.any():
        return SensitiveColumn(name, np.zeros(len(kept), dtype=np.int32), 0)
    code = alike([column.codes[kept] for column in columns], int(kept.sum()))
    first = np.unique(code, return_index=True)[1]  # a record of each combination
    codes_of = [column.codes[kept][first] for column in columns]
    steps = [list(_steps(column, codes)) for column, codes in zip(columns, codes_of, strict=True)]
    heights, groups = _nested(steps, len(first))
    leaf = groups[0]
    tree = _tree(heights, [group[np.argsort(leaf)] for group in groups])
    codes = np.zeros(len(kept), dtype=np.int32)
    codes[kept] = leaf[code]
    return SensitiveColumn(name, codes, tree.leaves, "hierarchical", tree)


def _steps(column: SensitiveColumn, code: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Heights in units, falling, and the places that are one there or below; (combinations,)."""
    if column.distance == "hierarchical" and column.hierarchy is not None:
        tree = column.hierarchy
        for level in range(tree.height, -1, -1):
            yield (
                -(-UNITS * level // max(tree.height, 1)),
                tree.ancestors_at(level)[code].astype(np.int64),
            )
    elif column.distance == "ordered":
        distinct, rank = np.unique(code, return_inverse=True)
        values = len(distinct)
        for halvings in range((values - 1).bit_length() + 1):
            longest = -(-values >> halvings)
            yield (
                -(-UNITS * (longest - 1) // max(values - 1, 1)),
                (rank.reshape(-1) << halvings) // values,
            )
    else:
        yield UNITS, np.zeros(len(code), dtype=np.int64)
        yield 0, code.astype(np.int64)


def _nested(
    steps: list[list[tuple[int, np.ndarray]]], combinations: int
) -> tuple[list[int], list[np.ndarray]]:
    """Heights, rising from 0, and the group of every combination at each.

    Groups are numbered so that they nest in order.
    """
    heights = sorted({height for each in steps for height, _ in each}, reverse=True)
    groups: list[np.ndarray] = []
    waiting = [list(reversed(each)) for each in steps]
    finest = np.zeros(combinations, dtype=np.int64)
    for height in heights:
        for each in waiting:
            if groups and each[-1][0] <= height:
                # an attribute's step holds from its own height up to that of the step above
                continue
            while each[-1][0] > height:
                each.pop()
            finest = alike([finest, each[-1][1]], combinations)
        groups.append(finest)
    return heights[::-1], groups[::-1]


def _tree(heights: list[int], groups: list[np.ndarray]) -> Hierarchy:
    """The hierarchy whose nodes are these groups of leaves, without groups that add nothing.

    groups: for each height, (leaves,) int64, the group of each leaf; rising along the leaves.
    """
    leaves = len(groups[0])
    node = np.arange(leaves)
    firsts, lasts, levels, children = [node], [node], [np.zeros(leaves, dtype=np.int64)], []
    starts, count = node, leaves
    for height, group in zip(heights[1:], groups[1:], strict=True):
        own = group[starts]
        edge = np.flatnonzero(np.concatenate(([True], own[1:] != own[:-1])))
        members = np.diff(np.append(edge, len(own)))
        joins = members > 1
        above = np.where(joins, count + np.cumsum(joins) - 1, node[edge])
        inside = np.repeat(joins, members)
        children.append(np.stack([node[inside], np.repeat(above, members)[inside]]))
        ends = np.append(starts[edge][1:], leaves) - 1
        firsts.append(starts[edge][joins])
        lasts.append(ends[joins])
        levels.append(np.full(int(joins.sum()), height))
        node, starts, count = above, starts[edge], count + int(joins.sum())
    parent = np.full(count, -1, dtype=np.int32)
    for child, above in children:
        parent[child] = above
    # the root may stand lower than the greatest distance there is: its alias tells that distance
    return Hierarchy(
        ("",) * count,
        parent,
        np.concatenate(firsts).astype(np.int32),
        np.concatenate(lasts).astype(np.int32),
        (Alias(count - 1, UNITS, ""),),
        np.concatenate(levels).astype(np.int32),
    )
