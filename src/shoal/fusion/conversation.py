"""One party among the others: what they agreed, how it talks to them, and what it remembers.

The kinds of messages that one says to another follow from the agreement alone (`spoken`): what a
party takes from the others (`limits`) and what an audit expects in a transcript (`containment`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shoal.connectors.party.journal import Journal
from shoal.data.progress import Progress
from shoal.errors import InputError, PartyError
from shoal.fusion.keys import make_folder
from shoal.fusion.wire.link import PartyLink
from shoal.fusion.wire.messages import MessageKind
from shoal.policy.agreement import Agreement


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
