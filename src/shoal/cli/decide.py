"""What a release costs: shoal profile, risk, compare, marginal, levels, estimate."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from shoal.cli.options import check_outputs, is_number
from shoal.cli.progress import Figures, say, shown
from shoal.data.option import Request, option
from shoal.data.printable import printable
from shoal.data.progress import Progress
from shoal.errors import InfeasibleError, InputError
from shoal.policy import options

INPUT = option("INPUT", "The table; '-' reads CSV from standard input.", ...)
NO_PROGRESS = option("-q, --quiet", "No progress.", False)


def risk(
    *,
    input_path: str = INPUT,
    policy: Path = options.POLICY,
    k: int | None = options.K,
    read: list[str] | None = options.READ,
    figures: Figures,
) -> None:
    """Count how many people of a table are alone by what others could know, what each column gives
    away, and who hides among how many already. Publishes nothing, shows no cell.
    """
    from shoal.advise.risk import risk as measured
    from shoal.reports.advice_in_words import risk_lines

    asked = options.Overrides(k=k, read=read).policy(policy)
    figures.show(lambda progress: measured(input_path, asked, progress=progress), risk_lines)


def profile(
    *,
    input_path: str = INPUT,
    policy: Path | None = option(
        "-p, --policy", "A policy: what follows if rows are taken for people."
    ),
    qi: list[str] | None = option(
        "--qi A,B", "Instead of a policy: columns that others could know."
    ),
    k: int = option("--k", "With --qi: the k to try.", 10, low=2),
    read: list[str] | None = options.READ,
    figures: Figures,
) -> None:
    """Count what every column of a table holds, and who may be one person in it. Shows no cell."""
    from shoal.advise.profile import profile as profiled
    from shoal.reports.advice_in_words import profile_lines

    read_as, quasi = options.files_options(read)[0], options.names(qi)
    figures.show(
        lambda progress: profiled(
            input_path, read=read_as, policy=policy, quasi=quasi, k=k, progress=progress
        ),
        profile_lines,
    )


def estimate(
    *,
    records: int = option("--records N", "Records of the table.", ...),
    quasi: int = option("--quasi N", "Its quasi-identifiers.", ...),
    k: int = option("--k N", "How many must look alike.", 10),
    other: int = option("--other N", "Columns that are published as they are.", 1),
    values: int | None = option(
        "--values N", "Distinct values of each quasi-identifier; default few, as a census has them."
    ),
    cores: int | None = option("--cores N", "Estimate the time on N cores, too; default: yours."),
    figures: Figures,
) -> None:
    """Tell what publishing a large table would take on this machine: seconds, memory and disk.
    Publishes an invented table to measure it, and reads none of yours.
    """
    from shoal.advise.estimate import estimate as estimated
    from shoal.reports.advice_in_words import estimate_lines

    figures.show(
        lambda progress: estimated(
            records, quasi, k=k, other=other, values=values, cores=cores, progress=progress
        ),
        estimate_lines,
    )


# shoal levels, shoal marginal


def levels(
    *,
    input_path: str = INPUT,
    policy: Path = options.POLICY,
    at: list[str] | None = option(
        "--at COLUMN:LEVEL",
        "The level of a column, repeatable; columns that are not named are at level 0.",
    ),
    overrides: options.Overrides,
    figures: Figures,
) -> None:
    """Measure the loss and safety of levels of a global recoding, and of those one step coarser or
    finer. Publishes nothing.
    """
    from shoal.advise.marginal import lattice_walk
    from shoal.reports.advice_in_words import level_lines

    asked = overrides.policy(policy)
    named = _all_named(at or ())

    def around(progress: Progress) -> dict[str, Any]:
        walk = lattice_walk(input_path, asked, progress=progress)
        return walk.around(dict.fromkeys(walk.heights, 0) | named)

    figures.show(around, level_lines)


def _all_named(texts: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in texts:
        name, _, level = text.rpartition(":")
        if not name or not is_number(level):
            raise InputError(f"--at '{text}': is not COLUMN:LEVEL; write for instance --at zip:2")
        if name in found:
            raise InputError(f"--at: names '{name}' twice; give each column one level")
        found[name] = int(level)
    return found


def marginal(
    *,
    input_path: str = INPUT,
    policy: Path = options.POLICY,
    overrides: options.Overrides,
    figures: Figures,
) -> None:
    """Measure what each quasi-identifier costs: its own loss, and what the other columns would lose
    in a release without it. Publishes in memory, once for each; writes nothing.
    """
    from shoal.advise.marginal import marginal as measured
    from shoal.reports.advice_in_words import marginal_lines

    asked = overrides.policy(policy)
    figures.show(lambda progress: measured(input_path, asked, progress=progress), marginal_lines)


# shoal compare


class CompareRequest(Request):
    """Which methods are compared at which k, and how."""

    input_path: str = INPUT
    policy: Path = options.POLICY
    methods: str | None = option(
        "--methods NAME[:PARAM=VALUE],...",
        "Methods parted by commas, each with parameters of its own if need be:"
        " mondrian:cut=nearest. About four that suit the policy when left out; 'all' for every one"
        " of Shoal's.",
    )
    ks: str | None = option(
        "--ks K,K,...", "Values of k; 5, 10, 25, 50 and the policy's when left out."
    )
    skip: list[str] | None = option(
        "--skip K:METHOD", "A point that is measured already; repeatable."
    )
    output: str | None = option("-o, --output", "The rows as JSON; '-' prints them.")
    settings: list[str] | None = option("--set", "Not here: see --methods.", is_hidden=True)
    seed: int | None = options.SEED
    read: list[str] | None = options.READ
    attack: bool = option("--attack", "Also try attacks on each release, beside its loss.", False)


def compare(
    asked: CompareRequest,
    as_json: bool = option("--json", "Print the rows as JSON instead of the table.", False),
    report: Path | None = option("--report FILE.html", "Write the table and its curves as a page."),
    quiet: bool = NO_PROGRESS,
) -> None:
    """Compare methods and values of k on one table: loss, risk, time and every promise, measured;
    recommends one of them. Publishes nothing.

    Exit status 1 when a release would break a promise, 3 when no method reaches any k.
    """
    from shoal.advise.compare import compare as compared
    from shoal.connectors.files import atomic_write
    from shoal.reports.comparison_table import as_text, faults, reasons

    if asked.settings:
        raise InputError(
            "--set: does not say of which method; write --methods mondrian:cut=nearest"
        )
    output = None if asked.output == "-" else asked.output
    as_json = as_json or asked.output == "-"
    policy = options.Overrides(seed=asked.seed, read=asked.read).policy(asked.policy)
    inputs = [asked.input_path, str(asked.policy), *policy.files]
    check_outputs(output, report=report, inputs=inputs)
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
            with atomic_write(output) as draft:
                draft.write_text(comparison.to_json())
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
