"""From linked tables to the templates of their classes, every promise kept slot by slot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.data.bundles import BundleRows, Bundles, Templates
from shoal.data.classes import Classes
from shoal.data.linked import PEOPLE, LinkedTables
from shoal.policy.consistency import build_promise
from shoal.policy.linked import declared_tables, promises_of_table
from shoal.policy.policy import Policy
from shoal.privacy.promises import BoundPromises
from shoal.protocols import BundlePromises

BY_PERSON = "holder-share"
"""The promise that is asked of a class's people, in whichever slots their rows are."""


def bundles_of(tables: LinkedTables) -> Bundles:
    """Everybody's rows as methods see them, tables in the order of the tree."""
    names = [table.name for table in tables.tree.tables]
    return Bundles(
        tuple(
            BundleRows(
                tables.rows[about.name].matrix,
                -1 if about.parent is None else names.index(about.parent),
                tables.rows[about.name].starts,
                about.weight,
                about.ordered,
            )
            for about in tables.tree.tables
        )
    )


@dataclass(frozen=True)
class _Asked:
    """Promises about columns of one table, asked of its slots or of classes.

    person: (n,) int32, of each of its rows, and at the end those who have none.
    """

    table: int
    promises: BoundPromises
    person: np.ndarray
    is_by_person: bool

    def holds(self, templates: Templates, count: int) -> np.ndarray:
        """(count,) bool, for each class."""
        classes = templates.classes
        slots = templates.slots[self.table]
        if self.is_by_person:
            shown = np.append(slots >= 0, np.ones(len(self.person) - len(slots), dtype=bool))
            labels = np.where(shown, classes[self.person], -1)
            return self.promises.holds(labels.astype(np.int32), count)
        kept = self.promises.holds(slots.astype(np.int32), templates.count(self.table))
        broken = np.zeros(count, dtype=bool)
        shown = slots >= 0
        broken[classes[self.person[shown]][~kept[slots[shown]]]] = True
        return ~broken


class LinkedPromises(BundlePromises):
    """The promises of a policy about linked tables."""

    def __init__(self, tables: LinkedTables, policy: Policy) -> None:
        self.k = policy.required_k or 1
        self._asked = list(_asked(tables, policy))
        self.needs_more_than_k = bool(self._asked)

    def holds(self, templates: Templates, count: int) -> np.ndarray:
        holds = np.ones(count, dtype=bool)
        for asked in self._asked:
            holds &= asked.holds(templates, count)
        return holds


def _asked(tables: LinkedTables, policy: Policy) -> list[_Asked]:
    found = []
    for number, declared in enumerate(declared_tables(policy.model)):
        person = tables.person_of(declared.name).astype(np.int32)
        sensitive = tables.rows[declared.name].sensitive
        absent = np.setdiff1d(np.arange(tables.people.count, dtype=np.int32), person)
        for promise in promises_of_table(policy.model, declared):
            model = build_promise(promise)
            is_by_person = model.model == BY_PERSON and declared.name != PEOPLE
            people, columns = person, sensitive
            if is_by_person:
                people = np.append(person, absent)
                columns = {n: c.with_none(len(absent)) for n, c in sensitive.items()}
            whole = Classes(np.zeros(len(people), np.int32), 1, people, columns)
            found.append(_Asked(number, BoundPromises([model], whole), people, is_by_person))
    return found
