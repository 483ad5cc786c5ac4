"""shoal audit"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.progress import shown
from shoal.cli.summary import print_summary


def audit(
    released: Annotated[str, typer.Argument(metavar="RELEASED", help="The released table, ours or not.")],
    policy: options.PolicyFile,
    original: Annotated[
        str | None, typer.Option("--original", help="The table it was made of: counts people and checks every cell.")
    ] = None,
    k: options.K = None,
    output: Annotated[str | None, typer.Option("-o", "--output", help="Write the certificate to this file.")] = None,
    as_json: options.Json = False,
    report: options.Report = None,
    quiet: options.Quiet = False,
) -> None:
    """Measure what a released table promises; exit status 1 when a promise does not hold."""
    from shoal.jobs.audit import audit_file

    asked = options.policy_with(policy, k, None, None, None)
    options.check_outputs(report, output, inputs=[released, original, str(policy), *asked.files])
    with shown(quiet) as progress:
        found = audit_file(released, asked, original, output, progress=progress)
        if report is not None:
            from shoal.jobs.report import write_audit_report

            progress("drawing the report")
            write_audit_report(found, asked, report)
    certificate = found.certificate
    if original is not None and found.truth is None:
        print(
            "shoal: the policy shuffles rows, so they can't be matched with the original: "
            "cells were not compared with it",
            file=sys.stderr,
        )
    if certificate["counted"] == "rows":
        way_out = "" if found.schema.render.order != "input" else "; give --original to count people"
        print(f"shoal: the release names no subjects, so rows were counted, not people{way_out}", file=sys.stderr)
    if as_json:
        typer.echo(certificate.to_json(), nl=False)
    elif not quiet:
        print_summary(certificate)
    raise typer.Exit(0 if certificate.holds else 1)
