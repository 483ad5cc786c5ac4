"""A released table as its readers see it, and what only its owner knows beside that."""

from dataclasses import replace

import numpy as np
import polars as pl

from shoal.data import release
from shoal.data.classes import Classes, Population, SensitiveColumn, encode_sensitive_columns
from shoal.data.encoding import encode_attribute, without_subject
from shoal.data.person_names import people_of
from shoal.data.release import PublishedColumn, Release
from shoal.data.room import blocks
from shoal.data.row_order import Followed, cell_ranks
from shoal.data.schema import Attribute, Kind, Render, Schema
from shoal.data.table import Column, Table, cell_texts
from shoal.data.truth import Truth
from shoal.data.warnings import GRAVE, OPEN, ORDER_KEPT, ReleaseWarning
from shoal.errors import InputError
from shoal.policy.binding.table import tree_by_values
from shoal.policy.problem import Problem

NEEDS_WITHHELD = (
    "reference: a promise compares with all records of the input, and those that are withheld show"
    " no sensitive value; give the original (--original)"
)


def read_cells(
    released: Table, problem: Problem, truth: Truth | None
) -> tuple[tuple[PublishedColumn, ...], dict[str, SensitiveColumn], np.ndarray | None]:
    """What quasi-identifiers and sensitive columns say, with the values behind means, and the
    number of each record's person, as far as they are known; raises InputError with every finding.
    """
    columns, unreadable = release.read_columns(released, problem.schema)
    sensitive, unfit = encode_sensitive_columns(released, problem.schema, problem.earlier)
    findings = [*unreadable, *unfit]
    if problem.subject in released.names:
        # whose row shows the mark everywhere may show it for the name, too
        texts = problem.schema.missing_values
        findings += without_subject(released.column(problem.subject), texts)
    InputError.raise_for(findings)
    if truth is not None:
        return truth.completed(columns), sensitive, truth.subjects
    subjects = None
    if problem.subject in released.names:
        subjects = people_of(released.column(problem.subject))
    return columns, sensitive, subjects


def read_release(released: Table, problem: Problem, truth: Truth | None) -> Release:
    """The released table; raises InputError with everything in it that can't be read."""
    schema = problem.schema
    columns, sensitive, people = read_cells(released, problem, truth)
    labels, count, starred, withheld = release.classes_of(released, columns, schema)
    if withheld and problem.compares_with_input:
        sensitive = _with_withheld_values(released, problem, truth, starred)
    subjects = None if people is None else people.astype(np.int32, copy=False)
    quasi = {column.name: column.codes for column in columns}
    sample = None if truth is None else truth.sample
    classes = Classes(labels, count, subjects, sensitive, quasi, sample=sample)
    tables = problem.tables.populations
    if tables:
        covered = {
            n: _covered_by(t, problem, released, columns, classes) for n, t in tables.items()
        }
        known = {name: fits for name, fits in covered.items() if fits is not None}
        classes = replace(classes, population=known)
    label = released.codes_of(schema.label)
    originals = {} if truth is None else truth.originals()
    return Release(columns, classes, problem.required_k, label, originals, starred)


def _with_withheld_values(
    released: Table, problem: Problem, truth: Truth | None, starred: np.ndarray
) -> dict[str, SensitiveColumn]:
    """The sensitive columns with what the starred records hold in the original."""
    if truth is None:
        raise InputError(NEEDS_WITHHELD)
    rows = pl.Series(starred)
    columns = {}
    for attribute in problem.schema.sensitive:
        shown = cell_texts(released.frame[attribute.name])
        true = cell_texts(truth.original.frame[attribute.name])
        true = true if truth.rows is None else true.gather(truth.rows)
        columns[attribute.name] = true.zip_with(rows, shown)
    sensitive, unfit = encode_sensitive_columns(
        Table(pl.DataFrame(columns)), problem.schema, problem.earlier
    )
    if unfit:
        raise InputError.from_findings(unfit)
    return sensitive


# Who of a population fits each class of a release: everybody whom all of its cells cover.


_BLOCK = 1 << 24  # pairs of a class and a person that are compared at a time


