"""shoal policy init, check, schema"""

import json
import shlex
from pathlib import Path

import typer

from shoal.cli import options
from shoal.cli.progress import say, show_findings, shown
from shoal.data.language import printable
from shoal.data.option import option
from shoal.data.warnings import GRAVE, with_grave
from shoal.errors import InputError
from shoal.policy.options import DataFiles, Overrides

app = typer.Typer(help="Propose, validate and describe policies.", no_args_is_help=True)


@app.command("init")
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
    from shoal.connectors.files import atomic_write

    with atomic_write(output) as draft:
        draft.write_text(text, encoding="utf-8")


@app.command("check")
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
