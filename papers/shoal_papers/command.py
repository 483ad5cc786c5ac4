"""shoal reproduce"""

from __future__ import annotations

from pathlib import Path

import typer

from shoal.cli.progress import shown
from shoal.data.option import option


def reproduce(
    name: str = option(
        "NAME", "A paper, or 'all': crp, fads, fusion, joint, rounded-partition, tcloseness.", ...
    ),
    out: Path = option("--out", "Folder; each paper gets a folder in it.", Path("reproduced")),
    quick: bool = option("--quick", "A small setting on made-up data, in seconds.", False),
    data: Path | None = option("--data DIR", "The data sets; else SHOAL_DATA or ../shared/data."),
    fresh: bool = option("--fresh", "Measure everything anew, finished runs too.", False),
    quiet: bool = option("-q, --quiet", "No progress.", False),
) -> None:
    """Repeat a paper's experiments: its tables and figures, and a verdict on each of its claims.

    An interrupted run goes on where it stopped.
    """
    from shoal_papers.reproduce import reproduce_paper

    try:
        with shown(quiet) as progress:
            written = reproduce_paper(
                name, out, quick=quick, data=data, fresh=fresh, progress=progress
            )
    except KeyboardInterrupt:
        typer.echo(
            f"shoal: interrupted; finished runs are kept in '{out}', the same command goes on from"
            " there",
            err=True,
        )
        raise SystemExit(130) from None  # typer.Exit(130) would print "nothing was written"
    for path in written:
        typer.echo(f"wrote {path}", err=True)