def _covered_by(
    table: Table,
    problem: Problem,
    released: Table,
    columns: tuple[PublishedColumn, ...],
    classes: Classes,
) -> Population | None:
    """For each class the people of a population whom all of its cells cover; None where only the
    original tells.
    """
    schema = problem.schema
    quasi = np.column_stack([table.column(a.name).codes for a in schema.quasi])
    people, weights = np.unique(quasi, axis=0, return_counts=True)
    kept = np.flatnonzero(classes.labels >= 0)
    shown = np.zeros((classes.count, len(columns)), dtype=np.int64)
    for j, published in enumerate(columns):
        shown[classes.labels[kept], j] = published.codes[kept]
    covered = []
    for attribute, published in zip(schema.quasi, columns, strict=True):
        people_of_it = table.column(attribute.name)
        if attribute.opaque:
            tree = tree_by_values(attribute.name, people_of_it, problem.tables)
            if tree is None:
                return None
            attribute = replace(attribute, opaque=False, hierarchy=tree)
            published = _over_known_values(attribute, released.column(attribute.name), schema)
        covered.append(_covered(attribute, published, people_of_it, schema))
    counts = np.zeros(classes.count, dtype=np.int64)
    covered_somewhere = np.zeros(len(weights), dtype=bool)
    step = max(_BLOCK // max(len(weights), 1), 1)
    for start in range(0, classes.count, step):
        rows = slice(start, start + step)
        fits = np.ones((len(shown[rows]), len(weights)), dtype=bool)
        for j, cells in enumerate(covered):
            fits &= cells[shown[rows, j]][:, people[:, j]]
        counts[rows] = fits @ weights
        covered_somewhere |= fits.any(axis=0)
    return Population(counts, int(weights[~covered_somewhere].sum()))


def _over_known_values(attribute: Attribute, column: Column, schema: Schema) -> PublishedColumn:
    """What is published of an attribute over the tree that a population's own values make.

    A cell that this tree lacks is a label of nobody's value here.
    """
    shown = release.read_column(attribute, column, schema)
    is_value = np.array([schema.is_value(cell) for cell in column.cells], dtype=bool)
    unknown = is_value & np.isnan(shown.lo)
    lo, hi = np.where(unknown, np.inf, shown.lo), np.where(unknown, -np.inf, shown.hi)
    return replace(shown, lo=lo, hi=hi)


def _covered(
    attribute: Attribute, published: PublishedColumn, column: Column, schema: Schema
) -> np.ndarray:
    """Which published cell covers which value of the population; (cells, values) bool."""
    if attribute.hierarchy is None and attribute.kind is Kind.CATEGORY:
        mark = schema.render.suppressed
        return np.array(
            [[cell in (mark, value) for value in column.cells] for cell in published.cells]
        )
    encoded, _ = encode_attribute(attribute, column, schema)
    values = np.full(len(column.texts), np.inf) if encoded is None else encoded.value_of_code()
    return release.spans_cover(published.lo[:, None], published.hi[:, None], values)


# What the input's order gives away: whoever knows the column that rows are sorted by looks near the
# place that a person's value has, among rows that show what is known of the person.


LEAST_CORRELATION = 0.3
GRAVE_SHARE = 0.2


def most_followed(truth: Truth, render: Render) -> Followed | None:
    """The column of the original that published rows follow most; None where they follow none."""
    quasi = [one.attribute.name for one in truth.encoded.attributes]
    best = None
    for name in dict.fromkeys([*quasi, *truth.original.names]):
        column = truth.original.column(name)
        codes, middles = truth.aligned(column.codes), _middles(column, render)
        correlation = _correlation(codes, middles, column.counts())
        if correlation < 0:
            middles = len(codes) - 1 - middles
        if abs(correlation) > (0.0 if best is None else abs(best.correlation)):
            best = Followed(name, codes, middles, correlation)
    return best


def order_followed(truth: Truth | None, render: Render) -> Followed | None:
    """The column that rows in the input's order follow closely enough for a finding, if any."""
    if truth is None or render.order != "input":
        return None
    best = most_followed(truth, render)
    return None if best is None or abs(best.correlation) <= LEAST_CORRELATION else best


def order_kept(followed: Followed, found: int, people: int) -> ReleaseWarning:
    """What to say of a release whose rows follow a column. found: the people whom it finds."""
    text = (
        f"rows are in the order of '{followed.name}': whoever knows it finds {found} of {people}"
        " people; leave 'order: input' out of the policy"
    )
    severity = GRAVE if found > GRAVE_SHARE * people else OPEN
    return ReleaseWarning(ORDER_KEPT, text, followed.name, severity)


def _middles(column: Column, render: Render) -> np.ndarray:
    """(cells,) float64, where the rows of each cell would stand on average, if sorted by it."""
    ranks = cell_ranks(column.texts, render)
    counts = np.bincount(ranks, weights=column.counts())
    middles = np.cumsum(counts) - (counts + 1) / 2
    return np.asarray(middles[ranks])


def _correlation(codes: np.ndarray, middles: np.ndarray, counts: np.ndarray) -> float:
    """Spearman's, with the number of the row. counts: (cells,) rows of each cell."""
    middle = (len(codes) - 1) / 2
    away = middles - middle
    spread = float((counts * away**2).sum()) * (len(codes) ** 3 - len(codes)) / 12
    if spread <= 0:
        return 0.0
    together = sum(
        float(away[codes[rows]] @ (np.arange(rows.start, rows.stop) - middle))
        for rows in blocks(len(codes))
    )
    return together / float(np.sqrt(spread))


def nearest_to_place(
    labels: np.ndarray, place: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """(n,) bool, rows that no other row of their class is as near to their place as they are.

    labels: (n,) class of each row, -1 for none. place: (n,) where each would stand. rows: (n,)
    where each stands, in ascending order; by default these are all rows.
    """
    kept = np.flatnonzero(labels >= 0)
    stands = kept if rows is None else rows[kept]
    reach = 4 * int(max(stands.max(initial=0), place.max(initial=0)) + 1)
    begins = labels[kept].astype(np.int64) * reach
    keys = np.sort(begins + 2 * stands)
    wanted = begins + np.rint(2 * place[kept]).astype(np.int64)
    after = np.searchsorted(keys, wanted)
    # rows of other classes are farther away than any of its own
    nearby = np.stack([keys[np.maximum(after - 1, 0)], keys[np.minimum(after, len(keys) - 1)]])
    own = np.abs(begins + 2 * stands - wanted)
    distances = np.abs(nearby - wanted)
    rivals = np.where(nearby == begins + 2 * stands, np.iinfo(np.int64).max, distances)
    found = np.zeros(len(labels), dtype=bool)
    found[kept] = (own <= distances.min(axis=0)) & (own < rivals.min(axis=0))
    return found
