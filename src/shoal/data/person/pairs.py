"""Columns that number people only together: first and last names, and numbers within a group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from shoal.data.person import words as w
from shoal.data.person.candidates import FEWEST, Candidate, counts_only
from shoal.data.person.columns import People, PersonColumn, hashed_to_0
from shoal.data.person.evidence import CROSSING, MOST_ROWS, evidence_for, joined

MOST_KEYS = 4 * MOST_ROWS  # rows of which pairs are made
FEW_VALUES = 200
MOST_TRIED = 12  # numbers within groups
LARGEST_WITHIN = 30  # distinct numbers that members of a group have
ANEW = 0.7  # share of the numbers up to the greatest of each group that occur
NAMESAKES = 2  # times as many pairs of rows as chance makes


def paired(columns: Sequence[PersonColumn]) -> Candidate | None:
    """Several columns together; None where every record is another one by them.

    Of many rows some are looked at, those of whole values of the finest column, and people scaled
    up.
    """
    codes, share = _joint_codes(columns, MOST_KEYS)
    people = _people(codes)
    if people.distinct >= people.records:
        return None
    titles = tuple(column.title for column in columns)
    counts = people.records * share, people.distinct * share, people.most
    return Candidate(titles, "pair", people, *counts)


def joint_people(columns: Sequence[PersonColumn]) -> People:
    """Everybody by several columns together; records that lack a part are nobody's."""
    return _people(_joint_codes(columns)[0])


def _joint_codes(
    columns: Sequence[PersonColumn], most: int | None = None
) -> tuple[np.ndarray, int]:
    """(n,) dense codes, -1 where a part is missing or not looked at; and one of how many is.

    most: rows that are looked at, about; all by default.
    """
    finest = max(columns, key=lambda column: column.distinct)
    records = len(finest.people.codes)
    share = 1 if most is None or finest.distinct < FEW_VALUES else -(-records // most)
    rows = np.arange(records)
    if share > 1:
        kept = hashed_to_0(np.arange(len(finest.people.is_value)), share)
        rows = np.flatnonzero(kept[finest.people.codes])
    for column in columns:
        rows = rows[column.people.is_value[column.people.codes[rows]]]
    codes = np.full(records, -1, dtype=np.int64)
    key = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        key = joined(key, column.people.codes[rows])
    codes[rows] = key
    return codes, share


def _people(codes: np.ndarray) -> People:
    """Records by dense codes; those of -1 are nobody's."""
    found = int(codes.max(initial=-1)) + 1
    codes = np.where(codes < 0, found, codes)
    return People(codes, np.arange(found + 1) < found, np.bincount(codes, minlength=found + 1))


def by_name(columns: Sequence[PersonColumn]) -> Candidate | None:
    """First and last name, with the birth if there is one; None where they are not of one person.

    Without a birth, they count where more rows share a name than namesakes by chance would.
    """
    parts = [_first_of(kind, columns) for kind in ("first", "last", "birth")]
    first, last, birth = parts
    if first is None or last is None:
        return None
    tried = [[first, last]] if birth is None else [[first, last, birth], [first, last]]
    for chosen in tried:
        candidate = paired(chosen)
        if candidate is None:
            continue
        candidate.evidence = evidence_for(candidate.people, columns, candidate.columns)
        if candidate.evidence.is_contradicted:
            continue
        if len(chosen) > 2 or _exceeds_namesakes(candidate, first, last):
            return candidate
    return None


def _first_of(kind: str, columns: Sequence[PersonColumn]) -> PersonColumn | None:
    fitting = (c for c in columns if c.name.kind == kind and c.varies)
    return next(fitting, None)


def _exceeds_namesakes(candidate: Candidate, *names: PersonColumn) -> bool:
    """Whether more pairs of rows share both names than if they were drawn apart."""
    by_chance = candidate.people.records**2 / 2
    for name in names:
        counts = name.people.counts[name.people.is_value]
        by_chance *= float(((counts / counts.sum()) ** 2).sum())
    rows = candidate.people.counts[candidate.people.is_value].astype(float)
    return float((rows * (rows - 1) / 2).sum()) > NAMESAKES * by_chance


def within_groups(
    columns: Sequence[PersonColumn], kept: Sequence[Candidate], rejected: Sequence[Candidate]
) -> Iterator[tuple[PersonColumn, Candidate | None]]:
    """Each number that begins anew in a group, with the two together; with None where every record
    is another one by them, so that rows are people.
    """
    groups = [column for column in columns if _is_group(column, rejected)]
    sure = {c.columns for c in kept if c.evidence.is_confirmed and not c.evidence.is_contradicted}
    numbers = [
        column
        for column in columns
        if _may_be_within(column, [*rejected, *kept]) and (column.title,) not in sure
    ]
    couples = [(n, g) for n in numbers for g in groups if n is not g]
    for number, group in couples[:MOST_TRIED]:
        candidate = paired([group, number])
        if candidate is None:
            if begins_anew(group, number):
                yield number, None
        elif _is_finer(candidate, group, number):
            candidate.evidence = evidence_for(candidate.people, columns, candidate.columns)
            is_silent = not candidate.evidence.personal
            if candidate.evidence.is_confirmed or (is_silent and begins_anew(group, number)):
                yield number, candidate


def _is_group(column: PersonColumn, rejected: Sequence[Candidate]) -> bool:
    if not column.varies:
        return False
    is_stay = bool(column.name.words) and column.name.words[-1] in w.SESSION
    is_rejected = any(
        one.columns == (column.title,) and one.kind in ("number", "token", "event")
        for one in rejected
    )
    return column.name.kind == "group" or is_stay or is_rejected


def _may_be_within(column: PersonColumn, judged: Sequence[Candidate]) -> bool:
    """Whether it may number the members of a group."""
    kind = column.name.kind
    if kind not in ("person", "number", "event") or column.look.kind not in ("int", "text"):
        return False
    if not column.varies or counts_only(column):
        return False
    if kind == "event" and not (column.name.is_number and column.distinct >= 3):
        return False
    if column.distinct <= LARGEST_WITHIN:
        return True
    own = [one for one in judged if one.columns == (column.title,)]
    return any(not one.evidence.is_confirmed for one in own)


def _is_finer(candidate: Candidate, *parts: PersonColumn) -> bool:
    """Whether the two together tell apart what neither does alone, and still repeat."""
    coarser = max(part.distinct for part in parts)
    return candidate.distinct >= CROSSING * coarser and candidate.repeated >= FEWEST


def begins_anew(group: PersonColumn, number: PersonColumn) -> bool:
    """Whether a number counts 1, 2, 3 within most values of a group."""
    if number.look.kind != "int":
        return False
    codes, _ = _joint_codes([group, number], MOST_KEYS)
    shown = np.flatnonzero(codes >= 0)
    rows = shown[np.unique(codes[shown], return_index=True)[1]]  # one of each pair
    groups = group.people.codes[rows]
    counted = np.bincount(groups)
    greatest = np.zeros(len(counted), dtype=np.int64)
    np.maximum.at(greatest, groups, number.whole_numbers()[number.people.codes[rows]])
    return bool(counted.sum() >= ANEW * greatest.sum())
