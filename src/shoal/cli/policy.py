"""What comes before a release: shoal policy, hierarchies, profile, compare."""

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli import options
from shoal.cli.progress import Figures, answer, say, show_findings, shown
from shoal.data.language import printable
from shoal.data.option import Request, option
from shoal.data.progress import Progress
from shoal.data.warnings import GRAVE, with_grave
from shoal.errors import InfeasibleError, InputError
from shoal.policy.options import POLICY, READ, REPLACE, DataFiles, Overrides, files_options, names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shoal.policy.binding.files import Source

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
    from shoal.connectors.linked_tables import is_several
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
    from shoal.connectors.linked_tables import table_places
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
    grave = sum(one.severity == GRAVE for one in found)
    fits = f"the policy is {'valid' if grave else 'sound'}"
    say(with_grave(fits + ("" if data is None else " and fits the data"), grave))


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
    content = {"schema": SCHEMA, "files": [one.to_dict() for one in found]}
    answer(content, lambda _: match_lines(found), as_json)


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
    options.check_outputs(output, inputs=[table, data], replace=replace)
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
        raise InputError(
            "edit: is not a mapping; write for instance '{put: Malta, under: Europe}', and quote"
            ' numbers that begin with 0, such as "010"'
        )
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


# shoal profile, compare

INPUT = option("INPUT", "The table; '-' reads CSV from standard input.", ...)
NO_PROGRESS = option("-q, --quiet", "No progress.", False)


def profile(
    *,
    input_path: str = INPUT,
    policy: Path | None = option(
        "-p, --policy", "A policy: who is alone, and what follows if rows are taken for people."
    ),
    qi: list[str] | None = option(
        "--qi A,B", "Instead of a policy: columns that others could know.", takes_no=("policy",)
    ),
    k: int | None = option("--k", "Overrides the policy's k; with --qi, 10.", low=2),
    records: str | None = option(
        "--records FILE",
        "Also write the risk of every record, in the table's order; private.",
        needs=("policy",),
        why="--records: needs the columns that others could know; give a policy",
    ),
    files: DataFiles,
    figures: Figures,
) -> None:
    """Count what every column of a table holds, who may be one person in it, and, by a policy, how
    many people are alone by what others could know. Publishes nothing, shows no cell.
    """
    from shoal.advise.profile import profile as profiled
    from shoal.advise.risk import risk as measured
    from shoal.policy.binding.files import read_undeclared
    from shoal.reports.advice_in_words import profile_lines, risk_lines

    asked = None if policy is None else Overrides(k=k, read=files.read).policy(policy)
    read_as, quasi = files.reading, names(qi)
    options.check_outputs(records, inputs=[input_path, policy])
    if records is not None and Path(records).exists():  # private, so that none is overwritten
        raise InputError(f"output '{records}': is there already; name a new file")
    if asked is not None and asked.model.is_linked:
        if records is not None:
            raise InputError("--records: is for one table, and the policy links several")
        further = files.further
        figures.show(
            lambda progress: measured(input_path, asked, further=further, progress=progress),
            risk_lines,
        )
        return
    with shown(figures.quiet) as progress:
        source: Source = input_path
        if asked is not None and input_path == "-":  # which can be read once
            read = asked.model.read
            source = read_undeclared(input_path, read, progress, asked.tables)[0].frame
        found = profiled(
            source, read=read_as, policy=asked, quasi=quasi, k=k or 10, progress=progress
        )
        risk = None if asked is None else measured(source, asked, progress=progress)
    if risk is not None and records is not None:
        risk.write_records(records)
    answer(
        found.to_dict() | ({} if risk is None else {"risk": risk.to_dict()}),
        lambda _: [*profile_lines(found), *([] if risk is None else ["", *risk_lines(risk)])],
        figures.as_json,
    )


# shoal compare


_OF_METHODS = ("methods", "ks", "skip", "output", "attack", "report")


class CompareRequest(Request, kw_only=True):
    """Which methods are compared at which k, and how."""

    input_path: str = INPUT
    policy: Path = POLICY
    methods: str | None = option(
        "--methods NAME[:PARAM=VALUE],...",
        "Methods separated by commas, each with parameters of its own if need be:"
        " mondrian:cut=nearest. About four that suit the policy when left out; 'all' for every one"
        " of Shoal's that publishes one table.",
    )
    ks: str | None = option(
        "--ks K,K,...",
        "Values of k; 5, 10, 25, 50 and the policy's when left out. 1, no k, is for a policy that"
        " bounds the risk of a sample and promises no k.",
    )
    skip: list[str] | None = option(
        "--skip K:METHOD", "A point that is measured already; repeatable."
    )
    output: str | None = option("-o, --output", "The rows as JSON; '-' prints them.")
    replace: bool = REPLACE
    attack: bool = option("--attack", "Also try attacks on each release, beside its loss.", False)
    columns: bool = option(
        "--columns",
        "Instead: what each quasi-identifier loses, and what the others would lose without it.",
        False,
        takes_no=("levels", *_OF_METHODS),
    )
    levels: list[str] | None = option(
        "--levels COLUMN:LEVEL",
        "Instead: loss and safety of these levels of a global recoding, repeatable, others at 0,"
        " and of those one step coarser or finer.",
        takes_no=_OF_METHODS,
    )
    overrides: Overrides


