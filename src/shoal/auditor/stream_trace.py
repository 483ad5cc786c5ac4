"""Audit of a published stream with its private trace: what the published file alone can't show.

Shares no code with the methods. Everything is judged from the source, the published rows and the
trace.
"""

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.audit import AuditResult
from shoal.auditor.description import described
from shoal.auditor.measure import measure
from shoal.auditor.reading import Measures
from shoal.connectors.feeds import feed_of
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.numbers import alike
from shoal.data.progress import Progress
from shoal.data.release import PublishedColumn, is_starred
from shoal.data.room import IN_MEMORY
from shoal.data.row_order import RankedColumn, ascending
from shoal.data.schema import Fields
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.policy.binding.table import bind_stream, bound_original
from shoal.policy.policy import Policy
from shoal.policy.problem import Problem


def audit_stream(
    released: Table,
    policy: Policy,
    original: "StreamSource",
    trace: pl.DataFrame,
    progress: Progress,
) -> AuditResult:
    """The certificate of a published stream, people counted and every rule of the trace checked.

    `faults` counts what breaks a rule; all are zero for an honest stream. Which cluster is used
    again is not judged where the policy leaves open what the stream's reference showed. Raises
    InputError where the three can't belong together.
    """
    started = time.process_time()
    source = policy.tables.with_person(Table(_accepted(original, trace)))
    reference = policy.reference_table
    if reference is not None:
        reference = policy.tables.with_person(reference)
    problem, encoded = bound_original(source, policy, reference=reference)
    shown = trace.filter(pl.col("row").is_not_null()).sort("row")
    faults = {
        "rows": wrong_rows(shown, released.records),
        "records": wrong_records(trace, source.records),
    }
    if faults["rows"]:
        raise InputError(
            f"trace: its rows are not those of the release ({faults['rows']} differ); give the"
            " trace that was written with it"
        )
    place = np.searchsorted(np.sort(trace["seq"].to_numpy()), shown["seq"].to_numpy())
    truth = Truth(source, encoded, place)
    measured = measure(released, problem, truth, progress)
    certificate = described(measured.certificate, released, measured.figures, problem, truth)
    progress("checking the trace")
    traced = TracedRelease(shown, trace, measured.release.columns, problem, truth)
    faults |= certificate["faults"] | broken_rules(traced)
    if reference is None and not _binds(source.names, policy):
        # it had one that is not at hand, whose domains decide what a cluster loses
        faults = {rule: count for rule, count in faults.items() if rule not in OF_REUSE}
    if not any(faults.values()) and names_other_people(traced):
        raise InputError(
            "trace: its people are not those of the source; give the trace that was written with it"
        )
    certificate = certificate.extended(
        faults=faults, seconds={"total": time.process_time() - started, "method": None}
    )
    return AuditResult(certificate, measured.held, problem, truth)


def _binds(names: list[str], policy: Policy) -> bool:
    """Whether a stream of these columns needs no reference."""
    try:
        bind_stream(names, policy)
    except InputError:
        return False
    return True


@dataclass(frozen=True)
class StreamSource:
    """What a stream was made of.

    frame: its records. position: (n,) of each among all lines. sha256: of their text.
    """

    frame: pl.DataFrame
    position: np.ndarray
    sha256: str | None


def read_source(path: str, fields: Fields) -> StreamSource:
    """A source as a stream reads it, without the records that are none."""
    with closing(feed_of(path, fields=fields)) as feed:
        pieces = [feed.read()]
        while not pieces[-1].at_end:
            pieces.append(feed.read())
    position = np.concatenate([piece.position for piece in pieces])
    return StreamSource(pl.concat([piece.frame for piece in pieces]), position, feed.sha256)


def _accepted(original: StreamSource, trace: pl.DataFrame) -> pl.DataFrame:
    """The records that the trace lists, in order of arrival; bad ones were set aside."""
    seq = np.sort(trace["seq"].to_numpy())
    at = np.minimum(np.searchsorted(original.position, seq), max(len(original.position) - 1, 0))
    if len(seq) and (not len(original.position) or (original.position[at] != seq).any()):
        raise InputError(
            "trace: lists records that the source does not have; give the source it was written"
            " for, and the --read record_lines of its stream"
        )
    return original.frame[at]


# The rules of a trace. I1 to I12 are the invariants of the streams page.


SHOWN = ("new", "reuse", "suppress")
OF_REUSE = ("stale", "missed")
NEARLY = 1e-9
"""Losses that are no farther apart are taken to be equal: they were added up in another order."""

SHUFFLED_FROM = 20
"""So many rows stand in order of arrival by chance once in 10**18 releases."""


