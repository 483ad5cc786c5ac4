"""shoal compare"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from shoal.cli import options
from shoal.cli.progress import shown
from shoal.data.option import Request, option
from shoal.data.printable import printable
from shoal.errors import InfeasibleError, InputError

METHODS = (
    "Methods parted by commas, each with parameters of its own if need be: mondrian:cut=nearest."
    " About four that suit the policy when left out; 'all' for every one of Shoal's."
)


@dataclass(frozen=True)
class Points(Request):
    """Which methods are compared at which k."""

    methods: str | None = option("--methods NAME[:PARAM=VALUE],...", METHODS)
    ks: str | None = option(
        "--ks K,K,...", "Values of k; 5, 10, 25, 50 and the policy's when left out."
    )
    skip: list[str] | None = option(
        "--skip K:METHOD", "A point that is measured already; repeatable."
    )


EVERY_POINT = Points()


def compare(
    input_path: str = option("INPUT", "The table; '-' reads CSV from standard input.", ...),
    policy: Path = options.POLICY,
    points: Points = EVERY_POINT,
    output: str | None = option("-o, --output", "The rows as JSON; '-' prints them."),
    settings: list[str] | None = option("--set", "Not here: see --methods.", is_hidden=True),
    seed: int | None = options.SEED,
    read: list[str] | None = options.READ,
    attack: bool = option("--attack", "Also try attacks on each release, beside its loss.", False),
    as_json: bool = option("--json", "Print the rows as JSON instead of the table.", False),
    report: Path | None = option("--report FILE.html", "Write the table and its curves as a page."),
    quiet: bool = option("-q, --quiet", "No progress.", False),
) -> None:
    """Compare methods and values of k on one table: loss, risk, time and every promise, measured;
    recommends one of them. Publishes nothing.

    Exit status 1 when a release would break a promise, 3 when no method reaches any k.
    """
    from shoal.advise.compare import compare as compared
    from shoal.connectors.files import atomic_write
    from shoal.reports.comparison_table import as_text, faults, reasons

    if settings:
        raise InputError(
            "--set: does not say of which method; write --methods mondrian:cut=nearest"
        )
    if output == "-":
        output, as_json = None, True
    asked = options.Overrides(seed=seed, read=read).policy(policy)
    options.check_outputs(output, report=report, inputs=[input_path, str(policy), *asked.files])
    options.check_outputs(report=report, inputs=[output])
    with shown(quiet) as progress:
        comparison = compared(
            input_path,
            asked,
            _names(points.methods),
            _numbers(points.ks),
            attack=attack,
            skip=_skipped(points.skip),
            progress=progress,
        )
        if output is not None:
            with atomic_write(output) as draft:
                draft.write_text(comparison.to_json())
        if report is not None:
            from shoal.reports.comparison import write_comparison

            progress("drawing the report")
            write_comparison(comparison, report)
    for question in asked.open_questions():
        typer.echo(f"shoal: {printable(str(question))}", err=True)
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
        if not (k.isascii() and k.isdigit() and len(k) < 10 and method)
    ]
    if findings:
        raise InputError.from_findings(findings)
    return [(method, int(k)) for _, k, _, method in parted]


def _names(methods: str | None) -> list[str] | None:
    return None if methods is None else methods.split(",")


def _numbers(ks: str | None) -> list[int] | None:
    """The numbers of a list; raises InputError with every item that is none."""
    if ks is None:
        return None
    items = [item.strip() for item in ks.split(",")]
    findings = [
        f"--ks '{item}': is not a whole number; write for instance --ks 5,10,50"
        for item in items
        if not (item.isascii() and item.isdigit() and len(item) < 10)
    ]
    if findings:
        raise InputError.from_findings(findings)
    return [int(item) for item in items]
