"""A draft of a release in words: what each column costs, what an attacker sees of one row, and
what levels of a global recoding lose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.privacy.attacker_view import AttackerView, Learnt
from shoal.reports.text_table import table_lines
from shoal.utility.marginal import Marginal

MOST_VALUES = 5


def marginal_lines(found: Marginal) -> list[str]:
    """What each column loses, and the others with and without it."""
    k = "" if found.k is None else f", k = {found.k}"
    lines = [f"{found.method}{k}: {_percent(found.loss)} of the detail lost"]
    rows: list[tuple[str, ...]] = [("column", "lost", "exact", "others now", "others without it")]
    for price in found.columns:
        without = "-" if price.why_not is not None else _percent(price.others_without)
        shares = (price.loss, price.exact, price.others)
        rows.append((price.name, *(_percent(share) for share in shares), without))
    lines += table_lines(rows, left=1)
    lines += [
        f"without {price.name}: {price.why_not}"
        for price in found.columns
        if price.why_not is not None
    ]
    if found.smaller_k is not None:
        lines.append(f"k = {found.smaller_k.k}: {_percent(found.smaller_k.loss)} lost")
    return lines


def level_lines(found: Mapping[str, Any]) -> list[str]:
    """Levels of a global recoding and their neighbours: whether each is safe, what it loses."""
    node = found["node"]
    here = ", ".join(f"{name} {level}" for name, level in node["levels"].items())
    rows: list[tuple[str, ...]] = [("levels", "safe", "would break a promise", "lost")]
    rows.append((here, *_level(node)))
    for one in found["neighbours"]:
        step = "coarser" if one["step"] > 0 else "finer"
        rows.append((f"{one['attribute']} a step {step}", *_level(one)))
    return list(table_lines(rows, left=2))


def _level(measured: Mapping[str, Any]) -> tuple[str, str, str]:
    is_safe = "yes" if measured["is_safe"] else "no"
    return is_safe, f"{measured['breaking']:,} records", _percent(measured["loss"])


def attacker_lines(view: AttackerView) -> list[str]:
    """What the attacker knows, whom they find, and what those could have."""
    lines = [f"row {view.row:,}", f"known: {_cells(view.known)}"]
    if view.shown is not None:
        lines.append(f"published: {_cells(view.shown)}")
    if not view.people:
        return [*lines, "nobody is found by it: the row is withheld, or no class fits"]
    lines.append(f"who looks the same: {view.people:,} {view.unit}")
    if view.fitting_classes > 1:
        lines.append(
            f"{view.fitting_classes:,} classes fit what is known, with {view.fitting_people:,}"
            f" {view.unit} in all"
        )
    for learnt in view.learnt:
        lines += ["", *_learnt_lines(learnt, view.people)]
    return lines


def _learnt_lines(learnt: Learnt, people: int) -> list[str]:
    rows = [(learnt.attribute, "who look the same", "in the release")]
    rows += [
        (one.value, f"{one.people:,} of {people:,}", _percent(one.base))
        for one in learnt.values[:MOST_VALUES]
    ]
    lines = table_lines(rows, left=1)
    others = learnt.values[MOST_VALUES:]
    if others:
        word = "other" if len(others) == 1 else "others"
        lines.append(f"and {len(others):,} {word}, {others[0].people:,} of {people:,} at most")
    best = learnt.best
    if best is not None:
        truth = "the truth" if best.value == learnt.truth else f"the truth is {learnt.truth}"
        if not learnt.is_possible:
            truth += ", which nobody who looks the same has"
        lines.append(
            f"best guess: {best.value}, right with {_percent(best.share)}; in the whole release"
            f" {_percent(best.base)}; {truth}"
        )
    return lines


def _cells(cells: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {cell!r}" for name, cell in cells.items())


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.1f} %"
