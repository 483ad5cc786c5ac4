"""How a stream is doing, beside its checkpoint, for those who watch: counts and times, no value.

The runner replaces `status.json` at each commit, and while it waits for records. Readers need
neither the snapshot, which holds people, nor the lock. A run that is killed between a commit and
its status leaves the one before, and the next run puts it right.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from shoal.connectors import metrics
from shoal.data import json_rules as shape
from shoal.data.certificate import Certificate
from shoal.data.notebook import Figures
from shoal.data.regular_files import path_text
from shoal.errors import (
    UNREADABLE,
    CheckpointError,
    PartyError,
    PromiseError,
    ShoalError,
    is_stop,
    system_error,
)
from shoal.version import VERSION

if TYPE_CHECKING:
    from shoal.streams.certify import StreamCounters
    from shoal.streams.core import StreamCore
    from shoal.streams.options import StreamOptions

SCHEMA = "shoal.stream-status/1"
NAME = "status.json"
MOST_MINUTES = 60
MOST_EVENTS = 50
MOST_GAPS = 20
BEAT = 1.0  # seconds between two signs of life of a run that waits for records
RECENT = 5  # minutes with commits that recent figures are of
USUAL_GAPS = 3  # times as long as usual without a commit or a sign of life: silent
SOONEST = 5.0  # seconds; nobody is silent before
RISING = 1.25  # times the loss since the start
RUNNING, ENDED, STOPPED, BROKEN, FAILED = "running", "ended", "stopped", "broken", "failed"
MOSTLY_ASIDE, SILENT = "records set aside", "silent"
COUNTS = ("came", "published", "decided", "reused", "loss")


@dataclass
class StreamLog:
    """What a stream did, minute by minute, and what happened to it.

    minutes: `at`, the sums of COUNTS, loss over published rows, and `longest`, the longest wait.
    gaps: seconds between the last commits.
    """

    started: float
    minutes: list[dict[str, float]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    last: float | None = None

    @classmethod
    def read(cls, folder: Path, now: float) -> StreamLog:
        """As the last run left it; a new one where there is none that can be read."""
        try:
            kept = json.loads((folder / NAME).read_text(encoding="utf-8"))["log"]
            names = ("at", *COUNTS, "longest")
            minutes = [{name: float(minute[name]) for name in names} for minute in kept["minutes"]]
            events = [
                {"at": float(event["at"]), "kind": str(event["kind"])}
                | ({"count": int(event["count"])} if "count" in event else {})
                for event in kept["events"]
            ]
            gaps = [float(gap) for gap in kept["gaps"]]
            return cls(float(kept["started"]), minutes, events, gaps)
        except (OSError, *UNREADABLE):
            return cls(now)

    def note(self, kind: str, now: float, count: int | None = None) -> None:
        """Something that happened; the same again within a minute adds to it."""
        last = self.events[-1] if self.events else None
        if count is not None and last and last["kind"] == kind and now - last["at"] < 60:
            last["count"] += count
            return
        self.events.append({"at": now, "kind": kind} | ({} if count is None else {"count": count}))
        del self.events[:-MOST_EVENTS]

    def commit(self, now: float, done: Mapping[str, float], longest: float) -> None:
        """One commit. done: by COUNTS, since the last one."""
        if self.last is not None:
            self.gaps = [*self.gaps, round(now - self.last, 3)][-MOST_GAPS:]
        self.last = now
        minute = now - now % 60
        if not self.minutes or self.minutes[-1]["at"] != minute:
            self.minutes.append({"at": minute, **dict.fromkeys(COUNTS, 0.0), "longest": 0.0})
            del self.minutes[:-MOST_MINUTES]
        current = self.minutes[-1]
        for name in COUNTS:
            current[name] += done[name]
        current["longest"] = max(current["longest"], longest)

    @property
    def usual_gap(self) -> float | None:
        """Seconds between two commits, as a rule."""
        return median(self.gaps) if self.gaps else None

    def recent(self, now: float) -> dict[str, float | None]:
        """Figures of the last minutes with commits, and records a second in the last minute."""
        kept = self.minutes[-RECENT:]
        published, decided = (sum(m[name] for m in kept) for name in ("published", "decided"))
        lately = [m for m in self.minutes[-2:] if now - m["at"] < 120]
        seconds = now - lately[0]["at"] if lately else 0.0
        return {
            "loss": sum(m["loss"] for m in kept) / published if published else None,
            "longest_wait": max((m["longest"] for m in kept), default=None),
            "reuse": sum(m["reused"] for m in kept) / decided if decided else None,
            "rate": sum(m["came"] for m in lately) / max(seconds, 1.0) if lately else None,
        }

    def content(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "last"}


def write_status(folder: Path, content: Mapping[str, Any]) -> None:
    """Replaces the status, or leaves it: where a disk refuses it, the commit itself will say so."""
    draft = folder / f"{NAME}.tmp"
    with suppress(OSError):
        with open(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            file.write(json.dumps({"schema": SCHEMA, **content}))  # dump takes ten times as long
        os.replace(draft, folder / NAME)


@dataclass(frozen=True)
class Alarm:
    """What to look at. kind: `records set aside` (most of the last), `broken promise`, `failed`,
    `silent`, `rising loss`, `new fields` or `bad records`.

    since: seconds since 1970, None where it has no time.
    """

    kind: str
    since: float | None
    text: str


@dataclass(frozen=True, repr=False)
class StreamStatus(Figures):
    """How a stream does, by its last commit. content: `status.json`. alarms: the worst first."""

    content: Mapping[str, Any]
    alarms: tuple[Alarm, ...]

    def __getitem__(self, key: str) -> Any:
        return self.content[key]

    def _figures(self) -> Mapping[str, object]:
        state, alarms = self.content["state"], len(self.alarms)
        return {"state": state, "holds": self.holds, "alarms": alarms}

    @property
    def holds(self) -> bool:
        """Whether every release so far keeps every promise."""
        return bool(self.content["verdict"]["holds"])

    @property
    def is_silent(self) -> bool:
        """Whether the stream runs, as it seems, and has given no sign of life for long."""
        return any(alarm.kind == SILENT for alarm in self.alarms)

    @property
    def is_halted(self) -> bool:
        """Whether the last run was stopped, or ended with an error, before the source did."""
        return self.content["state"] in (STOPPED, FAILED)

    @property
    def is_mostly_aside(self) -> bool:
        """Whether more than half of the last records could not be taken."""
        return bool(self.content.get("mostly_aside"))


_TIME = shape.value(
    "seconds since 1970", lambda found: shape.is_number(found) and 0 <= found < 1e11
)
_SHAPE = shape.record(
    {
        "state": shape.TEXT,
        "at": _TIME,
        "verdict": shape.record({"releases": shape.WHOLE, "holds": shape.FLAG}),
        "records": shape.record(
            dict.fromkeys(("came", "published", "waiting", "suppressed", "set_aside"), shape.WHOLE)
        ),
        "wait": shape.record({"longest": shape.NUMBER, "allowed": shape.nullable(shape.NUMBER)}),
        "recent": shape.record({"loss": shape.nullable(shape.NUMBER)}),
        "loss": shape.nullable(shape.NUMBER),
        "reuse": shape.nullable(shape.NUMBER),
    }
)
"""What is shown of a status."""


def stream_status(checkpoint: str | Path, *, now: float | None = None) -> StreamStatus:
    """How the stream of a checkpoint is doing: verdict, counts, loss, waits, events and alarms.

    Reads `status.json` alone: no record, no person, no lock, and the stream does not notice. now:
    seconds since 1970, by default the clock's. Raises CheckpointError where there is no status.
    """
    path = Path(path_text(checkpoint, "checkpoint")) / NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA or [*_SHAPE(content, "")]:
            raise ValueError("another schema")
        moment = datetime.now(UTC).timestamp() if now is None else now
        return StreamStatus(content, tuple(_alarms(content, moment)))
    except FileNotFoundError:
        failed = "if the stream failed before its first commit, its message says why"
        why = f"has no {NAME}; name the folder of a stream's --checkpoint that has begun; {failed}"
        if path.with_name("lock").exists():
            why = (
                f"has no {NAME} yet: its stream runs and has committed nothing, or was killed"
                f" before it wrote one; {failed}; else look again after its first commit, or run"
                " the same command again"
            )
        if parts := partitions_under(checkpoint):
            why = (
                f"has a status for each of its {len(parts)} partitions; name the folder of one,"
                f" such as '{parts[0]}'"
            )
    except (OSError, *UNREADABLE):
        why = (
            f"its {NAME} can't be read or is of another version; the next commit of its stream"
            " replaces it"
        )
    raise CheckpointError(f"checkpoint '{checkpoint}': {why}")


def partitions_under(checkpoint: str | Path) -> list[Path]:
    """The folders of a stream's partitions, each with its own status; empty if it has only one."""
    found = [path for path in Path(checkpoint).glob("partition-*") if path.is_dir()]
    return sorted(found, key=lambda path: (len(path.name), path.name))


