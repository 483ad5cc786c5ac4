"""shoal verify"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import typer

from shoal.cli import options
from shoal.cli.progress import shown
from shoal.data.option import Request, option
from shoal.policy.options import NO_OVERRIDES, Overrides


@dataclass(frozen=True)
class VerifyRequest(Request):
    """What a verification is asked."""

    released: str = option("FILE", "The released table.", ...)
    certificate: Path | None = option("[CERT]", "Its certificate; else FILE.certificate.json.")
    policy: Path | None = option(
        "-p, --policy", "The policy (of a fusion: its agreement): measures again."
    )
    overrides: Overrides = NO_OVERRIDES
    original: str | None = option("--original", "The table it was made of: compares its hash.")
    trace: str | None = option(
        "--trace", "Whose row is whose, as its --trace wrote it: counts people."
    )
    trust: list[str] | None = option(
        "--trust PUB.pem",
        "A public key, or a folder of *.pub.pem: one of them must have signed;"
        " repeatable. Extra: sign.",
    )


def verify(
    asked: VerifyRequest,
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
        policy = asked.overrides.of_release(asked.released, asked.certificate, asked.policy)
        checks = run(
            asked.released,
            asked.certificate,
            policy,
            original=asked.original,
            trace=asked.trace,
            trust=asked.trust or (),
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
        if not is_broken and (
            much := found_much(Proof.of(asked.released, asked.certificate).certificate)
        ):
            typer.echo(f"attacks found much, {len(much)} times; a dossier says what is accepted")
    raise typer.Exit(1 if is_broken else 0)
