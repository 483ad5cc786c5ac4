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
    certificate = f"{output}.certificate.json"
    for name in (output, certificate):
        if Path(name).is_dir() or not parent.is_dir() or not os.access(parent, os.W_OK):
            raise InputError(
                f"output '{name}': can't be written; name a file in a folder that exists and is"
                " writable"
            )
    check_not_read(agreement, output, certificate)


def make_folder(folder: Path, what: str) -> None:
    """A folder at this place, made unless it is there; raises InputError where none can be.

    what: the option that names it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as failed:
        raise InputError(
            f"{what} '{folder}': is not a folder and none can be made there ({failed.strerror});"
            " name another"
        ) from None


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