def _alarms(content: Mapping[str, Any], now: float) -> list[Alarm]:
    at, state = float(content["at"]), content["state"]
    events = content["log"]["events"]
    ended = next((event["at"] for event in reversed(events) if event["kind"] == state), at)
    alive = float(content.get("alive", at))
    found = []
    if content.get("mostly_aside"):
        found.append(Alarm(MOSTLY_ASIDE, None, str(content["mostly_aside"])))
    if state == BROKEN:
        found.append(Alarm("broken promise", ended, "a release broke a promise and was withheld"))
    if state == FAILED:
        unknown = "it ended with an error; run the same command again"
        found.append(Alarm("failed", ended, str(content.get("error") or unknown)))
    gap = content["usual_gap"]
    if state == RUNNING and now - alive > max(USUAL_GAPS * (gap or 0.0), SOONEST):
        text = f"no sign of life of its process for {now - alive:.0f} s"
        found.append(Alarm(SILENT, alive, text))
    recent, whole = content["recent"]["loss"], content["loss"]
    if recent is not None and whole and recent > RISING * whole:
        text = f"{100 * recent:.1f} % lately, {100 * whole:.1f} % since the start"
        found.append(Alarm("rising loss", None, text))
    if content.get("dropped"):
        found.append(Alarm("new fields", None, str(content["dropped"])))
    bad = [event for event in events if event["kind"] == "set aside"]
    if bad and state != ENDED:  # the count of all stays
        count = sum(event["count"] for event in bad)
        found.append(Alarm("bad records", bad[-1]["at"], f"{count} set aside lately"))
    return found


