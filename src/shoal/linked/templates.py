"""From linked tables to the templates of their classes, every promise kept slot by slot."""

from dataclasses import dataclass, replace

import numpy as np

from shoal.data.bundles import BundleRows, Bundles, Templates
from shoal.data.classes import Classes
from shoal.data.encoding import EncodedAttribute
from shoal.data.linked import ANCHOR, PEOPLE, Known, LinkedTables
from shoal.policy.consistency import build_promise
from shoal.policy.problem import LinkedProblem
from shoal.privacy.promises import BoundPromises
from shoal.protocols import BundlePromises

BY_PERSON = "holder-share"
"""The promise that is asked of a class's people, in whichever slots their rows are."""


def bundles_of(tables: LinkedTables) -> Bundles:
    """Everybody's rows as methods see them, in the order of the tree; not what nobody knows."""
    names = [table.name for table in tables.tree.tables if table.known is not Known.NONE]
    rows = tuple(
        BundleRows(
            tables.rows[name].matrix,
            -1 if name == PEOPLE else names.index(tables.tree[name].parent or PEOPLE),
            tables.rows[name].starts,
            tables.tree[name].weight,
            tables.tree[name].ordered,
        )
        for name in names
    )
    bundles = Bundles.of(rows)
    if tables.tree.anchor is None or not tables.tree.anchor.keeps_weekday:
        return bundles
    days = anchor_of(tables).value_of_code()[anchor_of(tables).codes]
    return replace(bundles, apart=np.where(np.isnan(days), 7, days % 7).astype(np.int64))


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
            found[table.name] = np.where(is_shown, classes, -1)
        else:
            found[table.name] = next(slots)
    return found


def anchor_of(tables: LinkedTables) -> EncodedAttribute:
    """The day from which each person's dates count."""
    attributes = tables.people.encoded.attributes
    return next(one for one in attributes if one.attribute.name == ANCHOR)


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
        if self.is_by_person:
            shown = np.append(slots >= 0, np.ones(len(self.person) - len(slots), dtype=bool))
            labels = np.where(shown, classes[self.person], -1)
            return self.promises.holds(labels.astype(np.int32), count)
        kept = self.promises.holds(slots.astype(np.int32), int(slots.max(initial=-1)) + 1)
        broken = np.zeros(count, dtype=bool)
        shown = slots >= 0
        broken[classes[self.person[shown]][~kept[slots[shown]]]] = True
        return ~broken


class LinkedPromises(BundlePromises):
    """The promises of a policy about linked tables."""

    def __init__(self, tables: LinkedTables, problem: LinkedProblem) -> None:
        self.k = problem.policy.required_k or 1
        self._tables, self._asked = tables, _asked(tables, problem)
        self.needs_more_than_k = bool(self._asked)

    def holds(self, templates: Templates, count: int) -> np.ndarray:
        holds = np.ones(count, dtype=bool)
        slots = slots_of(self._tables, templates)
        for asked in self._asked:
            holds &= asked.holds(templates.classes, slots[asked.table], count)
        return holds


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
