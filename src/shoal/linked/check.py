"""A release of linked tables beside its original, by who knows whose each row is."""

from collections.abc import Mapping

import numpy as np

from shoal.auditor.linked.reading import LinkedRelease, ReleasedTable
from shoal.data.encoding import EncodedAttribute
from shoal.data.linked import PEOPLE, Keys, LinkedRows, LinkedTables
from shoal.data.regular_files import Json
from shoal.data.release import PublishedColumn
from shoal.data.schema import Role
from shoal.data.table import Table, as_text
from shoal.linked.recode import DraftTable


def faults_of(
    published: Mapping[str, Table],
    release: LinkedRelease,
    tables: LinkedTables,
    drafts: Mapping[str, DraftTable],
) -> dict[str, int]:
    """How many rows hang from another row than their own, show cells that do not cover their true
    values - days from their person's day, so gaps as well - or other values than the original.

    published: the files as read back. drafts: by table, the row behind each row of its file.
    """
    faults = {"rows": 0, "uncovered": 0, "changed": 0}
    grouped: dict[str, np.ndarray] = {}
    joins = tables.tree.keys != "none"
    for name, draft in drafts.items():
        about, rows, shown = tables.tree[name], tables.rows[name], release.tables[name]
        faults["changed"] += _changed(published[name], rows, draft.rows)
        if about.parent is not None and not joins:
            continue
        order = draft.rows
        if about.parent is not None:
            above = grouped[about.parent]
            place = np.full(tables.rows[about.parent].count, -1)
            place[above] = np.arange(len(above))
            parents = place[rows.parents[order]]
            order = order[np.argsort(parents, kind="stable")]
            hanging = np.bincount(parents, minlength=len(above))
            if len(shown.starts) != len(above) + 1 or (np.diff(shown.starts) != hanging).any():
                faults["rows"] += len(order)
                continue
        elif shown.rows != len(order):
            faults["rows"] += len(order)
            continue
        grouped[name] = order
        faults["uncovered"] += _uncovered(shown, rows, order, tables)
    return faults


def _uncovered(
    shown: ReleasedTable, rows: LinkedRows, order: np.ndarray, tables: LinkedTables
) -> int:
    """Rows with a cell or a count that does not cover the truth. order: as the rows were read."""
    wrong = np.zeros(len(order), dtype=bool)
    columns = {column.name: column for column in shown.columns}
    for encoded in rows.encoded.attributes:
        column = columns[encoded.attribute.name]
        wrong |= ~_covers(column, _values(encoded)[order])
    for below, column in shown.counts.items():
        wrong |= ~_covers(column, tables.rows[below].counts[order].astype(np.float64))
    return int(wrong.sum())


def _values(encoded: EncodedAttribute) -> np.ndarray:
    """(n,) float64, the number, place or leaf of each row, NaN for none."""
    return encoded.value_of_code()[encoded.codes]


def _covers(column: PublishedColumn, values: np.ndarray) -> np.ndarray:
    """(n,) bool, whether each cell covers the value."""
    lo, hi = column.lo[column.codes], column.hi[column.codes]
    is_mark, is_none = np.isneginf(lo), np.isnan(lo)
    return is_mark | (is_none & np.isnan(values)) | ((lo <= values) & (values <= hi))


def _changed(published: Table, rows: LinkedRows, order: np.ndarray) -> int:
    """Rows with a sensitive or plain value that is not their own. order: of the file."""
    if published.records != len(order):
        return len(order)
    wrong = np.zeros(len(order), dtype=bool)
    for attribute in rows.about.schema.published:
        if attribute.role in (Role.SENSITIVE, Role.PLAIN):
            name = attribute.name
            own = as_text(rows.table.frame[name]).gather(order).fill_null("")
            shown = as_text(published.frame[name]).fill_null("")
            wrong |= (own != shown).to_numpy()
    return int(wrong.sum())


# Who pays: how unevenly the loss falls on people.


def paid_by_people(release: LinkedRelease, tables: LinkedTables, owners: np.ndarray) -> Json | None:
    """Mean loss of the tenth of people who lose most and of the half who lose least, each over all
    of their rows; by table below people, of how many people rows are withheld, and how many of
    these have none left. None where the release does not say whose a row is.

    owners: (people,) the person of the original behind each published one.
    """
    if tables.tree.keys is Keys.NONE:
        return None
    losses = np.sort(person_losses(release, tables, owners))
    found: Json = {
        "tenth": float(losses[-max(len(losses) // 10, 1) :].mean()),
        "half": float(losses[: max(len(losses) // 2, 1)].mean()),
        "people": {},
    }
    for name in release.tables:
        had, left = _rows_of_people(release, tables, owners, name)
        if name != PEOPLE:
            lose, have_none = had > left, (had > 0) & (left == 0)
            found["people"][name] = {"losing": int(lose.sum()), "without": int(have_none.sum())}
    return found


def person_losses(release: LinkedRelease, tables: LinkedTables, owners: np.ndarray) -> np.ndarray:
    """(people,) float64 in [0, 1], by person of the original: the widths of their published cells,
    and 1 for each cell of a withheld row, by all of their quasi cells; 0 for who has none. Tables
    whose rows are nobody's for their readers are left out.

    owners: as in `paid_by_people`.
    """
    lost, cells = np.zeros(len(owners)), np.zeros(len(owners))
    for about in filter(release.tree.is_joined, release.tree.tables):
        name, shown = about.name, release.tables[about.name]
        had, left = _rows_of_people(release, tables, owners, name)
        person = owners[release.view.person_of[name]]
        for column in shown.columns:
            widths = column.widths[column.codes]
            lost += np.bincount(person, widths, len(owners)) + (had - left)
            cells += had
    return lost / np.maximum(cells, 1)


def _rows_of_people(
    release: LinkedRelease, tables: LinkedTables, owners: np.ndarray, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """(people,) int64, by person of the original: rows of a table, and those that are published."""
    had = np.bincount(tables.person_of(name), minlength=len(owners))
    return had, np.bincount(owners[release.view.person_of[name]], minlength=len(owners))
