"""Columns that `other: plain` would publish though they look like one that the policy names.

`Name` beside a removed `name` is more likely a slip of the pen than a new column. In a release that
somebody else made, `Age` beside `age` may hold what `age` hides.
"""

from __future__ import annotations

import unicodedata

import polars as pl

from shoal.data.table import Table, as_text
from shoal.policy.policy import Policy

REMOVED = ("identifier", "subject", "time", "operation", "drop")

# letters of other scripts that look like Latin ones, in small letters
_LOOK_ALIKE = str.maketrans("авеікмнорстухѕјԁɡԛԝɑανορτικχυ", "abeikmhopctyxsjdgqwaavoptikxu")


def check_near_names(names: list[str], policy: Policy, released: bool = False) -> list[str]:
    """A finding for each unnamed column whose name is but for its writing that of a named one.

    released: whether these are columns of a release, which nobody can publish any more.
    """
    if policy.model.other != "plain":
        return []
    declared = policy.model.attributes
    named = {_bare(name): name for name in declared}
    return [
        _finding(name, f"named like '{near}' ({declared[near].role})", policy, released)
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
            findings.append(_finding(name, what, policy))
    return findings


def _is_copy(cells: pl.Series, others: pl.Series) -> bool:
    """Whether all cells are the same; a column of one value tells nothing about anybody."""
    return bool((cells == others).all()) and cells.n_unique() > 1


def _finding(name: str, what: str, policy: Policy, released: bool = False) -> str:
    if policy.is_made_of_columns:
        return f"column '{name}': not named, but {what}; name it, too, or take it out"
    if released:
        return (
            f"columns '{name}': not in the policy, but {what}; name it under 'attributes', nobody"
            " has judged it"
        )
    return (
        f"columns '{name}': not in the policy, but {what}; name it under 'attributes',"
        " 'other: plain' would publish it"
    )


def _bare(name: str) -> str:
    """A name without what people write in different ways, or nobody sees: case, blanks, marks,
    scripts.
    """
    folded = unicodedata.normalize("NFKC", name).casefold().translate(_LOOK_ALIKE)
    return "".join(sign for sign in folded if sign.isalnum())
