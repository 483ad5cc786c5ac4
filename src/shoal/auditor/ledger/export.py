"""Ledger: the whole published table as of a release, and the chain of hashes."""

import re
from pathlib import Path

import polars as pl

from shoal.connectors import files
from shoal.connectors.database import release_tables
from shoal.connectors.database.release_tables import TableState, state_of
from shoal.connectors.ledger import CERTIFICATE, COUNTERFEITS, DATA, Ledger, TableNote, sha256_of
from shoal.connectors.ledger.layout import mapping_in
from shoal.connectors.location import RELEASES, Location, parse_address
from shoal.connectors.outputs import misplaced
from shoal.errors import InputError, LedgerError


def verify_ledger(path: str | Path, *, noted: str | None = None) -> tuple[int, str]:
    """How many releases a ledger has, and the hash that the next one will follow.

    path: the ledger's folder, or the address of the table that takes its releases: then the rows
    and certificates there are checked, which need nothing else.

    Raises LedgerError with everything that is changed, missing, added or out of order. noted: such
    a hash from another day, which the chain must still hold; a chain that was cut, or made anew,
    does not.
    """
    if noted is not None and not re.fullmatch("[0-9a-f]{64}", noted):
        raise InputError(
            "--noted: is not the hash of a release; give the 64 digits that 'shoal republish'"
            " printed"
        )
    place = Location(path)
    if place.is_table:
        address = place.address
        state = state_of(address)
        if not (state.is_there and state.releases):
            raise InputError(f"{address.where}: holds no releases of a ledger; check its name")
        what, findings = address.where, list(state.damage)
        heads = [str(state.releases[0].previous), *(line.head for line in state.releases)]
    else:
        ledger = Ledger.at(path)
        what, findings = f"ledger '{path}'", ledger.verify()
        certificates = (ledger.folder(release) / CERTIFICATE for release in ledger.releases())
        heads = [] if findings else [sha256_of(one) for one in (ledger.genesis, *certificates)]
    if findings:
        raise LedgerError(f"{what}: {findings[0]}; restore it from a copy", findings[1:])
    if noted is not None and noted not in heads:
        raise LedgerError(
            f"{what}: the noted release is not in it; it is an older copy, or was made anew:"
            " restore it"
        )
    return len(heads) - 1, heads[-1]


def unmarked(path: str | Path) -> list[str]:
    """A last step without its mark, in a line; else nothing. No damage, but perhaps a trace."""
    return [] if Location(path).is_table else Ledger.at(path).unmarked()


def check_outside(path: str | Path, *outputs: str | Path | None) -> None:
    """Raises InputError where an output would lie in a ledger, which holds nothing else."""
    ledger = Ledger(Path(path))
    InputError.raise_for(misplaced("ledger", [ledger.path, ledger.private], *outputs))


def ledger_table(path: str | Path, *, release: int | None = None) -> pl.DataFrame:
    """The whole published table as of a release, or of the last one, as text.

    Raises LedgerError or InputError.
    """
    return _verified_table(path, release)[0]


def export_table(path: str | Path, output: str, release: int | None = None) -> tuple[int, int]:
    """Writes the whole published table as of a release; its records, and the release."""
    check_outside(path, output)
    table, number = _verified_table(path, release)
    files.write_table(table, output)
    return table.height, number


def invented_rows(path: str | Path, release: int) -> tuple[int, list[Path]]:
    """How many rows of the table as of a release are invented, and which files say in what classes
    they are.
    """
    ledger = Ledger.at(path)
    stated = {
        ledger.folder(part) / COUNTERFEITS: mapping_in(ledger.certificate(part), "counterfeits")
        for part in parts_of(ledger, release)
    }
    counts = {listed: int(found.get("records", 0)) for listed, found in stated.items()}
    return sum(counts.values()), [listed for listed, count in counts.items() if count]


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
    parts = [files.read_as(ledger.folder(part) / DATA).frame for part in parts_of(ledger, number)]
    return pl.concat([part.select(parts[0].columns) for part in parts])


# What a table in a database lacks, or holds otherwise than the ledger that writes it.


ANEW = (
    f"or have the ledger write it anew: drop the table, delete its lines in '{RELEASES}' and the"
    " private part's table.json, and append"
)
"""A way out, from the ledger's own files."""


def table_damage(ledger: Ledger, table: str) -> list[str]:
    """What a table lacks or holds otherwise than its ledger; empty where they are the same."""
    state = release_tables.state_of(parse_address(table))
    findings = disagreements(ledger, state, TableNote.read(ledger.private))
    if findings:
        return findings
    return [
        f"release {number:04d}: is not in the table yet; the next 'shoal republish' writes it there"
        for number in ledger.releases()[len(state.releases) :]
    ]


def disagreements(ledger: Ledger, state: TableState, note: TableNote | None) -> list[str]:
    """Why a table is not that of a ledger as it is, or an earlier state of it that a kill left."""
    there = ledger.releases()
    for number, line in zip(there, state.releases, strict=False):
        if line.head != sha256_of(ledger.folder(number) / CERTIFICATE):
            return [
                f"release {number:04d}: the table holds another one than the ledger; it is another"
                " ledger's, or one of the two was changed or continued twice; name the ledger's own"
                " table, or restore both"
            ]
    if len(state.releases) > len(there):
        return [
            f"release {len(there) + 1:04d}: is in the table and not in the ledger, which is an"
            " older copy; restore a newer one of the ledger and its private part"
        ]
    if note is not None and len(state.releases) < note.releases:
        return [
            f"release {note.releases:04d}: was in the table and is not there any more; the database"
            f" is an older copy, or another table was named; restore a newer copy, {ANEW}"
        ]
    if note is not None and note.head != sha256_of(ledger.predecessor(note.releases + 1)):
        return ["private part: notes other releases of the table; restore it from a copy"]
    if state.releases and not state.is_there:
        return [f"the table is missing; restore it from a copy, {ANEW}"]
    return [
        f"the table is not as it was left: {finding}; restore the database from a copy that was"
        f" made after the last release, {ANEW}"
        for finding in state.damage
    ]
