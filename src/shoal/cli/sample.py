"""shoal sample"""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli import options


def sample(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which generator: patients.")],
    output: Annotated[str, typer.Option("-o", "--output", help="Where to write the table.")],
    n: Annotated[int, typer.Option("-n", help="How many records.", min=1)] = 1000,
    seed: options.Seed = None,
    quiet: options.Quiet = False,
) -> None:
    """Write a table of invented people, with a policy that fits it beside it."""
    from shoal.jobs.sample import write_sample

    written = write_sample(name, n, 0 if seed is None else seed, output)
    if not quiet:
        typer.echo(f"wrote {' and '.join(written)}", err=True)
