"""Messages among parties: numbered, journaled, and sent again after a break.

Promise: a party talks only with holders of the keys whose certificates the agreement names, each
under its own name; every message carries the agreement's hash; each arrives once and in order,
whatever breaks in between, or the run ends.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from shoal.connectors.party.journal import Journal
from shoal.connectors.party.tls import Endpoint, Identity, Peer
from shoal.errors import PartyError
from shoal.fusion.wire import messages
from shoal.fusion.wire.messages import Parser, Terms
from shoal.fusion.wire.session import LEFT, POLL, SERVED, Outbox, Patience, Sessions, left_early

GOODBYES = 5.0  # seconds that a party which is done waits for those of the others
_MOST_EARLY = 1 << 14  # messages of a secure round that wait for this party to open the session


class PartyLink:
    """The channels of one party.

    What it received is kept in the journal and read from there, also after a restart.

    terms: the agreement's hash, and what the others may send.
    on_shares: called with (sender, content) for every message of a secure round.
    record: called with (receiver, content) for every message of a secure round that is sent; the
    journal has the others.
    delay: seconds by which messages are held back, for experiments.
    """

    def __init__(
        self,
        identity: Identity,
        peers: Sequence[Peer],
        terms: Terms,
        journal: Journal,
        *,
        patience: float = 600.0,
        delay: float = 0.0,
        record: Callable[[str, bytes], None] = lambda receiver, content: None,
    ) -> None:
        self._agreement = terms.hash
        self._in_pieces = terms.in_pieces
        self._journal = journal
        self._peers = [peer.name for peer in peers]
        self._delay = delay
        self._record = record
        self.on_shares: Callable[[str, bytes], None] = lambda sender, content: None
        self.bytes_sent: Counter[str] = Counter()
        self.messages_sent: Counter[str] = Counter()
        self._read = dict.fromkeys(self._peers, 0)
        self._sent = dict.fromkeys(self._peers, 0)
        self._resend_from = dict.fromkeys(self._peers, 0)
        self._closed: set[str] = set()
        self._opened: str | None = None  # the session that this party's program is in
        self._early_shares: list[tuple[str, str, bytes]] = []  # session, sender, content
        self._outbox: dict[str, Outbox] = {}
        self._streams: dict[str, Any] = {}
        self._endpoint = Endpoint(identity, peers, terms.most_frame)
        self._patience = Patience(patience, self._endpoint, lambda: tuple(self._outbox))
        self._sessions = Sessions(identity.name, self._peers, terms, journal, self._endpoint)
        self._state = self._sessions.state
        self._parsers = {name: self._parser_of(name, terms) for name in self._peers}
        self._endpoint.serve(
            {
                "Hello": self._sessions.hear_hello,
                "Begin": self._sessions.hear_begin,
                "Idle": self._patience.hear_idle,
            },
            {"Talk": self._hear_stream},
        )

    def _parser_of(self, name: str, terms: Terms) -> Parser:
        """The parser of a party's messages, after those that the journal has."""
        parser = Parser(name, terms.limits.get(name, {}))
        for number in range(self._sessions.received[name]):
            frame = self._journal.get(b"R", name, number) or b""
            parser.take(messages.unpack_head(frame)[1], frame[messages.FRAME_HEAD :])
        return parser

    # Sessions

    def establish(self, is_last: bool = False) -> None:
        """Begins a session with all others, who report results of rounds that this party missed.

        is_last: this party has heard everything, so a party that stays silent is not waited for.
        Otherwise raises PartyError where one does not answer in time.
        """
        with self._state:
            self._opened = None
        self._hang_up()
        with self._patience.waiting("the other parties"):
            session = self._sessions.negotiate(self._patience.seconds, is_last)
        self._open(session)

    def rewind(self) -> None:
        """Starts reading and sending at the first message, before the program runs again."""
        self._read = dict.fromkeys(self._peers, 0)
        self._sent = dict.fromkeys(self._peers, 0)
        self.bytes_sent.clear()
        self.messages_sent.clear()

    def finish(self) -> None:
        """Waits until the others have everything or say they are done; else raises LinkLost."""
        self.leave(messages.DONE)
        until = time.monotonic() + self._patience.seconds
        try:
            for name, stream in self._streams.items():
                with self._patience.waiting(f"party '{name}'"), self._unless_done(name):
                    stream.result(timeout=max(POLL, until - time.monotonic()))
                self._sessions.note(SERVED, name)
        except Exception:
            self._sessions.leaving = False
            self._sessions.lose()
            raise messages.LinkLost from None
        with self._state:
            deadline = time.monotonic() + GOODBYES
            while len(self._closed) < len(self._peers) and time.monotonic() < deadline:
                self._state.wait(POLL)
        self.stop()

    @contextmanager
    def _unless_done(self, name: str) -> Iterator[None]:
        """What breaks the channel to a party is nothing once it has said that it is done."""
        try:
            yield
        except Exception:
            if not self._sessions.is_done(name):
                raise

    def leave(self, why: bytes = b"", seconds: float = 0) -> None:
        """Says goodbye, so that nobody waits for more; allows some seconds for it to arrive."""
        self._sessions.leaving = True
        goodbye = messages.pack_frame(self._agreement, messages.MessageKind.BYE, 0, why)
        for outbox in self._outbox.values():
            outbox.put(goodbye)
            outbox.close()
        for stream in self._streams.values() if seconds else ():
            with suppress(Exception):
                stream.result(timeout=seconds)

    def stop(self) -> None:
        self._sessions.leaving = True
        for outbox in self._outbox.values():
            outbox.close()
        self._endpoint.close()

    def _hang_up(self) -> None:
        """Ends the streams of the last session, which would keep the others' threads."""
        for name, stream in self._streams.items():
            self._outbox[name].close()
            stream.cancel()

    def _open(self, session: str) -> None:
        with self._state:
            self._opened = session
            self._resend_from = self._sessions.begin(session)
            self._closed = set(self._peers) - set(self._resend_from)
            self._outbox = {name: Outbox(self._delay) for name in self._resend_from}
            self._streams = {}
            for name, outbox in self._outbox.items():
                stream = self._endpoint.stream(name, "Talk", outbox.frames(), session)
                stream.add_done_callback(partial(self._end_stream, name, session))
                self._streams[name] = stream
            self._sessions.confirm(session)
            early = [entry[1:] for entry in self._early_shares if entry[0] == session]
            self._early_shares = []
        for sender, content in early:
            self.on_shares(sender, content)

    def _end_stream(self, name: str, session: str, stream: Any) -> None:
        """What the end of a stream means: nothing, a refusal, or a channel that broke."""
        status = self._endpoint.grpc.StatusCode
        if stream.code() == status.FAILED_PRECONDITION and not self._sessions.leaving:
            self._sessions.fail(
                PartyError(
                    f"party '{name}': refuses a message of this party, and says why on its side;"
                    " run the same version everywhere"
                )
            )
        elif stream.code() != status.OK and not self._sessions.is_done(name):
            self._sessions.lose(session)

    # Sending

    def send(self, to: str, kind: messages.MessageKind, content: bytes | memoryview) -> None:
        """Sends a message, once in all sessions; perhaps in pieces, its length before it."""
        if kind not in self._in_pieces:
            self._send(to, kind, bytes(content))
            return
        self._send(to, kind, messages.LENGTH.pack(len(content)))
        for start in range(0, len(content), messages.PIECE):
            self._send(to, kind, bytes(content[start : start + messages.PIECE]))

    def _send(self, to: str, kind: messages.MessageKind, content: bytes) -> None:
        number = self._sent[to]
        self._sent[to] += 1
        frame = self._journal.get(b"S", to, number)
        if frame is None:
            frame = messages.pack_frame(self._agreement, kind, number, content)
            self._journal.append(b"S", frame, to, number)
        self._count(kind, len(frame))
        if not self._put(to, number, frame):
            with self._patience.waiting(f"party '{to}'") as go_on:
                while not self._put(to, number, frame):
                    time.sleep(POLL / 100)
                    go_on()

    def _put(self, to: str, number: int, frame: bytes) -> bool:
        """Whether the message is on its way, or was before; False while too many others are."""
        with self._state:
            self._sessions.check()
            if to not in self._outbox or number < self._resend_from[to]:
                return True
            if self._outbox[to].is_full:
                return False
            self._outbox[to].put(frame)
            return True

    def sent_before(self, to: str) -> int:
        """How many of the next messages to a party were sent in an earlier run already."""
        number = self._sent[to]
        while (b"S", to, number) in self._journal:
            number += 1
        return number - self._sent[to]

    def send_shares(self, to: str, content: bytes) -> None:
        """Sends a message of a secure round; it is lost if the session breaks."""
        self._record(to, content)
        frame = messages.pack_frame(self._agreement, messages.MessageKind.SHARES, 0, content)
        self._count(messages.MessageKind.SHARES, len(frame))
        with self._state:
            if self._sessions.stands() and to in self._outbox:
                self._outbox[to].put(frame)

    def _count(self, kind: messages.MessageKind, size: int) -> None:
        self.bytes_sent[kind.name.lower()] += size
        self.messages_sent[kind.name.lower()] += 1

    # Receiving

    def receive(self, sender: str, kind: messages.MessageKind) -> bytes | bytearray:
        """The next message of a party, which must be of this kind; waits for it.

        One that comes in pieces is as long as the parser found. Raises LinkLost where the session
        breaks first, PartyError where the run has ended, or the other party has left, or patience
        has run out.
        """
        first = self._receive(sender, kind)
        if kind not in self._in_pieces:
            return first
        content = bytearray()
        while len(content) < messages.LENGTH.unpack(first)[0]:
            content += self._receive(sender, kind)
        return content

    def _receive(self, sender: str, kind: messages.MessageKind) -> bytes:
        number = self._read[sender]
        with self._patience.waiting(f"party '{sender}'") as go_on:
            while not self._has_come(sender, number):
                go_on()
        self._read[sender] += 1
        frame = self._journal.get(b"R", sender, number)
        assert frame is not None
        found = messages.MessageKind(messages.unpack_head(frame)[1])
        if found != kind:
            raise messages.refused(sender, found, "is not what comes next")
        return frame[messages.FRAME_HEAD :]

    def _has_come(self, sender: str, number: int) -> bool:
        """Whether there is a message of this number; waits a moment for it."""
        with self._state:
            if self._sessions.received[sender] <= number:
                self._sessions.check()
                if sender in self._closed:
                    raise left_early(sender)
                self._state.wait(POLL)
            return self._sessions.received[sender] > number

    @contextmanager
    def waiting_for_round(self) -> Iterator[Callable[[], None]]:
        """This party waits for the result of a round; yields what to call meanwhile.

        That raises as `receive` does, but a party that is done may leave.
        """
        with self._patience.waiting("a secure round") as go_on:

            def check() -> None:
                self._sessions.check()
                for name in tuple(self._closed):
                    if not self._sessions.is_done(name):
                        raise left_early(name)
                go_on()

            yield check

    def has_more(self, sender: str) -> bool:
        """Whether a message is there, or a goodbye in the session that stands."""
        with self._state:
            return self._sessions.received[sender] > self._read[sender] or sender in self._closed

    def _hear_stream(self, frames: Iterator[bytes], context: Any) -> bytes:
        name = self._endpoint.caller(context)
        session = dict(context.invocation_metadata()).get("session", "")
        status = self._endpoint.grpc.StatusCode
        ended = False
        try:
            for frame in frames:
                # the iterator also just stops when the sender died: only a goodbye is an end
                ended = self._hear(name, session, frame) == messages.MessageKind.BYE
        except PartyError as wrong:
            self._sessions.fail(wrong)
            context.abort(status.FAILED_PRECONDITION, "refused")
        except messages.LinkLost:
            context.abort(status.ABORTED, "another session")
        finally:
            with self._state:
                is_current = self._sessions.is_current(session)
                if ended and is_current:
                    self._closed.add(name)
                    self._state.notify_all()
            if not ended and is_current:
                self._sessions.lose(session)
        return b""

    def _hear(self, name: str, session: str, frame: bytes) -> int:
        """Takes the next message of this session and agreement in order; returns its kind."""
        if len(frame) < messages.FRAME_HEAD:
            raise PartyError(
                f"party '{name}': sent something that is not a message; run the same version"
                " everywhere"
            )
        agreement, kind, number = messages.unpack_head(frame)
        if agreement != self._agreement:
            raise PartyError(f"party '{name}': sent a message of another agreement; the run ends")
        content = frame[messages.FRAME_HEAD :]
        with self._state:
            if not self._sessions.is_current(session):
                raise messages.LinkLost
            is_journaled = kind not in messages.NOT_JOURNALED
            if is_journaled and number != self._sessions.received[name]:
                raise PartyError(
                    f"party '{name}': sent a message out of order or a second time; the run ends"
                )
            self._parsers[name].take(kind, content)
            if is_journaled:
                self._journal.append(b"R", frame, name, number)
                self._sessions.received[name] += 1
                self._state.notify_all()
        if kind == messages.MessageKind.SHARES:
            self._hear_shares(name, session, content)
        if kind == messages.MessageKind.BYE and content == messages.DONE:
            self._sessions.note(LEFT, name)
        return int(kind)

    def _hear_shares(self, name: str, session: str, content: bytes) -> None:
        """Passes on shares of the session that the program is in; keeps those of the next one.

        Another party may be in a session already that this one has agreed to and not opened. If
        that session dies before, its shares must not reach the secure rounds of the one after it.
        """
        with self._state:
            if session != self._opened:
                kept = [entry for entry in self._early_shares if entry[0] == session]
                if len(kept) >= _MOST_EARLY:
                    raise messages.refused(
                        name, messages.MessageKind.SHARES, "come before their session stands"
                    )
                self._early_shares = [*kept, (session, name, content)]
                return
            on_shares = self.on_shares  # of this session, whatever comes after the lock
        on_shares(name, content)
