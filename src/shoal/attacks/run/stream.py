"""Attack a stream's release: its private trace tells whose row is whose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.attacks.run.attack import attack_audited, never_again
from shoal.attacks.run.earlier import Earlier
from shoal.attacks.run.request import ALL, Asked, AttackRequest, asked_attacks, asked_of
from shoal.auditor.audit import AuditResult
from shoal.auditor.stream_trace import (
    StreamSource,
    audit_stream,
    audit_traced,
    read_trace,
    traced_records,
)
from shoal.connectors import files
from shoal.connectors.frames import Frame, table_of
from shoal.connectors.outputs import remove_stale_signature
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress
from shoal.data.regular_files import path_text
from shoal.data.table import Table
from shoal.policy.binding.files import table_given
from shoal.policy.policy import Policy, PolicyLike


def attack_stream(
    released: Frame,
    policy: PolicyLike,
    original: Frame,
    trace: str | Path,
    attacks: Asked = ALL,
    *,
    control: Frame | None = None,
    external: Frame | None = None,
    earlier: Sequence[Any] = (),
    progress: Progress = no_progress,
) -> Certificate:
    """`attack` of all that a stream published, with the file that its `--trace` wrote.

    original: the records in the order in which they were read, those set aside among them. control:
    people who are not in the release; without it there are none to compare with, as a stream is not
    run again. external: a list of people. earlier: other releases of the same records, each alone,
    with its policy, or with that and its trace, if it is a stream as well. Raises InputError where
    these don't belong together.
    """
    policy = Policy.of(policy)
    others = tuple(_earlier(each, policy) for each in earlier)
    outside, listed = (None if frame is None else table_of(frame) for frame in (control, external))
    request = asked_of(policy, AttackRequest(asked_attacks(attacks), outside, listed, others))
    table, source = table_of(released), table_given(original, policy).frame
    read = StreamSource(source, np.arange(source.height), None)
    lines = read_trace(path_text(trace, "trace"))
    result = audit_traced(table, policy, read, lines, progress)
    return _attacked(result, table, policy, _placed(request, lines), progress)


def _earlier(each: Any, policy: Policy) -> Earlier:
    given = each if isinstance(each, tuple) else (each,)
    released, own, trace = (*given, None, None)[:3]
    rows = None if trace is None else traced_records(path_text(trace, "trace"))
    return Earlier(table_of(released), policy if own is None else Policy.of(own), rows)


def _placed(request: AttackRequest, trace: pl.DataFrame) -> AttackRequest:
    """The request, with other streams' records by their places among those that this one took."""
    taken = np.sort(trace["seq"].to_numpy())

    def placed(earlier: Earlier) -> Earlier:
        if earlier.rows is None or not len(taken):
            return earlier
        at = np.minimum(np.searchsorted(taken, earlier.rows), len(taken) - 1)
        return replace(earlier, rows=np.where(taken[at] == earlier.rows, at, -1))

    return replace(request, earlier=tuple(placed(each) for each in request.earlier))


@dataclass(frozen=True)
class StreamFiles:
    """What an audit of a stream reads and writes. output: of the certificate, if it is written.
    record_lines: lines that a record of the source could have.
    """

    released: str
    original: str
    trace: str
    output: str | None = None
    record_lines: int | None = None


def attack_stream_file(
    paths: StreamFiles, policy: Policy, request: AttackRequest, progress: Progress = no_progress
) -> AuditResult:
    """The audit of a stream by its files, with the attacks that are asked for."""
    request = asked_of(policy, request)
    named = (paths.released, policy, paths.original, paths.trace)
    lines = paths.record_lines
    if not request.attacks:
        return audit_stream(*named, paths.output, lines, progress=progress)
    result = audit_stream(*named, None, lines, progress=progress)
    table = Table(files.read(paths.released).frame)
    request = _placed(request, read_trace(paths.trace))
    certificate = _attacked(result, table, policy, request, progress)
    if paths.output is not None:
        with files.atomic_write(paths.output) as draft:
            draft.write_text(certificate.to_json())
        remove_stale_signature(paths.output)
    return replace(result, certificate=certificate)


def _attacked(
    result: AuditResult, table: Table, policy: Policy, request: AttackRequest, progress: Progress
) -> Certificate:
    assert result.truth is not None
    original = result.truth.original
    return attack_audited(result, table, original, policy, request, never_again, progress)
