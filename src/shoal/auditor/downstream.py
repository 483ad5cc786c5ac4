"""Downstream utility of an audited release: what models learn, how well it answers counts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shoal.data.encoding import linear_domain
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.release import Release
from shoal.data.schema import Attribute, Schema
from shoal.data.truth import Truth
from shoal.errors import InputError, MissingExtraError

MOST_RECORDS = 100_000  # of a larger table that many are drawn


def downstream(
    release: Release, schema: Schema, truth: Truth | None, seed: int
) -> Mapping[str, Any]:
    """The `downstream` part of a certificate.

    Raises InputError without the original's records, MissingExtraError without scikit-learn.
    """
    if truth is None:
        raise InputError(
            "downstream utility: compares records of the release with the original's; give the"
            " original and the trace"
        )
    chosen = np.arange(release.records)
    if release.records > MOST_RECORDS:
        drawn = np.random.default_rng([seed, 4]).permutation(release.records)
        chosen = np.sort(drawn[:MOST_RECORDS])
    columns = [
        Spans(
            attribute,
            published.lo[published.codes[chosen]],
            published.hi[published.codes[chosen]],
            truth.values(encoded)[chosen],
        )
        for attribute, published, encoded in zip(
            schema.quasi, release.columns, truth.encoded.attributes, strict=True
        )
    ]
    measured = {"records": len(chosen), "query_error": query_error(columns, seed)}
    if schema.label is not None:
        label = truth.aligned(truth.original.column(schema.label).codes)[chosen].astype(np.int64)
        kept = release.shown.labels[chosen] >= 0
        measured |= {"label": schema.label, **prediction_errors(columns, label, kept, seed)}
    return measured


# What a release is still good for: classifiers trained on it, and counts over ranges.
#
# Train on released, test on original: Iyengar. KDD 2002; Fung, Wang, Yu. ICDE 2005. Counts over
# random ranges: LeFevre, DeWitt, Ramakrishnan. KDD 2006.
#
# Reading: a cell is seen by a classifier as what it says for sure: the middle of its span for
# numbers and orders; for a hierarchy one feature per node, 1 where the cell lies under it. An
# original value says more than a cell, in the same features, so whoever learned from cells can be
# asked about values. Counts take values as spread evenly over a cell's span.


TESTED = 1 / 3  # share of the records that is kept for testing
MOST_NODES = 200  # features of one hierarchy: its widest nodes
QUERIES = 500
SANITY = 0.001  # share of the records below which no error is taken relative to the count


@dataclass(frozen=True)
class Spans:
    """One quasi-identifier, published and true, record by record.

    lo, hi: (n,) float64, the span of each published cell, infinite for the mark, NaN for no value.
    true: (n,) float64, number, place or leaf behind it, NaN for no value.
    """

    attribute: Attribute
    lo: np.ndarray
    hi: np.ndarray
    true: np.ndarray

    @cached_property
    def known(self) -> np.ndarray:
        """The true values that there are."""
        return self.true[~np.isnan(self.true)]

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Least and greatest value that the attribute may take."""
        tree = self.attribute.hierarchy
        return linear_domain(self.attribute, self.known) if tree is None else (0.0, tree.leaves - 1)

    @cached_property
    def shown(self) -> tuple[np.ndarray, np.ndarray]:
        """lo and hi, of the mark the ends of the attribute."""
        least, greatest = self.ends
        lo = np.where(np.isneginf(self.lo), least, self.lo)
        return lo, np.where(np.isposinf(self.hi), greatest, self.hi)


def prediction_errors(
    columns: list[Spans], label: np.ndarray, kept: np.ndarray, seed: int
) -> Mapping[str, Any]:
    """Shares of wrong answers on original records, of models trained on released or original ones.

    label: (n,) integers to be predicted; kept: (n,) bool, records that are not suppressed. The most
    frequent label of the training records is the floor. Raises MissingExtraError without
    scikit-learn.
    """
    models = _models(seed)
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    rng = np.random.default_rng([seed, 2])
    tested = np.zeros(len(label), dtype=bool)
    tested[rng.permutation(len(label))[: int(len(label) * TESTED)]] = True
    released = np.column_stack([_seen(c, *c.shown) for c in columns])
    original = np.column_stack([_seen(c, c.true, c.true) for c in columns])
    learned = ~tested & kept

    def wrong(answer: Any) -> float:
        return float(np.mean(answer != label[tested]))

    most = np.bincount(label[~tested]).argmax()
    found = {}
    for name, make in models.items():
        with threadpool_limits(1):  # the same figures everywhere, and no fight for cores
            by_original = _answers(make, original[~tested], label[~tested], original[tested])
            by_released = _answers(make, released[learned], label[learned], original[tested])
        found[name] = {"original": wrong(by_original), "released": wrong(by_released)}
    return {"tested": int(tested.sum()), "majority": wrong(most), "models": found}