@dataclass(frozen=True)
class TracedRelease:
    """A published stream beside its trace; arrays have an entry for each published row.

    shown: the lines of the trace that have a row, in that order. trace: all lines.
    """

    shown: pl.DataFrame
    trace: pl.DataFrame
    columns: tuple[PublishedColumn, ...]
    problem: Problem
    truth: Truth

    @cached_property
    def k(self) -> int:
        """The most people that some promise asks of every class."""
        return max([1, *(int(model.least_subjects(True)) for model in self.problem.promises)])

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        return self.problem.policy.parameters_taken("stream")

    @property
    def method(self) -> "TracedMethod":
        return _BY_NAME.get(self.problem.policy.method_name, _EVERY)

    @cached_property
    def rows(self) -> pl.DataFrame:
        """Published rows by the trace: `kind`, `release`, `arrival`, `emitted`, and the number of
        their `cluster`, -1 for none; `person` by the source, since the trace may name others; and
        `cells`, a number for what each shows, null where it is suppressed.
        """
        people = self.truth.subjects
        cells = alike((column.codes for column in self.columns), self.shown.height)
        is_suppressed = pl.col("kind") == "suppress"
        return self.shown.select(
            *("kind", "release", "arrival", "emitted"),
            cluster=pl.col("class").rank("dense").fill_null(0).cast(pl.Int64) - 1,
            person=pl.Series(np.arange(self.shown.height) if people is None else people),
            cells=pl.when(is_suppressed).then(None).otherwise(pl.Series(cells)),
        )

    def is_of(self, kind: str) -> np.ndarray:
        """(n,) bool, the rows of a kind."""
        return (self.rows["kind"] == kind).to_numpy()

    @cached_property
    def reused(self) -> pl.DataFrame:
        """The rows of clusters that are used again, with what new rows tell of these: the release
        in which each was `made`, `since` when it is there, and what it `shows`.
        """
        release, emitted, cells = pl.col("release"), pl.col("emitted"), pl.col("cells")
        new = self.rows.filter(kind="new").group_by("cluster", maintain_order=True)
        made = new.agg(made=release.min(), since=emitted.first(), shows=cells.last())
        return self.rows.filter(kind="reuse").join(made, on="cluster", how="left")

    @property
    def counts_people_only(self) -> bool:
        return all(model.counts_people_only for model in self.problem.promises)


def broken_rules(traced: TracedRelease) -> dict[str, int]:
    """How many rows, clusters or classes break each rule."""
    return {
        "weak_first": _weak_at_first(traced),
        "weak_new": _weak_new(traced),
        "loose": _not_tight(traced),
        "reused_before_made": _reused_before_made(traced),
        **_reuse_by_rule(traced),
        "needless": _needless(traced),
        "late": _late(traced),
        "overheld": _overheld(traced),
        "weak_release": _weak_release(traced) if traced.parameters.get("strict_release") else 0,
        "out_of_order": int((traced.rows["release"].diff() < 0).sum()),
        "unshuffled": _unshuffled(traced),
        "not_starred": _not_starred(traced),
    }


def wrong_rows(shown: pl.DataFrame, rows: int) -> int:
    """Published rows that the trace does not name exactly once."""
    is_other = shown["row"].to_numpy() != np.arange(shown.height)
    return abs(rows - shown.height) + int(is_other.sum())


def wrong_records(trace: pl.DataFrame, records: int) -> int:
    """Records that the trace lists twice, or not as they were published (I1)."""
    published = trace["row"].is_not_null()
    by_kind = trace["kind"].is_in(SHOWN)
    return (
        trace.height
        - trace["seq"].n_unique()
        + int((published != by_kind).sum())
        + abs(records - trace.height)
    )


def names_other_people(traced: TracedRelease) -> bool:
    """Whether the trace deals the published rows out to people otherwise than the source does."""
    both = traced.rows.select("person", named=traced.shown["subject"])
    return len({both.n_unique(), *(people.n_unique() for people in both)}) > 1


def _people_of(rows: pl.DataFrame, *keys: str) -> pl.Series:
    """How many people have rows that are equal in these columns."""
    return rows.select(*keys, "person").unique().group_by(keys).len()["len"]


def _weak_at_first(traced: TracedRelease) -> int:
    """Classes with fewer than k people in the release in which they first show up (I3)."""
    is_early = pl.col("release") == pl.col("release").min().over("cells")
    early = traced.rows.drop_nulls("cells").filter(is_early)
    return int((_people_of(early, "cells") < traced.k).sum())


