"""What a paper's experiments are made of: settings, readings, figures and claims.

A paper is one module of this package with a `PAPER`. Its *grid* lists settings; each is measured
once and gives one row. A *reading* settles what the paper leaves open: it says which rows are which
curve of the paper's legend. *Figures* draw the first reading; *claims* are judged under each of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

Setting = Mapping[str, Any]
"""What makes one run: column -> text, number or truth."""

Row = Mapping[str, Any]
"""A setting with everything that was measured under it."""


class Verdict(StrEnum):
    """What became of a claim."""

    HOLDS = "holds"
    IN_PART = "in part"
    FAILS = "does not hold"

    @classmethod
    def of(cls, kept: int, asked: int) -> Verdict:
        """Holds where it is kept everywhere, fails where it is kept nowhere."""
        if kept == asked:
            return cls.HOLDS
        return cls.IN_PART if kept else cls.FAILS


@dataclass(frozen=True)
class ClaimFinding:
    """A verdict, and the numbers that it rests on."""

    verdict: Verdict
    numbers: str


@dataclass(frozen=True)
class View:
    """The rows of one reading, by the curves of the paper's legend.

    instead: columns to take in place of others, for readings that measure elsewhere.
    """

    curves: Mapping[str, Sequence[Row]]
    instead: Mapping[str, str] = field(default_factory=dict)

    def points(self, curve: str, y: str, x: str) -> dict[Any, Any]:
        """The curve as x -> y, by ascending x."""
        column = self.instead.get(y, y)
        return {row[x]: row[column] for row in sorted(self.curves[curve], key=lambda row: row[x])}


@dataclass(frozen=True)
class Reading:
    """One way to settle what the paper leaves open.

    curves: name in the paper's legend -> the columns that its rows have in common.
    shared: curves of another reading that belong to this one, too. is_quick: whether the quick
    setting runs it, too. may_lack: whether some of its curves need not be run.
    """

    name: str
    words: str
    curves: Mapping[str, Setting]
    shared: Mapping[str, Setting] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)
    is_quick: bool = False
    may_lack: bool = False

    def view(self, rows: Iterable[Row]) -> View | None:
        """Its rows, of all; None where one of its own curves was not run, or none of those that may
        be lacking.
        """
        rows = list(rows)
        found = {
            curve: [row for row in rows if common.items() <= row.items()]
            for curve, common in {**self.curves, **self.shared}.items()
        }
        enough = any if self.may_lack else all
        was_run = enough(found[curve] for curve in self.curves)
        return View(found, self.instead) if was_run else None


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, drawn on the same axes.

    low, high: columns of the spread of y. curves: those it shows; none means all of the reading.
    has_legend_beside: where curves would lie under it. has_log_x: where x spans magnitudes.
    styles: curve -> number of its colour and line, where several figures draw it; else its place.
    """

    name: str
    title: str
    x: str
    y: str
    x_label: str
    y_label: str
    low: str | None = None
    high: str | None = None
    is_log: bool = False
    curves: Sequence[str] = ()
    has_legend_beside: bool = False
    has_log_x: bool = False
    styles: Mapping[str, int] = field(default_factory=dict)

    def points(self, view: View) -> dict[str, dict[Any, Any]]:
        """What it shows, x -> y by curve."""
        return {curve: view.points(curve, self.y, self.x) for curve in self.curves or view.curves}


@dataclass(frozen=True)
class Claim:
    """Something the paper says, in our words, and how it is judged."""

    about: str
    words: str
    judge: Callable[[View], ClaimFinding]


@dataclass(frozen=True)
class DataSet:
    """What was measured on: never a value of it, only where it comes from and its hash."""

    words: str
    records: int
    sha256: str


class Bench(Protocol):
    """Measures settings on the paper's data."""

    @property
    def data(self) -> DataSet:
        """What it measures on."""

    def measure(self, setting: Setting) -> dict[str, Any]:
        """The measured columns of one row, in JSON's own types; nothing compiles while time is
        taken.
        """


@dataclass(frozen=True)
class Paper:
    """The experiments of one paper.

    grid: the settings of a quick or a full run. bench: what measures them, from the folder of data
    sets (None: wherever it is found). why_main: why the first reading is the main one, and whether
    results were seen before it was chosen. left_open: what the paper does not say, and our answer.
    code: packages and modules that a measurement depends on, besides the algorithms and kernels
        that these import; a change in them makes rows stale (`source`).
    """

    name: str
    title: str
    citation: str
    setting: str
    grid: Callable[[bool], list[Setting]]
    bench: Callable[[Path | None, bool], Bench]
    readings: Sequence[Reading]
    figures: Sequence[Figure]
    claims: Sequence[Claim]
    why_main: str = ""
    left_open: Sequence[str] = ()
    code: Sequence[str] = ()


def crossed(commons: Iterable[Setting], **axes: Sequence[Any]) -> list[Setting]:
    """Every one of these settings with every combination of the axes; none twice."""
    settings: list[Setting] = list(commons)
    for name, values in axes.items():
        settings = [{**setting, name: value} for setting in settings for value in values]
    return [setting for i, setting in enumerate(settings) if setting not in settings[:i]]
