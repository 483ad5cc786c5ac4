"""Releases that follow each other: shoal republish, ledger, stream, stream-status."""

import json
import shlex
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from shoal.cli import options
from shoal.cli.progress import (
    listed,
    published_already,
    say,
    say_found,
    show_certificate,
    show_findings,
    show_warning,
    shown,
)
from shoal.cli.verify import opened
from shoal.data.certificate import Certificate
from shoal.data.option import Request, option
from shoal.data.warnings import MOSTLY_ASIDE
from shoal.errors import ANOTHER_STREAM, CheckpointError, InputError, PromiseError
from shoal.policy.options import POLICY, REPLACE, Overrides
from shoal.reports.text import counted_text, prospect_text, rehearsal_text, summary
from shoal.streams.options import StreamOptions

if TYPE_CHECKING:
    from shoal.policy.policy import Policy

# shoal ledger


ledger = typer.Typer(help="Read and verify a ledger of releases.", no_args_is_help=True)


@ledger.command("verify")
def verify(
    ledger: str = option("DIR", "The ledger, or the table in a database that it writes.", ...),
    noted: str | None = option("--noted HASH", "A hash noted earlier: the chain must hold it."),
    as_json: bool = option("--json", "Print the releases and the last hash as JSON.", False),
    quiet: bool = options.QUIET,
) -> None:
    """Check the chain of hashes; name changed, missing or reordered releases (exit status 1)."""
    from shoal.auditor.ledger.release_view import unmarked, verify_ledger

    releases, head = verify_ledger(ledger, noted=noted)
    if as_json:
        found = {"releases": releases, "head": head, "notes": unmarked(ledger)}
        typer.echo(json.dumps(found, indent=2))
    elif not quiet:
        say(_whole_chain(releases, head))
        for note in unmarked(ledger):
            say(f"shoal: {note}")


def _whole_chain(releases: int, head: str) -> str:
    if not releases:
        return f"no release yet; the first will follow {head}"
    if releases == 1:
        return f"1 release is as it was published; the last is {head}"
    return f"{releases} releases follow each other as they were published; the last is {head}"


@ledger.command("export")
def export(
    ledger: Path = option("DIR", "The ledger.", ...),
    output: str = option("-o, --output", "The table; '-' writes CSV to standard output.", ...),
    replace: bool = REPLACE,
    release: int | None = option("--release N", "As of this release; else the last."),
    quiet: bool = options.QUIET,
) -> None:
    """Write the whole published table as of a release."""
    from shoal.auditor.ledger.release_view import export_table, invented_rows

    options.check_outputs(output, inputs=[], replace=replace)
    records, number = export_table(ledger, output, release)
    if not quiet:
        say(f"wrote {records} record{'' if records == 1 else 's'} as of release {number:04d}")
        invented, files = invented_rows(ledger, number)
        if invented:
            says = "says" if len(files) == 1 else "say"
            say(f"{_invented(invented)}: {listed(files)} {says} in which classes")


class RepublishRequest(Request, kw_only=True):
    """What a republication is asked."""

    increment: str = option("INCREMENT", "The new records; '-' reads CSV from standard input.", ...)
    policy: Path = POLICY
    ledger: Path = option("--ledger DIR", "The ledger; begun if it is not there.", ...)
    output: str | None = option(
        "-o, --output TABLE",
        "A table in a database that takes the releases, too: 'sqlite:///FILE?table=NAME' or"
        " 'postgresql://...'. Each is committed with its certificate, once.",
    )
    allow_leaks: bool = option(
        "--allow-leaks", "Publish although the history breaks; the certificate says so.", False
    )
    what_if: bool = option(
        "--what-if", "Show what each method would do with it; publish nothing.", False
    )
    earlier: list[str] | None = option(
        "--earlier FILE",
        "With --what-if: an increment before this one, in order; repeatable. Shows how much"
        " of all of them 'sticky' publishes of people who come again.",
        needs=("what_if",),
        why="--earlier: belongs to --what-if; add that, or leave this out",
    )
    overrides: Overrides


