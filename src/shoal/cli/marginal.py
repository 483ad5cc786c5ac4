"""shoal marginal"""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.answers import answer
from shoal.cli.progress import shown


@options.with_overrides
def marginal(
    input_path: Annotated[
        str, typer.Argument(metavar="INPUT", help="The table; '-' reads CSV from standard input.")
    ],
    policy: options.PolicyFile,
    overrides: options.Overrides = options.NO_OVERRIDES,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Measure what each quasi-identifier costs: its own loss, and what the other columns would lose
    in a release without it. Publishes in memory, once for each; writes nothing.
    """
    from shoal.advise.marginal import marginal as measured
    from shoal.reports.draft_in_words import marginal_lines

    asked = overrides.policy(policy)
    with shown(quiet) as progress:
        found = measured(input_path, asked, progress=progress)
    answer(found, marginal_lines, as_json)
