"""Who was ever published in a ledger, and by which token each person is known there."""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl

from shoal.connectors.ledger import Ledger
from shoal.data.known_people import KnownPeople

# Everybody who was ever published


def count_known(ledger: Ledger, people: np.ndarray) -> int:
    """How many different tokens of these were ever published."""
    return int(KnownPeople(list(ledger.runs().values())).holds(np.unique(people)).sum())


def token_of(name: str, key: bytes) -> str:
    """64 bits of BLAKE2, in hexadecimal."""
    return hashlib.blake2b(name.encode(), digest_size=8, key=key).hexdigest()


def as_text(frame: pl.DataFrame) -> pl.DataFrame:
    """All columns as text, without a value where there is none."""
    text = frame.with_columns(pl.all().cast(pl.String))
    return text.with_columns(pl.when(pl.all() != "").then(pl.all()))
