"""Containment: no message of a fusion says more about a person than the fused table.

The check reads the messages with full knowledge - the agreement and the finished table by row - and
turns each into facts: this row has this node of this attribute. Every fact must follow from the
finished table, every byte must be accounted for, and only kinds of messages on the closed list may
occur. It shares no code with the parties, but the table of who says what to whom.

What it can't turn into facts is random to whoever receives it, as far as the cryptography holds:
masked ids, and shares of secure rounds. Their lengths follow from public counts, and are compared
with them.
"""

import json
import struct
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path

import numpy as np
import polars as pl

from shoal.errors import UNREADABLE
from shoal.fusion.conversation import (
    guarded,
    in_pieces,
    read_agreement,
    read_messages,
    read_table,
    rows_of,
    spoken,
    unchanged,
)
from shoal.fusion.judged_containment import (
    Containment,
    Questions,
    Replay,
    children_of,
    packed_size,
    steps_of,
    unpacked,
)
from shoal.fusion.wire.messages import MessageKind
from shoal.policy.agreement import Agreement
from shoal.policy.agreement_model import Domain

_LENGTH = struct.Struct("<Q")
_POINT = 32  # bytes, as of a seal and a key
_PINGS = 3  # round trips of a byte, after which the first owner says a byte
_KEYS = b"K"  # how a secure round's message begins that belongs to no round
_SINGLE = (MessageKind.SEAL, MessageKind.END, MessageKind.KEY, MessageKind.ATOMS)
_SAID_TO_ALL = (
    MessageKind.LABEL,
    MessageKind.SENSITIVE,
    MessageKind.BATCH,
    MessageKind.HULLS,
    MessageKind.PLAIN,
    MessageKind.BIDS,
)


def check_transcript(folder: Path) -> Containment:
    """Whether no message of a fusion says more than its table, and none is missing.

    Raises InputError where the transcript is not complete, or a file of it was changed.
    """
    agreement = read_agreement(folder)
    tables = {owner: read_table(folder, owner, agreement) for owner in agreement.owners}
    table = tables[agreement.owners[0]]
    with guarded(folder, rows_of(agreement.owners[0])):
        final = [_spans(domain, table[domain.name]) for domain in agreement.domains]
    found = Containment(agreement.quasi, final)
    found.demand(all(t.equals(table) for t in tables.values()), "the parties' tables differ")
    _check_counts(agreement, table, found)
    readers = {
        channel: _Reader(agreement, channel, table, found)
        for channel in permutations(agreement.participants, 2)
    }
    for sender in agreement.participants:
        for receiver, kind, content in read_messages(folder, sender, agreement):
            readers[sender, receiver].messages.append((kind, content))
    for reader in readers.values():
        reader.check()
    questions = None if agreement.judge is None else Questions(agreement, found, table)
    if agreement.bids and questions is not None:
        for owner, (asked, verdicts) in _questions(agreement, readers).items():
            with found.reading(f"{owner}: asked the judge what"):
                questions.steps(owner, asked, verdicts)
    elif not agreement.bids and len(agreement.owners) > 1:
        with found.reading("batches that"):
            _check_turns(agreement, readers, found, questions)
    _check_complete(agreement, table.height, readers, found)
    return found


