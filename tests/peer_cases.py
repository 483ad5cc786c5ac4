"""Small tables to try the table methods on, as hypothesis makes them, and the Adult table."""

from collections import Counter
from itertools import count

import numpy as np
import polars as pl
from hypothesis import strategies as st

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.partition import Matrix
from shoal.protocols import Partitioner, Promises


def hierarchy_of(nested: object) -> Hierarchy:
    """From nested lists; whatever else stands in them is a leaf: `[[None, None], None]` has 3."""
    paths: list[list[str]] = []
    inner = count()

    def walk(node: object, above: list[str]) -> None:
        if not isinstance(node, list):
            paths.append([f"leaf {len(paths)}", *above])
            return
        label = f"node {next(inner)}"
        for child in node:
            walk(child, [label, *above])

    walk(nested, [])
    return Hierarchy.from_paths(paths)


def run(method: Partitioner, matrix: Matrix, promise: Promises) -> np.ndarray:
    """The class of each record."""
    return method.partition(matrix, promise, np.random.default_rng(0)).labels


trees = st.recursive(
    st.none(), lambda nodes: st.lists(nodes, min_size=2, max_size=4), max_leaves=9
).map(hierarchy_of)


@st.composite
def matrices(draw: st.DrawFn, people: bool | None = None, least: int = 1, most: int = 40) -> Matrix:
    """Up to `most` records, four attributes, many equal; with repeated people or not."""
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


def matrix_of_adult(adult: pl.DataFrame) -> Matrix:
    """The complete records; categories coded by falling frequency, numbers by value."""
    names = ["age", "workclass", "education-num", "marital-status", "occupation", "race", "sex"]
    columns = [coded(adult[name].to_list()) for name in (*names, "native-country")]
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
