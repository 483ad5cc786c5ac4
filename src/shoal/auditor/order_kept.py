"""What the input's order gives away: whoever knows the column that rows are sorted by looks near
the place that a person's value has, among rows that show what is known of the person.
"""

import numpy as np

from shoal.data.room import blocks
from shoal.data.row_order import Followed, cell_ranks
from shoal.data.schema import Render
from shoal.data.table import Column
from shoal.data.truth import Truth
from shoal.data.warnings import GRAVE, OPEN, ORDER_KEPT, ReleaseWarning

LEAST_CORRELATION = 0.3
GRAVE_SHARE = 0.2


def most_followed(truth: Truth, render: Render) -> Followed | None:
    """The column of the original that published rows follow most; None where they follow none."""
    quasi = [one.attribute.name for one in truth.encoded.attributes]
    best = None
    for name in dict.fromkeys([*quasi, *truth.original.names]):
        column = truth.original.column(name)
        codes, middles = truth.aligned(column.codes), _middles(column, render)
        correlation = _correlation(codes, middles, column.counts())
        if correlation < 0:
            middles = len(codes) - 1 - middles
        if abs(correlation) > (0.0 if best is None else abs(best.correlation)):
            best = Followed(name, codes, middles, correlation)
    return best


def order_followed(truth: Truth | None, render: Render) -> Followed | None:
    """The column that rows in the input's order follow closely enough for a finding, if any."""
    if truth is None or render.order != "input":
        return None
    best = most_followed(truth, render)
    return None if best is None or abs(best.correlation) <= LEAST_CORRELATION else best


def order_kept(followed: Followed, found: int, people: int) -> ReleaseWarning:
    """What to say of a release whose rows follow a column. found: the people whom it finds."""
    text = (
        f"rows are in the order of '{followed.name}': whoever knows it finds {found} of {people}"
        " people; leave 'order: input' out of the policy"
    )
    severity = GRAVE if found > GRAVE_SHARE * people else OPEN
    return ReleaseWarning(ORDER_KEPT, text, followed.name, severity)


def _middles(column: Column, render: Render) -> np.ndarray:
    """(cells,) float64, where the rows of each cell would stand on average, if sorted by it."""
    ranks = cell_ranks(column.texts, render)
    counts = np.bincount(ranks, weights=column.counts())
    middles = np.cumsum(counts) - (counts + 1) / 2
    return np.asarray(middles[ranks])


def _correlation(codes: np.ndarray, middles: np.ndarray, counts: np.ndarray) -> float:
    """Spearman's, with the number of the row. counts: (cells,) rows of each cell."""
    middle = (len(codes) - 1) / 2
    away = middles - middle
    spread = float((counts * away**2).sum()) * (len(codes) ** 3 - len(codes)) / 12
    if spread <= 0:
        return 0.0
    together = sum(
        float(away[codes[rows]] @ (np.arange(rows.start, rows.stop) - middle))
        for rows in blocks(len(codes))
    )
    return together / float(np.sqrt(spread))


def nearest_to_place(
    labels: np.ndarray, place: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """(n,) bool, rows that no other row of their class is as near to their place as they are.

    labels: (n,) class of each row, -1 for none. place: (n,) where each would stand. rows: (n,)
    where each stands, in ascending order; by default these are all rows.
    """
    kept = np.flatnonzero(labels >= 0)
    stands = kept if rows is None else rows[kept]
    reach = 4 * int(max(stands.max(initial=0), place.max(initial=0)) + 1)
    begins = labels[kept].astype(np.int64) * reach
    keys = np.sort(begins + 2 * stands)
    wanted = begins + np.rint(2 * place[kept]).astype(np.int64)
    after = np.searchsorted(keys, wanted)
    # rows of other classes are farther away than any of its own
    nearby = np.stack([keys[np.maximum(after - 1, 0)], keys[np.minimum(after, len(keys) - 1)]])
    own = np.abs(begins + 2 * stands - wanted)
    distances = np.abs(nearby - wanted)
    rivals = np.where(nearby == begins + 2 * stands, np.iinfo(np.int64).max, distances)
    found = np.zeros(len(labels), dtype=bool)
    found[kept] = (own <= distances.min(axis=0)) & (own < rivals.min(axis=0))
    return found
