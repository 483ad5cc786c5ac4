"""A table in a database that a stream adds rows to: each step in one transaction, once.

    BEGIN; insert the rows of a step and read them back; write the step into
    shoal_streams(name, identity, step, rows, digest); COMMIT

Promise: whatever is killed, the rows of a step and its number are there together or not at all. So
putting a step a second time changes nothing.
"""

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from shoal.connectors.database import tables
from shoal.connectors.database.session import (
    KEEPING,
    Session,
    TableName,
    cell_of,
    count_rows,
    keep_line,
    kept_line,
    quoted,
    require_rights,
    rows_as_text,
)
from shoal.connectors.database.tables import opened
from shoal.connectors.location import CERTIFICATES, STREAMS, TableAddress, require_whole
from shoal.errors import ANOTHER_STREAM, CheckpointError, InputError
from shoal.protocols import Sink

if TYPE_CHECKING:
    from collections.abc import Sequence

_ABOUT = ("name", "identity", "step", "rows", "digest")
_WRAP = 1 << 64


@dataclass(frozen=True)
class _Kept:
    """What the database records of a stream: its identity, last step, rows and their digest."""

    identity: str
    step: int
    rows: int
    digest: int


class TableSink(Sink):
    """A table that takes each step once.

    identity: names this stream in the database, the same after every restart. step: the last that
    its checkpoint has committed; 0 for a new one, which makes a table of its own. Nothing but this
    object adds steps from then on: a copy of the checkpoint that another process runs is found out.
    """

    def __init__(
        self, address: TableAddress, names: "Sequence[str]", identity: str, step: int
    ) -> None:
        self._address, self._names, self._identity = address, list(names), identity
        self._done = 0
        require_whole(address)
        # opened for writing, so that missing rights show now and not later; nothing is written
        with opened(address, writing=True) as session:
            self._check(session, step)

    def _check(self, session: Session, step: int) -> None:
        table = session.named(self._address)
        lists = (table.beside(name) for name in (STREAMS, CERTIFICATES))
        require_rights(session, {table: ("SELECT", "INSERT"), **dict.fromkeys(lists, KEEPING)})
        kept, is_there = _kept(session, table), bool(session.columns(table))
        if step == 0:
            findings = tables.target_findings(session, table) + tables.column_findings(
                session, self._names
            )
            if is_there or kept is not None:
                findings.append(tables.taken_finding(is_there, STREAMS, "its stream's checkpoint"))
            where = f"output '{self._address.shown}'"
            InputError.raise_for(f"{where}: {finding}" for finding in findings)
        elif kept is None:
            if step > 1 or is_there:  # step 1 may be in the checkpoint and not yet in the table
                raise self._changed(session, table, kept)
        elif not (
            self._has_own_columns(session, table)
            and kept.identity == self._identity
            and kept.step in (step, step - 1)
            and count_rows(session, table) == kept.rows
        ):
            raise self._changed(session, table, kept)
        else:
            self._done = kept.step

    def _has_own_columns(self, session: Session, table: TableName) -> bool:
        """Whether readers see what was measured, and no column beside it."""
        return [column.name for column in session.columns(table)] == [tables.ROW, *self._names]

    def _changed(self, session: Session, table: TableName, kept: _Kept | None) -> CheckpointError:
        why, cure = ", or the checkpoint is an earlier one", "restore table and checkpoint"
        if not session.columns(table):
            why = ": the table is missing"
            cure = f"if it was renamed, rename it back, else {cure}"
        elif kept and (kept.identity != self._identity or count_rows(session, table) > kept.rows):
            why = ": somebody else has written into it"
        return CheckpointError(
            f"output '{self._address.shown}': is not as the stream left it{why}; {cure}, or"
            f" {ANOTHER_STREAM}, only for the records behind those that came"
        )

    def put(self, step: int, rows: bytes) -> None:
        """Writes a step's rows, a JSON object a line, and its number in one transaction, once."""
        with opened(self._address, writing=True) as session:
            table = session.named(self._address)
            kept = _kept(session, table)
            if kept is None:
                if step != 1 or session.columns(table):
                    raise self._changed(session, table, kept)
                tables.create_release(session, table, dict.fromkeys(self._names))
                kept = _Kept(self._identity, 0, 0, 0)
            as_left = (self._identity, self._done) == (kept.identity, kept.step)
            if not as_left or not self._has_own_columns(session, table):
                raise self._changed(session, table, kept)
            if step == kept.step:
                return
            if step != kept.step + 1:
                raise self._changed(session, table, kept)
            frame = tables.numbered(self._frame(rows), kept.rows)
            session.insert(table, frame)
            digest = (kept.digest + _digest(frame)) % _WRAP
            now = _Kept(self._identity, step, kept.rows + frame.height, digest)
            line = (now.identity, *map(str, (now.step, now.rows, now.digest)))
            keep_line(session, table.beside(STREAMS), _ABOUT, (table.name, *line))
            session.run_deferred()
            self._require_as_measured(session, table, frame.drop(tables.ROW), now)
            session.commit()
            self._done = step

    def _frame(self, rows: bytes) -> pl.DataFrame:
        schema = dict.fromkeys(self._names, pl.String)
        return (
            pl.read_ndjson(io.BytesIO(rows), schema=schema) if rows else pl.DataFrame(schema=schema)
        )

    def _require_as_measured(
        self, session: Session, table: TableName, frame: pl.DataFrame, now: _Kept
    ) -> None:
        """Raises InputError unless the database holds what was measured: triggers may change it."""
        columns = {column.name: column for column in session.columns(table)}
        row, before = cell_of(tables.ROW), now.rows - frame.height
        own = [columns[name] for name in self._names]
        found = rows_as_text(session, table, own, f"WHERE {row} > {before} ORDER BY {row}")
        is_noted = _kept(session, table) == now
        of_last = f"SELECT CAST(max({quoted(tables.ROW)}) AS text) FROM {table.quoted}"
        last = session.query(of_last).item()
        if not is_noted or not found.equals(frame) or int(last or 0) != now.rows:
            raise InputError(
                f"output '{self._address.shown}': the database itself changed rows after they were"
                " measured; remove the trigger or rule of the table; the step was rolled back"
            )

    def certify(self, certificate: str) -> None:
        """Puts the certificate beside the table, in one transaction; raises InputError if the table
        is not the one that was certified, and CheckpointError if it is not what was put.
        """
        said = json.loads(certificate)["output"]["sha256"]
        with opened(self._address, writing=True) as session:
            table = session.named(self._address)
            frame, sha256 = tables.rows_of_table(session, self._address, table)
            kept = _kept(session, table)
            if kept is None:  # nothing was committed: no table, or another owner's
                raise self._changed(session, table, kept)
            # each release was measured as it was put; what was changed since then never was
            is_own = kept.identity == self._identity and frame.columns == self._names
            if not is_own or _digest(tables.numbered(frame)) != kept.digest:
                raise self._changed(session, table, kept)
            if sha256 != said:
                raise InputError(
                    f"output '{self._address.shown}': was changed since it was measured; put it"
                    " back and run again"
                )
            tables.keep_certificate(session, self._address, table, sha256, certificate)
            session.commit()


def _kept(session: Session, table: TableName) -> _Kept | None:
    line = kept_line(session, table.beside(STREAMS), _ABOUT, table.name)
    if line is None:
        return None
    identity, *numbers = line
    if not all(text is not None and text.isascii() and text.isdigit() for text in numbers):
        return None
    return _Kept(identity, *map(int, numbers))


def _digest(frame: pl.DataFrame) -> int:
    """The sum of a hash of each numbered row, so that rows may come in steps."""
    return int(frame.hash_rows(seed=0).to_numpy().sum(dtype=np.uint64))
