"""Checks before a fusion begins: whether its release can be written without overwriting a table."""

from __future__ import annotations

import os
from pathlib import Path

from shoal.connectors import files
from shoal.errors import InputError
from shoal.policy.agreement import Agreement


def check_output(agreement: Agreement, output: str) -> None:
    """Raises InputError where the release can't be written, or would overwrite what is read."""
    files.format_of(output)
    parent = Path(output).parent
    if Path(output).is_dir() or not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(
            f"output '{output}': can't be written; name a file in a folder that exists and is"
            " writable"
        )
    check_not_read(agreement, output, f"{output}.certificate.json")


def check_not_read(agreement: Agreement, *outputs: str | Path) -> None:
    """Raises InputError where a party reads a file that would be written."""
    tables = [
        str(agreement.base / party.table)
        for party in agreement.model.parties
        if party.table is not None
    ]
    read = {Path(name).resolve() for name in (*tables, *agreement.policy.files)}
    for output in outputs:
        if Path(output).resolve() in read:
            raise InputError(
                f"output '{output}': is read by a party; name another file, nothing that is read is"
                " overwritten"
            )
