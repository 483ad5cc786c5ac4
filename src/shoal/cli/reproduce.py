"""shoal reproduce"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.progress import shown


def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A paper's name, or 'all'.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for tables, figures and verdicts.")] = Path("reproduced"),
    quick: Annotated[bool, typer.Option("--quick", help="A small setting, in seconds.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Repeat a paper's experiments: its tables and figures, and a verdict on each of its claims."""
    from shoal.jobs.reproduce import reproduce_paper

    with shown(quiet) as progress:
        written = reproduce_paper(name, out, quick=quick, progress=progress)
    for path in written:
        typer.echo(f"wrote {path}", err=True)
