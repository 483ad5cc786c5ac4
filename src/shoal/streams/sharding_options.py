"""What a stream by an engine can be asked for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.connectors import files
from shoal.connectors.database.address import is_address
from shoal.connectors.outputs import refuse_table
from shoal.data.certificate import Certificate
from shoal.data.numbers import exact_sum
from shoal.data.stream import KINDS
from shoal.errors import InputError
from shoal.policy.policy import Policy
from shoal.streams import kafka
from shoal.streams.certify import release_by_release, stream_certificate
from shoal.streams.core import StreamCore
from shoal.streams.gate import Gate
from shoal.streams.options import StreamOptions
from shoal.streams.progress import StreamCounters

MOST_SHARDS = 4096


def require_fit(options: StreamOptions, policy: Policy) -> None:
    """Raises InputError with everything that an engine can't do with a stream."""
    refuse_table(options.source)
    policy.require_answers()
    policy.check_files("stream")
    policy.build_method("stream")
    findings = [
        *_unfit_folders(options),
        *_unfit_options(options),
        *findings_of_parts(policy, "shards", "leave out --engine"),
    ]
    if findings:
        raise InputError.from_findings(findings)


def _unfit_folders(options: StreamOptions) -> list[str]:
    source, sink = Path(options.source), Path(options.sink)
    findings = []
    if kafka.is_topic(options.source) or options.source == files.STANDARD or not source.is_dir():
        findings.append(
            f"source '{options.source}': is not a folder; an engine reads a stream from the files"
            " of a folder, which all workers see"
        )
    is_other = kafka.is_topic(options.sink) or is_address(options.sink)
    if is_other or not (options.sink.endswith("/") or sink.is_dir()) or sink.suffix:
        findings.append(
            f"output '{options.sink}': is not a folder; an engine writes a stream into one: end"
            " its name with '/', and without a file's suffix"
        )
    elif not sink.absolute().parent.is_dir():
        findings.append(f"output '{options.sink}': lies in a folder that does not exist; make it")
    if options.checkpoint is None:
        findings.append(
            "--checkpoint: is missing; an engine keeps the state of a stream in a folder that all"
            " workers see"
        )
    else:
        findings += _nested([source, sink, options.checkpoint])
    return findings


def _nested(folders: list[Path]) -> list[str]:
    whole = [folder.resolve() for folder in folders]
    if any(
        one == other or one in other.parents
        for at, one in enumerate(whole)
        for place, other in enumerate(whole)
        if at != place
    ):
        return ["source, output and checkpoint: one lies in another; give each a folder of its own"]
    return []


def _unfit_options(options: StreamOptions) -> list[str]:
    findings = [
        f"{name}: is not for a stream by an engine; leave it out: {instead}"
        for name, is_given, instead in (
            ("--trace", options.trace is not None, "no trace is written"),
            ("--deadline", options.deadline is not None, "batches have no clock"),
        )
        if is_given
    ]
    if options.shards is not None and not 1 <= options.shards <= MOST_SHARDS:
        findings.append(f"--shards: is not a number from 1 to {MOST_SHARDS}")
    return findings


# What the parts of a stream promise together: partitions of a topic, or shards of a folder.
#
# Nobody is in two parts. If classes of two parts show the same cells, a reader sees them as one
# class of all their members, and it keeps every promise that both keep: people add up, no value
# gets rarer than in the class where it is rarest, and shares lie between those of the two.


@dataclass(frozen=True)
class Part:
    """One of the streams: what it did and what was measured. waiting: records that it holds."""

    number: int
    counters: StreamCounters
    gate: Gate
    waiting: int


NOTHING: dict[str, Any] = {"input": {"sha256": None}, "output": {"sha256": None}}
"""What a certificate states for a source and a sink that are not files."""


def union_certificate(
    parts: Sequence[Part],
    core: StreamCore,
    policy: Policy,
    named: str,
    more: dict[str, Any],
    read_and_written: dict[str, Any] = NOTHING,
) -> Certificate:
    """What was measured release by release in every part.

    core: of any part. named: what a part is called, such as `partition`. more: what the
    certificate's `stream` says of all. read_and_written: its `input` and `output`.
    """
    certificate = stream_certificate(
        release_by_release(core, all_measured([part.gate for part in parts])),
        policy,
        all_counted([part.counters for part in parts]),
        sum(part.waiting for part in parts),
        read_and_written,
        time.process_time(),
    )
    each = {
        **more,
        f"{named}s": [
            {
                named: part.number,
                "in": part.counters.read,
                "out": part.counters.published,
                "rejected": part.counters.bad,
                "closed": part.counters.closed,
                "least_class": part.gate.least,
            }
            for part in parts
        ],
    }
    return certificate.extended(stream={**certificate["stream"], **each})


def all_counted(all_of: Sequence[StreamCounters]) -> StreamCounters:
    """The counters of all parts, without their histories."""

    def total(name: str) -> Any:
        return sum(getattr(one, name) for one in all_of)

    worst = max(all_of, key=lambda one: len(one.late) / max(one.window, 1))
    return StreamCounters(
        late=worst.late,
        window=worst.window,
        **{name: total(name) for name in _ADDED},
        kinds={kind: sum(one.kinds[kind] for one in all_of) for kind in KINDS},
        longest=max(one.longest for one in all_of),
        closed=all(one.closed for one in all_of),
    )


_ADDED = ("read", "bad", "published", "releases", "clusters", "waited")


def all_measured(gates: Sequence[Gate]) -> Gate:
    """What was measured in all parts."""
    return Gate(
        gates[0].schema,
        gates[0].measures,
        least=min((one.least for one in gates if one.least is not None), default=None),
        rows=sum(one.rows for one in gates),
        suppressed=sum(one.suppressed for one in gates),
        loss=exact_sum(one.loss for one in gates),
    )


def findings_of_parts(policy: Policy, parts: str, instead: str) -> list[str]:
    """Promises that do not hold for all parts though they hold in each. parts: such as
    `partitions`. instead: what to do.
    """
    return [
        f"promise '{promise.model}': may fail where classes of different {parts} show the same"
        f" cells; leave it out, or {instead}"
        for promise in policy.build_promises()
        if not promise.monotone
    ]
