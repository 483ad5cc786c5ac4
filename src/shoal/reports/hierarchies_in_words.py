"""Hierarchy tables and the columns that they fit, in words."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.advise.proposal.matching import HierarchyMatch
from shoal.reports.text_table import table_lines


def match_lines(found: Sequence[HierarchyMatch]) -> list[str]:
    """A row for each table, then what is wrong with it and what somebody has to choose."""
    heads = ("file", "fits, by its values", "found in it", "rows covered", "steps")
    lines = table_lines([heads, *(_row(match) for match in found)], left=3)
    for match in found:
        lines += [f"{match.file}: {finding}" for finding in match.findings]
        others = [one.column for one in match.fits[1:] if one.rows == match.fits[0].rows]
        if others:
            lines.append(f"{match.file}: {', '.join(others)} would fit as well; choose")
        if match.also_fits:
            lines.append(
                f"{match.file}: {', '.join(match.also_fits)} covers as much of {match.column};"
                " choose"
            )
    return lines


def _row(match: HierarchyMatch) -> tuple[str, ...]:
    own = match.coverage
    if own is None:
        column, covered = "no column", "0.0 %"
    else:
        column, covered = own.column, f"{100 * own.rows:.1f} %"
    return match.file, column, _found(match), covered, str(match.steps)


def _found(match: HierarchyMatch) -> str:
    said = []
    if match.coverage is not None and match.coverage.missing:
        missing, rows = match.coverage.missing, match.coverage.missing_rows
        said.append(f"{_count(missing, 'value')} missing, {_count(rows, 'row')}")
    if not match.is_sound:
        said.append("faulty")
    return "; ".join(said) or "sound"


def _count(number: int, one: str) -> str:
    return f"{number:,} {one}{'' if number == 1 else 's'}"
