"""What the partitions of a stream promise together.

Nobody is in two partitions. If classes of two partitions show the same cells, a reader sees them
as one class of all their members, and it keeps every promise that both keep: people add up, no
value gets rarer than in the class where it is rarest, and shares lie between those of the two.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from shoal.data.certificate import Certificate
from shoal.data.stream import KINDS
from shoal.jobs.stream.certify import release_by_release, stream_certificate
from shoal.jobs.stream.gate import Gate
from shoal.jobs.stream.partition import PartitionRun
from shoal.jobs.stream.progress import StreamCounters
from shoal.policy.policy import Policy


def union_certificate(
    runs: Sequence[PartitionRun], policy: Policy, partitioner: str | None
) -> Certificate:
    """What was measured release by release in every partition. partitioner: None where each record
    is taken to be a person.
    """
    counters, gate = _counted(runs), _measured(runs)
    certificate = stream_certificate(
        release_by_release(runs[0].core, gate),
        policy,
        counters,
        sum(run.core.waiting for run in runs),
        {"input": {"sha256": None}, "output": {"sha256": None}},
        time.process_time(),
    )
    each = {
        "partitioner": partitioner,
        "partitions": [
            {
                "partition": run.partition,
                "in": run.counters.read,
                "out": run.counters.published,
                "rejected": run.counters.bad,
                "closed": run.counters.closed,
                "least_class": run.gate.least,
            }
            for run in runs
        ],
    }
    return certificate.extended(stream={**certificate["stream"], **each})


def _counted(runs: Sequence[PartitionRun]) -> StreamCounters:
    all_of = [run.counters for run in runs]

    def total(name: str) -> Any:
        return sum(getattr(one, name) for one in all_of)

    return StreamCounters(
        **{name: total(name) for name in _ADDED},
        kinds={kind: sum(one.kinds[kind] for one in all_of) for kind in KINDS},
        longest=max(one.longest for one in all_of),
        closed=all(one.closed for one in all_of),
    )


_ADDED = ("read", "bad", "published", "releases", "clusters", "waited")


def _measured(runs: Sequence[PartitionRun]) -> Gate:
    gates = [run.gate for run in runs]
    return Gate(
        gates[0].schema,
        gates[0].measures,
        least=min((one.least for one in gates if one.least is not None), default=None),
        rows=sum(one.rows for one in gates),
        suppressed=sum(one.suppressed for one in gates),
        loss=sum(one.loss for one in gates),
    )
