"""One party among the others: what they agreed, how it talks to them, and what is kept of that.

The kinds of messages that one says to another follow from the agreement alone (`spoken`): what a
party takes from the others (`limits`) and what an audit expects in a transcript (`containment`).
"""

import hashlib
import json
import os
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedRandom
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from shoal.connectors.party.journal import Journal
from shoal.data.progress import Progress
from shoal.data.regular_files import require_regular
from shoal.data.warnings import ReleaseWarning
from shoal.errors import UNREADABLE, InputError, PartyError
from shoal.fusion.request import make_folder
from shoal.fusion.wire.link import PartyLink
from shoal.fusion.wire.messages import FRAME_HEAD, MessageKind
from shoal.policy.agreement import Agreement, with_endpoints

AGREEMENT = "agreement.json"
_RECORD = struct.Struct("<16sBI")  # receiver, kind, length
_END = 0  # kind of the last record
Message = tuple[str, int, bytes]  # receiver, kind, content


@dataclass(frozen=True)
class Conversation:
    """A party's name, agreement, channels and journal; and where its progress is shown."""

    name: str
    agreement: Agreement
    link: PartyLink
    journal: Journal
    progress: Progress

    @property
    def other_owners(self) -> list[str]:
        return [owner for owner in self.agreement.owners if owner != self.name]

    def send_to_owners(self, kind: MessageKind, content: bytes | memoryview) -> None:
        for owner in self.other_owners:
            self.link.send(owner, kind, content)

    def said(self, owner: str, kind: MessageKind, make: Callable[[], bytes]) -> bytes | bytearray:
        """What one owner says to all others; `make` makes it where this party is that owner."""
        if owner != self.name:
            return self.link.receive(owner, kind)
        content = make()
        self.send_to_owners(kind, content)
        return content

    def exchange(self, kind: MessageKind, content: bytes) -> dict[str, bytes]:
        """Sends a message to every other owner; returns what each of them sent."""
        self.send_to_owners(kind, content)
        return {owner: bytes(self.link.receive(owner, kind)) for owner in self.other_owners}

    def require_same(self, kind: MessageKind, content: bytes, what: str) -> None:
        """Exchanges a message; raises PartyError about the owners whose own is another one.

        what: it means about them.
        """
        received = self.exchange(kind, content)
        differing = [owner for owner, other in received.items() if other != content]
        if differing:
            named = ", ".join(f"'{owner}'" for owner in differing)
            parties = "parties" if differing[1:] else "party"
            raise PartyError(f"{parties} {named}: {what}; nothing is published")

    def remember(self, what: bytes, make: Callable[[], bytes], number: int = 0) -> bytes:
        """What the journal has under this key; made and written there the first time."""
        known = self.journal.get(what, "", number)
        if known is None:
            known = make()
            self.journal.append(what, known, "", number)
        return known


def open_journal(folder: Path, agreement: Agreement) -> Journal:
    """The journal of this agreement; raises PartyError where the folder has that of another one."""
    make_folder(folder, "folder")
    if (folder / "journal").is_dir():
        raise InputError(f"folder '{folder}': its 'journal' is a folder; name another folder")
    journal = Journal(folder / "journal")
    known = journal.get(b"A")
    if known is None:
        journal.append(b"A", agreement.hash)
    elif known != agreement.hash:
        raise PartyError(
            f"folder '{folder}': holds the journal of another agreement; name another folder"
        )
    return journal


