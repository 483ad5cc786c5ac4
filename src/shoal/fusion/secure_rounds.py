"""How the winner of a round is found: by MPyC over the parties' channels; in tests in the clear."""

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, cast

from shoal.errors import LostPartyError, PartyError
from shoal.fusion import secure_maximum
from shoal.fusion.conversation import Conversation
from shoal.fusion.limits import PINGS, SHARE
from shoal.fusion.wire.messages import MessageKind, refused

LITTLE_DELAY = 0.005  # seconds one way, below which planning ahead does not pay off
_AHEAD = b"P"  # journal: how many steps are planned ahead
_POLL = 0.2
Won = tuple[int, int, int]
"""A round's winner by number, its steps, 0 at the end, and the second best bid where it is told."""


def steps_ahead(conversation: Conversation) -> int:
    """How many steps are planned for each round; the first owner measures what pays off."""
    most = conversation.agreement.rule().most_ahead
    if not conversation.agreement.is_paced:
        return most
    link, kind = conversation.link, MessageKind.PACE
    first, *others = conversation.agreement.computing
    if conversation.name != first:
        for _ in range(PINGS):
            link.send(first, kind, bytes(link.receive(first, kind)))
        return link.receive(first, kind)[0]
    delays = []
    for _ in range(PINGS):
        begun = time.monotonic()
        for other in others:
            link.send(other, kind, bytes(1))
        for other in others:
            link.receive(other, kind)
        delays.append((time.monotonic() - begun) / 2)
    ahead = bytes([1 if min(delays) < LITTLE_DELAY else most])
    ahead = conversation.remember(_AHEAD, lambda: ahead)
    for other in others:
        link.send(other, kind, ahead)
    return ahead[0]


def winner_of(steps: Sequence[int], owners: int, ahead: int) -> tuple[int, int]:
    """The winner's number and its steps, from those of all owners; a helper has no list of them.

    Raises PartyError where they are not those of one winner.
    """
    most = max(steps, default=0)
    are_possible = len(steps) in (0, owners) and all(0 <= count <= ahead for count in steps)
    if not are_possible or sum(steps) != most:
        raise PartyError(
            "the secure maximum: its result is impossible, so another party's messages 'shares'"
            " were wrong; the run ends"
        )
    return (steps.index(most) if most else 0), most


class MpycRounds:
    """MPyC in a process of its own, its messages carried by the link; one for each session."""

    def __init__(self, conversation: Conversation) -> None:
        agreement = conversation.agreement
        self._link = conversation.link
        self._computing = agreement.computing
        self._results: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
        self._writing = threading.Lock()
        self._opened = threading.Event()
        self._is_closed = False
        command = [sys.executable, "-m", secure_maximum.__name__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._to = cast(BinaryIO, self._process.stdin)
        self._from = cast(BinaryIO, self._process.stdout)
        self._owners = len(agreement.owners)
        self._number = self._computing.index(conversation.name)
        self._keyed: set[str] = set()  # whose keys have arrived
        setup = {
            "number": self._number,
            "computing": len(self._computing),
            "owners": self._owners,
            "tells": int(agreement.tells_runner_up),
            "bits": agreement.rule().worth_bits(len(agreement.quasi)),  # of a bid and its sign
        }
        self._write(secure_maximum.BIDS, 0, 0, json.dumps(setup).encode())
        self._link.on_shares = self._arrived
        self._forwarder = threading.Thread(target=self._forward, daemon=True)
        self._forwarder.start()

    def open(self) -> None:
        """Starts sending what MPyC wants to send; called when the session stands."""
        self._opened.set()

    def maximum(self, bids: Sequence[int], unless: Callable[[], bool] = lambda: False) -> Won:
        """Who won; a helper learns nothing, and that 0 did with no steps.

        unless: whether to stop waiting, for a helper, which does not know which round is the last.
        """
        self._write(secure_maximum.BIDS, 0, 0, json.dumps(list(bids)).encode())
        with self._link.waiting_for_round() as go_on:
            while (found := self._next_result()) is None:
                if unless():
                    return 0, 0, 0
                go_on()
                if self._process.poll() is not None:
                    raise LostPartyError(
                        "the secure maximum: its process ended, killed or by messages 'shares' that"
                        " can't be computed with; run again to resume"
                    )
        steps, shown = found[: self._owners], found[self._owners :]
        return *winner_of(steps, self._owners, len(bids)), sum(shown)

    def _next_result(self) -> list[int] | None:
        """What MPyC found, None where it needs longer."""
        try:
            return self._results.get(timeout=_POLL)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Ends the process; nothing that it still said is sent in a later session."""
        self._is_closed = True
        self._link.on_shares = lambda sender, content: None
        self._opened.set()
        self._process.kill()
        self._process.wait()
        self._forwarder.join()

    def _arrived(self, sender: str, content: bytes) -> None:
        what, counter = SHARE.unpack_from(content)
        number = self._computing.index(sender)
        if what == secure_maximum.KEYS:
            if sender in self._keyed or number > self._number:
                raise refused(sender, MessageKind.SHARES, "has keys that nobody needs")
            self._keyed.add(sender)
        self._write(what, number, counter, content[SHARE.size :])

    def _write(self, what: bytes, peer: int, counter: int, payload: bytes) -> None:
        with self._writing:
            try:
                secure_maximum.write_frame(self._to, what, peer, counter, payload)
            except (BrokenPipeError, ValueError):
                return  # the session is over, which `maximum` finds out

    def _forward(self) -> None:
        while (frame := secure_maximum.read_frame(self._from)) is not None:
            what, peer, counter, payload = frame
            self._opened.wait()
            if self._is_closed:
                return
            if what == secure_maximum.RESULT:
                self._results.put(json.loads(payload))
            else:
                self._link.send_shares(self._computing[peer], SHARE.pack(what, counter) + payload)


class ClearRounds:
    """Every bid to every owner, in the clear: for tests, which need no secrets."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def maximum(self, bids: Sequence[int]) -> Won:
        own = list(bids)
        received = self._conversation.exchange(MessageKind.BIDS, json.dumps(own).encode())
        by_owner = {owner: json.loads(content) for owner, content in received.items()}
        by_owner[self._conversation.name] = own
        return secure_maximum.plain_maximum(
            [by_owner[owner] for owner in self._conversation.agreement.owners]
        )


Rounds = MpycRounds | ClearRounds


@contextmanager
def rounds_of(conversation: Conversation) -> Iterator[Rounds | None]:
    """How this party finds the winner of a round; None where it computes nothing."""
    agreement = conversation.agreement
    is_alone = len(agreement.owners) == 1
    if is_alone or not agreement.bids or conversation.name not in agreement.computing:
        yield None
    elif agreement.is_secret:
        rounds = MpycRounds(conversation)
        try:
            yield rounds
        finally:
            rounds.close()
    else:
        yield ClearRounds(conversation)
