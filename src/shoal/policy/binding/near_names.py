"""Columns that `other: plain` would publish though they look like one that the policy names.

`Name` beside a removed `name` is more likely a slip of the pen than a new column. In a release that
somebody else made, `Age` beside `age` may hold what `age` hides.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

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


def check_copies(copies: Mapping[str, str], policy: Policy) -> list[str]:
    """A finding for each unnamed column that holds the very cells of a removed one.

    copies: the removed column of each.
    """
    declared = policy.model.attributes
    return [
        _finding(name, f"holds the cells of '{copied}' ({declared[copied].role})", policy)
        for name, copied in copies.items()
    ]


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
