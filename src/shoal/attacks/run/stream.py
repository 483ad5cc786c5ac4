"""Attack a stream's release: its private trace tells whose row is whose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.attacks.run.attack import attacked, request_of_frames
from shoal.attacks.run.earlier import Earlier
from shoal.attacks.run.people import AttackedRelease
from shoal.attacks.run.request import ALL, Asked, AttackRequest
from shoal.auditor.audit import AuditResult
from shoal.auditor.stream_trace import StreamSource, audit_traced, read_trace
from shoal.connectors.frames import Frame, table_of
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress
from shoal.data.regular_files import path_text
from shoal.data.table import Table
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
    request = request_of_frames(policy, attacks, control, external, earlier)
    table, source = table_of(released), table_of(original).frame
    read = StreamSource(source, np.arange(source.height), None)
    lines = read_trace(path_text(trace, "trace"))
    result = audit_traced(table, policy, read, lines, progress)
    return attack_read_stream(result, table, lines, policy, request, progress)


def attack_read_stream(
    result: AuditResult,
    released: Table,
    trace: pl.DataFrame,
    policy: Policy,
    request: AttackRequest,
    progress: Progress = no_progress,
) -> Certificate:
    """The certificate of a stream that was audited with its trace, with its attacks."""
    assert result.truth is not None
    taken = np.sort(trace["seq"].to_numpy())
    others = tuple(_placed(each, taken) for each in request.earlier)
    target = AttackedRelease.of_audited(result, released, result.truth.original, policy)
    request = replace(request, earlier=others)
    return attacked(result.certificate, target, policy, request, progress)


def _placed(earlier: Earlier, taken: np.ndarray) -> Earlier:
    """Another stream with its records by their places among those that this one took."""
    if earlier.rows is None or not len(taken):
        return earlier
    at = np.minimum(np.searchsorted(taken, earlier.rows), len(taken) - 1)
    return replace(earlier, rows=np.where(taken[at] == earlier.rows, at, -1))
