"""shoal risk"""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.answers import answer
from shoal.cli.progress import shown


def risk(
    input_path: Annotated[
        str, typer.Argument(metavar="INPUT", help="The table; '-' reads CSV from standard input.")
    ],
    policy: options.PolicyFile,
    k: options.K = None,
    read: options.Read = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Count how many people of a table are alone by what others could know, what each column gives
    away, and who hides among how many already. Publishes nothing, shows no cell.
    """
    from shoal.advise.risk import risk as measured
    from shoal.reports.table_in_words import risk_lines

    asked = options.Overrides(k=k, read=read).policy(policy)
    with shown(quiet) as progress:
        found = measured(input_path, asked, progress=progress)
    answer(found, risk_lines, as_json)
