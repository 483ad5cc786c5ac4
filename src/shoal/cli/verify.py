"""shoal verify"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.options import argument, option, policy_of_release, with_memory
from shoal.cli.progress import shown


@with_memory
@options.with_overrides
def verify(
    released: Annotated[str, argument("FILE", "The released table.")],
    certificate: Annotated[
        Path | None,
        argument("[CERT]", "Its certificate; else FILE.certificate.json."),
    ] = None,
    policy: Annotated[
        Path | None,
        option("-p, --policy", "The policy (of a fusion: its agreement): measures again."),
    ] = None,
    overrides: options.Overrides = options.NO_OVERRIDES,
    original: Annotated[
        str | None,
        option("--original", "The table it was made of: compares its hash."),
    ] = None,
    trace: Annotated[
        str | None,
        option("--trace", "Whose row is whose, as its --trace wrote it: counts people."),
    ] = None,
    trust: Annotated[
        list[str] | None,
        option(
            "--trust PUB.pem",
            "A public key, or a folder of *.pub.pem: one of them must have signed;"
            " repeatable. Extra: sign.",
        ),
    ] = None,
    as_json: Annotated[
        bool, option("--json", "Print the checks as JSON instead of lines.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Check a released file against its certificate, one line per check; exit status 1 if one
    fails.
    """
    from shoal.auditor.checks import despite_grave
    from shoal.auditor.verify import Proof
    from shoal.auditor.verify import verify as run
    from shoal.reports.attacks import found_much
    from shoal.reports.text import counted_text

    with shown(quiet) as progress:
        asked = policy_of_release(released, certificate, policy, overrides)
        checks = run(
            released,
            certificate,
            asked,
            original=original,
            trace=trace,
            trust=trust or (),
            progress=progress,
        )
    is_broken = any(check.ok is False for check in checks)
    if as_json:
        typer.echo(json.dumps([check.report() for check in checks], indent=2))
    elif not quiet:
        for check in checks:
            typer.echo(str(check))
        if not is_broken and (much := found_much(Proof.of(released, certificate).certificate)):
            count = counted_text(len(much), "finding of attacks is", "findings of attacks are")
            typer.echo(f"{count} 'much'; a dossier says what is accepted")
        if last := despite_grave(checks):
            typer.echo(last)
    raise typer.Exit(1 if is_broken else 0)
