"""What a release whose promises hold still gives reason to ask, found in its published cells.

Whoever knows a column that no promise covers may find people by it; a column may name people, or
be what others know. `alone_if_known` of a column, and of all of them together, counts the people
who are the only ones of their class with what they show there.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from shoal.data.column_words import PERSONAL, mean, name_of, named_by_a_record, names_place
from shoal.data.numbers import parse_numbers
from shoal.data.people import unit
from shoal.data.table import Column, Table
from shoal.data.warnings import (
    GRAVE,
    OPEN,
    OUTLIER_PUBLISHED,
    PLAIN_NAMES_PEOPLE,
    PLAIN_SINGLES_OUT,
    QUASI_LEFT_OUT,
    SENSITIVE_UNPROMISED,
    VALUES_UNIQUE,
    ReleaseWarning,
)
from shoal.policy.consistency import quoted
from shoal.policy.policy import Policy
from shoal.policy.proposal.cells import ColumnCells
from shoal.policy.proposal.roles import FEW_RECORDS, MANY, PERSONAL_FORMS, guess_of

TOLERATED, GRAVE_ABOVE = 0.01, 0.2
"""Shares of people who may be alone with a value before that is a finding, and a grave one."""

FAR = 10
"""Interquartile ranges beyond the quartiles from which a number is far from all others."""


def not_promised(released: Table, policy: Policy) -> list[str]:
    """A release's columns that no promise is about, plain or sensitive.

    Without those whose very name may be somebody's value, as messages name columns.
    """
    covered = {name for promise in policy.build_promises() for name in promise.attributes}
    named = policy.model.attributes
    unnamed = [name for name in released.names if name not in named]
    odd = named_by_a_record(released, unnamed) if unnamed else []
    roles = {name: policy.role_of(name) for name in released.names if name not in odd}
    return [
        name
        for name, role in roles.items()
        if role == "plain" or (role == "sensitive" and name not in covered)
    ]


def of_cells(released: Table, policy: Policy) -> list[ReleaseWarning]:
    """What columns that are published as they are show by their names and cells."""
    found: list[ReleaseWarning] = []
    is_open = {*not_promised(released, policy)}
    for name in released.names:
        role = policy.role_of(name)
        if role != "sensitive" and name not in is_open:
            continue
        if role == "sensitive" and name in is_open:
            found.append(_unpromised(name))
        column = released.column(name)
        numbers = list(_about_numbers(column))
        about = _about_people(
            column, role == "plain" and name != policy.model.label, name in is_open
        )
        found += [about] if about else numbers
    return found


def _unpromised(name: str) -> ReleaseWarning:
    text = (
        f"no promise covers '{name}', which is sensitive: k people who look alike may all have the"
        " same value; promise l-diversity or t-closeness of it"
    )
    return ReleaseWarning(SENSITIVE_UNPROMISED, text, name)


def _about_people(column: Column, is_plain: bool, is_open: bool) -> ReleaseWarning | None:
    """Whether a column names people, or is what others may know of them. is_open: no promise is
    about it.
    """
    name, cells = column.name, ColumnCells.of(column)
    said = name_of(name)
    guess = guess_of(cells)
    is_named = mean(cells.words, "identifier") or said.kind in ("civil", "contact", "name")
    is_text = cells.distinct > MANY and cells.numbers is None
    why = None
    if (is_named and not said.is_of_other) or cells.form in PERSONAL_FORMS:
        why = "names people or says where they are reached; remove it"
    elif is_text and guess.role in ("identifier", "subject", "drop"):
        why = "is text of which most differs, so it may name people; remove it"
    elif is_plain and names_place(cells.words):
        why = "says where people live; coarsen it"
    if why is not None and cells.distinct >= FEW_RECORDS:
        shown = "not protected: it is published as it is" if is_open else "published as it is"
        text = f"'{name}' is {shown}, and {why}"
        return ReleaseWarning(PLAIN_NAMES_PEOPLE, text, name)
    is_known = names_place(cells.words) or cells.are_iso_days or said.kind in PERSONAL
    if guess.role != "quasi" or not (is_plain or is_known):
        return None
    text = f"'{name}' is published as it is, though others may know it; recode it, or drop it"
    return ReleaseWarning(QUASI_LEFT_OUT, text, name)


WAY_OUT = "leave the column out, or make it one that others could know, to publish ranges"


def _about_numbers(column: Column) -> Iterator[ReleaseWarning]:
    numbers, counts = parse_numbers(column.cells), column.counts()
    is_number = np.isfinite(numbers) & (counts > 0)
    numbers, counts = numbers[is_number], counts[is_number]
    filled, once = int(counts.sum()), counts == 1
    if len(numbers) <= FEW_RECORDS or filled < len(column.codes) / 2:
        return
    name = column.name
    if 2 * int(once.sum()) > filled:
        text = (
            f"more than half of the numbers of '{name}' occur once, and are published as they are:"
            f" {WAY_OUT}"
        )
        yield ReleaseWarning(VALUES_UNIQUE, text, name)
    order = np.argsort(numbers)
    at = np.cumsum(counts[order])
    low, high = (numbers[order][np.searchsorted(at, filled * share)] for share in (0.25, 0.75))
    reach = FAR * (high - low)
    if reach and bool((once & ((numbers < low - reach) | (numbers > high + reach))).any()):
        text = (
            f"'{name}' shows a number far from all others that one record has, as it is: {WAY_OUT}"
        )
        yield ReleaseWarning(OUTLIER_PUBLISHED, text, name)


def of_people(certificate: Mapping[str, Any]) -> list[ReleaseWarning]:
    """What `alone_if_known` of the columns, and of all of them together, says."""
    together = certificate.get("together") or {}
    alone = {column["name"]: column.get("alone_if_known") for column in certificate["columns"]}
    known = {(name,): count for name, count in alone.items() if count is not None}
    if len(known) > 1:
        known[tuple(name for (name,) in known)] = together.get("alone_if_known")
    said = [_singled_out(names, count, certificate) for names, count in known.items()]
    return [one for one in said if one is not None]


def _singled_out(
    names: Sequence[str], alone: int | None, certificate: Mapping[str, Any]
) -> ReleaseWarning | None:
    people = certificate["together"]["people"]
    if alone is None or alone <= TOLERATED * people:
        return None
    are, they, them = ("are", "they", "them") if names[1:] else ("is", "it", "it")
    named = " and ".join(filter(None, (quoted([*names[:-1]]), quoted([*names[-1:]]))))
    text = (
        f"{named} {are} not protected: if {they} {are} known too, {alone} of {people}"
        f" {unit(certificate).of(people)} are alone; coarsen {them}, or drop {them}"
    )
    severity = GRAVE if alone > GRAVE_ABOVE * people else OPEN
    column = names[0] if len(names) == 1 else None
    return ReleaseWarning(PLAIN_SINGLES_OUT, text, column, severity)
