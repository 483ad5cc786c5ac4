"""Small tables for the clustering methods: points on a grid, sensitive attributes of every kind."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from hypothesis import strategies as st

from naive_clustering import Asked
from peer_cases import hierarchy_of
from shoal.data.classes import Classes, Closeness, SensitiveColumn
from shoal.data.partition import Matrix
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.promises import BoundPromises
from shoal.privacy.t_closeness import TCloseness
from shoal.search.clustering import Targets, targets_for

LIMITS = st.sampled_from([0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0])
TREE = hierarchy_of([[None, None], [None, [None, None]], None])


@dataclass(frozen=True)
class Case:
    """Whole-number points, and the sensitive attributes with their limits."""

    points: np.ndarray
    columns: tuple[SensitiveColumn, ...]
    limits: tuple[float, ...]

    @property
    def records(self) -> int:
        return self.points.shape[1]

    @property
    def plain(self) -> list[list[float]]:
        return self.points.T.tolist()

    @cached_property
    def targets(self) -> Targets:
        asked = [
            Closeness(column, np.bincount(column.codes, minlength=column.values), t)
            for column, t in zip(self.columns, self.limits, strict=True)
        ]
        return targets_for(tuple(asked), self.records)

    @cached_property
    def asked(self) -> list[Asked]:
        return [asked_of(column, t) for column, t in zip(self.columns, self.limits, strict=True)]

    @property
    def matrix(self) -> Matrix:
        return Matrix.from_columns(self.points.T.astype(int), [8.0] * len(self.points))

    def promises(self, k: int, subjects: np.ndarray | None = None) -> BoundPromises:
        models = [
            TCloseness((column.name,), t)
            for column, t in zip(self.columns, self.limits, strict=True)
        ]
        table = Classes(
            np.zeros(self.records, dtype=np.int32), 1, subjects, {c.name: c for c in self.columns}
        )
        return BoundPromises([*models, *([KAnonymity(k)] if k > 1 else [])], table)


def asked_of(column: SensitiveColumn, t: float) -> Asked:
    tree = column.hierarchy
    parent, height = (tree.parent.tolist(), tree.levels.tolist()) if tree is not None else ([], [])
    return Asked(
        column.codes.tolist(), column.values, t, column.distance, tuple(parent), tuple(height)
    )


@st.composite
def cases(draw: st.DrawFn, least: int = 1, most: int = 24, attributes: int = 2) -> Case:
    """Up to `most` records, many of them equal, with up to `attributes` sensitive attributes."""
    n = draw(st.integers(least, most))
    d = draw(st.integers(1, 3))
    points = np.array(
        draw(st.lists(st.lists(st.integers(0, 8), min_size=n, max_size=n), min_size=d, max_size=d)),
        float,
    )
    columns = [draw(columns_of(n, f"s{s}")) for s in range(draw(st.integers(0, attributes)))]
    return Case(points, tuple(columns), tuple(draw(LIMITS) for _ in columns))


@st.composite
def columns_of(draw: st.DrawFn, n: int, name: str) -> SensitiveColumn:
    distance = draw(st.sampled_from(["ordered", "ordered", "equal", "hierarchical"]))
    values = draw(
        st.lists(
            st.integers(0, TREE.leaves - 1 if distance == "hierarchical" else 9),
            min_size=n,
            max_size=n,
        )
    )
    if distance == "hierarchical":
        return SensitiveColumn(name, np.array(values, dtype=np.int32), TREE.leaves, distance, TREE)
    distinct, codes = np.unique(values, return_inverse=True)
    return SensitiveColumn(name, codes.astype(np.int32), len(distinct), distance)


def classes_of(labels: np.ndarray) -> list[list[int]]:
    """The records of every class in order of class numbers."""
    return [np.flatnonzero(labels == c).tolist() for c in np.unique(labels[labels >= 0])]


def in_order(classes) -> list[list[int]]:
    return [sorted(members) for members in classes]
