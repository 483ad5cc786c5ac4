"""shoal stream, shoal stream-status"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.options import argument, option, with_engine
from shoal.cli.progress import listed, published_already, show_warnings, shown
from shoal.data.warnings import MOSTLY_ASIDE
from shoal.errors import InputError
from shoal.reports.text import summary

# shoal stream-status


def stream_status(
    checkpoint: Annotated[Path, argument("DIR", "The stream's --checkpoint folder.")],
    as_json: Annotated[bool, option("--json", "Print all of it as JSON.")] = False,
) -> None:
    """Say how a running stream is doing, by its last commit: verdict, counts, loss, waits, and what
    to look at. Reads no record, and the stream does not notice. Exit status 1 where a release broke
    a promise or most of the last 1,000 records were set aside, 2 where there is no status.
    """
    from shoal.reports.advice_in_words import status_lines
    from shoal.streams.stream_status import partitions_under
    from shoal.streams.stream_status import stream_status as status_of

    parts = partitions_under(checkpoint)
    found = {path.name: status_of(path) for path in parts} or {"": status_of(checkpoint)}
    if as_json:
        contents = {
            name: {**one.content, "alarms": [asdict(alarm) for alarm in one.alarms]}
            for name, one in found.items()
        }
        typer.echo(json.dumps(contents if parts else contents[""], indent=2))
    else:
        for name, one in found.items():
            if name:
                typer.echo(f"{name}:")
            for line in status_lines(one):
                typer.echo(f"  {line}" if name else line)
    good = all(one.holds and not one.is_mostly_aside for one in found.values())
    raise typer.Exit(0 if good else 1)


@with_engine
@options.with_overrides
def stream(
    source: Annotated[
        str,
        argument("SOURCE", "The records; '-' reads CSV from standard input."),
    ],
    policy: options.PolicyFile,
    output: Annotated[str, option("-o, --output SINK", "Where rows go; '-' writes CSV.")],
    checkpoint: Annotated[
        Path | None,
        option("--checkpoint DIR", "Keeps all state; the same command resumes."),
    ] = None,
    trace: Annotated[
        str | None,
        option("--trace FILE", "What became of every record (JSON lines); private."),
    ] = None,
    dead_letters: Annotated[
        str | None,
        option("--dead-letters FILE", "Where bad records are listed, by place."),
    ] = None,
    on_bad: Annotated[
        str, option("--on-bad", "dead-letter sets bad records aside; stop ends.")
    ] = "dead-letter",
    reference: Annotated[
        str | None,
        option("--reference TABLE", "Shows domains and values the policy leaves open."),
    ] = None,
    follow: Annotated[bool, option("--follow", "Wait for more when the file ends.")] = False,
    deadline: Annotated[
        float | None,
        option("--deadline SECONDS", "Release records after so long, too.", min=0),
    ] = None,
    record_lines: Annotated[
        int,
        option(
            "--record-lines", "Lines of a CSV record at most; beyond, a quote was left open.", min=1
        ),
    ] = 100,
    partitioner: Annotated[
        str,
        option(
            "--partitioner",
            "How producers map keys to a topic's partitions: murmur2 (Java) or crc32.",
        ),
    ] = "murmur2",
    shards: Annotated[
        int | None,
        option(
            "--shards N",
            "With --engine: streams that people are divided among; fixed at the start.",
        ),
    ] = None,
    durability: Annotated[
        str,
        option("--durability", "What a commit survives: power (of the machine) or process."),
    ] = "power",
    measured: Annotated[
        str,
        option("--measure", "The certificate: of the whole file, or by release in flat memory."),
    ] = "whole",
    overrides: options.Overrides = options.NO_OVERRIDES,
    as_json: options.Json = False,
    report: options.Report = None,
    quiet: options.Quiet = False,
) -> None:
    """Publish records as they arrive; with --checkpoint, resumes exactly where it stopped."""
    from shoal.streams.kafka_group import PARTITIONERS
    from shoal.streams.options import ON_BAD, StreamOptions
    from shoal.streams.run import stream_file

    if output == "-" and as_json:
        raise InputError("--json and -o -: both want standard output; write the stream to a file")
    for name, value, known in (
        ("--on-bad", on_bad, ON_BAD),
        ("--durability", durability, ("power", "process")),
        ("--partitioner", partitioner, PARTITIONERS),
        ("--measure", measured, ("whole", "release")),
    ):
        if value not in known:
            raise InputError(f"{name} '{value}': is unknown; choose one of {', '.join(known)}")
    asked = overrides.policy(policy, "stream", "fads")
    read = (str(policy), *asked.files)

    options.check_outputs(report=report, inputs=[source, output, trace, dead_letters, *read])
    wanted = StreamOptions(
        source,
        output,
        checkpoint,
        trace,
        dead_letters,
        reference,
        on_bad,
        follow,
        deadline,
        durable=durability == "power",
        whole=measured == "whole",
        record_lines=record_lines,
        partitioner=partitioner,
        shards=shards,
        read=read,
    )
    try:
        with shown(quiet) as progress:
            certificate, history = stream_file(wanted, asked, progress=progress)
            if report is not None:
                from shoal.reports.history import write_report

                progress("drawing the report")
                with published_already(f"'{output}'"):
                    write_report(certificate, history, asked, report)
    except KeyboardInterrupt:
        if checkpoint is None:
            raise
        typer.echo("shoal: stopped; the same command resumes from there", err=True)
        raise SystemExit(130) from None
    show_warnings(certificate)
    if as_json:
        typer.echo(certificate.to_json(), nl=False)
    elif not quiet and output != "-":
        drawn = [str(report)] if report else []
        written = listed([output, wanted.certificate_path, *drawn])
        typer.echo(summary(certificate, written), err=True)
    bad = certificate["records"]["rejected"]
    if bad:  # lost input is no progress
        were = "record was" if bad == 1 else "records were"
        aside = wanted.bad_records
        if "partitions" in certificate["stream"]:
            aside = aside.parent / "partition-*" / aside.name
        typer.echo(f"shoal: {bad} bad {were} set aside; {aside} says which and why", err=True)
    is_lost = any(warning.code == MOSTLY_ASIDE for warning in certificate.warnings)
    raise typer.Exit(0 if certificate.holds and not is_lost else 1)
