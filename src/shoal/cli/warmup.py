"""shoal warmup"""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.options import Quiet


def warmup(
    verbs: Annotated[
        list[str] | None,
        typer.Option(
            "--verb",
            metavar="VERB",
            help="Only what this verb needs: publish, stream, republish or fuse; repeatable.",
        ),
    ] = None,
    every_method: Annotated[
        bool,
        typer.Option("--all", help="Every method, not only those that run where none is named."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Compile for this machine what Shoal would compile on its first use, so that no run waits."""
    from shoal.advise.warmup import warm_up
    from shoal.cli.progress import shown

    with shown(quiet) as progress:
        compiled = warm_up(verbs or (), every_method, progress)
    if not quiet:
        done = f"compiled {compiled} functions" if compiled else "everything was compiled already"
        typer.echo(f"shoal: {done}", err=True)
