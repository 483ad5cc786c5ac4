"""Promises asked about some of the records of a table, for searches that go on with the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from shoal.data.classes import Population, SensitiveColumn
from shoal.protocols import AnonymityRequirement, Promises, PromiseTerms


class PartPromises(Promises):
    """Promises asked about some of the records of a table."""

    def __init__(self, promises: Promises, rows: np.ndarray, records: int) -> None:
        self.k = promises.k
        self.needs_more_than_k = promises.needs_more_than_k
        self._promises = promises
        self._rows = rows
        self._records = records

    @property
    def terms(self) -> tuple[PromiseTerms, ...]:
        return self._promises.terms

    @property
    def sensitive(self) -> Mapping[str, SensitiveColumn]:
        """The sensitive columns of these records."""
        whole = self._promises.sensitive.items()
        return {name: replace(column, codes=column.codes[self._rows]) for name, column in whole}

    @property
    def qids(self) -> tuple[AnonymityRequirement, ...]:
        return self._promises.qids

    def holds(
        self,
        labels: np.ndarray,
        count: int,
        quasi: Mapping[str, np.ndarray] | None = None,
        population: Mapping[str, Population] | None = None,
    ) -> np.ndarray:
        return self._promises.holds(
            self._whole(labels, -1),
            count,
            {name: self._whole(codes, 0) for name, codes in (quasi or {}).items()},
        )

    def _whole(self, values: np.ndarray, rest: int) -> np.ndarray:
        """The values carried to all records."""
        whole = np.full(self._records, rest, dtype=values.dtype)
        whole[self._rows] = values
        return whole
