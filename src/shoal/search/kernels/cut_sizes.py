"""How many records a cut may put on its low side: the sizes of the rounded partition function."""

import numpy as np

from shoal.data.numba_kernels import inner

# as plain numbers they would compile a function that takes one of them once more for each
SAME = np.int64(0)
"""Both halves of alpha and of beta are rounded up: the paper's figure 4."""
CROSS = np.int64(1)
"""Half of alpha is rounded up, half of beta down."""
PROPORTIONAL = np.int64(2)
"""Half of the classes, and their share of the records."""

LEAST_SHARE = 1 / 16  # of a node's records on either side of an admissible cut


@inner
def lower_size(m, k, sizes):
    """Records on the low side of a cut of m = alpha * k + beta: the rounded partition function."""
    alpha = m // k
    beta = m - alpha * k
    if sizes == SAME:
        return ((alpha + 1) // 2) * k + (beta + 1) // 2
    if sizes == CROSS:
        return ((alpha + 1) // 2) * k + beta // 2
    half = alpha - alpha // 2
    return half * (m // alpha) + ((m % alpha) * half) // alpha


@inner
def nearest_admissible(c, m, k):
    """The admissible size of a cut of m rows that is nearest to c and leaves enough on either side.

    A cut of c rows is admissible when c mod k <= m mod k: then both sides together still hold
    m // k classes. Enough: k rows, and LEAST_SHARE of all.
    """
    low = max(int(m * LEAST_SHARE), k)
    c = min(max(c, low), m - low)
    over = c % k
    rem = m % k
    if over > rem:
        c += rem - over if over - rem <= k - over else k - over
    return c
