"""The checker: a published CSV against its policy and, where it is at hand, the original."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from fuzz.cells import Attribute, Policy, Table, covers, is_readable, mean_and_span, number
from fuzz.rules import Found, Rows, judge_promise


@dataclass(frozen=True)
class Verdict:
    """What the checker found.

    unfit: why the table can't be a release of this policy at all. uncovered, changed: rows that do
    not fit the original. starred: rows that show the mark everywhere; withheld: those of them that
    are in no class. is_blank: every row is starred, and no sensitive value is shown either. sizes:
    people of each class.
    """

    unfit: tuple[str, ...] = ()
    promises: tuple[Found, ...] = ()
    uncovered: frozenset[int] = frozenset()
    changed: frozenset[int] = frozenset()
    starred: int = 0
    withheld: int = 0
    sizes: tuple[int, ...] = field(default=())
    is_blank: bool = False

    @property
    def holds(self) -> bool:
        kept = all(found.holds for found in self.promises)
        return kept and not (self.unfit or self.uncovered or self.changed)

    def __str__(self) -> str:
        broken = [f"{f.model} measured {f.measured}" for f in self.promises if not f.holds]
        faults = [f"{len(self.uncovered)} uncovered"] if self.uncovered else []
        faults += [f"{len(self.changed)} changed"] if self.changed else []
        return ", ".join([*self.unfit, *broken, *faults]) or "holds"


def judge(
    policy: Policy,
    released: Table,
    original: Table | None = None,
    match: Sequence[int] | None = None,
    reference: Table | None = None,
) -> Verdict:
    """What a release is worth.

    original: the records; with them people are counted and cells compared. match: the record
    behind each row, by default the one at the same place. reference: what a stream's t-closeness
    compares with.
    """
    unfit = _unfit(policy, released, original, match)
    if unfit:
        return Verdict(unfit)
    behind = list(range(len(released.rows))) if match is None else list(match)
    quasi = {a.name: released.column(a.name) for a in policy.with_role("quasi")}
    sensitive = {a.name: released.column(a.name) for a in policy.with_role("sensitive")}
    starred = _starred(quasi, policy)
    hides = all(c[r] == policy.mark for c in sensitive.values() for r in starred)
    is_blank = hides and len(starred) == len(released.rows)
    withheld = starred if hides and not is_blank else set()
    kept = [r for r in range(len(released.rows)) if r not in withheld]
    cells = list(zip(*quasi.values(), strict=True))
    people = _people(policy, released, original, behind)
    rows = _rows(kept, cells, people, quasi, sensitive)
    # where rows are counted, they are counted on both sides
    by_people = original is not None or policy.subject in released.names
    table = None if reference is None else _whole(reference, policy, by_people)
    promises = tuple(judge_promise(asked, rows, policy, table) for asked in policy.promises)
    uncovered = changed = frozenset()
    if original is not None:
        uncovered = _uncovered(policy, released, original, behind, cells)
        changed = _changed(policy, released, original, behind, starred)
    sizes = tuple(sorted(rows.sizes().values()))
    return Verdict((), promises, uncovered, changed, len(starred), len(withheld), sizes, is_blank)


def as_one_class(policy: Policy, original: Table) -> Verdict:
    """What a release would be worth that shows nothing of anybody's quasi-identifiers."""
    rows = _whole(original, policy)
    return Verdict((), tuple(judge_promise(asked, rows, policy) for asked in policy.promises))


def _unfit(policy, released, original, match) -> tuple[str, ...]:
    published = [a.name for a in policy.with_role("quasi", "sensitive", "plain")]
    found = [f"lacks column {name!r}" for name in published if name not in released.names]
    allowed = {*published, policy.subject}
    found += [f"holds column {name!r}" for name in released.names if name not in allowed]
    if original is not None and match is None and len(original.rows) != len(released.rows):
        found.append("has other records than the original")
    if not found:
        found += [
            f"column {a.name!r} holds a cell that says nothing"
            for a in policy.with_role("quasi")
            if not all(is_readable(cell, a, policy) for cell in {*released.column(a.name)})
        ]
        found += [
            f"column {a.name!r} holds a strange value"
            for a in policy.with_role("sensitive")
            if not all(_is_known(cell, a, policy) for cell in {*released.column(a.name)})
        ]
    return tuple(found)


