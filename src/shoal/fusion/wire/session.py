"""Sessions among parties: which one stands, who takes part, and when it broke.

A *session* begins when all parties have greeted each other since the last break. In its greeting a
party says how many messages it has from the other, who sends the rest again from its journal. A
party that was killed, or a broken channel, ends the session for all; its messages that need no
journal (shares of a secure round) end with it.

A party that is done and has said so, or that has everything, is not waited for: the others go on
without it. Nobody can know whether its own last message arrived, so a party that has heard
everything waits only `LAST_CALL` seconds for silent ones.
"""

import hashlib
import json
import math
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from shoal.connectors.party.journal import Journal
from shoal.connectors.party.tls import Endpoint
from shoal.errors import LostPartyError, PartyError
from shoal.fusion.wire.messages import Greeting, LinkLost, Terms

POLL = 0.2  # seconds
LAST_CALL = 10.0  # seconds
MOST_AGAIN = 50  # sessions in a row in which no message arrives
LEFT = b"L"  # journal: this party is done and has said so
SERVED = b"D"  # journal: this party has everything
_RESULT = b"M"  # journal: winner and number of steps of a round


class Sessions:
    """What this party knows of the sessions with all others.

    state: guards every attribute; notified where one changes. received: how many messages this
    party has from each of the others.
    """

    def __init__(
        self, name: str, peers: Sequence[str], terms: Terms, journal: Journal, endpoint: Endpoint
    ) -> None:
        self._name = name
        self._peers = set(peers)
        self._terms = terms
        self._journal = journal
        self._endpoint = endpoint
        self.state = threading.Condition()
        self.received = {peer: journal.count(b"R", peer) for peer in peers}
        self.leaving = False
        self._fatal: PartyError | None = None
        self._nonce = secrets.token_hex(8)
        self._greetings: dict[str, Greeting] = {}
        self._accepted: str | None = None  # the session whose messages are taken
        self._is_negotiating = False  # no session stands for the party's program
        self._nonces: dict[str, str] = {}  # of the others, in the session that stands
        self._given_up: set[str] = set()
        self._last_heard: dict[str, float] = {}  # when a greeting came in
        self._unreached: dict[str, str] = {}  # why the last greeting did not arrive
        self._again = (-1, 0, 0.0)  # messages, and the sessions that followed without more; since

    # What the party's program asks

    def negotiate(self, patience: float, is_last: bool) -> str:
        """The session that all parties agree on; waits for them.

        is_last: this party has heard everything, so a party that stays silent is not waited for.
        Otherwise raises PartyError where one does not answer within `patience` seconds.
        """
        begun = time.monotonic()
        self._check_again(begun, patience)
        with self.state:
            self._accepted = None
            self._is_negotiating = True
            for name in self._gone():
                self._greetings.pop(name, None)
        while True:
            for name in sorted(self._peers):
                self._greet(name)
            session = self._session()
            if session is None:
                waiting_for = self._peers - self._gone() - set(self._greetings)
            else:
                waiting_for = {
                    name for name in list(self._greetings) if not self._begins(name, session)
                }
            with self.state:
                if self._fatal is not None:
                    raise self._fatal
            if session is not None and not waiting_for:
                return session
            is_late = time.monotonic() - begun > patience
            if is_last:
                self._give_up(self._peers if is_late else self._silent(waiting_for, begun))
            if is_late and is_last:
                return self._session() or ""
            if is_late:
                raise self._not_reached(waiting_for, patience)
            time.sleep(POLL / 4)

    def _check_again(self, now: float, patience: float) -> None:
        """Raises PartyError where sessions follow each other and no message arrives."""
        messages, again, since = self._again
        received = sum(self.received.values())
        if received != messages:
            self._again = (received, 0, now)
            return
        self._again = (messages, again + 1, since)
        if again >= MOST_AGAIN and now - since > patience:
            raise PartyError(
                f"the other parties: {again} sessions in a row broke before a message arrived;"
                " check the network, and that all run the same version; what is done so far is kept"
            )

    def begin(self, session: str) -> dict[str, int]:
        """The others who take part, and how many messages each has; `state` must be held."""
        self._accepted = session
        self._is_negotiating = False
        self._nonces = {name: greeting.nonce for name, greeting in self._greetings.items()}
        return {name: greeting.received for name, greeting in self._greetings.items()}

    def confirm(self, session: str) -> None:
        """Takes over what the greetings report; drops the session if a party has begun anew."""
        if session != self._session():
            self._accepted = None
        for name, greeting in self._greetings.items():
            for number, result in enumerate(greeting.results):
                known = self._journal.get(_RESULT, "", number)
                if known is None:
                    self._journal.append(_RESULT, bytes(result), "", number)
                elif known[:2] != bytes(result):
                    self._fatal = PartyError(
                        f"party '{name}', greeting: has a different result of a round; the run ends"
                    )

    def check(self) -> None:
        """Raises LinkLost where the session broke, or the PartyError that ended the run."""
        with self.state:
            if self._fatal is not None:
                raise self._fatal
            if self._accepted is None:
                raise LinkLost

    def stands(self) -> bool:
        """Whether some session's messages are taken."""
        return self._accepted is not None

    def is_current(self, session: str) -> bool:
        return self._accepted == session

    def lose(self, session: str | None = None) -> None:
        """Ends this session, by default the one that stands; a fresh nonce tells the others."""
        with self.state:
            session = self._accepted if session is None else session
            if not self.leaving and session is not None and self._accepted == session:
                self._accepted = None
                self._nonce = secrets.token_hex(8)
            self.state.notify_all()

    def fail(self, error: PartyError) -> None:
        """Ends the run with this error, unless another one has ended it already."""
        with self.state:
            self._fatal = self._fatal or error
            self.state.notify_all()

    def is_done(self, name: str) -> bool:
        return (LEFT, name, 0) in self._journal

    def note(self, mark: bytes, name: str) -> None:
        """Remembers that this party is done, or has everything."""
        if (mark, name, 0) not in self._journal:
            self._journal.append(mark, b"", name)

    # What the others call

    def hear_hello(self, packed: bytes, context: Any) -> bytes:
        name = self._endpoint.caller(context)
        try:
            greeting = self._parsed(name, packed)
        except PartyError as wrong:
            self.fail(wrong)
            # nothing that the other party wrote
            refusal = _ANOTHER_AGREEMENT if _ANOTHER_AGREEMENT in str(wrong) else "refused"
            context.abort(self._endpoint.grpc.StatusCode.FAILED_PRECONDITION, refusal)
        with self.state:
            self._greetings[name] = greeting
            self._last_heard[name] = time.monotonic()
            if self._accepted is not None and self._nonces.get(name) not in (None, greeting.nonce):
                self._accepted = None
                self._nonces = {}
                self.state.notify_all()
            return self._greeting_to(name).packed(self._terms.hash)

    def hear_begin(self, packed: bytes, context: Any) -> bytes:
        self._endpoint.caller(context)
        with self.state:
            session = self._accepted
            if session is not None and session.encode() == packed:
                return b"yes"
            session = self._session()
            if not self._is_negotiating or session is None or session.encode() != packed:
                return b"no"
            self._accepted = session
            self._nonces = {name: greeting.nonce for name, greeting in self._greetings.items()}
            return b"yes"

    def _parsed(self, name: str, packed: bytes) -> Greeting:
        """A greeting that can be right; raises PartyError for any other."""
        agreement, greeting = Greeting.unpack(packed, name, self._terms)
        if agreement != self._terms.hash.hex():
            raise _another_agreement(name)
        if greeting.received and (b"S", name, greeting.received - 1) not in self._journal:
            raise PartyError(
                f"party '{name}', greeting: has {greeting.received} messages of this party, more"
                " than the journal says were sent; take the journal of this run, or make a new"
                " agreement"
            )
        return greeting

    # Greeting the others

    def _greet(self, name: str) -> None:
        """Exchanges greetings with another party; no effect where it is not reached."""
        with self.state:
            packed = self._greeting_to(name).packed(self._terms.hash)
        try:
            answer = self._endpoint.call(name, "Hello", packed)
        except self._endpoint.rpc_error as failed:
            if failed.code() == self._endpoint.grpc.StatusCode.FAILED_PRECONDITION:  # type: ignore[attr-defined]
                raise _refused_by(name, failed.details()) from None  # type: ignore[attr-defined]
            with self.state:
                self._unreached[name] = self._endpoint.why_unreached(name, failed)
                if name in self._gone():
                    self._greetings.pop(name, None)
            return
        greeting = self._parsed(name, answer)
        with self.state:
            self._greetings[name] = greeting
            self._unreached.pop(name, None)

    def _not_reached(self, names: set[str], patience: float) -> PartyError:
        listed = ", ".join(
            f"{name} ({self._unreached[name]})" if name in self._unreached else name
            for name in sorted(names)
        )
        return PartyError(
            f"parties {listed}: not reached within {patience:.0f} s; start them with the same"
            " agreement, or check addresses and certificates; what is done so far is kept"
        )

    def _greeting_to(self, name: str) -> Greeting:
        results: list[tuple[int, int]] = []
        while (
            name != self._terms.helper
            and (packed := self._journal.get(_RESULT, "", len(results))) is not None
        ):
            results.append((packed[0], packed[1]))
        return Greeting(self._nonce, self.received.get(name, 0), tuple(results))

    def _begins(self, name: str, session: str) -> bool:
        try:
            return self._endpoint.call(name, "Begin", session.encode()) == b"yes"
        except self._endpoint.rpc_error:
            return False

    def _session(self) -> str | None:
        """The session that the latest greetings make; None while one that is needed is missing."""
        with self.state:
            if self._peers - self._gone() - set(self._greetings):
                return None
            nonces = {name: greeting.nonce for name, greeting in self._greetings.items()}
            nonces[self._name] = self._nonce
            return hashlib.sha256(json.dumps(sorted(nonces.items())).encode()).hexdigest()

    def _gone(self) -> set[str]:
        """Who needs nothing more from this party, and has nothing more for it."""
        noted = {
            name
            for name in self._peers
            if any((mark, name, 0) in self._journal for mark in (LEFT, SERVED))
        }
        return noted | self._given_up

    def _silent(self, names: set[str], since: float) -> set[str]:
        """Who of these has not been heard for a while."""
        until = time.monotonic() - LAST_CALL
        return {name for name in names if max(since, self._last_heard.get(name, since)) < until}

    def _give_up(self, names: Iterable[str]) -> None:
        with self.state:
            self._given_up |= set(names)
            for name in names:
                self._greetings.pop(name, None)


