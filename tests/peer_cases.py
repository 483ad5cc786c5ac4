"""Small tables to try the table methods on, as hypothesis makes them, and the Adult table."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.partition import Matrix
from shoal.protocols import Partitioner, Promises

SHARED = Path(os.environ.get("SHOAL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def hierarchy_of(tree: list | None) -> Hierarchy:
    """A hierarchy from nested lists, None a leaf: `[[None, None], None]` has three leaves."""
    spans: list[tuple[int, int, int]] = []  # parent as a place in this list, first leaf, last leaf
    leaves: list[int] = []

    def walk(node: list | None, parent: int) -> tuple[int, int]:
        if node is None:
            leaves.append(parent)
            return len(leaves) - 1, len(leaves) - 1
        place = len(spans)
        spans.append((parent, 0, 0))
        covered = [walk(child, place) for child in node]
        spans[place] = (parent, covered[0][0], covered[-1][1])
        return covered[0][0], covered[-1][1]

    walk(tree, -1)
    n = len(leaves)
    return Hierarchy(
        labels=tuple(str(i) for i in range(n + len(spans))),
        parent=np.array(
            [p + n if p >= 0 else -1 for p in [*leaves, *(s[0] for s in spans)]], dtype=np.int32
        ),
        first=np.array([*range(n), *(s[1] for s in spans)], dtype=np.int32),
        last=np.array([*range(n), *(s[2] for s in spans)], dtype=np.int32),
    )


def run(method: Partitioner, matrix: Matrix, promise: Promises) -> np.ndarray:
    """The class of each record."""
    return method.partition(matrix, promise, np.random.default_rng(0)).labels


trees = st.recursive(
    st.none(), lambda nodes: st.lists(nodes, min_size=2, max_size=4), max_leaves=9
).map(hierarchy_of)


@st.composite
def matrices(draw: st.DrawFn, people: bool | None = None, least: int = 1, most: int = 40) -> Matrix:
    """Up to `most` records on up to four attributes, many of them equal; with repeated people or
    not.
    """
    n = draw(st.integers(least, most))
    ranges: list[float | Hierarchy] = []
    columns = []
    for _ in range(draw(st.integers(1, 4))):
        domain = draw(st.one_of(st.integers(0, 12), trees))
        top = domain.leaves - 1 if isinstance(domain, Hierarchy) else domain
        columns.append(draw(st.lists(st.integers(0, top), min_size=n, max_size=n)))
        ranges.append(domain if isinstance(domain, Hierarchy) else float(domain))
    subjects = None
    if draw(st.booleans()) if people is None else people:
        _, subjects = np.unique(
            draw(st.lists(st.integers(0, n), min_size=n, max_size=n)), return_inverse=True
        )
    return Matrix.from_columns(np.array(columns, dtype=np.int64).T.reshape(n, -1), ranges, subjects)


def adult() -> Matrix:
    """The 30,162 complete records; categories coded by falling frequency, numbers by value."""
    path = SHARED / "adult" / "adult.data"
    if not path.exists():
        pytest.skip(f"the Adult table is not at {path}; set SHOAL_DATA to a folder that has it")
    lines = [line.strip().split(", ") for line in path.read_text().splitlines() if line.strip()]
    complete = [line for line in lines if "?" not in line]
    columns = [coded([line[place] for line in complete]) for place in (0, 1, 4, 5, 6, 8, 9, 13)]
    return Matrix.from_columns(np.array(columns).T, [float(max(c) - min(c)) for c in columns])


def coded(texts: list[str]) -> list[int]:
    if all(text.isdigit() for text in texts):
        return [int(text) for text in texts]
    counts = Counter(texts)
    by_frequency = sorted(counts, key=lambda text: (-counts[text], text))
    code = {text: place for place, text in enumerate(by_frequency)}
    return [code[text] for text in texts]


def gcp(matrix: Matrix, labels: np.ndarray) -> float:
    """Mean normalised width over records and linear attributes, in percent."""
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    starts = np.cumsum(sizes) - sizes
    lo = np.minimum.reduceat(matrix.codes[order], starts)
    hi = np.maximum.reduceat(matrix.codes[order], starts)
    widths = ((hi - lo) * matrix.scale).sum(axis=1)
    return 100 * float((widths * sizes).sum()) / matrix.records / matrix.attributes


def discernibility(labels: np.ndarray) -> int:
    sizes = np.bincount(labels)
    return int((sizes * sizes).sum())
