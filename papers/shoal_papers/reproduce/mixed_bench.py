"""CRP over numbers and categories: classes found by several distances, judged by one loss.

The paper says that what is no number has to become one (section 3.2) and that a distance over mixed
attributes is hard to define (4.3(2)), but neither how nor how much it matters. Whatever the
distance, the loss is that of what would be published: the width of a number's interval, and of the
lowest node over a category's values.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.ledger_view import LedgerView
from shoal.data.partition import Matrix, Partition
from shoal.data.table import Table
from shoal.ledgers.methods.crp import Crp
from shoal.ledgers.planned_release import partition_table
from shoal.policy.binding.table import bound_table
from shoal.policy.policy import Policy
from shoal.samples import patients
from shoal.search.segments import losses_of
from shoal.testing import OnlyK
from shoal_papers.reproduce.data_sets import adult, data_file
from shoal_papers.reproduce.paper import Setting
from shoal_papers.reproduce.table_bench import QUASI

NODE, MISMATCH, RANK, NUMBERS = "lowest node", "mismatch", "rank", "numbers alone"
MONDRIAN = "Static I"
DISTANCES = (NODE, MISMATCH, RANK, NUMBERS, MONDRIAN)
"""Two values are as far apart as the lowest node over both is wide; 0 or 1; by their places in the
hierarchy's order; not at all. Last, no distance, but what CRP is compared with.
"""
SHUFFLE = 1


@dataclass(frozen=True)
class MixedTable:
    """matrix: records in random order. sha256: of the cells that it comes from."""

    matrix: Matrix
    sha256: str

    def measure(self, setting: Setting, most: int) -> dict[str, Any]:
        """A table and its increments, at most so many, as far as the records reach."""
        size, k = setting["size"], setting["k"]
        seen = seen_by(self.matrix, setting["distance"])
        lost, tables = 0.0, min(most, self.matrix.records // size)
        for first in range(0, tables * size, size):
            rows = np.arange(first, first + size)
            classes = _classes(seen.take(rows), k, setting["distance"])
            losses = losses_of(self.matrix.take(rows), classes)
            lost += float(losses[classes.labels].sum())
        cells = tables * size * self.matrix.attributes
        return {"gcp": lost / cells, "tables": tables, "sha256": self.sha256[:16]}


def _classes(increment: Matrix, k: int, distance: str) -> Partition:
    rng, promises = np.random.default_rng(0), OnlyK(increment, k)
    if distance == MONDRIAN:
        return partition_table("mondrian", increment, promises, rng)
    placed = Crp().publish(increment, LedgerView(), promises, rng)
    return Partition(placed.labels, placed.count)


def seen_by(matrix: Matrix, distance: str) -> Matrix:
    """The records as a distance sees them."""
    if distance in (NODE, MONDRIAN):
        return matrix
    ranges: list[float | Hierarchy] = [*matrix.reach.tolist()]
    for j in range(matrix.attributes):
        if matrix.is_tree(j):
            leaves = matrix.leaves(j)
            ranges[j] = leaves - 1.0 if distance == RANK else 0.0
            if distance == MISMATCH:
                ranges[j] = Hierarchy.from_paths([(str(leaf), "*") for leaf in range(leaves)])
    return Matrix.from_columns(matrix.codes, ranges)


def read(folder: Path | None) -> MixedTable:
    """Adult: the age, and seven categories with the hierarchies of ARX."""
    frame, source = adult(folder)
    trees = "adult/hierarchies_arx/{}.csv"
    hierarchies = {name: str(data_file(folder, trees.format(name)).resolve()) for name in QUASI[1:]}
    return _table(frame.select(QUASI), hierarchies, source.sha256)


def made_up(records: int) -> MixedTable:
    """Invented patients in place of the real table."""
    frame = patients.generate(2 * records, 7).unique("patient", keep="first", maintain_order=True)
    frame = frame.select("age", "zip", "ward").head(records).cast(pl.String)
    digest = hashlib.sha256(frame.write_csv().encode()).hexdigest()
    return _table(frame, {"zip": {"prefix": 5}}, digest)


def _table(frame: pl.DataFrame, hierarchies: dict[str, Any], sha256: str) -> MixedTable:
    attributes: dict[str, Any] = {name: {"role": "quasi"} for name in frame.columns}
    attributes["age"]["type"] = "number"
    for name, hierarchy in hierarchies.items():
        attributes[name]["hierarchy"] = hierarchy
    promises = [{"model": "k-anonymity", "k": 2}]
    policy = Policy.from_dict({"version": 1, "attributes": attributes, "promises": promises})
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=SHUFFLE)
    return MixedTable(bound_table(Table(shuffled), policy).matrix(), sha256)
