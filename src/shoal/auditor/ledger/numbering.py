"""Groups of equal keys as numbers, and how often each class shows each value."""

from __future__ import annotations

import numpy as np

Rows = tuple[np.ndarray, np.ndarray]
"""Class and hashed value of every row of a release that is in a class."""


def numbered(*keys: np.ndarray) -> tuple[np.ndarray, int]:
    """Equal combinations of keys as one number 0..count-1, and the count."""
    number = np.zeros(len(keys[0]), dtype=np.int64)
    count = 1
    for key in keys:
        distinct, rank = np.unique(key, return_inverse=True)
        # both factors are at most the number of rows, so their product fits 64 bits
        number, count = _ranked(number * len(distinct) + rank)
    return number, count


def _ranked(number: np.ndarray) -> tuple[np.ndarray, int]:
    distinct, rank = np.unique(number, return_inverse=True)
    return rank.astype(np.int64), len(distinct)


def counts_by_class(
    classes: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows per class and value: class, value, count, ordered by class."""
    order = np.lexsort((values, classes))
    classes, values = classes[order], values[order]
    is_first = np.ones(len(classes), dtype=bool)
    is_first[1:] = (classes[1:] != classes[:-1]) | (values[1:] != values[:-1])
    first = np.flatnonzero(is_first)
    return classes[first], values[first], np.diff(np.append(first, len(classes)))


def values_by_class(classes: np.ndarray, values: np.ndarray) -> dict[int, dict[int, int]]:
    """The same as dictionaries: count by value by class."""
    counts: dict[int, dict[int, int]] = {}
    columns = (column.tolist() for column in counts_by_class(classes, values))
    for c, value, count in zip(*columns, strict=True):
        counts.setdefault(c, {})[value] = count
    return counts


def lists_by_key(keys: np.ndarray, items: np.ndarray) -> dict[int, list[int]]:
    """The items of each key, in their order."""
    lists: dict[int, list[int]] = {}
    for key, item in zip(keys.tolist(), items.tolist(), strict=True):
        lists.setdefault(key, []).append(item)
    return lists


def people_per(groups: np.ndarray, count: int, subjects: np.ndarray | None) -> np.ndarray:
    """Distinct subjects of each group, (count,) int64."""
    if subjects is None:
        return np.bincount(groups, minlength=count)
    number, many = numbered(groups, subjects)
    of_pair = np.zeros(many, dtype=np.int64)
    of_pair[number] = groups
    return np.bincount(of_pair, minlength=count)
