"""What the owner knows about published records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.data.encoding import EncodedAttribute, EncodedTable
from shoal.data.table import Table


@dataclass(frozen=True)
class Truth:
    """What the owner knows about the published records, in the order they were published.

    rows: (n,) row of the original behind each published record.
    suppressed: (n,) bool, records of the original that are in no class; None where that is not
    known.
    """

    original: Table
    encoded: EncodedTable
    rows: np.ndarray | None = None
    suppressed: np.ndarray | None = None

    def aligned(self, values: np.ndarray) -> np.ndarray:
        return values if self.rows is None else values[self.rows]

    def values(self, encoded: EncodedAttribute) -> np.ndarray:
        """The number, place or leaf behind every published record; NaN where it has none."""
        return self.aligned(encoded.value_of_code()[encoded.codes])
