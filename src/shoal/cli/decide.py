"""What a release costs and shows: shoal marginal, levels, attacker-view, estimate."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from shoal.cli import options
from shoal.cli.progress import answer, shown
from shoal.data.option import option
from shoal.errors import InputError

# shoal estimate


def estimate(
    records: int = option("--records N", "Records of the table.", ...),
    quasi: int = option("--quasi N", "Its quasi-identifiers.", ...),
    k: int = option("--k N", "How many must look alike.", 10),
    other: int = option("--other N", "Columns that are published as they are.", 1),
    values: int | None = option(
        "--values N", "Distinct values of each quasi-identifier; default few, as a census has them."
    ),
    cores: int | None = option("--cores N", "Estimate the time on N cores, too; default: yours."),
    as_json: bool = option("--json", "Print the figures as JSON.", False),
    quiet: bool = option("-q, --quiet", "No progress.", False),
) -> None:
    """Tell what publishing a large table would take on this machine: seconds, memory and disk.
    Publishes an invented table to measure it, and reads none of yours.
    """
    from shoal.advise.estimate import estimate as estimated
    from shoal.reports.advice_in_words import estimate_lines

    with shown(quiet) as progress:
        found = estimated(
            records, quasi, k=k, other=other, values=values, cores=cores, progress=progress
        )
    answer(found, estimate_lines, as_json)


# shoal attacker-view


def attacker_view(
    released: str = option("RELEASED", "The released table.", ...),
    policy: Path = options.POLICY,
    original: str = option("--original FILE", "The table it was made from.", ...),
    row: str = option(
        "--row N",
        "A row of the original from 1, 'most-exposed' or 'most-distorted'.",
        "most-exposed",
    ),
    trace: str | None = option("--trace", "Whose row is whose, as its --trace wrote it."),
    read: list[str] | None = options.READ,
    write: list[str] | None = options.WRITE,
    as_json: bool = option("--json", "Print it as JSON.", False),
    quiet: bool = option("-q, --quiet", "No progress.", False),
) -> None:
    """Show what an attacker who knows one person's quasi-identifiers sees of them in a release. It
    prints values of the table: on your own screen only.
    """
    from shoal.advise.attacker_view import attacker_view as viewed
    from shoal.reports.advice_in_words import attacker_lines

    asked = options.Overrides(read=read, write=write).policy(policy)
    number = int(row) if row.isascii() and row.isdigit() and len(row) < 16 else row
    with shown(quiet) as progress:
        view = viewed(released, asked, original, number, trace=trace, progress=progress)
    answer(view, attacker_lines, as_json, ensure_ascii=False)


# shoal levels


LONG = 10
"""Digits that no level has."""


def levels(
    input_path: str = option("INPUT", "The table; '-' reads CSV from standard input.", ...),
    policy: Path = options.POLICY,
    at: list[str] | None = option(
        "--at COLUMN:LEVEL",
        "The level of a column, repeatable; columns that are not named are at level 0.",
    ),
    overrides: options.Overrides = options.NO_OVERRIDES,
    as_json: bool = option("--json", "Print the figures as JSON.", False),
    quiet: bool = option("-q, --quiet", "No progress.", False),
) -> None:
    """Measure the loss and safety of levels of a global recoding, and of those one step coarser or
    finer. Publishes nothing.
    """
    from shoal.advise.marginal import lattice_walk
    from shoal.reports.advice_in_words import level_lines

    asked = overrides.policy(policy)
    named = _all_named(at or ())
    with shown(quiet) as progress:
        walk = lattice_walk(input_path, asked, progress=progress)
        found = walk.around(dict.fromkeys(walk.heights, 0) | named)
    answer(found, level_lines, as_json)


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


def marginal(
    input_path: str = option("INPUT", "The table; '-' reads CSV from standard input.", ...),
    policy: Path = options.POLICY,
    overrides: options.Overrides = options.NO_OVERRIDES,
    as_json: bool = option("--json", "Print the figures as JSON.", False),
    quiet: bool = option("-q, --quiet", "No progress.", False),
) -> None:
    """Measure what each quasi-identifier costs: its own loss, and what the other columns would lose
    in a release without it. Publishes in memory, once for each; writes nothing.
    """
    from shoal.advise.marginal import marginal as measured
    from shoal.reports.advice_in_words import marginal_lines

    asked = overrides.policy(policy)
    with shown(quiet) as progress:
        found = measured(input_path, asked, progress=progress)
    answer(found, marginal_lines, as_json)
