"""Moving whole records: rows of a matrix, (n, columns), one record each."""

from __future__ import annotations

from shoal.data.numba_kernels import inner


@inner
def swap_rows(rows, a, b):
    for c in range(rows.shape[1]):
        rows[a, c], rows[b, c] = rows[b, c], rows[a, c]


@inner
def copy_row(source, a, target, b):
    """Row a of `source` into row b of `target`."""
    for c in range(source.shape[1]):
        target[b, c] = source[a, c]
