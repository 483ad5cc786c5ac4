"""Messages to one party that are on their way."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator

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
