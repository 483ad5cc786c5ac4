"""shoal audit"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli import options
from shoal.cli.key import opened
from shoal.cli.progress import show_warnings, shown
from shoal.data.printable import printable, printable_lines
from shoal.errors import InputError
from shoal.reports.text import history_summary, summary
from shoal.tables.request import AuditRequest

if TYPE_CHECKING:
    from shoal.auditor.audit import AuditResult
    from shoal.data.certificate import Certificate


def audit(asked: AuditRequest, handed: options.Handed, machine: options.Machine) -> None:
    """Measure what a released table promises; exit status 1 when a promise does not hold."""
    from shoal.attacks.beside.others import OtherRelease
    from shoal.auditor.verdict import is_below
    from shoal.connectors.traces import is_of_stream
    from shoal.policy.binding.past_memory import refuse_whole
    from shoal.tables.attack import attack_file

    beside = asked.attacks.beside
    if asked.ledger is not None or asked.transcript is not None:
        _refuse_memory()
    if asked.ledger is not None:
        raise typer.Exit(_audit_ledger(asked, handed))
    if asked.transcript is not None:
        raise typer.Exit(_audit_transcript(asked.transcript, handed.as_json, handed.quiet))
    released, original, qi = asked.released, asked.original, asked.columns.qi
    if released is None or (asked.policy is None and qi is None):
        raise InputError(
            "audit: needs RELEASED and --policy or --qi, or --ledger or --transcript; see 'shoal"
            " audit --help'"
        )
    signer = opened(handed.sign)
    is_stream = asked.trace is not None and is_of_stream(asked.trace)
    policy = asked.policy_asked(is_stream)
    if asked.downstream and (original is None or is_stream):
        raise InputError(
            "--downstream: compares with the original, record by record; give it with --original"
        )
    if asked.record_lines is not None and not is_stream:
        raise InputError("--record-lines: is how a stream read its source; give it with --trace")
    heading = handed.heading(released)
    inputs = [released, original, str(asked.policy or "-"), *policy.files, *asked.attacks.files]
    options.check_outputs(asked.output, report=handed.report, inputs=inputs)
    others_asked = {
        "--trace": is_stream,
        "--report": handed.report,
        "--others": asked.attacks.others,
    }
    refuse_whole({**others_asked, "--downstream": asked.downstream}, released, original)
    with shown(handed.quiet) as progress:
        own = OtherRelease(
            release=released,
            policy=policy,
            original=original,
            trace=asked.trace,
            record_lines=asked.record_lines,
        )
        result = attack_file(
            own,
            asked.attacks.request(policy),
            progress,
            others=beside,
            output=asked.output,
            downstream=asked.downstream,
        )
        if signer is not None and asked.output is not None and result.certificate.holds:
            signer.sign(asked.output)
        if handed.report is not None:
            from shoal.reports.release import write_report

            progress("drawing the report")
            write_report(result, policy, handed.report, heading)
    certificate = result.certificate
    show_warnings(certificate)
    for caveat in _caveats(result, original, is_stream):
        print(f"shoal: {printable(caveat)}", file=sys.stderr)
    if handed.as_json:
        typer.echo(certificate.to_json(), nl=False)
    elif not handed.quiet:
        typer.echo(summary(certificate), err=True)
        if "attacks" in certificate:
            _print_attacks(certificate)
        _print_beside(certificate.get("beside"))
        if asked.downstream:
            from shoal.reports.text import downstream_sentences

            print(printable_lines(downstream_sentences(certificate["downstream"])), file=sys.stderr)
    if signer is not None and not certificate.holds:
        print("shoal: the certificate is not signed: not everything holds", file=sys.stderr)
    fails = not certificate.holds or (asked.require_together and is_below(certificate))
    raise typer.Exit(1 if fails else 0)


def _refuse_memory() -> None:
    """Raises InputError where there is a limit, which only an audit of one table keeps."""
    from shoal.data import room

    if room.limit() is not None:
        raise InputError(
            "--memory: is kept for one table; leave it out with --ledger, --transcript"
        )


def _caveats(result: AuditResult, original: str | None, is_stream: bool) -> Iterator[str]:
    """What the audit could not look at."""
    if original is not None and "presence" in result.certificate:
        yield (
            "rows are sorted by what they show: among people who are alike in their"
            " quasi-identifiers, a changed value can't be told"
        )
    elif original is not None and result.truth is None:
        yield (
            "rows are sorted by what they show, so they can't be matched with the original: cells"
            " and people are not measured; give --trace"
        )
    if result.certificate["counted"] == "rows":
        is_input = result.problem.schema.render.order == "input"
        remedy = f"; give {'--original' if is_input else '--original and --trace'} to count people"
        yield f"the release names no subjects, so rows were counted, not people{remedy}"
    if any(row["holds"] is None for row in _accepted(result)):
        yield "what the policy accepts of attacks is not judged; give --original"
    if is_stream and any(
        p["model"] == "t-closeness" and "to" not in p for p in result.certificate["promises"]
    ):
        yield (
            "t-closeness was measured to the published file itself; name what the stream was"
            " compared with in the policy (reference) or with --reference"
        )


def _accepted(result: AuditResult) -> list[dict[str, Any]]:
    return list(result.certificate.get("attacks", {}).get("accept", []))


def _audit_ledger(asked: AuditRequest, handed: options.Handed) -> int:
    """Audits a whole ledger; the exit status."""
    from shoal.attacks.run.ledger import audit_ledger
    from shoal.auditor.ledger.export import check_outside
    from shoal.auditor.ledger.history import write_audit
    from shoal.connectors.location import Location

    ledger, output, report = asked.ledger, asked.output, handed.report
    assert ledger is not None
    if asked.released is not None and not Location(asked.released).is_table:
        raise options.takes_no("audit --ledger", ["RELEASED"])
    check_outside(ledger, report, output)
    options.check_outputs(output, report=report, inputs=[])
    with shown(handed.quiet) as progress:
        result = audit_ledger(
            ledger, k=asked.k, attack=asked.attacks.names, table=asked.released, progress=progress
        )
        beside = asked.attacks.beside
        if beside is not None and not result.damage:
            from shoal.attacks.beside.audit import audit_together
            from shoal.attacks.beside.sources import of_ledger

            releases = [of_ledger(ledger, "--ledger"), *beside.judged(progress)]
            result = replace(result, beside=audit_together(releases, beside, progress))
        if report is not None:
            from shoal.reports.history import write_history_report

            write_history_report(result, report)
    if output is not None:
        write_audit(result, output)
    if handed.as_json:
        typer.echo(json.dumps(result.report(), indent=2))
    elif not handed.quiet:
        typer.echo(history_summary(result), err=True)
        if result.attacked is not None:
            _print_attacks(result.attacked)
        _print_beside(result.beside)
    return 0 if result.holds else 1


def _print_attacks(certificate: Certificate) -> None:
    from shoal.reports.attacks import attack_lines

    print(printable_lines(attack_lines(certificate)), file=sys.stderr)


def _print_beside(found: Mapping[str, Any] | None) -> None:
    from shoal.reports.text import beside_lines

    if found:
        print(printable_lines(beside_lines(found)), file=sys.stderr)


def _audit_transcript(folder: Path, as_json: bool, quiet: bool) -> int:
    """Checks all messages of a fusion; the exit status."""
    from shoal.fusion.containment import check_transcript

    with shown(quiet) as progress:
        progress("reading the messages")
        result = check_transcript(folder)
    if as_json:
        summary = {
            "messages": result.messages,
            "bytes": result.bytes,
            "facts": result.facts,
            "vetoed": result.vetoed,
            "wrong": result.wrong,
        }
        typer.echo(json.dumps(summary | {"holds": result.holds}, indent=2))
    elif not quiet:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(result.messages.items()))
        count = sum(result.messages.values())
        print(
            f"{count} messages ({kinds}), {result.facts} facts about people",
            file=sys.stderr,
        )
        if result.vetoed:
            print(
                f"vetoed: {result.vetoed} facts about people that the table does not show were"
                " seen by the owner who refused them, as agreed",
                file=sys.stderr,
            )
        for wrong in result.wrong:
            print(f"{wrong}: DOES NOT HOLD", file=sys.stderr)
        if result.holds and result.vetoed:
            print("no other message says more than the published table: holds", file=sys.stderr)
        elif result.holds:
            print("no message says more than the published table: holds", file=sys.stderr)
    return 0 if result.holds else 1
