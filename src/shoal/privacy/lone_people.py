"""Whom values single out, and how many people look like everybody: counted exactly, in people.

A person is singled out by some columns if one of their records holds values there that no other
person's record holds. Whoever has several records is as exposed as the most exposed of them.

Each value of each column has a random number of 64 bits; the exclusive or over some columns, a
record's key, stands for its values there. Two different rows have the same key by chance in one of
10^19 cases, so that no count shows it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def value_keys(number: int, codes: np.ndarray) -> np.ndarray:
    """(n,) uint64, a random number for each value of a column (Steele and others, SplitMix64).

    number: the column's own, so that no two columns share random numbers.
    """
    values = np.arange(int(codes.max(initial=0)) + 1, dtype=np.uint64)
    z = (values + np.uint64(number << 40)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = (z ^ (z >> np.uint64(31)))[codes]
    return mixed


def row_keys(columns: Mapping[str, np.ndarray], records: int) -> dict[str, np.ndarray]:
    """By column, the (records,) uint64 numbers of its values."""
    assert all(len(codes) == records for codes in columns.values())
    return {name: value_keys(i, codes) for i, (name, codes) in enumerate(columns.items())}


def together(keys: Mapping[str, np.ndarray], records: int) -> np.ndarray:
    """(records,) uint64, the key of each record over all columns; of none, all are alike."""
    every = np.zeros(records, dtype=np.uint64)
    for column in keys.values():
        every ^= column
    return every


def singled_out(keys: np.ndarray, people: np.ndarray | None = None) -> int:
    """How many people have a record whose key no record of anybody else has.

    keys: (n,) uint64. people: (n,) whose record it is, numbered densely; None where each is its own
    person's.
    """
    if people is None:
        ordered = np.sort(keys)
        begins = np.append(np.append(True, ordered[1:] != ordered[:-1]), True)
        return int((begins[1:] & begins[:-1]).sum())
    if not len(keys):
        return 0
    order = np.argsort(keys)
    starts, whose = _starts(keys[order]), people[order]
    first, last = np.minimum.reduceat(whose, starts), np.maximum.reduceat(whose, starts)
    return int((np.bincount(first[first == last].astype(np.int64)) > 0).sum())


def smallest_sets(keys: np.ndarray, people: np.ndarray | None = None) -> np.ndarray:
    """For each person, how many people share a key with them: themselves, and others like them.

    Of the sets that a person's records are in, the smallest counts. (people,) int64.
    """
    if not len(keys):
        return np.zeros(0, dtype=np.int64)
    order = np.argsort(keys)
    starts = _starts(keys[order])
    rows = np.diff(np.append(starts, len(keys)))
    if people is None:
        sizes = np.empty(len(keys), dtype=np.int64)
        sizes[order] = np.repeat(rows, rows)
        return sizes
    number = np.repeat(np.arange(len(rows), dtype=np.int64), rows)
    pairs = np.sort(number << 32 | people[order].astype(np.int64))
    pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])]
    sets, whose = pairs >> 32, pairs & 0xFFFFFFFF
    sizes = np.bincount(sets)[sets]
    smallest = np.full(int(people.max()) + 1, len(keys), dtype=np.int64)
    np.minimum.at(smallest, whose, sizes)
    return smallest


def _starts(ordered: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
