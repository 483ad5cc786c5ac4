"""A run's status for those who watch, written at each commit; see `streams/stream_status.py`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shoal.errors import PromiseError
from shoal.streams import stream_status as status
from shoal.streams.core import Batch, StreamCore
from shoal.streams.gate import Gate
from shoal.streams.options import StreamOptions
from shoal.streams.progress import StreamCounters
from shoal.streams.stream_status import StreamLog, write_status
from shoal.version import VERSION


class StatusWriter:
    """Follows a run; without a checkpoint there is nothing to watch, and it writes nothing."""

    def __init__(self, options: StreamOptions, core: StreamCore) -> None:
        policy = core.policy
        self._folder = options.checkpoint
        self._promises = [
            {"model": model.model, "attributes": list(model.attributes), "asked": model.asked}
            for model in policy.build_promises()
        ]
        self._method = policy.method_name
        self._allowed = policy.parameters_for("stream").get("delta")
        self._log = StreamLog(time.time())
        self._done = dict.fromkeys(status.COUNTS, 0.0)
        self._bad = 0
        self._longest = 0.0
        self._content: dict[str, Any] = {}

    def begin(self, step: int, counters: StreamCounters, gate: Gate, waiting: int) -> None:
        """Takes up what an earlier run of the stream left. step: of the last commit, or 0."""
        is_resumed = step > 0
        now = time.time()
        if is_resumed and self._folder is not None:
            self._log = StreamLog.read(self._folder, now)
        self._done, self._bad = _totals(counters, gate), counters.bad
        if not counters.closed:
            self._log.note("resumed" if is_resumed else "begun", now)
        if is_resumed and self._folder is not None:
            # a run that was killed left the status of the commit before
            self._content = self._counted(step, counters, gate, waiting)
            write_status(self._folder, self._content)

    def add(self, batch: Batch) -> None:
        """What leaves in the step that is about to be committed."""
        decided = batch.decided
        self.waited(int((decided.emitted - decided.seq).max(initial=0)))

    def waited(self, longest: int) -> None:
        """The longest wait of records that leave in the step that is about to be committed."""
        self._longest = max(self._longest, float(longest))

    def commit(self, step: int, counters: StreamCounters, gate: Gate, waiting: int) -> None:
        """The status after a commit. step: its number."""
        if self._folder is None:
            return
        now, totals = time.time(), _totals(counters, gate)
        done = {name: totals[name] - self._done[name] for name in totals}
        self._log.commit(now, done, self._longest)
        if counters.bad > self._bad:
            self._log.note("set aside", now, counters.bad - self._bad)
        self._done, self._bad, self._longest = totals, counters.bad, 0.0
        if counters.closed:
            self._log.note(status.ENDED, now)
        self._content = self._counted(step, counters, gate, waiting)
        write_status(self._folder, self._content)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Says how a run was stopped; what the status counts is what was committed last."""
        try:
            yield
        except BaseException as cause:
            self.stopped(cause)
            raise

    def stopped(self, cause: BaseException) -> None:
        """Says why a run ended before its source did."""
        state = status.STOPPED if is_stop(cause) else status.FAILED
        self._stop(status.BROKEN if isinstance(cause, PromiseError) else state)

    def _stop(self, state: str) -> None:
        if self._folder is None or not self._content:
            return
        now = time.time()
        self._log.note(state, now)
        verdict = self._content["verdict"] | {"holds": state != status.BROKEN}
        self._content |= {"at": now, "state": state, "verdict": verdict, "log": self._log.content()}
        write_status(self._folder, self._content)

    def _counted(
        self, step: int, counters: StreamCounters, gate: Gate, waiting: int
    ) -> dict[str, Any]:
        now, decided = time.time(), counters.decided
        return {
            "shoal": VERSION,
            "at": now,
            "state": status.ENDED if counters.closed else status.RUNNING,
            "commits": step,
            "method": self._method,
            "verdict": {
                "holds": True,  # each release was measured before it left
                "releases": counters.releases,
                "least_class": gate.least,
                "promises": self._promises,
            },
            "records": {
                "came": counters.read,
                "published": counters.published,
                "waiting": waiting,
                "suppressed": counters.kinds["suppress"],
                "held": counters.kinds["hold"],
                "dropped": counters.kinds["drop"],
                "set_aside": counters.bad,
            },
            "mostly_aside": counters.mostly_aside,
            "clusters": counters.clusters,
            "loss": gate.loss / gate.rows if gate.rows else None,
            "wait": {
                "allowed": self._allowed,
                "longest": counters.longest,
                "mean": counters.mean_delay,
            },
            "reuse": counters.kinds["reuse"] / decided if decided else None,
            "recent": self._log.recent(now),
            "usual_gap": self._log.usual_gap,
            "log": self._log.content(),
        }


def is_stop(cause: BaseException) -> bool:
    """Whether a user stopped the run; compiled code wraps a KeyboardInterrupt in a SystemError."""
    return isinstance(cause, KeyboardInterrupt) or isinstance(cause.__cause__, KeyboardInterrupt)


def _totals(counters: StreamCounters, gate: Gate) -> dict[str, float]:
    """By `COUNTS`, since the beginning of the stream."""
    return {
        "came": float(counters.read),
        "published": float(counters.published),
        "decided": float(counters.decided),
        "reused": float(counters.kinds["reuse"]),
        "loss": gate.loss,
    }
