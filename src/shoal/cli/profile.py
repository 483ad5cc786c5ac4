"""shoal profile, shoal risk"""

from __future__ import annotations

from pathlib import Path

from shoal.cli import options
from shoal.cli.progress import answer, shown

# shoal risk
from shoal.data.option import option


def risk(
    input_path: str = option("INPUT", "The table; '-' reads CSV from standard input.", ...),
    policy: Path = options.POLICY,
    k: int | None = options.K,
    read: list[str] | None = options.READ,
    as_json: bool = option("--json", "Print the figures as JSON.", False),
    quiet: bool = option("-q, --quiet", "No progress.", False),
) -> None:
    """Count how many people of a table are alone by what others could know, what each column gives
    away, and who hides among how many already. Publishes nothing, shows no cell.
    """
    from shoal.advise.risk import risk as measured
    from shoal.reports.advice_in_words import risk_lines

    asked = options.Overrides(k=k, read=read).policy(policy)
    with shown(quiet) as progress:
        found = measured(input_path, asked, progress=progress)
    answer(found, risk_lines, as_json)


def profile(
    input_path: str = option("INPUT", "The table; '-' reads CSV from standard input.", ...),
    policy: Path | None = option(
        "-p, --policy", "A policy: what follows if rows are taken for people."
    ),
    qi: list[str] | None = option(
        "--qi A,B", "Instead of a policy: columns that others could know."
    ),
    k: int = option("--k", "With --qi: the k to try.", 10, low=2),
    read: list[str] | None = options.READ,
    as_json: bool = option("--json", "Print the figures as JSON.", False),
    quiet: bool = option("-q, --quiet", "No progress.", False),
) -> None:
    """Count what every column of a table holds, and who may be one person in it. Shows no cell."""
    from shoal.advise.profile import profile as profiled
    from shoal.reports.advice_in_words import profile_lines

    with shown(quiet) as progress:
        found = profiled(
            input_path,
            read=options.files_options(read)[0],
            policy=policy,
            quasi=options.names(qi),
            k=k,
            progress=progress,
        )
    answer(found, profile_lines, as_json)
