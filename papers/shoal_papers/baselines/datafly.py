"""Datafly: generalize the attribute with most distinct values until only few records stand out,
then suppress these.

Sweeney. International Journal of Uncertainty, Fuzziness and Knowledge-Based Systems 10(5):571-588,
2002,
figure 9. A baseline: greedy, no promise on what is lost.

Promise: every class keeps every promise of the policy; no more than `suppression` of the records,
or in the paper's setting no more than k, are suppressed.
Reading: ties go to the first attribute. Where all attributes are fully generalized the step ends.
The paper knows k-anonymity only; where more is promised, records of classes that break any promise
stand out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.partition import Cut, Matrix
from shoal.errors import InfeasibleError
from shoal.protocols import Promises, Recoder
from shoal.search.large_tables import on_distinct_rows
from shoal.search.lattice import Lattice, account
from shoal.search.segments import require_people


@dataclass(frozen=True)
class Datafly(Recoder):
    """Parameters of the method."""

    name: ClassVar[str] = "datafly"
    paper: ClassVar[str] = "Sweeney 2002"

    suppression: float | None = parameter(
        "greatest share of records suppressed; not set is the paper's: k records",
        default=None,
        low=0.0,
        high=1.0,
    )

    @on_distinct_rows()
    def cut(
        self,
        matrix: Matrix,
        promises: Promises,
        rng: np.random.Generator,
        progress: Callable[[str], None] = lambda stage: None,
    ) -> Cut:
        """Levels, raised one at a time, and who is suppressed; draws no random number."""
        require_people(matrix, promises)
        limit = min(promises.k, matrix.total - promises.k)
        if self.suppression is not None:
            limit = int(Fraction(str(self.suppression)) * matrix.total)
        lattice = Lattice(matrix, promises, limit=limit)
        node, classes = lattice.low, lattice.bottom
        while True:
            judged = lattice.judge(classes, node)
            if judged.holds:
                break
            distinct = [
                len(np.unique(lattice.levels.at(j, level)[lattice.levels.present[j] > 0]))
                for j, level in enumerate(node)
            ]
            widest = max(range(len(node)), key=lambda j: (node[j] < lattice.high[j], distinct[j]))
            if node[widest] == lattice.high[widest]:
                raise InfeasibleError(
                    f"method '{self.name}': fully generalized records break a promise; relax the"
                    " promises"
                )
            node = (*node[:widest], node[widest] + 1, *node[widest + 1 :])
            classes, _ = lattice.rolled_up(classes, node)
        return Cut.at_levels(
            matrix, node, lattice.suppressed(node), search_statistics=account(lattice, node, judged)
        )
