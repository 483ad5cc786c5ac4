"""A release of linked tables beside its original, by who knows whose each row is."""

from collections.abc import Mapping

import numpy as np

from shoal.auditor.linked.reading import LinkedRelease, ReleasedTable
from shoal.data.linked import PEOPLE, Keys, LinkedRows, LinkedTables
from shoal.data.regular_files import Json
from shoal.data.release import covers, spans_cover
from shoal.data.schema import Role
from shoal.data.table import Table
from shoal.data.truth import as_values


def faults_of(
    published: Mapping[str, Table],
    release: LinkedRelease,
    tables: LinkedTables,
    behind: Mapping[str, np.ndarray],
) -> dict[str, dict[str, int]]:
    """By table, how many rows hang from another row than their own, show cells that do not cover
    their true values - days from their person's day, so gaps as well - or other values than the
    original.

    published: the files as read back. behind: by table, the row behind each row of its file.
    """
    grouped: dict[str, np.ndarray] = {}
    faults = {}
    for name, order in behind.items():
        rows, shown = tables.rows[name], release.tables[name]
        withheld = release.withheld if name == PEOPLE else np.zeros(len(order), dtype=bool)
        changed = _changed(published[name], rows, order, withheld)
        faults[name] = {"rows": 0, "uncovered": 0, "changed": changed}
        parent = rows.about.parent
        if parent is not None and (tables.tree.keys is Keys.NONE or parent not in grouped):
            continue  # it is not known to whom its rows belong
        by_parent = _by_parent(shown, rows, order, grouped)
        if by_parent is None:
            faults[name]["rows"] = len(order)
            continue
        grouped[name] = by_parent
        faults[name]["uncovered"] = _uncovered(shown, rows, by_parent, tables)
    return faults


def _by_parent(
    shown: ReleasedTable, rows: LinkedRows, order: np.ndarray, grouped: Mapping[str, np.ndarray]
) -> np.ndarray | None:
    """The rows behind those of a table, as they were read; None where some hang from another row
    than their own. grouped: those of the tables above.
    """
    if rows.about.parent is None:
        return order if shown.rows == len(order) else None
    above = grouped[rows.about.parent]
    place = np.full(len(rows.counts), -1)
    place[above] = np.arange(len(above))
    parents = place[rows.parents[order]]
    hanging = np.bincount(parents + 1, minlength=len(above) + 1)  # first, those from no row
    is_own = np.array_equal(np.append(0, np.diff(shown.starts)), hanging)
    return order[np.argsort(parents, kind="stable")] if is_own else None


def _uncovered(
    shown: ReleasedTable, rows: LinkedRows, order: np.ndarray, tables: LinkedTables
) -> int:
    """Rows with a cell or a count that does not cover the truth. order: as the rows were read."""
    wrong = np.zeros(len(order), dtype=bool)
    columns = {column.name: column for column in shown.columns}
    for encoded in rows.encoded.attributes:
        column = columns[encoded.attribute.name]
        wrong |= ~covers(column, encoded.value_of_code(), encoded.codes[order])
    for below, column in shown.counts.items():
        counts = tables.rows[below].counts[order].astype(np.float64)
        wrong |= ~spans_cover(column.lo[column.codes], column.hi[column.codes], counts)
    return int(wrong.sum())


def _changed(published: Table, rows: LinkedRows, order: np.ndarray, withheld: np.ndarray) -> int:
    """Rows with a sensitive or plain value that is not their own. order: of the file. withheld:
    (n,) bool, those of people who show nothing.
    """
    if published.records != len(order):
        return len(order)
    wrong = np.zeros(len(order), dtype=bool)
    for attribute in rows.about.schema.published:
        if attribute.role in (Role.SENSITIVE, Role.PLAIN):
            shown, own = as_values(attribute, published, rows.table)
            wrong |= (own.gather(order) != shown).to_numpy()
    return int((wrong & ~withheld).sum())


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
            lost += np.bincount(person, column.widths[column.codes], len(owners)) + (had - left)
            cells += had
    return lost / np.maximum(cells, 1)


def _rows_of_people(
    release: LinkedRelease, tables: LinkedTables, owners: np.ndarray, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """(people,) int64, by person of the original: rows of a table, and those that are published."""
    had = np.bincount(tables.person_of(name), minlength=len(owners))
    return had, np.bincount(owners[release.view.person_of[name]], minlength=len(owners))
