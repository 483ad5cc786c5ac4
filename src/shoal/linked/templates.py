"""From linked tables to the templates of their classes, every promise kept slot by slot; and from
which days the moved anchors of a class are drawn.

With covered gaps that is the hull of its members' anchors. With exact gaps whoever knows a date d
of a person knows which rows may show it: those of an offset o for which d - o is a day that the
anchor may have, it being equally likely to be any day of the hull. So for every date of a member,
in each slot no row of the class fits, or those of k members do. As every member has one row of each
slot, a person is then found with probability 1 / k at most, in whichever slots the known row may
be: the fitting rows of a person are at most a k-th of all. Where the hull is too narrow for that,
it is widened, at most to the days of the whole study.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from shoal.data.classes import Classes, pairs_of
from shoal.data.linked import ANCHOR, PEOPLE, BundleRows, Bundles, Known, LinkedTables, Templates
from shoal.data.numbers import alike, run_entries
from shoal.data.recoding import Recoding, texts_of_classes
from shoal.policy.consistency import build_promise
from shoal.policy.problem import LinkedProblem
from shoal.privacy.promises import BoundPromises
from shoal.protocols import BundlePromises

MOST_KNOWN = 2
"""Known rows, of whose candidates promises about values are asked."""

BY_PERSON = "holder-share"
"""The promise that is asked of a class's people, in whichever slots their rows are."""


def bundles_of(tables: LinkedTables) -> Bundles:
    """Everybody's rows as methods see them, in the order of the tree; not what nobody knows."""
    names = names_of_bundles(tables)
    rows = tuple(
        BundleRows(
            tables.rows[name].matrix,
            -1 if name == PEOPLE else names.index(tables.tree[name].parent or PEOPLE),
            tables.rows[name].starts,
            tables.tree[name].weight,
            tables.tree[name].ordered,
            None if isinstance(tables.tree[name].known, Known) else tables.tree.known_rows,
            tables.tree[name].count_known,
        )
        for name in names
    )
    bundles = Bundles.of(rows)
    anchor = tables.tree.anchor
    if anchor is None or not (anchor.keeps_weekday or anchor.is_exact):
        return bundles
    days = tables.people.true_values[ANCHOR]
    apart = np.where(np.isnan(days), 7, days % step_of(tables))
    return replace(bundles, apart=apart.astype(np.int64))


def names_of_bundles(tables: LinkedTables) -> list[str]:
    """The tables that methods see, in their order."""
    return [table.name for table in tables.tree.tables if table.known is not Known.NONE]


def slots_of(tables: LinkedTables, templates: Templates) -> dict[str, np.ndarray]:
    """The slot of each row by table. Rows of which nobody knows anything stand in one slot for each
    class; they are withheld with the row that they hang from.
    """
    slots = iter(templates.slots)
    found: dict[str, np.ndarray] = {}
    for table in tables.tree.tables:
        if table.known is Known.NONE:
            is_shown = found[table.parent or PEOPLE][tables.rows[table.name].parents] >= 0
            classes = templates.classes[tables.person_of(table.name)]
            numbers = np.searchsorted(np.unique(classes[is_shown]), classes)  # some have no rows
            found[table.name] = np.where(is_shown, numbers, -1)
        else:
            found[table.name] = next(slots)
    return found


