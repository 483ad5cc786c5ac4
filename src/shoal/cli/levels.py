"""shoal levels"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.progress import shown
from shoal.data.printable import printable
from shoal.errors import InputError

LONG = 10
"""Digits that no level has."""


@options.with_overrides
def levels(
    input_path: Annotated[
        str, typer.Argument(metavar="INPUT", help="The table; '-' reads CSV from standard input.")
    ],
    policy: options.PolicyFile,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            metavar="COLUMN:LEVEL",
            help="The level of a column, repeatable; columns that are not named are at level 0.",
        ),
    ] = None,
    overrides: options.Overrides = options.NO_OVERRIDES,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Measure the loss and safety of levels of a global recoding, and of those one step coarser or
    finer. Publishes nothing.
    """
    from shoal.advise.lattice_walk import lattice_walk
    from shoal.reports.draft_in_words import level_lines

    asked = overrides.policy(policy)
    named = _all_named(at or ())
    with shown(quiet) as progress:
        walk = lattice_walk(input_path, asked, progress=progress)
        found = walk.around(dict.fromkeys(walk.heights, 0) | named)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    for line in level_lines(found):
        typer.echo(printable(line))


def _all_named(texts: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, level in map(_named, texts):
        if name in found:
            raise InputError(f"--at: names '{name}' twice; give each column one level")
        found[name] = level
    return found


def _named(text: str) -> tuple[str, int]:
    name, _, level = text.rpartition(":")
    if not name or not (level.isascii() and level.isdigit() and len(level) < LONG):
        raise InputError(f"--at '{text}': is not COLUMN:LEVEL; write for instance --at zip:2")
    return name, int(level)