def republish(
    asked: RepublishRequest,
    sign: Path | None = options.SIGN,
    as_json: bool = options.JSON,
    report: Path | None = option("--report FILE.html", "Write a report over the whole history."),
    *,
    watched: options.Watched,
) -> None:
    """Append the next release of a growing table to a ledger, if safe beside all earlier ones.

    Otherwise nothing is written.
    """
    from shoal.connectors import metrics
    from shoal.connectors.ledger import Ledger
    from shoal.ledgers.republish import republish_file, with_its_method

    ledger, quiet = Ledger(asked.ledger), watched.quiet
    InputError.raise_for(ledger.around(report))
    signer = opened(sign)
    with_method = partial(with_its_method, ledger=ledger, explicit=False)
    policy = asked.overrides.policy(asked.policy, "republish", with_method)
    inputs = [asked.increment, *policy.files]
    options.check_outputs(report=report, inputs=inputs, replace=False)
    if asked.what_if and asked.output is not None and not asked.earlier:
        raise InputError("--what-if: writes nothing; leave out --output")
    if asked.what_if:
        return _show_what_if(asked, policy, as_json, quiet)
    with shown(quiet) as progress:
        done = republish_file(
            asked.increment,
            policy,
            asked.ledger,
            output=asked.output,
            allow_leaks=asked.allow_leaks,
            progress=progress,
        )
        metrics.note(
            {
                "ledger_releases": ("Releases of the ledger.", len(ledger.releases())),
                "ledger_waiting_records": ("Records that wait.", done.waiting),
            }
        )
        out = None if done.release is None else f"release {done.release:04d}"
        with published_already(out):
            if signer is not None and done.certificate is not None:
                if not done.certificate.holds:
                    raise PromiseError("it gives people away with earlier ones; nothing is signed")
                # an increment that was published before, too: a signature may be interrupted
                signer.sign(asked.ledger / f"{done.release:04d}" / "certificate.json")
            if report is not None:
                from shoal.auditor.ledger.history import audit_releases
                from shoal.reports.history import write_history_report

                progress("drawing the report")
                write_history_report(audit_releases(asked.ledger), report)
    if done.unfinished:  # also under --quiet: somebody has to make room
        say(f"shoal: {done.unfinished}")
    if done.certificate is not None and not done.repeated:
        show_findings(done.certificate.warnings)
    for remark in done.remarks:
        show_warning(remark)
    if as_json and done.certificate is not None:
        typer.echo(done.certificate.to_json(), nl=False)
    elif as_json:
        why = {"waiting": done.waiting, "reasons": list(done.reasons), "repeated": done.repeated}
        typer.echo(json.dumps({"release": None, **why}, indent=2))
    if quiet:
        return
    if done.caught_up:
        what = counted_text(done.caught_up, "release was", "releases were")
        say(f"shoal: {what} in the ledger and not in the table: written there, too")
    if done.repeated:
        known = "was accepted" if done.release is None else f"is release {done.release:04d}"
        is_signed = signer is not None and done.release is not None
        did = "its signature was written" if is_signed else "nothing was done"
        say(f"shoal: this increment {known} already{'' if done.caught_up else f'; {did}'}")
    elif done.release is None:
        say(f"shoal: no new release: {_waiting(done.waiting)}")
        for reason in done.reasons:
            say(f"shoal: reason: {reason}")
    elif done.certificate is not None and not as_json:
        written = listed([asked.ledger / f"{done.release:04d}", report])
        say(summary(done.certificate, written))
        if "counterfeits" in done.certificate:
            say(_invented(done.certificate["counterfeits"]["records"]))
        if asked.output is not None:
            say("the same rows are in the table")
        for finding in done.certificate["history"]["findings"]:
            if finding["breaks"]:
                say(f"history, {finding['check']}: DOES NOT HOLD, published by --allow-leaks")
        if done.waiting:
            say(_waiting(done.waiting))
    for count, became in ((done.deleted, "deleted"), (done.updated, "updated")):
        if count:
            say(f"{counted_text(count, 'person was', 'people were')} {became}")
    if done.left_out:
        what = counted_text(done.left_out, "record")
        say(f"shoal: {what} waited to the deadline and can't be published: left out")
    if done.head:
        say(
            "note in another place: shoal ledger verify"
            f" {shlex.quote(str(asked.ledger))} --noted {done.head}"
        )
    if done.returning:
        people = counted_text(done.returning, "person", "people")
        say(f"shoal: {people} who waited returned: each now has several records, and counts once")


def _invented(rows: int) -> str:
    return f"{rows} of these rows {'is' if rows == 1 else 'are'} invented"


def _waiting(records: int) -> str:
    what = counted_text(records, "record waits", "records wait") if records else "no records wait"
    return f"{what} for the next increment"


def _show_what_if(asked: RepublishRequest, policy: "Policy", as_json: bool, quiet: bool) -> None:
    """What would become of the increment, or of all in a row."""
    from shoal.ledgers import what_if

    with shown(quiet) as progress:
        progress("reading the increment")
        *earlier, source = [
            policy.tables.read_original(path, allow_empty=True)
            for path in (*(asked.earlier or ()), asked.increment)
        ]
        if earlier:
            rehearsals = what_if.rehearsals([*earlier, source], policy, progress)
            text = what_if.as_json(rehearsals) if as_json else rehearsal_text(rehearsals)
        else:
            prospects = what_if.prospects(source, policy, asked.ledger, progress)
            text = what_if.as_json(prospects) if as_json else prospect_text(prospects)
    typer.echo(text, nl=False)


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
    named = [wanted.source, wanted.sink, wanted.trace, wanted.named_letters, *wanted.read]
    options.check_outputs(report=report, inputs=named, replace=False, release=wanted.sink)
    try:
        with shown(watched.quiet) as progress:
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
        raise SystemExit(1 if _say_set_aside(wanted) else 130) from None
    show_certificate(certificate, as_json)
    if not as_json and (wanted.sink != "-" or watched.quiet):
        written = listed([wanted.sink, wanted.certificate_path, report])
        say_found(summary(certificate, written), watched.quiet)
    is_lost = _say_set_aside(wanted, certificate)
    raise typer.Exit(0 if certificate.holds and not is_lost else 1)


def _say_set_aside(wanted: StreamOptions, certificate: Certificate | None = None) -> bool:
    """Says how many records were set aside, however quiet the command is: lost input is no
    progress. Whether these are most of the last ones. certificate: of a stream that has ended; one
    that was stopped has its status.
    """
    from shoal.streams.stream_status import partitions_under, stream_status

    kept = wanted.checkpoint
    parts = [] if kept is None else partitions_under(kept)
    bad, is_lost = 0, False
    if certificate is not None:
        bad = certificate["records"]["rejected"]
        is_lost = any(warning.code == MOSTLY_ASIDE for warning in certificate.warnings)
    elif kept is not None:
        for folder in parts or [kept]:
            with suppress(CheckpointError):  # nothing was committed
                status = stream_status(folder)
                bad += status["records"]["set_aside"]
                is_lost |= status.is_mostly_aside
    if bad:
        were = "record was" if bad == 1 else "records were"
        aside = wanted.bad_records
        if parts:
            aside = aside.parent / "partition-*" / aside.name
        said = f"shoal: {bad} bad {were} set aside; {aside} says which and why"
        if certificate is not None and kept is not None:
            said += f". This stream has ended: for those not appended since, {ANOTHER_STREAM}"
        say(said, "warning")
    return is_lost
