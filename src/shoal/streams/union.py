"""What the parts of a stream promise together: partitions of a topic, or shards of a folder.

Nobody is in two parts. If classes of two parts show the same cells, a reader sees them as one class
of all their members, and it keeps every promise that both keep: people add up, no value gets rarer
than in the class where it is rarest, and shares lie between those of the two.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shoal.data.certificate import Certificate
from shoal.data.numbers import exact_sum
from shoal.data.stream import KINDS
from shoal.policy.policy import Policy
from shoal.streams.certify import release_by_release, stream_certificate
from shoal.streams.core import StreamCore
from shoal.streams.gate import Gate
from shoal.streams.progress import StreamCounters


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

    return StreamCounters(
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
