"""Why a release of global recoding loses what it does, and what would be cheaper.

Every figure is measured by taking the same table again under one change. Nothing here names a
value.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from shoal.data.classes import Classes
from shoal.data.partition import Cut, Matrix
from shoal.data.regular_files import Json
from shoal.errors import InfeasibleError, InputError
from shoal.policy.problem import Problem
from shoal.privacy.promises import BoundPromises
from shoal.recoding.recode import find_classes
from shoal.search.lattice import Lattice
from shoal.search.lattice_costs import Node


def explain(matrix: Matrix, whole_table: Classes, cut: Cut, problem: Problem) -> Json:
    """Why records are suppressed and columns fully generalized, and the nearest cheaper settings.

    whole_table: the matrix's records in one class.
    """
    explanation: Json = {
        "suppressed": None,
        "generalized": [],
        "looser": [],
        "cheaper": [],
        "node": None,
        "neighbours": [],
    }
    if cut.levels is not None:
        bound = BoundPromises(problem.promises, whole_table)
        lattice = Lattice(
            matrix, bound, problem.method_parameters.get("metric", "loss"), matrix.records
        )
        if cut.suppressed.any():
            explanation["suppressed"] = _suppressed(lattice, cut, whole_table, problem)
        for j, name in enumerate(matrix.names):
            if 0 < cut.levels[j] == lattice.high[j]:
                lower = _raised(lattice, cut.levels, j, cut.levels[j] - 1)
                broken = _broken(lattice, lower, whole_table, problem)
                explanation["generalized"].append({"attribute": name, "promises": broken})
        explanation["looser"] = _looser(lattice, cut)
        explanation |= neighbourhood(matrix, bound, cut.levels, problem)
    explanation["cheaper"] = [
        {**easier._asdict(), "setting": setting, "now": now._asdict()}
        for setting, easier, now in _changed(matrix, whole_table, cut, problem)
        if easier.is_cheaper_than(now)
    ]
    return explanation


def _suppressed(lattice: Lattice, cut: Cut, whole_table: Classes, problem: Problem) -> Json:
    """Which promises the suppressed records would break, and which columns set them apart."""
    assert cut.levels is not None
    records = int(cut.suppressed.sum())
    columns = []
    for j, name in enumerate(lattice.matrix.names):
        raised = [
            _raised(lattice, cut.levels, j, to) for to in (cut.levels[j] + 1, lattice.high[j])
        ]
        saved = [max(records - int(lattice.suppressed(node).sum()), 0) for node in raised]
        columns.append({"attribute": name, "one_level_higher": saved[0], "left_out": saved[1]})
    return {
        "records": records,
        "promises": _broken(lattice, cut.levels, whole_table, problem),
        "columns": columns,
    }


def _raised(lattice: Lattice, levels: Node, j: int, to: int) -> Node:
    return (*levels[:j], min(to, lattice.high[j]), *levels[j + 1 :])


def _broken(lattice: Lattice, node: Node, whole_table: Classes, problem: Problem) -> dict[str, int]:
    """Records in classes that break each promise at a node where nothing is suppressed."""
    classes, _ = lattice.rolled_up(lattice.bottom, node)
    labels, count = lattice.labels(node)
    broken = {}
    for model in problem.promises:
        bound = BoundPromises([model], whole_table)
        holds = bound.holds(labels, count, lattice.cells(node), lattice.population(classes, node))
        if not bound.release_holds(labels, count):
            holds[:] = False
        title = model.model + (f" of {', '.join(model.attributes)}" if model.attributes else "")
        broken[title] = int((~holds[labels]).sum())
    return broken


def _looser(lattice: Lattice, cut: Cut) -> list[Json]:
    """The node above along each attribute: what it suppresses and scores."""
    assert cut.levels is not None
    steps = []
    for j, name in enumerate(lattice.matrix.names):
        node = _raised(lattice, cut.levels, j, cut.levels[j] + 1)
        if node != cut.levels:
            judged = lattice.judge(lattice.rolled_up(lattice.bottom, node)[0], node)
            score = lattice.reported(judged.score)
            steps.append({"attribute": name, "suppressed": judged.suppressed, "score": score})
    return steps


def neighbourhood(matrix: Matrix, bound: BoundPromises, levels: Node, problem: Problem) -> Json:
    """The chosen levels, and each a step coarser or finer along one attribute.

    breaking: records in classes that break a promise, which a release would suppress. is_safe:
    whether it may suppress that number. loss: with these records suppressed, whatever the metric.
    """
    lattice = Lattice(matrix, bound, "loss", matrix.records)
    share = problem.method_parameters.get("suppression", 0)
    most = min(bound.k, matrix.total - bound.k)  # datafly's own limit, where none is set
    if share is not None:
        most = int(Fraction(str(share)) * matrix.total)

    def measured(node: Node) -> Json:
        judged = lattice.judge(lattice.rolled_up(lattice.bottom, node)[0], node)
        return {
            "levels": dict(zip(matrix.names, map(int, node), strict=True)),
            "breaking": judged.suppressed,
            "is_safe": bool(judged.holds and judged.suppressed <= most),
            "loss": min(judged.score, 1.0),
        }

    neighbours = [
        {"attribute": name, "step": step} | measured((*levels[:j], to, *levels[j + 1 :]))
        for j, name in enumerate(matrix.names)
        for step in (1, -1)
        if 0 <= (to := levels[j] + step) <= lattice.high[j]
    ]
    return {"node": measured(levels), "neighbours": neighbours}


class CutScore(NamedTuple):
    """How many records a cut suppresses, and its score; None where no score compares."""

    suppressed: int
    score: float | None

    @classmethod
    def of(cls, cut: Cut) -> "CutScore":
        return cls(int((cut.round_of_record() < 0).sum()), cut.search_statistics.get("score"))

    def is_cheaper_than(self, other: "CutScore") -> bool:
        """Whether less is suppressed, or as much at a lower score."""
        has_less = self.suppressed < other.suppressed
        if self.score is None or other.score is None:
            return has_less
        return has_less or self.score < other.score


def _changed(
    matrix: Matrix, whole_table: Classes, cut: Cut, problem: Problem
) -> Iterator[tuple[str, CutScore, CutScore]]:
    """What comes of asking one less, and of leaving one quasi-identifier out.

    Each beside what is now.
    """
    for setting, changed in problem.policy.eased():
        easier = _tried(matrix, whole_table, problem.again(changed))
        if easier is not None:
            yield setting, CutScore.of(easier), CutScore.of(cut)
    for j, name in enumerate(matrix.names):
        fewer = problem.policy.without_quasi(name) if len(matrix.names) > 1 else None
        if fewer is None:
            continue
        narrowed = _narrowed(matrix, j)
        easier = _tried(narrowed, whole_table, problem.again(fewer))
        if easier is not None:
            now = _now_without(narrowed, whole_table, cut, problem.again(fewer), j)
            yield f"without '{name}'", CutScore.of(easier), now


def _now_without(
    narrowed: Matrix, whole_table: Classes, cut: Cut, problem: Problem, left_out: int
) -> CutScore:
    """The present levels judged on the columns that stay, for only these scores compare."""
    if cut.levels is None:
        return CutScore.of(cut)._replace(score=None)
    bound = BoundPromises(problem.promises, whole_table)
    lattice = Lattice(
        narrowed, bound, problem.method_parameters.get("metric", "loss"), narrowed.records
    )
    node = (*cut.levels[:left_out], *cut.levels[left_out + 1 :])
    judged = lattice.judge(lattice.rolled_up(lattice.bottom, node)[0], node)
    return CutScore(judged.suppressed, judged.score)


def _tried(matrix: Matrix, whole_table: Classes, problem: Problem) -> Cut | None:
    try:
        cut = find_classes(matrix, whole_table, problem)[0]
    except (InfeasibleError, InputError):
        return None
    assert isinstance(cut, Cut)
    return cut


def _narrowed(matrix: Matrix, left_out: int) -> Matrix:
    """The matrix without one attribute; nodes of its tree stay and are not used."""
    kept = np.arange(matrix.attributes) != left_out
    return replace(
        matrix,
        codes=np.ascontiguousarray(matrix.codes[:, kept]),
        scale=matrix.scale[kept],
        base=matrix.base[kept],
        heights=matrix.heights[kept],
        reach=matrix.reach[kept],
        missing=matrix.missing[kept],
        names=tuple(name for name, stays in zip(matrix.names, kept, strict=True) if stays),
        populations={name: codes[:, kept] for name, codes in matrix.populations.items()},
    )
