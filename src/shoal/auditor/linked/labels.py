"""Who is alike in all tables: exact labels of people by their cells and all of their rows.

The label of a row is that of its cells and of the multiset of the labels of its children; the label
of a person, of the cells, the counts and the rows of each table. Two people have one label only if
all of this is equal: labels are refined row by row and compared, nothing is hashed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, takewhile
from math import comb
from operator import mul
from typing import NamedTuple

import numpy as np

from shoal.auditor.sharing import sequences
from shoal.data.linked import PEOPLE, Known, LinkedTable, LinkedTables, parents_of
from shoal.data.numbers import alike
from shoal.errors import InputError
from shoal.policy.binding.linked import bound_linked, read_linked
from shoal.policy.problem import LinkedProblem

MOST_SETS = 10**7
"""Sets of known rows that are counted, in 2 GB; more are not judged."""

ALL = Known.ALL
AllOrSome = Known | int


@dataclass(frozen=True)
class ViewedTable:
    """What is seen of one table: its rows by parent, and what each shows.

    starts: (parents + 1,) as in `LinkedRows`. cells: by quasi column, (n,) whole numbers that are
        equal where rows show the same. known: what an attacker knows of its rows; count_known: with
        a number, whether how many there are as well. counted: as cells, what rows show of how many
        rows there are below them.
    """

    name: str
    parent: str | None
    starts: np.ndarray
    cells: Sequence[np.ndarray]
    known: AllOrSome = ALL
    counted: Sequence[np.ndarray] = ()
    count_known: bool = False

    @classmethod
    def of(
        cls,
        about: LinkedTable,
        starts: np.ndarray,
        cells: Sequence[np.ndarray],
        counted: Sequence[np.ndarray] = (),
    ) -> "ViewedTable":
        """As the policy says what is known of it."""
        own = about.name, about.parent
        return cls(*own, starts, cells, about.known, counted, about.count_known)

    @property
    def rows(self) -> int:
        return int(self.starts[-1])

    @property
    def counts(self) -> np.ndarray:
        return np.diff(self.starts)


@dataclass(frozen=True)
class View:
    """All tables as somebody sees them, people first and each behind its parent."""

    tables: Sequence[ViewedTable]

    def __getitem__(self, name: str) -> ViewedTable:
        return next(table for table in self.tables if table.name == name)

    @property
    def people(self) -> int:
        return self.tables[0].rows

    @cached_property
    def person_of(self) -> Mapping[str, np.ndarray]:
        """The person of each row of every table, (n,) int64."""
        return {table.name: self.path(table.name)[0] for table in self.tables}

    def knowing(self, known: Callable[[ViewedTable], AllOrSome]) -> "View":
        """The tables under other assumptions about what is known of each."""
        return View([replace(table, known=known(table)) for table in self.tables])

    @cached_property
    def knowing_all(self) -> "View":
        """The tables for whoever knows every row that any attacker could know."""
        return self.knowing(lambda t: t.known if isinstance(t.known, Known) else ALL)

    def above(self, name: str) -> list[str]:
        """The tables between people and a table."""
        parent = self[name].parent
        return [] if parent in (None, PEOPLE) else [str(parent), *self.above(str(parent))]

    def row_labels(self, name: str) -> np.ndarray:
        """(n,) int64 dense labels of a table's rows, with all that is known of what hangs on them.

        Of tables with a number of known rows nothing is told here: `known_sets` looks at them.
        """
        table = self[name]
        parts = [*table.counted, *(() if table.known is Known.COUNT else table.cells)]
        for child in self.tables:
            if child.parent == name and child.known in (ALL, Known.COUNT):
                parts.append(multisets(child.starts, self.row_labels(child.name)))
            elif child.parent == name and child.count_known and child.known is not Known.NONE:
                parts.append(child.counts)
        return alike(parts, table.rows)

    @cached_property
    def labels(self) -> np.ndarray:
        """(people,) int64 dense labels, equal where everything is that is known as a whole."""
        return self.row_labels(PEOPLE)

    def labels_with_above(self, name: str) -> np.ndarray:
        """(n,) int64 dense labels of a table's rows and of the rows that they hang from."""
        table, own = self[name], self.row_labels(name)
        if table.parent in (None, PEOPLE):
            return own
        above = self.labels_with_above(str(table.parent))
        return alike([above[parents_of(table.starts)], own], len(own))

    def slots_of(self, name: str) -> np.ndarray:
        """(n,) int64 dense labels, equal where rows can't be told apart by the rows that they hang
        from, either; nobody knows these of rows of which nothing is known.
        """
        is_known = self[name].known is not Known.NONE
        return self.labels_with_above(name) if is_known else self.row_labels(name)

    @cached_property
    def numbered(self) -> list[str]:
        """The tables of which a number of rows is known."""
        return [table.name for table in self.tables if isinstance(table.known, int)]

    @cached_property
    def known_items(self) -> np.ndarray:
        """(i,) int64 what each row of these tables shows, one table behind the other, as a number
        that differs between tables, and where people have different labels.
        """
        labels = self.labels[self.known_paths[0]]
        rows = [self.labels_with_above(name) for name in self.numbered]
        table = np.repeat(np.arange(len(rows)), [len(own) for own in rows])
        return alike([table, labels, np.concatenate(rows)], len(labels))

    def known_sets(self, size: int) -> "KnownSets":
        """What attackers who know `size` rows, 1 to 3, may know where a number of rows is known.

        Rows that show the same are not distinguished, but each of them counts; a person has each
        choice once. Raises InputError for more choices than `MOST_SETS`.
        """
        person, item = self.known_paths[0], self.known_items
        order = np.lexsort((item, person))
        counts = np.bincount(person) if len(person) else np.zeros(0, np.int64)
        values, times = np.unique(counts, return_counts=True)
        sets = sum(map(mul, (comb(count, size) for count in values.tolist()), times.tolist()))
        if sets > MOST_SETS:
            raise InputError(
                f"known: more than {MOST_SETS:,} sets of {size} rows could be known, so this is"
                " not judged; say a smaller number, or 'all'"
            )
        starts = np.concatenate(([0], np.cumsum(counts)))
        people, chosen = [np.zeros(0, np.int64)], [np.zeros((0, size), np.int64)]
        for count in np.unique(counts[counts >= size]).tolist():
            members = np.flatnonzero(counts == count)
            places = _choices(count, size)
            people.append(np.repeat(members, len(places)))
            chosen.append((starts[members][:, None, None] + places[None]).reshape(-1, size))
        rows = order[np.concatenate(chosen)]
        pattern = _pattern(rows, item, self.known_paths[1:-1])
        number = alike([*item[rows].T, *pattern], len(rows))
        kinds = int(number.max(initial=0)) + 1
        once = np.unique(np.concatenate(people) * kinds + number)
        return KnownSets(once // kinds, once % kinds, rows, number)

    @cached_property
    def known_paths(self) -> list[np.ndarray]:
        """`path` of all rows in `known_items`; each goes on with the row itself."""
        paths = [self.path(name) for name in self.numbered]
        return [
            np.concatenate([path[min(level, len(path) - 1)] for path in paths])
            for level in range(max(map(len, paths), default=0))
        ]

    def path(self, name: str) -> list[np.ndarray]:
        """(n,) int64 for each level, from people: the row that each row of a table hangs from, and
        at last the row itself, numbered over all tables.
        """
        table = self[name]
        begun = sum(one.rows for one in takewhile(lambda one: one.name != name, self.tables))
        above = [] if table.parent is None else self.path(table.parent)
        return [*(rows[parents_of(table.starts)] for rows in above), begun + np.arange(table.rows)]

    def asked_levels(self, name: str) -> list[int]:
        """The levels of `path` at which rows of a table belong to what is known of somebody: of a
        table with a number, or below one, that of the known rows; of others that of the person,
        and of one above that of its own rows, which known ones hang from.
        """
        chain = [*reversed(self.above(name)), name]
        known = [level for level, one in enumerate(chain, 1) if one in self.numbered]
        is_above = any(name in self.above(one) for one in self.numbered)
        return known or ([0, len(chain)] if is_above else [0])

    def known_rows(self, sets: "KnownSets", level: int) -> tuple[list[np.ndarray], np.ndarray]:
        """The rows at a level of `known_paths` that sets tell of, (a,) each once, and by what: the
        number of the set, and the item that hangs there.
        """
        rows = sets.choices.ravel()
        above = self.known_paths[level][rows]
        by = [np.repeat(sets.choice, sets.choices.shape[1])]
        if level > 0:
            by.append(self.known_items[rows])
        once = np.unique(alike([*by, above], len(rows)), return_index=True)[1]
        return [one[once] for one in by], above[once]

    @cached_property
    def fewest_alike(self) -> np.ndarray:
        """(people,) int64, among how many people each hides at least, whatever is known of them.

        Raises InputError where there are more sets of rows than `MOST_SETS`.
        """
        fewest = np.bincount(self.labels)[self.labels] if self.people else np.zeros(0, np.int64)
        known_rows = (one.known for one in self.tables if isinstance(one.known, int))
        for size in range(1, max(known_rows, default=0) + 1):
            sets = self.known_sets(size)
            np.minimum.at(fewest, sets.person, np.bincount(sets.number)[sets.number])
        return fewest


def view_of(tables: LinkedTables, knows: Callable[[str], bool] = lambda column: True) -> View:
    """The tables as they are, before a release. knows: by qualified name, which columns are known;
    of rows without a known column their number is.
    """
    viewed = []
    for about in tables.tree.tables:
        rows = tables.rows[about.name]
        known = [e for e in rows.encoded.attributes if knows(about.qualified(e.attribute.name))]
        viewed.append(ViewedTable.of(about, rows.starts, [e.ranks for e in known]))
    return View(viewed)


def multisets(starts: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(parents,) int64 dense, equal where parents have the same labels, each as often."""
    return sequences(starts, labels[np.lexsort((labels, parents_of(starts)))])


class KnownSets(NamedTuple):
    """Sets of rows, and who has which: (h,) the person and (h,) the number of the set, each pair
    once. Sets differ by their items, or by which of these hang from the same row.

    choices: (c, size) the rows of every choice, as `View.known_items` has them; choice: (c,) the
    number of its set.
    """

    person: np.ndarray
    number: np.ndarray
    choices: np.ndarray
    choice: np.ndarray


def _pattern(rows: np.ndarray, item: np.ndarray, above: Sequence[np.ndarray]) -> np.ndarray:
    """(pairs, choices) int64, which of the chosen rows hang from the same row, and at which level.

    rows: (choices, size), each by ascending item. Two choices of up to three rows with equal items
    can be put on each other, row by row, exactly if their pairs are equal as multisets: a triangle
    is told by its sides.
    """
    pairs = list(combinations(range(rows.shape[1]), 2)) if above else []
    one, other = (rows[:, [pair[end] for pair in pairs]].T.ravel() for end in (0, 1))
    shared = [level[one] == level[other] for level in above]
    sides = alike([item[one], item[other], *shared], len(one))
    return np.sort(sides.reshape(len(pairs), len(rows)), axis=0)


def _choices(count: int, size: int) -> np.ndarray:
    """(choices, size) int64, every choice of places among `count`, in ascending order."""
    if size == 2:  # without a tuple for each: a heavy user has millions
        return np.stack(np.triu_indices(count, 1), axis=1)
    return np.array(list(combinations(range(count), size)), dtype=np.int64).reshape(-1, size)


# What of a person is enough to find it: by table, and by the number of rows that are known.


class Exposure(NamedTuple):
    """How many people hide among fewer than k by their own cells and what is known of one table.

    known: `count`, a number of rows or `all`; below: None where there is too much to count.
    """

    table: str
    known: str
    below: int | None


def exposures(view: View, k: int) -> tuple[Exposure, ...]:
    """Which table, and how many of its rows, betray people: each table by itself, then together."""

    def below(assumed: View) -> int | None:
        try:
            return int((assumed.fewest_alike < k).sum())
        except InputError:
            return None

    def alone(name: str, known: AllOrSome) -> View:
        above = view.above(name)
        return view.knowing(
            lambda t: known if t.name == name else ALL if t.name in above else Known.NONE
        )

    found = [Exposure(PEOPLE, "all", below(view.knowing(lambda t: Known.NONE)))]
    for table in view.tables[1:]:
        steps: list[AllOrSome] = [Known.COUNT]
        if table.cells or table.counted:
            steps += [1, 2, ALL]
        found += [
            Exposure(table.name, str(known), below(alone(table.name, known))) for known in steps
        ]
    return tuple(found)


def initial_linked_risk(original: str, problem: LinkedProblem) -> dict[str, float]:
    """How easily people could be found in the original tables, by all that the policy says is
    known: share of people who are alone, and the chance to find one on average and at most.
    """
    tables = bound_linked(read_linked(original, problem).tables, problem)
    fewest = view_of(tables).fewest_alike
    return {
        "alone": float((fewest == 1).mean()),
        "mean": float((1 / fewest).mean()),
        "max": float(1 / fewest.min()),
    }
