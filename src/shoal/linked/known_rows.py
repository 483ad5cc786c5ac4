"""At which nodes rows are published so that whoever knows m of a person's finds k people.

Ours, after the a-priori search of Terrovitis, Mamoulis and Kalnis (Privacy-preserving
anonymization of set-valued data, VLDB 2008), but with a node `other X` for the values under X that
are not published themselves.

Theorem. Let one function f map the row values of a class to published nodes, and publish at most
c(N) rows of each person at a node N. If every multiset of at most m nodes that some member
publishes is published by at least k members, then at least k members fit any m known rows K of a
person of the class. Proof: the person publishes f(K) but for rows beyond c, which nobody publishes,
and nodes that are withheld from the whole class, which drop out of K. What is left is a multiset of
at most m nodes that a member publishes. So k members publish it, and nothing in K tells them apart:
not even which rows of K hang from the same row of a table known as a whole, since rows below
different slots share no node, and each member has one row in a slot.

The cells of N cover all rows that f maps there, also those that nobody publishes. Else whoever
finds such a row in the cells of another node alone looks for the wrong people.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from shoal.data.classes import pairs_of
from shoal.data.partition import Matrix
from shoal.errors import InputError
from shoal.linked.kernels import known_sets
from shoal.search.segments import span_costs


@dataclass(frozen=True)
class ValueTrees:
    """Where rows may be published: nodes over values, each with all that is under its parent.

    leaf: (n,) int64, the node of each row's own value; group: (n,) int64, rows of different ones
    never share a node, though they may share the tree. parent: (nodes,) int64, -1 at a root. first,
    last: (nodes,) int64, in the order of values; a node lies below another if its span does.
    width: (nodes,) float64, what it costs to publish a row there.
    """

    leaf: np.ndarray
    group: np.ndarray
    parent: np.ndarray
    first: np.ndarray
    last: np.ndarray
    width: np.ndarray

    @classmethod
    def of(cls, matrix: Matrix, group: np.ndarray, person: np.ndarray, k: int) -> "ValueTrees":
        """A column with a hierarchy keeps it; all else is cut into boxes of k people or more.

        group: (n,) int64, -1 for rows that are in none. person: (n,) int64.
        """
        if matrix.attributes == 1 and matrix.is_tree(0):
            above = matrix.parent.astype(np.int64)
            leaf = matrix.base[0] + matrix.codes[:, 0].astype(np.int64)
            first, last = matrix.first.astype(np.int64), matrix.last.astype(np.int64)
            return cls(leaf, group, above, first, last, matrix.width)
        return _boxes(matrix, group, person, k)

    @classmethod
    def joined(cls, trees: list["ValueTrees"]) -> "ValueTrees":
        """The trees of several tables, none of whose rows share a group."""
        nodes = np.cumsum([0, *(len(tree.parent) for tree in trees)])
        groups = np.cumsum([0, *(int(tree.group.max(initial=-1)) + 1 for tree in trees)])
        moved = []
        for tree, node, first_group in zip(trees, nodes, groups, strict=False):
            group = np.where(tree.group < 0, -1, tree.group + first_group)
            parent = np.where(tree.parent < 0, -1, tree.parent + node)
            moved.append(replace(tree, leaf=tree.leaf + node, group=group, parent=parent))
        names = [one.name for one in fields(cls)]
        return cls(**{n: np.concatenate([getattr(tree, n) for tree in moved]) for n in names})

    @property
    def nodes(self) -> int:
        return len(self.parent)

    def roots(self, nodes: np.ndarray) -> np.ndarray:
        """The root above each of these nodes; -1 above -1."""
        found, parent = nodes.copy(), np.append(self.parent, -1)
        while (climbs := parent[found] >= 0).any():
            found[climbs] = parent[found[climbs]]
        return found


def _boxes(matrix: Matrix, group: np.ndarray, person: np.ndarray, k: int) -> ValueTrees:
    """The rows of each group, cut in halves at one column's values, again and again."""
    leaf = np.full(len(group), -1)
    parent: list[int] = []
    width: list[float] = []
    spans: list[tuple[int, int]] = []
    order = np.argsort(group, kind="stable")
    order = order[np.searchsorted(group[order], 0) :]
    ends = np.flatnonzero(np.diff(group[order])) + 1
    place = 0
    for rows in np.split(order, ends) if len(order) else []:
        waiting = [(rows, -1)]
        while waiting:
            rows, node_above = waiting.pop()
            node = len(parent)
            parent.append(node_above)
            costs = span_costs(matrix, rows)
            width.append(float(costs.sum()))
            halves = _halves(matrix, rows, person, costs, k)
            if halves is None:
                leaf[rows] = node
                spans.append((place, place))
                place += 1
            else:
                spans.append((place, -1))
                waiting += [(half, node) for half in halves[::-1]]
    first, last = np.array(spans, dtype=np.int64).reshape(-1, 2).T.copy()
    for node in range(len(parent) - 1, -1, -1):  # a parent stands before its children
        if parent[node] >= 0:
            last[parent[node]] = max(last[parent[node]], last[node])
    above = np.array(parent, dtype=np.int64)
    return ValueTrees(leaf, group, above, first, last, np.array(width, dtype=np.float64))


