"""shoal publish"""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.progress import shown
from shoal.cli.summary import print_summary
from shoal.errors import InputError


def publish(
    input_path: Annotated[str, typer.Argument(metavar="INPUT", help="The table; '-' reads CSV from standard input.")],
    policy: options.PolicyFile,
    output: Annotated[str, typer.Option("-o", "--output", help="The release; '-' writes CSV to standard output.")],
    k: options.K = None,
    method: options.Method = None,
    settings: options.Settings = None,
    seed: options.Seed = None,
    as_json: options.Json = False,
    report: options.Report = None,
    quiet: options.Quiet = False,
) -> None:
    """Publish one table, once: writes OUTPUT and OUTPUT.certificate.json, or nothing if a promise fails."""
    from shoal.jobs.publish import certificate_path, publish_file

    if output == "-" and as_json:
        raise InputError("--json and -o -: both want standard output; write the release to a file")
    asked = options.policy_with(policy, k, method, settings, seed)
    others = [input_path, output, certificate_path(output), str(policy), *asked.files]
    options.check_outputs(report, inputs=others)
    with shown(quiet) as progress:
        outcome = publish_file(input_path, asked, output, progress=progress)
        if report is not None:
            from shoal.jobs.report import write_report

            progress("drawing the report")
            write_report(outcome, asked, report)
    if as_json:
        typer.echo(outcome.certificate.to_json(), nl=False)
    elif not quiet and output != "-":
        written = [output, certificate_path(output), *([str(report)] if report else [])]
        print_summary(outcome.certificate, f"{', '.join(written[:-1])} and {written[-1]}")
