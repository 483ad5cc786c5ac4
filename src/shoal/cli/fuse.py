"""shoal fuse"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.answers import listed
from shoal.cli.key import Sign, opened
from shoal.cli.progress import shown
from shoal.cli.warnings import show_warnings
from shoal.errors import InputError
from shoal.reports.text import fusion_summary


def fuse(
    parties: Annotated[
        str, typer.Argument(metavar="PARTIES.yaml", help="The agreement of all parties.")
    ],
    output: Annotated[str, typer.Option("-o", "--output", help="The fused release.")],
    transcript: Annotated[
        Path | None,
        typer.Option(
            "--transcript", metavar="DIR", help="Keep every message for 'shoal audit --transcript'."
        ),
    ] = None,
    k: options.K = None,
    method: options.Method = None,
    settings: options.Settings = None,
    seed: options.Seed = None,
    require_together: options.RequireTogether = False,
    sign: Sign = None,
    as_json: options.Json = False,
    report: options.Report = None,
    quiet: options.Quiet = False,
) -> None:
    """Fuse several owners' tables into one k-anonymous table, with all parties on this machine."""
    from shoal.fusion.fuse import fuse_file
    from shoal.policy.agreement import Agreement

    if output == "-":
        raise InputError("-o -: each party writes a file of its own; name a file")
    signer = opened(sign)
    options.check_outputs(report=report, inputs=[parties, output])
    agreement = Agreement.load(parties).with_overrides(
        method, options.parsed(settings or []), k, seed
    )
    try:
        with shown(quiet) as progress:
            certificate = fuse_file(
                agreement,
                output,
                transcript=transcript,
                beside=[] if report is None else [report],
                require_together=require_together,
                progress=progress,
                notice=_say,
            )
            if report is not None:
                from shoal.auditor.audit import audit_file
                from shoal.reports.release import write_audit_report

                progress("drawing the report")
                audited = audit_file(output, agreement.policy)
                write_audit_report(audited, agreement.policy, report)
    except KeyboardInterrupt:
        typer.echo(
            "shoal: interrupted; nothing was published, run the same command again to resume",
            err=True,
        )
        raise SystemExit(130) from None
    if signer is not None:
        signer.sign(f"{output}.certificate.json")
    show_warnings(certificate)
    if as_json:
        typer.echo(certificate.to_json(), nl=False)
    elif not quiet:
        drawn = [str(report)] if report else []
        written = listed([output, f"{output}.certificate.json", *drawn])
        typer.echo(fusion_summary(certificate, written), err=True)


def _say(line: str) -> None:
    """A line other than progress: shown under --quiet, too."""
    print(f"shoal: {line}", file=sys.stderr, flush=True)