# What a run writes at each commit.


class StatusWriter:
    """Follows a run; without a checkpoint there is nothing to watch, and it writes nothing."""

    def __init__(self, options: StreamOptions, core: StreamCore) -> None:
        self._folder = options.checkpoint
        self._promises = [
            {"model": model.model, "attributes": list(model.attributes), "asked": model.asked}
            for model in core.problem.promises
        ]
        self._method = core.problem.method_name
        self._allowed = core.parameters.get("delta")
        self._log = StreamLog(time.time())
        self._done = dict.fromkeys(COUNTS, 0.0)
        self._bad = 0
        self.longest = 0.0
        self.last_aside = ""
        """Which file lists records that were set aside, and why the last of them was."""
        self.unfiled: int | None = None
        """Rows that wait for a file of the folder that they go to."""
        self._content: dict[str, Any] = {}

    def begin(self, step: int, counters: StreamCounters, at: float | None = None) -> None:
        """Takes up what an earlier run left. step: of its last commit, or 0. at: its time."""
        is_resumed = step > 0
        now = time.time()
        if is_resumed and self._folder is not None:
            self._log = StreamLog.read(self._folder, now)
        self._done, self._bad = _totals(counters), counters.bad
        if not counters.closed:
            self._log.note("resumed" if is_resumed else "begun", now)
        self._content = self._counted(step, counters, now if at is None else at)
        if is_resumed:  # a run that was killed left the status of the commit before
            self._write()

    def waits(self) -> None:
        """A sign of life, while nothing comes."""
        if self._content and time.time() - self._content.get("alive", 0.0) >= BEAT:
            self._write()

    def waited(self, longest: float) -> None:
        """The longest wait of records that leave in the step that is about to be committed."""
        self.longest = max(self.longest, float(longest))

    def commit(self, step: int, counters: StreamCounters) -> None:
        """The status after a commit. step: its number."""
        if self._folder is None and not metrics.are_asked():
            return
        now, totals = time.time(), _totals(counters)
        done = {name: totals[name] - self._done[name] for name in totals}
        self._log.commit(now, done, self.longest)
        if counters.bad > self._bad:
            self._log.note("set aside", now, counters.bad - self._bad)
        self._done, self._bad, self.longest = totals, counters.bad, 0.0
        if counters.closed:
            self._log.note(ENDED, now)
        self._content = self._counted(step, counters, now)
        self._write()

    def measured(self, certificate: Certificate) -> None:
        """Takes up what the whole of a stream keeps: where no row shows anything, less than each
        release.
        """
        if self._content and not certificate.holds:
            self._content["verdict"] |= {"holds": False}
            self._write()

    def _write(self) -> None:
        self._content["alive"] = time.time()
        if self._folder is not None:
            write_status(self._folder, self._content)
        metrics.note(_figures(self._content))

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
        if not self._content:
            return
        if "alive" not in self._content and not isinstance(cause, PartyError):
            return  # a refusal leaves no checkpoint; where a server is missing, the same run begins
        state = STOPPED if is_stop(cause) else FAILED
        state = BROKEN if isinstance(cause, PromiseError) else state
        now = time.time()
        self._log.note(state, now)
        self._content["records"]["unfiled"] = self.unfiled
        verdict = self._content["verdict"] | {"holds": state != BROKEN}
        self._content |= {"state": state, "verdict": verdict, "log": self._log.content()}
        if isinstance(cause, ShoalError):
            self._content["error"] = " ".join(cause.said)
        elif number := system_error(cause):  # a full disk, most of all
            self._content["error"] = f"{os.strerror(number)}; run the same command again"
        self._write()

    def _counted(self, step: int, counters: StreamCounters, at: float) -> dict[str, Any]:
        decided = counters.decided
        return {
            "shoal": VERSION,
            "at": at,
            "state": ENDED if counters.closed else RUNNING,
            "commits": step,
            "method": self._method,
            "verdict": {
                "holds": True,  # each release was measured before it left
                "releases": counters.releases,
                "least_class": counters.least,
                "promises": self._promises,
            },
            "records": {
                "came": counters.read,
                "published": counters.published,
                "waiting": counters.waiting,
                "suppressed": counters.kinds["suppress"],
                "held": counters.kinds["hold"],
                "dropped": counters.kinds["drop"],
                "set_aside": counters.bad,
                "unfiled": self.unfiled,
            },
            "mostly_aside": counters.mostly_aside and counters.mostly_aside + self.last_aside,
            "dropped": counters.dropped,
            "new_fields": len(counters.new_fields),
            "clusters": counters.clusters,
            "loss": counters.mean_loss,
            "wait": {
                "allowed": self._allowed,
                "longest": counters.longest,
                "mean": counters.mean_delay,
            },
            "reuse": counters.kinds["reuse"] / decided if decided else None,
            "recent": self._log.recent(time.time()),
            "usual_gap": self._log.usual_gap,
            "log": self._log.content(),
        }


