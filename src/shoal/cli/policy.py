"""shoal policy init, check, and shoal hierarchies match, edit"""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli import options
from shoal.cli.progress import say, show_findings, shown
from shoal.data.language import printable
from shoal.data.option import option
from shoal.data.warnings import GRAVE, with_grave
from shoal.errors import InputError
from shoal.policy.options import READ, REPLACE, DataFiles, Overrides, files_options

if TYPE_CHECKING:
    from collections.abc import Mapping


policy = typer.Typer(help="Propose, validate and describe policies.", no_args_is_help=True)


@policy.command("init")
def init(
    data: str = option("DATA", "The table, or the folder of tables, to write a policy for.", ...),
    output: str = option("-o, --output", "The policy file; '-' prints it.", "-"),
    k: int = option("--k", "The k to promise.", 10, low=2),
    hierarchies: Path | None = option(
        "--hierarchies DIR", "A folder of hierarchy tables, matched to columns by names and values."
    ),
    explain: bool = option("--explain", "Say why each role, and who is alone with what.", False),
    *,
    files: DataFiles,
    quiet: bool = options.QUIET,
) -> None:
    """Propose a policy for a table, or for a folder, workbook or database of several: a draft with
    a reason for every role and a question where only a person can decide, to be read before it is
    used.
    """
    if output != "-" and Path(output).exists():
        raise InputError(
            f"output '{output}': exists; name a new file, a policy is never overwritten"
        )
    from shoal.advise.propose import propose_policy
    from shoal.connectors.table_places import is_several
    from shoal.reports.advice_in_words import explanation_lines, question_lines

    if files.further or ("sheet" not in files.reading and is_several(data)):
        _init_linked(data, output, k, files, quiet)
        return
    with shown(quiet) as progress:
        proposal = propose_policy(
            data,
            k,
            read=files.reading,
            hierarchies=hierarchies,
            base="." if output == "-" else Path(output).parent,
            explain=explain,
            progress=progress,
        )
    _write(proposal.text, output)
    said = explanation_lines(proposal) if explain else []
    if not quiet:
        if output != "-":
            check = f"shoal policy check {shlex.quote(output)} {shlex.quote(data)}"
            said.append(f"wrote {output}; read it, correct the roles, then: {check}")
        said += question_lines(proposal)
    for line in said:
        say(line)


def _init_linked(data: str, output: str, k: int, files: DataFiles, quiet: bool) -> None:
    """Proposes a policy for several tables."""
    from shoal.advise.propose_linked import propose_linked
    from shoal.connectors.table_places import table_places
    from shoal.reports.advice_in_words import open_question_lines

    with shown(quiet) as progress:
        places = table_places(data, files.further)
        proposal = propose_linked(places, k, read_as=files.reading, progress=progress)
    _write(proposal.text, output)
    if quiet:
        return
    if output != "-":
        named = "".join(
            f" --table {shlex.quote(f'{name}={path}')}" for name, path in files.further.items()
        )
        check = f"shoal policy check {shlex.quote(output)} {shlex.quote(data)}{named}"
        say(f"wrote {output}; read it, correct roles and parents, then: {check}")
    for name in places.views:
        say(f"view '{name}': is left out; name it under 'tables' if its rows belong to people")
    for line in open_question_lines(proposal.questions):
        say(line)


def _write(text: str, output: str) -> None:
    if output == "-":
        typer.echo(text, nl=False)
        return
    from shoal.connectors.files import write_text

    write_text(output, text)


@policy.command("check")
def check(
    policy: Path | None = option("POLICY", "The policy file."),
    data: str | None = option("DATA", "The table, or the folder of tables, it is for."),
    show_values: bool = option(
        "--show-values", "Print the values that are at fault: on your own screen only.", False
    ),
    schema: bool = option(
        "--schema", "Print the JSON Schema of a policy file, and end.", False, takes_no=("policy",)
    ),
    *,
    files: DataFiles,
) -> None:
    """Validate a policy and, with its data, every hierarchy: lists all findings; exit status 2 if
    there are any.
    """
    from shoal.advise.check import check_files, key_remarks, remarks
    from shoal.policy.loading import json_schema

    if schema:
        typer.echo(json.dumps(json_schema(), indent=2))
        return
    if policy is None:
        raise InputError("policy check: needs POLICY, or --schema; see 'shoal policy check --help'")
    findings = check_files(policy, data, files.reading, files.further)
    for finding in findings:
        say(f"shoal: {printable(finding.message)}")
        if show_values:
            for value in finding.values:
                typer.echo(f"    {value!r}")
    if findings:
        raise typer.Exit(2)

    own = Overrides(read=files.read).policy(policy)
    for remark in key_remarks(own):
        say(f"shoal: {printable(remark)}")
    found = []
    if data not in (None, "-"):  # standard input was read already
        found = remarks(own, str(data), files.further)
    show_findings(found)
    sound = "the policy is sound" + ("" if data is None else " and fits the data")
    say(with_grave(sound, sum(one.severity == GRAVE for one in found)))


hierarchies = typer.Typer(
    help="Match hierarchy tables to columns, and edit them.", no_args_is_help=True
)


@hierarchies.command("match")
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


@hierarchies.command("edit")
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
