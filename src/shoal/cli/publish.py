"""shoal publish, shoal audit, shoal attack"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from shoal.cli import options
from shoal.cli.progress import (
    FAILS,
    Figures,
    answer,
    listed,
    published_already,
    say,
    say_found,
    show_attacks,
    show_certificate,
    shown,
)
from shoal.data.language import printable, printable_lines
from shoal.data.option import takes_no
from shoal.errors import InputError
from shoal.reports.text import beside_lines, downstream_sentences, history_summary, summary
from shoal.tables import request
from shoal.tables.request import (
    AttackCommand,
    AuditRequest,
    PublishCommand,
    ReleaseRequest,
    of_one_table,
    refuse_for_linked,
)

if TYPE_CHECKING:
    from shoal.auditor.audit import AuditResult
    from shoal.fusion.judged_containment import Containment
    from shoal.policy.policy import Policy

_OF_MESSAGES = ("--trace", "--json", "--quiet")
"""What an audit of a fusion's messages is asked."""


def publish(asked: PublishCommand, run: options.ThreadedRun) -> None:
    """Publish one table, or several about the same people, once: writes OUTPUT and its certificate,
    or nothing if a promise fails.
    """
    from shoal.connectors.location import Location
    from shoal.data.recoding import sensitive_path
    from shoal.policy.binding.past_memory import refuse_whole
    from shoal.reports.metadata import outdated_metadata
    from shoal.tables.publish import publish_file

    output, given, report = asked.output, asked.given, run.report
    policy = asked.overrides.policy(asked.policy)
    if asked.table and not policy.model.is_linked:
        raise InputError("--table: is of linked tables; name them under 'tables' in the policy")
    if asked.dry_run:
        return _estimate(asked, run)
    if policy.model.is_linked:
        return _publish_linked(asked, policy, run)
    if output == "-" and run.as_json:
        raise InputError("--json and -o -: both want standard output; write the release to a file")
    second = sensitive_path(output) if policy.is_in_two_tables else None
    written = [output, second, Location(output).certificate]
    inputs: list[Path | str | None] = [asked.input_path, *written]
    inputs += [*policy.files, *asked.attacks.files]
    options.check_outputs(given.plan, inputs=inputs, release=output)
    inputs, agreed = [*inputs, given.plan], given.replace
    options.check_outputs(report=report, inputs=inputs, replace=agreed, release=output)
    inputs.append(report)
    options.check_outputs(given.trace, inputs=inputs, replace=agreed, release=output)
    refuse_whole({"--report": report}, asked.input_path)
    with shown(run.quiet) as progress:
        request = asked.request(policy, progress)
        outcome = publish_file(asked.input_path, policy, output, request)
        with published_already("the release" if output == "-" else f"'{output}'"):
            if report is not None:
                from shoal.reports.pages import Heading
                from shoal.reports.release import write_report

                progress("drawing the report")
                write_report(outcome, policy, report, Heading.of(output))
    show_certificate(outcome.certificate, run.as_json)
    for sentence in outdated_metadata(output):
        say(f"shoal: {printable(sentence)}")
    if not (run.as_json or run.quiet):
        saved = None if given.plan is None or outcome.draft.plan is None else given.plan
        released = [] if output == "-" else written
        files = listed([*released, saved, given.trace, report])
        say(summary(outcome.certificate, files or None))
        if "attacks" in outcome.certificate:
            show_attacks(outcome.certificate)
        if "beside" in outcome.certificate:
            from shoal.reports.text import guard_lines

            say(printable_lines(guard_lines(outcome.certificate["beside"])))
    if given.explain and not run.as_json:
        from shoal.reports.text import explanation_sentences

        for line in explanation_sentences(outcome.certificate["explanation"]):
            say(printable(line))


