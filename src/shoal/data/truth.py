"""What the owner knows about published records, and which of them do not fit the original."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial

import numpy as np
import polars as pl

from shoal.data import cores
from shoal.data.certificate import Certificate
from shoal.data.classes import Classes, Sample
from shoal.data.encoding import EncodedAttribute, EncodedTable, linear_domain
from shoal.data.numbers import exact_text, is_long, map_cells, mean_decimals, parse_numbers
from shoal.data.release import PublishedColumn, Release, covers, digits_deny, shows_nothing
from shoal.data.room import IN_MEMORY
from shoal.data.schema import Attribute, Kind, Role, Schema, Shown
from shoal.data.table import Column, Table, as_text, places_in
from shoal.data.true_values import TrueValues


@dataclass(frozen=True)
class Truth:
    """What the owner knows about the published records, in the order they were published.

    rows: (n,) row of the original behind each published record. whole_table: by attribute, how
        many records of all have each distinct value, where this is about some of them.
    """

    original: Table
    encoded: EncodedTable
    rows: np.ndarray | None = None
    whole_table: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def trace(self) -> np.ndarray:
        """(n,) the row of the original behind each published record."""
        return np.arange(self.encoded.records) if self.rows is None else self.rows

    def is_of(self, table: Table) -> bool:
        """Whether a table has the same cells, row by row, in all columns that are known."""
        known = {one.name: one for one in map(self.original.column, self.original.names)}
        for encoded in self.encoded.attributes:
            name, texts = encoded.attribute.name, [encoded.texts[r] for r in encoded.rank_of_code]
            known[name] = Column(name, encoded.codes, pl.Series(texts, dtype=pl.String))
        return all(
            name in table
            and np.array_equal(own.codes, table.column(name).codes)
            and own.texts.equals(table.column(name).texts)
            for name, own in known.items()
        )

    def aligned(self, values: np.ndarray) -> np.ndarray:
        """Values of the original's records, by published record."""
        return values if self.rows is None else self.original.room.gather(values, self.rows)

    def values(self, encoded: EncodedAttribute) -> np.ndarray:
        """The number, order or leaf behind every published record; NaN where it has none."""
        return self.aligned(IN_MEMORY.gather(encoded.value_of_code(), encoded.codes))

    @property
    def subjects(self) -> np.ndarray | None:
        """The person behind every published record; None where everybody has one record."""
        return None if self.encoded.subjects is None else self.aligned(self.encoded.subjects)

    @property
    def sample(self) -> Sample | None:
        """Whom every published record stands for; None where the policy names no weight."""
        known = self.encoded.sample
        return known if known is None or self.rows is None else known.take(self.rows)

    def originals(self) -> dict[str, TrueValues]:
        """By numeric attribute without a hierarchy, the values of the published records."""
        return {
            encoded.attribute.name: TrueValues(
                self.aligned(encoded.codes),
                encoded.value_of_code(),
                self.whole_table.get(encoded.attribute.name),
            )
            for encoded in self.encoded.attributes
            if encoded.attribute.kind is Kind.NUMBER and encoded.attribute.hierarchy is None
        }

    def completed(self, columns: tuple[PublishedColumn, ...]) -> tuple[PublishedColumn, ...]:
        """Published columns with the values that their means stand for."""
        return tuple(
            column
            if column.observed_bounds is None
            else column.with_values(
                encoded.value_of_code(), self.aligned(encoded.codes), partial(_width, encoded)
            )
            for column, encoded in zip(columns, self.encoded.attributes, strict=True)
        )


def _width(encoded: EncodedAttribute, least: np.ndarray, greatest: np.ndarray) -> np.ndarray:
    """The normalised width of each span of values, of the lowest node over it in a hierarchy."""
    attribute = encoded.attribute
    if attribute.hierarchy is not None:
        ends = least.astype(np.int32), greatest.astype(np.int32)
        return np.asarray(attribute.hierarchy.widths()[attribute.hierarchy.covering(*ends)])
    low, high = linear_domain(attribute, encoded.values)
    return (greatest - least) / (high - low) if high > low else np.zeros(len(least))


def cells_match_original(
    published: PublishedColumn, encoded: EncodedAttribute, truth: Truth, classes: Classes
) -> np.ndarray:
    """(n,) bool, whether each cell covers its true value and any mean is that of its class."""
    codes = truth.aligned(encoded.codes)
    covered = covers(published, encoded.value_of_code(), codes)
    texts = [encoded.texts[rank] for rank in encoded.rank_of_code]
    covered &= ~digits_deny(published, texts, codes, covered)
    if published.means is None:
        return covered
    shown, values = published.means[published.codes], truth.values(encoded)
    class_of = np.where(classes.labels >= 0, classes.labels, classes.count)
    if encoded.attribute.shown in (Shown.MEDIAN, Shown.MODE):
        stands = _is_median if encoded.attribute.shown is Shown.MEDIAN else _is_mode
        return np.where(np.isnan(shown), covered, stands(class_of, values, shown))
    sizes = np.maximum(np.bincount(class_of, minlength=classes.count + 1), 1)
    means = (np.bincount(class_of, weights=values, minlength=classes.count + 1) / sizes)[class_of]
    # half a unit of the last decimal that a mean is written with, and what floats add to it
    rounding = 0.5000001 * 10.0 ** -mean_decimals(
        encoded.texts[: encoded.present]
    ) + 1e-12 * np.abs(means)
    is_mean = np.abs(shown - means) <= rounding
    if published.observed_bounds is None:
        return covered & (is_mean | np.isnan(shown))
    return np.where(np.isnan(shown), covered, is_mean)


