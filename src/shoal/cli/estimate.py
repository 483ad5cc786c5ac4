"""shoal estimate"""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.answers import answer
from shoal.cli.progress import shown


def estimate(
    records: Annotated[int, typer.Option("--records", metavar="N", help="Records of the table.")],
    quasi: Annotated[int, typer.Option("--quasi", metavar="N", help="Its quasi-identifiers.")],
    k: Annotated[int, typer.Option("--k", metavar="N", help="How many must look alike.")] = 10,
    other: Annotated[
        int, typer.Option("--other", metavar="N", help="Columns that are published as they are.")
    ] = 1,
    values: Annotated[
        int | None,
        typer.Option(
            "--values",
            metavar="N",
            help="Distinct values of each quasi-identifier; default few, as a census has them.",
        ),
    ] = None,
    cores: Annotated[
        int | None,
        typer.Option(
            "--cores", metavar="N", help="Estimate the time on so many cores, too; default: yours."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Tell what publishing a large table would take on this machine: seconds, memory and disk.
    Publishes an invented table to measure it, and reads none of yours.
    """
    from shoal.advise.estimate import estimate as estimated
    from shoal.reports.estimate_in_words import estimate_lines

    with shown(quiet) as progress:
        found = estimated(
            records, quasi, k=k, other=other, values=values, cores=cores, progress=progress
        )
    answer(found, estimate_lines, as_json)