def _publish_linked(asked: PublishCommand, policy: "Policy", run: options.ThreadedRun) -> None:
    """Publishes linked tables together."""
    from shoal.linked.publish import publish_linked
    from shoal.policy.options import tables
    from shoal.policy.problem import LinkedProblem
    from shoal.reports.linked import linked_distributions, linked_lines, write_linked_report

    refuse_for_linked(one.flag for one in of_one_table(asked, run).values())
    further, trace, out = tables(asked.table), asked.given.trace, asked.output
    inputs, replace = [asked.input_path, *policy.files, *further.values(), out], asked.given.replace
    options.check_outputs(trace, report=run.report, inputs=inputs, replace=replace, release=out)
    with shown(run.quiet) as progress:
        audit = publish_linked(
            asked.input_path,
            policy,
            asked.output,
            further=further,
            trace=trace,
            replace=asked.given.replace,
            progress=progress,
        ).audit
    certificate = audit.certificate
    with published_already(f"'{asked.output}'"):
        if run.report is not None:
            drawn = linked_distributions(audit, LinkedProblem(policy))
            write_linked_report(certificate, policy.model, run.report, drawn=drawn)
    show_certificate(certificate, run.as_json)
    if not (run.as_json or run.quiet):
        say(printable_lines(linked_lines(certificate)))
        say(f"wrote {printable(listed([asked.output, trace, run.report]))}")


def _estimate(asked: PublishCommand, run: options.ThreadedRun) -> None:
    """Shows what the publication would take."""
    from shoal.advise.estimate import estimate_of
    from shoal.policy.options import tables
    from shoal.reports.advice_in_words import estimate_lines

    policy = asked.overrides.policy(asked.policy)
    Figures(as_json=run.as_json, quiet=run.quiet).show(
        lambda progress: estimate_of(
            asked.input_path,
            policy,
            asked.output,
            cores=run.threads,
            further=tables(asked.table),
            progress=progress,
        ),
        estimate_lines,
    )


def audit(asked: AuditRequest, run: options.Run) -> None:
    """Measure what a released table promises; exit status 1 when a promise does not hold."""
    if asked.ledger is not None:
        raise typer.Exit(_audit_ledger(asked, run))
    if asked.is_of_messages:
        raise typer.Exit(_audit_messages(asked, run))
    if asked.released is None or (asked.policy is None and asked.columns.column is None):
        raise InputError(
            "audit: needs RELEASED and --policy or --column, or --ledger, or a fusion's messages as"
            " --trace; see 'shoal audit --help'"
        )
    if asked.downstream and (asked.original is None or _is_stream(asked)):
        raise InputError(
            "--downstream: compares with the original, record by record; give it with --original"
        )
    if asked.policy is not None and (policy := asked.policy_asked(False)).model.is_linked:
        raise typer.Exit(_audit_linked(asked, policy, run))
    _measure(asked, run, asked.downstream)


def attack(asked: AttackCommand, run: options.ThreadedRun) -> None:
    """Audit a release, and count how often attackers get what they look for; exit status 1 when a
    promise does not hold, or what the policy accepts of attacks.
    """
    from shoal.advise.attacker_view import attacker_view
    from shoal.reports.advice_in_words import attacker_lines

    if asked.ledger is not None:
        raise typer.Exit(_audit_ledger(asked, run))
    released, original = asked.released, asked.original
    if released is None or asked.policy is None or original is None:
        raise InputError(
            "attack: is tried by whoever has the original, on the people in it; give RELEASED,"
            " --policy and --original, or --ledger"
        )
    if asked.person is None:
        _measure(asked, run)
    row = int(asked.person) if options.is_number(asked.person) else asked.person
    policy = asked.policy_asked(False)
    with shown(run.quiet) as progress:
        view = attacker_view(released, policy, original, row, trace=asked.trace, progress=progress)
    answer(view, attacker_lines, run.as_json, ensure_ascii=False)


def _is_stream(asked: ReleaseRequest) -> bool:
    from shoal.connectors.traces import is_of_stream

    return asked.trace is not None and is_of_stream(asked.trace)


