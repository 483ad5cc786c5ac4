"""Which table in a database takes a ledger's releases, and how far that is certain.

A release is noted behind the commit of the database. So a table that lacks a noted release is an
older copy, while one that lacks a later release was only not reached before a kill.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from shoal.connectors.ledger.drafts import write_anew
from shoal.connectors.ledger.layout import TABLE, json_text, read_json, sha256_of_state

SCHEMA = "shoal.ledger-table/1"
KINDS = {"schema": str, "table": str, "releases": int, "head": str, "sha256": str}


@dataclass(frozen=True)
class TableNote:
    """table: its address without a password. releases: how many it held. head: the hash of the
    last of these, or of the ledger's beginning.
    """

    table: str
    releases: int
    head: str

    @classmethod
    def read(cls, private: Path) -> TableNote | None:
        """The note in a private part; None where there is none, or it is not as it was written."""
        content = read_json(private / TABLE) or {}
        kinds = {name: type(value) for name, value in content.items()}
        if kinds != KINDS or content["releases"] < 0 or content["schema"] != SCHEMA:
            return None
        if content.pop("sha256") != sha256_of_state(content):
            return None
        del content["schema"]
        return cls(**content)

    @staticmethod
    def is_in(private: Path) -> bool:
        """Whether there is a note, damaged or not."""
        return (private / TABLE).exists()

    @staticmethod
    def remove(private: Path) -> None:
        (private / TABLE).unlink(missing_ok=True)

    def write(self, private: Path) -> None:
        """In place of an earlier note, whole or not at all."""
        content = {"schema": SCHEMA, **asdict(self)}
        content["sha256"] = sha256_of_state(content)
        write_anew(private / TABLE, json_text(content).encode())
