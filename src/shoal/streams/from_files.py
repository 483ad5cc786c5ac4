"""A stream from a source into a sink, from Python: as the command, with a checkpoint."""

from __future__ import annotations

import warnings
from pathlib import Path

from shoal.connectors import engines
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress
from shoal.data.regular_files import path_text
from shoal.policy.policy import Policy, PolicyLike
from shoal.streams import run
from shoal.streams.options import StreamOptions
from shoal.streams.stream import DEFAULT_METHOD


def stream_file(
    source: str | Path,
    policy: PolicyLike,
    output: str | Path,
    *,
    checkpoint: str | Path | None = None,
    engine: str | None = None,
    shards: int | None = None,
    reference: str | Path | None = None,
    follow: bool = False,
    progress: Progress = no_progress,
) -> Certificate:
    """Publishes a source into a sink as `shoal stream` does, to its end; resumes where the
    checkpoint stopped.

    Every release is measured from its bytes before it leaves. Raises InputError, CheckpointError,
    or PromiseError where one breaks a promise: it is withheld, and the stream stops. What the
    certificate warns about is a `ReleaseWarning` as well.

    source, output: names as of the command. checkpoint: the folder that keeps the state. engine:
    `"spark"`, whose executors publish the files of a folder in so many `shards`, each a stream of
    its own; both need the checkpoint, which also remembers the number of shards. reference: a table
    that shows domains and values which the policy leaves open. follow: whether to wait for more
    until interrupted.
    """
    asked = Policy.of(policy)
    if asked.model.method is None:
        asked = asked.with_method(DEFAULT_METHOD)
    options = StreamOptions(
        path_text(source, "source"),
        path_text(output, "output"),
        None if checkpoint is None else Path(path_text(checkpoint, "checkpoint")),
        reference=None if reference is None else path_text(reference, "reference"),
        follow=follow,
        shards=shards,
    )
    with engines.using(engine):
        certificate, _ = run.stream_file(options, asked, progress=progress)
    for warning in certificate.warnings:
        warnings.warn(warning, stacklevel=2)
    return certificate