def _measure(asked: ReleaseRequest, run: options.Run, downstream: bool = False) -> NoReturn:
    """Writes and shows the certificate of one released table; ends with the exit status."""
    from shoal.attacks.beside.others import OtherRelease
    from shoal.auditor.verdict import is_below
    from shoal.policy.binding.past_memory import refuse_whole
    from shoal.tables.attack import attack_file

    released, original, attacks = asked.released, asked.original, asked.attacks
    assert released is not None
    is_stream = _is_stream(asked)
    policy = asked.policy_asked(is_stream)
    inputs = [released, original, asked.trace, *policy.files, *attacks.files]
    _check_outputs(asked, run, inputs)
    whole = {"--trace": is_stream, "--report": run.report, "--others": attacks.others}
    refuse_whole({**whole, "--downstream": downstream}, released, original)
    with shown(run.quiet) as progress:
        own = OtherRelease(release=released, policy=policy, original=original, trace=asked.trace)
        result = attack_file(
            own,
            attacks.request(policy.tables),
            progress,
            others=attacks.beside,
            output=asked.output,
            downstream=downstream,
        )
        if run.report is not None:
            from shoal.reports.pages import Heading
            from shoal.reports.release import write_report

            progress("drawing the report")
            write_report(result, policy, run.report, Heading.of(released))
    certificate = result.certificate
    show_certificate(certificate, run.as_json)
    for caveat in _caveats(result, asked, is_stream):
        say(f"shoal: {printable(caveat)}")
    if not run.as_json:
        say_found(summary(certificate), run.quiet)
        if "attacks" in certificate:
            show_attacks(certificate, run.quiet)
    if not (run.as_json or run.quiet):
        _print_beside(certificate.get("beside"))
        if downstream:
            say(printable_lines(downstream_sentences(certificate["downstream"])))
    is_broken = policy.model.require_together and is_below(certificate)
    raise typer.Exit(0 if certificate.holds and not is_broken else 1)


def _check_outputs(asked: ReleaseRequest, run: options.Run, inputs: list[str | None]) -> None:
    """Raises InputError where what an audit writes can't be put. inputs: all that it reads."""
    options.check_outputs(
        asked.output,
        report=run.report,
        inputs=inputs,
        replace=asked.replace,
        release=asked.released,
    )


def _caveats(result: "AuditResult", asked: ReleaseRequest, is_stream: bool) -> Iterator[str]:
    """What the audit could not look at."""
    from shoal.connectors.ledger.layout import Chain

    original = asked.original
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
        why = "rows are sorted by what they show, so nobody knows whose is whose"
        if _order(result) is None:
            why = "nobody knows whose row is whose"
        yield f"{why}: {cells}, and people are not counted; give {_lacking(result, original)}"
    if result.certificate["counted"] == "rows":
        chain = Chain(Path(str(asked.released)).parent.parent)
        way_out = f"give {_lacking(result, original)}"
        if chain.exists:
            way_out = f"run 'shoal audit --ledger {chain.path}'"
        yield (
            "the release names no subjects, so rows were counted, not people; to count people,"
            f" {way_out}"
        )
    if any(promise["holds"] is None for promise in result.certificate["promises"]):
        yield (
            "risk in the population is not measured: it needs the weights of the original, row by"
            f" row; give {_lacking(result, original)}"
        )
    accepted = result.certificate.get("attacks", {}).get("accept", [])
    if any(row["holds"] is None for row in accepted):
        yield "what the policy accepts of attacks is not judged; give --original"
    if is_stream and "stale" not in result.certificate["faults"]:
        yield (
            "which clusters were used again is not judged: the policy leaves open what the"
            " stream's --reference showed; name that table in the policy (reference)"
        )
    if is_stream and any(
        p["model"] == "t-closeness" and "to" not in p for p in result.certificate["promises"]
    ):
        yield (
            "t-closeness was measured to the published file itself; name what the stream was"
            " compared with in the policy (reference)"
        )


def _order(result: "AuditResult") -> str | None:
    """The order of the rows, as its certificate states it; None where nothing shows it."""
    order: str | None = result.certificate["output"]["dialect"]["order"]
    return order


def _lacking(result: "AuditResult", original: str | None) -> str:
    """What an audit has to be given to know whose row is whose."""
    lacking = ["--original"] if original is None else []
    if _order(result) != "input":
        lacking.append("--trace")
    found = " and ".join(lacking)
    if _order(result) is None:
        found += ", or, if rows are in the original's order, 'render: {order: input}' in the policy"
    return found