def _answers(
    make: Callable[[], Any], features: np.ndarray, label: np.ndarray, asked: np.ndarray
) -> np.ndarray:
    """What a model answers that has learned from these.

    One label where they know no other, -1 where they know none.
    """
    known = np.unique(label)
    if len(known) < 2:
        return np.full(len(asked), known[0] if len(known) else -1)
    return np.asarray(make().fit(features, label).predict(asked))


def _models(seed: int) -> dict[str, Callable[[], Any]]:
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.tree import DecisionTreeClassifier
    except ImportError:
        raise MissingExtraError.of("downstream utility needs scikit-learn", "ml") from None
    return {
        "tree": lambda: DecisionTreeClassifier(
            criterion="entropy", min_samples_leaf=2, ccp_alpha=0.0005, random_state=seed
        ),
        "logistic regression": lambda: make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=1000)
        ),
        "gradient boosting": lambda: HistGradientBoostingClassifier(random_state=seed),
    }


def _seen(column: Spans, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """The features of spans, (n, features) float64."""
    tree = column.attribute.hierarchy
    if tree is None:
        return np.nan_to_num((lo + hi) / 2, nan=column.ends[0] - 1)[:, None]
    nodes = _nodes(tree, column.known)
    # no value lies under no node
    return ((tree.first[nodes] <= lo[:, None]) & (hi[:, None] <= tree.last[nodes])).astype(
        np.float64
    )


def _nodes(tree: Hierarchy, known: np.ndarray) -> np.ndarray:
    """The nodes that most original records lie under, but for the root."""
    counts = np.bincount(known.astype(np.int64), minlength=tree.leaves)
    running = np.concatenate(([0], np.cumsum(counts)))
    below = running[tree.last + 1] - running[tree.first]
    below[tree.root] = 0
    order = np.argsort(-below, kind="stable")[:MOST_NODES]
    return order[below[order] > 0]


def query_error(columns: list[Spans], seed: int, queries: int = QUERIES) -> dict[str, float]:
    """Relative error of counts over random ranges, mean and median over the queries.

    A query asks up to three attributes for a range between two random records' values each. Its
    error is |estimate - truth| / max(truth, a thousandth of the records).
    """
    rng = np.random.default_rng([seed, 3])
    records = len(columns[0].true)
    errors = []
    for _ in range(queries):
        chosen = rng.permutation(len(columns))[: rng.integers(1, min(3, len(columns)) + 1)]
        truth, estimate = np.ones(records, dtype=bool), np.ones(records)
        for j in chosen:
            column = columns[j]
            known = column.known
            low, high = np.sort(known[rng.integers(0, len(known), 2)]) if len(known) else (0.0, 0.0)
            truth &= (low <= column.true) & (column.true <= high)
            estimate *= _share_inside(column, low, high)
        counted = int(truth.sum())
        errors.append(abs(float(estimate.sum()) - counted) / max(counted, SANITY * records))
    return {"mean": float(np.mean(errors)), "median": float(np.median(errors))}


def _share_inside(column: Spans, low: float, high: float) -> np.ndarray:
    """Which share of each cell's span lies in a range; (n,) float64, 0 for no value.

    Of whole numbers, places and leaves, a span holds both of its ends.
    """
    lo, hi = column.shown
    step = 1.0 if np.all(column.known % 1 == 0) else 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = np.minimum(hi, high) - np.maximum(lo, low) + step
        share = np.where(
            hi > lo, np.clip(inside, 0, None) / (hi - lo + step), (low <= lo) & (lo <= high)
        )
    return np.where(np.isnan(lo), 0.0, share)
