"""What the input's order gives away: whoever knows the column that rows are sorted by looks near
the place that a person's value has, among rows that show what is known of the person.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from shoal.data.attack_scene import Followed
from shoal.data.release import Release
from shoal.data.row_order import cell_ranks
from shoal.data.schema import Render
from shoal.data.truth import Truth
from shoal.data.warnings import GRAVE, OPEN, ORDER_KEPT, ReleaseWarning

LEAST_CORRELATION = 0.3
GRAVE_SHARE = 0.2


def most_followed(truth: Truth, render: Render) -> Followed | None:
    """The column of the original that published rows follow most; None where they follow none."""
    quasi = [one.attribute.name for one in truth.encoded.attributes]
    best = None
    for name in dict.fromkeys([*quasi, *truth.original.names]):
        place = truth.aligned(_places(truth, name, render))
        correlation = _correlation(place)
        if correlation < 0:
            place = len(place) - 1 - place
        if abs(correlation) > (0.0 if best is None else abs(best.correlation)):
            best = Followed(name, place, correlation)
    return best


def order_kept(release: Release, truth: Truth, render: Render) -> ReleaseWarning | None:
    """What to say of a release whose rows are in the input's order, if a column follows it."""
    best = most_followed(truth, render)
    if best is None or abs(best.correlation) <= LEAST_CORRELATION:
        return None
    labels, subjects = release.classes.labels, release.classes.subjects
    kept = labels >= 0
    persons = np.arange(len(labels)) if subjects is None else subjects
    found = len(np.unique(persons[nearest_to_place(labels, best.place)]))
    people = len(np.unique(persons[kept]))
    text = (
        f"rows are in the order of '{best.name}': whoever knows it finds {found} of {people}"
        " people; leave 'order: input' out of the policy"
    )
    severity = GRAVE if found > GRAVE_SHARE * people else OPEN
    return ReleaseWarning(ORDER_KEPT, text, best.name, severity)


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


def nearest_to_place(labels: np.ndarray, place: np.ndarray) -> np.ndarray:
    """(n,) bool, rows that no other row of their class is as near to their place as they are.

    labels: (n,) class of each row, -1 for none. place: (n,) where each would stand.
    """
    kept = np.flatnonzero(labels >= 0)
    begins = labels[kept].astype(np.int64) * 4 * max(len(labels), 1)
    keys = np.sort(begins + 2 * kept)
    wanted = begins + np.rint(2 * place[kept]).astype(np.int64)
    after = np.searchsorted(keys, wanted)
    # rows of other classes are farther away than any of its own
    nearby = np.stack([keys[np.maximum(after - 1, 0)], keys[np.minimum(after, len(keys) - 1)]])
    own = np.abs(begins + 2 * kept - wanted)
    distances = np.abs(nearby - wanted)
    rivals = np.where(nearby == begins + 2 * kept, np.iinfo(np.int64).max, distances)
    found = np.zeros(len(labels), dtype=bool)
    found[kept] = (own <= distances.min(axis=0)) & (own < rivals.min(axis=0))
    return found
