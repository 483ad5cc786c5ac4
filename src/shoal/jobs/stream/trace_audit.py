"""Audit of a published stream with its private trace: what no look at the published file alone can
show.

Shares no code with the methods. Everything is judged from the source, the published rows and the
trace.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import polars as pl

from shoal.connectors import files
from shoal.connectors.feeds import RECORD_LINES, feed_of
from shoal.data.encoding import encode
from shoal.data.progress import Progress
from shoal.data.release import PublishedColumn
from shoal.data.schema import Schema
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.jobs.audit.audit import AuditResult, measure
from shoal.jobs.audit.reference import Measures
from shoal.jobs.audit.truth import Truth
from shoal.policy.policy import Policy

COLUMNS = ("seq", "subject", "release", "class", "kind", "arrival", "emitted", "row")
SHOWN = ("new", "reuse", "suppress")
NEARLY = 1e-9
"""Losses that are no farther apart are taken to be equal: they were added up in another order."""

SHUFFLED_FROM = 20
"""So many rows stand in order of arrival by chance once in 10**18 releases."""


def audit_stream(
    released_path: str,
    policy: Policy,
    original_path: str,
    trace_path: str,
    output_path: str | None = None,
    record_lines: int | None = None,
    *,
    progress: Progress,
) -> AuditResult:
    """The certificate of a published stream, people counted and every rule of the trace checked.

    `faults` counts what breaks a rule; all are zero for an honest stream. record_lines: lines that
    a record of the source could have. Raises InputError where the three files can't belong
    together.
    """
    started = time.process_time()
    progress("reading the source and the trace")
    released, original = files.read(released_path), read_source(original_path, record_lines)
    trace = read_trace(trace_path)
    frame = _accepted(original, trace)
    schema, findings = policy.bind(Table(frame))
    if schema is None:
        raise InputError.from_findings([f"original: {finding}" for finding in findings])
    encoded, wrong = encode(Table(frame), schema)
    if encoded is None:
        raise InputError.from_findings([f"original: {finding}" for finding in wrong])
    shown = trace.filter(pl.col("row").is_not_null()).sort("row")
    faults = {
        "rows": _wrong_rows(shown, released.frame.height),
        "records": _wrong_records(trace, frame.height),
    }
    if faults["rows"]:
        raise InputError(
            f"trace: its rows are not those of the release ({faults['rows']} differ); give the"
            " trace that was written with it"
        )
    place = np.searchsorted(np.sort(trace["seq"].to_numpy()), shown["seq"].to_numpy())
    suppressed = np.zeros(frame.height, dtype=bool)
    suppressed[place[(shown["kind"] == "suppress").to_numpy()]] = True
    truth = Truth(Table(frame), encoded, place, suppressed)
    certificate, release = measure(Table(released.frame), schema, policy, truth, progress)
    progress("checking the trace")
    faults |= certificate["faults"] | check(
        shown, trace, release.columns, Table(frame), schema, truth, policy
    )
    certificate = certificate.extended(
        verb="audit",
        faults=faults,
        input={"sha256": original.sha256},
        output={"sha256": released.sha256},
        seconds={"total": time.process_time() - started, "method": None},
    )
    if output_path is not None:
        with files.atomic_write(output_path) as draft:
            draft.write_text(certificate.to_json())
    return AuditResult(certificate, release, schema, truth)


def read_trace(path: str) -> pl.DataFrame:
    """The trace, one line for every record; raises InputError where it is none."""
    try:
        trace = pl.read_ndjson(path, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError):
        raise InputError(
            f"trace '{path}': can't be read; give the file that --trace wrote"
        ) from None
    if set(COLUMNS) - set(trace.columns):
        raise InputError(f"trace '{path}': lacks columns; give the file that --trace wrote")
    if not all(_is_traced(trace[name]) for name in COLUMNS):
        raise InputError(
            f"trace '{path}': holds what no trace does; give the file that --trace wrote"
        )
    return trace


def _is_traced(column: pl.Series) -> bool:
    """Whether a column of a trace holds what such a column may hold."""
    if column.name in ("class", "row"):
        return column.dtype in (pl.Int64, pl.Null)
    kinds = {"kind": (pl.String,), "subject": (pl.String, pl.Int64)}.get(column.name, (pl.Int64,))
    return column.dtype in kinds and not column.null_count()


@dataclass(frozen=True)
class Source:
    """What a stream was made of: its records, the place of each among all of them, and the hash of
    their text.
    """

    frame: pl.DataFrame
    position: np.ndarray
    sha256: str | None


def read_source(path: str, record_lines: int | None = None) -> Source:
    """A source as a stream reads it, without the records that are none."""
    feed = feed_of(path, record_lines=record_lines or RECORD_LINES)
    try:
        pieces = [feed.read()]
        while not pieces[-1].at_end:
            pieces.append(feed.read())
    finally:
        feed.close()
    position = np.concatenate([piece.position for piece in pieces])
    return Source(pl.concat([piece.frame for piece in pieces]), position, feed.sha256)


def _accepted(original: Source, trace: pl.DataFrame) -> pl.DataFrame:
    """The records that the trace tells of, in order of arrival: bad ones were set aside."""
    seq = np.sort(trace["seq"].to_numpy())
    at = np.minimum(np.searchsorted(original.position, seq), max(len(original.position) - 1, 0))
    if len(seq) and (not len(original.position) or (original.position[at] != seq).any()):
        raise InputError(
            "trace: tells of records that the source does not have; give the source it was written"
            " for, and the --record-lines of its stream"
        )
    return original.frame[at]


def _wrong_rows(shown: pl.DataFrame, rows: int) -> int:
    """Published rows that the trace does not name exactly once."""
    return abs(rows - shown.height) + int(
        (shown["row"].to_numpy() != np.arange(shown.height)).sum()
    )


def _wrong_records(trace: pl.DataFrame, records: int) -> int:
    """Records that are told of twice, or not as they were let out (I1)."""
    published = trace["row"].is_not_null()
    as_told = trace["kind"].is_in(SHOWN)
    return (
        trace.height
        - trace["seq"].n_unique()
        + int((published != as_told).sum())
        + abs(records - trace.height)
    )


def check(
    shown: pl.DataFrame,
    trace: pl.DataFrame,
    columns: tuple[PublishedColumn, ...],
    original: Table,
    schema: Schema,
    truth: Truth,
    policy: Policy,
) -> dict[str, int]:
    """How many rows, clusters or classes break each rule."""
    models = policy.build_promises()
    k = max([1, *(int(model.least_subjects(True)) for model in models)])
    parameters = policy.parameters_for("stream")
    kind = shown["kind"].to_numpy()
    cluster = (
        shown["class"].rank("dense").fill_null(0).to_numpy().astype(np.int64) - 1
    )  # -1 for none
    release = shown["release"].to_numpy()
    people = shown["subject"].rank("dense").to_numpy().astype(np.int64)
    cells = _cell_numbers(columns, kind)
    return {
        "weak_first": _weak_at_first(cells, release, people, kind, k),
        "weak_new": _weak_new(
            cluster, kind, people, original, schema, truth, models, policy.reference_table
        ),
        "loose": _not_tight(columns, cluster, kind, truth, schema, parameters),
        "reused_before_made": _reused_before_made(cluster, kind, release, cells, parameters),
        **_reuse_by_rule(shown, columns, cluster, kind, release, schema, truth, policy),
        "needless": _needless(release, people, kind, truth, policy, k),
        "late": _late(trace, policy.method_name, parameters),
        "overheld": _overheld(trace, parameters),
        "weak_release": (
            _weak_release(cells, release, people, kind, k)
            if parameters.get("strict_release")
            else 0
        ),
        "out_of_order": int((np.diff(release) < 0).sum()),
        "unshuffled": _unshuffled(shown, release, policy),
        "not_starred": _not_starred(columns, kind, schema),
    }


def _cell_numbers(columns: tuple[PublishedColumn, ...], kind: np.ndarray) -> np.ndarray:
    """A number for each combination of published cells; -1 for suppressed rows."""
    numbers = np.zeros(len(kind), dtype=np.int64)
    for column in columns:
        numbers = np.unique(numbers * len(column.cells) + column.codes, return_inverse=True)[1]
    return np.where(kind == "suppress", -1, numbers)


def _people(groups: np.ndarray, people: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct groups and how many different people each has."""
    pairs = np.unique(np.stack([groups, people]), axis=1)
    return np.unique(pairs[0], return_counts=True)


