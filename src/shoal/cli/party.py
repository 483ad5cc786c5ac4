"""shoal party"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import options
from shoal.errors import InputError
from shoal.reports.text import fusion_summary


def party(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="This party; or 'init' to make keys, 'show' for the hash."
        ),
    ],
    parties: Annotated[
        str,
        typer.Argument(
            metavar="PARTIES.yaml", help="The agreement; after 'init' the party's name."
        ),
    ] = "",
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="The release; a helper writes none.")
    ] = None,
    keys: Annotated[
        Path, typer.Option("--keys", metavar="DIR", help="The folder with NAME.key and NAME.crt.")
    ] = Path(),
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder", metavar="DIR", help="Where the journal is kept; by default NAME.journal."
        ),
    ] = None,
    agreed: Annotated[
        str | None,
        typer.Option("--agreed", metavar="HASH", help="The agreement's hash that was signed off."),
    ] = None,
    transcript: Annotated[
        Path | None,
        typer.Option(
            "--transcript", metavar="DIR", help="Keep every message for 'shoal audit --transcript'."
        ),
    ] = None,
    patience: Annotated[
        float, typer.Option("--patience", help="Seconds to wait for the other parties.", min=1)
    ] = 600.0,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Take part in a fusion as one of its parties, on this machine; the others run the same command
    on theirs.

    `shoal party init NAME` makes the keys and the public part, `shoal party show PARTIES.yaml`
    prints the hash to sign off.
    """
    if not parties:
        needs = (
            "the party's name; write shoal party init NAME"
            if name == "init"
            else "the agreement, PARTIES.yaml"
        )
        raise InputError(f"party {name}: needs {needs}")
    if name == "init":
        return _init(parties, keys, quiet)
    if name == "show":
        return _show(parties)
    from shoal.jobs.fuse.party import take_part

    if output == "-":
        raise InputError("-o -: the release goes to a file; name one")

    def progress(stage: str) -> None:
        if not quiet:
            print(f"progress: {stage}", file=sys.stderr, flush=True)

    certificate = take_part(
        name,
        parties,
        output,
        keys=keys,
        folder=folder or Path(f"{name}.journal"),
        agreed=agreed,
        transcript=transcript,
        patience=patience,
        progress=progress,
    )
    if certificate is not None and as_json:
        typer.echo(certificate.to_json(), nl=False)
    elif certificate is not None and not quiet:
        typer.echo(fusion_summary(certificate, f"{output} and {output}.certificate.json"), err=True)
    return None


def _init(name: str, folder: Path, quiet: bool) -> None:
    from shoal.connectors.party.tls import fingerprint_of
    from shoal.jobs.fuse.keys import Keys

    keys = Keys.of(name, folder)
    keys.make(name)
    if not quiet:
        typer.echo(
            f"wrote {keys.key} (keep it to yourself) and {keys.certificate} (give it to the"
            " others)",
            err=True,
        )
        typer.echo(
            f"certificate {fingerprint_of(keys.certificate.read_bytes())}; read it to the others on"
            " the phone",
            err=True,
        )


def _show(path: str) -> None:
    from shoal.policy.agreement import Agreement

    agreement = Agreement.load(path)
    typer.echo(f"sha256:{agreement.hash.hex()}")
