"""A released table as its readers see it, what only its owner knows beside that, and what is
promised, measured on it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import polars as pl

from shoal.data import release
from shoal.data.certificate_shape import PromiseReport
from shoal.data.classes import (
    Classes,
    Population,
    SensitiveColumn,
    encode_sensitive,
    encode_sensitive_columns,
)
from shoal.data.encoding import values_beside, without_subject
from shoal.data.numbers import alike, places_among
from shoal.data.person_names import people_of
from shoal.data.release import PublishedColumn, Release
from shoal.data.room import blocks
from shoal.data.row_order import Followed, cell_ranks
from shoal.data.schema import Attribute, Kind, Render, Schema
from shoal.data.table import Column, Table, as_text, cell_texts, encode_text
from shoal.data.truth import Truth
from shoal.data.warnings import GRAVE, OPEN, ORDER_KEPT, ReleaseWarning
from shoal.errors import InputError
from shoal.policy.binding.table import with_values_of
from shoal.policy.problem import Problem
from shoal.privacy.two_tables import Groups

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
        covered = {n: _covered_by(t, problem, columns, classes) for n, t in tables.items()}
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
    InputError.raise_for(unfit)
    return sensitive


def class_spans(
    columns: Sequence[PublishedColumn], labels: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """What each class shows, least and greatest; (count, columns) float64 each."""
    record = np.zeros(count, dtype=np.int64)
    kept = np.flatnonzero(labels >= 0)
    record[labels[kept]] = kept  # all records of a class show the same cells
    lo = [column.lo[column.codes[record]] for column in columns]
    hi = [column.hi[column.codes[record]] for column in columns]
    return np.column_stack(lo), np.column_stack(hi)


# Who fits each class of a release: everybody whom all of its cells cover.


BLOCK = 1 << 22  # pairs of a class and a point that are compared at a time


def who_fits(
    columns: Sequence[PublishedColumn], classes: Classes, points: np.ndarray
) -> Iterator[tuple[slice, np.ndarray]]:
    """Some classes, and which points all cells of each cover, (these, n) bool; block by block.

    points: (n, d) float64, what is known of somebody on each column.
    """
    lo, hi = class_spans(columns, classes.labels, classes.count)
    step = max(BLOCK // max(len(points), 1), 1)
    for start in range(0, classes.count, step):
        block = slice(start, start + step)
        fits = np.ones((len(lo[block]), len(points)), dtype=bool)
        for j in range(lo.shape[1]):
            fits &= release.spans_cover(lo[block, j, None], hi[block, j, None], points[:, j])
        yield block, fits


def _covered_by(
    table: Table, problem: Problem, columns: tuple[PublishedColumn, ...], classes: Classes
) -> Population | None:
    """For each class the people of a population who fit it; None where only the original tells."""
    schema, shown, points = problem.schema, [], []
    kinds = alike((table.column(a.name).codes for a in schema.quasi), table.records)
    _, rows, weights = np.unique(kinds, return_index=True, return_counts=True)
    for attribute, published in zip(schema.quasi, columns, strict=True):
        people_of_it = table.column(attribute.name)
        if attribute.opaque or (attribute.hierarchy is None and attribute.kind is Kind.CATEGORY):
            attribute = with_values_of(attribute, people_of_it, problem.tables)
            if attribute.hierarchy is None:
                return None
            published = read_again(published, attribute, schema)
        shown.append(published)
        points.append(values_beside(attribute, people_of_it, schema)[people_of_it.codes[rows]])
    counts = np.zeros(classes.count, dtype=np.int64)
    is_outside = np.ones(len(weights), dtype=bool)
    for block, fits in who_fits(shown, classes, np.column_stack(points)):
        counts[block] = fits @ weights
        is_outside &= ~fits.any(axis=0)
    return Population(counts, int(weights[is_outside].sum()))


def read_again(published: PublishedColumn, attribute: Attribute, schema: Schema) -> PublishedColumn:
    """What cells cover where the attribute has other places, such as those of people beside the
    original. A label without such a place covers no value there.
    """
    cells = Column(published.name, published.codes, pl.Series(published.cells, dtype=pl.String))
    is_value = np.array([schema.is_value(cell) for cell in published.cells], dtype=bool)
    shown = release.read_column(attribute, cells, schema)
    unknown = np.isnan(shown.lo) & is_value
    lo, hi = np.where(unknown, np.inf, shown.lo), np.where(unknown, -np.inf, shown.hi)
    return replace(shown, lo=lo, hi=hi)


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


# Promises, as measured on what is shown.


def promise_reports(
    problem: Problem, release: Release, released: Table, measures: "Measures | Groups | None" = None
) -> list[PromiseReport]:
    """Every promise as the certificate states it; t-closeness to the reference that is declared.

    measures: as in `measure`.
    """
    models = problem.promises
    if measures is None:
        close = [model for model in models if model.model == "t-closeness"]
        if problem.reference_table is None or not close:
            return [model.report(release.classes) for model in models]
        measures = Measures(close, problem.schema, problem.reference_table)
    return [measures.report(model, release, released.frame) for model in models]


# A policy's promises, measured on classes of a stream. Shares no code with the methods.


class Measures:
    """Promises, measured on clusters or classes of a stream.

    t-closeness compares with the reference: a stream has no whole table. Its values, and where it
    is joint their combinations, are then those that the reference shows.
    """

    def __init__(self, models: Sequence[Any], schema: Schema, reference: Table | None) -> None:
        """Raises InputError with every promise that no stream, or none of this kind, can keep."""
        self.models, self._schema, self.has_subject = models, schema, schema.subject is not None
        self._columns: dict[str, SensitiveColumn] = {}
        self._cells: dict[str, pl.Enum] = {}
        self._together: list[Together] = []
        self._table: Classes | None = None
        has_reference = reference is not None
        InputError.raise_for(
            each for model in models for each in _not_for_streams(model, has_reference)
        )
        close = [model for model in models if model.model == "t-closeness"]
        if close and reference is not None:
            self._refer_to(reference, {name for model in close for name in model.attributes})
        self._checks: dict[int, Callable[[Classes], np.ndarray]] = {
            id(m): m.against(self._table) if m.model == "t-closeness" else m.holds for m in models
        }

    def _refer_to(self, reference: Table, names: set[str]) -> None:
        """Values of these attributes are counted as in the reference, and nowhere else."""
        sensitive = {}
        for name in names:
            column = reference.column(name)
            every_cell = Column(name, np.arange(len(column.texts)), column.texts)
            coded, wrong = encode_sensitive(self._schema[name], every_cell, self._schema)
            if coded is None:
                raise InputError.from_findings(wrong)
            sensitive[name] = replace(coded, codes=coded.codes[column.codes])
            self._columns[name], self._cells[name] = coded, pl.Enum(column.texts)
        subjects = None
        if self._schema.subject is not None:
            subjects = reference.column(self._schema.subject.name).codes.astype(np.int32)
        self._table = Classes(np.zeros(reference.records, np.int32), 1, subjects, sensitive)
        for model in self.models:
            if model.model == "t-closeness" and model.joint:
                self._table = model.extended(self._table)
                self._together.append(Together.of(model, self._table))

    def unknown(self, name: str, cells: pl.Series) -> np.ndarray:
        """(n,) bool, which cells of a sensitive attribute its reference does not show."""
        if name not in self._cells:
            return np.zeros(len(cells), dtype=bool)
        return as_text(cells).cast(self._cells[name], strict=False).is_null().to_numpy()

    def unknown_together(self, cells: pl.DataFrame) -> list[tuple[tuple[str, ...], np.ndarray]]:
        """Attributes compared together, and the rows whose combination the reference lacks.

        Rows with a value that it does not show at all count as shown: `unknown` names them.
        """
        unseen = []
        for asked in self._together:
            indexes = [
                as_text(cells[name]).cast(self._cells[name], strict=False).to_physical()
                for name in asked.names
            ]
            codes = [
                self._columns[name].codes[index.fill_null(0).to_numpy()]
                for name, index in zip(asked.names, indexes, strict=True)
            ]
            known = ~np.any([index.is_null().to_numpy() for index in indexes], axis=0)
            unseen.append((asked.names, known & (asked.leaf(codes) < 0)))
        return unseen

    def classes(
        self, people: np.ndarray, cells: pl.DataFrame, labels: np.ndarray, count: int
    ) -> Classes:
        """Clusters as promises measure them. cells: the sensitive columns."""
        sensitive: dict[str, SensitiveColumn] = {}
        for attribute in self._schema.sensitive:
            name = attribute.name
            if name in self._cells:
                index = as_text(cells[name]).cast(self._cells[name]).to_physical().to_numpy()
                known = self._columns[name]
                sensitive[name] = replace(known, codes=known.codes[index])
                continue
            column, wrong = encode_sensitive(attribute, encode_text(cells[name]), self._schema)
            if column is None:
                raise InputError.from_findings(wrong)
            sensitive[name] = column
        for asked in self._together:
            codes = asked.leaf([sensitive[name].codes for name in asked.names])
            sensitive[asked.column.name] = replace(asked.column, codes=codes)
        numbers = np.unique(people, return_inverse=True)[1].astype(np.int32)
        return Classes(labels, count, numbers, sensitive)

    def report(self, model: Any, release: Release, released: pl.DataFrame) -> PromiseReport:
        """A promise as a certificate states it: t-closeness to the reference, if there is one.

        released: the rows of the release. Raises InputError where they show values that the
        reference does not.
        """
        if model.model != "t-closeness":
            return model.report(release.classes)
        labels, people = release.classes.labels, release.classes.subjects
        kept = labels >= 0
        rows = released.filter(pl.Series(kept))
        subjects = np.arange(len(kept)) if people is None else people
        unseen = [name for name in model.attributes if self.unknown(name, rows[name]).any()]
        unseen += [
            " with ".join(names) for names, rows_of in self.unknown_together(rows) if rows_of.any()
        ]
        if unseen:
            raise InputError(
                f"reference: does not show every published value of '{unseen[0]}'; give the table"
                " that the stream was compared with"
            )
        classes = self.classes(subjects[kept], rows, labels[kept], release.classes.count)
        measured, holds = model.judged_against(self._table, classes)
        return model.stated(model.worst(measured), bool(holds.all())) | {"to": "reference"}

    def holds(self, model: Any, classes: Classes) -> np.ndarray:
        """Whether a promise holds in every class; (count,) bool."""
        return self._checks[id(model)](classes)


@dataclass(frozen=True)
class Together:
    """Combinations of several sensitive attributes that a reference shows.

    sizes: how many values each attribute has. keys: (c,) int64, the combinations in ascending
    order. leaves: (c,) int32, the place of each in `column`.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    keys: np.ndarray
    leaves: np.ndarray
    column: SensitiveColumn

    @classmethod
    def of(cls, model: Any, table: Classes) -> "Together":
        """The combinations in a table that was extended for this promise."""
        columns = [table.sensitive[name] for name in model.attributes]
        codes, sizes = [each.codes for each in columns], tuple(each.values for each in columns)
        if prod(sizes) >= 1 << 62:
            raise InputError(
                f"promise '{model.model}': too many combinations to tell apart; list fewer"
                " attributes"
            )
        (name,) = model.compared
        column = table.sensitive[name]
        keys, first = np.unique(np.ravel_multi_index(codes, sizes), return_index=True)
        return cls(model.attributes, sizes, keys, column.codes[first], column)

    def leaf(self, codes: list[np.ndarray]) -> np.ndarray:
        """The place of each combination, -1 where the reference does not show it; (n,) int32."""
        at = places_among(self.keys, np.ravel_multi_index(codes, self.sizes))
        return np.where(at < 0, -1, self.leaves[at]).astype(np.int32)


def _not_for_streams(model: Any, has_reference: bool) -> list[str]:
    """Why a promise can't be kept while a table is still growing; nothing where it can."""
    name = f"promise '{model.model}'"
    if not model.monotone or model.whole_table:
        return [f"{name}: is about a table as a whole, and a stream is never whole; leave it out"]
    is_close = model.model == "t-closeness"
    if is_close and has_reference:
        return []  # compared with the reference, it is a promise about shares like others
    if model.compares_with_table:
        remedy = "name a table to compare with (reference)" if is_close else "leave it out"
        why = "compares every class with the whole table, and a stream has none"
        return [f"{name}: {why}; {remedy}"]
    if model.of_sample:
        return [f"{name}: asks for the weights of a sample, which no stream is; leave it out"]
    if model.population:
        why = "compares classes with a population, which is not offered for streams"
        return [f"{name}: {why}; leave it out"]
    return []