@dataclass(frozen=True)
class CandidateSets:
    """Rows that may be known, one or two at a time, and whom they fit.

    person, number: (h,) int64, who fits which set. nodes: (s, size) int64, of each set.
    """

    person: np.ndarray
    number: np.ndarray
    nodes: np.ndarray

    @classmethod
    def of(cls, person: np.ndarray, node: np.ndarray, size: int) -> "CandidateSets":
        """The sets of people's nodes. person, node: (i,) int64, of each published row."""
        order = np.lexsort((node, person))
        person, node = person[order], node[order]
        first = np.arange(len(person))
        chosen = first[:, None]
        if size == 2:
            later = np.searchsorted(person, person, side="right") - first - 1
            chosen = np.stack(run_entries(first + 1, later), axis=1)
        held = np.column_stack([node[chosen], person[chosen[:, 0]]])
        held = np.unique(held, axis=0)
        nodes, number = np.unique(held[:, :-1], axis=0, return_inverse=True)
        return cls(held[:, -1], number.reshape(-1), nodes)

    def rows(self, person: np.ndarray, people: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of all whom each set fits: its number, and the row. person: of each row."""
        order = np.argsort(person, kind="stable")
        begins = np.searchsorted(person[order], np.arange(people + 1))
        counts = np.diff(begins)[self.person]
        holder, place = run_entries(begins[self.person], counts)
        return self.number[holder], order[place]


@dataclass(frozen=True)
class _Asked:
    """Promises about columns of a table, asked of its slots or of classes.

    person: (n,) int32, of each of its rows, and at the end those who have none.
    """

    table: str
    promises: BoundPromises
    person: np.ndarray
    is_by_person: bool

    def holds(self, classes: np.ndarray, slots: np.ndarray, count: int) -> np.ndarray:
        """(count,) bool, for each class. classes: of each person. slots: of each row."""
        labels = self._labels(classes, slots)
        kept = self.promises.holds(labels, int(labels.max(initial=-1)) + 1)
        shown = labels >= 0
        return _unbroken(~kept[labels[shown]], classes[self.person[shown]], count)

    def holds_among(
        self,
        sets: CandidateSets,
        classes: np.ndarray,
        slots: np.ndarray,
        known: np.ndarray | None,
        count: int,
    ) -> np.ndarray:
        """(count,) bool, for each class, whether all whom known rows fit keep the promises.

        known: (rows,) int64, the node at which each row, or that above it, may be known, if any.
        """
        number, rows = sets.rows(self.person, len(classes))
        labels = self._labels(classes, slots)[rows]
        asked = labels >= 0
        if known is not None and not self.is_by_person:
            asked &= (sets.nodes[number] == known[rows, None]).any(axis=1)
        number, rows, labels = number[asked], rows[asked], labels[asked]
        groups = alike([number] if self.is_by_person else [number, labels], len(rows))
        kept = self.promises.holds_among(
            rows, groups.astype(np.int32), int(groups.max(initial=-1)) + 1
        )
        return _unbroken(~kept[groups], classes[self.person[rows]], count)

    def _labels(self, classes: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """(n,) int32, the slot of each row, or the class of its person."""
        if not self.is_by_person:
            return slots.astype(np.int32)
        shown = np.append(slots >= 0, np.ones(len(self.person) - len(slots), dtype=bool))
        return np.where(shown, classes[self.person], -1).astype(np.int32)


def _unbroken(is_broken: np.ndarray, classes: np.ndarray, count: int) -> np.ndarray:
    """(count,) bool, the classes with no row in a group that breaks a promise."""
    unbroken = np.ones(count, dtype=bool)
    unbroken[classes[is_broken]] = False
    return unbroken


class LinkedPromises(BundlePromises):
    """The promises of a policy about linked tables."""

    def __init__(self, tables: LinkedTables, problem: LinkedProblem) -> None:
        self.k = problem.policy.required_k or 1
        self._tables, self._asked = tables, _asked(tables, problem)
        anchor = tables.tree.anchor
        self._has_exact_gaps = anchor is not None and anchor.is_exact
        self.needs_more_than_k = bool(self._asked) or self._has_exact_gaps

    def holds(self, templates: Templates, count: int) -> np.ndarray:
        holds = np.ones(count, dtype=bool)
        slots = slots_of(self._tables, templates)
        for asked in self._asked:
            holds &= asked.holds(templates.classes, slots[asked.table], count)
        if self._has_exact_gaps:
            holds &= hulls_of(self._tables, slots, self.k).holds
        known = _known_nodes(self._tables, slots)
        for size in range(1, min(self._tables.tree.known_rows or 0, MOST_KNOWN) + 1):
            sets = CandidateSets.of(*_published(self._tables, known), size)
            for asked in self._asked:
                of_table = templates.classes, slots[asked.table], known.get(asked.table)
                holds &= asked.holds_among(sets, *of_table, count)
        return holds

    def shown(self, table: int, slots: np.ndarray) -> np.ndarray:
        name = names_of_bundles(self._tables)[table]
        attributes = self._tables.rows[name].encoded.attributes
        spans = Recoding.of(slots.astype(np.int32), int(slots.max(initial=-1)) + 1, attributes)
        cells = []
        for j, encoded in enumerate(attributes):
            ends, render = (spans.lo[:, j], spans.hi[:, j]), self._tables.tree[name].schema.render
            texts, text_of_slot = texts_of_classes(*ends, encoded, render)
            cells.append(np.unique(texts, return_inverse=True)[1][text_of_slot])
        return np.append(alike(cells, len(spans.lo)), -1)[slots]


def _known_nodes(tables: LinkedTables, slots: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The node of each row of a table with a number of known rows, and below, that of the row from
    which each row hangs; numbered over all tables, -1 where it is withheld.
    """
    found: dict[str, np.ndarray] = {}
    begun = 0
    for table in tables.tree.tables:
        if not isinstance(table.known, Known):
            own = slots[table.name]
            found[table.name] = np.where(own < 0, -1, own + begun)
            begun += int(own.max(initial=-1)) + 1
        elif table.parent in found:
            found[table.name] = found[table.parent][tables.rows[table.name].parents]
    return found


def _published(
    tables: LinkedTables, known: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """(i,) the person and the node of each published row that may be known."""
    names = [name for name in known if not isinstance(tables.tree[name].known, Known)]
    person = np.concatenate([tables.person_of(name) for name in names])
    node = np.concatenate([known[name] for name in names])
    return person[node >= 0], node[node >= 0]


def _asked(tables: LinkedTables, problem: LinkedProblem) -> list[_Asked]:
    found = []
    for declared in problem.declared:
        person = tables.person_of(declared.name).astype(np.int32)
        sensitive = tables.rows[declared.name].sensitive
        absent = np.setdiff1d(np.arange(tables.people.count, dtype=np.int32), person)
        for promise in problem.promises_of(declared):
            model = build_promise(promise)
            is_by_person = model.model == BY_PERSON and declared.name != PEOPLE
            people, columns = person, sensitive
            if is_by_person:
                people = np.append(person, absent)
                columns = {n: c.with_none(len(absent)) for n, c in sensitive.items()}
            whole = Classes(np.zeros(len(people), np.int32), 1, people, columns)
            found.append(_Asked(declared.name, BoundPromises([model], whole), people, is_by_person))
    return found


# The days from which moved anchors are drawn.


@dataclass(frozen=True)
class Hulls:
    """(classes,) int64 first and last day from which a class's moved anchors are drawn, 0 where a
    member has no anchor; (classes,) bool, whether no known date tells members apart.
    """

    first: np.ndarray
    last: np.ndarray
    holds: np.ndarray


def step_of(tables: LinkedTables) -> int:
    """Days between those that an anchor may have."""
    return 1 if tables.tree.anchor is None else tables.tree.anchor.step


def hulls_of(tables: LinkedTables, slots: Mapping[str, np.ndarray], k: int) -> Hulls:
    """The days of each class. slots: of each row, by table; those of people are the classes."""
    kept = slots[PEOPLE] >= 0
    classes, days = slots[PEOPLE][kept], tables.people.true_values[ANCHOR][kept]
    count = int(classes.max(initial=-1)) + 1
    least, greatest = np.full(count, np.inf), np.full(count, -np.inf)
    with np.errstate(invalid="ignore"):  # who has no anchor has none to compare
        np.minimum.at(least, classes, days)
        np.maximum.at(greatest, classes, days)
    has_all = np.isfinite(least)
    first, last = (np.where(has_all, end, 0).astype(np.int64) for end in (least, greatest))
    if tables.tree.anchor is None or not tables.tree.anchor.is_exact:
        return Hulls(first, last, np.ones(len(first), dtype=bool))
    return _widened(tables, slots, Hulls(first, last, has_all), k)


def _widened(tables: LinkedTables, slots: Mapping[str, np.ndarray], hulls: Hulls, k: int) -> Hulls:
    """The narrowest hulls, in doubling steps to both sides, in which known dates tell nobody."""
    columns = list(_columns(tables, slots))
    step = step_of(tables)
    start, end = _study(tables)
    before = np.maximum(hulls.first - start, 0) // step * step
    behind = np.maximum(end - hulls.last, 0) // step * step
    first, last, more = hulls.first.copy(), hulls.last.copy(), 0
    while True:
        holds = np.ones(len(first), dtype=bool)
        for dates in columns:
            holds[dates.broken(first, last, step, k)] = False
        wider = ~holds & hulls.holds & (np.maximum(before, behind) > more)
        if not wider.any():
            return Hulls(first, last, holds)
        more = max(step, 2 * more)
        first[wider] = (hulls.first - np.minimum(more, before))[wider]
        last[wider] = (hulls.last + np.minimum(more, behind))[wider]


def _study(tables: LinkedTables) -> tuple[int, int]:
    """The first and the last day of the column that anchors are taken from, over all people."""
    anchor = tables.tree.anchor
    assert anchor is not None
    own = tables.people.true_values[ANCHOR][tables.person_of(anchor.table)]
    days = tables.rows[anchor.table].true_values[anchor.column] + own
    days = days[~np.isnan(days)]
    return (int(days.min()), int(days.max())) if len(days) else (0, 0)


@dataclass(frozen=True)
class _Dates:
    """One column of dates: what may be known, and what is published.

    known_class, known: (d,) int64, the class of a person and the date of a row of it. slot, klass,
    offset: (n,) int64, of each published row with a date.
    """

    known_class: np.ndarray
    known: np.ndarray
    slot: np.ndarray
    klass: np.ndarray
    offset: np.ndarray

    def broken(self, first: np.ndarray, last: np.ndarray, step: int, k: int) -> np.ndarray:
        """The classes in which 1..k - 1 rows of some slot fit a known date."""
        if not len(self.slot):
            return self.slot
        far = int(max(np.ptp(self.offset), 0)) + 1
        base, least = 3 * far, int(self.offset.min())
        keys = np.sort((self.slot * step + self.offset % step) * base + self.offset - least)
        slots, place = np.unique(self.slot, return_index=True)
        slots = slots[np.argsort(self.klass[place], kind="stable")]
        begins = np.searchsorted(np.sort(self.klass[place]), np.arange(len(first) + 1))
        counts = np.diff(begins)[self.known_class]
        known, place = run_entries(begins[self.known_class], counts)
        slot, klass, date = slots[place], self.known_class[known], self.known[known]
        # days of other weeks never meet, as all of a class share the day of the week
        series = (slot * step + (date - first[klass]) % step) * base
        earliest, latest = (
            series + np.clip(date - day[klass] - least, -far, 2 * far - 1) for day in (last, first)
        )
        fitting = np.searchsorted(keys, latest, "right") - np.searchsorted(keys, earliest, "left")
        return klass[(fitting > 0) & (fitting < k)]


def _columns(tables: LinkedTables, slots: Mapping[str, np.ndarray]) -> Iterator[_Dates]:
    """Every column of dates, with the rows of people in classes."""
    anchors = tables.people.true_values[ANCHOR]
    for name, columns in tables.tree.dates.items():
        person = tables.person_of(name)
        klass = slots[PEOPLE][person].astype(np.int64)
        for column in columns:
            offset = tables.rows[name].true_values[column]
            dates = offset + anchors[person]
            known = np.flatnonzero((klass >= 0) & ~np.isnan(dates))
            shown = known[slots[name][known] >= 0]
            classes, dates_known, _ = pairs_of(klass[known], dates[known].astype(np.int64))
            slot, offsets = slots[name][shown].astype(np.int64), offset[shown].astype(np.int64)
            yield _Dates(classes, dates_known, slot, klass[shown], offsets)
