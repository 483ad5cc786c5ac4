"""shoal fuse, shoal party"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from shoal.cli import options
from shoal.cli.key import opened
from shoal.cli.progress import listed, say, show_warnings, shown
from shoal.data.option import Request, option
from shoal.errors import InputError
from shoal.policy.options import METHOD, SEED, SETTINGS, K, parsed
from shoal.reports.text import fusion_summary
from shoal.tables.request import TOGETHER

# shoal party init, show, run


KEYS = option("--keys DIR", "The folder with NAME.key and NAME.crt.", Path())
TRANSCRIPT = option("--transcript DIR", "Keep every message for 'shoal audit --transcript'.")


class _RunByDefault(TyperGroup):
    """`shoal party NAME PARTIES.yaml` means `shoal party run NAME PARTIES.yaml`.

    No party can have the name of a sub-command, so the two never mean different things.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] != "--help" and args[0] not in self.commands:
            named = next((word for word in args if word in self.commands), None)
            if named is None:
                args = ["run", *args]
            else:  # options stand before it
                args = [named, *(word for word in args if word != named)]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_RunByDefault,
    no_args_is_help=True,
    help=(
        "Take part in a fusion as one of its parties. `shoal party NAME PARTIES.yaml` is short for"
        " `shoal party run NAME PARTIES.yaml`."
    ),
)


@app.command("init")
def init(
    name: str = option("NAME", "This party's name.", ...),
    keys: Path = KEYS,
    quiet: bool = options.QUIET,
) -> None:
    """Make a party's private key, and the certificate that the others need."""
    from shoal.connectors.party.tls import fingerprint_of
    from shoal.fusion.keys import Keys as PartyKeys

    made = PartyKeys.of(name, keys)
    made.make(name)
    if not quiet:
        say(
            f"wrote {made.key} (keep it to yourself) and {made.certificate} (give it to the others)"
        )
        say(
            f"certificate {fingerprint_of(made.certificate.read_bytes())}; read it to the others on"
            " the phone"
        )


@app.command("show")
def show(
    parties: str = option("PARTIES.yaml", "The agreement.", ...),
) -> None:
    """Print the agreement's hash, which every party signs off."""
    from shoal.policy.agreement import Agreement

    typer.echo(f"sha256:{Agreement.load(parties).hash.hex()}")


@dataclass(frozen=True)
class PartyRequest(Request):
    """What one party of a fusion is asked."""

    name: str = option("NAME", "Which of the parties this is.", ...)
    parties: str = option("PARTIES.yaml", "The agreement.", ...)
    output: str | None = option("-o, --output", "The release; a helper writes none.")
    keys: Path = KEYS
    folder: Path | None = option(
        "--folder DIR", "Where the journal is kept; by default NAME.journal."
    )
    agreed: str | None = option("--agreed HASH", "The agreement's hash that was signed off.")
    transcript: Path | None = TRANSCRIPT
    ledger: Path = option(
        "--ledger DIR", "The folder of NAME.ledger, where the agreement says 'before'.", Path()
    )
    patience: float = option("--patience", "Seconds to wait for the other parties.", 600.0, low=1)


@app.command("run")
def run(asked: PartyRequest, as_json: bool = options.JSON, quiet: bool = options.QUIET) -> None:
    """Run one party of a fusion on this machine; the others run the same command on theirs."""
    from shoal.fusion.party import take_part

    if asked.output == "-":
        raise InputError("-o -: the release goes to a file; name one")

    def progress(stage: str) -> None:
        if not quiet:
            say(f"progress: {stage}")

    certificate = take_part(
        asked.name,
        asked.parties,
        asked.output,
        keys=asked.keys,
        folder=asked.folder or Path(f"{asked.name}.journal"),
        agreed=asked.agreed,
        transcript=asked.transcript,
        ledger=asked.ledger,
        patience=asked.patience,
        progress=progress,
    )
    if certificate is not None and as_json:
        typer.echo(certificate.to_json(), nl=False)
    elif certificate is not None and not quiet:
        say(fusion_summary(certificate, f"{asked.output} and {asked.output}.certificate.json"))


@dataclass(frozen=True)
class FuseRequest(Request):
    """What a fusion of all parties is asked."""

    parties: str = option("PARTIES.yaml", "The agreement of all parties.", ...)
    output: str = option("-o, --output", "The fused release.", ...)
    transcript: Path | None = TRANSCRIPT
    k: int | None = K
    method: str | None = METHOD
    settings: list[str] | None = SETTINGS
    seed: int | None = SEED
    require_together: bool = TOGETHER


def fuse(
    asked: FuseRequest,
    sign: Path | None = options.SIGN,
    as_json: bool = options.JSON,
    report: Path | None = options.REPORT,
    quiet: bool = options.QUIET,
) -> None:
    """Fuse several owners' tables into one k-anonymous table, with all parties on this machine."""
    from shoal.fusion.fuse import fuse_file
    from shoal.policy.agreement import Agreement

    if asked.output == "-":
        raise InputError("-o -: each party writes a file of its own; name a file")
    signer = opened(sign)
    options.check_outputs(report=report, inputs=[asked.parties, asked.output])
    agreement = Agreement.load(asked.parties).with_overrides(
        asked.method, parsed(asked.settings or []), asked.k, asked.seed
    )
    try:
        with shown(quiet) as progress:
            certificate = fuse_file(
                agreement,
                asked.output,
                transcript=asked.transcript,
                beside=[] if report is None else [report],
                require_together=asked.require_together,
                progress=progress,
                notice=lambda line: say(f"shoal: {line}"),
            )
            if report is not None:
                from shoal.auditor.audit import audit_file
                from shoal.auditor.dossier.context import Heading
                from shoal.reports.release import write_report

                progress("drawing the report")
                audited = audit_file(asked.output, agreement.policy)
                write_report(audited, agreement.policy, report, Heading.of(asked.output, None))
    except KeyboardInterrupt:
        say("shoal: interrupted; nothing was published, run the same command again to resume")
        raise SystemExit(130) from None
    if signer is not None:
        signer.sign(f"{asked.output}.certificate.json")
    show_warnings(certificate)
    if as_json:
        typer.echo(certificate.to_json(), nl=False)
    elif not quiet:
        written = listed([asked.output, f"{asked.output}.certificate.json", report])
        say(fusion_summary(certificate, written))
