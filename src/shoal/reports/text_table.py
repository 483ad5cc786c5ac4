"""Even columns of text, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def table_lines(rows: Sequence[tuple[str, ...]], left: int) -> list[str]:
    """Lines of even columns. left: how many of them are texts, the others numbers."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
