"""Incognito: every full-domain generalization that keeps the promises, found subset by subset of
the attributes.

LeFevre, DeWitt, Ramakrishnan. SIGMOD 2005. A baseline: exact, but it looks at far more nodes than a
search for the best one has to.

1. Attributes are taken in sets of 1, 2, ... A set's lattice holds only nodes whose every part, one
   attribute less, kept k-anonymity: who is in a small class under fewer attributes is so under more
   (subset property).
2. Its nodes are looked at from the bottom. One that keeps k-anonymity marks all coarser ones, which
   are not looked at any more (generalization property).
3. Of the nodes of all attributes that are marked, the one whose score is least is published.

Promise: every class keeps every promise; at most `suppression` of the records are suppressed.
Reading: the paper leaves the choice in step 3 open; `metric` decides. Other promises than a count
of people are asked in step 3 alone, of nodes by ascending floor, so that any promise may be given.
Counts over some of the attributes are asked of the sets that hold them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.partition import Cut, Matrix
from shoal.errors import InfeasibleError, InputError
from shoal.protocols import Promises, Recoder
from shoal.search.large_tables import on_distinct_rows
from shoal.search.lattice import Lattice, NodeScore, account
from shoal.search.lattice_costs import METRICS, Node
from shoal.search.segments import require_people

ROUNDING = 1e-12  # scores closer than this are equal
LARGEST = 2_000_000  # nodes of all sets of attributes together

Attributes = tuple[int, ...]


@dataclass(frozen=True)
class Incognito(Recoder):
    """Parameters of the method."""

    name: ClassVar[str] = "incognito"
    paper: ClassVar[str] = "LeFevre, DeWitt, Ramakrishnan 2005"

    metric: str = parameter("what is made least", default="loss", choices=METRICS)
    suppression: float = parameter(
        "greatest share of records that may be suppressed", default=0.0, low=0.0, high=1.0
    )

    @on_distinct_rows()
    def cut(
        self,
        matrix: Matrix,
        promises: Promises,
        rng: np.random.Generator,
        progress: Callable[[str], None] = lambda stage: None,
    ) -> Cut:
        """The cheapest node of all that keep the promises, and who is suppressed there; draws no
        random number.
        """
        require_people(matrix, promises)
        every = int(np.prod(matrix.heights.astype(float) + 2))
        if every > LARGEST:
            raise InputError(
                f"method '{self.name}': {every:,} nodes over all sets of attributes are too many;"
                " choose 'full-domain'"
            )
        limit = int(Fraction(str(self.suppression)) * matrix.total)
        lattice = Lattice(matrix, promises, self.metric, limit)
        node, judged, proven = _cheapest(lattice, _anonymous(lattice, progress))
        if node is None or judged is None:
            raise InfeasibleError(
                f"method '{self.name}': no node keeps every promise; raise 'suppression' or relax"
                " them"
            )
        return Cut.at_levels(
            matrix,
            node,
            lattice.suppressed(node),
            search_statistics=account(lattice, node, judged, proven, every_node=True),
        )


def _anonymous(lattice: Lattice, progress: Callable[[str], None]) -> np.ndarray:
    """Nodes of all attributes that keep the counts of people but for the limit; bool of the
    lattice's shape.
    """
    d = len(lattice.shape)
    marked: dict[Attributes, np.ndarray] = {(): np.ones((1,) * d, dtype=bool)}
    for size in range(1, d + 1):
        progress(f"looking at sets of {size} of {d} quasi-identifiers")
        # step 1
        marked = {
            chosen: _marked(lattice, chosen, marked) for chosen in combinations(range(d), size)
        }
    return marked[tuple(range(d))]


def _marked(
    lattice: Lattice, chosen: Attributes, parts: dict[Attributes, np.ndarray]
) -> np.ndarray:
    """Nodes of a set of attributes that keep the counts of people; an axis for each attribute of
    the table.
    """
    extent = tuple(n if j in chosen else 1 for j, n in enumerate(lattice.shape))
    candidates = np.ones(extent, dtype=bool)
    for left_out in chosen:
        candidates &= parts[tuple(j for j in chosen if j != left_out)]
    marked = np.zeros(extent, dtype=bool)
    places = np.argwhere(candidates)
    for place in places[np.argsort(places.sum(axis=1), kind="stable")]:  # step 2
        if marked[tuple(place)]:
            continue
        if lattice.too_small(tuple(place.tolist()), chosen) <= lattice.limit:
            marked[tuple(slice(step, None) for step in place)] = True
    return marked


def _cheapest(
    lattice: Lattice, anonymous: np.ndarray
) -> tuple[Node | None, NodeScore | None, bool]:
    """Step 3: the node whose score is least among those that keep every promise, and whether none
    scores less, whoever is suppressed there.
    """
    floors = lattice.floors()
    at_least = np.inf
    best: tuple[Node | None, NodeScore | None] = (None, None)
    for place in sorted(
        map(tuple, np.argwhere(anonymous).tolist()), key=lambda at: (floors[at], at)
    ):
        enough = np.inf if best[1] is None else best[1].score
        if floors[place] >= enough:
            break
        judged = lattice.judge(lattice.rolled_up(lattice.bottom, place)[0], place, enough)
        at_least = min(at_least, judged.at_least)
        if judged.holds and judged.score < enough:
            best = place, judged
    return *best, best[1] is not None and at_least >= best[1].score - ROUNDING