def compare(
    asked: CompareRequest,
    as_json: bool = option("--json", "Print the rows as JSON instead of the table.", False),
    report: Path | None = option("--report FILE.html", "Write the table and its curves as a page."),
    quiet: bool = NO_PROGRESS,
) -> None:
    """Compare methods and values of k on one table or linked ones: loss, risk, time and every
    promise, measured; recommends one of them. Or measure what columns, or levels of a global
    recoding, cost. Publishes nothing.

    Exit status 1 when a release would break a promise, 3 when no method reaches any k.
    """
    from shoal.advise.compare import compare as compared
    from shoal.connectors.files import write_text
    from shoal.reports.comparison_table import as_text, faults, reasons

    one = asked.overrides
    if asked.columns or asked.levels:
        _show_costs(asked, Figures(as_json=as_json, quiet=quiet))
        return
    if one.k is not None or one.method is not None or one.settings or one.write:
        raise InputError(
            "--k, --method, --set and --write: are of one release; give them with --columns or"
            " --levels, or write --methods mondrian:cut=nearest and --ks 5,10"
        )
    policy = one.policy(asked.policy)
    output = None if asked.output == "-" else asked.output
    as_json = as_json or asked.output == "-"
    inputs = [asked.input_path, *policy.files]
    options.check_outputs(output, report=report, inputs=inputs, replace=asked.replace)
    options.check_outputs(report=report, inputs=[output])
    with shown(quiet) as progress:
        comparison = compared(
            asked.input_path,
            policy,
            None if asked.methods is None else asked.methods.split(","),
            None if asked.ks is None else _numbers(asked.ks),
            attack=asked.attack,
            skip=_skipped(asked.skip),
            progress=progress,
        )
        if output is not None:
            write_text(output, comparison.to_json())
        if report is not None:
            from shoal.reports.comparison import write_comparison

            progress("drawing the report")
            write_comparison(comparison, report)
    for question in policy.open_questions():
        say(f"shoal: {printable(str(question))}")
    typer.echo(comparison.to_json() if as_json else as_text(comparison), nl=False)
    if comparison.rows and not comparison.releases:
        # the table has its reasons below it
        why = reasons(comparison) if as_json else []
        raise InfeasibleError("no method reaches any of these k", why)
    raise typer.Exit(1 if faults(comparison) else 0)


def _show_costs(asked: CompareRequest, figures: Figures) -> None:
    """Shows what columns or levels cost, by releases that are not written."""
    from shoal.advise.marginal import lattice_walk, marginal
    from shoal.reports.advice_in_words import level_lines, marginal_lines

    policy, levels = asked.overrides.policy(asked.policy), _all_named(asked.levels or ())

    def around(progress: Progress) -> dict[str, Any]:
        walk = lattice_walk(asked.input_path, policy, progress=progress)
        return walk.around(dict.fromkeys(walk.heights, 0) | levels)

    if levels:
        figures.show(around, level_lines)
    else:
        figures.show(
            lambda progress: marginal(asked.input_path, policy, progress=progress), marginal_lines
        )


def _all_named(texts: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in texts:
        name, _, level = text.rpartition(":")
        if not name or not options.is_number(level):
            raise InputError(
                f"--levels '{text}': is not COLUMN:LEVEL; write for instance --levels zip:2"
            )
        if name in found:
            raise InputError(f"--levels: names '{name}' twice; give each column one level")
        found[name] = int(level)
    return found


def _skipped(texts: list[str] | None) -> list[tuple[str, int]]:
    """Methods and values of k to leave out; raises InputError with each that is not a point."""
    parted = [(text, *text.partition(":")) for text in texts or []]
    findings = [
        f"--skip '{text}': is not a point; write K:METHOD, for instance 10:mondrian"
        for text, k, _, method in parted
        if not (options.is_number(k) and method)
    ]
    InputError.raise_for(findings)
    return [(method, int(k)) for _, k, _, method in parted]


def _numbers(ks: str) -> list[int]:
    """The numbers of a list; raises InputError with every item that is none."""
    items = [item.strip() for item in ks.split(",")]
    findings = [
        f"--ks '{item}': is not a whole number; write for instance --ks 5,10,50"
        for item in items
        if not options.is_number(item)
    ]
    InputError.raise_for(findings)
    return [int(item) for item in items]
