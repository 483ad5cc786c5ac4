"""The floor under the rounded partition: a bare median split of whole rows, in place, in compiled
code.

Widest attribute, quickselect of int32 rows, no tie order, no options. A method can't be expected to
be faster than this by much; its time is quoted as a multiple of this one, measured in the same run.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def median_split(rows: np.ndarray, scale: np.ndarray, least: int) -> np.ndarray:
    """Splits rows (n, d + 1) int32 in place at medians down to nodes under 2 * least; returns the
    starts.
    """
    n, columns = rows.shape
    d = columns - 1
    starts = np.empty(n // least + 1, dtype=np.int64)
    stack = np.empty((128, 2), dtype=np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    top, used = 1, 0
    lo = np.empty(d, dtype=np.int32)
    hi = np.empty(d, dtype=np.int32)
    while top > 0:
        top -= 1
        a, b = stack[top, 0], stack[top, 1]
        if b - a < 2 * least:
            starts[used] = a
            used += 1
            continue
        for j in range(d):
            lo[j] = rows[a, j]
            hi[j] = lo[j]
        for i in range(a + 1, b):
            for j in range(d):
                lo[j] = min(lo[j], rows[i, j])
                hi[j] = max(hi[j], rows[i, j])
        widest, most = 0, -1.0
        for j in range(d):
            if (hi[j] - lo[j]) * scale[j] > most:
                widest, most = j, (hi[j] - lo[j]) * scale[j]
        middle = (a + b) // 2
        left, right = a, b - 1
        while left < right:
            pivot = rows[(left + right) // 2, widest]
            i, j = left, right
            while i <= j:
                while rows[i, widest] < pivot:
                    i += 1
                while rows[j, widest] > pivot:
                    j -= 1
                if i <= j:
                    for c in range(columns):
                        rows[i, c], rows[j, c] = rows[j, c], rows[i, c]
                    i += 1
                    j -= 1
            if middle <= j:
                right = j
            elif middle >= i:
                left = i
            else:
                break
        stack[top, 0], stack[top, 1] = middle, b
        stack[top + 1, 0], stack[top + 1, 1] = a, middle
        top += 2
    starts[used] = n
    return starts[: used + 1]
