"""shoal publish"""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from shoal.cli import options
from shoal.cli.attacks import NO_ATTACKS, OTHERS, Attacks, others_in
from shoal.cli.key import SIGN, opened
from shoal.cli.progress import listed, published_already, show_warnings, shown
from shoal.data.option import option
from shoal.data.printable import printable, printable_lines
from shoal.errors import InputError
from shoal.reports.text import summary
from shoal.tables.request import PublishOptions, PublishRequest

NO_OPTIONS = PublishOptions()


def publish(
    input_path: str = option(
        "INPUT", "The table: a file, a folder, one in a database; '-' reads CSV.", ...
    ),
    policy: Path = options.POLICY,
    output: str = option(
        "-o, --output",
        "The release: a file, 'out/' for a folder of Parquet, a table in a database, '-'.",
        ...,
    ),
    overrides: options.Overrides = options.NO_OVERRIDES,
    given: PublishOptions = NO_OPTIONS,
    metadata: str | None = option(
        "--metadata KIND,...", "Describes the release: datapackage, croissant."
    ),
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
    """Publish one table, once: writes OUTPUT and OUTPUT.certificate.json, or nothing if a promise
    fails.
    """
    from shoal.connectors.location import Location
    from shoal.data.two_tables import sensitive_path
    from shoal.policy.binding.past_memory import refuse_whole
    from shoal.reports.metadata import (
        check_kinds,
        kinds_of,
        metadata_path,
        outdated_metadata,
        write_metadata,
    )
    from shoal.tables.publish import publish_file

    if output == "-" and as_json:
        raise InputError("--json and -o -: both want standard output; write the release to a file")
    if output == "-" and sign is not None:
        raise InputError("--sign and -o -: there is no certificate file; write the release to one")
    if sign is not None and Location(output).is_table:
        raise InputError(
            "--sign: signs a certificate in a file; write one with 'shoal audit ... -o FILE --sign"
            " KEY'"
        )
    kinds = kinds_of(metadata)
    check_kinds(kinds, output)
    heading = options.heading_of(output, about, report)
    signer = opened(sign)
    asked = overrides.policy(policy)
    if kinds:
        asked.refuse_two_tables("--metadata")
    beside = others_in(others)
    inputs: list[str | None] = [
        input_path,
        output,
        Location(output).certificate,
        str(policy),
        *asked.files,
    ]
    if asked.is_in_two_tables:
        inputs.append(sensitive_path(output))
    inputs += [*attacks.files, *([] if beside is None else [str(others), *beside.files])]
    options.check_outputs(given.plan, inputs=inputs)
    inputs.append(given.plan)
    described_in = [metadata_path(output, kind) for kind in kinds]
    options.check_outputs(*described_in, report=report, inputs=inputs)
    options.check_outputs(given.trace, inputs=[*inputs, str(report)])
    refuse_whole({"--report": report}, input_path)
    with shown(quiet) as progress:
        request = PublishRequest(
            **vars(given), attack=attacks.request(asked), others=beside, progress=progress
        )
        outcome = publish_file(input_path, asked, output, request)
        with published_already("the release" if output == "-" else f"'{output}'"):
            signed = [] if signer is None else [signer.sign(Location(output).certificate)]
            described = write_metadata(outcome.certificate, output, kinds)
            if report is not None:
                from shoal.reports.release import write_report

                progress("drawing the report")
                write_report(outcome, asked, report, heading)
    show_warnings(outcome.certificate)
    for sentence in outdated_metadata(output, kinds):
        print(f"shoal: {printable(sentence)}", file=sys.stderr)
    if as_json:
        typer.echo(outcome.certificate.to_json(), nl=False)
    elif not quiet:
        saved = [given.plan] if given.plan and outcome.draft.plan is not None else []
        drawn = [str(report)] if report else []
        second = [sensitive_path(output)] if asked.is_in_two_tables else []
        released = [] if output == "-" else [output, *second, Location(output).certificate]
        traced = [given.trace] if given.trace else []
        written = [*released, *signed, *saved, *traced, *described, *drawn]
        typer.echo(summary(outcome.certificate, listed(written) or None), err=True)
    if not as_json and not quiet and "attacks" in outcome.certificate:
        from shoal.reports.attacks import attack_lines

        print(printable_lines(attack_lines(outcome.certificate)), file=sys.stderr)
    if not as_json and not quiet and "beside" in outcome.certificate:
        from shoal.reports.text import guard_lines

        print(printable_lines(guard_lines(outcome.certificate["beside"])), file=sys.stderr)
    if given.explain and not as_json:
        from shoal.reports.text import explanation_sentences

        for line in explanation_sentences(outcome.certificate["explanation"]):
            print(printable(line), file=sys.stderr)
