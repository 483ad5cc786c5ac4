"""The sensitive values that classes show, and those that all classes of a record share."""

from __future__ import annotations

import numpy as np

from shoal.auditor.ledger.numbering import counts_by_class
from shoal.auditor.ledger.release_view import SIGNATURES, HistoryFinding
from shoal.auditor.ledger.transition import Transition


def common_values(step: Transition, least: int) -> HistoryFinding:
    """People whose classes so far have fewer than `least` sensitive values in common."""
    in_common = step.past.narrow(step.release, step.rows)
    return step.finding(
        "signatures",
        in_common < least,
        SIGNATURES,
        releases=step.all_releases,
        least=int(in_common.min()) if len(in_common) else 0,
    )


def values_shown(labels: np.ndarray, values: np.ndarray, count: int) -> list[frozenset[int]]:
    """The set of values that each class shows. labels, values: (n,) class and hashed value."""
    kept = labels >= 0
    classes, shown, _ = counts_by_class(labels[kept], values[kept])
    ends = np.searchsorted(classes, np.arange(count), side="right").tolist()
    values_of = shown.tolist()
    return [frozenset(values_of[start:end]) for start, end in zip([0, *ends], ends, strict=False)]


def too_frequent(labels: np.ndarray, values: np.ndarray, count: int, least: int) -> np.ndarray:
    """Classes in which some value has more than one row in `least`; (count,) bool."""
    kept = labels >= 0
    classes, _, rows = counts_by_class(labels[kept], values[kept])
    most = np.zeros(count, dtype=np.int64)
    np.maximum.at(most, classes, rows)
    return most * least > np.bincount(labels[kept], minlength=count)
