"""What the input's order gives away: whoever knows the column that rows are sorted by looks near
the place that a person's value has, among rows that show what is known of the person.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from shoal.data.release import Release
from shoal.data.row_order import cell_ranks
from shoal.data.schema import Render
from shoal.data.truth import Truth
from shoal.data.warnings import GRAVE, OPEN, ORDER_KEPT, ReleaseWarning

LEAST_CORRELATION = 0.3
GRAVE_SHARE = 0.2


def order_kept(release: Release, truth: Truth, render: Render) -> ReleaseWarning | None:
    """What to say of a release whose rows are in the input's order, if a column follows it."""
    quasi = [one.attribute.name for one in truth.encoded.attributes]
    places = {name: _places(truth, name, render) for name in [*quasi, *truth.original.names]}
    correlations = {name: _correlation(place) for name, place in places.items()}
    name = max(correlations, key=lambda one: abs(correlations[one]), default=None)
    if name is None or abs(correlations[name]) <= LEAST_CORRELATION:
        return None
    place = places[name] if correlations[name] > 0 else release.records - 1 - places[name]
    found, people = _found(release, place)
    text = (
        f"rows are in the order of '{name}': whoever knows it finds {found} of {people} people;"
        " leave 'order: input' out of the policy"
    )
    severity = GRAVE if found > GRAVE_SHARE * people else OPEN
    return ReleaseWarning(ORDER_KEPT, text, name, severity)


def _places(truth: Truth, name: str, render: Render) -> np.ndarray:
    """(n,) float64, where each record would stand on average if rows were sorted by a column."""
    column = truth.original.column(name)
    ranks = cell_ranks(pl.Series(column.cells, dtype=pl.String), render)[column.codes]
    counts = np.bincount(ranks)
    middles = np.cumsum(counts) - (counts + 1) / 2
    return np.asarray(middles[ranks])


def _correlation(place: np.ndarray) -> float:
    """Spearman's, with the number of the row."""
    if len(place) < 2 or place.min() == place.max():
        return 0.0
    return float(np.corrcoef(place, np.arange(len(place)))[0, 1])


def _found(release: Release, place: np.ndarray) -> tuple[int, int]:
    """How many people have a row that is the nearest to its place in its class, and how many there
    are in classes.
    """
    labels, subjects = release.classes.labels, release.classes.subjects
    kept = np.flatnonzero(labels >= 0)
    begins = labels[kept].astype(np.int64) * 4 * max(release.records, 1)
    keys = np.sort(begins + 2 * kept)
    wanted = begins + np.rint(2 * place[kept]).astype(np.int64)
    after = np.searchsorted(keys, wanted)
    # rows of other classes are farther away than any of its own
    nearby = np.stack([keys[np.maximum(after - 1, 0)], keys[np.minimum(after, len(keys) - 1)]])
    own = np.abs(begins + 2 * kept - wanted)
    distances = np.abs(nearby - wanted)
    rivals = np.where(nearby == begins + 2 * kept, np.iinfo(np.int64).max, distances)
    hit = (own <= distances.min(axis=0)) & (own < rivals.min(axis=0))
    people = kept if subjects is None else subjects[kept]
    return len(np.unique(people[hit])), len(np.unique(people))
