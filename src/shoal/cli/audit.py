"""shoal audit"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli import options
from shoal.cli.attacks import NO_ATTACKS, OTHERS, Attacks, others_in
from shoal.cli.key import SIGN, opened
from shoal.cli.progress import show_warnings, shown
from shoal.data.option import option
from shoal.data.printable import printable, printable_lines
from shoal.errors import InputError
from shoal.reports.text import history_summary, summary
from shoal.tables.request import TOGETHER

if TYPE_CHECKING:
    from shoal.attacks.beside.others import Others
    from shoal.auditor.audit import AuditResult
    from shoal.data.certificate import Certificate
    from shoal.policy.policy import Policy


def audit(
    released: str | None = option(
        "RELEASED",
        "The released table, ours or not; else --ledger (or the table in a database that"
        " the ledger writes, with --ledger) or --transcript.",
    ),
    policy: Path | None = option(
        "-p, --policy", "The policy (YAML, JSON or TOML); a ledger has its own."
    ),
    ledger: Path | None = option(
        "--ledger DIR", "Audit all releases of a ledger, alone and together."
    ),
    original: str | None = option(
        "--original", "What it was made of: with --trace, counts people, checks cells."
    ),
    trace: str | None = option(
        "--trace", "Whose row is whose, as its --trace wrote it; needs --original."
    ),
    reference: str | None = option(
        "--reference TABLE", "Of a stream: the table that t-closeness was declared to."
    ),
    record_lines: int | None = option(
        "--record-lines", "Of a stream: what its --record-lines was; 100 if none.", low=1
    ),
    downstream: bool = option(
        "--downstream", "Train on the release, test on --original; random counts. Extra: ml.", False
    ),
    k: int | None = options.K,
    columns: options.ReleasedColumns = options.NO_COLUMNS,
    read: list[str] | None = options.READ,
    write: list[str] | None = options.WRITE,
    output: str | None = option("-o, --output", "Write the certificate to this file."),
    transcript: Path | None = option(
        "--transcript DIR", "Prove that a fusion's messages say no more than its table."
    ),
    require_together: bool = TOGETHER,
    attacks: Attacks = NO_ATTACKS,
    others: str | None = OTHERS,
    sign: Path | None = SIGN,
    as_json: bool = options.JSON,
    report: Path | None = options.REPORT,
    about: Path | None = options.ABOUT,
    quiet: bool = options.QUIET,
    engine: str | None = options.ENGINE,
    memory: str | None = options.MEMORY,
    threads: int | None = options.THREADS,
) -> None:
    """Measure what a released table promises; exit status 1 when a promise does not hold."""
    from shoal.attacks.beside.others import OtherRelease
    from shoal.auditor.verdict import is_below
    from shoal.connectors.traces import is_of_stream
    from shoal.policy.binding.past_memory import refuse_whole
    from shoal.tables.attack import attack_file

    if sign is not None and output is None:
        raise InputError("audit --sign: signs the certificate; name a file for it with --output")
    beside = others_in(others)
    one_table = {
        "RELEASED": released,
        "--policy": policy,
        "--original": original,
        "--reference": reference,
        "--trace": trace,
        "--record-lines": record_lines,
        "--downstream": downstream or None,
        "--require-together": require_together or None,
        "--sign": sign,
        "--context": about,
        **columns.given(),
        "--read": read,
        "--write": write,
    }
    if ledger is not None or transcript is not None:
        _refuse_memory()
    if ledger is not None:
        from shoal.connectors.location import Location

        table = released if Location(released).is_table else None
        others_given = {**one_table, "RELEASED": None if table is not None else released}
        _refuse_beside("--ledger", others_given | attacks.given() | {"--transcript": transcript})
        question = LedgerQuestion(ledger, k, attacks.names, beside, table)
        raise typer.Exit(_audit_ledger(question, output, as_json, report, quiet))
    if transcript is not None:
        besides = {"--attack": attacks.attack, "--others": others, "--k": k, "--output": output}
        given = {**one_table, **attacks.given(), **besides, "--report": report}
        _refuse_beside("--transcript", given)
        raise typer.Exit(_audit_transcript(transcript, as_json, quiet))
    if columns.qi is not None:
        of_policy = ("--policy", "--original", "--reference", "--trace", "--record-lines")
        refused = {name: one_table[name] for name in (*of_policy, "--downstream")}
        _refuse_beside("--qi", refused | {"--others": others})
    if released is None or (policy is None and columns.qi is None):
        raise InputError(
            "audit: needs RELEASED and --policy or --qi, or --ledger or --transcript; see 'shoal"
            " audit --help'"
        )
    if columns.qi is None:
        _refuse_beside("without --qi", columns.given())
    signer = opened(sign)
    changes = options.Overrides(k=k, read=read, write=write)
    if trace is not None and original is None:
        raise InputError("--trace: can only be checked against the source; give it with --original")
    is_stream = trace is not None and is_of_stream(trace)
    asked = (
        columns.policy(changes) if policy is None else _asked(policy, changes, is_stream, reference)
    )
    if downstream and (original is None or is_stream):
        raise InputError(
            "--downstream: compares with the original, record by record; give it with --original"
        )
    if record_lines is not None and not is_stream:
        raise InputError("--record-lines: is how a stream read its source; give it with --trace")
    if attacks.attack and original is None:
        raise InputError(
            "--attack: is tried by whoever has the original, on the people in it; give it with"
            " --original"
        )
    if beside is not None and original is None:
        raise InputError(
            "audit --others: finds people again by the original; give it with --original"
        )
    heading = options.heading_of(released, about, report)
    inputs = [released, original, str(policy or "-"), *asked.files, *attacks.files]
    inputs += [] if beside is None else [others, *beside.files]
    options.check_outputs(output, report=report, inputs=inputs)
    others_asked = {"--trace": is_stream, "--report": report, "--others": others}
    refuse_whole({**others_asked, "--downstream": downstream}, released, original)
    with shown(quiet) as progress:
        own = OtherRelease(
            release=released,
            policy=asked,
            original=original,
            trace=trace,
            record_lines=record_lines,
        )
        result = attack_file(
            own,
            attacks.request(asked),
            progress,
            others=beside,
            output=output,
            downstream=downstream,
        )
        if signer is not None and output is not None and result.certificate.holds:
            signer.sign(output)
        if report is not None:
            from shoal.reports.release import write_report

            progress("drawing the report")
            write_report(result, asked, report, heading)
    certificate = result.certificate
    show_warnings(certificate)
    for caveat in _caveats(result, original, is_stream):
        print(f"shoal: {printable(caveat)}", file=sys.stderr)
    if as_json:
        typer.echo(certificate.to_json(), nl=False)
    elif not quiet:
        typer.echo(summary(certificate), err=True)
        if "attacks" in certificate:
            _print_attacks(certificate)
        _print_beside(certificate.get("beside"))
        if downstream:
            from shoal.reports.text import downstream_sentences

            print(printable_lines(downstream_sentences(certificate["downstream"])), file=sys.stderr)
    if signer is not None and not certificate.holds:
        print("shoal: the certificate is not signed: not everything holds", file=sys.stderr)
    fails = not certificate.holds or (require_together and is_below(certificate))
    raise typer.Exit(1 if fails else 0)


def _refuse_memory() -> None:
    """Raises InputError where there is a limit, which only an audit of one table keeps."""
    from shoal.data import room

    if room.limit() is not None:
        raise InputError(
            "--memory: is kept for one table; leave it out with --ledger, --transcript"
        )


def _asked(
    policy: Path, changes: options.Overrides, is_stream: bool, reference: str | None
) -> Policy:
    """The policy in a file with what the command changes."""
    asked = changes.policy(policy, "stream", "fads") if is_stream else changes.policy(policy)
    return asked.with_reference(reference)


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


def _refuse_beside(option: str, given: Mapping[str, object]) -> None:
    beside = [name for name, value in given.items() if value is not None]
    if beside:
        raise InputError(
            f"audit {option}: takes no {' and no '.join(beside)}; leave out what belongs to another"
            " audit"
        )


@dataclass(frozen=True)
class LedgerQuestion:
    """What is asked about a ledger."""

    ledger: Path
    k: int | None
    attack: tuple[str, ...]
    beside: Others | None = None
    table: str | None = None


def _audit_ledger(
    asked: LedgerQuestion, output: str | None, as_json: bool, report: Path | None, quiet: bool
) -> int:
    """Audits a whole ledger; the exit status."""
    from shoal.attacks.run.ledger import audit_ledger
    from shoal.auditor.ledger.export import check_outside
    from shoal.auditor.ledger.history import write_audit

    check_outside(asked.ledger, report, output)
    options.check_outputs(output, report=report, inputs=[])
    with shown(quiet) as progress:
        result = audit_ledger(
            asked.ledger, k=asked.k, attack=asked.attack, table=asked.table, progress=progress
        )
        if asked.beside is not None and not result.damage:
            from shoal.attacks.beside.audit import audit_together
            from shoal.attacks.beside.sources import of_ledger

            releases = [of_ledger(asked.ledger, "--ledger"), *asked.beside.judged(progress)]
            result = replace(result, beside=audit_together(releases, asked.beside, progress))
        if report is not None:
            from shoal.reports.history import write_history_report

            write_history_report(result, report)
    if output is not None:
        write_audit(result, output)
    if as_json:
        typer.echo(json.dumps(result.report(), indent=2))
    elif not quiet:
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
