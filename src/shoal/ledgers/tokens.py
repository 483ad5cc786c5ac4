"""What each step of a ledger writes about people: keyed tokens, never names.

Whole records are kept only while they wait, and by methods that publish the whole table anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from shoal.connectors.ledger import RUN, Ledger
from shoal.connectors.ledger.deferred import ARRIVALS, PENDING, WAITED
from shoal.connectors.ledger.identities import Identities
from shoal.connectors.ledger.originals import ORIGINALS
from shoal.connectors.ledger.people import token_of
from shoal.data.known_people import KnownPeople
from shoal.data.person_names import person_name
from shoal.policy.policy import Policy

TRANSIENT_FILES = (PENDING, ORIGINALS, WAITED, ARRIVALS)
"""The files that each step replaces; those of the step before are removed."""


def write_known(ledger: Ledger, identities: Identities, folder: Path) -> tuple[int, ...]:
    """Adds the release's people to those ever published; the steps whose runs stay in use.

    A run is merged with later ones of no greater size, so that there are few and each token is
    seldom written again: an increment writes the same however many people the ledger holds.
    """
    if identities.subjects is None:
        return ()
    runs = ledger.runs()
    people = np.unique(identities.subjects[identities.is_real])
    fresh = people[~KnownPeople(list(runs.values())).holds(people)]
    stay = list(runs)
    while stay and len(fresh) and len(runs[stay[-1]]) <= len(fresh):
        fresh = np.sort(np.concatenate([runs[stay.pop()], fresh]), kind="stable")
    if len(fresh):
        fresh.astype("<u8", copy=False).tofile(folder / RUN)
    return tuple(stay)


def with_tokens(frame: pl.DataFrame, policy: Policy, ledger: Ledger) -> pl.DataFrame:
    """The subject column, which is text, as tokens under the ledger's key."""
    if policy.subject is None or not frame.height:
        return frame
    return tokens_of(frame, policy, ledger.key)


def tokens_of(frame: pl.DataFrame, policy: Policy, key: bytes) -> pl.DataFrame:
    """The same under any key; the policy has a subject."""
    assert policy.subject is not None
    names = frame[policy.subject]
    absent = {"", *policy.model.missing_values}
    distinct = names.unique()
    people = [name and person_name(name) for name in distinct.to_list()]
    tokens = [None if name is None or name in absent else token_of(name, key) for name in people]
    column = names.replace_strict(
        distinct, pl.Series(tokens, dtype=pl.String), return_dtype=pl.String
    )
    return frame.with_columns(column)


def as_numbers(tokens: pl.Series) -> np.ndarray:
    """(n,) uint64 of sixteen hexadecimal digits each; 0 for none."""
    text = tokens.fill_null("0" * 16).to_list()
    return np.frombuffer(bytes.fromhex("".join(text)), dtype=">u8").astype(np.uint64)
