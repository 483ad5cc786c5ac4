"""Cells that are hard to keep in a table of a database, and a release of them without an audit."""

import json

import polars as pl

from shoal.connectors.database import tables
from shoal.connectors.location import Location

HOSTILE = 'we"ird; DROP TABLE x --%s $1 ü.gz'
CELLS = pl.DataFrame(
    {"a": ["", None, "*", "01305", "-", "2:x,"], HOSTILE: ["x\ny", "\t", '"', "'", "\\N", None]}
)
PROOF = json.dumps({"date": "2026-01-01T00:00:00Z"})


def write(frame: pl.DataFrame, address: str, replace: bool = False) -> str:
    """A release without an audit; its hash."""
    with tables.table_drafts([Location(address)], replace) as (draft,):
        draft.write(frame)
        digest = draft.read().sha256
        draft.certify(PROOF)
    return digest
