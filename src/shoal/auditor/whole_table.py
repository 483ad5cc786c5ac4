"""How often each sensitive value counts in a whole table that is not held in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shoal.data.classes import SensitiveColumn
from shoal.data.room import Room, blocks
from shoal.errors import InputError

PAIR_BYTES = 32
"""What a pair takes while pairs are told apart."""


def in_whole_table(
    column: SensitiveColumn, subjects: np.ndarray | None, left_out: np.ndarray | None, room: Room
) -> SensitiveColumn:
    """The column without its records, with how many (subject, value) pairs have each value.

    subjects: (n,) numbers, None where each record is its own person. left_out: (n,) bool, records
    in no class. Raises InputError where several texts stand for no value and people have several
    records: whether somebody has two of them is only known of a table that is held as a whole.
    """
    counts = np.zeros(max(column.values, 1), dtype=np.int64)
    if subjects is None:
        for rows in blocks(len(column.codes)):
            places = column.codes[rows]
            kept = places if left_out is None else places[~left_out[rows]]
            counts += np.bincount(kept, minlength=len(counts))
    else:
        if column.missing > 1:
            raise InputError(
                f"memory: '{column.name}' has several texts for no value, which need the whole"
                " table in memory where people have several records; leave out --memory"
            )
        _count_pairs(column.codes, subjects, left_out, counts, room)
    return replace(column, codes=column.codes[:0], in_table=counts)


def _count_pairs(
    places: np.ndarray,
    subjects: np.ndarray,
    left_out: np.ndarray | None,
    counts: np.ndarray,
    room: Room,
) -> None:
    """Adds the pairs of as many people at a time as have room."""
    records = len(places)
    people = 1 + max((int(subjects[rows].max()) for rows in blocks(records)), default=-1)
    most = (room.limit or PAIR_BYTES * records * 8) // 8 // PAIR_BYTES
    each = max(people * most // max(records, 1), 1)
    for first in range(0, people, each):
        keys = []
        for rows in blocks(records):
            person = subjects[rows].astype(np.int64) - first
            chosen = (person >= 0) & (person < each)
            if left_out is not None:
                chosen &= ~left_out[rows]
            keys.append(person[chosen] * len(counts) + places[rows][chosen])
        pairs = np.unique(np.concatenate(keys))
        counts += np.bincount(pairs % len(counts), minlength=len(counts))
