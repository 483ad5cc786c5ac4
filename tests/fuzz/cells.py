"""What a policy and the cells of a CSV say, read with the standard library alone."""

from __future__ import annotations

import csv
import io
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import chain

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
PERIODS = {
    "hour": lambda t: f"{t.date().isoformat()}T{t.hour:02}",
    "day": lambda t: t.date().isoformat(),
    "month": lambda t: f"{t.year:04}-{t.month:02}",
    "quarter": lambda t: f"{t.year:04}-Q{(t.month + 2) // 3}",
    "year": lambda t: f"{t.year:04}",
    "decade": lambda t: f"{t.year // 10:03}0s",
}


@dataclass(frozen=True)
class Table:
    """Rows of a CSV as text."""

    names: list[str]
    rows: list[list[str]]

    @classmethod
    def read(cls, text: str) -> Table:
        names, *rows = csv.reader(io.StringIO(text, newline=""))
        return cls(names, [row or [""] for row in rows])

    def column(self, name: str) -> list[str]:
        at = self.names.index(name)
        return [row[at] for row in self.rows]

    def text(self) -> str:
        out = io.StringIO(newline="")
        csv.writer(out, lineterminator="\n").writerows([self.names, *self.rows])
        return out.getvalue()


def number(text: str) -> Fraction | None:
    """The number that a text writes, exactly; None where it writes none."""
    text = text.strip()
    return Fraction(Decimal(text)) if re.fullmatch(NUMBER, text) else None


@dataclass(frozen=True)
class Attribute:
    """One column of a policy. paths: of a hierarchy with fixed leaves, from each leaf to the root.

    rule: of a hierarchy made from the data, what names the labels above a value.
    """

    name: str
    role: str
    kind: str
    order: tuple[str, ...] = ()
    render: str = "range"
    paths: dict[str, list[str]] | None = None
    rule: object = None
    follows_data: bool = False

    def path(self, value: str) -> list[str] | None:
        """The labels from a value up to the root; None where it has no hierarchy, or no place."""
        if self.paths is not None:
            return self.paths.get(value)
        return None if self.rule is None else self.rule(value)

    @property
    def has_hierarchy(self) -> bool:
        return self.paths is not None or self.rule is not None

    @cached_property
    def places(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.order)}


@dataclass(frozen=True)
class Policy:
    """What a policy says, as far as a reader of the release needs it."""

    attributes: tuple[Attribute, ...]
    promises: tuple[dict, ...]
    missing_values: tuple[str, ...]
    mark: str
    intervals: str
    shuffled: bool
    suppresses: bool
    files: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, content: dict, files: dict[str, str] | None = None) -> Policy:
        render = content.get("render") or {}
        return cls(
            tuple(_attribute(n, a, files or {}) for n, a in content["attributes"].items()),
            tuple(content["promises"]),
            tuple(content.get("missing_values", [""])),
            render.get("suppressed", "*"),
            render.get("intervals", "[{lo}, {hi}]"),
            render.get("order", "content") != "input",
            content.get("missing") == "suppress",
        )

    def with_role(self, *roles: str) -> list[Attribute]:
        return [a for a in self.attributes if a.role in roles]

    @property
    def subject(self) -> str | None:
        return next((a.name for a in self.with_role("subject")), None)

    def is_value(self, cell: str) -> bool:
        return cell not in self.missing_values and cell != self.mark

    def __getitem__(self, name: str) -> Attribute:
        return next(a for a in self.attributes if a.name == name)


def _attribute(name: str, asked: dict, files: dict[str, str]) -> Attribute:
    order = asked.get("order")
    kind = asked.get("type") or (
        "ordinal" if order is not None else "number" if "domain" in asked else "category"
    )
    paths, rule = _hierarchy(asked.get("hierarchy"), files)
    return Attribute(
        name,
        asked["role"],
        kind,
        tuple(order) if isinstance(order, list) else (),
        asked.get("render", "range"),
        paths,
        rule,
        isinstance(order, str),
    )


def _hierarchy(asked, files):
    if asked is None:
        return None, None
    if isinstance(asked, str):
        rows = csv.reader(io.StringIO(files[asked], newline=""), delimiter=";")
        return {row[0]: row for row in rows if row}, None
    ((maker, argument),) = asked.items()
    if maker == "tree":
        above = [] if isinstance(argument, dict) and len(argument) == 1 else ["*"]
        return {path[0]: path for path in _leaves(argument, above)}, None
    if maker == "order":
        return _neighbours([str(v) for v in argument]), None
    return None, {"prefix": _prefix, "bins": _bins, "dates": _dates}[maker](argument)


