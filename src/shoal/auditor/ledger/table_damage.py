"""What a table in a database lacks, or holds otherwise than the ledger that writes it."""

from __future__ import annotations

from shoal.connectors.database import release_tables
from shoal.connectors.database.address import parse
from shoal.connectors.database.release_tables import TableState
from shoal.connectors.ledger import CERTIFICATE, Ledger, TableNote, sha256_of


def table_damage(ledger: Ledger, table: str) -> list[str]:
    """What a table lacks or holds otherwise than its ledger; empty where they are the same."""
    state = release_tables.state_of(parse(table))
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
            " is an older copy, or another table was named; restore a newer copy"
        ]
    if note is not None and note.head != sha256_of(ledger.predecessor(note.releases + 1)):
        return ["private part: notes other releases of the table; restore it from a copy"]
    if state.releases and not state.is_there:
        return ["the table is missing; restore it from a copy"]
    return [f"the table is not as it was left: {finding}" for finding in state.damage]
