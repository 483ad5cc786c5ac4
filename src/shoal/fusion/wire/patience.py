"""How long a party waits for the others: no wait is without an end.

A wait ends when what it is for arrives, when the session breaks, when the other party says goodbye,
or when nobody has sent or worked for `patience` seconds. So that a long computation elsewhere is
not taken for a party that hangs, parties whose patience has run out ask the others how long they
have been idle. A party that is frozen, or unplugged, does not answer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from shoal.connectors.party.tls import Endpoint
from shoal.errors import LostPartyError

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
