"""The lattice of full-domain generalizations: a level for each attribute, and what a node of it
costs.

Samarati. IEEE TKDE 13(6):1010-1027, 2001; LeFevre, DeWitt, Ramakrishnan. SIGMOD 2005.
A node's classes are made from those of a finer node, not from the records (`rolled up`). Costs
follow `METRICS`; each gives, beside a node's score, what it would be if nothing were suppressed
(`floor`). The floor never falls on the way up, and a floor never exceeds its score, so it bounds
all coarser nodes.
"""

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from shoal.data.classes import Population
from shoal.data.partition import Matrix
from shoal.errors import InputError
from shoal.protocols import Promises
from shoal.search.kernels import distinct_rows as kernel
from shoal.search.large_tables import strides
from shoal.search.lattice_costs import GEOMETRIC, LatticeCosts, Levels, Node, NodeGroups


class NodeScore(NamedTuple):
    """A node, measured. failing: (c,) bool, classes that are suppressed; suppressed: their records.

    penalty: by how much suppression raises the score above the floor. counted, least: suppressed
    records and penalty if nothing but people were counted. holds: whether the node may be
    published, as far as was asked; fails_below: whether no finer node may. at_least: no choice of
    suppressed records keeps the promises at this node for less; infinite where none can.
    """

    classes: NodeGroups
    failing: np.ndarray
    suppressed: int
    floor: float
    penalty: float
    counted: int
    least: float
    holds: bool
    fails_below: bool
    at_least: float

    @property
    def score(self) -> float:
        return self.floor + self.penalty


