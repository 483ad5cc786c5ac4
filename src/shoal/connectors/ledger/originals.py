"""Whole records behind a release, which methods keep that publish the whole table anew."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl

from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.identities import Identities
from shoal.connectors.ledger.private_tables import read_table, write_table

ORIGINALS = "originals.parquet"
_NUMBER = ""  # the column of record numbers: no data column has an empty name


def read_originals(ledger: Ledger) -> tuple[pl.DataFrame, np.ndarray] | None:
    """The whole records behind the last release, with their numbers; None where none are kept."""
    kept = read_table(ledger.step_folder(ledger.last_step().number) / ORIGINALS)
    return None if kept is None else (kept.drop(_NUMBER), kept[_NUMBER].to_numpy())


def write_originals(records: pl.DataFrame, identities: Identities, folder: Path) -> None:
    """The whole records behind the real rows of a release, for methods that publish them anew."""
    numbers = pl.Series(_NUMBER, identities.records[identities.is_real])
    write_table(records.with_columns(numbers), folder / ORIGINALS)


def carry_over(ledger: Ledger, folder: Path) -> None:
    """What a step without a release leaves as it was."""
    before = ledger.step_folder(ledger.last_step().number)
    if (before / ORIGINALS).exists():
        os.link(before / ORIGINALS, folder / ORIGINALS)
