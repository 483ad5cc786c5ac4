"""Containment: no message of a fusion says more about a person than the fused table.

The check reads the messages with full knowledge - the agreement and the finished table by row - and
turns each into facts: this row has this node of this attribute. Every fact must follow from the
finished table, every byte must be accounted for, and only kinds of messages on the closed list may
occur. It shares no code with the parties.

What it can't turn into facts is random to whoever receives it, as far as the cryptography holds:
masked ids, and shares of secure rounds. Their lengths follow from public counts, which
`completeness` compares.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from shoal.connectors.party.messages import MessageKind
from shoal.fusion.completeness import Said, missing_or_more
from shoal.fusion.judged_containment import Questions, Replay
from shoal.fusion.transcript import guarded, read_agreement, read_messages, read_table
from shoal.policy.agreement import Agreement
from shoal.policy.agreement_model import Domain, PartyModel

_LENGTH = struct.Struct("<Q")
_POINT = 32
_LONG = (
    MessageKind.GATHERED,
    MessageKind.COMMON,
    MessageKind.LABEL,
    MessageKind.PLAIN,
    MessageKind.SENSITIVE,
    MessageKind.HULLS,
    MessageKind.PROPOSAL,
    MessageKind.VERDICT,
)


@dataclass
class Containment:
    """What the check found: messages and bytes by kind, facts, and all that is wrong.

    vetoed: facts about people that the table does not show, which a judge saw by `veto: seen`.
    """

    messages: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    facts: int = 0
    vetoed: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.wrong


def check_transcript(folder: Path) -> Containment:
    """Whether no message of a fusion says more than its table, and none is missing.

    Raises InputError where the transcript is not complete, or a file of it was changed.
    """
    agreement = read_agreement(folder)
    containment = Containment()
    tables = {owner: read_table(folder, owner, agreement) for owner in agreement.owners}
    table = tables[agreement.owners[0]]
    if not all(other.equals(table) for other in tables.values()):
        containment.wrong.append("the parties' tables differ")
    with guarded(folder, f"{agreement.owners[0]}.rows.csv"):
        final = [_spans(domain, table[domain.name]) for domain in agreement.domains]
    _check_counts(agreement, table, containment)
    said: Said = {}
    readers: list[_Reader] = []
    for sender in agreement.participants:
        for receiver, kind, content in read_messages(folder, sender, agreement):
            said.setdefault((sender, receiver), []).append((kind, content))
    for sender in agreement.participants:
        for receiver in agreement.participants:
            if receiver != sender:
                messages = said.setdefault((sender, receiver), [])
                reader = _Reader(agreement, (sender, receiver), table, final, containment)
                _check_channel(reader, receiver, messages, containment)
                readers += [reader] if receiver in agreement.owners else []
    questions = None if agreement.judge is None else Questions(agreement, final, table)
    if not agreement.bids:
        _check_turns(agreement, final, readers, containment, questions)
    elif questions is not None:
        _check_questions(agreement, readers, questions, containment)
    if questions is not None:
        containment.vetoed = questions.vetoed
        containment.wrong += questions.wrong
    containment.wrong += missing_or_more(agreement, table.height, said)
    return containment


def _check_counts(agreement: Agreement, table: pl.DataFrame, containment: Containment) -> None:
    for qid in agreement.qids():
        attributes = [agreement.quasi[j] for j in qid.attributes]
        least = table.group_by(attributes).len()["len"].min()
        if not isinstance(least, int) or least < qid.k:
            containment.wrong.append(
                f"{', '.join(attributes)}: fewer than {qid.k} people share a combination"
            )
    sensitive = agreement.model.sensitive
    judged = {} if sensitive is None else {sensitive.attribute: sensitive.l}
    for name, asked in (agreement.diverse | judged).items():
        least = table.group_by(agreement.quasi).agg(pl.col(name).n_unique())[name].min()
        if not isinstance(least, int) or least < asked:
            containment.wrong.append(f"{name}: a group has fewer than {asked} different values")


def _check_channel(
    reader: _Reader, receiver: str, messages: list[tuple[int, bytes]], containment: Containment
) -> None:
    """All that one party sent to another."""
    where = f"{reader.sender} to {receiver}"
    known = [(kind, content) for kind, content in messages if kind in set(MessageKind)]
    if len(known) < len(messages):
        containment.wrong.append(f"{where}: a message of an unknown kind")
    for kind, content in known:
        containment.messages[MessageKind(kind).name.lower()] += 1
        containment.bytes[MessageKind(kind).name.lower()] += len(content)
    try:
        reader.read(known)
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError, struct.error) as e:
        containment.wrong.append(f"{where}: a message that can't be read ({type(e).__name__})")
        return
    if receiver in reader.owners and not reader.said_all():
        containment.wrong.append(f"{where}: less than the table shows, so messages are missing")


def _check_questions(
    agreement: Agreement, readers: list[_Reader], questions: Questions, containment: Containment
) -> None:
    """What winners asked the judge, and what it said."""
    for owner, (asked, verdicts) in _questions(agreement, readers).items():
        try:
            questions.steps(owner, asked, verdicts)
        except (ValueError, LookupError, TypeError, StopIteration, struct.error) as unread:
            containment.wrong.append(
                f"{owner}: asked the judge what can't be read ({type(unread).__name__})"
            )


def _questions(
    agreement: Agreement, readers: list[_Reader]
) -> dict[str, tuple[list[tuple[int, bytes]], list[bytes]]]:
    """What each other owner asked the judge, with its batches, and what the judge said to it."""
    said = {(reader.sender, reader.receiver): reader.judged for reader in readers}
    judge = agreement.judge or ""
    return {
        owner: (
            [(kind, c) for kind, c in said[owner, judge] if kind != MessageKind.VERDICT],
            [content for kind, content in said[judge, owner] if kind == MessageKind.VERDICT],
        )
        for owner in agreement.owners
        if owner != judge
    }


def _check_turns(
    agreement: Agreement,
    final: list[np.ndarray],
    readers: list[_Reader],
    containment: Containment,
    questions: Questions | None,
) -> None:
    """What all turns together say. What an owner says to all others is the same."""
    said = {reader.sender: reader for reader in readers}
    if not said:
        return  # one owner, who said nothing
    replay = Replay(agreement, final, questions)
    try:
        if questions is not None:
            for owner, (asked, verdicts) in _questions(agreement, readers).items():
                questions.count(owner, asked, verdicts)
                proposals = [c for kind, c in asked if kind == MessageKind.PROPOSAL]
                replay.asked[owner] = list(zip(proposals, verdicts[1:], strict=True))
        replay.read(
            {sender: reader.batches for sender, reader in said.items()},
            {sender: reader.hulls for sender, reader in said.items() if reader.hulls},
        )
    except (
        ValueError,
        LookupError,
        TypeError,
        ArithmeticError,
        struct.error,
    ) as unread:
        containment.wrong.append(f"batches that can't be read ({type(unread).__name__})")
    containment.wrong += replay.wrong
    containment.facts += replay.facts


class _Reader:
    """Turns what one party sent to one other into facts, and compares them with the table."""

    def __init__(
        self,
        agreement: Agreement,
        channel: tuple[str, str],
        table: pl.DataFrame,
        final: list[np.ndarray],
        containment: Containment,
    ) -> None:
        self._agreement = agreement
        self.sender, self.receiver = channel
        self.owners = agreement.owners
        self._table = table
        self._containment = containment
        self._rows = {
            (j, 0, domain.cells - 1): np.arange(table.height)
            for j, domain in enumerate(agreement.domains)
        }
        self._final = final
        self.batches: list[bytes] = []
        self.hulls = b""
        self.judged: list[tuple[int, bytes]] = []
        party = agreement.party(self.sender)
        owned = party.attributes if isinstance(party, PartyModel) else {}
        plain = [name for name, attribute in owned.items() if attribute.role == "plain"]
        self._sensitive = [name for name in plain if name in agreement.diverse]
        self._plain = [name for name in plain if name not in agreement.diverse]

    def read(self, messages: list[tuple[int, bytes]]) -> None:
        """All messages in order."""
        queue = list(messages)
        is_long = {*_LONG, *([] if self._agreement.bids else [MessageKind.BATCH])}
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

    def said_all(self) -> bool:
        """Whether the sender has said the table's nodes of all its own attributes."""
        if not self._agreement.bids:
            return not self._plain and not self._sensitive  # the rest is in all turns together
        own = [
            j
            for j, d in enumerate(self._agreement.domains)
            if self._agreement.owner_of(d.name) == self.sender
        ]
        said = [
            (self._final[j][rows] == (lo, hi)).all()
            for (j, lo, hi), rows in self._rows.items()
            if j in own
        ]
        return all(said) and not self._plain and not self._sensitive

    def _one(self, kind: int, content: bytes) -> None:
        if kind in (MessageKind.PROPOSAL, MessageKind.VERDICT, MessageKind.BATCH):
            self.judged.append((kind, content))
        if kind in (MessageKind.MASKED, MessageKind.GATHERED, MessageKind.COMMON):
            self._demand(len(content) % _POINT == 0, "masked ids of the wrong length")
        elif kind == MessageKind.ROLL:
            self._demand(
                set(json.loads(content)) == {"records", "label"},
                "a roll that says more than it may",
            )
        elif kind == MessageKind.LABEL:
            self._column(content, "", self._agreement.model.label.attribute)
        elif kind == MessageKind.PLAIN:
            self._column(content, self._plain.pop(0))
        elif kind == MessageKind.SENSITIVE:
            self._column(content, self._sensitive.pop(0))
        elif kind == MessageKind.BATCH and not self._agreement.bids:
            self.batches.append(content)
        elif kind == MessageKind.BATCH:
            self._batch(content)
        elif kind == MessageKind.HULLS:
            self._demand(self._agreement.has_hulls, "hulls that nobody needs")
            self.hulls += content
        elif kind == MessageKind.KEY:
            self._demand(
                len(content) == 32 and self._agreement.model.joining.name == "keyed",
                "a key that nobody needs",
            )
        elif kind == MessageKind.ATOMS:
            needs_it = self._agreement.model.before is not None
            self._demand(len(content) == 32 and needs_it, "a ledger's hash that nobody needs")
        elif kind == MessageKind.SEAL:
            self._demand(len(content) == 32, "a seal of the wrong length")
        elif kind == MessageKind.END:
            self._demand(not content, "an end that is not empty")
        elif kind == MessageKind.PROPOSAL:
            self._demand(self.receiver == self._agreement.judge, "what nobody judges")
        elif kind == MessageKind.VERDICT:
            self._demand(self.sender == self._agreement.judge, "a verdict that is not its own")
        elif kind == MessageKind.BIDS:
            is_clear = self._agreement.bids and self._agreement.model.maximum.name == "clear"
            self._demand(is_clear, "bids in the clear")

    def _column(self, content: bytes, sent_name: str, name: str | None = None) -> None:
        """The published values of a column, row by row."""
        end = _LENGTH.size + _LENGTH.unpack_from(content)[0]
        head, texts = json.loads(content[_LENGTH.size : end])
        codes = _unpacked(content[end:], self._table.height, len(texts))
        sent = pl.Series(texts, dtype=pl.String).gather(codes)
        published = self._table[name or sent_name].fill_null("")
        self._demand(
            head == sent_name and bool((sent == published).all()),
            "a column that is published otherwise",
        )
        self._containment.facts += self._table.height

    def _batch(self, content: bytes) -> None:
        numbers = np.frombuffer(content[: len(content) // 4 * 4], dtype="<u4").tolist()
        steps = []
        at = 1
        for _ in range(numbers[0]):
            attribute, lo, hi, children = numbers[at : at + 4]
            steps.append((attribute, lo, hi, numbers[at + 4 : at + 4 + children]))
            at += 4 + children
        content = content[4 * at :]
        made = {(j, *span) for j, lo, hi, starts in steps for span in _children(hi, starts)}
        for attribute, lo, hi, _ in [step for step in steps if step[:3] not in made]:
            domain = self._agreement.domains[attribute]
            self._demand(
                self._agreement.owner_of(domain.name) == self.sender,
                "a step on another party's attribute",
            )
            rows = self._rows.pop((attribute, lo, hi))
            inside = [s for s in steps if s[0] == attribute and lo <= s[1] and s[2] <= hi]
            starts = sorted({start for step in inside for start in step[3]})
            spans = _children(hi, starts)
            size = -(-len(rows) * max(len(spans) - 1, 0).bit_length() // 8)
            codes = _unpacked(content[:size], len(rows), len(spans))
            content = content[size:]
            nodes = np.array(spans)[codes]
            final = self._final[attribute][rows]
            contained = (nodes[:, 0] <= final[:, 0]) & (final[:, 1] <= nodes[:, 1])
            self._demand(
                bool(contained.all()),
                f"{int((~contained).sum())} rows of '{domain.name}' more than is published",
            )
            self._containment.facts += len(rows)
            for c, span in enumerate(spans):
                self._rows[attribute, span[0], span[1]] = rows[codes == c]
        self._demand(not content, "bytes after the end of a batch")

    def _demand(self, holds: bool, what: str) -> None:
        if not holds:
            self._containment.wrong.append(f"{self.sender}: sent {what}")


def _children(hi: int, starts: list[int]) -> list[tuple[int, int]]:
    return [(lo, end - 1) for lo, end in zip(starts, [*starts[1:], hi + 1], strict=True)]


def _unpacked(packed: bytes, rows: int, values: int) -> np.ndarray:
    """Codes of as few bits as `values` need; raises ValueError where the length is wrong."""
    bits = max(values - 1, 0).bit_length()
    if values > 1 << 16:
        codes = np.frombuffer(packed, dtype="<u4").astype(np.int64)
    elif len(packed) != -(-rows * bits // 8):
        raise ValueError("length")
    else:
        planes = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=rows * bits).reshape(
            rows, bits
        )
        codes = (planes.astype(np.int64) << np.arange(bits)).sum(axis=1)
    if len(codes) != rows or (rows and int(codes.max()) >= values):
        raise ValueError("codes")
    return codes


def _spans(domain: Domain, column: pl.Series) -> np.ndarray:
    """First and last cell of every published text; (n, 2)."""
    texts = column.unique().to_list()
    spans = {text: domain.span(text) for text in texts}
    return np.array([spans[text] for text in column.to_list()]).reshape(-1, 2)
