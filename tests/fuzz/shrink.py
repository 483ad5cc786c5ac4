"""A failing case made small: fewer rows, columns and promises, while it fails in the same way."""

from collections.abc import Callable
from dataclasses import replace

from fuzz.cells import Table
from fuzz.draw import Case

MOST_TRIES = 200
KEPT = ("row id",)


def shrunk(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The case without whatever it fails without, in at most MOST_TRIES tries."""
    tries = iter(range(MOST_TRIES))

    def still(smaller: Case) -> bool:
        return next(tries, None) is not None and fails(smaller)

    case = _fewer_promises(case, still)
    case = _fewer_columns(case, still)
    case = _fewer_rows(case, still)
    return _fewer_columns(case, still)


def _fewer_promises(case: Case, still: Callable[[Case], bool]) -> Case:
    for promise in list(case.policy["promises"]):
        rest = [p for p in case.policy["promises"] if p is not promise]
        smaller = replace(case, policy={**case.policy, "promises": rest})
        if rest and still(smaller):
            case = smaller
    return case


def _fewer_columns(case: Case, still: Callable[[Case], bool]) -> Case:
    for name in list(case.policy["attributes"]):
        if name in KEPT:
            continue
        attributes = {n: a for n, a in case.policy["attributes"].items() if n != name}
        at = case.table.names.index(name)
        table = Table(
            [n for n in case.table.names if n != name],
            [[cell for j, cell in enumerate(row) if j != at] for row in case.table.rows],
        )
        smaller = replace(case, policy={**case.policy, "attributes": attributes}, table=table)
        if still(_with_reference(smaller)):
            case = _with_reference(smaller)
    return case


def _fewer_rows(case: Case, still: Callable[[Case], bool]) -> Case:
    """Halves, quarters, ... down to single rows."""
    if case.kind == "ledger":
        return case  # its increments are counted in rows
    size = max(len(case.table.rows) // 2, 1)
    while True:
        at = 0
        while at < len(case.table.rows):
            rows = case.table.rows[:at] + case.table.rows[at + size :]
            smaller = _with_reference(replace(case, table=Table(case.table.names, rows)))
            if rows and still(smaller):
                case = smaller
            else:
                at += size
        if size == 1:
            return case
        size //= 2


def _with_reference(case: Case) -> Case:
    """The reference of a stream is its own table."""
    if "reference.csv" not in case.files:
        return case
    return replace(case, files={**case.files, "reference.csv": case.table.text()})