def _weak_new(traced: TracedRelease) -> int:
    """Clusters whose own first members break a promise (I4).

    t-closeness is judged only where the policy names the table that it compares with.
    """
    new = traced.is_of("new")
    if not new.any():
        return 0
    made = traced.rows.filter(new)
    numbers = np.unique(made["cluster"], return_inverse=True)[1].astype(np.int32)
    reference = traced.problem.reference_table
    judged = [
        m for m in traced.problem.promises if m.model != "t-closeness" or reference is not None
    ]
    measures = Measures(judged, traced.problem.schema, reference)
    frame, order = traced.truth.original.frame, traced.truth.rows
    rows = frame.filter(pl.Series(new)) if order is None else frame[order[new]]
    people, count = made["person"].to_numpy(), int(numbers.max()) + 1
    classes = measures.classes(people, rows, numbers, count)
    broken = np.zeros(classes.count, dtype=bool)
    for model in judged:
        broken |= ~measures.holds(model, classes)
    return int(broken.sum())


def _not_tight(traced: TracedRelease) -> int:
    """Clusters that publish another span than the exact hull of their first members (I4).

    Spans that were widened on purpose (`snap`) and regions of the domain (`sky`) only have to
    cover, which is checked elsewhere.
    """
    new = traced.is_of("new")
    if not new.any() or traced.parameters.get("snap") or not traced.method.publishes_hulls:
        return 0
    loose: set[int] = set()
    for column, encoded in zip(traced.columns, traced.truth.encoded.attributes, strict=True):
        codes = column.codes[new]
        shown = traced.rows.filter(new).select(
            "cluster",
            lo=column.lo[codes],
            hi=column.hi[codes],
            value=traced.truth.values(encoded)[new],
        )
        loose |= {*_loose(shown, encoded.attribute.hierarchy)}
    return len(loose)


def _loose(shown: pl.DataFrame, tree: Hierarchy | None) -> pl.Series:
    """Clusters that publish another span of one attribute than the hull of their members.

    shown: `cluster`, `lo`, `hi` and true `value` of each. A cluster of which some value is missing
    is not judged.
    """
    value = pl.col("value")
    hulls = shown.group_by("cluster").agg(least=value.nan_min(), most=value.nan_max())
    hulls = hulls.drop_nans().with_columns(is_root=False)
    if tree is not None:
        node = tree.covering(*hulls.select(pl.col("least", "most").cast(pl.Int32)).to_numpy().T)
        hulls = hulls.with_columns(
            least=tree.first[node].astype(float),
            most=tree.last[node].astype(float),
            is_root=node == tree.root,
        )
    is_hull = (pl.col("lo") == pl.col("least")) & (pl.col("hi") == pl.col("most"))
    is_mark = pl.col("is_root") & (pl.col("lo") == -np.inf)  # which the root may be written as
    return shown.join(hulls, on="cluster").filter(~(is_hull | is_mark))["cluster"]


def _reused_before_made(traced: TracedRelease) -> int:
    """Reused rows whose cluster was not published earlier with the same cells (I5).

    With ticks, a release holds all that was decided since the last one, and may hold both.
    """
    at_once = int(traced.parameters.get("tick", 1) > 1)
    is_earlier = pl.col("made") < pl.col("release") + at_once
    right = traced.reused.filter(is_earlier, pl.col("shows") == pl.col("cells"))
    return traced.reused.height - right.height


def _reuse_by_rule(traced: TracedRelease) -> dict[str, int]:
    """Rows under a cluster that was not alive, and rows that missed a better one (I5)."""
    if traced.method.takes_best:
        return _reuse_of_best(traced)
    if not traced.method.expires:
        return {"stale": 0, "missed": 0}
    age = traced.reused["emitted"] - traced.reused["since"].fill_null(0)
    longest = traced.parameters["lifetime"] + traced.parameters["tick"] - 1
    return {"stale": int((age > longest).sum()), "missed": 0}


def _reuse_of_best(traced: TracedRelease) -> dict[str, int]:
    """Rows of FADS: of the clusters that lose less than tau, the newest are alive."""
    cluster, release = (traced.rows[name].to_numpy() for name in ("cluster", "release"))
    parameters, reuse = traced.parameters, traced.is_of("reuse")
    new = np.flatnonzero(traced.is_of("new"))
    made, first = np.unique(cluster[new], return_index=True)
    lo = np.stack([c.lo[c.codes][new[first]] for c in traced.columns], axis=1)
    hi = np.stack([c.hi[c.codes][new[first]] for c in traced.columns], axis=1)
    weight = np.array([attribute.weight for attribute in traced.problem.schema.quasi])
    widths = np.stack([c.widths[c.codes][new[first]] for c in traced.columns], axis=1)
    loss = widths @ (weight / weight.sum())
    good = loss < parameters["tau"] + NEARLY
    # rounding may have made these the other kind
    unsure = int((loss[good] > parameters["tau"] - NEARLY).sum())
    most = ceil(parameters["c0"] * parameters["delta"] / max(2, traced.k)) + unsure
    encoded = traced.truth.encoded.attributes
    values = np.stack([traced.truth.values(attribute) for attribute in encoded], axis=1)
    by_rule = not unsure and not parameters["strict_release"] and traced.counts_people_only
    stale = missed = 0
    published = ~traced.is_of("suppress")
    for number in np.unique(release[published]).tolist():
        rows = np.flatnonzero((release == number) & published)
        alive = np.flatnonzero(good & (release[new][first] < number))[-most:]
        used = rows[reuse[rows]]
        stale += int((~np.isin(cluster[used], made[alive])).sum())
        known = rows[~np.isnan(values[rows]).any(axis=1)]
        if by_rule and len(alive) and len(known):
            least = np.full(len(known), np.inf)  # loss of a cluster that covers each
            for low, high, lost in zip(lo[alive], hi[alive], loss[alive], strict=True):
                covers = ((low <= values[known]) & (values[known] <= high)).all(axis=1)
                least[covers] = np.minimum(least[covers], lost)
            index = np.minimum(np.searchsorted(made, cluster[known]), len(made) - 1)
            own = np.where(reuse[known], loss[index], np.inf)
            missed += int((own > least + NEARLY).sum())
    return {"stale": stale, "missed": missed}