def _is_known(cell: str, attribute: Attribute, policy: Policy) -> bool:
    if not policy.is_value(cell):
        return True
    if attribute.kind == "number":
        return number(cell) is not None
    if attribute.kind == "ordinal":
        return attribute.follows_data or cell in attribute.places
    return attribute.paths is None or cell in attribute.paths


def _starred(quasi: dict[str, list[str]], policy: Policy) -> set[int]:
    columns = list(quasi.values())
    return {r for r in range(len(columns[0])) if all(c[r] == policy.mark for c in columns)}


def _people(policy, released, original, behind) -> list:
    name = policy.subject
    if name is not None and original is not None:
        known = [cell.strip() for cell in original.column(name)]
        return [known[record] for record in behind]
    if name is not None and name in released.names:
        return [cell.strip() for cell in released.column(name)]
    return list(range(len(released.rows)))


def _rows(kept, cells, people, quasi, sensitive) -> Rows:
    return Rows(
        [cells[r] for r in kept],
        [people[r] for r in kept],
        {name: [column[r] for r in kept] for name, column in quasi.items()},
        {name: [column[r] for r in kept] for name, column in sensitive.items()},
    )


def _whole(table: Table, policy: Policy, by_people: bool = True) -> Rows:
    """All records of a table as one class."""
    records = range(len(table.rows))
    people = list(records)
    if by_people and policy.subject is not None and policy.subject in table.names:
        people = [cell.strip() for cell in table.column(policy.subject)]
    quasi = {a.name: [policy.mark for _ in records] for a in policy.with_role("quasi")}
    sensitive = {a.name: table.column(a.name) for a in policy.with_role("sensitive")}
    return Rows([() for _ in records], people, quasi, sensitive)


def _uncovered(policy, released, original, behind, cells) -> frozenset[int]:
    found = set()
    for a in policy.with_role("quasi"):
        shown, true = released.column(a.name), original.column(a.name)
        for row, record in enumerate(behind):
            if not covers(shown[row], true[record], a, policy):
                found.add(row)
        if a.render != "range":
            values = [true[record] for record in behind]
            found |= _false_means(a, shown, values, cells, policy)
    return frozenset(found)


def _false_means(attribute, shown, values, cells, policy) -> set[int]:
    """Rows whose mean is not that of their class, to the decimals that it is written with."""
    classes: dict = {}
    for row, key in enumerate(cells):
        classes.setdefault(key, []).append(row)
    unit = Fraction(1, 10 ** _decimals([v for v in values if policy.is_value(v)]))
    found = set()
    for members in classes.values():
        cell = shown[members[0]]
        mean, _ = mean_and_span(cell, attribute, policy)
        numbers = [number(values[r]) for r in members if policy.is_value(values[r])]
        if mean is None or not numbers or not policy.is_value(cell):
            continue
        true = Fraction(sum(numbers), len(numbers))
        if abs(mean - true) > unit / 2 + abs(true) / 10**9:
            found |= set(members)
    return found


def _decimals(texts: list[str]) -> int:
    """Two more than the values have; fewer for values that begin far behind the point."""
    written = [Decimal(text.strip()) for text in texts]
    longest = max([0, *(-int(n.as_tuple().exponent) for n in written)])
    zeros = max([0, *(-n.adjusted() - 1 for n in written if n)])
    return min(longest + 2, zeros + 10)


def _changed(policy, released, original, behind, starred) -> frozenset[int]:
    found = set()
    for a in policy.with_role("sensitive", "plain"):
        shown, true = released.column(a.name), original.column(a.name)
        for row, record in enumerate(behind):
            # a row that shows nothing else may hide this, too
            hidden = a.role == "sensitive" and row in starred and shown[row] == policy.mark
            if shown[row] != true[record] and not hidden:
                found.add(row)
    return frozenset(found)
