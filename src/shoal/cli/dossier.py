"""shoal dossier"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from shoal.cli import options
from shoal.cli.key import opened
from shoal.cli.progress import shown
from shoal.data.option import Request, option
from shoal.errors import InputError
from shoal.policy.options import NO_OVERRIDES, Overrides


@dataclass(frozen=True)
class ContextForms(Request):
    """What is printed of a context file, instead of a dossier."""

    template: bool = option("--template", "Print an empty context file, and end.", False)
    schema: bool = option("--schema", "Print the JSON Schema of a context file, and end.", False)


@dataclass(frozen=True)
class Signatures(Request):
    """Who must have signed the release, and who signs its dossier."""

    trust: list[str] | None = option(
        "--trust PUB.pem",
        "A public key, or a folder of *.pub.pem: one of them must have signed the"
        " release; repeatable. Extra: sign.",
    )
    sign: Path | None = option(
        "--sign KEY",
        "Sign D.json with this private key. Extra: sign.",
        needs=("output",),
        why="--sign: signs what -o writes; name a page with -o",
    )


NO_FORMS = ContextForms()
NO_SIGNATURES = Signatures()


@dataclass(frozen=True)
class DossierRequest(Request):
    """What a dossier is asked."""

    released: str | None = option("RELEASED", "The released table.")
    certificate: Path | None = option("[CERT]", "Its certificate; else RELEASED.certificate.json.")
    context: Path | None = option(
        "--context", "What no certificate can know: who, why, under which controls."
    )
    output: Path | None = option("-o, --output D.html", "The page; D.json is written beside it.")
    policy: Path | None = option(
        "-p, --policy", "The policy (of a fusion: its agreement): measures again."
    )
    overrides: Overrides = NO_OVERRIDES
    original: str | None = option("--original", "The table it was made of: tells the initial risk.")
    trace: str | None = option(
        "--trace", "Whose row is whose, as its --trace wrote it: counts people."
    )
    profile: list[str] | None = option(
        "--profile NAME",
        "Whose clauses are listed; repeatable. By default gdpr. Others: appi, ehds, ema-hc,"
        " gbt-42460, hipaa-expert, ico-2025, ipc-ontario-2025, iso-27559, korea-2026,"
        " owasp-aisvs, tc260-2025.",
    )
    complete: bool = option("--complete", "Exit status 1 while something is open.", False)
    forms: ContextForms = NO_FORMS
    signatures: Signatures = NO_SIGNATURES


def dossier(asked: DossierRequest, quiet: bool = options.QUIET) -> None:
    """Write the dossier of a release: what was measured, what its owner answers, what is open."""
    from shoal.auditor.dossier.context import json_schema
    from shoal.auditor.dossier.context import template as empty_context

    if asked.forms.template or asked.forms.schema:
        typer.echo(
            empty_context() if asked.forms.template else json_schema(), nl=not asked.forms.template
        )
        return
    if asked.released is None or asked.context is None:
        lacking = "RELEASED" if asked.released is None else "--context"
        raise InputError(
            f"dossier: {lacking} is missing; 'shoal dossier --template' prints a context file"
        )
    signer = opened(asked.signatures.sign)
    policy = asked.overrides.of_release(asked.released, asked.certificate, asked.policy)
    _check_outputs(asked.output, [asked.released, str(asked.context), asked.original, asked.trace])
    from shoal.reports.dossier import dossier as build_dossier
    from shoal.reports.dossier import json_path, summary, write_dossier

    with shown(quiet) as progress:
        found = build_dossier(
            asked.released,
            asked.certificate,
            context=asked.context,
            policy=policy,
            original=asked.original,
            trace=asked.trace,
            profiles=asked.profile or (),
            trust=asked.signatures.trust or (),
            progress=progress,
        )
    if asked.output is not None:
        write_dossier(found, asked.output)
        if signer is not None:
            signer.sign(json_path(asked.output))
    if not quiet:
        if asked.output is not None:
            typer.echo(f"wrote {asked.output} and {json_path(asked.output)}", err=True)
        for line in summary(found):
            typer.echo(line, err=True)
        if asked.output is None:
            typer.echo("nothing was written: name a page with -o D.html", err=True)
    raise typer.Exit(1 if asked.complete and found.open else 0)


def _check_outputs(output: Path | None, inputs: list[str | None]) -> None:
    if output is not None:
        from shoal.reports.dossier import json_path

        options.check_outputs(json_path(output), inputs=inputs, report=output, page="-o")
