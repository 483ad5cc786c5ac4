"""shoal sample"""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.answers import listed


def sample(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Which generator: bank, patients, purchases or wearables."
        ),
    ],
    output: Annotated[str, typer.Option("-o", "--output", help="Where to write the table.")],
    n: Annotated[int, typer.Option("-n", help="How many records.", min=1)] = 1000,
    seed: Annotated[
        int, typer.Option("--seed", help="The same seed gives the same table.", min=0)
    ] = 0,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing.")] = False,
) -> None:
    """Write a table of invented people, with a policy that fits it beside it."""
    from shoal.samples import write_sample

    written = write_sample(name, n, seed, output)
    if not quiet:
        typer.echo(f"wrote {listed(written)}", err=True)
