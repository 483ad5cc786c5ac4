"""The certificates of a stream in shards: of each shard, and of all, which is the manifest."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from shoal.connectors import files
from shoal.connectors.file_description import describe_file
from shoal.data.certificate import Certificate
from shoal.policy.policy import Policy
from shoal.streams.batch_folder import digest
from shoal.streams.certify import release_by_release, stream_certificate
from shoal.streams.core import StreamCore
from shoal.streams.gate import Gate
from shoal.streams.progress import StreamCounters
from shoal.streams.shard import FORM, ShardState, shard_folder, shard_policy
from shoal.streams.sharded_state import Committed
from shoal.streams.union import NOTHING, Part, union_certificate


def parts_of(states: Sequence[ShardState | None], core: StreamCore) -> list[Part]:
    """What each shard did. core: of any shard."""
    nothing = Gate(core.schema, core.measures)
    return [
        Part(shard, StreamCounters(), nothing, 0)
        if state is None
        else Part(shard, state.counters, state.gate(nothing), state.waiting)
        for shard, state in enumerate(states)
    ]


def certificate_of_all(
    state: Committed, core: StreamCore, policy: Policy, output: Path
) -> Certificate:
    """What was measured in all shards, and which files of the output they are in."""
    entries = sorted(state.files, key=lambda entry: str(entry["name"]))
    # a folder of one format is described as a file of it
    sink = describe_file(output, f"{output}{FORM}", digest(entries), core.schema.render)
    files = {
        "input": {"sha256": state.source_digest if state.closed else None},
        "output": {**sink, "files": entries},
    }
    return union_certificate(parts_of(state.states, core), core, policy, "shard", {}, files)


def certify_shards(
    parts: Sequence[Part], core: StreamCore, policy: Policy, checkpoint: Path
) -> None:
    """Writes the certificate of each shard into its folder."""
    for part in parts:
        certificate = stream_certificate(
            release_by_release(core, part.gate),
            shard_policy(policy, part.number),
            part.counters,
            part.waiting,
            NOTHING,
            time.process_time(),
        )
        path = shard_folder(checkpoint, part.number) / "certificate.json"
        with files.atomic_write(str(path)) as draft:
            draft.write_text(certificate.to_json())