def _weak_at_first(
    cells: np.ndarray, release: np.ndarray, people: np.ndarray, kind: np.ndarray, k: int
) -> int:
    """Classes with fewer than k people in the release in which they first show up (I3)."""
    kept = cells >= 0
    first = np.full(int(cells.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, cells[kept], release[kept])
    early = kept & (release == np.append(first, -1)[cells])
    return int((_people(cells[early], people[early])[1] < k).sum())


def _weak_new(
    cluster: np.ndarray,
    kind: np.ndarray,
    people: np.ndarray,
    original: Table,
    schema: Schema,
    truth: Truth,
    models: list[Any],
    reference: Table | None,
) -> int:
    """Clusters whose own first members break a promise (I4); t-closeness where what it is compared
    with is known.
    """
    new = kind == "new"
    if not new.any():
        return 0
    numbers = np.unique(cluster[new], return_inverse=True)[1].astype(np.int32)
    judged = [model for model in models if model.model != "t-closeness" or reference is not None]
    measures = Measures(judged, schema, reference)
    rows = (
        original.frame[truth.rows[new]]
        if truth.rows is not None
        else original.frame.filter(pl.Series(new))
    )
    classes = measures.classes(people[new], rows, numbers, int(numbers.max()) + 1)
    broken = np.zeros(classes.count, dtype=bool)
    for model in judged:
        broken |= ~measures.holds(model, classes)
    return int(broken.sum())


def _not_tight(
    columns: tuple[PublishedColumn, ...],
    cluster: np.ndarray,
    kind: np.ndarray,
    truth: Truth,
    schema: Schema,
    parameters: dict[str, Any],
) -> int:
    """Clusters that publish other than the exact hull of their first members (I4); widened ones are
    only covered.
    """
    new = kind == "new"
    if not new.any() or parameters.get("snap"):
        return 0
    numbers = np.unique(cluster[new], return_inverse=True)[1]
    count = int(numbers.max()) + 1
    loose = np.zeros(count, dtype=bool)
    for column, encoded, attribute in zip(
        columns, truth.encoded.attributes, schema.quasi, strict=True
    ):
        value = truth.values(encoded)[new]
        lo, hi = np.full(count, np.inf), np.full(count, -np.inf)
        lacking = np.zeros(count, dtype=bool)
        lacking[numbers[np.isnan(value)]] = True
        np.minimum.at(lo, numbers, np.where(np.isnan(value), np.inf, value))
        np.maximum.at(hi, numbers, np.where(np.isnan(value), -np.inf, value))
        told_lo, told_hi = column.lo[column.codes][new], column.hi[column.codes][new]
        known = ~lacking
        if attribute.hierarchy is not None:
            tree = attribute.hierarchy
            node = np.zeros(count, dtype=np.int32)
            node[known] = tree.covering(lo[known].astype(np.int32), hi[known].astype(np.int32))
            lo, hi = tree.first[node].astype(float), tree.last[node].astype(float)
            rooted = known & (node == tree.root)
            told_root = np.isneginf(told_lo)  # the root may be written as the suppression mark
            fits = (told_lo == lo[numbers]) & (told_hi == hi[numbers]) | rooted[numbers] & told_root
        else:
            fits = (told_lo == lo[numbers]) & (told_hi == hi[numbers])
        loose[numbers[~fits & known[numbers]]] = True
    return int(loose.sum())


def _reused_before_made(
    cluster: np.ndarray,
    kind: np.ndarray,
    release: np.ndarray,
    cells: np.ndarray,
    parameters: dict[str, Any],
) -> int:
    """Reused rows whose cluster was not let out in an earlier release, with the same cells (I5).

    With ticks, a release holds all that was decided since the last one, and may hold both.
    """
    new, reuse = kind == "new", kind == "reuse"
    made = np.full(int(cluster.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    shows = np.full(len(made), -2, dtype=np.int64)
    np.minimum.at(made, cluster[new], release[new])
    shows[cluster[new]] = cells[new]
    at_once = parameters.get("tick", 1) > 1
    return int(
        (
            (made[cluster[reuse]] >= release[reuse] + at_once)
            | (shows[cluster[reuse]] != cells[reuse])
        ).sum()
    )


def _reuse_by_rule(
    shown: pl.DataFrame,
    columns: tuple[PublishedColumn, ...],
    cluster: np.ndarray,
    kind: np.ndarray,
    release: np.ndarray,
    schema: Schema,
    truth: Truth,
    policy: Policy,
) -> dict[str, int]:
    """Rows published under a cluster that was no longer alive, and for FADS those that missed a
    better one (I5).
    """
    if policy.method_name == "fads":
        return _reuse_by_fads(columns, cluster, kind, release, schema, truth, policy)
    if policy.method_name != "fads-tuple":
        return {"stale": 0, "missed": 0}
    parameters, reuse, new = (
        policy.parameters_for("stream"),
        kind == "reuse",
        np.flatnonzero(kind == "new"),
    )
    made, first = np.unique(cluster[new], return_index=True)
    since = np.zeros(int(cluster.max(initial=0)) + 1, dtype=np.int64)
    emitted = shown["emitted"].to_numpy()
    since[made] = emitted[new][first]
    age = emitted[reuse] - since[cluster[reuse]]
    return {
        "stale": int((age > parameters["lifetime"] + parameters["tick"] - 1).sum()),
        "missed": 0,
    }


def _reuse_by_fads(
    columns: tuple[PublishedColumn, ...],
    cluster: np.ndarray,
    kind: np.ndarray,
    release: np.ndarray,
    schema: Schema,
    truth: Truth,
    policy: Policy,
) -> dict[str, int]:
    """The same for FADS: of the clusters that lose less than tau, so many of the newest are alive."""
    parameters, reuse, new = (
        policy.parameters_for("stream"),
        kind == "reuse",
        np.flatnonzero(kind == "new"),
    )
    made, first = np.unique(cluster[new], return_index=True)
    lo = np.stack([c.lo[c.codes][new[first]] for c in columns], axis=1)
    hi = np.stack([c.hi[c.codes][new[first]] for c in columns], axis=1)
    weight = np.array([a.weight for a in schema.quasi])
    loss = np.stack([c.widths[c.codes][new[first]] for c in columns], axis=1) @ (
        weight / weight.sum()
    )
    good = loss < parameters["tau"] + NEARLY
    unsure = int(
        (loss[good] > parameters["tau"] - NEARLY).sum()
    )  # rounding may have made these the other kind
    k = max([2, *(int(model.least_subjects(True)) for model in policy.build_promises())])
    most = ceil(parameters["c0"] * parameters["delta"] / k) + unsure
    values = np.stack([truth.values(encoded) for encoded in truth.encoded.attributes], axis=1)
    by_rule = not unsure and not parameters["strict_release"] and _counts_people_only(policy)
    stale = missed = 0
    for number in np.unique(release[kind != "suppress"]).tolist():
        rows = np.flatnonzero((release == number) & (kind != "suppress"))
        alive = np.flatnonzero(good & (release[new][first] < number))[-most:]
        used = rows[reuse[rows]]
        stale += int((~np.isin(cluster[used], made[alive])).sum())
        known = rows[~np.isnan(values[rows]).any(axis=1)]
        if by_rule and len(alive) and len(known):
            least = _least_covering(values[known], lo[alive], hi[alive], loss[alive])
            own = np.where(
                reuse[known],
                loss[np.minimum(np.searchsorted(made, cluster[known]), len(made) - 1)],
                np.inf,
            )
            missed += int((own > least + NEARLY).sum())
    return {"stale": stale, "missed": missed}


def _least_covering(
    values: np.ndarray, lo: np.ndarray, hi: np.ndarray, loss: np.ndarray
) -> np.ndarray:
    """The loss of the best cluster that covers each record, infinite where none does; (n,) float64."""
    least = np.full(len(values), np.inf)
    for low, high, lost in zip(lo, hi, loss, strict=True):
        covers = ((low <= values) & (values <= high)).all(axis=1)
        least[covers] = np.minimum(least[covers], lost)
    return least


def _counts_people_only(policy: Policy) -> bool:
    return all(model.counts_people_only for model in policy.build_promises())


def _needless(
    release: np.ndarray, people: np.ndarray, kind: np.ndarray, truth: Truth, policy: Policy, k: int
) -> int:
    """Releases of FADS that suppress k people, who could have had a cluster of their own (I7)."""
    parameters = policy.parameters_for("stream")
    if policy.method_name != "fads" or not _counts_people_only(policy) or not parameters["strict"]:
        return 0
    lacking = truth.aligned(truth.encoded.suppressed)
    starred = (kind == "suppress") & ~lacking
    return int((_people(release[starred], people[starred])[1] >= k).sum()) if starred.any() else 0


def _overheld(trace: pl.DataFrame, parameters: dict[str, Any]) -> int:
    """Records that were held beyond `delta` at once, at the worst moment (I8)."""
    arrival, emitted = (np.sort(trace[name].to_numpy()) for name in ("arrival", "emitted"))
    held = np.arange(1, len(arrival) + 1) - np.searchsorted(emitted, arrival, side="right")
    return max(0, int(held.max(initial=0)) - int(parameters.get("delta", len(arrival))))


def _unshuffled(shown: pl.DataFrame, release: np.ndarray, policy: Policy) -> int:
    """Releases whose rows stand in the order of their arrival though they should be shuffled (I11)."""
    render = policy.model.render
    if "order" in render.model_fields_set and render.order == "input":
        return 0
    arrival = shown["arrival"].to_numpy()
    numbers, rows = np.unique(release, return_counts=True)
    falls = np.flatnonzero((np.diff(arrival) < 0) & (np.diff(release) == 0))
    return int((~np.isin(numbers[rows >= SHUFFLED_FROM], release[falls])).sum())


def _late(trace: pl.DataFrame, method: str, parameters: dict[str, Any]) -> int:
    """Records that waited longer than the method promises (I6)."""
    most = {"castle": 0, "b-castle": 0}.get(method, -1) + int(parameters.get("delta", 0))
    exempt = parameters.get("leftovers") == "hold" or (
        method == "faanst" and parameters.get("delay") == "none"
    )
    if exempt:
        return 0
    published = trace.filter(pl.col("row").is_not_null())
    return int((published["emitted"] - published["arrival"] > most).sum())


def _weak_release(
    cells: np.ndarray, release: np.ndarray, people: np.ndarray, kind: np.ndarray, k: int
) -> int:
    """Classes of fewer than k people within one release (I12)."""
    kept = cells >= 0
    if not kept.any():
        return 0
    both = np.unique(np.stack([release[kept], cells[kept]]), axis=1, return_inverse=True)[1]
    return int((_people(both.reshape(-1), people[kept])[1] < k).sum())


def _not_starred(columns: tuple[PublishedColumn, ...], kind: np.ndarray, schema: Schema) -> int:
    """Suppressed rows that show more than the mark (I7)."""
    suppressed = kind == "suppress"
    shows = np.zeros(int(suppressed.sum()), dtype=bool)
    for column in columns:
        mark = np.array([cell == schema.render.suppressed for cell in column.cells])
        shows |= ~mark[column.codes[suppressed]]
    return int(shows.sum())
