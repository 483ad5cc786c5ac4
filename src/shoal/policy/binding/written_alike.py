"""Values that differ only by capitals or by blanks around them: `flu`, `Flu` and `flu `.

Nothing says whether they mean the same, so each counts as a value of its own: two of them are
enough for l = 2, and records that show them are not alike. Whoever publishes should know.
"""

from __future__ import annotations

import polars as pl

from shoal.data.person_numbers import person_numbers
from shoal.data.table import Column, Table
from shoal.data.warnings import PEOPLE_ASSUMED, WRITTEN_ALIKE, ReleaseWarning
from shoal.policy.policy import Policy


def written_alike(table: Table, policy: Policy) -> list[ReleaseWarning]:
    """A warning for each sensitive or quasi-identifying text column that holds such values; counts
    alone.
    """
    found = []
    for name, attribute in policy.model.attributes.items():
        is_text = attribute.type in (None, "category") and attribute.domain is None
        if attribute.role not in ("quasi", "sensitive") or not is_text or name not in table.names:
            continue
        values, texts = _counts(table.column(name), policy.model.missing_values)
        if values > texts:
            what = (
                "l counts each of them"
                if attribute.role == "sensitive"
                else "records with them are taken to differ"
            )
            text = (
                f"attribute '{name}': {values} of its values are only {texts} if capitals and the"
                f" blanks around them are left out of account, but {what}; if they mean the same,"
                " write them alike in the data, then publish"
            )
            found.append(ReleaseWarning(WRITTEN_ALIKE, text))
    return found


def _counts(column: Column, missing_values: list[str]) -> tuple[int, int]:
    """How many values look like another one, and how many texts these are."""
    if column.was_number:
        return 0, 0
    values = pl.Series(column.cells, dtype=pl.String).filter(pl.Series(column.counts() > 0))
    values = values.filter(~values.is_in(missing_values))
    sizes = values.str.strip_chars().str.to_lowercase().value_counts()["count"]
    several = sizes.filter(sizes > 1)
    return int(several.sum()), len(several)


def input_warnings(table: Table, policy: Policy) -> list[ReleaseWarning]:
    """What the original gives reason to say: columns that seem to number people, where every record
    is taken to be its own person, and values that look alike.
    """
    evidence = person_numbers(table) if policy.subject is None else []
    assumed = [ReleaseWarning(PEOPLE_ASSUMED, str(one)) for one in evidence]
    return [*assumed, *written_alike(table, policy)]
