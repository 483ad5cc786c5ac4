"""What a table holds, and what a release of it would cost: shoal profile, shoal compare."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.options import check_outputs, is_number
from shoal.cli.progress import Figures, answer, say, shown
from shoal.data.language import printable
from shoal.data.option import Request, option
from shoal.data.progress import Progress
from shoal.errors import InfeasibleError, InputError
from shoal.policy import options

if TYPE_CHECKING:
    from shoal.policy.binding.files import Source

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
    files: options.DataFiles,
    figures: Figures,
) -> None:
    """Count what every column of a table holds, who may be one person in it, and, by a policy, how
    many people are alone by what others could know. Publishes nothing, shows no cell.
    """
    from shoal.advise.profile import profile as profiled
    from shoal.advise.risk import risk as measured
    from shoal.policy.binding.files import read_undeclared
    from shoal.reports.advice_in_words import profile_lines, risk_lines

    asked = None if policy is None else options.Overrides(k=k, read=files.read).policy(policy)
    read_as, quasi = files.reading, options.names(qi)
    check_outputs(records, inputs=[input_path, str(policy)])
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
    policy: Path = options.POLICY
    methods: str | None = option(
        "--methods NAME[:PARAM=VALUE],...",
        "Methods separated by commas, each with parameters of its own if need be:"
        " mondrian:cut=nearest. About four that suit the policy when left out; 'all' for every one"
        " of Shoal's.",
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
    replace: bool = options.REPLACE
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
    overrides: options.Overrides


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
    check_outputs(output, report=report, inputs=inputs, replace=asked.replace)
    check_outputs(report=report, inputs=[output])
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
        if not name or not is_number(level):
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
        if not (is_number(k) and method)
    ]
    InputError.raise_for(findings)
    return [(method, int(k)) for _, k, _, method in parted]


def _numbers(ks: str) -> list[int]:
    """The numbers of a list; raises InputError with every item that is none."""
    items = [item.strip() for item in ks.split(",")]
    findings = [
        f"--ks '{item}': is not a whole number; write for instance --ks 5,10,50"
        for item in items
        if not is_number(item)
    ]
    InputError.raise_for(findings)
    return [int(item) for item in items]
