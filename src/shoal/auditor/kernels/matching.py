"""A largest matching of published rows with rows of the original, of which each may occur often.

Augmenting paths (Ford, Fulkerson 1956), the shortest first (Edmonds, Karp 1972): a row that finds
no path has none later.
"""

import numpy as np

from shoal.data.numba_kernels import inlined, inner, outer, uncompiled_up_to

HIDDEN = -1
"""The code of a column that a row hides; any other fits it."""


@outer
def find_fitting(lo, hi, shown, values, known, first, last, starts, fitting):
    """Writes the original's rows that fit each published one; where each one's start alone, if
    `fitting` is empty.

    lo, hi: (p, quasi) span of each cell, as in `PublishedColumn`; values: (t, quasi) of the
    original, NaN for none. shown, known: (p, others), (t, others) codes of other columns, HIDDEN
    for any. first, last: (p,) the rows to look among. starts: (p + 1,). fitting: (pairs,).
    """
    found = 0
    for p in range(len(first)):
        for t in range(first[p], last[p]):
            if fits(lo[p], hi[p], shown[p], values[t], known[t]):
                if len(fitting):
                    fitting[found] = t
                found += 1
        starts[p + 1] = found


@inlined
def fits(lo, hi, shown, values, known):
    for j in range(len(shown)):
        if shown[j] != HIDDEN and shown[j] != known[j]:
            return False
    for j in range(len(lo)):
        if np.isnan(values[j]):
            if not (np.isnan(lo[j]) or np.isneginf(lo[j])):
                return False
        elif not lo[j] <= values[j] <= hi[j]:
            return False
    return True


def left_over(
    starts: np.ndarray,
    fitting: np.ndarray,
    wanted: np.ndarray,
    free: np.ndarray,
    most: int = 1 << 62,
) -> int:
    """How many of the wanted (p,) a largest matching with the free (t,) leaves over; -1 where
    `most` steps are not enough. Both are taken from.

    starts, fitting: as `find_fitting` writes them.
    """
    by_row = np.argsort(fitting, kind="stable")
    ends = np.searchsorted(fitting[by_row], np.arange(len(free) + 1))
    is_done = match(starts, fitting, ends, by_row, wanted, free, most)
    return int(wanted.sum()) if is_done else -1


@uncompiled_up_to(
    # a search, for each row and for each of the wanted, at worst passes all pairs twice
    lambda starts, fitting, ends, by_row, wanted, *_: (
        2 * len(fitting) * (len(wanted) + int(wanted.sum()))
    )
)
@outer
def match(starts, fitting, ends, by_row, wanted, free, most):
    """Takes from wanted (p,) and free (t,) what is matched; whether `most` steps were enough.

    starts, fitting: as found. ends: (t + 1,), by_row: (pairs,) the pairs of each original row.
    """
    taken = np.zeros(len(fitting), dtype=np.int64)
    owner = np.empty(len(fitting), dtype=np.int32)
    for p in range(len(wanted)):
        for e in range(starts[p], starts[p + 1]):
            owner[e] = p
            taken[e] = min(wanted[p], free[fitting[e]])
            wanted[p] -= taken[e]
            free[fitting[e]] -= taken[e]
    reached = np.empty(len(free), dtype=np.int64)
    through = np.empty(len(wanted), dtype=np.int64)
    seen = np.zeros(len(free) + len(wanted), dtype=np.int64)
    queue = np.empty(len(wanted), dtype=np.int32)
    search, steps = 0, 0
    for p in range(len(wanted)):
        while wanted[p]:
            search += 1
            queue[0] = p
            end, more = reach(
                starts, fitting, ends, by_row, free, taken, owner, reached, through, seen, queue,
                search,
            )  # fmt: skip
            steps += more
            if steps > most:
                return False
            if end < 0:
                break
            shift(p, end, fitting, wanted, free, taken, owner, reached, through)
    return True


@inner
def reach(starts, fitting, ends, by_row, free, taken, owner, reached, through, seen, queue, search):
    """The nearest free row that queue[0] reaches, by rows whose takers find others; -1 for none.

    reached: (t,) the pair by which a row was reached; through: (p,) the pair that its taker gives.
    """
    seen[len(free) + queue[0]] = search
    head, tail, steps = 0, 1, 0
    while head < tail:
        p = queue[head]
        head += 1
        for e in range(starts[p], starts[p + 1]):
            steps += 1
            t = fitting[e]
            if seen[t] == search:
                continue
            seen[t] = search
            reached[t] = e
            if free[t]:
                return t, steps
            for i in range(ends[t], ends[t + 1]):
                steps += 1
                other = owner[by_row[i]]
                if taken[by_row[i]] and seen[len(free) + other] != search:
                    seen[len(free) + other] = search
                    through[other] = by_row[i]
                    queue[tail] = other
                    tail += 1
    return -1, steps


@inner
def shift(start, end, fitting, wanted, free, taken, owner, reached, through):
    """Gives `start` what can be passed on along the path to the free row `end`."""
    given, t = min(wanted[start], free[end]), end
    while owner[reached[t]] != start:
        back = through[owner[reached[t]]]
        given = min(given, taken[back])
        t = fitting[back]
    wanted[start] -= given
    free[end] -= given
    t = end
    taken[reached[t]] += given
    while owner[reached[t]] != start:
        back = through[owner[reached[t]]]
        taken[back] -= given
        t = fitting[back]
        taken[reached[t]] += given
