"""Keyed pseudonyms for direct identifiers."""

from __future__ import annotations

import hashlib
import hmac
import os

import polars as pl

from shoal.data.table import as_text, encode_text
from shoal.errors import InputError

KEY_VARIABLE = "SHOAL_PSEUDONYM_KEY"


def pseudonyms(series: pl.Series) -> pl.Series:
    """The same 32 hexadecimal digits for the same identifier, HMAC-SHA-256 under the owner's key.

    The key comes from the environment, never from the policy, which is shared. Raises InputError
    where it is absent or shorter than 16 characters.
    """
    key = os.environ.get(KEY_VARIABLE, "")
    if len(key) < 16:
        raise InputError(
            f"identifier '{series.name}': a keyed pseudonym needs a secret; set {KEY_VARIABLE} to"
            " 16 characters or more"
        )
    column = encode_text(as_text(series).alias(series.name))
    tokens = [
        hmac.new(key.encode(), cell.encode(), hashlib.sha256).hexdigest()[:32]
        for cell in column.cells
    ]
    return pl.Series(series.name, tokens).gather(column.codes)