def _leaves(branch, above):
    if isinstance(branch, dict):
        for label, members in branch.items():
            yield from _leaves(members, [str(label), *above])
    elif isinstance(branch, list):
        for member in branch:
            yield from _leaves(member, above)
    else:
        yield [str(branch), *above]


def _neighbours(values):
    """Pairs of neighbours, pairs of such pairs, and so on, up to everything."""
    paths = {value: [value] for value in values}
    groups = [[value] for value in values]
    while len(groups) > 2:
        groups = [[*chain(*groups[i : i + 2])] for i in range(0, len(groups), 2)]
        for group in groups:
            label = group[0] if len(group) == 1 else f"{group[0]}..{group[-1]}"
            for value in group:
                paths[value].append(label)
    return {value: [*path, "*"] for value, path in paths.items()}


def _prefix(length):
    def path(value):
        kept = range(length - 1, 0, -1)
        labels = [value[:p] + "*" * (length - p) if len(value) > p else value for p in kept]
        return [value, *labels, "*"]

    return path


def _bins(edges):
    bounds = [Fraction(str(edge)) for edge in edges]

    def path(value):
        at = bisect_right(bounds, number(value))
        return [value, f"[{edges[at - 1]}, {edges[at]})", "*"]

    return path


def _dates(periods):
    def path(value):
        time = datetime.fromisoformat(value)
        return [value, *(PERIODS[period](time) for period in periods), "*"]

    return path


# ----- what a published cell says


def span(cell: str, policy: Policy) -> tuple[Fraction, Fraction] | None:
    """Least and greatest number that a cell without a mean speaks of."""
    alone = number(cell)
    if alone is not None:
        return alone, alone
    head, rest = policy.intervals.split("{lo}")
    middle, tail = rest.split("{hi}")
    pattern = rf"{re.escape(head)}\s*({NUMBER})\s*{re.escape(middle)}\s*({NUMBER})\s*"
    found = re.fullmatch(pattern + re.escape(tail), cell)
    ends = None if found is None else (number(found[1]), number(found[2]))
    return ends if ends is not None and ends[0] <= ends[1] else None


def places(cell: str, attribute: Attribute, policy: Policy) -> tuple[int, int] | None:
    """First and last place of the order that a cell speaks of."""
    order = attribute.places
    if cell in order:
        return order[cell], order[cell]
    head, rest = policy.intervals.split("{lo}")
    middle, tail = rest.split("{hi}")
    if not (cell.startswith(head) and cell.endswith(tail)):
        return None
    inside = cell[len(head) : len(cell) - len(tail)]
    for at in range(len(inside)):
        lo, hi = inside[:at], inside[at + len(middle) :]
        if inside.startswith(middle, at) and lo in order and hi in order and order[lo] <= order[hi]:
            return order[lo], order[hi]
    return None


def mean_and_span(cell: str, attribute: Attribute, policy: Policy):
    """The mean of a cell that shows one, None for none; and the text of its span."""
    if attribute.render == "mean":
        return number(cell), None
    if attribute.render == "both" and " " in cell:
        first, rest = cell.split(" ", 1)
        if rest.strip() and number(first) is not None and number(cell) is None:
            return number(first), rest
    return None, cell


def is_readable(cell: str, attribute: Attribute, policy: Policy) -> bool:
    """Whether a cell says anything at all about its attribute."""
    if not policy.is_value(cell):
        return True
    if attribute.has_hierarchy:
        if attribute.paths is None:
            return True  # its labels follow from the original
        return any(cell in path for path in attribute.paths.values())
    if attribute.kind == "ordinal":
        return attribute.follows_data or places(cell, attribute, policy) is not None
    if attribute.kind == "number":
        mean, text = mean_and_span(cell, attribute, policy)
        if text is None:
            return mean is not None
        found = span(text, policy)
        needs_mean = attribute.render == "both" and mean is None
        return found is not None and not (needs_mean and found[0] < found[1])
    return True


def covers(cell: str, value: str, attribute: Attribute, policy: Policy) -> bool:
    """Whether a published cell is true of a value of the original. Means are judged by class."""
    if cell == policy.mark:
        return True
    if not policy.is_value(value):
        return cell in policy.missing_values
    if not policy.is_value(cell):
        return False
    if attribute.has_hierarchy:
        return cell in (attribute.path(value) or ())
    if attribute.kind == "ordinal":
        found = places(cell, attribute, policy)
        return found is not None and found[0] <= attribute.places[value] <= found[1]
    if attribute.kind == "number":
        _, text = mean_and_span(cell, attribute, policy)
        found = None if text is None else span(text, policy)
        return text is None or (found is not None and found[0] <= number(value) <= found[1])
    return cell == value
