"""shoal publish"""

from pathlib import Path
from typing import TYPE_CHECKING

from shoal.cli import options
from shoal.cli.progress import (
    Figures,
    listed,
    published_already,
    say,
    show_attacks,
    show_certificate,
    shown,
)
from shoal.data.language import printable, printable_lines
from shoal.errors import InputError
from shoal.reports.text import summary
from shoal.tables.request import PublishCommand, of_one_table, refuse_for_linked

if TYPE_CHECKING:
    from shoal.policy.policy import Policy


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
