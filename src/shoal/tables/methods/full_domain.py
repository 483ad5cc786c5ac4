"""Full-domain generalization: the level of every hierarchy that costs least while every promise
holds.

Samarati. IEEE TKDE 13(6):1010-1027, 2001 (lattice, generalization with suppression). Predictable
tagging
along paths of the lattice: Kohlmayer, Prasser, Eckert, Kemper, Kuhn. Flash. PASSAT 2012. Ours: the
bounds.

What is known of a node says something of others, so most need not be looked at (`_Search`):

1. The score without suppression, the floor, never falls on the way up. Known floors bound all
coarser nodes.
2. Who is in too small a class at a node is so at every finer node. What that adds to the node's
   score is added to the floor of every finer one, too; and where it is more than `suppression`
   allows, all finer ones fall.
3. Without suppression every monotone promise works like 2. and a node that holds ends the way up.
4. With suppression only counts of people work like 2.: a class that keeps another promise may be
   joined by one that breaks it. The others are asked wherever the bounds allow the node to win.
5. Classes are rolled up from the classes of a finer node.

Optimal: the outcome's score equals that of trying every node. Where the lattice is too large
(`search: auto`, more than LARGEST nodes) or the `budget` ends the search, the outcome is the best
that was found, and says so.

Reading: a record that is suppressed costs what it would cost at the root of every hierarchy (loss,
precision, entropy, ambiguity), the whole table (discernibility), nothing of its own
(`discernibility-star` and height); all suppressed records are one class more for the average class
size. Classes of too few people are suppressed first, then those that break another promise, the
whole table being who is left, until none does. While a promise about the release breaks, as few of
the smallest classes as suffice, those that cost least (ours); where fewer might keep it and more
not, as of an estimate, a number that halving finds. Where other records might be suppressed
instead - a promise compares with whoever is left, or is about the release and asks more than how
many records are alone - the outcome is the least by this rule (`every_node`) and not
`proven`; `bound` is then what the counts of people alone make it cost.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.partition import Cut, Matrix
from shoal.data.progress import Progress, no_progress
from shoal.errors import InfeasibleError, InputError
from shoal.protocols import Promises, Recoder
from shoal.search import large_tables, segments
from shoal.search.large_tables import PartPromises
from shoal.search.lattice import Lattice, NodeScore, account, levels_given
from shoal.search.lattice_costs import METRICS, Node, NodeGroups

LARGEST = 2_000_000  # nodes that are searched one and all
SEARCHES = ("auto", "optimal", "bottom-up", "top-down")
ROUNDING = 1e-12  # scores closer than this are equal
TOLD_EVERY = 2.0  # seconds
WORTHWHILE = 0.02  # share of the open nodes that a path should close
ROOM = 3  # times the classes of the bottom node are kept for rolling up
MOST_KEPT = 400  # nodes whose classes are kept
CLASS_METRICS = ("discernibility", "discernibility-star", "average-class-size", "ambiguity")

Place = tuple[int, ...]


@dataclass(frozen=True)
class FullDomain(Recoder):
    """Parameters of the method."""

    name: ClassVar[str] = "full-domain"
    paper: ClassVar[str] = "Samarati 2001; tagging after Kohlmayer et al. 2012"

    metric: str = parameter("what is made least", default="loss", choices=METRICS)
    suppression: float = parameter(
        "greatest share of records that may be suppressed", default=0.0, low=0.0, high=1.0
    )
    rounds: int = parameter(
        "further searches for what is suppressed, while that saves records", default=0, low=0
    )
    minimum: tuple[str, ...] = parameter("least levels, such as age:1", default=())
    maximum: tuple[str, ...] = parameter("greatest levels, such as age:3", default=())
    search: str = parameter(
        "optimal looks at every node that may be best; the other two climb or descend step"
        " by step; auto is optimal, and both of the others where there are more than"
        " 2,000,000 nodes",
        default="auto",
        choices=SEARCHES,
    )
    budget: float | None = parameter(
        "seconds after which the best that was found is taken", default=None, low=0.0
    )

    @large_tables.on_distinct_rows()
    def cut(
        self,
        matrix: Matrix,
        promises: Promises,
        rng: np.random.Generator,
        progress: Progress = no_progress,
    ) -> Cut:
        """The node that costs least, and who is suppressed there; draws no random number."""
        segments.require_people(matrix, promises)
        if self.rounds and (promises.relative or promises.about_release or matrix.populations):
            raise InputError(
                f"method '{self.name}': a promise looks at the whole release, which further rounds"
                " change; leave 'rounds' out"
            )
        limit = int(Fraction(str(self.suppression)) * matrix.total)
        return self._cut(matrix, promises, limit, self.rounds, _Clock(self.budget, progress))

    def _cut(
        self, matrix: Matrix, promises: Promises, limit: int, rounds: int, clock: "_Clock"
    ) -> Cut:
        lattice = Lattice(matrix, promises, self.metric, limit, *self._ends(matrix))
        found = _Search(lattice, clock).run(self.search)
        if found.node is None or found.judged is None:
            raise InfeasibleError(_nothing_found(self))
        suppressed = lattice.suppressed(found.node)
        proven = found.bound == found.score
        bound = None if found.bound is None else lattice.reported(found.bound)
        told = account(lattice, found.node, found.judged, proven, found.every_node)
        told |= {"bound": bound}
        cut = Cut.at_levels(matrix, found.node, suppressed, search_statistics=told)
        if not rounds or not suppressed.any():
            return cut
        return replace(cut, next_round=self._again(matrix, promises, suppressed, rounds, clock))

    def _again(
        self,
        matrix: Matrix,
        promises: Promises,
        suppressed: np.ndarray,
        rounds: int,
        clock: "_Clock",
    ) -> Cut | None:
        """A search among the suppressed records; None where it would save nobody."""
        rest = np.flatnonzero(suppressed)
        part, asked = matrix.take(rest), PartPromises(promises, rest, len(suppressed))
        if part.people < promises.k:
            return None
        try:
            cut = self._cut(part, asked, part.total, rounds - 1, clock)
        except InfeasibleError:
            return None
        # a cut to the roots shows nothing that suppression would not
        return (
            cut
            if not cut.suppressed.all() and any(len(starts) > 1 for starts in cut.starts)
            else None
        )

    def _ends(self, matrix: Matrix) -> tuple[Node, Node]:
        """Least and greatest level of every attribute."""
        low = levels_given(self.name, "minimum", self.minimum, matrix)
        high = levels_given(self.name, "maximum", self.maximum, matrix)
        least = tuple(low.get(j, 0) for j in range(matrix.attributes))
        most = tuple(high.get(j, int(matrix.heights[j])) for j in range(matrix.attributes))
        crossed = [
            f"method '{self.name}': the minimum level of '{matrix.names[j]}' is above its maximum;"
            " swap or drop one"
            for j in range(matrix.attributes)
            if least[j] > most[j]
        ]
        InputError.raise_for(crossed)
        return least, most


def _nothing_found(method: FullDomain) -> str:
    remedy = (
        "raise 'maximum' or 'suppression'"
        if method.maximum
        else "raise 'suppression' or relax the promises"
    )
    return (
        f"method '{method.name}': no levels keep every promise with what may be suppressed;"
        f" {remedy}"
    )


class _Clock:
    """Tells when the budget is spent, and now and then how far the work is."""

    def __init__(self, budget: float | None, progress: Progress) -> None:
        self._started = self._told = time.monotonic()
        self._budget, self._progress = budget, progress

    @property
    def over(self) -> bool:
        return self._budget is not None and time.monotonic() - self._started > self._budget

    def tell(self, left: Callable[[], np.ndarray] | int, of: int, best: float) -> None:
        now = time.monotonic()
        if now - self._told > TOLD_EVERY:
            self._told = now
            found = f", best so far {best:.6g}" if np.isfinite(best) else ""
            what, count = ("steps", left) if isinstance(left, int) else ("nodes", int(left().sum()))
            self._progress(f"searching the lattice: {count:,} of {of:,} {what} left{found}")


@dataclass(frozen=True)
class _Incumbent:
    """The best node so far. bound: nothing can score less; the score itself where that is proven.
    every_node: whether no other node scores less by the same rule of who is suppressed.
    """

    node: Node | None = None
    judged: NodeScore | None = None
    bound: float | None = None
    every_node: bool = False

    @property
    def score(self) -> float:
        return np.inf if self.judged is None else self.judged.score


class _Search:
    """One search. Places are relative to `lattice.low`; `bounds`: what each node costs at least."""

    def __init__(self, lattice: Lattice, clock: _Clock) -> None:
        self.lattice, self.clock = lattice, clock
        self.best = _Incumbent()
        self.at_least = np.inf  # what the nodes that were judged cost, whoever is suppressed
        self.top = tuple(extent - 1 for extent in lattice.shape)
        self.origin = tuple(0 for _ in lattice.shape)
        self.kept = _ClassCache(lattice)

    def run(self, search: str) -> _Incumbent:
        """The best node, by one of SEARCHES."""
        large = self.lattice.nodes > LARGEST
        if search == "optimal" and large:
            raise InputError(
                f"method 'full-domain': {self.lattice.nodes:,} nodes are too many for search"
                " 'optimal'; choose 'auto', or give 'minimum' and 'maximum' levels"
            )
        if search in ("top-down", "bottom-up") or large:
            self._judge(self.top)
            if search != "bottom-up":
                self._descend(self.top)
            if search != "top-down":
                self._climb()
            return self.best
        self._all()
        return self.best

    def _judge(
        self, place: Place, classes: NodeGroups | None = None, enough: float = np.inf
    ) -> NodeScore:
        """Judges a node and keeps the best; one that costs `enough` is not asked everything."""
        node = self.node(place)
        if classes is None:
            classes = self.kept.classes(place, node)
        judged = self.lattice.judge(classes, node, enough)
        self.at_least = min(self.at_least, judged.at_least)
        if judged.holds and judged.score < self.best.score - ROUNDING:
            self.best = _Incumbent(node, judged)
        return judged

    def node(self, place: Place) -> Node:
        return tuple(int(low + step) for low, step in zip(self.lattice.low, place, strict=True))

    def _told(self) -> float:
        return self.lattice.reported(self.best.score)

    # Every node that may be best

    def _all(self) -> None:
        self.floors = self.lattice.floors()
        self.bounds = self.floors.copy()
        self.open = np.ones(self.lattice.shape, dtype=bool)
        self._look(self.top)
        self._along_paths()
        if self.lattice.limit and not self.clock.over:
            self._everywhere()
        left = self._left()
        bound = min(self.at_least, float(self.bounds[left].min()) if left.any() else np.inf)
        if bound >= self.best.score - ROUNDING:
            bound = self.best.score
        self.best = replace(self.best, bound=bound, every_node=not left.any())

    def _left(self) -> np.ndarray:
        """Nodes that may still be best; bool of the lattice's shape."""
        return self.open & (self.bounds < self.best.score - ROUNDING)

    def _look(self, place: Place, classes: NodeGroups | None = None) -> NodeScore:
        """Judges a node and closes all nodes that can't win any more."""
        judged = self._judge(place, classes, self.best.score - ROUNDING)
        limit, metric = self.lattice.limit, self.lattice.metric
        above = tuple(slice(step, None) for step in place)
        below = tuple(slice(None, step + 1) for step in place)
        self.open[place] = False
        if judged.fails_below:
            self.open[below] = False
        elif (judged.holds and not limit) or judged.floor >= self.best.score - ROUNDING:
            self.open[above] = False  # coarser nodes cost at least the floor
        if metric in CLASS_METRICS:
            np.maximum(self.floors[above], judged.floor, out=self.floors[above])
            np.maximum(self.bounds[above], judged.floor, out=self.bounds[above])
        if limit and judged.least and metric != "average-class-size":
            np.maximum(
                self.bounds[below], self.floors[below] + judged.least, out=self.bounds[below]
            )
        return judged

    def _along_paths(self) -> None:
        """Looks where it tells most: in the middle of paths from the cheapest open node to the top.

        Without suppression until nothing is left, else until a path closes few nodes.
        """
        left = int(self._left().sum())
        while left and not self.clock.over:
            self.clock.tell(self._left, self.lattice.nodes, self._told())
            bounds = np.where(self._left(), self.bounds, np.inf)
            path = self._path(
                tuple(int(step) for step in np.unravel_index(bounds.argmin(), bounds.shape))
            )
            if self.lattice.limit:
                for place in reversed(path):
                    self._look(place)
            else:
                self._halve(path)
            before, left = left, int(self._left().sum())
            if self.lattice.limit and before - left < before * WORTHWHILE:
                return

    def _path(self, place: Place) -> list[Place]:
        """Open nodes from here up, each time by the step that costs least."""
        path = [place]
        while True:
            steps = [up for up in self._steps(path[-1], 1) if self.open[up]]
            if not steps:
                return path
            path.append(min(steps, key=lambda up: (self.floors[up], up)))

    def _halve(self, path: list[Place]) -> None:
        """Looks for the lowest node of a path that holds: all above one that holds do, too."""
        low, high = 0, len(path)
        while low < high and not self.clock.over:
            middle = (low + high) // 2
            judged = self._look(path[middle])
            if judged.holds or judged.floor >= self.best.score - ROUNDING:
                high = middle
            else:
                low = middle + 1

    def _everywhere(self) -> None:
        """Looks at all that is left, each node with the classes of the one below it."""
        order = self._weakest_last()
        stack = [(self.origin, 0, self.lattice.bottom)]
        while stack and not self.clock.over:
            place, turn, classes = stack.pop()
            self.clock.tell(self._left, self.lattice.nodes, self._told())
            if self.open[place] and self.bounds[place] < self.best.score - ROUNDING:
                classes, _ = self.lattice.rolled_up(classes, self.node(place))
                self._look(place, classes)
            for at in range(turn, len(order)):
                up = _moved(place, order[at], 1)
                if (
                    up[order[at]] <= self.top[order[at]]
                    and self.floors[up] < self.best.score - ROUNDING
                ):
                    stack.append((up, at, classes))

    def _weakest_last(self) -> list[int]:
        """Attributes by how many classes are left one level higher, fewest first."""
        left = {}
        for j, top in enumerate(self.top):
            up = _moved(self.origin, j, min(1, top))
            left[j] = len(self.lattice.rolled_up(self.lattice.bottom, self.node(up))[0].first)
        return sorted(left, key=lambda j: (left[j], j))

    # Large lattices: step by step

    def _climb(self) -> None:
        """From the bottom, by the step that saves most records for its cost, while scores fall."""
        place, classes = self.origin, self.lattice.bottom
        here = self._judge(place, classes)
        while not self.clock.over:
            self.clock.tell(sum(self.top) - sum(place), sum(self.top), self._told())
            ups = list(self._steps(place, 1))
            steps = [
                (up, self._judge(up, self.lattice.rolled_up(classes, self.node(up))[0]))
                for up in ups
            ]
            if not steps or (
                here.holds and min(judged.score for _, judged in steps) >= here.score - ROUNDING
            ):
                break
            before = here
            place, here = min(steps, key=lambda step: (_price(before, step[1]), step[0]))
            classes = here.classes
        if here.holds:
            self._descend(place)

    def _descend(self, place: Place) -> None:
        """Downwards by the step that costs least, while promises hold and scores fall."""
        here = self._judge(place)
        while not self.clock.over:
            self.clock.tell(sum(place), sum(self.top), self.best.score)
            steps = [(down, self._judge(down)) for down in self._steps(place, -1)]
            holding = [(judged.score, down) for down, judged in steps if judged.holds]
            if not holding or min(holding)[0] >= here.score - ROUNDING:
                return
            place = min(holding)[1]
            here = dict(steps)[place]

    def _steps(self, place: Place, way: int) -> Iterator[Place]:
        for j, step in enumerate(place):
            if 0 <= step + way <= self.top[j]:
                yield _moved(place, j, way)


