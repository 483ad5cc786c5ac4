"""Audit of a published stream with its private trace: what the published file alone can't show.

Shares no code with the methods. Everything is judged from the source, the published rows and the
trace.
"""

import time
from dataclasses import dataclass

import numpy as np
import polars as pl

from shoal.auditor import trace_rules
from shoal.auditor.audit import AuditResult
from shoal.auditor.description import described
from shoal.auditor.measure import measure
from shoal.auditor.trace_rules import TracedRelease
from shoal.connectors.feeds import feed_of
from shoal.data.progress import Progress
from shoal.data.schema import Fields
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.policy.binding.table import bind_stream, bound_original
from shoal.policy.policy import Policy


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
        "rows": trace_rules.wrong_rows(shown, released.records),
        "records": trace_rules.wrong_records(trace, source.records),
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
    faults |= certificate["faults"] | trace_rules.broken_rules(traced)
    if reference is None and bind_stream(source.names, policy)[0] is None:
        # it had one that is not at hand, whose domains decide what a cluster loses
        faults = {rule: count for rule, count in faults.items() if rule not in trace_rules.OF_REUSE}
    if not any(faults.values()) and trace_rules.names_other_people(traced):
        raise InputError(
            "trace: its people are not those of the source; give the trace that was written with it"
        )
    certificate = certificate.extended(
        faults=faults, seconds={"total": time.process_time() - started, "method": None}
    )
    return AuditResult(certificate, measured.held, problem, truth)


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
    feed = feed_of(path, fields=fields)
    try:
        pieces = [feed.read()]
        while not pieces[-1].at_end:
            pieces.append(feed.read())
    finally:
        feed.close()
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
