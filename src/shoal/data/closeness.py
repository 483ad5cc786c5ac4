"""What t-closeness asks of one sensitive attribute, for methods that build classes towards it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.data.classes import SensitiveColumn


@dataclass(frozen=True)
class Closeness:
    """In every class, the earth mover's distance of the column's values from the whole table is at
    most t.

    column: the attribute; its `distance` is the ground distance.
    frequencies: (values,) int64, how often each value counts in the whole table.
    """

    column: SensitiveColumn
    frequencies: np.ndarray
    t: float
