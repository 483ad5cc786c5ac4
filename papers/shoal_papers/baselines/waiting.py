"""Records that leave one by one: slots to wait in, until each is due, and what was decided.

A record is due when `delta` - 1 later ones have arrived. Each has a slot, `seq % delta`, which is
free again when the next record needs it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np

from shoal.data.stream import SUPPRESS, Arrivals, Emissions, Space, State
from shoal.protocols import StreamPromises
from shoal.streams.methods.emission import KIND_OF_LEFTOVER, NONE, codes_of, emissions

MANY = 4096
"""Decisions that are joined before they go on."""


class Waits(Protocol):
    """Parameters of a method whose records leave one by one."""

    @property
    def delta(self) -> int: ...

    @property
    def leftovers(self) -> str: ...


class Slots:
    """The records that wait.

    codes: (d, slots) int32, positions and leaves; for records that lack a value, anything.
    held: (slots,) bool. lacking: (slots,) bool, records that lack a value.
    """

    def __init__(self, delta: int, space: Space) -> None:
        self.seq, self.people = np.full(delta, -1, np.int64), np.zeros(delta, np.int64)
        self.values = np.zeros((delta, space.attributes))
        self.codes = np.zeros((space.attributes, delta), np.int32)
        self.held, self.lacking = np.zeros(delta, bool), np.zeros(delta, bool)
        self._first = 0  # no earlier record waits

    def add(self, arrivals: Arrivals, codes: np.ndarray, lacking: np.ndarray) -> np.ndarray:
        """The slots of these records; at most as many as have room. codes: (d, n) int32."""
        slots = arrivals.seq % len(self.seq)
        self.seq[slots], self.people[slots] = arrivals.seq, arrivals.people
        self.values[slots], self.codes[:, slots] = arrivals.values, codes
        self.lacking[slots], self.held[slots] = lacking, True
        return slots

    def oldest(self, now: int) -> int | None:
        """The number of the oldest record that waits; now: that of the newest."""
        count = len(self.seq)
        first = max(self._first, now - count + 1)
        while first <= now and not self.held[first % count]:
            first += 1
        self._first = first
        return first if first <= now else None

    def records(self, slots: np.ndarray) -> Arrivals:
        return Arrivals(self.seq[slots], self.values[slots], self.people[slots])

    def snapshot(self) -> State:
        names = ("seq", "people", "values", "codes", "held", "lacking")
        return {f"slots.{name}": getattr(self, name).copy() for name in names}

    def restore(self, state: State) -> None:
        for name in ("seq", "people", "values", "codes", "held", "lacking"):
            setattr(self, name, state[f"slots.{name}"].copy())
        self._first = 0


class Decisions:
    """Decisions that have not gone on yet, each a release of its own."""

    def __init__(self, attributes: int) -> None:
        self._attributes = attributes
        self._parts: list[Emissions] = []
        self.release, self.made = 0, 0

    def __len__(self) -> int:
        return len(self._parts)

    def add(
        self,
        records: Arrivals,
        kind: int,
        cluster: int,
        now: int,
        box: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """These records leave under a cluster, -1 for none. box: its bounds where it is new."""
        nothing = np.zeros((0, self._attributes))
        made = np.array([] if box is None else [cluster], np.int64)
        lo, hi = (nothing, nothing) if box is None else box
        kinds, clusters = np.full(len(records), kind), np.full(len(records), cluster)
        self._parts.append(
            emissions(records, kinds, clusters, self.release, now, made, lo, hi, NONE)
        )
        self.release += 1

    def taken(self, live: np.ndarray) -> Iterator[Emissions]:
        """All of them as one, if there are any. live: clusters that may be used again."""
        if self._parts:
            joined = Emissions.joined(self._parts)
            self._parts = []
            yield replace(joined, live=live.copy())


class OneByOne(ABC):
    """A publisher that decides about each record when it arrives or at the latest when it is due.

    It has `_slots`, the records that wait; `_decided`; and `_now`, the number of the last arrival.
    at_once: records that may be taken in before any of them is looked at, by `_take_in` itself.
    """

    at_once = MANY

    def __init__(
        self, parameters: Waits, space: Space, promises: StreamPromises, seed: int
    ) -> None:
        self._space, self._promises, self._seed = space, promises, seed
        self._delta, self._leftover = parameters.delta, KIND_OF_LEFTOVER[parameters.leftovers]
        self._slots = Slots(parameters.delta, space)
        self._decided = Decisions(space.attributes)
        self._now = -1

    @property
    @abstractmethod
    def _live(self) -> np.ndarray:
        """Numbers of the clusters that may be used again."""

    @abstractmethod
    def _arrive(self, slots: np.ndarray) -> Iterator[None]:
        """Records have arrived; pauses behind each decision."""

    @abstractmethod
    def _leave(self, slot: int) -> None:
        """Decides about the record in a slot, the oldest that waits, and lacks no value."""

    def push(self, arrivals: Arrivals) -> Iterator[Emissions]:
        """Takes records in; who is due leaves."""
        codes = codes_of(self._space, arrivals.values).T
        lacking, at = np.isnan(arrivals.values).any(axis=1), 0
        while at < len(arrivals):
            part = slice(at, min(at + min(self._room, MANY), len(arrivals)))
            slots = self._take_in(arrivals.part(part), codes[:, part], lacking[part])
            for _ in self._arrive(slots):
                yield from self._taken()
            at += len(slots)
            self._now = int(arrivals.seq[at - 1])
            if not self._room:
                self._release_due(self._now - self._delta + 1)
                yield from self._taken()
        yield from self._decided.taken(self._live)

    def _take_in(self, arrivals: Arrivals, codes: np.ndarray, lacking: np.ndarray) -> np.ndarray:
        """Puts the first of these records into their slots, which it returns."""
        part = slice(0, self.at_once)
        return self._slots.add(arrivals.part(part), codes[:, part], lacking[part])

    @property
    def _room(self) -> int:
        """Records that may still come before one is due."""
        oldest = self._slots.oldest(self._now)
        return (self._now + 1 if oldest is None else oldest) + self._delta - 1 - self._now

    def expire(self, seq: int) -> Iterator[Emissions]:
        """Everybody up to this record is due, oldest first."""
        while (oldest := self._slots.oldest(self._now)) is not None and oldest <= seq:
            self._release_due(oldest)
            yield from self._taken()
        yield from self._decided.taken(self._live)

    def flush(self) -> Iterator[Emissions]:
        """Everybody is due, oldest first."""
        yield from self.expire(self._now)

    def _taken(self) -> Iterator[Emissions]:
        """What was decided, if more depends on it than k, or if it is much."""
        if self._promises.needs_more_than_k or len(self._decided) > MANY:
            yield from self._decided.taken(self._live)

    def _release_due(self, seq: int) -> None:
        slot = seq % self._delta
        if self._slots.lacking[slot]:
            self._alone(slot, SUPPRESS)
        else:
            self._leave(slot)

    def _alone(self, slot: int, kind: int, cluster: int = -1) -> None:
        """A record leaves under a cluster that is there, or under none."""
        one = np.array([slot])
        self._decided.add(self._slots.records(one), kind, cluster, self._now)
        self._slots.held[one] = False

    def snapshot(self) -> State:
        """The records that wait, and counters."""
        counters = np.array([self._decided.release, self._decided.made, self._now], np.int64)
        return {**self._slots.snapshot(), "counters": counters}

    def restore(self, state: State) -> None:
        """All of it as it was."""
        self._slots.restore(state)
        self._decided.release, self._decided.made, self._now = (int(n) for n in state["counters"])
