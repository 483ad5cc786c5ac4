"""Releases broken by hand: in one cell, one row, one class, one person's rows."""

from pathlib import Path
from random import Random
from typing import Any

from fuzz.cells import Policy, Table
from fuzz.judge import judge
from fuzz.matching import unmatched
from fuzz.outcome import Outcome, compare
from shoal.auditor.audit import audit_file
from shoal.auditor.verify import verify
from shoal.errors import InputError


def check(
    outcome: Outcome,
    asked: Any,
    policy: Policy,
    original: Table,
    released: Table,
    folder: Path,
    random: Random,
) -> None:
    """Spoils a release in one way; checker, audit and verify must agree on what is left of it."""
    way = random.choice(list(WAYS))
    spoilt, truth = WAYS[way](policy, released, original, random)
    if spoilt == released and truth == original:
        return
    out = folder / "spoilt.csv"
    out.write_text(spoilt.text(), encoding="utf-8", newline="")
    source = folder / "truth.csv"
    source.write_text(truth.text(), encoding="utf-8", newline="")
    if spoilt != released:
        checks = {c.name: c.ok for c in verify(out, folder / "out.csv.certificate.json")}
        outcome.require(checks["file"] is False, f"verify: accepts {way}", str(checks))
    for who, against in (("audit with original", source), ("audit alone", None)):
        if policy.shuffled and against is not None and len(truth.rows) != len(spoilt.rows):
            continue  # can't be matched, and is refused for that
        verdict = judge(policy, spoilt, None if against is None or policy.shuffled else truth)
        outcome.counts[f"{way}: {'caught' if not verdict.holds else 'harmless'}"] += 1
        try:
            found = audit_file(str(out), asked, None if against is None else str(against))
        except InputError as unfit:
            if verdict.holds:
                outcome.add(f"{who}, {way}: refused without need", str(unfit))
            continue
        compare(outcome, f"{who}, {way}", found.certificate, verdict)
        left = (found.certificate.get("faults") or {}).get("unmatched")
        if left is not None:  # nobody knows whose row is whose
            counted = unmatched(policy, spoilt, truth)
            outcome.require(
                left == counted, f"{who}, {way}: unmatched differ", f"{left}, {counted}"
            )
        outcome.require(
            found.certificate.holds == (verdict.holds and not left),
            f"{who}, {way}: verdicts differ",
            f"{found.certificate.holds}, {verdict}",
        )


def _names(policy: Policy, *roles: str) -> list[str]:
    return [a.name for a in policy.with_role(*roles)]


def _changed(table: Table, rows, cells: dict[str, str]) -> Table:
    """The table with these cells in these rows."""
    at = {table.names.index(name): text for name, text in cells.items()}
    return Table(
        table.names,
        [
            [at.get(j, cell) for j, cell in enumerate(row)] if r in rows else row
            for r, row in enumerate(table.rows)
        ],
    )


def _stars(policy: Policy, random: Random) -> dict[str, str]:
    """The mark in every quasi-identifier, and perhaps in what is sensitive."""
    roles = ("quasi", "sensitive") if random.random() < 0.5 else ("quasi",)
    return dict.fromkeys(_names(policy, *roles), policy.mark)


def _some_row(table: Table, random: Random) -> int:
    return random.randrange(len(table.rows))


def _class_of(policy: Policy, table: Table, row: int) -> set[int]:
    at = [table.names.index(name) for name in _names(policy, "quasi")]
    key = [table.rows[row][j] for j in at]
    return {r for r, cells in enumerate(table.rows) if [cells[j] for j in at] == key}


def one_cell(policy, released, original, random):
    """A quasi-identifier shows what another row shows, or what is true, or the mark."""
    name, row = random.choice(_names(policy, "quasi")), _some_row(released, random)
    others = [*released.column(name), original.column(name)[row], policy.mark]
    return _changed(released, {row}, {name: random.choice(others)}), original


def one_sensitive_cell(policy, released, original, random):
    names = _names(policy, "sensitive")
    if not names:
        return released, original
    name, row = random.choice(names), _some_row(released, random)
    texts = [*released.column(name), policy.mark, *policy.missing_values]
    return _changed(released, {row}, {name: random.choice(texts)}), original


def one_row_moved(policy, released, original, random):
    """A row shows the quasi-identifiers of another class."""
    row, other = _some_row(released, random), _some_row(released, random)
    names = _names(policy, "quasi")
    cells = {name: released.column(name)[other] for name in names}
    return _changed(released, {row}, cells), original


def one_row_lost(policy, released, original, random):
    row = _some_row(released, random)
    rows = [cells for r, cells in enumerate(released.rows) if r != row]
    return (Table(released.names, rows) if rows else released), original


def two_rows_swapped(policy, released, original, random):
    one, other = _some_row(released, random), _some_row(released, random)
    rows = list(released.rows)
    rows[one], rows[other] = rows[other], rows[one]
    return Table(released.names, rows), original


def starred_row(policy, released, original, random):
    stars = _stars(policy, random)
    return _changed(released, {_some_row(released, random)}, stars), original


def starred_class(policy, released, original, random):
    """A whole class shows the mark, with or without its sensitive values, or with one of them."""
    members = _class_of(policy, released, _some_row(released, random))
    spoilt = _changed(released, members, dict.fromkeys(_names(policy, "quasi"), policy.mark))
    hidden = dict.fromkeys(_names(policy, "sensitive"), policy.mark)
    choice = random.choice(["shown", "hidden", "one shown"])
    if choice != "shown":
        spoilt = _changed(spoilt, set(sorted(members)[choice == "one shown" :]), hidden)
    return spoilt, original


def all_starred(policy, released, original, random):
    rows = set(range(len(released.rows)))
    return _changed(released, rows, _stars(policy, random)), original


def missing_texts(policy, released, original, random):
    """A class, in release and original alike, whose sensitive values are texts for none."""
    names = _names(policy, "sensitive")
    if not names or policy.shuffled:
        return released, original
    members = _class_of(policy, released, _some_row(released, random))
    name, texts = random.choice(names), list(policy.missing_values)
    spoilt, truth = released, original
    for row in members:
        cells = {name: random.choice(texts)}
        if random.random() < 0.7:
            spoilt, truth = _changed(spoilt, {row}, cells), _changed(truth, {row}, cells)
    return spoilt, truth


def merged_people(policy, released, original, random):
    """A class of one person, who is said to own all of it."""
    if policy.subject is None or policy.shuffled:
        return released, original
    members = _class_of(policy, released, _some_row(released, random))
    return released, _changed(original, members, {policy.subject: "one"})


def one_person_moved(policy, released, original, random):
    """All rows of a person show the cells of another class."""
    if policy.subject is None or policy.shuffled:
        return released, original
    people, other = original.column(policy.subject), _some_row(released, random)
    who = people[_some_row(released, random)]
    rows = {r for r, person in enumerate(people) if person == who}
    cells = {name: released.column(name)[other] for name in _names(policy, "quasi")}
    return _changed(released, rows, cells), original


WAYS = {
    way.__name__.replace("_", " "): way
    for way in (
        one_cell,
        one_sensitive_cell,
        one_row_moved,
        one_row_lost,
        two_rows_swapped,
        starred_row,
        starred_class,
        all_starred,
        missing_texts,
        merged_people,
        one_person_moved,
    )
}
