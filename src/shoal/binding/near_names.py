"""Columns that `other: plain` would publish though they look like one that the policy names.

`Name` beside a removed `name` is more likely a slip of the pen than a new column.
"""

from __future__ import annotations

import unicodedata

import polars as pl

from shoal.data.table import Table, as_text
from shoal.policy.policy import Policy

REMOVED = ("identifier", "subject", "time", "operation", "drop")


def check_near_names(names: list[str], policy: Policy) -> list[str]:
    """A finding for each unnamed column whose name is but for its writing that of a named one."""
    if policy.model.other != "plain":
        return []
    declared = policy.model.attributes
    named = {_bare(name): name for name in declared}
    return [
        _finding(name, f"named like '{near}' ({declared[near].role})")
        for name in names
        if name not in declared and _bare(name) and (near := named.get(_bare(name))) is not None
    ]


def check_copies(table: Table, policy: Policy) -> list[str]:
    """A finding for each unnamed column that holds the very cells of a removed one."""
    if policy.model.other != "plain":
        return []
    declared = policy.model.attributes
    removed = {
        name: as_text(table.frame[name])
        for name, attribute in declared.items()
        if attribute.role in REMOVED and name in table.names
    }
    findings = []
    for name in table.names:
        if name in declared:
            continue
        cells = as_text(table.frame[name])
        copied = next((one for one, its in removed.items() if _is_copy(cells, its)), None)
        if copied is not None:
            what = f"holds the cells of '{copied}' ({declared[copied].role})"
            findings.append(_finding(name, what))
    return findings


def _is_copy(cells: pl.Series, others: pl.Series) -> bool:
    """Whether all cells are the same; a column of one value tells nothing about anybody."""
    return bool((cells == others).all()) and cells.n_unique() > 1


def _finding(name: str, what: str) -> str:
    return (
        f"columns '{name}': not in the policy, but {what}; name it under 'attributes',"
        " 'other: plain' would publish it"
    )


def _bare(name: str) -> str:
    """A name without what people write in different ways: case, blanks, marks."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(sign for sign in folded if sign.isalnum())
