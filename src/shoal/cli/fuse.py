"""shoal fuse, shoal party"""

from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from shoal.cli import options
from shoal.cli.progress import listed, say, show_certificate, shown
from shoal.cli.verify import opened
from shoal.data.option import option
from shoal.errors import InputError
from shoal.fusion.request import KEYS, FuseRequest, Keys, PartyRequest, check_output
from shoal.reports.text import fusion_summary

# shoal party init, run


class _RunByDefault(TyperGroup):
    """`shoal party NAME PARTIES.yaml` means `shoal party run NAME PARTIES.yaml`.

    No party can have the name of a sub-command, so the two never mean different things.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] == ["show"]:
            raise InputError("party show: write 'shoal party NAME PARTIES.yaml --check'")
        if args and args[0] != "--help" and args[0] not in self.commands:
            named = next((word for word in args if word in self.commands), None)
            if named is None:
                args = ["run", *args]
            else:  # options stand before it
                args = [named, *(word for word in args if word != named)]
        return super().parse_args(ctx, args)


party = typer.Typer(
    cls=_RunByDefault,
    no_args_is_help=True,
    help=(
        "Take part in a fusion as one of its parties. `shoal party NAME PARTIES.yaml` is short for"
        " `shoal party run NAME PARTIES.yaml`."
    ),
)


@party.command("init")
def init(
    name: str = option("NAME", "This party's name.", ...),
    keys: Path = KEYS,
    quiet: bool = options.QUIET,
) -> None:
    """Make a party's private key, and the certificate that the others need."""
    from shoal.connectors.party.tls import fingerprint_of

    made = Keys.of(name, keys)
    made.make(name)
    if not quiet:
        say(
            f"wrote {made.key} (keep it to yourself) and {made.certificate} (give it to the others)"
        )
        say(
            f"certificate {fingerprint_of(made.certificate.read_bytes())}; read it to the others on"
            " the phone"
        )


@party.command("run")
def run(
    asked: PartyRequest,
    check: bool = option(
        "--check", "Run nothing: print the agreement's hash, which every party signs off.", False
    ),
    as_json: bool = options.JSON,
    *,
    watched: options.Watched,
) -> None:
    """Run one party of a fusion on this machine; the others run the same command on theirs."""
    from shoal.connectors import metrics
    from shoal.fusion.party import take_part
    from shoal.policy.agreement import Agreement

    if check:
        typer.echo(f"sha256:{Agreement.load(asked.parties).hash.hex()}")
        return
    if asked.output == "-":
        raise InputError("-o -: the release goes to a file; name one")

    def progress(stage: str) -> None:
        if not watched.quiet:
            say(f"progress: {stage}")

    certificate = take_part(asked, progress)
    if certificate is not None:
        metrics.note({"fusion_records": ("Records released.", certificate["records"]["out"])})
    if certificate is not None and as_json:
        typer.echo(certificate.to_json(), nl=False)
    elif certificate is not None and not watched.quiet:
        say(fusion_summary(certificate, f"{asked.output} and {asked.output}.certificate.json"))


def fuse(
    asked: FuseRequest,
    sign: Path | None = options.SIGN,
    as_json: bool = options.JSON,
    report: Path | None = options.REPORT,
    quiet: bool = options.QUIET,
) -> None:
    """Fuse several owners' tables into one k-anonymous table, with all parties on this machine."""
    from shoal.fusion.fuse import fuse_file

    if asked.output == "-":
        raise InputError("-o -: each party writes a file of its own; name a file")
    signer = opened(sign)
    inputs, out = [asked.parties, asked.output], asked.output
    options.check_outputs(report=report, inputs=inputs, replace=asked.replace, release=out)
    agreement = asked.agreement()
    check_output(agreement, asked.output, asked.replace)
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
                from shoal.reports.pages import Heading
                from shoal.reports.release import write_report

                progress("drawing the report")
                audited = audit_file(asked.output, agreement.policy)
                write_report(audited, agreement.policy, report, Heading.of(asked.output, None))
    except KeyboardInterrupt:
        say("shoal: interrupted; nothing was published, run the same command again to resume")
        raise SystemExit(130) from None
    if signer is not None:
        signer.sign(f"{asked.output}.certificate.json")
    show_certificate(certificate, as_json)
    if not (as_json or quiet):
        written = listed([asked.output, f"{asked.output}.certificate.json", report])
        say(fusion_summary(certificate, written))
