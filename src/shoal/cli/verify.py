"""shoal verify"""

from __future__ import annotations

import json
from pathlib import Path

import typer

from shoal.cli import options
from shoal.cli.options import policy_of_release
from shoal.cli.progress import shown
from shoal.data.option import option


def verify(
    released: str = option("FILE", "The released table.", ...),
    certificate: Path | None = option("[CERT]", "Its certificate; else FILE.certificate.json."),
    policy: Path | None = option(
        "-p, --policy", "The policy (of a fusion: its agreement): measures again."
    ),
    overrides: options.Overrides = options.NO_OVERRIDES,
    original: str | None = option("--original", "The table it was made of: compares its hash."),
    trace: str | None = option(
        "--trace", "Whose row is whose, as its --trace wrote it: counts people."
    ),
    trust: list[str] | None = option(
        "--trust PUB.pem",
        "A public key, or a folder of *.pub.pem: one of them must have signed;"
        " repeatable. Extra: sign.",
    ),
    as_json: bool = option("--json", "Print the checks as JSON instead of lines.", False),
    quiet: bool = options.QUIET,
    memory: str | None = options.MEMORY,
) -> None:
    """Check a released file against its certificate, one line per check; exit status 1 if one
    fails.
    """
    from shoal.auditor.checks import despite_grave
    from shoal.auditor.verify import Proof
    from shoal.auditor.verify import verify as run
    from shoal.reports.attacks import found_much

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
        typer.echo(json.dumps([vars(check) for check in checks], indent=2))
    elif not quiet:
        for check in checks:
            typer.echo(str(check))
        if last := despite_grave(checks):
            typer.echo(last)
        if not is_broken and (much := found_much(Proof.of(released, certificate).certificate)):
            typer.echo(f"attacks found much, {len(much)} times; a dossier says what is accepted")
    raise typer.Exit(1 if is_broken else 0)