def _needless(traced: TracedRelease) -> int:
    """Releases of FADS that suppress k people, who could have had a cluster of their own (I7)."""
    is_owed = traced.method.takes_best and traced.parameters["strict"]
    if not is_owed or not traced.counts_people_only:
        return 0
    lacking = traced.truth.aligned(traced.truth.encoded.suppressed)
    starred = traced.rows.filter(traced.is_of("suppress") & ~lacking)
    return int((_people_of(starred, "release") >= traced.k).sum())


def _overheld(traced: TracedRelease) -> int:
    """Records that were held beyond `delta` at once, at the worst moment (I8)."""
    arrival = np.sort(traced.trace["arrival"].to_numpy())
    emitted = np.sort(traced.trace["emitted"].to_numpy())
    held = np.arange(1, len(arrival) + 1) - np.searchsorted(emitted, arrival, side="right")
    return max(0, int(held.max(initial=0)) - int(traced.parameters.get("delta", len(arrival))))


def _unshuffled(traced: TracedRelease) -> int:
    """Releases in the order of arrival, and not of what their rows show (I11)."""
    if traced.problem.schema.render.order == "input":
        return 0
    ranked = [RankedColumn.of(column, traced.problem.schema.render) for column in traced.columns]
    place = np.argsort(ascending(ranked, traced.rows.height, IN_MEMORY))
    falls = pl.col("arrival", "place").diff().min() < 0
    rows = traced.rows.with_columns(place=place).group_by("release").agg(pl.len(), falls)
    return rows.filter(pl.col("len") >= SHUFFLED_FROM, ~pl.col("arrival"), pl.col("place")).height


def _late(traced: TracedRelease) -> int:
    """Records that waited longer than the method promises (I6)."""
    setting, value = traced.method.may_wait_on
    if traced.parameters.get(setting) == value:
        return 0
    longest = int(traced.parameters.get("delta", 0)) - traced.method.spare
    published = traced.trace.filter(pl.col("row").is_not_null())
    return int((published["emitted"] - published["arrival"] > longest).sum())


def _weak_release(traced: TracedRelease) -> int:
    """Classes of fewer than k people within one release (I12)."""
    kept = traced.rows.drop_nulls("cells")
    return int((_people_of(kept, "release", "cells") < traced.k).sum())


def _not_starred(traced: TracedRelease) -> int:
    """Suppressed rows that show more than the mark (I7)."""
    starred = is_starred(traced.columns, traced.problem.schema.render.suppressed)
    return int((traced.is_of("suppress") & ~starred).sum())


# What a stream's trace has to show of a method, where that is more or less than of every other.
#
# Whoever audits a trace needs no method, and may not have the one that made it.


@dataclass(frozen=True)
class TracedMethod:
    """The rules of one method.

    publishes_hulls: a new cluster shows the exact hull of its members. spare: by how many records a
    record leaves before it would have waited `delta`. takes_best: a record goes into the cluster
    that loses least of those that are good and alive, and k people who wait get one of their own.
    expires: a cluster may be used again for `lifetime` records. may_wait_on: the setting under
    which a record may wait without limit.
    """

    publishes_hulls: bool = True
    spare: int = 1
    takes_best: bool = False
    expires: bool = False
    may_wait_on: tuple[str, Any] = ("leftovers", "hold")


_EVERY = TracedMethod()
_BY_NAME = {
    "castle": TracedMethod(spare=0),
    "b-castle": TracedMethod(spare=0),
    "faanst": TracedMethod(may_wait_on=("delay", "none")),
    "fads": TracedMethod(takes_best=True),
    "fads-tuple": TracedMethod(expires=True),
    "sky": TracedMethod(publishes_hulls=False),
}
