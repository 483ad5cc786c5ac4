"""Rounded partition: exactly as many k-anonymous classes as a table can hold, in O(n log n).

Wu, Tang, Ni, Sun. Journal of Software 23(8):2138-2148, 2012. Section 2.2.
Promise (Theorem 1): n = alpha*k + beta records give exactly alpha classes, tied values or not.
Promise (Theorem 2, cut `paper`): none larger than k + ceil(beta / 2**floor(log2 alpha)).
Both are about one record per subject and k-anonymity alone. Where subjects own several records, or
more than k is promised, a cut is made only if both sides keep every promise, so there may be fewer
classes.

Paper: TMP, alpha, beta      Here: rows of a node, m // k, m mod k
       q(i, j), P1, P2       attribute and value of the cut, low side, high side

Lemma 2 is false as printed (it says < for the second <=): 6 records and k = 2 have coefficient 3,
    and one of their sides 2. Repaired, with x = floor(log2 alpha): 2**(x - i) <= alpha_i <=
    2**(x - i + 1) at level i <= x. Proof. At level 0 by the choice of x. A side of a group with
    coefficient a has floor(a/2) or ceil(a/2), since its remainder stays below k, and halves of
    whole powers of two that bound a bound them, as they are whole where i < x. So at level x every
    coefficient is 1 or 2, and classes lie at levels x and x + 1, not all at x. Theorem 2 stands, as
    its bound falls from level to level (lemma 1), and theorem 4, with one more level.
Reading: the formula of section 2.2 and step 4 pair the roundings differently; figure 4 (7 records,
k = 2: 5 and 2) agrees with step 4, so sizes `same` follow step 4, the larger part on the low side.
Theorems 1 and 2 hold for `cross`, the formula, too. Theorem 2 prints ceil(log2 alpha); its proof
needs floor.
Reading: step 2 leaves the attribute, and step 4 the records tied at the cut, to us: see
`dimension`, `ties`. The plainest loop takes the attributes `in-turn`, that of the depth modulo
their number, over what is constant, and sorts stably: ties keep the order that earlier cuts left.

Ours, not the paper's:
- `cut=admissible`. A cut of m records into c and m - c keeps floor(m/k) classes if and only if
  c mod k <= m mod k, so any such cut keeps Theorem 1; of those that leave a sixteenth on either
  side we take the one that loses least. Theorem 2 then weakens to: no class of 2k or more.
- `sizes=proportional` makes all sizes floor(n/alpha) or ceil(n/alpha).
- `rare=apart`. Over hierarchies one odd record makes a class cost as much as the root, so how odd a
  record is becomes one more attribute to cut on: the sum, over the hierarchies, of the share of
  records outside its branch below the root.
- `count=most` cuts under l-diversity so that both sides together may still make as many classes as
  the node (`search.most_classes`). Under an alpha below 1/3 it is tried, too, and taken if it
  loses less.
- `refine`: records of near classes change places while that lowers the loss, first by exchange
  alone, then, from `full` on, by annealing (`search.refinement`). Class sizes stay, so both
  theorems do. Where subjects own several records or more than k is promised, only annealing is
  done, by exchanges that keep every promise.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.partition import Matrix, Partition
from shoal.data.progress import Progress
from shoal.data.room import IN_MEMORY, Room, blocks
from shoal.errors import InputError
from shoal.protocols import Promises, SearchingPartitioner
from shoal.search import large_tables
from shoal.search.efforts import REFINE, REFINE_HELP, SECONDS, STEPS, STOP, Effort
from shoal.search.kernels import cuts, rounded_cut
from shoal.search.most_classes import Diversity, cut_for_most, diversity_of, with_less_loss
from shoal.search.segments import ROWS, STABLE, costs_of, cut_by_rule, require_people
from shoal.tables.kernels import class_refinement

PAPER = {
    "dimension": "widest",
    "ties": "rows",
    "sizes": "same",
    "cut": "paper",
    "rare": "mixed",
    "refine": "none",
}
PLAIN_CUTS = {"dimension": ("widest", "in-turn"), "ties": ("rows", "stable")} | {
    option: (PAPER[option],) for option in ("sizes", "cut", "rare")
}
"""What goes with dimension in-turn or ties stable."""
OURS = {
    "dimension": "best",
    "ties": "lexicographic",
    "sizes": "same",
    "cut": "admissible",
    "rare": "apart",
    "refine": "auto",
}
SIZES = {
    "same": int(rounded_cut.SAME),
    "cross": int(rounded_cut.CROSS),
    "proportional": int(rounded_cut.PROPORTIONAL),
}
TIES = {"rows": rounded_cut.TIES_BY_ROW, "lexicographic": rounded_cut.TIES_LEXICOGRAPHIC}

EXACT_ROWS = 512  # nodes are priced on at most this number of records, small ones exactly

SORTED_RECORDS = 100_000  # up to here the order of the records makes no difference


@dataclass(frozen=True)
class Exchange:
    """How far exchanges look: classes in a run, near classes tried for each, visits to each, and
    from how many times the mean loss on a class is visited.

    Classes that lose little have little to gain: looking farther for the others gains more in the
    same time.
    """

    reach: int
    neighbours: int
    rounds: int
    above: float = 0.0

    def refine(self, rows: np.ndarray, starts: np.ndarray, costs: np.ndarray) -> None:
        """Exchanges rows between classes, which begin at `starts`, in place."""
        if len(starts) < 3:
            return
        # nodes of a hierarchy are coarse: a third class often holds the records that make two fit
        together = 3 if len(costs) > rows.shape[1] - 1 else 2
        class_refinement.refine_classes(
            rows, starts, self.reach, self.neighbours, together, self.rounds, costs, self.above
        )


EXCHANGES = {
    "light": Exchange(256, 4, 2, 1.0),
    "exchange": Exchange(1024, 8, 3),
    "full": Exchange(1024, 16, 3, 0.5),
    "thorough": Exchange(1024, 16, 3, 0.5),
    "far": Exchange(2048, 12, 3, 0.5),
    "wide": Exchange(2048, 16, 3, 0.5),
}
MANY_RECORDS = 50_000  # of more, and no hierarchies, full exchanges look far: .1 to .4 % less lost
WIDE_ATTRIBUTES = 32
"""From here on refine=auto leaves it at that, as annealing hardly finds near classes (40 attributes
of the large census: .15 % less loss in 2 of 10 CPU seconds less).
"""


@dataclass(frozen=True)
class RoundedPartition(SearchingPartitioner):
    """Parameters of the method; those left empty follow `preset`."""

    name: ClassVar[str] = "rounded-partition"
    paper: ClassVar[str] = "Wu, Tang, Ni, Sun: Rounded partition, Journal of Software 23(8), 2012"

    column_bytes: ClassVar[int] = 0

    preset: str = parameter(
        "paper: dimension widest, ties rows, sizes same, cut paper, rare mixed, refine none",
        default="",
        choices=("", "paper"),
    )
    dimension: str = parameter(
        "attribute to cut: the widest, each in turn, or the best (least loss after the"
        " cut); default best",
        default="",
        choices=("", "widest", "in-turn", "best"),
    )
    ties: str = parameter(
        "records tied at a cut: input order, the order that earlier cuts left, or by the"
        " other attributes; default lexicographic",
        default="",
        choices=("", "rows", "stable", "lexicographic"),
    )
    sizes: str = parameter(
        "how a cut rounds (same, cross: the paper's; proportional: evenest); default same",
        default="",
        choices=("", "same", "cross", "proportional"),
    )
    cut: str = parameter(
        "where to cut: the paper's sizes, or the best admissible ones (ours); default admissible",
        default="",
        choices=("", "paper", "admissible"),
    )
    rare: str = parameter(
        "over hierarchies, records in rare branches: cut apart (ours), or mixed; default apart",
        default="",
        choices=("", "mixed", "apart"),
    )
    refine: str = parameter(
        f"{REFINE_HELP}; without hierarchies, from {WIDE_ATTRIBUTES} attributes and 50,001 records"
        " on, exchanges that look farther instead of full; default auto",
        default="",
        choices=("", *REFINE),
    )
    count: str = parameter(
        "most (ours): under one promise of distinct l-diversity or (alpha, k)-anonymity, as"
        " many classes as cuts find; any: the cuts that lose least; default: any, but"
        " under an alpha below 1/3 most where that loses less",
        default="",
    )
    seconds: int = field(default=60, metadata=SECONDS)
    steps: int = field(default=0, metadata=STEPS)
    stop: int = field(default=-1, metadata=STOP)

    def __post_init__(self) -> None:
        if self.count not in ("", "any", "most"):
            raise InputError(
                f"method '{self.name}': parameter 'count' must be any or most, or left out"
            )
        usual = PAPER if self.preset == "paper" or self._cuts_plainly else OURS
        for option_name, value in usual.items():
            if not getattr(self, option_name):
                object.__setattr__(self, option_name, value)
        if self._cuts_plainly:
            self._require_plain()

    @property
    def _cuts_our_way(self) -> bool:
        """Whether nothing says how to cut."""
        ours = all(getattr(self, name) == OURS[name] for name in OURS if name != "refine")
        return ours and self.count == ""

    @property
    def _cuts_plainly(self) -> bool:
        return self.dimension == "in-turn" or self.ties == "stable"

    def _require_plain(self) -> None:
        for option, allowed in PLAIN_CUTS.items():
            if getattr(self, option) not in allowed:
                raise InputError(
                    f"method '{self.name}': dimension=in-turn and ties=stable go with"
                    f" {option}={' or '.join(allowed)} only; leave '{option}' out"
                )

    def decides_locally(self, over_trees: bool) -> bool:
        """Whether a class is cut by its own records alone, whatever was cut before."""
        return self.refine == "none" and (self.rare == "mixed" or not over_trees)

    def search(
        self, matrix: Matrix, promises: Promises, rng: np.random.Generator, progress: Progress
    ) -> Partition:
        """Exactly floor(n/k) classes of k to 2k - 1 records; only refining draws random numbers.

        With several records per subject or promises beyond k: classes that keep every promise, as
        many as the cuts find. Raises InfeasibleError when there are fewer than k subjects.
        """
        require_people(matrix, promises)
        promises_more = any(term.model != "k-anonymity" for term in promises.terms)
        if self.count == "most" and promises_more:  # k alone reaches its bound anyway
            partition = cut_for_most(matrix, promises.k, self._diversity(matrix, promises))
            return self._effort.refined(matrix, partition, promises, rng, progress)
        if self._cuts_plainly:
            partition = self._cut_plainly(matrix, promises)
            return self._effort.refined(matrix, partition, promises, rng, progress)
        columns = matrix.columns(self.spare_columns(matrix))
        costs = self._prepared(columns, matrix)
        # k alone is a matter of sizes; anything else is asked of each cut
        if matrix.subjects is None and not promises.needs_more_than_k:
            starts = self._cut_all(columns, promises.k, costs, IN_MEMORY)
            numbers = self._exchanged(columns, starts, matrix)
            if self._exchanges_alone(matrix):
                return Partition.of_runs(numbers, starts)
        else:
            starts = self._cut_by_level(columns, matrix, promises, costs)
            numbers = columns[-1]
        partition = Partition.of_runs(numbers, starts)
        if promises_more and self._cuts_our_way:
            partition = with_less_loss(matrix, promises, partition)
        return self._effort.refined(matrix, partition, promises, rng, progress)

    def _diversity(self, matrix: Matrix, promises: Promises) -> Diversity:
        """The promise that classes are counted under; raises InputError where there is none."""
        asked = diversity_of(matrix, promises)
        if asked is None:
            raise InputError(
                f"method '{self.name}': count=most goes with k and one promise of distinct"
                " l-diversity or (alpha, k)-anonymity that the whole table keeps, where everybody"
                " has one record; leave 'count' out"
            )
        return asked

    @property
    def _effort(self) -> Effort:
        return Effort(self.refine, self.seconds, self.steps, self.stop, resizes=False)

    def spare_columns(self, matrix: Matrix) -> int:
        """One for how odd a record is, where that is cut on."""
        return int(self.rare == "apart" and bool((matrix.base >= 0).any()))

    def _prepared(self, columns: np.ndarray, matrix: Matrix) -> np.ndarray:
        """What spans cost, the spare column being filled in; sorts small tables by their codes."""
        d, records = matrix.attributes, columns.shape[1]
        if self.ties == "lexicographic" and records <= SORTED_RECORDS:
            columns[:] = columns[:, np.lexsort(columns[:d])]
        return _fill_in_oddity(columns, matrix) if len(columns) > d + 1 else costs_of(matrix)

    def only_in_memory(self, records: int) -> str:
        if self._cuts_plainly:
            return "dimension in-turn and ties stable sort"
        chosen = self._effort.for_k_alone(records)
        return "" if chosen == "none" else f"refine: {self.refine} moves"

    def cut_columns(
        self, columns: np.ndarray, matrix: Matrix, promises: Promises, room: Room
    ) -> np.ndarray:
        """Cuts for k alone, on columns that may lie in files; nothing is refined."""
        return self._cut_all(columns, promises.k, self._prepared(columns, matrix), room)

    def _cut_plainly(self, matrix: Matrix, promises: Promises) -> Partition:
        """Steps 1 to 6 as a loop that sorts; in turn, or the widest attribute first."""
        rule = cuts.IN_TURN if self.dimension == "in-turn" else cuts.ROUNDED
        return cut_by_rule(matrix, promises, rule, STABLE if self.ties == "stable" else ROWS)

    def _cut_all(self, columns: np.ndarray, k: int, costs: np.ndarray, room: Room) -> np.ndarray:
        """Steps 1 to 6 for k alone, depth first: where each class starts, and n."""
        cuts_by_rule = self.dimension == "widest" and self.cut == "paper"
        sample = 0 if cuts_by_rule else EXACT_ROWS
        if sample and not rounded_cut.is_listed(columns.shape[1], k, sample):
            starts = large_tables.cut_by_rows(columns, k, self._rules(), sample, costs, room)
            if starts is not None:
                return starts
        return large_tables.cut_by_threads(columns, k, self._rules(), sample, costs, room=room)

    def _exchanged(self, columns: np.ndarray, starts: np.ndarray, matrix: Matrix) -> np.ndarray:
        """Ours: classes exchange records; the records' numbers, class after class."""
        effort = self._effort.for_k_alone(matrix.records)
        if effort == "none":
            return columns[-1]
        if self._looks_far(matrix):
            effort = "wide" if self._exchanges_alone(matrix) else "far"
        rows = _rows(columns, matrix.attributes)
        EXCHANGES[effort].refine(rows, starts, costs_of(matrix))
        return rows[:, -1]

    def _exchanges_alone(self, matrix: Matrix) -> bool:
        is_wide = matrix.attributes >= WIDE_ATTRIBUTES
        return self.refine == "auto" and is_wide and self._looks_far(matrix)

    def _looks_far(self, matrix: Matrix) -> bool:
        is_full = self._effort.for_k_alone(matrix.records) in ("full", "thorough")
        return is_full and matrix.records > MANY_RECORDS and not (matrix.base >= 0).any()

    def _cut_by_level(
        self, columns: np.ndarray, matrix: Matrix, promises: Promises, costs: np.ndarray
    ) -> np.ndarray:
        """Steps 1 to 6 for further promises, by levels; a refused cut tries the next attribute."""
        k = promises.k
        # records that k subjects own on average
        quota = max(k, k * matrix.records // matrix.people)
        begin, end = np.array([0]), np.array([matrix.records])
        attempt = np.zeros(1, dtype=np.int32)
        final: list[np.ndarray] = []
        while len(begin):
            low = rounded_cut.cut_once(
                columns, begin, end, attempt, k, quota, self._rules(), EXACT_ROWS, costs
            )
            # nodes that no attribute can cut are classes
            final.append(begin[low == 0])
            begin, end, attempt, low = (a[low > 0] for a in (begin, end, attempt, low))
            accepted = _both_hold(columns[-1], begin, end, low, promises)
            middle = begin + low
            # accepted cuts give two nodes; a refused node tries its next best attribute
            begin, end, attempt = (
                np.concatenate(parts)
                for parts in (
                    (begin[accepted], middle[accepted], begin[~accepted]),
                    (middle[accepted], end[accepted], end[~accepted]),
                    (np.zeros(2 * accepted.sum(), dtype=np.int32), attempt[~accepted] + 1),
                )
            )
        return np.append(np.sort(np.concatenate(final)), matrix.records)

    def _rules(self) -> tuple[int, bool, bool, int]:
        return (
            SIZES[self.sizes],
            self.cut == "admissible",
            self.dimension == "best",
            TIES[self.ties],
        )


def _fill_in_oddity(columns: np.ndarray, matrix: Matrix) -> np.ndarray:
    """Fills the last column but one with oddity in hundredths; the costs with this one more
    attribute, which costs as much as any other.
    """
    oddity, records = columns[-2], columns.shape[1]
    oddity[:] = 0
    for j in np.flatnonzero(matrix.base >= 0).tolist():
        branch = _branches(matrix, j)
        below = np.zeros(len(matrix.parent), dtype=np.int64)
        leaves = np.zeros(len(branch), dtype=np.int64)
        for rows in blocks(records):
            leaves += np.bincount(columns[j, rows], minlength=len(branch))
        np.add.at(below, branch, leaves)
        share = below[branch] / records
        odd = np.rint(100 * (1 - share)).astype(np.int32)
        for rows in blocks(records):
            oddity[rows] += odd[columns[j, rows]]
    oddity -= oddity.min()
    return costs_of(matrix, 1 / max(int(oddity.max()), 1))


def _branches(matrix: Matrix, j: int) -> np.ndarray:
    """For each leaf of tree j the node below the root that covers it, by its place in `parent`."""
    root = matrix.root(j)
    branch = matrix.base[j] + np.arange(matrix.last[root] + 1)
    while (deep := (matrix.parent[branch] >= 0) & (matrix.parent[branch] != root)).any():
        branch[deep] = matrix.parent[branch[deep]]
    return branch


def _both_hold(
    numbers: np.ndarray, begin: np.ndarray, end: np.ndarray, low: np.ndarray, promises: Promises
) -> np.ndarray:
    """Which proposed cuts leave every promise on both sides; asks once for all."""
    sides = np.full(len(numbers), -1, dtype=np.int32)
    for side, (first, stop) in enumerate(((begin, begin + low), (begin + low, end))):
        lengths = stop - first
        before = np.cumsum(lengths) - lengths
        place = np.repeat(first - before, lengths) + np.arange(lengths.sum())
        sides[numbers[place]] = np.repeat(2 * np.arange(len(first), dtype=np.int32) + side, lengths)
    held = promises.holds(sides, 2 * len(begin))
    return held[::2] & held[1::2]


def _rows(columns: np.ndarray, d: int) -> np.ndarray:
    """(n, d + 1) int32: of each record the codes and its number, without oddity."""
    rows = np.empty((columns.shape[1], d + 1), dtype=np.int32)
    for some in blocks(len(rows)):
        rows[some, :d] = columns[:d, some].T
    rows[:, d] = columns[-1]
    return rows
