"""One party among the others: what they agreed, how it talks to them, and what it remembers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shoal.connectors.party.journal import Journal
from shoal.connectors.party.messages import MessageKind
from shoal.data.progress import Progress
from shoal.errors import InputError, PartyError
from shoal.fusion.keys import make_folder
from shoal.fusion.wire.link import PartyLink
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