class Lattice:
    """Nodes of a matrix between two levels of each attribute, judged by promises and a metric.

    limit: records that may be suppressed.
    """

    def __init__(
        self,
        matrix: Matrix,
        promises: Promises,
        metric: str = "loss",
        limit: int = 0,
        low: Node = (),
        high: Node = (),
    ) -> None:
        self.matrix, self.promises, self.metric, self.limit = matrix, promises, metric, limit
        self.low = low or (0,) * matrix.attributes
        self.high = high or tuple(int(h) for h in matrix.heights)
        self.shape = tuple(high - low + 1 for low, high in zip(self.low, self.high, strict=True))
        self.levels = Levels.of(matrix)
        self.judged = 0
        self._costs = LatticeCosts(matrix, self.levels, metric, promises.k)
        n = matrix.records
        size = np.ones(n, dtype=np.int32) if matrix.count is None else matrix.count
        whole = NodeGroups(np.arange(n, dtype=np.int32), size)
        self.bottom, self._bottom_of = self.rolled_up(whole, self.low)
        self._asks = promises.needs_more_than_k or promises.about_release
        self._counts_over_all = max(
            (q.k for q in promises.qids if len(q.attributes) in (0, matrix.attributes)), default=1
        )
        over = [(q.k, np.isin(matrix.names, q.attributes)) for q in promises.qids]
        self._counts_over_some = [(k, o) for k, o in over if o.any() and not o.all()]
        # else whoever is suppressed has to be, or costs least of those who may be
        asks_more = not promises.about_lone_records or bool(self._counts_over_some)
        is_open = promises.about_release and (asks_more or metric == GEOMETRIC)
        self._is_a_choice = limit > 0 and (promises.relative or is_open)
        self._people, at = {}, n
        for name, people in matrix.populations.items():
            rows = np.arange(at, at + len(people), dtype=np.int32)
            self._people[name], _ = self.rolled_up(
                NodeGroups(rows, np.ones(len(rows), dtype=np.int32)), self.low
            )
            at += len(people)

    @property
    def nodes(self) -> int:
        return prod(self.shape)

    def floors(self) -> np.ndarray:
        """The least that each node can score, known before any is looked at; float64 of `shape`."""
        floors = np.zeros(self.shape)
        for j, costs in enumerate(self._costs.means):
            ends = [1] * len(self.shape)
            ends[j] = self.shape[j]
            floors += costs[self.low[j] : self.high[j] + 1].reshape(ends)
        return floors

    def rolled_up(
        self, classes: NodeGroups, node: Node, attributes: np.ndarray | None = None
    ) -> tuple[NodeGroups, np.ndarray]:
        """The classes of a node from those of a finer one, and which of them each becomes.

        attributes: (d,) bool, those that tell classes apart; None for all.
        """
        levels = self.levels
        place = np.array([levels.place[j][level] for j, level in enumerate(node)], dtype=np.int64)
        groups = [int(levels.groups[j][level]) for j, level in enumerate(node)]
        if attributes is not None:
            groups = [g if used else 1 for g, used in zip(groups, attributes, strict=True)]
        stride, exact = strides(groups)
        first, size, class_of = kernel.coarsened(
            levels.codes, classes.first, classes.size, levels.span, place, stride, exact
        )
        return NodeGroups(first, size), class_of

    def judge(self, classes: NodeGroups, node: Node, enough: float = np.inf) -> NodeScore:
        """A node with its classes, measured.

        Where counting people alone shows that it suppresses too many, or costs at least `enough`,
        no other promise is asked and what is returned counts people alone.
        """
        self.judged += 1
        failing = self._too_few(classes, node)
        counted, floor, least = self._measured(classes, node, failing)
        suppressed, penalty, together = counted, least, True
        fails_below = counted > self.limit
        asked = self._asks and not fails_below and floor + least < enough
        if asked:
            failing, together = self._failing(classes, node, failing)
            suppressed, floor, penalty = self._measured(classes, node, failing)
            # with suppression a class that holds may be joined by one that doesn't, so nothing
            # follows
            fails_below = not self.limit and (
                suppressed > 0 or (not together and self.promises.release_checks_are_monotone)
            )
        holds = suppressed <= self.limit and together and not failing.all()
        at_least = floor + least
        if counted > self.limit or not (holds or self._is_a_choice):
            at_least = np.inf
        elif asked and not self._is_a_choice:
            at_least = floor + penalty
        return NodeScore(
            classes,
            failing,
            suppressed,
            floor,
            penalty,
            counted,
            least,
            holds,
            fails_below,
            at_least,
        )

    def reported(self, score: float) -> float:
        """A score as the metric itself has it."""
        return self._costs.reported(score)

    def too_small(self, node: Node, attributes: tuple[int, ...]) -> int:
        """Records in classes too small for the counts over these attributes or some of them."""
        self.judged += 1
        used = np.isin(np.arange(len(node)), attributes)
        classes, _ = self.rolled_up(self.bottom, node, used)
        return int(classes.size[self._too_few(classes, node, used)].sum())

    def suppressed(self, node: Node) -> np.ndarray:
        """Who is suppressed at a node; (n,) bool."""
        classes, class_of = self.rolled_up(self.bottom, node)
        return self.judge(classes, node).failing[class_of[self._bottom_of]]

    def labels(self, node: Node) -> tuple[np.ndarray, int]:
        """Class of each record at a node, and how many there are."""
        classes, class_of = self.rolled_up(self.bottom, node)
        return class_of[self._bottom_of], len(classes.first)

    def cells(self, node: Node) -> dict[str, np.ndarray]:
        """Cells of each quasi-identifier at a node, by name; (n,) int32."""
        codes = self.levels.codes[: self.matrix.records]
        return {
            name: self.levels.at(j, node[j])[codes[:, j]]
            for j, name in enumerate(self.matrix.names)
        }

    def _measured(
        self, classes: NodeGroups, node: Node, failing: np.ndarray
    ) -> tuple[int, float, float]:
        suppressed = int(classes.size[failing].sum())
        return suppressed, *self._costs.of(classes, node, failing, suppressed)

    def _too_few(
        self, classes: NodeGroups, node: Node, used: np.ndarray | None = None
    ) -> np.ndarray:
        """Classes without enough records for some count of people; (c,) bool.

        Who is suppressed is missing in the counts over other attributes, so those are taken again.
        used: (d,) bool, attributes that tell the classes apart; counts over others are not asked,
        except over all.
        """
        failing = classes.size < self._counts_over_all
        parts = [
            (k, self.rolled_up(classes, node, over)[1])
            for k, over in self._counts_over_some
            if used is None or used[over].all()
        ]
        while parts:
            before = int(failing.sum())
            for k, group in parts:
                sizes = np.bincount(group, weights=np.where(failing, 0, classes.size))
                failing |= sizes[group] < k
            if int(failing.sum()) == before:
                break
        return failing

    def _failing(
        self, classes: NodeGroups, node: Node, failing: np.ndarray
    ) -> tuple[np.ndarray, bool]:
        """Classes that have to go, (c,) bool, and whether the rest keeps all promises about the
        release.

        The whole table is what is left. While a promise about the release breaks, as few of the
        smallest classes go as are enough.
        """
        # classes are numbered by their first record, from whatever finer ones they were made
        _, class_of = self.rolled_up(self.bottom, node)
        of_record, promises = class_of[self._bottom_of], self.promises
        cells = self.cells(node) if any(qid.attributes for qid in promises.qids) else None
        people = self.population(classes, node)
        gone = failing.copy()
        while not gone.all() and int(classes.size[gone].sum()) <= self.limit:
            kept = np.flatnonzero(~gone)
            number = np.full(len(gone), -1, dtype=np.int32)
            number[kept] = np.arange(len(kept), dtype=np.int32)
            labels = number[of_record]
            if promises.relative and gone.any():
                promises = self.promises.restricted_to(labels >= 0)
            fits = {
                name: Population(p.people[kept], p.outside + int(p.people[gone].sum()))
                for name, p in people.items()
            }
            broken = ~promises.holds(labels, len(kept), cells, fits)
            if not broken.any():
                if not promises.about_release or promises.release_holds(labels, len(kept)):
                    return gone, True
                if not self.limit:
                    return gone, False
                broken = self._fewest(classes, node, kept, of_record)
            gone[kept[broken]] = True
        return gone, not gone.all()

    def _fewest(
        self, classes: NodeGroups, node: Node, kept: np.ndarray, of_record: np.ndarray
    ) -> np.ndarray:
        """Which of the kept classes go: of the smallest as few as keep the promises about the
        release, those that cost least; all of the smallest where that is not enough. (kept,) bool.
        """
        least = int(classes.size[kept].min())
        smallest = np.flatnonzero(classes.size[kept] == least)
        costs = self._costs.alone(classes, node, kept[smallest])
        smallest = smallest[np.argsort(costs, kind="stable")]
        room = self.limit - (self.matrix.total - int(classes.size[kept].sum()))

        def without(number: int) -> np.ndarray:
            left = np.ones(len(kept), dtype=bool)
            left[smallest[:number]] = False
            return left

        def holds(number: int) -> bool:
            left = kept[without(number)]
            place = np.full(len(classes.size), -1, dtype=np.int32)
            place[left] = np.arange(len(left), dtype=np.int32)
            return self.promises.release_holds(place[of_record], len(left))

        few, most = 0, min(len(smallest), room // least)  # `few` are not enough
        if not holds(most):
            return ~without(len(smallest))
        while most - few > 1:
            middle = (few + most) // 2
            few, most = (few, middle) if holds(middle) else (middle, most)
        return ~without(most)

    def population(self, classes: NodeGroups, node: Node) -> dict[str, Population]:
        """Who of each population fits each class of a node."""
        found = {}
        for name, people in self._people.items():
            both = NodeGroups(
                *(np.concatenate(parts) for parts in zip(classes, people, strict=True))
            )
            fits = self.rolled_up(both, node)[1][len(classes.first) :]
            inside = fits < len(classes.first)
            counts = np.bincount(
                fits[inside], weights=people.size[inside], minlength=len(classes.first)
            )
            found[name] = Population(counts.astype(np.int64), int(people.size[~inside].sum()))
        return found


def account(
    lattice: Lattice, node: Node, judged: NodeScore, proven: bool = False, every_node: bool = False
) -> dict[str, Any]:
    """What a search says about the node it chose.

    proven: whether nothing scores less, whatever levels and whoever is suppressed. every_node:
    whether no other node scores less by the same rule of who is suppressed.
    """
    return {
        "levels": dict(zip(lattice.matrix.names, node, strict=True)),
        "metric": lattice.metric,
        "score": lattice.reported(judged.score),
        "suppressed": judged.suppressed,
        "proven": proven,
        "every_node": every_node,
        "nodes": lattice.nodes,
        "judged": lattice.judged,
    }


def levels_given(
    method: str, parameter: str, given: tuple[str, ...], matrix: Matrix
) -> Mapping[int, int]:
    """Levels by attribute from `name:level`; raises InputError with every one that doesn't fit."""
    found, findings = {}, []
    for text in given:
        name, _, level = text.rpartition(":")
        if name not in matrix.names or not level.strip().isdecimal():
            findings.append(
                f"method '{method}': parameter '{parameter}' must list quasi-identifier:level, such"
                " as age:2"
            )
            continue
        j = matrix.names.index(name)
        if int(level) > matrix.heights[j]:
            findings.append(
                f"method '{method}': parameter '{parameter}' asks level {int(level)} of '{name}', "
                f"which has {int(matrix.heights[j])}; choose a lower one"
            )
        found[j] = int(level)
    InputError.raise_for(findings)
    return found
