"""shoal methods"""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer


def methods(
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    every: Annotated[
        bool,
        typer.Option("--all", help="The papers' comparators, too, where they are installed."),
    ] = False,
) -> None:
    """List the methods to choose from: verb, paper, parameters with defaults and ranges, and every
    promise they can keep.
    """
    from shoal.advise.methods import describe_promises
    from shoal.advise.methods import methods as listed

    described = {"methods": listed(every=every), "promises": describe_promises()}
    if as_json:
        typer.echo(json.dumps(described, indent=2))
        return
    for method in described["methods"]:
        typer.echo(f"{method['name']}  ({method['verb']})")
        typer.echo(f"    {method['paper']}")
        for parameter in method["parameters"]:
            typer.echo(
                f"    --set {parameter['name']}={parameter['default']} "
                f" {_limits(parameter)}{parameter['help']}"
            )
    typer.echo("\npromises every method keeps:")
    for promise in described["promises"]:
        typer.echo(f"  {promise['model']}: {promise['definition']}")


def _limits(parameter: dict[str, Any]) -> str:
    if parameter["choices"]:
        return f"[{'|'.join(str(c) for c in parameter['choices'] if c != '')}] "
    low, high = parameter["low"], parameter["high"]
    return (
        ""
        if low is None and high is None
        else f"[{'' if low is None else low}..{'' if high is None else high}] "
    )
