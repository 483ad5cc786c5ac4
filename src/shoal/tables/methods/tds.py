"""Top-down specialization: one cut through all hierarchies that keeps the class predictable.

Fung, Wang, Yu. Top-down specialization for information and privacy preservation. ICDE 2005;
Anonymizing classification data for privacy preservation. IEEE TKDE 19(5):711-725, 2007. The work is
in search/specialization.py, which several owners share.
Promise: every promise holds after every step, and no single further specialization would keep them
all.
Paper: Score, InfoGain, AnonyLoss
Here: `score`, `gain`, people lost on average over the QIDs of the attribute
Reading: `gain-ratio` is that of Yang and Wang 2017 (a number's split counts by its gain),
`gain-per-loss` the paper's own InfoGain / (AnonyLoss + 1).
Reading: a missing value is a child of the whole attribute. A number splits first into values and
none, then by its values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.partition import Cut, Matrix
from shoal.data.schema import IndexedRequirement, Taxonomy
from shoal.errors import InputError
from shoal.protocols import Promises, Recoder
from shoal.search import large_tables, segments
from shoal.search.specialization import SCORES, Candidates, Specialization


@dataclass(frozen=True)
class TopDownSpecialization(Recoder):
    """Top-down specialization of Fung, Wang and Yu."""

    name: ClassVar[str] = "tds"
    paper: ClassVar[str] = (
        "Fung, Wang, Yu. Anonymizing classification data for privacy preservation. IEEE TKDE 19(5),"
        " 2007."
    )

    score: str = parameter(
        "what makes a specialization good: gain ratio, gain, or gain per person lost",
        default="gain-ratio",
        choices=SCORES,
    )

    @large_tables.on_distinct_rows(with_label=True)
    def cut(
        self,
        matrix: Matrix,
        promises: Promises,
        rng: np.random.Generator,
        progress: Callable[[str], None] = lambda stage: None,
    ) -> Cut:
        """The cut after the last specialization that keeps every promise."""
        segments.require_people(matrix, promises)
        if matrix.label is None:
            raise InputError(
                "method 'tds': keeps a class predictable, and the policy names none; name it under"
                " 'label'"
            )
        columns = [_column(matrix, j) for j in _by_name(matrix)]
        state = Specialization(
            [column.codes for column in columns],
            [column.taxonomy.cells for column in columns],
            _qids(matrix, promises),
            _guard(matrix, promises) if promises.needs_more_than_k else None,
            counts=matrix.count,
        )
        classes = np.unique(matrix.label, return_inverse=True)[1]
        candidates = Candidates(
            state, {j: c.taxonomy for j, c in enumerate(columns)}, classes, self.score
        )
        steps = 0
        while candidates.take_best() is not None:
            steps += 1
            progress(f"specializing, step {steps}")
        starts: list[np.ndarray] = [np.zeros(0, dtype=np.int32)] * matrix.attributes
        for place, (j, column) in enumerate(zip(_by_name(matrix), columns, strict=True)):
            starts[j] = column.starts([lo for lo, _ in state.cut(place)])
        account = {
            "steps": steps,
            "touched": state.touched,
            "groups": [groups.count for groups in state.groups],
            "least": [groups.least for groups in state.groups],
        }
        return Cut(tuple(starts), np.zeros(matrix.records, dtype=bool), search_statistics=account)


@dataclass(frozen=True)
class _Column:
    """An attribute in cells.

    first_code: (cells,) int32, where each begins in the matrix's codes. missing: the code of
    missing values, where no record of the matrix has it; -1 else.
    """

    codes: np.ndarray
    taxonomy: Taxonomy
    first_code: np.ndarray
    missing: int = -1

    def starts(self, cells: list[int]) -> np.ndarray:
        """The first code of every span; missing values stay apart from all but the whole."""
        apart = [self.missing] if self.missing >= 0 and len(cells) > 1 else []
        return np.append(self.first_code[cells], apart).astype(np.int32)


def _by_name(matrix: Matrix) -> list[int]:
    """The attributes in the order that decides among equal scores."""
    return sorted(range(matrix.attributes), key=lambda j: matrix.names[j] if matrix.names else j)


def _column(matrix: Matrix, j: int) -> _Column:
    codes = np.ascontiguousarray(matrix.codes[:, j])
    if matrix.base[j] >= 0:
        taxonomy = _tree(matrix, j)
        return _Column(codes, taxonomy, np.arange(taxonomy.cells, dtype=np.int32))
    occupied, cells = np.unique(codes, return_inverse=True)
    last = len(occupied) - 1
    has_missing = matrix.missing[j] >= 0 and last > 0 and occupied[-1] == matrix.missing[j]
    apart = {(0, last): np.array([0, last])} if has_missing else {}
    first_code = occupied.astype(np.int32)
    first_code[0] = 0
    unseen = -1 if has_missing or occupied[-1] == matrix.missing[j] else int(matrix.missing[j])
    return _Column(
        cells.astype(np.int32), Taxonomy(len(occupied), apart, is_number=True), first_code, unseen
    )


def _tree(matrix: Matrix, j: int) -> Taxonomy:
    nodes = matrix.nodes_of(j)
    first, last, above = matrix.first[nodes], matrix.last[nodes], matrix.parent[nodes]
    parent, children = above - nodes.start, {}
    for node in np.unique(parent[above >= 0]).tolist():
        children[int(first[node]), int(last[node])] = np.sort(first[parent == node])
    return Taxonomy(int(last.max()) + 1, children)


def _qids(matrix: Matrix, promises: Promises) -> list[IndexedRequirement]:
    """The counts that are asked; where more is asked, the classes too."""
    place = {matrix.names[j] if matrix.names else str(j): i for i, j in enumerate(_by_name(matrix))}
    everything = tuple(range(matrix.attributes))
    asked = [
        IndexedRequirement(tuple(place[a] for a in qid.attributes) or everything, qid.k)
        for qid in promises.qids
    ]
    if promises.about_release:  # not asked of a state: k people in every class are enough
        asked.append(IndexedRequirement(everything, promises.k))
    return [*asked, IndexedRequirement(everything, 1)] if promises.needs_more_than_k else asked


def _guard(matrix: Matrix, promises: Promises) -> Callable[[Specialization], bool]:
    """Whether every promise holds on the classes that a state makes."""
    names = [matrix.names[j] if matrix.names else str(j) for j in _by_name(matrix)]

    def allows(state: Specialization) -> bool:
        classes = next(
            groups for groups in state.groups if len(groups.qid.attributes) == matrix.attributes
        )
        cells = {name: state.nodes(place) for place, name in enumerate(names)}
        holds = bool(promises.holds(classes.labels, classes.count, cells).all())
        # a state counts records, and several of them may be one person's
        return holds and promises.release_holds(classes.labels, classes.count)

    return allows
