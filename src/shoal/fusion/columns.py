"""Columns of few distinct texts, as messages carry them and as the fused table holds them."""

import json
import struct
from dataclasses import dataclass

import numpy as np
import polars as pl

from shoal.data.person.people import checked_ids
from shoal.data.table import Column, Table
from shoal.errors import InfeasibleError, InputError
from shoal.fusion.conversation import Conversation, unchanged
from shoal.fusion.ground import pack, packed_size, unfit, unpack
from shoal.fusion.methods.party_tds import MOST_LABELS
from shoal.fusion.wire.messages import MessageKind, parse_json, refused, said_by
from shoal.policy.agreement import Agreement
from shoal.search.specialization import MOST_CHILDREN

MOST_HEAD = 1 << 28  # bytes of the texts of a column
_LENGTH = struct.Struct("<Q")


def restricted_column(column: Column, rows: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The texts of these rows, and which of them each row has; nothing of the other rows.

    Returns the texts in the column's order, and (rows,) codes.
    """
    codes = column.codes[rows]
    used = np.flatnonzero(np.bincount(codes, minlength=len(column.texts)))
    new_code = np.zeros(len(column.texts), dtype=np.min_scalar_type(max(len(used) - 1, 0)))
    new_code[used] = np.arange(len(used))
    return [column.cells[code] for code in used], new_code[codes]


def series_of(texts: list[str], codes: np.ndarray) -> pl.Series:
    """A column that holds each text once; its values sort as texts do."""
    return pl.Series(texts, dtype=pl.Enum(sorted(set(texts)))).gather(codes)


def pack_column(name: str, texts: list[str], codes: np.ndarray) -> bytes:
    """A column as a message: its name and texts as JSON, then the codes of its rows.

    Raises InputError where the texts are more than the others take.
    """
    head = json.dumps([name, texts]).encode()
    if len(head) > MOST_HEAD:
        raise InputError(
            f"column '{name}': its distinct values take {len(head)} bytes, {MOST_HEAD} are"
            " possible; give it the role 'drop'"
        )
    if len(texts) <= MOST_CHILDREN:
        body = pack(codes.astype(np.uint16), len(texts))
    else:
        body = codes.astype("<u4").tobytes()
    return _LENGTH.pack(len(head)) + head + body


def most_column(records: int) -> int:
    """The most bytes of a packed column of this number of rows."""
    return _LENGTH.size + MOST_HEAD + 4 * records


def column_head(content: bytes | bytearray) -> tuple[str, list[str], int]:
    """Name and texts of a packed column, and where its codes begin; raises ValueError."""
    if len(content) < _LENGTH.size:
        raise ValueError
    end = _LENGTH.size + _LENGTH.unpack_from(content)[0]
    if end > len(content):
        raise ValueError
    head = parse_json(bytes(content[_LENGTH.size : end]), MOST_HEAD)
    if type(head) is not list or len(head) != 2 or type(head[1]) is not list:
        raise ValueError
    name, texts = head
    if not all(type(text) is str for text in (name, *texts)) or len(set(texts)) < len(texts):
        raise ValueError
    return name, texts, end


def unpack_column(content: bytes | bytearray, rows: int) -> tuple[str, list[str], np.ndarray]:
    """Name, texts and codes of a column; raises PartyError where it has not `rows` rows."""
    try:
        name, texts, end = column_head(content)
        is_packed = len(texts) <= MOST_CHILDREN
        size = packed_size(rows, len(texts)) if is_packed else 4 * rows
        if len(content) - end != size:
            raise ValueError
        codes = (
            unpack(content[end:], rows, len(texts))
            if is_packed
            else np.frombuffer(content[end:], dtype="<u4")
        )
        if rows and int(codes.max()) >= len(texts):
            raise ValueError
    except ValueError:
        raise unfit("sent a column that can't be read") from None
    return name, texts, codes


# Columns that owners tell each other: the label, and what is published unchanged.


Codes = tuple[list[str], np.ndarray]
"""A column: its different texts, and which of them each row has."""


def require_values(name: str, asked: int, holds: bool) -> None:
    """Raises InfeasibleError unless all people together have as many values as are asked."""
    if not holds:
        raise InfeasibleError(
            f"promise 'l-diversity': '{name}' has fewer than {asked} different values among the"
            " people in common; ask for fewer"
        )


@dataclass(frozen=True)
class SharedColumns:
    """One owner's part. rows: its row behind every joint one."""

    conversation: Conversation
    party_input: "PartyInput"
    rows: np.ndarray

    def label(self, sender: str) -> Codes:
        """The class of every row, as the first owner of the label has it.

        Raises InputError where this party has the label, too, and differs.
        """
        me, column = self.conversation.name, self.party_input.label
        own = None if column is None else restricted_column(column, self.rows)
        if me == sender and own is not None and len(own[0]) > MOST_LABELS:
            raise InputError("label: takes too many values to be a class; name another attribute")
        names, codes = self._said(sender, "", MessageKind.LABEL, column)
        if own is not None and (own[0] != names or not np.array_equal(own[1], codes)):
            raise InputError(
                f"label '{self.conversation.agreement.model.label.attribute}': parties '{sender}'"
                f" and '{me}' differ on some people; agree whose column counts, and take it out of"
                " the other table"
            )
        return names, codes.astype(np.int64)

    def judged(self) -> tuple[np.ndarray, int] | None:
        """What this party alone knows as the judge: values, and how many a group has at least."""
        agreement = self.conversation.agreement
        sensitive = agreement.model.sensitive
        if sensitive is None or agreement.judge != self.conversation.name:
            return None
        codes = restricted_column(self.party_input.plain[sensitive.attribute], self.rows)[1]
        return codes.astype(np.int64), sensitive.l

    def unchanged(self, kind: MessageKind) -> dict[str, Codes]:
        """The columns of all owners that are published unchanged: those said in this kind."""
        return {
            name: self._said(owner, name, kind, self.party_input.plain.get(name))
            for owner in self.conversation.agreement.owners
            for name in unchanged(self.conversation.agreement, owner, kind)
        }

    def _said(self, owner: str, name: str, kind: MessageKind, own: Column | None) -> Codes:
        """A column as its owner says it. own: this party's, if it has one of this name."""

        def packed() -> bytes:
            assert own is not None
            return pack_column(name, *restricted_column(own, self.rows))

        content = self.conversation.said(owner, kind, packed)
        with said_by(owner, kind):
            sent_name, texts, codes = unpack_column(content, len(self.rows))
        if kind != MessageKind.LABEL and sent_name != name:
            raise refused(owner, kind, "is not the column that comes next")
        return texts, codes


# What an owner brings to a fusion, checked against the agreement.


@dataclass(frozen=True)
class PartyInput:
    """Checked ids, the cells of quasi-identifiers by number, plain columns, perhaps the label."""

    ids: pl.Series
    cells: dict[int, np.ndarray]
    plain: dict[str, Column]
    label: Column | None

    @classmethod
    def read(cls, agreement: Agreement, name: str, table: Table) -> "PartyInput":
        """What the agreement asks of this party's table; raises InputError with every finding."""
        party = agreement.party(name)
        join = agreement.model.join
        absent = [column for column in (join, *party.attributes) if column not in table.names]
        if absent:
            listed = ", ".join(f"'{column}'" for column in absent)
            raise InputError(
                f"party '{name}': its table has no column {listed}; fix the table, or make a new"
                " agreement"
            )
        label, missing = _label_of(agreement, name, table)
        findings: list[str] = []
        cells = {}
        for j, domain in enumerate(agreement.domains):
            if domain.name in party.attributes:
                cells[j], outside = domain.cells_of(table.column(domain.name), name)
                findings += outside
        ids = checked_ids(table.frame[join], name, agreement.policy.model.no_names)
        InputError.raise_for(findings + missing)
        plain = {n: table.column(n) for n, a in party.attributes.items() if a.role == "plain"}
        return cls(ids, cells, plain, label)


def _label_of(agreement: Agreement, name: str, table: Table) -> tuple[Column | None, list[str]]:
    """The label's column, None where the table has none; and a finding about records without it."""
    label = agreement.model.label.attribute
    if label not in table.names:
        return None, []
    column = table.column(label)
    if "" not in column.cells:
        return column, []
    missing = int(column.counts()[column.cells.index("")])
    finding = f"party '{name}', label '{label}': {missing} records have none; complete the data"
    return column, [finding]
