"""shoal stream, shoal stream-status"""

import json
import warnings
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import typer

from shoal.cli import options
from shoal.cli.progress import (
    listed,
    published_already,
    say,
    say_found,
    show_certificate,
    show_warning,
    shown,
)
from shoal.data.certificate import Certificate
from shoal.data.option import option
from shoal.data.warnings import MOSTLY_ASIDE, ReleaseWarning
from shoal.errors import ANOTHER_STREAM, CheckpointError, InputError
from shoal.policy.options import POLICY, Overrides
from shoal.reports.text import summary
from shoal.streams.options import StreamOptions

# shoal stream-status


def stream_status(
    checkpoint: Path = option("DIR", "The stream's --checkpoint folder.", ...),
    as_json: bool = option("--json", "Print all of it as JSON.", False),
    strict: bool = option(
        "--strict", "Exit status 1 if a stream is silent, stopped or failed, too.", False
    ),
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
    good &= not strict or not any(one.is_silent or one.is_halted for one in found.values())
    raise typer.Exit(0 if good else 1)


def stream(
    *,
    policy: Path = POLICY,
    wanted: StreamOptions,
    overrides: Overrides,
    watched: options.Watched,
    as_json: bool = options.JSON,
    report: Path | None = options.REPORT,
    engine: str | None = options.ENGINE,
) -> None:
    """Publish records as they arrive; with --checkpoint, resumes exactly where it stopped."""
    from shoal.streams.run import stream_file

    if wanted.sink == "-" and as_json:
        raise InputError("--json and -o -: both want standard output; write the stream to a file")
    asked = overrides.policy(policy, "stream", lambda found: found.or_method("fads"))
    wanted = replace(wanted, read=tuple(asked.files))
    named = [wanted.source, wanted.sink, wanted.trace, wanted.named_letters]
    options.check_outputs(report=report, inputs=[*named, *wanted.read], release=wanted.sink)
    try:
        with shown(watched.quiet) as progress, warnings.catch_warnings():
            warnings.simplefilter("always", ReleaseWarning)
            warnings.showwarning = lambda text, *_, **__: show_warning(text)
            certificate, history = stream_file(wanted, asked, progress=progress)
            if report is not None:
                from shoal.reports.history import write_report

                progress("drawing the report")
                with published_already(f"'{wanted.sink}'"):
                    write_report(certificate, history, asked.model, report)
    except KeyboardInterrupt:
        if wanted.checkpoint is None:
            raise
        say("shoal: stopped; the same command resumes from there")
        _say_set_aside(wanted)
        raise SystemExit(130) from None
    show_certificate(certificate, as_json)
    if not as_json and (wanted.sink != "-" or watched.quiet):
        written = listed([wanted.sink, wanted.certificate_path, report])
        say_found(summary(certificate, written), watched.quiet)
    _say_set_aside(wanted, certificate)
    is_lost = any(warning.code == MOSTLY_ASIDE for warning in certificate.warnings)
    raise typer.Exit(0 if certificate.holds and not is_lost else 1)


def _say_set_aside(wanted: StreamOptions, certificate: Certificate | None = None) -> None:
    """Says how many records were set aside, however quiet the command is: lost input is no
    progress. certificate: of a stream that has ended; one that was stopped has its status.
    """
    from shoal.streams.stream_status import partitions_under
    from shoal.streams.stream_status import stream_status as status_of

    kept = wanted.checkpoint
    parts = [] if kept is None else partitions_under(kept)
    bad = 0
    if certificate is not None:
        bad = certificate["records"]["rejected"]
    elif kept is not None:
        for folder in parts or [kept]:
            with suppress(CheckpointError):  # nothing was committed
                bad += status_of(folder)["records"]["set_aside"]
    if bad:
        were = "record was" if bad == 1 else "records were"
        aside = wanted.bad_records
        if parts:
            aside = aside.parent / "partition-*" / aside.name
        said = f"shoal: {bad} bad {were} set aside; {aside} says which and why"
        if certificate is not None and kept is not None:
            said += f". This stream has ended: for those not appended since, {ANOTHER_STREAM}"
        say(said, "warning")
