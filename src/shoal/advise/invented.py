"""Invented tables of the size and the shape of real ones, to be published and watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from shoal.connectors import files
from shoal.connectors.table_places import place_in_folder
from shoal.data.linked import PEOPLE, LinkedTables
from shoal.data.progress import Progress
from shoal.linked.publish import publish_linked
from shoal.policy.policy import Policy
from shoal.tables.publish import publish_file
from shoal.tables.request import PublishRequest

FEW = (74, 16, 99, 7, 14, 41, 2, 5)  # distinct values of people's columns, as a census has them
OTHERS = 10_000  # distinct values of a column that is published as it is


@dataclass(frozen=True)
class Shape:
    """Of an invented table: its quasi-identifiers, the distinct values of each (None: few, as a
    census has them), further columns, and the k to publish it with.
    """

    quasi: int
    k: int = 10
    other: int = 1
    values: tuple[int, ...] | None = None

    def table(self, records: int) -> pl.DataFrame:
        """A table of this number of records; low values are frequent, as people's are uneven."""
        rng = np.random.default_rng(1)
        columns = {}
        for column in range(self.quasi):
            values = (self.values or FEW)[column % len(self.values or FEW)]
            codes = (values * rng.random(records) ** 2).astype(np.int32)
            columns[f"q{column}"] = 10 ** len(str(values)) + codes  # as many digits each
        for column in range(self.other):
            columns[f"o{column}"] = 10_000_000 + rng.integers(OTHERS, size=records, dtype=np.int32)
        return pl.DataFrame(columns)

    @property
    def attributes(self) -> dict[str, dict[str, str]]:
        """What a policy says of its columns."""
        quasi = {f"q{i}": {"role": "quasi", "type": "number"} for i in range(self.quasi)}
        return quasi | {f"o{i}": {"role": "plain"} for i in range(self.other)}

    @property
    def policy(self) -> Policy:
        return Policy.from_dict(
            {
                "version": 1,
                "attributes": self.attributes,
                "promises": [{"model": "k-anonymity", "k": self.k}],
                "method": {"name": "rounded-partition", "refine": "none"},
                "seed": 1,
            }
        )

    def invent(self, records: int, folder: Path) -> Path:
        """Writes such a table; where it is."""
        source = folder / "table.csv"
        files.write(self.table(records), source)
        return source

    def publish(self, source: Path, folder: Path, progress: Progress) -> Path:
        """Publishes it; where the release is."""
        release = folder / "release.csv"
        request = PublishRequest(replace=True, progress=progress)
        publish_file(str(source), self.policy, str(release), request)
        return release


@dataclass(frozen=True)
class LinkedShape:
    """Of invented linked tables, people first.

    tables: the shape of each. parents: the place of the table above, of all but people. counts: of
    all but people, how many rows a row above has, and which share of these has as many.
    """

    tables: Sequence[Shape]
    parents: Sequence[int]
    counts: Sequence[Mapping[str, float]]

    @classmethod
    def of(cls, tables: LinkedTables, others: Mapping[str, int], k: int) -> LinkedShape:
        """The shape of tables that were read. others: by table, columns published as they are."""
        names = [table.name for table in tables.tree.tables]
        shapes = []
        for name in names:
            values = tuple(len(a.texts) for a in tables.rows[name].encoded.attributes)
            shapes.append(Shape(len(values), k, others.get(name, 0), values or None))
        counts = []
        for name in names[1:]:
            rows, times = np.unique(tables.rows[name].counts, return_counts=True)
            shares = (times / times.sum()).tolist()
            counts.append(dict(zip(map(str, rows.tolist()), shares, strict=True)))
        parents = [names.index(table.parent or PEOPLE) for table in tables.tree.tables[1:]]
        return cls(shapes, parents, counts)

    @property
    def quasi(self) -> int:
        return sum(shape.quasi for shape in self.tables)

    @property
    def other(self) -> int:
        return sum(shape.other for shape in self.tables)

    @property
    def k(self) -> int:
        return self.tables[0].k

    @property
    def names(self) -> list[str]:
        return [PEOPLE, *(f"t{place}" for place, _ in enumerate(self.parents, start=1))]

    @property
    def policy(self) -> Policy:
        first, *below = self.tables
        tables = {
            name: {
                "parent": {self.names[parent]: "above"},
                "key": "key",
                "attributes": shape.attributes,
            }
            for name, shape, parent in zip(self.names[1:], below, self.parents, strict=True)
        }
        return Policy.from_dict(
            {
                "version": 1,
                "attributes": {"key": {"role": "subject"}, **first.attributes},
                "tables": tables,
                "promises": [{"model": "k-anonymity", "k": first.k}],
                "seed": 1,
            }
        )

    def invent(self, records: int, folder: Path) -> Path:
        """Writes such tables of this number of people into a folder; where it is."""
        rng = np.random.default_rng(2)
        source = folder / "tables"
        source.mkdir(exist_ok=True)
        sizes = [records]
        frames = [self._keyed(0, records)]
        for place, (parent, counts) in enumerate(zip(self.parents, self.counts, strict=True), 1):
            rows = rng.choice([int(n) for n in counts], sizes[parent], p=list(counts.values()))
            above = np.repeat(np.arange(sizes[parent]), rows)
            sizes.append(len(above))
            frames.append(self._keyed(place, len(above)).with_columns(above=pl.Series(above)))
        for name, frame in zip(self.names, frames, strict=True):
            files.write(frame, Path(place_in_folder(source, name)))
        return source

    def _keyed(self, place: int, rows: int) -> pl.DataFrame:
        return pl.DataFrame({"key": np.arange(rows)}).hstack(self.tables[place].table(rows))

    def publish(self, source: Path, folder: Path, progress: Progress) -> Path:
        """Publishes them; where the release is."""
        release = folder / "released"
        publish_linked(str(source), self.policy, str(release), replace=True, progress=progress)
        return release
