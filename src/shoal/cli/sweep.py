"""shoal sweep"""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli import options


def sweep(
    outputs: Annotated[
        list[str],
        typer.Argument(
            metavar="OUTPUT...", help="Outputs of publish, or folders that hold some.", min=1
        ),
    ],
    quiet: options.Quiet = False,
) -> None:
    """Delete the drafts that killed runs left beside outputs; never a release, nor one at work."""
    from shoal.connectors.sweeping import Swept, sweep_output

    found = Swept()
    for output in outputs:
        swept = sweep_output(output)
        found = Swept(found.deleted + swept.deleted, found.kept + swept.kept)
    if not quiet:
        kept = f"; {found.kept} kept: at work, or another's" if found.kept else ""
        typer.echo(f"deleted {_counted(found.deleted)}{kept}", err=True)


def _counted(drafts: int) -> str:
    return "1 draft" if drafts == 1 else f"{drafts} drafts"
