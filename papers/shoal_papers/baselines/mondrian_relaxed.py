"""Mondrian, relaxed: cuts into equal halves, sharing the records at the median between them.

LeFevre, DeWitt, Ramakrishnan. Mondrian multidimensional k-anonymity. ICDE 2006. Section 3.2.
Promise: every class holds k people; with one record to a person, none holds more than 2k - 1
records.
Paper: splitVal, lhs, rhs          Here: the code at rank floor(m / 2), left, right
Reading: the paper shares the records equal to the median "evenly" and does not say which go where.
`ties="rows"`, the named baseline, keeps the order of the records, as if every cut sorted its
segment
stably: after the order of the attributes cut before, the table's own. `ties="codes"` looks at the
other attributes instead and does not depend on the order of the table.
Reading: bounds are tight on every attribute of every segment; implementations that keep those of
the parent publish wider classes.
Reading: hierarchies are ordered by their leaves in depth-first order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.partition import Matrix, Partition
from shoal.protocols import Partitioner, Promises
from shoal.search.kernels import cuts
from shoal.search.segments import CODES, STABLE, cut_by_rule, require_people


@dataclass(frozen=True)
class MondrianRelaxed(Partitioner):
    """Relaxed Mondrian: classes of nearly equal size, wherever equal records lie."""

    name: ClassVar[str] = "mondrian-relaxed"
    paper: ClassVar[str] = (
        "LeFevre, DeWitt, Ramakrishnan. Mondrian multidimensional k-anonymity. ICDE 2006."
    )

    ties: str = parameter(
        "which records equal to the median go left: the earlier in the order that earlier "
        "cuts left, or the lower on the other attributes, the widest first",
        default="rows",
        choices=("rows", "codes"),
    )

    def decides_locally(self, over_trees: bool) -> bool:
        """Whether a class is cut by its own records alone, whatever was cut before."""
        return self.ties == "codes"

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """Classes of at least `promises.k` people."""
        require_people(matrix, promises)
        return cut_by_rule(matrix, promises, cuts.HALVES, STABLE if self.ties == "rows" else CODES)
