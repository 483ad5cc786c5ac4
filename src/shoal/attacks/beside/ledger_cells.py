"""A ledger as one release: people with the same classes in all of its releases are one class."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shoal.attacks.beside.sharing import Links, fitting_pairs, profiles_of
from shoal.data.beside import ShownValues


class LedgerCells:
    """The classes of every record of a ledger in all releases so far."""

    def __init__(self) -> None:
        none = np.zeros(0, dtype=np.int64)
        self._records, self._classes, self._tokens = [none], [none], [none.astype(np.uint64)]
        self._shown: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        self._places: dict[str, dict[str, int]] = {}
        self._first = 0

    def take(
        self,
        records: np.ndarray,
        tokens: np.ndarray,
        labels: np.ndarray,
        count: int,
        shown: Mapping[str, ShownValues],
    ) -> None:
        """The next release; records, tokens, labels: (n,) of its rows that are in a class
        0..count-1 and that nobody invented. shown: the values of every class.
        """
        self._records.append(records)
        self._classes.append(labels + self._first)
        self._tokens.append(tokens)
        for name, values in shown.items():
            place = self._places.setdefault(name, {})
            code = np.array([place.setdefault(t, len(place)) for t in values.texts], dtype=np.int64)
            pair = (values.classes + self._first, code[values.codes])
            self._shown.setdefault(name, []).append(pair)
        self._first += count

    @property
    def _places_of_records(self) -> tuple[Links, np.ndarray]:
        """Records and their classes, and the first row of each record."""
        records = np.concatenate(self._records)
        distinct, first, number = np.unique(records, return_index=True, return_inverse=True)
        classes = np.concatenate(self._classes)
        return Links.of(number.reshape(-1), classes, len(distinct), self._first), first

    @property
    def tokens(self) -> np.ndarray:
        """(records,) whose each of them is."""
        return np.concatenate(self._tokens)[self._places_of_records[1]]

    @property
    def labels(self) -> np.ndarray:
        """(records,) the cell of each."""
        return profiles_of(self._places_of_records[0])[0]

    @property
    def count(self) -> int:
        return int(self.labels.max(initial=-1)) + 1

    def values(self) -> Mapping[str, ShownValues]:
        """The values that all classes of a cell show, if these never change."""
        records, _ = self._places_of_records
        labels, first = profiles_of(records)
        chosen = np.zeros(records.item_count, dtype=bool)
        chosen[first] = True
        cells = records.of_items(chosen)
        found = {}
        for name, parts in self._shown.items():
            classes, codes = (np.concatenate(part) for part in zip(*parts, strict=True))
            texts = tuple(self._places[name])
            pairs = fitting_pairs(cells, Links.of(codes, classes, len(texts), self._first))
            found[name] = ShownValues(labels[pairs.classes], pairs.items, texts)
        return found
