"""What a stream has done so far: counts, a short history for charts, and its certificate."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.description import column_roles, described, provenance, repeated_rows
from shoal.auditor.measure import measure
from shoal.auditor.verdict import require_kept, withheld_few
from shoal.connectors import files
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import UNITS, UNKNOWN, people_key
from shoal.data.language import printable
from shoal.data.numbers import exact_sum
from shoal.data.progress import Progress
from shoal.data.stream import KINDS, NEW
from shoal.data.table import Table
from shoal.data.warnings import FIELDS_DROPPED, MOSTLY_ASIDE, ReleaseWarning, unpublished
from shoal.errors import ANOTHER_STREAM
from shoal.streams.core import Batch, StreamCore
from shoal.streams.gate import Passed
from shoal.version import VERSION

VERB = "stream"


MOST_HISTORY = 400
STRETCHES = 20
LATELY = 1000  # records
MOST_FIELDS = 20  # new fields that are named
LONGEST_NAME = 80  # characters of each


@dataclass
class StreamCounters:
    """Counts since the beginning of the stream, over all runs.

    starred, least: as in `Passed`, of all published rows. loss: the sum of theirs. late: of the
    last records that came, at most LATELY, which were set aside, as their numbers. window: how many
    they are. found: about the first records, as a certificate states it. new_fields: names that the
    first record lacks and the policy drops, at most MOST_FIELDS. history: stretches of records in
    the order in which they left, as `history_array`.
    """

    read: int = 0
    bad: int = 0
    published: int = 0
    starred: int = 0
    least: int | None = None
    loss: float = 0.0
    kinds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    releases: int = 0
    clusters: int = 0
    longest: int = 0
    waited: int = 0
    closed: bool = False
    late: list[int] = field(default_factory=list)
    window: int = 0
    found: list[dict[str, str]] = field(default_factory=list)
    new_fields: list[str] = field(default_factory=list)
    history: list[list[float]] = field(default_factory=list)

    @property
    def decided(self) -> int:
        return sum(self.kinds.values())

    @property
    def waiting(self) -> int:
        return self.read - self.bad - self.decided

    @property
    def mean_loss(self) -> float | None:
        """Over published rows; None before the first."""
        return self.loss / self.published if self.published else None

    @property
    def mean_delay(self) -> float | None:
        """Further records that arrived before one left; None where none has left."""
        return self.waited / self.decided if self.decided else None

    def came(self, positions: np.ndarray, bad: np.ndarray) -> None:
        """Counts records. positions: (n,) of all of them in the source; bad: those set aside."""
        places = self.read + np.searchsorted(np.sort(positions), bad)
        self.read += len(positions)
        self.bad += len(bad)
        self.window = min(self.read, LATELY)
        late = [*self.late, *places.tolist()]
        self.late = [place for place in late if place >= self.read - LATELY]

    @property
    def mostly_aside(self) -> str:
        """What to say first where more than half of the last records were set aside; else empty."""
        if 2 * len(self.late) <= self.window:
            return ""
        return f"{len(self.late)} of the last {self.window} records were set aside"

    @property
    def source_changed(self) -> ReleaseWarning:
        """What to say where `mostly_aside`."""
        text = f"{self.mostly_aside}: the source may have changed, see which records and why"
        return ReleaseWarning(MOSTLY_ASIDE, text)

    def meet(self, new: frozenset[str]) -> None:
        """Notes fields that the first record lacks."""
        more = sorted({name[:LONGEST_NAME] for name in new} - set(self.new_fields))
        self.new_fields = [*self.new_fields, *more][:MOST_FIELDS]

    @property
    def fields_dropped(self) -> ReleaseWarning:
        """What readers of the release must know of fields that came later."""
        text = f"{self.dropped}; to publish them, name them in the policy, and {ANOTHER_STREAM}"
        return ReleaseWarning(FIELDS_DROPPED, text)

    @property
    def dropped(self) -> str:
        """What to say of fields that came later and are dropped; empty where none did."""
        if not self.new_fields:
            return ""
        names = printable(", ".join(f"'{name}'" for name in self.new_fields))
        return f"dropped {names}, which the first record lacks and the policy does not name"

    def add(self, batch: Batch, passed: Passed) -> None:
        """Counts what a batch has decided. passed: what was measured of its rows."""
        decided = batch.decided
        self.published += batch.frame.height
        self.starred += passed.starred
        self.least = min((n for n in (self.least, passed.least) if n is not None), default=None)
        self.loss += float(passed.losses.sum())
        self.clusters += len(decided.made)
        for number, name in enumerate(KINDS):
            self.kinds[name] += int((decided.kind == number).sum())
        self.releases = int(decided.release.max()) + 1
        delay = decided.emitted - decided.seq
        self.longest = max(self.longest, int(delay.max()))
        self.waited += int(delay.sum())
        self._add_history(batch, np.append(passed.losses, 0.0)[batch.row], delay)

    def _add_history(self, batch: Batch, loss: np.ndarray, delay: np.ndarray) -> None:
        """Adds some stretches for each batch; neighbours are joined as they become many."""
        decided = batch.decided
        stretches = min(len(decided), STRETCHES)
        stretch = np.arange(len(decided)) * stretches // len(decided)
        kinds = [
            np.bincount(stretch, decided.kind == kind, minlength=stretches)
            for kind in range(len(KINDS))
        ]
        members = np.isin(decided.cluster, decided.made) & (decided.kind == NEW)
        first = np.unique(decided.cluster[members], return_index=True)[1]
        made = np.bincount(stretch[members][first], minlength=stretches)
        sums = [np.bincount(stretch, weights, minlength=stretches) for weights in (loss, delay)]
        self.history += np.stack([*kinds, *sums, made], axis=1).tolist()
        while len(self.history) > MOST_HISTORY:
            pairs = zip(self.history[::2], self.history[1::2], strict=False)
            joined = [[a + b for a, b in zip(*pair, strict=True)] for pair in pairs]
            self.history[:] = joined + self.history[2 * len(joined) :]

    def history_array(self) -> np.ndarray:
        """(stretches, 8), as they left: records by kind, sums of loss and delay, clusters."""
        return np.array(self.history, dtype=np.float64).reshape(-1, len(KINDS) + 3)

    def line(self, rate: float) -> str:
        """Progress in one line. rate: records a second."""
        decided = max(self.decided, 1)
        # only the end can settle it, but until then the order can still be changed
        stars = ", nothing but stars so far" if 0 < self.published == self.starred else ""
        dropped = f"; {self.dropped}" if self.new_fields else ""
        return (
            f"{self.read} records, {rate:.0f} a second, {self.waiting} waiting; mean delay"
            f" {self.waited / decided:.0f} records, {100 * self.kinds['reuse'] / decided:.0f} % in"
            f" earlier clusters, {self.kinds['suppress']} suppressed, {self.bad} set aside, loss"
            f" {self.mean_loss or 0.0:.3f}{stars}{dropped}"
        )


# The certificate: what was measured on the whole, or release by release.


def whole_stream(
    core: StreamCore, published: Path | str, form: str, people: Path | None, progress: Progress
) -> tuple[dict[str, Any], str]:
    """What an audit of the whole published file finds, people counted; with the file's hash.

    form: the suffix that names the file's format. people: the file of who is behind each row.
    """
    progress("reading what was published")
    written = files.read_as(published, form, core.problem.audited_columns)
    table = written.table
    released = written.frame
    if people is not None and core.schema.subject is not None:
        behind = pl.Series(core.schema.subject.name, np.fromfile(people, dtype=np.int64))
        released = released.with_columns(behind.cast(pl.String))
    measured = measure(Table(released), core.problem, None, progress, core.measures)
    certificate = measured.certificate.extended(verb=VERB)
    certificate = described(certificate, table, measured.figures, core.problem, None)
    return {**certificate, "measured": "whole"}, written.sha256


def release_by_release(core: StreamCore, counters: StreamCounters) -> dict[str, Any]:
    """What was measured before each release left: every class when it first appeared."""
    problem = core.problem
    promises = [
        {
            "model": model.model,
            "attributes": list(model.attributes),
            **model.settings,
            "asked": model.asked,
            "measured": counters.least if model.model == "k-anonymity" else None,
            "holds": True,
            **({"classes": None, "risk": None} if model.model == "k-anonymity" else {}),
        }
        for model in problem.promises
    ]
    starred, least = counters.starred, counters.least
    withheld = starred if starred < counters.published else 0
    few = withheld_few(withheld, UNITS[UNKNOWN], problem.promises, core.schema)
    return {
        "records": {"suppressed": starred, "withheld": withheld},
        "people": people_key(problem.subject, is_counted=True),
        "counted": "subjects",
        "subjects": None,
        "classes": {"count": None, "min": least, "mean": None, "max": None},
        "promises": promises,
        "together": None,  # classes are measured when they appear, not what they grow to
        "warnings": [warning.report() for warning in (*few, *repeated_rows(core.schema))],
        "utility": {"gcp": counters.mean_loss},
        "risk": {"prosecutor_max": 1 / least if least else None},
        "measured": "release by release",
        **provenance(VERB, problem),
        "columns": column_roles([a.name for a in core.schema.published], problem),
    }


def stream_certificate(
    core: StreamCore,
    counters: StreamCounters,
    read_and_written: dict[str, Any],
    started: float,
    whole: dict[str, Any] | None = None,
    seed: int | None = None,
) -> Certificate:
    """What was measured, and what the stream did.

    read_and_written: the parts `input` and `output`. started: the process time when the run
    began. whole: what an audit of the whole found; else it was measured release by release. seed:
    of one shard, where the core is of all.
    """
    measured = whole or release_by_release(core, counters)
    kinds, warnings = counters.kinds, [*measured["warnings"], *counters.found]
    if counters.mostly_aside:
        warnings.insert(0, counters.source_changed.report())
    if counters.new_fields:
        warnings.append(counters.fields_dropped.report())
    if left_out := unpublished({"held": kinds["hold"], "dropped": kinds["drop"]}):
        text = f"records: {left_out}; 'leftovers=star' publishes such records suppressed"
        warnings.append(ReleaseWarning("records-unpublished", text).report())
    method = {"name": core.problem.method_name, "parameters": core.parameters}
    content = {
        **measured,
        "warnings": warnings,
        "shoal": VERSION,
        "verb": VERB,
        "method": method,
        "seed": core.problem.seed if seed is None else seed,
        "records": {
            "in": counters.read,
            "out": counters.published,
            "suppressed": measured["records"]["suppressed"],
            "withheld": measured["records"]["withheld"],
            "held": kinds["hold"],
            "dropped": kinds["drop"],
            "rejected": counters.bad,
            "waiting": counters.waiting,
        },
        "stream": {
            "closed": counters.closed,
            "releases": counters.releases,
            "clusters": counters.clusters,
            "new": kinds["new"],
            "reused": kinds["reuse"],
            "delay": {"mean": counters.mean_delay, "max": counters.longest},
        },
        "faults": {"uncovered": 0},  # a release with any was withheld
        **read_and_written,
        "seconds": {"total": time.process_time() - started, "method": None},
    }
    return Certificate(content)


def require_whole_kept(certificate: Certificate) -> None:
    """Raises PromiseError with every promise that the whole of a stream breaks.

    Only the end tells that no record shows anything: any later one could have.
    """
    records = certificate["records"]
    only_stars = records["out"] == records["suppressed"]
    why = ", since every record is suppressed: ask for less, or let more records wait"
    require_kept(certificate, "nothing was written" + (why if only_stars else ""))


# What the parts of a stream promise together: partitions of a topic, or shards of a folder.
#
# Nobody is in two parts. If classes of two parts show the same cells, a reader sees them as one
# class of all their members, and it keeps every promise that both keep: people add up, no value
# gets rarer than in the class where it is rarest, and shares lie between those of the two.


NOTHING: dict[str, Any] = {"input": {"sha256": None}, "output": {"sha256": None}}
"""What a certificate states for a source and a sink that are not files."""


def union_certificate(
    parts: Mapping[int, StreamCounters],
    core: StreamCore,
    named: str,
    more: dict[str, Any],
    read_and_written: dict[str, Any] = NOTHING,
) -> Certificate:
    """What was measured release by release in every part.

    parts: by number. core: of any part. named: what a part is called, such as `partition`. more:
    what the certificate's `stream` says of all. read_and_written: its `input` and `output`.
    """
    counters = all_counted([*parts.values()])
    certificate = stream_certificate(core, counters, read_and_written, time.process_time())
    each = {
        **more,
        f"{named}s": [
            {
                named: number,
                "in": part.read,
                "out": part.published,
                "rejected": part.bad,
                "closed": part.closed,
                "least_class": part.least,
            }
            for number, part in parts.items()
        ],
    }
    return certificate.extended(stream={**certificate["stream"], **each})


def all_counted(all_of: Sequence[StreamCounters]) -> StreamCounters:
    """The counters of all parts, without their histories."""
    worst = max(all_of, key=lambda one: len(one.late) / max(one.window, 1))
    return StreamCounters(
        late=worst.late,
        window=worst.window,
        found=next((one.found for one in all_of if one.found), []),
        **{name: sum(getattr(one, name) for one in all_of) for name in _ADDED},
        kinds={kind: sum(one.kinds[kind] for one in all_of) for kind in KINDS},
        least=min((one.least for one in all_of if one.least is not None), default=None),
        loss=exact_sum(one.loss for one in all_of),
        longest=max(one.longest for one in all_of),
        closed=all(one.closed for one in all_of),
    )


_ADDED = ("read", "bad", "published", "starred", "releases", "clusters", "waited")
