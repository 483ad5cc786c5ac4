"""Containment: no message of a fusion says more about a person than the fused table.

The check reads the messages with full knowledge - the agreement and the finished table by row - and
turns each into facts: this row has this node of this attribute. Every fact must follow from the
finished table, every byte must be accounted for, and only kinds of messages on the closed list may
occur. It shares no code with the parties, but the table of who says what to whom.

What it can't turn into facts is random to whoever receives it, as far as the cryptography holds:
masked ids, and shares of secure rounds. Their lengths follow from public counts, which
`completeness` compares.
"""

from __future__ import annotations

import json
import struct
from itertools import permutations
from pathlib import Path

import numpy as np
import polars as pl

from shoal.connectors.party.messages import MessageKind
from shoal.fusion.completeness import Said, missing_or_more
from shoal.fusion.judged_containment import (
    Containment,
    Questions,
    Replay,
    children_of,
    packed_size,
    steps_of,
    unpacked,
)
from shoal.fusion.kinds import in_pieces, spoken, unchanged
from shoal.fusion.transcript import guarded, read_agreement, read_messages, read_table
from shoal.policy.agreement import Agreement
from shoal.policy.agreement_model import Domain

_LENGTH = struct.Struct("<Q")
_POINT = 32


def check_transcript(folder: Path) -> Containment:
    """Whether no message of a fusion says more than its table, and none is missing.

    Raises InputError where the transcript is not complete, or a file of it was changed.
    """
    agreement = read_agreement(folder)
    tables = {owner: read_table(folder, owner, agreement) for owner in agreement.owners}
    table = tables[agreement.owners[0]]
    with guarded(folder, f"{agreement.owners[0]}.rows.csv"):
        final = [_spans(domain, table[domain.name]) for domain in agreement.domains]
    found = Containment(agreement.quasi, final)
    found.demand(all(t.equals(table) for t in tables.values()), "the parties' tables differ")
    _check_counts(agreement, table, found)
    said: Said = {channel: [] for channel in permutations(agreement.participants, 2)}
    for sender in agreement.participants:
        for receiver, kind, content in read_messages(folder, sender, agreement):
            said[sender, receiver].append((kind, content))
    readers = {channel: _Reader(agreement, channel, table, found) for channel in said}
    for channel, messages in said.items():
        readers[channel].check(messages)
    questions = None if agreement.judge is None else Questions(agreement, found, table)
    if agreement.bids and questions is not None:
        for owner, (asked, verdicts) in _questions(agreement, readers).items():
            with found.reading(f"{owner}: asked the judge what"):
                questions.steps(owner, asked, verdicts)
    elif not agreement.bids and len(agreement.owners) > 1:
        with found.reading("batches that"):
            _check_turns(agreement, readers, found, questions)
    found.wrong += missing_or_more(agreement, table.height, said)
    return found


def _check_counts(agreement: Agreement, table: pl.DataFrame, found: Containment) -> None:
    for qid in agreement.qids():
        attributes = [agreement.quasi[j] for j in qid.attributes]
        least = table.group_by(attributes).len()["len"].min()
        if not isinstance(least, int) or least < qid.k:
            found.wrong.append(
                f"{', '.join(attributes)}: fewer than {qid.k} people share a combination"
            )
    sensitive = agreement.model.sensitive
    judged = {} if sensitive is None else {sensitive.attribute: sensitive.l}
    for name, asked in (agreement.diverse | judged).items():
        least = table.group_by(agreement.quasi).agg(pl.col(name).n_unique())[name].min()
        if not isinstance(least, int) or least < asked:
            found.wrong.append(f"{name}: a group has fewer than {asked} different values")


def _questions(
    agreement: Agreement, readers: dict[tuple[str, str], _Reader]
) -> dict[str, tuple[list[tuple[int, bytes]], list[bytes]]]:
    """What each other owner asked the judge, with its batches, and what the judge said to it."""
    judge = agreement.judge
    return {
        owner: (
            [(kind, c) for kind, c in readers[owner, judge].judged if kind != MessageKind.VERDICT],
            [c for kind, c in readers[judge, owner].judged if kind == MessageKind.VERDICT],
        )
        for owner in agreement.owners
        if judge is not None and owner != judge
    }


def _check_turns(
    agreement: Agreement,
    readers: dict[tuple[str, str], _Reader],
    found: Containment,
    questions: Questions | None,
) -> None:
    """What all turns together say. What an owner says to all others is the same."""
    said = {s: reader for (s, r), reader in readers.items() if r in agreement.owners}
    replay = Replay(agreement, found, questions)
    for owner, (asked, verdicts) in _questions(agreement, readers).items():
        assert questions is not None
        questions.count(owner, asked, verdicts)
        proposals = [c for kind, c in asked if kind == MessageKind.PROPOSAL]
        replay.asked[owner] = list(zip(proposals, verdicts[1:], strict=True))
    replay.read(
        {sender: reader.batches for sender, reader in said.items()},
        {sender: reader.hulls for sender, reader in said.items() if reader.hulls},
    )


