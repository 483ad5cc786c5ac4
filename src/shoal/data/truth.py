"""What the owner knows about published records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from shoal.data.encoding import EncodedAttribute, EncodedTable, linear_domain
from shoal.data.release import PublishedColumn
from shoal.data.room import IN_MEMORY
from shoal.data.sample import Sample
from shoal.data.schema import Kind
from shoal.data.table import Table
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