_ANOTHER_AGREEMENT = "another agreement"


def _refused_by(name: str, details: str | None) -> PartyError:
    if details == _ANOTHER_AGREEMENT:
        return _another_agreement(name)
    return PartyError(
        f"party '{name}': refuses this party's greeting, and says why on its side; run the same"
        " version everywhere"
    )


def _another_agreement(name: str) -> PartyError:
    return PartyError(
        f"party '{name}': runs another agreement; compare the files, 'shoal party run --check'"
        " prints their hash"
    )


# How long a party waits for the others: no wait is without an end.
#
# A wait ends when what it is for arrives, when the session breaks, when the other party says
# goodbye, or when nobody has sent or worked for `patience` seconds. So that a long computation
# elsewhere is not taken for a party that hangs, parties whose patience has run out ask the others
# how long they have been idle. A party that is frozen, or unplugged, does not answer.


MOST_WORK = 24
"""Times its patience that a party waits while others say that they work."""


def left_early(name: str) -> LostPartyError:
    """What ends a wait for a party that has said goodbye."""
    return LostPartyError(f"party '{name}': left before the end; start it again")


class Patience:
    """The patience of one party, in seconds. peers: the others that can be asked now."""

    def __init__(
        self, seconds: float, endpoint: Endpoint, peers: Callable[[], Iterable[str]]
    ) -> None:
        self.seconds = seconds
        self._endpoint = endpoint
        self._peers = peers
        self._idle_since: float | None = None

    def hear_idle(self, packed: bytes, context: Any) -> bytes:
        """For how many seconds this party has been waiting; 0 while it works."""
        self._endpoint.caller(context)
        since = self._idle_since
        return str(0.0 if since is None else time.monotonic() - since).encode()

    def _idle_times(self) -> Iterator[float]:
        """For how long the others have been idle, those that say it."""
        for name in self._peers():
            try:
                seconds = float(self._endpoint.call(name, "Idle", b""))
            except (self._endpoint.rpc_error, ValueError):
                continue
            if seconds >= 0:  # false of NaN
                yield seconds

    @contextmanager
    def waiting(self, what: str) -> Iterator[Callable[[], None]]:
        """This party waits; yields a function to be called again and again meanwhile.

        That raises LostPartyError once patience has run out. what: who or what does not come.
        """
        begun = time.monotonic()
        until = begun + self.seconds
        latest = begun + MOST_WORK * self.seconds

        def go_on() -> None:
            nonlocal until
            now = time.monotonic()
            if now > until:
                until = min(now - min(self._idle_times(), default=math.inf) + self.seconds, latest)
            if time.monotonic() > until:
                raise LostPartyError(
                    f"{what}: nothing came within {now - begun:.0f} s; look what hangs, and start"
                    " all parties again: what is done so far is kept"
                )

        self._idle_since = begun
        try:
            yield go_on
        finally:
            self._idle_since = None


# Messages to one party that are on their way.


MOST_WAITING = 64  # more wait in the journal


class Outbox:
    """What one thread puts in, the channel's thread takes out.

    delay: seconds by which each message is held back, for experiments.
    """

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._items: queue.SimpleQueue[tuple[float, bytes] | None] = queue.SimpleQueue()

    @property
    def is_full(self) -> bool:
        return self._items.qsize() >= MOST_WAITING

    def put(self, frame: bytes) -> None:
        """Sends a message after all that were put in before."""
        self._items.put((time.monotonic() + self._delay, frame))

    def close(self) -> None:
        """Ends the channel after all that were put in before."""
        self._items.put(None)

    def frames(self) -> Iterator[bytes]:
        """The messages, each when it is due, until the channel is closed."""
        while (item := self._items.get()) is not None:
            due, frame = item
            early = due - time.monotonic()
            if early > 0:
                time.sleep(early)
            yield frame