def _halves(
    matrix: Matrix, rows: np.ndarray, person: np.ndarray, costs: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows cut in two of k people each, nearest the middle: by the widest column that allows it."""
    for j in np.argsort(-costs, kind="stable").tolist():
        ordered = rows[np.argsort(matrix.codes[rows, j], kind="stable")]
        before = _people_so_far(person[ordered])[:-1]
        behind = _people_so_far(person[ordered[::-1]])[::-1][1:]
        changes = np.diff(matrix.codes[ordered, j]) > 0
        places = np.flatnonzero(changes & (before >= k) & (behind >= k)) + 1
        if len(places):
            middle = places[np.argmin(np.abs(2 * places - len(rows)))]
            return ordered[:middle], ordered[middle:]
    return None


def _people_so_far(person: np.ndarray) -> np.ndarray:
    """How many people there are among the first rows, for each number of them; (n,) int64."""
    is_new = np.zeros(len(person), dtype=np.int64)
    is_new[np.unique(person, return_index=True)[1]] = 1
    return np.cumsum(is_new)


SHARE = 20
"""At most one node in 20 of a class is raised at a time."""


@dataclass(frozen=True)
class KnownRows:
    """Rows of which an attacker knows some, in all tables that have a number.

    person, klass: (n,) int64, of each row; klass -1 for rows of nobody who is asked. counted: (n,)
    bool, where how many rows a person has is known as well. withheld: (n,) float64, what a row
    costs that is not published. drawn: (n,) int64, the order in which rows of one person are kept.
    """

    trees: ValueTrees
    person: np.ndarray
    klass: np.ndarray
    counted: np.ndarray
    withheld: np.ndarray
    drawn: np.ndarray

    @classmethod
    def joined(cls, tables: list["KnownRows"]) -> "KnownRows":
        """The rows of several tables, one table after the other."""
        return cls(
            ValueTrees.joined([one.trees for one in tables]),
            np.concatenate([one.person for one in tables]),
            np.concatenate([one.klass for one in tables]),
            np.concatenate([one.counted for one in tables]),
            np.concatenate([one.withheld for one in tables]),
            np.concatenate([one.drawn for one in tables]),
        )

    def published(self, k: int, m: int) -> tuple[np.ndarray, np.ndarray]:
        """The number of each row's node, (n,) int64, -1 where the whole class withholds it; whether
        the row is published there, (n,) bool.
        """
        asked = np.flatnonzero(self.klass >= 0)
        found, is_kept = np.full(len(self.klass), -1), np.zeros(len(self.klass), dtype=bool)
        if len(asked):
            nodes = _Nodes(self, asked, k, m)
            while (acting := nodes.too_few if nodes.too_few.any() else nodes.worst()).any():
                nodes.rise(acting)
            found[asked] = nodes.of_row
            is_kept[asked] = nodes.kept(self.person[asked], self.drawn[asked])
        return found, is_kept


class _Nodes:
    """The nodes at which rows are published, and which of them people hold.

    of_row: (n,) the node of each row, -1 where it is withheld. group, position: (nodes,) what each
    node is; klass, counted, withheld: as of its rows. begins, node, times: by person, the nodes
    that it holds, as for `known_sets.renumber`; people: where those of each class begin.
    """

    def __init__(self, about: KnownRows, rows: np.ndarray, k: int, m: int) -> None:
        self.trees, self._k, self._m = about.trees, k, m
        nodes = about.trees.group[rows] * about.trees.nodes + about.trees.leaf[rows]
        keys, first, self.of_row = np.unique(nodes, return_index=True, return_inverse=True)
        self.group, self.position = np.divmod(keys, about.trees.nodes)
        self.klass, self._counted = about.klass[rows[first]], about.counted[rows[first]]
        self._withheld = about.withheld[rows[first]]
        order = np.lexsort((about.person[rows], about.klass[rows]))
        is_new = np.diff(about.person[rows[order]], prepend=-1) != 0
        person = np.empty(len(rows), np.int64)
        person[order] = np.cumsum(is_new) - 1
        owner, self._node, self._times = pairs_of(person, self.of_row)
        self._begins = np.searchsorted(owner, np.arange(int(is_new.sum()) + 1))
        klass = about.klass[rows[order]][is_new]
        self._people = np.searchsorted(klass, np.arange(int(klass[-1]) + 2))
        self._is_open = np.ones(len(self._people) - 1, dtype=bool)
        self._count()

    def _count(self) -> None:
        """What follows from who holds what."""
        node, times, number = self._node, self._times, len(self.position)
        self.support = np.bincount(node, minlength=number)
        # rows of a person that are published at a node: those that k people have, all where they
        # have m, or where a count is known and none may be withheld
        most = np.ones(number, dtype=np.int64)
        for j in range(2, self._m + 1):
            enough = np.bincount(node[times >= j], minlength=number) >= self._k
            most += (most == j - 1) & enough
        self._most = np.where((most >= self._m) | self._counted, np.iinfo(np.int64).max, most)
        self._is_above = np.zeros(number, dtype=bool)
        for _, above in self._climb(np.arange(number)):
            self._is_above[above] = True
        self.too_few = self.support < self._k
        for _, above in self._climb(np.flatnonzero(self.too_few)):
            self.too_few[above] = False  # the lower ones rise first

    def _climb(self, nodes: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs of nodes, the second above the first, from the nearest upward."""
        keys = self.group * self.trees.nodes + self.position
        position = self.position[nodes]
        while len(nodes):
            position = self.trees.parent[position]
            nodes, position = nodes[position >= 0], position[position >= 0]
            key = self.group[nodes] * self.trees.nodes + position
            place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            is_there = keys[place] == key
            yield nodes[is_there], place[is_there]

    def worst(self) -> np.ndarray:
        """The nodes with most of the sets that fewer than k people hold, by what raising costs;
        none where every set is held by k people. Where no node of a set can rise, one is withheld.
        """
        if len(self.position) >> known_sets.NODE_BITS:
            raise InputError(
                "known: there are more values than can be compared; say 'known: 1' or 'known: all'"
            )
        parent = self.trees.parent[self.position]
        stuck = ~self._is_above & (parent < 0)
        times = np.minimum(self._times, self._most[self._node])
        held = self._begins, self._node, times
        rare = known_sets.rare_sets(self._people, *held, self._m, self._k, self._is_open, stuck)
        self._is_open[:] = False
        self._is_open[self.klass[rare > 0]] = True
        target = np.where(self._is_above, self.position, parent)
        width = np.where(stuck, self._withheld, self.trees.width[target])
        score = rare / (self.support * np.maximum(width, 1e-12))
        order = np.lexsort((self.trees.first[self.position], -score, self.klass))
        before = np.arange(len(order)) - np.searchsorted(self.klass[order], self.klass[order])
        nodes = np.bincount(self.klass)[self.klass[order]]
        chosen = np.zeros(len(score), dtype=bool)
        chosen[order] = before < np.maximum(nodes // SHARE, 1)
        return chosen & (rare > 0)

    def rise(self, acting: np.ndarray) -> None:
        """Raises nodes: one with others below it takes in that which fewest people hold; one
        without moves to its parent, and is withheld where it has none.
        """
        parent = self.trees.parent[self.position]
        position = np.where(acting & ~self._is_above, parent, self.position)
        owner = np.full(len(acting), -1)
        for node, above in self._climb(np.flatnonzero(~acting)):
            is_taken = acting[above] & (owner[node] < 0)
            owner[node[is_taken]] = above[is_taken]
        wide = self.trees.width[self.position]
        order = np.lexsort((self.trees.first[self.position], wide, self.support, owner))
        order = order[np.searchsorted(owner[order], 0) :]
        first = order[np.unique(owner[order], return_index=True)[1]]
        position[first] = self.position[owner[first]]
        self._renumber(position)

    def _renumber(self, position: np.ndarray) -> None:
        """Makes one node of those that have come to one position."""
        stays = np.flatnonzero(position >= 0)
        keys = self.group[stays] * self.trees.nodes + position[stays]
        first, new = np.unique(keys, return_index=True, return_inverse=True)[1:]
        number = np.full(len(position) + 1, -1)  # the last is of rows that are withheld
        number[stays] = new
        self.of_row = number[self.of_row]
        known_sets.renumber(self._begins, self._node, self._times, number)
        held = slice(int(self._begins[-1]))
        self._node, self._times = self._node[held], self._times[held]
        first = stays[first]
        self.group, self.position = self.group[first], position[first]
        self.klass = self.klass[first]
        self._counted, self._withheld = self._counted[first], self._withheld[first]
        self._count()

    def kept(self, person: np.ndarray, drawn: np.ndarray) -> np.ndarray:
        """(n,) bool, not for rows beyond those that may be published of a person at a node."""
        order = np.lexsort((drawn, person, self.of_row))
        changes = (np.diff(self.of_row[order]) != 0) | (np.diff(person[order]) != 0)
        begins = np.flatnonzero(np.append(True, changes))
        before = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
        is_kept = np.empty(len(order), dtype=bool)
        is_kept[order] = before < np.append(self._most, 0)[self.of_row[order]]
        return is_kept
