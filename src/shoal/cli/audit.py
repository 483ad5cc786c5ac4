"""shoal audit"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli import options
from shoal.cli.key import opened
from shoal.cli.progress import say, show_attacks, show_warnings, shown
from shoal.data.printable import printable, printable_lines
from shoal.errors import InputError
from shoal.reports.text import history_summary, summary
from shoal.tables.request import AuditRequest

if TYPE_CHECKING:
    from shoal.auditor.audit import AuditResult


def audit(asked: AuditRequest, run: options.Run) -> None:
    """Measure what a released table promises; exit status 1 when a promise does not hold."""
    from shoal.attacks.beside.others import OtherRelease
    from shoal.auditor.verdict import is_below
    from shoal.connectors.traces import is_of_stream
    from shoal.policy.binding.past_memory import refuse_whole
    from shoal.tables.attack import attack_file

    if run.memory is not None and (asked.ledger or asked.transcript) is not None:
        raise InputError(
            "--memory: is kept for one table; leave it out with --ledger, --transcript"
        )
    if asked.ledger is not None:
        raise typer.Exit(_audit_ledger(asked, run))
    if asked.transcript is not None:
        raise typer.Exit(_audit_transcript(asked.transcript, run.as_json, run.quiet))
    released, original, qi = asked.released, asked.original, asked.columns.qi
    if released is None or (asked.policy is None and qi is None):
        raise InputError(
            "audit: needs RELEASED and --policy or --qi, or --ledger or --transcript; see 'shoal"
            " audit --help'"
        )
    signer = opened(run.sign)
    is_stream = asked.trace is not None and is_of_stream(asked.trace)
    policy = asked.policy_asked(is_stream)
    if asked.downstream and (original is None or is_stream):
        raise InputError(
            "--downstream: compares with the original, record by record; give it with --original"
        )
    if asked.record_lines is not None and not is_stream:
        raise InputError("--record-lines: is how a stream read its source; give it with --trace")
    heading = run.heading(released)
    inputs = [released, original, str(asked.policy or "-"), *policy.files, *asked.attacks.files]
    options.check_outputs(asked.output, report=run.report, inputs=inputs)
    whole = {"--trace": is_stream, "--report": run.report, "--others": asked.attacks.others}
    refuse_whole({**whole, "--downstream": asked.downstream}, released, original)
    with shown(run.quiet) as progress:
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
            others=asked.attacks.beside,
            output=asked.output,
            downstream=asked.downstream,
        )
        if signer is not None and asked.output is not None and result.certificate.holds:
            signer.sign(asked.output)
        if run.report is not None:
            from shoal.reports.release import write_report

            progress("drawing the report")
            write_report(result, policy, run.report, heading)
    certificate = result.certificate
    show_warnings(certificate)
    for caveat in _caveats(result, original, is_stream):
        say(f"shoal: {printable(caveat)}")
    if run.as_json:
        typer.echo(certificate.to_json(), nl=False)
    elif not run.quiet:
        say(summary(certificate))
        if "attacks" in certificate:
            show_attacks(certificate)
        _print_beside(certificate.get("beside"))
        if asked.downstream:
            from shoal.reports.text import downstream_sentences

            say(printable_lines(downstream_sentences(certificate["downstream"])))
    if signer is not None and not certificate.holds:
        say("shoal: the certificate is not signed: not everything holds")
    fails = not certificate.holds or (asked.require_together and is_below(certificate))
    raise typer.Exit(1 if fails else 0)


def _caveats(result: AuditResult, original: str | None, is_stream: bool) -> Iterator[str]:
    """What the audit could not look at."""
    if original is not None and "presence" in result.certificate:
        yield (
            "rows are sorted by what they show: among people who are alike in their"
            " quasi-identifiers, a changed value can't be told"
        )
    elif original is not None and result.truth is None:
        left = (result.certificate.get("faults") or {}).get("unmatched")
        cells = "whether they cover the original is not judged"
        if left is not None:
            cells = "each can cover a row of its own" if left == 0 else "not each covers a row"
        yield (
            f"rows are sorted by what they show, so nobody knows whose is whose: {cells}, and"
            " people are not counted; give --trace"
        )
    if result.certificate["counted"] == "rows":
        is_input = result.problem.schema.render.order == "input"
        remedy = f"; give {'--original' if is_input else '--original and --trace'} to count people"
        yield f"the release names no subjects, so rows were counted, not people{remedy}"
    accepted = result.certificate.get("attacks", {}).get("accept", [])
    if any(row["holds"] is None for row in accepted):
        yield "what the policy accepts of attacks is not judged; give --original"
    if is_stream and any(
        p["model"] == "t-closeness" and "to" not in p for p in result.certificate["promises"]
    ):
        yield (
            "t-closeness was measured to the published file itself; name what the stream was"
            " compared with in the policy (reference) or with --reference"
        )


def _audit_ledger(asked: AuditRequest, run: options.Run) -> int:
    """Audits a whole ledger; the exit status."""
    from shoal.attacks.run.ledger import audit_ledger
    from shoal.auditor.ledger.export import check_outside
    from shoal.auditor.ledger.history import write_audit
    from shoal.connectors.location import Location

    ledger, output, report = asked.ledger, asked.output, run.report
    assert ledger is not None
    if asked.released is not None and not Location(asked.released).is_table:
        raise options.takes_no("audit --ledger", ["RELEASED"])
    check_outside(ledger, report, output)
    options.check_outputs(output, report=report, inputs=[])
    with shown(run.quiet) as progress:
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
    if run.as_json:
        typer.echo(json.dumps(result.report(), indent=2))
    elif not run.quiet:
        say(history_summary(result))
        if result.attacked is not None:
            show_attacks(result.attacked)
        _print_beside(result.beside)
    return 0 if result.holds else 1


def _print_beside(found: Mapping[str, Any] | None) -> None:
    from shoal.reports.text import beside_lines

    if found:
        say(printable_lines(beside_lines(found)))


def _audit_transcript(folder: Path, as_json: bool, quiet: bool) -> int:
    """Checks all messages of a fusion; the exit status."""
    from shoal.fusion.containment import check_transcript

    with shown(quiet) as progress:
        progress("reading the messages")
        result = check_transcript(folder)
    if as_json:
        names = ("messages", "bytes", "facts", "vetoed", "wrong", "holds")
        typer.echo(json.dumps({name: getattr(result, name) for name in names}, indent=2))
    elif not quiet:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(result.messages.items()))
        count = sum(result.messages.values())
        say(f"{count} messages ({kinds}), {result.facts} facts about people")
        if result.vetoed:
            say(
                f"vetoed: {result.vetoed} facts about people that the table does not show were"
                " seen by the owner who refused them, as agreed"
            )
        for wrong in result.wrong:
            say(f"{wrong}: DOES NOT HOLD")
        if result.holds:
            other = "other " if result.vetoed else ""
            say(f"no {other}message says more than the published table: holds")
    return 0 if result.holds else 1
