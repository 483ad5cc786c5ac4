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
from shoal.connectors.database.session import KEEPING, KeptList, OpenTable
from shoal.connectors.database.tables import opened
from shoal.connectors.location import CERTIFICATES, STREAMS, TableAddress, require_whole
from shoal.errors import ANOTHER_STREAM, CheckpointError, InputError
from shoal.protocols import Sink

if TYPE_CHECKING:
    from collections.abc import Sequence

_STEPS = KeptList(STREAMS, ("name", "identity", "step", "rows", "digest"))
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
        with opened(address, writing=True) as table:
            self._check(table, step)

    def _check(self, table: OpenTable, step: int) -> None:
        lists = dict.fromkeys((STREAMS, CERTIFICATES), KEEPING)
        table.require_rights(("SELECT", "INSERT"), **lists)
        kept, is_there = _kept(table), bool(table.columns)
        if step == 0:
            findings = tables.target_findings(table)
            findings += tables.column_findings(table.session, self._names)
            if is_there or kept is not None:
                findings.append(tables.taken_finding(is_there, STREAMS, "its stream's checkpoint"))
            where = f"output '{self._address.shown}'"
            InputError.raise_for(f"{where}: {finding}" for finding in findings)
        elif kept is None:
            if step > 1 or is_there:  # step 1 may be in the checkpoint and not yet in the table
                raise self._changed(table, kept)
        elif not (
            self._has_own_columns(table)
            and kept.identity == self._identity
            and kept.step in (step, step - 1)
            and table.count() == kept.rows
        ):
            raise self._changed(table, kept)
        else:
            self._done = kept.step

    def _has_own_columns(self, table: OpenTable) -> bool:
        """Whether readers see what was measured, and no column beside it."""
        return [column.name for column in table.columns] == [tables.ROW, *self._names]

    def _changed(self, table: OpenTable, kept: _Kept | None) -> CheckpointError:
        why, cure = ", or the checkpoint is an earlier one", "restore table and checkpoint"
        if not table.columns:
            why = ": the table is missing"
            cure = f"if it was renamed, rename it back, else {cure}"
        elif kept and (kept.identity != self._identity or table.count() > kept.rows):
            why = ": somebody else has written into it"
        return CheckpointError(
            f"output '{self._address.shown}': is not as the stream left it{why}; {cure}, or"
            f" {ANOTHER_STREAM}, only for the records behind those that came"
        )

    def put(self, step: int, rows: bytes) -> None:
        """Writes a step's rows, a JSON object a line, and its number in one transaction, once."""
        with opened(self._address, writing=True) as table:
            kept = _kept(table)
            if kept is None:
                if step != 1 or table.columns:
                    raise self._changed(table, kept)
                tables.create_release(table, dict.fromkeys(self._names))
                kept = _Kept(self._identity, 0, 0, 0)
            as_left = (self._identity, self._done) == (kept.identity, kept.step)
            if not as_left or not self._has_own_columns(table):
                raise self._changed(table, kept)
            if step == kept.step:
                return
            if step != kept.step + 1:
                raise self._changed(table, kept)
            frame = self._frame(rows)
            digest = (kept.digest + _digest(tables.numbered(frame, kept.rows))) % _WRAP
            now = _Kept(self._identity, step, kept.rows + frame.height, digest)
            line = [*map(str, vars(now).values())]
            if not tables.put_behind(table, frame, kept.rows, _STEPS, line):
                raise InputError(
                    f"output '{self._address.shown}': the database itself changed rows after they"
                    " were measured; remove the trigger or rule of the table; the step was rolled"
                    " back"
                )
            table.session.commit()
            self._done = step

    def _frame(self, rows: bytes) -> pl.DataFrame:
        schema = dict.fromkeys(self._names, pl.String)
        return (
            pl.read_ndjson(io.BytesIO(rows), schema=schema) if rows else pl.DataFrame(schema=schema)
        )

    def certify(self, certificate: str) -> None:
        """Puts the certificate beside the table, in one transaction; raises InputError if the table
        is not the one that was certified, and CheckpointError if it is not what was put.
        """
        said = json.loads(certificate)["output"]["sha256"]
        with opened(self._address, writing=True) as table:
            frame, sha256 = tables.rows_of_table(table)
            kept = _kept(table)
            if kept is None:  # nothing was committed: no table, or another owner's
                raise self._changed(table, kept)
            # each release was measured as it was put; what was changed since then never was
            is_own = kept.identity == self._identity and frame.columns == self._names
            if not is_own or _digest(tables.numbered(frame)) != kept.digest:
                raise self._changed(table, kept)
            if sha256 != said:
                raise InputError(
                    f"output '{self._address.shown}': was changed since it was measured; put it"
                    " back and run again"
                )
            tables.keep_certificate(table, sha256, certificate)
            table.session.commit()


def _kept(table: OpenTable) -> _Kept | None:
    line = _STEPS.line(table)
    if line is None:
        return None
    identity, *numbers = line
    if not all(text is not None and text.isascii() and text.isdigit() for text in numbers):
        return None
    return _Kept(identity, *map(int, numbers))


def _digest(frame: pl.DataFrame) -> int:
    """The sum of a hash of each numbered row, so that rows may come in steps."""
    return int(frame.hash_rows(seed=0).to_numpy().sum(dtype=np.uint64))
