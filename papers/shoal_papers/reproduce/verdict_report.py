"""The written account of a reproduction: verdicts in words, and everything for other programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from shoal_papers.reproduce.paper import (
    Claim,
    ClaimFinding,
    DataSet,
    Figure,
    Paper,
    Reading,
    Row,
    Verdict,
    View,
)


@dataclass(frozen=True)
class Again:
    """What was measured later, with other code: how many rows were added or took the place of
    others, and how many came out as they were.
    """

    commit: str | None
    source: str
    added: int
    repeated: int


@dataclass(frozen=True)
class Provenance:
    """What a figure that we claim carries with it. source: hash of the code that was measured."""

    shoal: str
    commit: str | None
    source: str
    data: DataSet
    is_quick: bool
    again: Again | None = None

    @property
    def note(self) -> str:
        return (
            f"{self.data.words}, n = {self.data.records:,}; shoal {self.shoal}, source"
            f" {self.source}"
        )


@dataclass(frozen=True)
class Judged:
    """A reading with its rows, and what became of every claim under it."""

    reading: Reading
    view: View
    findings: Sequence[ClaimFinding]


def judge(paper: Paper, rows: Iterable[Row]) -> list[Judged]:
    """Every reading that was run, the paper's main reading first."""
    rows = list(rows)
    views = [(reading, reading.view(rows)) for reading in paper.readings]
    return [
        Judged(r, view, [claim.judge(view) for claim in paper.claims])
        for r, view in views
        if view is not None
    ]


def as_json(
    paper: Paper, provenance: Provenance, rows: Sequence[Row], judged: Sequence[Judged]
) -> str:
    """Everything: what was run, every row, every verdict."""
    content: dict[str, Any] = {
        "schema": "shoal.reproduction/1",
        "paper": paper.name,
        "citation": paper.citation,
        **asdict(provenance),
        "verdicts": [
            {
                "reading": j.reading.name,
                "about": claim.about,
                "verdict": finding.verdict,
                "numbers": finding.numbers,
            }
            for j in judged
            for claim, finding in zip(paper.claims, j.findings, strict=True)
        ],
    }
    if provenance.again is None:
        del content["again"]
    head = json.dumps(content, indent=1)[:-2]
    # one row a line: small, and a change shows as one line
    return (
        head
        + ',\n "rows": [\n  '
        + ",\n  ".join(json.dumps(dict(row)) for row in rows)
        + "\n ]\n}\n"
    )


def as_markdown(paper: Paper, provenance: Provenance, judged: Sequence[Judged]) -> str:
    """verdicts.md: the claims, the verdicts under every reading, the settings and the numbers
    behind each figure.
    """
    parts = [
        f"# {paper.title}: what reproduces",
        f"{paper.citation}",
        _origin(provenance),
        f"The full setting: {paper.setting}",
        "\n\n".join(
            part
            for part in (
                "## Verdicts under the main reading",
                paper.why_main,
                _verdicts(paper.claims, judged),
            )
            if part
        ),
        f"## The same claims under every reading\n\n{_by_reading(paper.claims, judged)}",
        "\n".join(f"* **{j.reading.name}**: {j.reading.words}" for j in judged),
    ]
    if paper.left_open:
        parts.append(
            "## What the paper leaves open, and our answer\n\n"
            + "\n".join(f"* {o}" for o in paper.left_open)
        )
    parts += [_numbers(figure, judged[0].view) for figure in paper.figures]
    return "\n\n".join(parts) + "\n"


def _origin(provenance: Provenance) -> str:
    data = provenance.data
    lines = [
        f"Data: {data.words}, {data.records:,} records, sha256 `{data.sha256[:16]}`. "
        f"Shoal {provenance.shoal}, source `{provenance.source}`"
        + (f", commit `{provenance.commit}`." if provenance.commit else ".")
    ]
    if provenance.again is not None:
        lines.append(_again(provenance.again))
    if provenance.is_quick:
        lines.append(
            "**Quick setting: a small run on made-up data; it shows that all works and says nothing"
            " of the paper.**"
        )
    return "\n\n".join(lines)


def _again(again: Again) -> str:
    code = f"source `{again.source}`" + (f", commit `{again.commit}`" if again.commit else "")
    added = f" {again.added:,} rows are later than that run." if again.added else ""
    return (
        f"{again.repeated:,} rows were measured again with {code}, and came out as they were, times"
        f" aside, which stay those of the first run.{added}"
    )


def _verdicts(claims: Sequence[Claim], judged: Sequence[Judged]) -> str:
    rows = [
        (
            claim.about,
            claim.words,
            f"**{judged[0].findings[place].verdict}**",
            _in_readings([j.findings[place].verdict for j in judged]),
            judged[0].findings[place].numbers,
        )
        for place, claim in enumerate(claims)
    ]
    return _table(("about", "the paper says", "verdict", "in all readings", "measured"), rows)


def _in_readings(verdicts: Sequence[Verdict]) -> str:
    return f"holds in {verdicts.count(Verdict.HOLDS)} of {len(verdicts)} readings"


def _by_reading(claims: Sequence[Claim], judged: Sequence[Judged]) -> str:
    rows = [(j.reading.name, *(str(finding.verdict) for finding in j.findings)) for j in judged]
    return _table(("reading", *(claim.about for claim in claims)), rows)


def _numbers(figure: Figure, view: View) -> str:
    """The points of a figure as a table."""
    curves = figure.points(view)
    places = sorted({at for points in curves.values() for at in points})
    rows = [(str(at), *(_number(points.get(at)) for points in curves.values())) for at in places]
    image = f"![{figure.title}]({figure.name}.svg)"
    return f"## {figure.title}\n\n{image}\n\n{_table((figure.x, *curves), rows)}"


def _number(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )
