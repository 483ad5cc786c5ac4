"""What t-closeness asks of one sensitive attribute, for methods that build classes towards it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.data.classes import SensitiveColumn


@dataclass(frozen=True)
class Closeness:
    """In every class the column's values are within t of the whole table (earth mover's distance).

    column: the attribute; its `distance` is the ground distance.
    frequencies: (values,) int64, how often each value counts in the whole table.
    """

    column: SensitiveColumn
    frequencies: np.ndarray
    t: float