def _check_counts(agreement: Agreement, table: pl.DataFrame, found: Containment) -> None:
    for qid in agreement.qids():
        attributes = [agreement.quasi[j] for j in qid.attributes]
        least = table.select(pl.struct(attributes).unique_counts().min()).item()
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
    agreement: Agreement, readers: "Readers"
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
    agreement: Agreement, readers: "Readers", found: Containment, questions: Questions | None
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
        self.where = " to ".join(channel)
        self.spoken = spoken(agreement, *channel)
        self.messages: list[tuple[int, bytes]] = []
        self.said: defaultdict[int, list[bytes]] = defaultdict(list)
        self._table = table
        self._found = found
        self._own = agreement.numbers_of(self._sender)
        self._rows = {
            (j, 0, domain.cells - 1): np.arange(table.height)
            for j, domain in enumerate(agreement.domains)
        }
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

    @property
    def last(self) -> int | None:
        """The kind of its last message, those of secure rounds apart."""
        kinds = [kind for kind, _ in self.messages if kind != MessageKind.SHARES]
        return kinds[-1] if kinds else None

    def roll(self, people: int) -> Mapping[str, int] | None:
        """The roll that it begins with; None where that can't be right."""
        try:
            (content,) = self.said[MessageKind.ROLL]
            roll = json.loads(content)
            fits = type(roll["records"]) is int and type(roll["label"]) is bool
            fits = fits and roll["records"] >= people and self.messages[0][0] == MessageKind.ROLL
            return roll if fits else None
        except UNREADABLE:
            return None

    def check(self) -> None:
        """All that one party sent to the other, in order."""
        for kind, content in self.messages:
            self.said[kind].append(content)
        known = [(MessageKind(kind), c) for kind, c in self.messages if kind in set(MessageKind)]
        is_known = len(known) == len(self.messages)
        self._found.demand(is_known, f"{self.where}: a message of an unknown kind")
        for kind, content in known:
            self._found.messages[kind.name.lower()] += 1
            self._found.bytes[kind.name.lower()] += len(content)
        with self._found.reading(f"{self.where}: a message that"):
            self._read(known)
            is_all = self._receiver not in self._agreement.owners or self._said_all()
            self._found.demand(
                is_all, f"{self.where}: less than the table shows, so messages are missing"
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
        self._demand(kind in self.spoken, f"'{kind.name.lower()}', which nobody needs")
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


Readers = dict[tuple[str, str], _Reader]


def _spans(domain: Domain, column: pl.Series) -> np.ndarray:
    """First and last cell of every published text; (n, 2)."""
    spans = {text: domain.span(text) for text in column.unique().to_list()}
    return np.array([spans[text] for text in column.to_list()]).reshape(-1, 2)


# Completeness: the transcript has every message that must have been sent, and no other.
#
# How many there are and how long they are follows from public counts: the records that every owner
# announced, the people in common, and the rounds, which are the batches and the last one without a
# winner.


def _check_complete(
    agreement: Agreement, people: int, readers: Readers, found: Containment
) -> None:
    """Whether all that must have been said was, and nothing too often."""
    rolls: dict[str, Mapping[str, int]] = {}
    begin = True
    for sender, receiver in permutations(agreement.owners, 2):
        roll = readers[sender, receiver].roll(people)
        fits = roll is not None and rolls.setdefault(sender, roll) == roll
        found.demand(fits, f"{sender} to {receiver}: does not begin with exactly one roll")
        begin = begin and fits
    if begin and len(agreement.owners) > 1:
        _check_lengths(agreement, rolls, people, readers, found)
        _check_equal(agreement, rolls, readers, found)
        _check_rounds(agreement, readers, found)


def _check_lengths(
    agreement: Agreement,
    rolls: Mapping[str, Mapping[str, int]],
    people: int,
    readers: Readers,
    found: Containment,
) -> None:
    """Kinds of which every channel has a number of bytes that is known, and most have none."""
    everybody = sum(roll["records"] for roll in rolls.values())
    if agreement.model.before is not None:  # with those whom a ledger withholds
        lengths = [sum(map(len, r.said[MessageKind.COMMON])) for r in readers.values()]
        people = max([people, *((length - _LENGTH.size) // _POINT for length in lengths)])
    for (sender, _), reader in readers.items():
        records = rolls[sender]["records"] if sender in rolls else 0
        sizes = {
            MessageKind.MASKED: _POINT * everybody or None,  # no chunk of nobody
            MessageKind.GATHERED: _LENGTH.size + _POINT * records,
            MessageKind.COMMON: _LENGTH.size + _POINT * people,
            MessageKind.KEY: _POINT,
            MessageKind.PACE: _PINGS + (sender == agreement.owners[0]),
            MessageKind.ATOMS: _POINT,
            MessageKind.SEAL: _POINT,
            MessageKind.END: 0,
            MessageKind.BYE: None,  # is not journaled, so none is here
        }
        for kind, usual in sizes.items():
            contents, name = reader.said[kind], kind.name.lower()
            size = usual if kind in reader.spoken else None
            length = sum(map(len, contents)) if contents else None
            found.demand(
                length == size,
                f"{reader.where}: {length or 0} bytes of '{name}', where {size or 0} belong",
            )
            found.demand(
                kind not in _SINGLE or len(contents) < 2, f"{reader.where}: '{name}' more than once"
            )


def _check_equal(
    agreement: Agreement,
    rolls: Mapping[str, Mapping[str, int]],
    readers: Readers,
    found: Containment,
) -> None:
    """What an owner says to all other owners is the same; and all seal the same table, last.

    The first owner who has the label sends it, and nobody else does.
    """
    first = next((owner for owner in agreement.owners if rolls[owner]["label"]), None)
    seals = set()
    for sender, receiver in permutations(agreement.owners, 2):
        reader = readers[sender, receiver]
        what = "no label" if sender == first else "a label, though another party sends it"
        has_label = bool(reader.said[MessageKind.LABEL])
        found.demand(has_label == (sender == first), f"{reader.where}: {what}")
        seals.update(reader.said[MessageKind.SEAL])
        found.demand(reader.last == MessageKind.SEAL, f"{reader.where}: does not end with a seal")
        other = _first_other(agreement, sender)
        for kind in _SAID_TO_ALL:
            found.demand(
                reader.said[kind] == readers[sender, other].said[kind],
                f"{reader.where}: another '{kind.name.lower()}' than to {other}",
            )
    found.demand(len(seals) < 2, "the owners sealed different tables")


def _first_other(agreement: Agreement, owner: str) -> str:
    return next(name for name in agreement.owners if name != owner)


def _check_rounds(agreement: Agreement, readers: Readers, found: Containment) -> None:
    """Whether every round was computed: by shares of all who compute, or by bids in the clear."""
    batches = sum(
        len(readers[owner, _first_other(agreement, owner)].said[MessageKind.BATCH])
        for owner in agreement.owners
    )
    rounds = batches + 1 if agreement.bids else 0
    for (sender, receiver), reader in readers.items():
        bids = len(reader.said[MessageKind.BIDS])
        found.demand(
            bids == (rounds if MessageKind.BIDS in reader.spoken else 0),
            f"{reader.where}: {bids} bids in {rounds} rounds",
        )
        shares = reader.said[MessageKind.SHARES]
        is_whole = not shares
        if MessageKind.SHARES in reader.spoken:
            # in each session the first of the two sends keys
            first, second = sorted((sender, receiver), key=agreement.computing.index)
            keyed = [s for s in readers[first, second].said[MessageKind.SHARES] if s[:1] == _KEYS]
            is_whole = _is_whole(shares, rounds, len(keyed), sender not in agreement.owners)
        found.demand(is_whole, f"{reader.where}: not the shares of {rounds} rounds")


def _is_whole(shares: list[bytes], rounds: int, sessions: int, is_helper: bool) -> bool:
    """Whether the lengths are those of this number of rounds, all computed alike.

    A helper has begun one more when it hears that there is none. After a break, rounds are
    computed again, and how far the broken one went is not known.
    """
    lengths = Counter(len(share) for share in shares if not share.startswith(_KEYS))
    if not sessions or not lengths:
        return False
    if sessions > 1:
        return sum(lengths.values()) >= rounds
    for count in lengths.values():
        begun = count % rounds
        if count < rounds or begun > (count // rounds if is_helper else 0):
            return False
    return True