def _is_median(class_of: np.ndarray, values: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """(n,) bool, whether what a record shows is the lower median of its class."""
    sizes, below, up_to = (
        np.bincount(class_of, part) for part in (None, values < shown, values <= shown)
    )
    middle = (sizes - 1) // 2
    return ((below <= middle) & (up_to > middle))[class_of]


def _is_mode(class_of: np.ndarray, values: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """(n,) bool, whether no value of its class is more frequent than what a record shows."""
    pairs, counts = np.unique(np.column_stack((class_of, values)), axis=0, return_counts=True)
    most = np.zeros(int(class_of.max(initial=0)) + 1)
    np.maximum.at(most, pairs[:, 0].astype(np.int64), counts)
    return (np.bincount(class_of, values == shown, minlength=len(most)) == most)[class_of]


def faults(released: Table, release: Release, schema: Schema, truth: Truth) -> dict[str, int]:
    """Records whose published row does not fit the original; all zero for an honest release."""
    changed = np.zeros(release.records, dtype=bool)
    starred = release.shown.labels < 0
    for attribute in schema.published:
        if attribute.role in (Role.SENSITIVE, Role.PLAIN):
            differs = _differing(attribute, released, truth)
            if differs.any():
                shown = released.column(attribute.name)
                star = shows_nothing(released, attribute.name, schema.render.suppressed)
                # a record that shows nothing else may hide its sensitive values, too
                changed |= differs & ~(star[shown.codes] & starred)
    pairs = list(zip(release.columns, truth.encoded.attributes, strict=True))
    matching = cores.side_by_side(
        lambda pair: cells_match_original(*pair, truth, release.classes), pairs, release.records
    )
    uncovered = ~np.logical_and.reduce(matching) if matching else np.zeros(release.records, bool)
    return {"uncovered": int(uncovered.sum()), "changed": int(changed.sum())}


def with_contradicted(certificate: Certificate, contradicted: int | None) -> Certificate:
    """The certificate with the records whose derived numbers their cells contradict.

    None where the policy asks for no such numbers.
    """
    if contradicted is None:
        return certificate
    return certificate.extended(
        faults={**(certificate.get("faults") or {}), "derived": contradicted}
    )


def _differing(attribute: Attribute, released: Table, truth: Truth) -> np.ndarray:
    """Which records show another value than the original has; (n,) bool.

    Numbers are compared as such: 41 and 41.0 are the same in a column of numbers.
    """
    differs = _differing_text(attribute, released, truth)
    if not differs.any():
        return differs
    shown, kept = released.column(attribute.name), truth.original.column(attribute.name)
    if not is_of_numbers(attribute, kept):
        return differs
    values, expected = parse_numbers(shown.texts), parse_numbers(kept.texts)
    codes = truth.aligned(kept.codes)
    same = values[shown.codes] == expected[codes]
    # floats of numbers with many digits are the same where the numbers are not
    long = is_long(shown.cells)[shown.codes] | is_long(kept.cells)[codes]
    for i in np.flatnonzero(differs & same & long).tolist():
        same[i] = Decimal(shown.cells[shown.codes[i]]) == Decimal(kept.cells[codes[i]])
    return differs & ~same


def as_values(
    attribute: Attribute, released: Table, original: Table
) -> tuple[pl.Series, pl.Series]:
    """A column of a release and of its original as texts that are equal where the values are: in a
    column of numbers, 41 for 41.0.
    """
    shown, own = (as_text(table.frame[attribute.name]) for table in (released, original))
    if is_of_numbers(attribute, original.column(attribute.name)):
        shown, own = map(_plain_numbers, (shown, own))
    return shown.fill_null(""), own.fill_null("")


def _plain_numbers(cells: pl.Series) -> pl.Series:
    rows = np.flatnonzero(np.isfinite(parse_numbers(cells)))
    return cells.clone().scatter(rows, map_cells(cells.gather(rows), exact_text)[0])


def is_of_numbers(attribute: Attribute, original: Column) -> bool:
    """Whether the policy or the original says that a column holds numbers."""
    is_number = attribute.kind is Kind.NUMBER or original.was_number
    return is_number and attribute.hierarchy is None


def _differing_text(attribute: Attribute, released: Table, truth: Truth) -> np.ndarray:
    is_coded = attribute.name in released.coded and attribute.name in truth.original.coded
    if attribute.role is Role.SENSITIVE or is_coded:  # both are encoded already, for the promises
        shown, kept = released.column(attribute.name), truth.original.column(attribute.name)
        expected = places_in(shown.texts, kept.texts)
        return shown.codes != expected[truth.aligned(kept.codes)]
    text = as_text(truth.original.frame[attribute.name])
    if truth.rows is not None:
        text = text.gather(truth.rows)
    return (as_text(released.frame[attribute.name]) != text).to_numpy()
