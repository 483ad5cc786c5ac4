"""shoal attacker-view"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.progress import shown
from shoal.data.printable import printable


def attacker_view(
    released: Annotated[str, typer.Argument(metavar="RELEASED", help="The released table.")],
    policy: options.PolicyFile,
    original: Annotated[
        str, typer.Option("--original", metavar="FILE", help="The table it was made from.")
    ],
    row: Annotated[
        str,
        typer.Option(
            "--row", metavar="N", help="A row, from 1, or 'most-exposed' or 'most-distorted'."
        ),
    ] = "most-exposed",
    read: options.Read = None,
    write: options.Write = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Show what an attacker who knows one person's quasi-identifiers sees of them in a release. It
    prints values of the table: on your own screen only.
    """
    from shoal.advise.attacker_view import attacker_view as viewed
    from shoal.reports.draft_in_words import attacker_lines

    asked = options.Overrides(read=read, write=write).policy(policy)
    number = int(row) if row.isascii() and row.isdigit() and len(row) < 16 else row
    with shown(quiet) as progress:
        view = viewed(released, asked, original, number, progress=progress)
    if as_json:
        typer.echo(json.dumps(view.to_dict(), indent=2, ensure_ascii=False))
        return
    for line in attacker_lines(view):
        typer.echo(printable(line))
