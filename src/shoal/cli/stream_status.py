"""shoal stream-status"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer


def stream_status(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="DIR", help="The stream's --checkpoint folder.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Say how a running stream is doing, by its last commit: verdict, counts, loss, waits, and what
    to look at. Reads no record, and the stream does not notice. Exit status 1 where a release broke
    a promise, 2 where there is no status.
    """
    from shoal.reports.stream_in_words import status_lines
    from shoal.streams.stream_status import partitions_under
    from shoal.streams.stream_status import stream_status as status_of

    parts = partitions_under(checkpoint)
    found = {path.name: status_of(path) for path in parts} or {"": status_of(checkpoint)}
    if as_json:
        contents = {
            name: {**one.content, "alarms": [asdict(alarm) for alarm in one.alarms]}
            for name, one in found.items()
        }
        typer.echo(json.dumps(contents if parts else contents[""], indent=2))
    else:
        for name, one in found.items():
            if name:
                typer.echo(f"{name}:")
            for line in status_lines(one):
                typer.echo(f"  {line}" if name else line)
    raise typer.Exit(0 if all(one.holds for one in found.values()) else 1)
