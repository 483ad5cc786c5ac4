"""The table in a database that takes the releases of a ledger, too: in step with it, or refused.

The ledger decides: a release counts once its folder is renamed. The table's transaction is open
meanwhile, with the same rows read back in it, and is committed behind. So after a kill the table
lacks at most what the ledger holds, and the next run writes that from the ledger's own file.
A table that lacks what was noted as committed is an older copy, and one that holds more than the
ledger shows that the ledger is: nothing is appended beside either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shoal.auditor.ledger.export import check_outside
from shoal.auditor.ledger.table_damage import disagreements
from shoal.connectors import files
from shoal.connectors.database import release_tables
from shoal.connectors.database.address import SQLITE, TableAddress, is_address, parse
from shoal.connectors.database.release_list import ListedRelease
from shoal.connectors.database.release_tables import ReleaseRows, TableState
from shoal.connectors.ledger import CERTIFICATE, DATA, Ledger, TableNote, sha256_of
from shoal.connectors.outputs import check_not_read
from shoal.errors import InputError, LedgerError


def check_table(output: str | None, ledger: Path, increment: str | None = None) -> None:
    """Raises InputError where releases can't go there; looks at no database yet."""
    if output is None:
        return
    if not is_address(output):
        raise InputError(
            f"output '{output}': a ledger has its own folder; -o names a table in a database that"
            " takes its releases, too"
        )
    address = parse(output)
    if address.kind == SQLITE:
        check_outside(ledger, address.location)
    if increment is not None:
        check_not_read(output, increment, [])


@dataclass
class LedgerTable:
    """The table that a ledger writes, under the ledger's lock. address: None where none is named.

    last: the last release that the table holds.
    """

    ledger: Ledger
    address: TableAddress | None
    last: ListedRelease | None = None

    @classmethod
    def of(cls, ledger: Ledger, output: str | None) -> LedgerTable:
        return cls(ledger, None if output is None else parse(output))

    def catch_up(self) -> int:
        """Writes the releases that the ledger holds and the table lacks; how many these were.

        Raises InputError or LedgerError where the two don't belong together, or one of them is an
        older copy, or the table was changed.
        """
        note = self._note()
        if self.address is None:
            self._require_none(note)
            return 0
        state = release_tables.state_of(self.address, writing=True)
        if note is None or not (state.releases or note.releases):
            release_tables.check_begin(self.address)
        else:
            self._require_own(state, note)
        self.last = state.releases[-1] if state.releases else None
        missing = self.ledger.releases()[len(state.releases) :]
        self._require_same_columns(missing)
        for number in missing:
            with self.putting(self.ledger.folder(number)):
                self.bind()
        if note is not None and note.releases < len(state.releases) and not missing:
            self._confirm(len(state.releases))
        return len(missing)

    @contextmanager
    def putting(self, folder: Path) -> Iterator[None]:
        """Has the rows of a release in the table, committed and noted if the block succeeds.

        folder: of the release. The block appends it to the ledger.
        """
        if self.address is None:
            yield
            return
        frame = files.read_as(folder / DATA, ".csv").frame
        rows = ReleaseRows(frame, (folder / CERTIFICATE).read_bytes().decode())
        with release_tables.putting(self.address, self.last, rows) as line:
            yield
        self.last = line
        self._confirm(line.release)

    def bind(self) -> None:
        """Notes that releases go into the table from now on, so that none is appended without."""
        if self.address is not None and self._note() is None:
            self._confirm(0)

    def _confirm(self, releases: int) -> None:
        """Notes up to which release it is certain that the table holds them."""
        assert self.address is not None
        head = sha256_of(self.ledger.predecessor(releases + 1))
        TableNote(self.address.shown, releases, head).write(self.ledger.private)

    def _note(self) -> TableNote | None:
        note = TableNote.read(self.ledger.private)
        if note is None and TableNote.is_in(self.ledger.private):
            raise LedgerError(
                f"ledger '{self.ledger.path}': the note about its table is damaged; restore the"
                " private part, nothing was appended"
            )
        return note

    def _require_none(self, note: TableNote | None) -> None:
        if note is None:
            return
        if not self.ledger.releases():  # what was begun there was never appended
            TableNote.remove(self.ledger.private)
            return
        raise InputError(
            f"ledger '{self.ledger.path}': its releases go into a table, too; name it with"
            f" -o '{note.table}'"
        )

    def _require_own(self, state: TableState, note: TableNote) -> None:
        findings = disagreements(self.ledger, state, note)
        if findings:
            assert self.address is not None
            raise LedgerError(
                f"output '{self.address.shown}': {findings[0]}; nothing was appended. The ledger's"
                f" table was '{note.table}'",
                findings[1:],
            )

    def _require_same_columns(self, releases: Sequence[int]) -> None:
        """Of a ledger that gets a table: else the table would stay behind at some release."""
        if len(releases) < 2:
            return
        assert self.address is not None
        names = {
            frozenset(files.read_as(self.ledger.folder(number) / DATA, ".csv").frame.columns)
            for number in releases
        }
        if len(names) > 1:
            raise InputError(
                f"output '{self.address.shown}': the ledger's releases differ in their columns,"
                " and no table can hold all of them; leave out -o"
            )
