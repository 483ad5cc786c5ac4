"""Publish and audit of tables in files, from Python: what is too large for a frame."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from shoal.auditor import audit as audit_job
from shoal.connectors import engines
from shoal.data import cores, room, warnings
from shoal.data.certificate import Certificate
from shoal.data.option import with_keywords
from shoal.data.progress import Progress, watched
from shoal.data.regular_files import path_text
from shoal.policy import from_columns
from shoal.policy.policy import Policy, PolicyLike
from shoal.tables import publish as publish_job
from shoal.tables.request import PublishOptions, PublishRequest, PublishWords, publish_options


@with_keywords(PublishWords, PublishOptions)
def publish_file(
    table: str | Path,
    policy: PolicyLike,
    output: str | Path,
    *,
    require_together: bool = False,
    read: Mapping[str, Any] | None = None,
    memory: int | str | None = None,
    engine: str | None = None,
    threads: int | None = None,
    progress: Progress | bool = False,
    **words: Unpack[PublishWords],
) -> Certificate:
    """One release from file to file, as `shoal publish` writes it: whole, with its certificate.

    Every promise of the policy holds on the bytes that were written; raises InputError,
    InfeasibleError or PromiseError and writes nothing otherwise. What the certificate warns about
    is a `ReleaseWarning` as well.

    table, output: names as of the command: files, folders that end in `/`, tables in databases.
    require_together: the largest k of any promise must hold over all quasi-identifiers, too.
    read: as of `shoal.audit`.
    memory: bytes that may be used, or a size such as `"700MB"`; a table that does not fit is worked
        on in nameless files. engine: `"spark"`, whose executors work on folders of Parquet.
    threads: how many may work at once; by default the process's cores. The release is the same for
        any of them; what they can't do is refused by name.

    Options as of `shoal publish`:
    """
    from_columns.refuse_unknown(words, inspect.signature(publish_file).parameters)
    with cores.using(threads), room.using(memory), engines.using(engine):
        request = PublishRequest(
            **vars(publish_options(words)),
            require_together=require_together,
            progress=watched(progress),
        )
        outcome = publish_job.publish_file(
            path_text(table, "table"), Policy.of(policy, read), path_text(output, "output"), request
        )
    for warning in outcome.certificate.warnings:
        warnings.warn(warning)
    return outcome.certificate


def audit_file(
    released: str | Path,
    policy: PolicyLike,
    original: str | Path | None = None,
    *,
    trace: str | Path | None = None,
    read: Mapping[str, Any] | None = None,
    memory: int | str | None = None,
    engine: str | None = None,
    threads: int | None = None,
    progress: Progress | bool = False,
) -> Certificate:
    """What a released file promises, measured; `certificate.holds` says whether all of it is kept.

    original, trace, read: as in `shoal.audit`. memory, engine, threads: as in `publish_file`.
    Writes nothing.
    """
    with cores.using(threads), room.using(memory), engines.using(engine):
        return audit_job.audit_file(
            path_text(released, "released"),
            Policy.of(policy, read),
            None if original is None else path_text(original, "original"),
            trace_path=None if trace is None else path_text(trace, "trace"),
            progress=watched(progress),
        ).certificate
