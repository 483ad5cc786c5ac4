"""shoal ledger"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import options

app = typer.Typer(help="Read and verify a ledger of releases.", no_args_is_help=True)
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The ledger.")]


@app.command("verify")
def verify(
    ledger: Annotated[
        str,
        typer.Argument(
            metavar="DIR", help="The ledger, or the table in a database that it writes."
        ),
    ],
    noted: Annotated[
        str | None,
        typer.Option(
            "--noted", metavar="HASH", help="A hash noted earlier: the chain must hold it."
        ),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Check the chain of hashes; name changed, missing or reordered releases (exit status 1)."""
    from shoal.auditor.ledger.export import unmarked, verify_ledger

    releases, head = verify_ledger(ledger, noted=noted)
    if not quiet:
        print(_whole_chain(releases, head), file=sys.stderr)
        for note in unmarked(ledger):
            print(f"shoal: {note}", file=sys.stderr)


def _whole_chain(releases: int, head: str) -> str:
    if not releases:
        return f"no release yet; the first will follow {head}"
    if releases == 1:
        return f"1 release is as it was published; the last is {head}"
    return f"{releases} releases follow each other as they were published; the last is {head}"


@app.command("export")
def export(
    ledger: Folder,
    output: Annotated[
        str, typer.Option("-o", "--output", help="The table; '-' writes CSV to standard output.")
    ],
    release: Annotated[
        int | None,
        typer.Option("--release", metavar="N", help="As of this release; else the last."),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Write the whole published table as of a release."""
    from shoal.auditor.ledger.export import export_table

    records, number = export_table(ledger, output, release)
    if not quiet:
        print(
            f"wrote {records} record{'' if records == 1 else 's'} as of release {number:04d}",
            file=sys.stderr,
        )
