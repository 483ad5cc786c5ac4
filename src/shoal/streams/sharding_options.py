"""What a stream by an engine can be asked for."""

from __future__ import annotations

from pathlib import Path

from shoal.connectors import files
from shoal.connectors.database.address import is_address
from shoal.connectors.outputs import refuse_table
from shoal.errors import InputError
from shoal.policy.policy import Policy
from shoal.streams import kafka
from shoal.streams.options import StreamOptions
from shoal.streams.union import findings_of_parts

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