class _Reader:
    """Turns what one party sent to one other into facts, and compares them with the table."""

    def __init__(
        self,
        agreement: Agreement,
        channel: tuple[str, str],
        table: pl.DataFrame,
        found: Containment,
    ) -> None:
        self._agreement = agreement
        self._sender, self._receiver = channel
        self._table = table
        self._found = found
        self._own = agreement.numbers_of(self._sender)
        self._rows = {
            (j, 0, domain.cells - 1): np.arange(table.height)
            for j, domain in enumerate(agreement.domains)
        }
        self._spoken = spoken(agreement, *channel)
        self._columns = {
            MessageKind.LABEL: [agreement.model.label.attribute],
            **{
                kind: unchanged(agreement, self._sender, kind)
                for kind in (MessageKind.SENSITIVE, MessageKind.PLAIN)
            },
        }
        self.batches: list[bytes] = []
        self.hulls = b""
        self.judged: list[tuple[int, bytes]] = []

    def check(self, messages: list[tuple[int, bytes]]) -> None:
        """All that one party sent to the other, in order."""
        where = f"{self._sender} to {self._receiver}"
        known = [(MessageKind(kind), c) for kind, c in messages if kind in set(MessageKind)]
        self._found.demand(len(known) == len(messages), f"{where}: a message of an unknown kind")
        for kind, content in known:
            self._found.messages[kind.name.lower()] += 1
            self._found.bytes[kind.name.lower()] += len(content)
        with self._found.reading(f"{where}: a message that"):
            self._read(known)
            is_all = self._receiver not in self._agreement.owners or self._said_all()
            self._found.demand(
                is_all, f"{where}: less than the table shows, so messages are missing"
            )

    def _read(self, messages: list[tuple[MessageKind, bytes]]) -> None:
        queue, is_long = list(messages), in_pieces(self._agreement)
        while queue:
            kind, content = queue.pop(0)
            if kind in is_long:
                length = _LENGTH.unpack_from(content)[0] + _LENGTH.size
                while len(content) < length:
                    following, more = queue.pop(0)
                    self._demand(following == kind, "a long message is broken")
                    content += more
                self._demand(len(content) == length, "a long message is broken")
                content = content[_LENGTH.size :]
            self._one(kind, content)

    def _said_all(self) -> bool:
        """Whether the sender has said the table's nodes of all its own attributes."""
        if self._columns[MessageKind.SENSITIVE] or self._columns[MessageKind.PLAIN]:
            return False
        return not self._agreement.bids or all(  # the turns are read together
            (self._found.final[j][rows] == (lo, hi)).all()
            for (j, lo, hi), rows in self._rows.items()
            if j in self._own
        )

    def _one(self, kind: MessageKind, content: bytes) -> None:
        """One whole message; lengths that follow from public counts are not compared here."""
        self._demand(kind in self._spoken, f"'{kind.name.lower()}', which nobody needs")
        if kind in (MessageKind.PROPOSAL, MessageKind.VERDICT, MessageKind.BATCH):
            self.judged.append((kind, content))
        if kind in (MessageKind.MASKED, MessageKind.GATHERED, MessageKind.COMMON):
            self._demand(len(content) % _POINT == 0, "masked ids of the wrong length")
        elif kind == MessageKind.ROLL:
            self._demand(
                set(json.loads(content)) == {"records", "label"},
                "a roll that says more than it may",
            )
        elif kind in self._columns:
            self._column(kind, content)
        elif kind == MessageKind.BATCH and not self._agreement.bids:
            self.batches.append(content)
        elif kind == MessageKind.BATCH:
            self._batch(content)
        elif kind == MessageKind.HULLS:
            self.hulls += content

    def _column(self, kind: MessageKind, content: bytes) -> None:
        """The published values of a column, row by row."""
        name = self._columns[kind].pop(0)
        end = _LENGTH.size + _LENGTH.unpack_from(content)[0]
        head, texts = json.loads(content[_LENGTH.size : end])
        if len(texts) <= 1 << 16:
            codes = unpacked(content[end:], self._table.height, len(texts))
        else:
            codes = np.frombuffer(content[end:], dtype="<u4").astype(np.int64)
        if len(codes) != self._table.height or (codes >= len(texts)).any():
            raise ValueError("codes")
        sent = pl.Series(texts, dtype=pl.String).gather(codes)
        published = self._table[name].fill_null("")
        self._demand(
            head == ("" if kind == MessageKind.LABEL else name) and sent.equals(published),
            "a column that is published otherwise",
        )
        self._found.facts += self._table.height

    def _batch(self, content: bytes) -> None:
        steps, content = steps_of(content)
        made = {(j, *span) for j, lo, hi, starts in steps for span in children_of(hi, starts)}
        for attribute, lo, hi, _ in [step for step in steps if step[:3] not in made]:
            self._demand(attribute in self._own, "a step on another party's attribute")
            rows = self._rows.pop((attribute, lo, hi))
            inside = [s for s in steps if s[0] == attribute and lo <= s[1] and s[2] <= hi]
            spans = children_of(hi, sorted({start for step in inside for start in step[3]}))
            size = packed_size(len(rows), len(spans))
            codes = unpacked(content[:size], len(rows), len(spans))
            content = content[size:]
            self._found.compare(attribute, rows, np.array(spans)[codes], f"{self._sender}: sent ")
            self._found.facts += len(rows)
            for c, span in enumerate(spans):
                self._rows[attribute, span[0], span[1]] = rows[codes == c]
        self._demand(not content, "bytes after the end of a batch")

    def _demand(self, holds: bool, what: str) -> None:
        self._found.demand(holds, f"{self._sender}: sent {what}")


def _spans(domain: Domain, column: pl.Series) -> np.ndarray:
    """First and last cell of every published text; (n, 2)."""
    texts = column.unique().to_list()
    spans = {text: domain.span(text) for text in texts}
    return np.array([spans[text] for text in column.to_list()]).reshape(-1, 2)
