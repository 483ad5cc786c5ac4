"""Records that wait in a stream until a method decides about them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl


class PendingRecords:
    """The columns of waiting records that are published or needed for it, by number of arrival."""

    def __init__(self) -> None:
        self._frames: list[pl.DataFrame] = []
        self._seqs: list[np.ndarray] = []

    def add(self, seq: np.ndarray, frame: pl.DataFrame) -> None:
        """The frame has the types of `schema`, or another one where nothing is known but nulls."""
        if len(seq):
            if self._frames and self.schema != frame.schema:
                # what was restored with nobody waiting has no columns
                self._frames = [self.frame.cast(frame.schema)] if self.count else []
            self._seqs.append(seq)
            self._frames.append(frame)

    def set(self, seq: np.ndarray, frame: pl.DataFrame) -> None:
        self._seqs = [seq]
        self._frames = [frame]

    @property
    def count(self) -> int:
        return sum(len(seq) for seq in self._seqs)

    @property
    def schema(self) -> pl.Schema:
        """The types of the columns; empty before the first record."""
        return self._frames[0].schema if self._frames else pl.Schema()

    @property
    def seq(self) -> np.ndarray:
        """(n,) int64, ascending."""
        if len(self._seqs) > 1:
            self._seqs = [np.concatenate(self._seqs)]
        return self._seqs[0] if self._seqs else np.zeros(0, np.int64)

    @property
    def frame(self) -> pl.DataFrame:
        if len(self._frames) > 1:
            self._frames = [pl.concat(self._frames)]
        return self._frames[0] if self._frames else pl.DataFrame()

    def rows(self, seq: np.ndarray, names: Sequence[str] | None = None) -> pl.DataFrame:
        """These records, in this order. names: the columns asked for, if not all of them."""
        rows = np.searchsorted(self.seq, seq)
        columns = self.frame.columns if names is None else names
        if len(rows) and (np.diff(rows) == 1).all():  # neighbours need no copy
            return self.frame[int(rows[0]) : int(rows[0]) + len(rows), columns]
        return self.frame[rows, columns]

    def drop(self, seq: np.ndarray) -> None:
        stays = np.ones(len(self.seq), dtype=bool)
        stays[np.searchsorted(self.seq, seq)] = False
        self._frames = [self.frame.filter(pl.Series(stays))]
        self._seqs = [self.seq[stays]]