def _audit_linked(asked: AuditRequest, policy: "Policy", run: options.Run) -> int:
    """Audits a release of linked tables; the exit status."""
    from shoal.auditor.audit import write_certificate
    from shoal.auditor.linked.audit import audit_linked
    from shoal.policy.problem import LinkedProblem
    from shoal.reports.linked import linked_distributions, linked_lines, write_linked_report

    unfit = [one.flag for one in request.of_one_table(asked, run).values()]
    request.refuse_for_linked(unfit + ["--trace"] * (asked.trace is not None))
    assert asked.released is not None
    _check_outputs(asked, run, [asked.released, asked.original, *policy.files])
    with shown(run.quiet) as progress:
        audit = audit_linked(asked.released, policy, asked.original, progress=progress)
    certificate = audit.certificate
    if asked.output is not None:
        write_certificate(certificate, asked.output)
    if run.report is not None:
        drawn = linked_distributions(audit, LinkedProblem(policy))
        write_linked_report(certificate, policy.model, run.report, drawn=drawn)
    show_certificate(certificate, run.as_json)
    if not run.as_json:
        say_found(printable_lines(linked_lines(certificate)), run.quiet)
    return 0 if certificate.holds else 1


def _audit_ledger(asked: ReleaseRequest, run: options.Run) -> int:
    """Audits a whole ledger, and tries attacks on its newest release; the exit status."""
    from shoal.attacks.run.attack import audit_ledger
    from shoal.auditor.ledger.history import write_audit
    from shoal.connectors.location import Location

    ledger, output, report = asked.ledger, asked.output, run.report
    assert ledger is not None
    if asked.released is not None and not Location(asked.released).is_table:
        raise InputError(
            "RELEASED: is the table in a database that the ledger writes, beside --ledger; leave it"
            " out"
        )
    options.check_outputs(output, report=report, inputs=[], replace=asked.replace)
    with shown(run.quiet) as progress:
        result = audit_ledger(
            ledger, k=asked.k, attack=asked.attacks.names, table=asked.released, progress=progress
        )
        others = asked.attacks.beside
        if others is not None and not result.damage:
            from shoal.attacks.beside.audit import audit_together
            from shoal.attacks.beside.sources import of_ledger

            releases = [of_ledger(ledger, "--ledger"), *others.judged(progress)]
            result = replace(result, beside=audit_together(releases, others, progress))
        if report is not None:
            from shoal.reports.history import write_history_report

            write_history_report(result, report)
    if output is not None:
        write_audit(result, output)
    if run.as_json:
        typer.echo(json.dumps(result.report(), indent=2))
    else:
        say_found(history_summary(result), run.quiet)
        if result.attacked is not None:
            show_attacks(result.attacked, run.quiet)
    if not (run.as_json or run.quiet):
        _print_beside(result.beside)
    return 0 if result.holds else 1


def _print_beside(found: Mapping[str, Any] | None) -> None:
    if found:
        say(printable_lines(beside_lines(found)))


def _audit_messages(asked: AuditRequest, run: options.Run) -> int:
    """Checks all messages of a fusion; the exit status."""
    from shoal.fusion.containment import check_transcript

    given = (asked.options_given | run.options_given).values()
    if beside := [one.flag for one in given if one.flag not in _OF_MESSAGES]:
        raise takes_no("audit --trace FOLDER", beside)
    with shown(run.quiet) as progress:
        progress("reading the messages")
        result = check_transcript(Path(str(asked.trace)))
    if run.as_json:
        names = ("messages", "bytes", "facts", "vetoed", "wrong", "holds")
        typer.echo(json.dumps({name: getattr(result, name) for name in names}, indent=2))
    else:
        _say_messages(result, run.quiet)
    return 0 if result.holds else 1


def _say_messages(result: "Containment", quiet: bool) -> None:
    if not quiet:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(result.messages.items()))
        count = sum(result.messages.values())
        say(f"{count} messages ({kinds}), {result.facts} facts about people")
        if result.vetoed:
            say(
                f"vetoed: {result.vetoed} facts about people that the table does not show were"
                " seen by the owner who refused them, as agreed"
            )
    for wrong in result.wrong:
        say(f"{wrong}: {FAILS}")
    if result.holds and not quiet:
        other = "other " if result.vetoed else ""
        say(f"no {other}message says more than the published table: holds")
