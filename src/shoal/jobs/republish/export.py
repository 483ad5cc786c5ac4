"""Ledger: the whole published table as of a release, and the chain of hashes."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from shoal.connectors import files
from shoal.errors import InputError, LedgerError
from shoal.state.ledger import DATA, Ledger, sha256_of


def verify_ledger(path: str | Path, *, noted: str | None = None) -> tuple[int, str]:
    """How many releases a ledger has, and the hash that the next one will follow.

    Raises LedgerError with everything that is changed, missing, added or out of order. noted: such
    a hash from another day, which the chain must still hold; a chain that was cut, or made anew,
    does not.
    """
    if noted is not None and not re.fullmatch("[0-9a-f]{64}", noted):
        raise InputError(
            "--noted: is not the hash of a release; give the 64 digits that 'shoal republish'"
            " printed"
        )
    ledger = Ledger.at(path)
    findings = ledger.verify()
    if findings:
        raise LedgerError(f"ledger '{path}': {findings[0]}; restore it from a copy", findings[1:])
    if noted is not None and not ledger.follows(noted):
        raise LedgerError(
            f"ledger '{path}': the noted release is not in it; it is an older copy, or was made"
            " anew: restore it"
        )
    releases = ledger.releases()
    return len(releases), sha256_of(ledger.predecessor(max(releases, default=0) + 1))


def unmarked(path: str | Path) -> list[str]:
    """A last step without its mark, in a line; else nothing. No damage, but perhaps a trace."""
    return Ledger.at(path).unmarked()


def check_outside(path: str | Path, *outputs: str | Path | None) -> None:
    """Raises InputError where an output would lie in a ledger, which holds nothing else."""
    ledger = Ledger(Path(path))
    for output in outputs:
        if output is None or output == files.STANDARD:
            continue
        target = Path(output).resolve()
        if {ledger.path.resolve(), ledger.private} & {target, *target.parents}:
            raise InputError(
                f"output '{output}': lies in the ledger, which holds nothing else; name another"
                " folder"
            )


def ledger_table(path: str | Path, *, release: int | None = None) -> pl.DataFrame:
    """The whole published table as of a release, or of the last one, as text.

    Raises LedgerError or InputError.
    """
    return _verified_table(path, release)[0]


def export_table(path: str | Path, output: str, release: int | None = None) -> tuple[int, int]:
    """Writes the whole published table as of a release; its records, and the release."""
    check_outside(path, output)
    table, number = _verified_table(path, release)
    kind = files.format_of(output)
    with files.atomic_write(output) as draft:
        files.write(table, draft, kind, compressed=output.endswith(".gz"))
    return table.height, number


def _verified_table(path: str | Path, release: int | None) -> tuple[pl.DataFrame, int]:
    ledger = Ledger.at(path)
    verify_ledger(path)
    releases = ledger.releases()
    if not releases:
        raise InputError(f"ledger '{path}': has no release yet; nothing to export")
    number = releases[-1] if release is None else release
    if number not in releases:
        raise InputError(f"ledger '{path}': has no release {number}; it has 1 to {releases[-1]}")
    return table_as_of(ledger, number), number


def parts_of(ledger: Ledger, number: int) -> list[int]:
    """The releases that make up the table as of one: the last whole table, and later increments."""
    parts: list[int] = []
    for release in range(number, 0, -1):
        parts.insert(0, release)
        if ledger.certificate(release).get("covers") == "table":
            break
    return parts


def table_as_of(ledger: Ledger, number: int) -> pl.DataFrame:
    """All published rows as of a release, as text."""
    parts = [
        files.read_as(ledger.folder(part) / DATA, ".csv").frame for part in parts_of(ledger, number)
    ]
    return pl.concat([part.select(parts[0].columns) for part in parts])
