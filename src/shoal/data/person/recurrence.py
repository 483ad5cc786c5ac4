"""Whether records of one birth, name or the like are of one person more often than by chance."""

import numpy as np

RECURRING = 0.05  # share of the pairs of one birth that are of one person, where people recur
FAR = 3  # times as many such pairs as by chance, where even fewer are enough
AGAIN = 0.04  # other records of the same person, for each record; twins make fewer
SIGNIFICANT = 3.5  # standard deviations
UNKNOWN = 5  # times as many records as neighbours have, from which a birth may be unknown
FEWEST_AGAIN = 10  # records of people who recur
NEARLY_CONSTANT = 0.8  # chance above which a few typing errors look like other people


def agree_beyond_neighbours(ranks: np.ndarray, keys: np.ndarray) -> bool:
    """Whether records of one rank have one key more often than records of neighbouring ranks.

    ranks, keys: (n,) of each record. A rank of far more records than its neighbours may stand for
    an unknown birth, and is left out.
    """
    rank = (np.cumsum(np.bincount(ranks) > 0) - 1)[ranks]
    is_dense = keys.max() < len(keys)
    key = keys.astype(np.int64) if is_dense else np.unique(keys, return_inverse=True)[1]
    records, width = np.bincount(rank), int(key.max()) + 1
    beside = _at_neighbours(np.arange(len(records)), records, 1)
    is_judged = (records > 1) & (records <= UNKNOWN * beside)
    # a cell holds the records of one rank and one key
    cells, held = _counted(rank * width + key, len(records) * width)
    of_cell, alike = cells // width, _at_neighbours(cells, held, width)
    kept = is_judged[of_cell]
    if not kept.any():
        return False
    held, of_cell, alike = held[kept], of_cell[kept], alike[kept]
    records, beside = records[of_cell], beside[of_cell]
    own, near = (held - 1) / (records - 1), alike / beside
    agree, chance = (float(np.average(shares, weights=held)) for shares in (own, near))
    again = float((held * (own - near) * (records - 1)).sum())
    # by how much it varies: by pairs, and where many pairs share a record, by records
    by_pairs = max(chance * (1 - chance), 1 / len(keys))
    by_pairs *= float((held * (2 / (records - 1) + 1 / beside)).sum())
    moved = 2 * own - near
    moved -= np.bincount(of_cell, held * moved)[of_cell] / records
    by_records = float((held * (1 + records / beside) * moved**2).sum()) / 2
    beyond = agree - chance
    is_chance = beyond * held.sum() < SIGNIFICANT * max(by_pairs, by_records) ** 0.5
    is_far = beyond >= min(RECURRING * (1 - chance), (FAR - 1) * chance)
    is_often = again >= max(FEWEST_AGAIN, AGAIN * len(keys))
    return chance <= NEARLY_CONSTANT and is_often and is_far and not is_chance


def _counted(numbers: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct numbers, ascending, and how often each occurs. room: above all of them."""
    if room > len(numbers):
        return np.unique(numbers, return_counts=True)
    counts = np.bincount(numbers)
    return np.flatnonzero(counts), counts[counts > 0]


def _at_neighbours(places: np.ndarray, counts: np.ndarray, step: int) -> np.ndarray:
    """What is counted a step before and behind each place. places: ascending."""
    found = np.zeros(len(places), dtype=np.int64)
    for wanted in (places - step, places + step):
        at = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
        found += np.where(places[at] == wanted, counts[at], 0)
    return found