@contextmanager
def refusals_noted(folder: Path) -> Iterator[None]:
    """Notes in the status that a killed run left why this one does not go on; one that was stopped
    stays as it was left.
    """
    try:
        yield
    except ShoalError as refused:
        with suppress(OSError, *UNREADABLE):
            content = json.loads((folder / NAME).read_text(encoding="utf-8"))
            if content["state"] == RUNNING:
                content |= {"state": FAILED, "error": " ".join(refused.said)}
                content["log"]["events"].append({"at": time.time(), "kind": FAILED})
                write_status(folder, content)
                metrics.note(_figures(content))
        raise


def _figures(status: Mapping[str, Any]) -> metrics.Figures:
    """What Prometheus is to know of a status."""
    verdict, recent, wait = (status[part] for part in ("verdict", "recent", "wait"))
    records = {**status["records"]}
    waiting, unfiled = records.pop("waiting"), records.pop("unfiled")
    states = dict.fromkeys((RUNNING, ENDED, STOPPED, BROKEN, FAILED), 0.0) | {status["state"]: 1.0}
    return {
        "stream_records_total": (
            "Records that came, and what became of them: suppressed is part of published.",
            records,
        ),
        "stream_waiting_records": ("Records that wait.", waiting),
        "stream_unfiled_records": ("Published rows that wait for a file of the folder.", unfiled),
        "stream_new_fields": ("Fields that came later and are dropped.", status.get("new_fields")),
        "stream_state": ("1 for the state that the stream is in.", states),
        "stream_holds": ("Whether every release keeps every promise.", float(verdict["holds"])),
        "stream_releases_total": ("Releases.", verdict["releases"]),
        "stream_least_class_people": ("People in the least class.", verdict["least_class"]),
        "stream_loss_ratio": ("Information loss since the start.", status["loss"]),
        "stream_recent_loss_ratio": ("Information loss lately.", recent["loss"]),
        "stream_longest_wait_records": ("The longest wait, in records.", wait["longest"]),
        "stream_commits_total": ("Commits.", status["commits"]),
        "stream_last_commit_timestamp_seconds": ("When it last committed.", status["at"]),
        "stream_alive_timestamp_seconds": ("The last sign of life.", status["alive"]),
    }


def _totals(counters: StreamCounters) -> dict[str, float]:
    """By `COUNTS`, since the beginning of the stream."""
    return {
        "came": float(counters.read),
        "published": float(counters.published),
        "decided": float(counters.decided),
        "reused": float(counters.kinds["reuse"]),
        "loss": counters.loss,
    }
