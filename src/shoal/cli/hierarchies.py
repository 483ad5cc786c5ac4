"""shoal hierarchies match, edit"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli import options
from shoal.cli.progress import say, shown
from shoal.data.option import option
from shoal.data.printable import printable
from shoal.errors import InputError
from shoal.policy.options import READ, REPLACE, files_options

if TYPE_CHECKING:
    from collections.abc import Mapping

app = typer.Typer(help="Match hierarchy tables to columns, and edit them.", no_args_is_help=True)


@app.command("match")
def match(
    data: str = option("DATA", "The table.", ...),
    folder: Path = option("DIR", "A folder of hierarchy tables.", ...),
    policy: Path | None = option("-p, --policy", "Match the columns of its roles alone."),
    read: list[str] | None = READ,
    as_json: bool = option("--json", "Print it as JSON.", False),
    quiet: bool = options.QUIET,
) -> None:
    """Say which table of a folder fits which column, by the values that both have, how many rows
    it covers, and what is wrong with it. Shows no value.
    """
    from shoal.advise.matching import SCHEMA, match_hierarchies
    from shoal.reports.advice_in_words import match_lines

    with shown(quiet) as progress:
        found = match_hierarchies(
            data, folder, policy, read=files_options(read)[0], progress=progress
        )
    if as_json:
        content = {"schema": SCHEMA, "files": [one.to_dict() for one in found]}
        typer.echo(json.dumps(content, indent=2))
        return
    for line in match_lines(found):
        typer.echo(printable(line))


@app.command("edit")
def edit(
    table: Path = option("FILE", "The hierarchy table.", ...),
    edits: list[str] = option(
        "EDIT...", "Edits in their order, such as '{put: Malta, under: Europe}'.", ...
    ),
    output: str = option("-o, --output", "The edited table; '-' prints it.", "-"),
    replace: bool = REPLACE,
    data: str | None = option("--data", "For 'rare': the table whose rows are counted."),
    column: str | None = option("--column", "For 'rare': the column of --data."),
    read: list[str] | None = READ,
) -> None:
    """Edit a hierarchy: put a value under a node, make a new group or step, rename, move, take a
    value out, group what is rare. FILE stays as it is.
    """
    from shoal.data.hierarchies.table import read_hierarchy, table_text, write_hierarchy

    asked = [_edit(text) for text in edits]
    inputs = [str(table), data]
    options.check_outputs(output, inputs=inputs, replace=replace)
    hierarchy = read_hierarchy(table)
    if any("rare" in one for one in asked):
        counts = _counts(data, column, files_options(read)[0])
        asked = [{**one, "counts": counts} if "rare" in one else one for one in asked]
    hierarchy = hierarchy.edited(asked)
    if output == "-":
        typer.echo(table_text(hierarchy), nl=False)
    else:
        write_hierarchy(hierarchy, output)
    if any("no_value" in one for one in asked):
        say("shoal: name the texts for no value under 'missing_values' in the policy")


def _edit(text: str) -> dict[str, Any]:
    """One edit; raises InputError where it is not a mapping, without its labels."""
    import yaml

    from shoal.policy.loading import SafeLoader

    try:
        content = yaml.load(text, Loader=SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise InputError("edit: is not a mapping; write for instance '{put: Malta, under: Europe}'")
    return content


def _counts(data: str | None, column: str | None, read: "Mapping[str, Any]") -> dict[str, int]:
    from shoal.connectors import files
    from shoal.policy.loading import read_options, reading_of

    if data is None or column is None:
        raise InputError("edit 'rare': needs the rows of each value; give --data and --column")
    table = files.read(data, reading=reading_of(read_options(read))).table
    if column not in table.names:
        raise InputError(f"--column '{column}': is not in the data; name one of its columns")
    found = table.column(column)
    return dict(zip(found.cells, found.counts().tolist(), strict=True))
