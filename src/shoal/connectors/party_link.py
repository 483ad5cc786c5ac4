"""The channels among parties: gRPC over mutual TLS 1.3, every message numbered and journaled.

Promise: a party talks only with holders of the keys whose certificates the agreement names, each
under its own name; every message carries the agreement's hash; each arrives once and in order,
whatever breaks in between, or the run ends.

A *session* begins when all parties have greeted each other since the last break. In its greeting a
party says how many messages it has from the other, who sends the rest again from its journal. A
party that was killed, or a broken channel, ends the session for all; its messages that need no
journal (shares of a secure round) end with it. A party that was done and said so, or to whom
everything was said, is not waited for: what is left goes on without it. Nobody can know whether its
own last word was heard: who has heard everything waits only a little for the others.

Certificates have P-256 keys while TLS 1.2 is left with suites for RSA keys only: no version but TLS
1.3 can come to be.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import secrets
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from shoal.connectors.journal import Journal
from shoal.errors import MissingExtraError, PartyError

# gRPC reads both when it is loaded
os.environ["GRPC_SSL_CIPHER_SUITES"] = "ECDHE-RSA-AES128-GCM-SHA256"
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),
)
_SERVICE = "/shoal.Party/"
_FRAME = struct.Struct("<32sBI")  # the agreement's hash, kind, number
FRAME_HEAD = _FRAME.size
_POLL = 0.2
_PIECE = 1 << 20
_LENGTH = struct.Struct("<Q")
_DONE = b"done"
_LAST_CALL = 10.0  # seconds
_MOST_WAITING = 64  # messages to one party that are on their way; more wait in the journal


class Kind(IntEnum):
    """What a message is; the list is closed."""

    ROLL = 1  # how many records, and whether the label is at hand
    MASKED = 2  # masked ids on their way through the parties
    GATHERED = 3  # masked ids for the collector
    COMMON = 4  # the masked ids that all have
    LABEL = 5  # the class of every row
    BIDS = 6  # bids in the clear; tests only
    BATCH = 7  # steps, and the child of every row under them
    PLAIN = 8  # columns that are published as they are
    SEAL = 9  # the hash of the finished table
    END = 10  # no more rounds
    SHARES = 11  # shares of a secure round; not journaled
    BYE = 12  # the party leaves: it is done, or has failed and says nothing
    KEY = 13  # what owners who trust a helper key their ids with


class LinkLost(Exception):
    """The session broke; another one can follow."""


@dataclass(frozen=True)
class Peer:
    """Another party: where it listens, and its certificate."""

    name: str
    address: str
    certificate: bytes

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.certificate)


@dataclass(frozen=True)
class Identity:
    """This party: its name, where it listens, its certificate and private key (PEM)."""

    name: str
    address: str
    certificate: bytes
    key: bytes


@dataclass(frozen=True)
class _Greeting:
    nonce: str
    received: int
    results: tuple[tuple[int, int], ...]

    def packed(self, agreement: bytes) -> bytes:
        return json.dumps([agreement.hex(), self.nonce, self.received, self.results]).encode()

    @classmethod
    def read(cls, packed: bytes) -> tuple[str, _Greeting]:
        agreement, nonce, received, results = json.loads(packed)
        return agreement, cls(nonce, int(received), tuple((int(w), int(b)) for w, b in results))


def fingerprint_of(certificate: bytes) -> str:
    """SHA-256 of a certificate (PEM) in its binary form."""
    import ssl

    return "sha256:" + hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.decode())).hexdigest()


class PartyLink:
    """The channels of one party. Messages received are kept in the journal and read from there, in
    a resumed run too.

    helper: the party that learns no result of a round.
    on_shares: called with (sender, content) for every message of a secure round.
    record: called with (receiver, content) for every message of a secure round that leaves; the
    journal has the others.
    delay: seconds by which messages are held back, for experiments.
    """

    def __init__(
        self,
        identity: Identity,
        peers: Sequence[Peer],
        agreement: bytes,
        journal: Journal,
        *,
        helper: str | None = None,
        patience: float = 600.0,
        delay: float = 0.0,
        record: Callable[[str, bytes], None] = lambda receiver, content: None,
    ) -> None:
        self._identity, self._agreement, self._journal = identity, agreement, journal
        self._peers = {peer.name: peer for peer in peers}
        self._helper, self._patience, self._delay, self._record = helper, patience, delay, record
        self.on_shares: Callable[[str, bytes], None] = lambda sender, content: None
        self.bytes_sent: Counter[str] = Counter()
        self.messages_sent: Counter[str] = Counter()
        self._state = threading.Condition()
        self._nonce = secrets.token_hex(8)
        self._received = {name: journal.count(b"R", name) for name in self._peers}
        self._read = dict.fromkeys(self._peers, 0)
        self._sent = dict.fromkeys(self._peers, 0)
        self._greetings: dict[str, _Greeting] = {}
        self._accepted: str | None = None  # the session whose messages are taken
        self._greeting_others = False  # no session stands for the party's program
        self._resend_from = dict.fromkeys(self._peers, 0)
        self._nonces: dict[str, str] = {}  # of the others, in the session that stands
        self._closed: set[str] = set()
        self._suppressed_in_original: set[str] = set()
        self._heard: dict[str, float] = {}  # when a greeting came in
        self._fatal: PartyError | None = None
        self._outbox: dict[str, queue.SimpleQueue[tuple[float, bytes] | None]] = {}
        self._talks: dict[str, Any] = {}
        self._leaving = False
        self._grpc = _grpc()
        self._server = self._serve()
        self._channels = {name: self._channel(peer) for name, peer in self._peers.items()}

    # Sessions

    def establish(self, is_last: bool = False) -> None:
        """Begins a session with all others, who tell the results of rounds that this party missed.

        is_last: this party has heard everything: who stays silent for a while is not waited for.
        Else raises PartyError where somebody is not there in time.
        """
        begun = time.monotonic()
        self._hang_up()
        with self._state:
            self._accepted, self._greeting_others = None, True
            for name in self._gone():
                self._greetings.pop(name, None)
        while True:
            for name in sorted(self._peers):
                self._greet(name)
            session = self._session()
            if session is None:
                waiting_for = set(self._peers) - self._gone() - set(self._greetings)
            else:
                waiting_for = {
                    name for name in list(self._greetings) if not self._begins(name, session)
                }
            with self._state:
                if self._fatal is not None:
                    raise self._fatal
            if session is not None and not waiting_for:
                return self._open(session)
            late = time.monotonic() - begun > self._patience
            if is_last:
                self._give_up(self._peers if late else self._silent(waiting_for, begun))
            if late and is_last:
                return self._open(self._session() or "")
            if late:
                raise PartyError(
                    f"parties {', '.join(sorted(waiting_for))}: not reached within"
                    f" {self._patience:.0f} s; start them with the same agreement, or check"
                    " addresses and certificates; what is done so far is kept"
                )
            time.sleep(_POLL / 4)

    def send(self, to: str, kind: Kind, content: bytes | Callable[[], bytes]) -> None:
        """Sends a message, once in all sessions. content: may be a function, called only if it was
        never sent.
        """
        number = self._sent[to]
        self._sent[to] += 1
        frame = self._journal.get(b"S", to, number)
        if frame is None:
            body = content() if callable(content) else content
            frame = _FRAME.pack(self._agreement, kind, number) + body
            self._journal.append(b"S", frame, to, number)
        self._count(kind, len(frame))
        with self._state:
            self._check()
            if to not in self._outbox or number < self._resend_from[to]:
                return
            while self._outbox[to].qsize() >= _MOST_WAITING:
                self._state.wait(_POLL / 100)
                self._check()
            self._outbox[to].put((time.monotonic() + self._delay, frame))

    def send_long(self, to: str, kind: Kind, content: bytes | memoryview) -> None:
        """Sends a message of any length in pieces, its length before it."""
        view = memoryview(content)
        self.send(to, kind, _LENGTH.pack(len(view)))
        for start in range(0, len(view), _PIECE):
            self.send(to, kind, bytes(view[start : start + _PIECE]))

    def receive_long(self, sender: str, kind: Kind, most: int | None = None) -> bytearray:
        """The next message that came in pieces; raises PartyError where it is longer than `most`,
        or than it said.
        """
        head = self.receive(sender, kind)
        length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else -1
        if length < 0 or (most is not None and length > most):
            raise PartyError(
                f"party '{sender}': sent a message of another length than it may have; the run ends"
            )
        content = bytearray()
        while len(content) < length:
            piece = self.receive(sender, kind)
            if not piece or len(content) + len(piece) > length:
                raise PartyError(
                    f"party '{sender}': sent a message of another length than it said; the run ends"
                )
            content += piece
        return content

    def sent_before(self, to: str) -> int:
        """How many of the next messages to a party were sent in an earlier run already."""
        number = self._sent[to]
        while (b"S", to, number) in self._journal:
            number += 1
        return number - self._sent[to]

    def has_more(self, sender: str) -> bool:
        """Whether a message of this party waits to be received."""
        with self._state:
            return self._received[sender] > self._read[sender]

    def receive(self, sender: str, kind: Kind) -> bytes:
        """The next message of a party, which must be of this kind; waits for it. Raises LinkLost or
        PartyError.
        """
        number = self._read[sender]
        with self._state:
            while self._received[sender] <= number:
                self._check()
                if sender in self._closed:
                    raise PartyError(f"party '{sender}': left before the end; start it again")
                self._state.wait(_POLL)
        self._read[sender] += 1
        frame = self._journal.get(b"R", sender, number)
        assert frame is not None
        found = frame[_FRAME.size - 5]
        if found != kind:
            raise PartyError(
                f"party '{sender}': sent another message than comes next; run the same version"
                " everywhere"
            )
        return frame[_FRAME.size :]

    def send_shares(self, to: str, content: bytes) -> None:
        """Sends a message of a secure round; it is lost if the session breaks."""
        self._record(to, content)
        frame = _FRAME.pack(self._agreement, Kind.SHARES, 0) + content
        self._count(Kind.SHARES, len(frame))
        with self._state:
            if self._accepted is not None and to in self._outbox:
                self._outbox[to].put((time.monotonic() + self._delay, frame))

    def check(self) -> None:
        """Raises LinkLost where the session broke, or the PartyError that ended the run."""
        with self._state:
            self._check()

    def rewind(self) -> None:
        """Before the party's program runs again from its begin: what it reads and sends starts at
        the first message.
        """
        self._read = dict.fromkeys(self._peers, 0)
        self._sent = dict.fromkeys(self._peers, 0)
        self.bytes_sent.clear()
        self.messages_sent.clear()

    def finish(self) -> None:
        """Waits until the others have everything, and leaves. Raises LinkLost if one does not."""
        self.leave(_DONE)
        try:
            for name, talk in self._talks.items():
                talk.result(timeout=self._patience)
                self._mark(b"D", name)
        except Exception:
            self._leaving = False
            self._break(self._accepted)
            raise LinkLost from None
        with self._state:
            deadline = time.monotonic() + 5
            while len(self._closed) < len(self._peers) and time.monotonic() < deadline:
                self._state.wait(_POLL)
        self.stop()

    def leave(self, why: bytes = b"", seconds: float = 0) -> None:
        """Tells the others that no more will come, else they would wait; and gives them some
        seconds to hear it.
        """
        self._leaving = True
        for outbox in self._outbox.values():
            outbox.put(
                (time.monotonic() + self._delay, _FRAME.pack(self._agreement, Kind.BYE, 0) + why)
            )
            outbox.put(None)
        for talk in self._talks.values() if seconds else ():
            with suppress(Exception):
                talk.result(timeout=seconds)

    def stop(self) -> None:
        """Closes all channels at once."""
        self._leaving = True
        for outbox in self._outbox.values():
            outbox.put(None)
        for channel in self._channels.values():
            channel.close()
        self._server.stop(0.2)

    def _check(self) -> None:
        if self._fatal is not None:
            raise self._fatal
        if self._accepted is None:
            raise LinkLost

    def _silent(self, names: set[str], since: float) -> set[str]:
        """Who of these has not been heard for a while."""
        until = time.monotonic() - _LAST_CALL
        return {name for name in names if max(since, self._heard.get(name, since)) < until}

    def _give_up(self, names: Iterable[str]) -> None:
        with self._state:
            self._suppressed_in_original |= set(names)
            for name in names:
                self._greetings.pop(name, None)

    def _hang_up(self) -> None:
        """Ends the streams of the last session, which would keep the others' threads."""
        for name, talk in self._talks.items():
            self._outbox[name].put(None)
            talk.cancel()

    def _break(self, session: str | None) -> None:
        """The session ends here, unless another one stands already; a fresh nonce tells the others."""
        with self._state:
            if not self._leaving and session is not None and self._accepted == session:
                self._accepted = None
                self._nonce = secrets.token_hex(8)
            self._state.notify_all()

    def _open(self, session: str) -> None:
        with self._state:
            self._accepted, self._greeting_others = session, False
            self._nonces = {name: greeting.nonce for name, greeting in self._greetings.items()}
            self._closed = set(self._peers) - set(self._greetings)
            self._resend_from = {
                name: greeting.received for name, greeting in self._greetings.items()
            }
            self._outbox = {name: queue.SimpleQueue() for name in self._greetings}
            self._talks = {}
            for name in self._outbox:
                metadata = (("party", self._identity.name), ("session", session))
                talk = self._channels[name].stream_unary(_SERVICE + "Talk")
                call = talk.future(_sent_from(self._outbox[name]), metadata=metadata)
                call.add_done_callback(
                    lambda done: None if done.code() == self._ok else self._break(session)
                )
                self._talks[name] = call
            if session != self._session():  # somebody began anew in the meantime
                self._accepted = None
            for greeting in self._greetings.values():
                for number, result in enumerate(greeting.results):
                    known = self._journal.get(b"M", "", number)
                    if known is None:
                        self._journal.append(b"M", bytes(result), "", number)
                    elif known != bytes(result):
                        self._fatal = PartyError(
                            "another party: tells another result of a round; the run ends"
                        )

    def _gone(self) -> set[str]:
        """Who needs nothing more from this party, and has nothing more for it."""
        marks = b"L", b"D"  # it left, it has everything
        marked = {
            name for name in self._peers if any((mark, name, 0) in self._journal for mark in marks)
        }
        return marked | self._suppressed_in_original

    def _mark(self, mark: bytes, name: str) -> None:
        if (mark, name, 0) not in self._journal:
            self._journal.append(mark, b"", name)

    def _session(self) -> str | None:
        """The session that all parties' latest greetings make; None before all have greeted who are
        needed.
        """
        with self._state:
            if set(self._peers) - self._gone() - set(self._greetings):
                return None
            nonces = {name: greeting.nonce for name, greeting in self._greetings.items()}
            nonces[self._identity.name] = self._nonce
            return hashlib.sha256(json.dumps(sorted(nonces.items())).encode()).hexdigest()

    def _greeting(self, name: str) -> _Greeting:
        results: list[tuple[int, int]] = []
        while (
            name != self._helper
            and (packed := self._journal.get(b"M", "", len(results))) is not None
        ):
            results.append((packed[0], packed[1]))
        return _Greeting(self._nonce, self._received.get(name, 0), tuple(results))

    def _greet(self, name: str) -> None:
        """Greets another party and hears its greeting; without effect where it is not there."""
        with self._state:
            packed = self._greeting(name).packed(self._agreement)
        try:
            answer = self._call(name, "Hello", packed)
        except self._grpc.RpcError as failed:
            if failed.code() == self._grpc.StatusCode.FAILED_PRECONDITION:
                raise PartyError(
                    f"party '{name}': runs another agreement; compare the files, 'shoal party show'"
                    " prints their hash"
                ) from None
            with self._state:
                if name in self._gone():
                    self._greetings.pop(name, None)
            return
        agreement, greeting = _Greeting.read(answer)
        if agreement != self._agreement.hex():
            raise PartyError(
                f"party '{name}': runs another agreement; compare the files, 'shoal party show'"
                " prints their hash"
            )
        with self._state:
            self._greetings[name] = greeting

    def _begins(self, name: str, session: str) -> bool:
        try:
            return self._call(name, "Begin", session.encode()) == b"yes"
        except self._grpc.RpcError:
            return False

    def _call(self, name: str, method: str, packed: bytes) -> bytes:
        metadata = (("party", self._identity.name),)
        return self._channels[name].unary_unary(_SERVICE + method)(
            packed, timeout=3, metadata=metadata
        )

    def _count(self, kind: Kind, size: int) -> None:
        self.bytes_sent[kind.name.lower()] += size
        self.messages_sent[kind.name.lower()] += 1

    # What the others call

    def _serve(self) -> Any:
        grpc = self._grpc
        self._ok = grpc.StatusCode.OK
        handlers = {
            "Hello": grpc.unary_unary_rpc_method_handler(self._hear_hello),
            "Begin": grpc.unary_unary_rpc_method_handler(self._hear_begin),
            "Talk": grpc.stream_unary_rpc_method_handler(self._hear_talk),
        }
        service = grpc.method_handlers_generic_handler(_SERVICE.strip("/"), handlers)
        server = grpc.server(
            futures.ThreadPoolExecutor(4 * len(self._peers) + 4), [service], options=_OPTIONS
        )
        roots = b"".join(peer.certificate for peer in self._peers.values())
        pair = [(self._identity.key, self._identity.certificate)]
        credentials = grpc.ssl_server_credentials(
            pair, root_certificates=roots, require_client_auth=True
        )
        try:
            bound = server.add_secure_port(self._identity.address, credentials)
        except RuntimeError:
            bound = 0
        if not bound:
            raise PartyError(
                f"address '{self._identity.address}': can't be listened on; free it or agree on"
                " another one"
            )
        server.start()
        return server

    def _channel(self, peer: Peer) -> Any:
        grpc = self._grpc
        credentials = grpc.ssl_channel_credentials(
            peer.certificate, self._identity.key, self._identity.certificate
        )
        reconnect = (
            ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.max_reconnect_backoff_ms", 500),
        )
        named = (("grpc.ssl_target_name_override", peer.name), *_OPTIONS, *reconnect)
        return grpc.secure_channel(peer.address, credentials, options=named)

    def _caller(self, context: Any) -> str:
        """The name of the party that calls; its certificate must be the one that the agreement has
        for that name.
        """
        name = dict(context.invocation_metadata()).get("party", "")
        shown = context.auth_context().get("x509_pem_cert", [b""])[0]
        if (
            name not in self._peers
            or not shown
            or fingerprint_of(shown) != self._peers[name].fingerprint
        ):
            context.abort(
                self._grpc.StatusCode.UNAUTHENTICATED,
                "the certificate is not the one agreed for this name",
            )
        return name

    def _hear_hello(self, packed: bytes, context: Any) -> bytes:
        name = self._caller(context)
        agreement, greeting = _Greeting.read(packed)
        if agreement != self._agreement.hex():
            with self._state:
                self._fatal = PartyError(
                    f"party '{name}': runs another agreement; compare the files, 'shoal party show'"
                    " prints their hash"
                )
                self._state.notify_all()
            context.abort(self._grpc.StatusCode.FAILED_PRECONDITION, "another agreement")
        with self._state:
            self._greetings[name], self._heard[name] = greeting, time.monotonic()
            if self._accepted is not None and self._nonces.get(name) not in (None, greeting.nonce):
                self._accepted = None
                self._nonces = {}
                self._state.notify_all()
            return self._greeting(name).packed(self._agreement)

    def _hear_begin(self, packed: bytes, context: Any) -> bytes:
        self._caller(context)
        session = packed.decode()
        with self._state:
            if self._accepted == session:
                return b"yes"
            if not self._greeting_others or self._session() != session:
                return b"no"
            self._accepted, self._nonces = (
                session,
                {name: g.nonce for name, g in self._greetings.items()},
            )
            return b"yes"

    def _hear_talk(self, frames: Iterator[bytes], context: Any) -> bytes:
        name = self._caller(context)
        session = dict(context.invocation_metadata()).get("session", "")
        ended = False
        try:
            for frame in frames:
                # a request iterator also just ends when its sender died: only a word of goodbye is
                # an end
                ended = self._hear(name, session, frame) == Kind.BYE
        except PartyError as wrong:
            with self._state:
                self._fatal = self._fatal or wrong
                self._state.notify_all()
            context.abort(self._grpc.StatusCode.FAILED_PRECONDITION, "refused")
        except LinkLost:
            context.abort(self._grpc.StatusCode.ABORTED, "another session")
        finally:
            with self._state:
                is_current = self._accepted == session
                if ended and is_current:
                    self._closed.add(name)
                    self._state.notify_all()
            if not ended and is_current:
                self._break(session)
        return b""

    def _hear(self, name: str, session: str, frame: bytes) -> int:
        """Takes one message, of this session, of this agreement, and the next in order; what kind
        it is.
        """
        if len(frame) < _FRAME.size:
            raise PartyError(
                f"party '{name}': sent what is no message; run the same version everywhere"
            )
        agreement, kind, number = _FRAME.unpack_from(frame)
        if agreement != self._agreement:
            raise PartyError(f"party '{name}': sent a message of another agreement; the run ends")
        with self._state:
            if self._accepted != session:
                raise LinkLost
        if kind == Kind.SHARES:
            self.on_shares(name, frame[_FRAME.size :])
        if kind == Kind.BYE and frame[_FRAME.size :] == _DONE:
            self._mark(b"L", name)
        if kind in (Kind.SHARES, Kind.BYE):
            return int(kind)
        with self._state:
            if number != self._received[name]:
                raise PartyError(
                    f"party '{name}': sent a message out of order or a second time; the run ends"
                )
            self._journal.append(b"R", frame, name, number)
            self._received[name] += 1
            self._state.notify_all()
        return int(kind)


def _sent_from(outbox: queue.SimpleQueue[tuple[float, bytes] | None]) -> Iterator[bytes]:
    while (item := outbox.get()) is not None:
        due, frame = item
        early = due - time.monotonic()
        if early > 0:
            time.sleep(early)
        yield frame


def _grpc() -> Any:
    try:
        import grpc
    except ImportError:
        raise MissingExtraError.of("talking to other parties needs gRPC", "fuse") from None
    return grpc


def make_keys(name: str) -> tuple[bytes, bytes]:
    """A fresh private key and a certificate of its own for that name (PEM); the certificate may be
    shown.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID
    except ImportError:
        raise MissingExtraError.of("making keys needs cryptography", "fuse") from None
    import datetime

    key = ec.generate_private_key(ec.SECP256R1())
    named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(named)
        .issuer_name(named)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=825))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private, certificate.public_bytes(serialization.Encoding.PEM)