def spoken(agreement: Agreement, sender: str, receiver: str) -> set[MessageKind]:
    """The kinds of messages that one party sends to another."""
    owners, model = agreement.owners, agreement.model
    own = agreement.numbers_of(sender)
    is_keyed = model.joining.name == "keyed"
    said = {
        MessageKind.GATHERED: sender in owners and receiver == agreement.collector,
        MessageKind.COMMON: sender == agreement.collector and receiver in owners,
        MessageKind.PACE: agreement.is_paced
        and {sender, receiver} <= set(agreement.computing)
        and owners[0] in (sender, receiver),
        MessageKind.SHARES: agreement.is_secret and {sender, receiver} <= set(agreement.computing),
        MessageKind.END: sender == owners[0] and receiver not in owners,
    }
    if {sender, receiver} <= set(owners):
        said |= {
            MessageKind.ROLL: True,
            MessageKind.KEY: is_keyed and sender == owners[0],
            MessageKind.MASKED: not is_keyed and sender == owners[owners.index(receiver) - 1],
            MessageKind.ATOMS: model.before is not None,
            MessageKind.LABEL: True,
            MessageKind.SENSITIVE: bool(unchanged(agreement, sender, MessageKind.SENSITIVE)),
            MessageKind.BIDS: agreement.bids and not agreement.is_secret,
            MessageKind.BATCH: bool(own),
            MessageKind.PROPOSAL: receiver == agreement.judge and bool(own),
            MessageKind.VERDICT: sender == agreement.judge,
            MessageKind.HULLS: agreement.has_hulls and bool(own),
            MessageKind.PLAIN: bool(unchanged(agreement, sender, MessageKind.PLAIN)),
            MessageKind.SEAL: True,
        }
    return {kind for kind, is_said in said.items() if is_said}


def in_pieces(agreement: Agreement) -> frozenset[MessageKind]:
    """The kinds of which a message can be of any length: its length comes before it."""
    always = {
        MessageKind.GATHERED,
        MessageKind.COMMON,
        MessageKind.LABEL,
        MessageKind.SENSITIVE,
        MessageKind.PROPOSAL,
        MessageKind.VERDICT,
        MessageKind.HULLS,
        MessageKind.PLAIN,
    }
    return frozenset(always if agreement.bids else always | {MessageKind.BATCH})


def unchanged(agreement: Agreement, owner: str, kind: MessageKind) -> list[str]:
    """The columns of an owner that are published unchanged and said in messages of this kind.

    Before the rounds those whose values groups must be diverse in, after them the others.
    """
    return [
        name
        for name, attribute in agreement.party(owner).attributes.items()
        if attribute.role == "plain"
        and (name in agreement.diverse) == (kind == MessageKind.SENSITIVE)
    ]


# The transcript of a fusion: what every party sent, before encryption, in files of its own.
#
# NAME.messages and NAME.shares are rows of records: the receiver's name in 16 bytes, filled up with
# zeros; the kind in one; the length in 4, little-endian; the content. The last record has no
# receiver and kind 0, and holds the SHA-256 of all bytes before it, so a file that lost its end, or
# was changed, is found. NAME.rows.csv is an owner's table by row, and agreement.json the agreement.


class Recorder:
    """Writes down what one party sends: journaled messages at the end, the others at once."""

    def __init__(self, folder: Path, name: str) -> None:
        make_folder(folder, "transcript")
        self._folder = folder
        self._name = name
        self._shares = open(folder / f"{name}.shares", "a+b")  # noqa: SIM115
        # a party that was killed left half a record, one that had ended leaves none
        self._shares.truncate(_whole(folder / f"{name}.shares"))

    def record(self, receiver: str, content: bytes) -> None:
        _write(self._shares, receiver, MessageKind.SHARES, content)

    def close(self, journal: Journal, agreement: Agreement, rows: pl.DataFrame | None) -> None:
        """Writes all other messages, the agreement, and for an owner the table by row."""
        _end(self._shares)
        with open(self._folder / f"{self._name}.messages", "w+b") as file:
            for receiver in agreement.participants:
                for number in range(journal.count(b"S", receiver)):
                    frame = journal.get(b"S", receiver, number) or b""
                    _write(file, receiver, MessageKind(frame[FRAME_HEAD - 5]), frame[FRAME_HEAD:])
            _end(file)
        endpoints = dict.fromkeys(agreement.participants, ("", ""))
        content = with_endpoints(agreement, endpoints, {})
        (self._folder / AGREEMENT).write_text(json.dumps(content))
        if rows is not None:
            rows.write_csv(self._folder / rows_of(self._name))


def _write(file: BinaryIO, receiver: str, kind: int, content: bytes) -> None:
    file.write(_RECORD.pack(receiver.encode(), kind, len(content)) + content)
    file.flush()


def _end(file: BufferedRandom) -> None:
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256").digest()
    file.seek(0, os.SEEK_END)
    _write(file, "", _END, digest)
    file.close()


def _whole(path: Path) -> int:
    """Where the last whole record of a message ends."""
    end = 0
    with suppress(ValueError, struct.error):
        for _, _, content in _records(path.read_bytes()):
            end += _RECORD.size + len(content)
    return end