def _moved(place: Place, j: int, way: int) -> Place:
    return (*place[:j], place[j] + way, *place[j + 1 :])


def _price(before: NodeScore, after: NodeScore) -> float:
    """What a step up costs: per record that it saves, or the score once the promises hold."""
    if before.holds:
        return after.score
    return (after.floor - before.floor + 1e-9) / (before.suppressed - after.suppressed + 1e-9)


class _ClassCache:
    """Classes of nodes that were looked at, to be rolled up; at most ROOM times the bottom's."""

    def __init__(self, lattice: Lattice) -> None:
        self._lattice = lattice
        self._places = [tuple(0 for _ in lattice.shape)]
        self._classes = [lattice.bottom]
        self._room = ROOM * len(lattice.bottom.first)

    def classes(self, place: Place, node: Node) -> NodeGroups:
        """The classes of a node."""
        finer = (np.array(self._places, dtype=np.int16) <= np.array(place)).all(axis=1)
        base = min(np.flatnonzero(finer).tolist(), key=lambda i: len(self._classes[i].first))
        classes, _ = self._lattice.rolled_up(self._classes[base], node)
        if len(classes.first) <= self._room and len(self._places) < MOST_KEPT:
            self._room -= len(classes.first)
            self._places.append(place)
            self._classes.append(classes)
        return classes