@contextmanager
def guarded(folder: Path, name: str) -> Iterator[None]:
    """Whatever is wrong with a file of a transcript is one InputError that names it."""
    require_regular(folder / name, "transcript")
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(
            f"transcript '{folder}': lacks '{name}'; gather the folders of all parties in one"
        ) from None
    except (*UNREADABLE, OSError, pl.exceptions.PolarsError):
        raise InputError(
            f"transcript '{folder}': '{name}' is damaged or not complete; gather the folders again"
        ) from None


def read_agreement(folder: Path) -> Agreement:
    """The agreement of a transcript; raises InputError where there is none that can be read."""
    if not (folder / AGREEMENT).is_file():
        raise InputError(
            f"transcript '{folder}': holds no finished fusion; name the folder given to 'fuse"
            " --transcript'"
        )
    with guarded(folder, AGREEMENT):
        content = json.loads((folder / AGREEMENT).read_text())
        for party in [*content["parties"], *([content["helper"]] if content.get("helper") else [])]:
            del party["address"], party["certificate"]
        return Agreement.from_dict(content)


def rows_of(owner: str) -> str:
    """The file that holds an owner's table by row."""
    return f"{owner}.rows.csv"


def read_table(folder: Path, owner: str, agreement: Agreement) -> pl.DataFrame:
    """An owner's table by row; raises InputError where it is not one of the agreement."""
    name = rows_of(owner)
    with guarded(folder, name):
        table = pl.read_csv(folder / name, infer_schema=False)
        if table.columns != agreement.published:
            raise ValueError
        return table


def read_messages(folder: Path, sender: str, agreement: Agreement) -> list[Message]:
    """All that a party sent: the messages in order, then those of the secure rounds.

    Raises InputError where a file is missing, changed, or not complete.
    """
    messages: list[Message] = []
    for name in (f"{sender}.messages", f"{sender}.shares"):
        with guarded(folder, name):
            messages += _records((folder / name).read_bytes())
    with guarded(folder, f"{sender}.messages"):
        others = set(agreement.participants) - {sender}
        if not {receiver for receiver, _, _ in messages} <= others:
            raise ValueError
    return messages


def _records(content: bytes) -> Iterator[Message]:
    """The records of a file, without the last one; raises ValueError where that is not right."""
    at = 0
    while True:
        receiver, kind, length = _RECORD.unpack_from(content, at)
        start, at = at, at + _RECORD.size + length
        if at > len(content):
            raise ValueError
        if kind == _END:
            if content[start + _RECORD.size :] != hashlib.sha256(content[:start]).digest():
                raise ValueError
            return
        yield receiver.rstrip(b"\0").decode(), kind, content[at - length : at]


# What one party's run took, and what it ended with.


@dataclass
class RunStatistics:
    """Seconds by phase, of the clock and of this process's processors; rounds, steps, people.

    touched: rows that all steps and trials have read.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    rounds: int = 0
    steps: int = 0
    people: int = 0
    touched: int = 0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Adds the time of what is done meanwhile to this phase."""
        started = time.monotonic()
        used = time.process_time()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - started
        self.processor[name] = self.processor.get(name, 0.0) + time.process_time() - used

    def report(
        self, bytes_sent: Mapping[str, int], messages_sent: Mapping[str, int]
    ) -> dict[str, Any]:
        """The run in figures, as the certificate has them; without a value of the data."""
        return {
            "people": self.people,
            "rounds": self.rounds,
            "steps": self.steps,
            "touched": self.touched,
            "bytes": dict(sorted(bytes_sent.items())),
            "messages": dict(sorted(messages_sent.items())),
            "seconds": _rounded(self.seconds),
            "processor": _rounded(self.processor),
        }


def _rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in seconds.items()}


@dataclass(frozen=True)
class FusionResult:
    """The fused table, its rows in an order that says nothing; and what the run took.

    ledger: of all fusions up to this one, where the agreement has one. by_row: the table in the
    order of the joint rows, for a transcript. warnings: of the people in common.
    """

    published: pl.DataFrame
    statistics: dict[str, Any]
    ledger: bytes | None = None
    by_row: pl.DataFrame | None = None
    warnings: Sequence[ReleaseWarning] = ()
