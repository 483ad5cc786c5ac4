"""How many people have each sensitive value in the published table of a ledger.

For promises that compare a class with the whole table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from shoal.auditor.ledger.export import parts_of
from shoal.connectors import files
from shoal.connectors.ledger import DATA, Ledger
from shoal.connectors.ledger.identities import Identities
from shoal.data.release import is_withheld
from shoal.policy.policy import Policy
from shoal.privacy.t_closeness import TABLE

Values = Mapping[str, Counter[str]]
"""By attribute, how many people each text counts."""


def compared(policy: Policy) -> tuple[str, ...]:
    """The sensitive attributes that some promise compares with the whole table."""
    asked = [
        model for model in policy.build_promises() if getattr(model, "reference", None) == TABLE
    ]
    return tuple(sorted({name for model in asked for name in model.attributes}))


def with_table(policy: Policy, ledger: Ledger, method: Any) -> Policy:
    """The policy for the next release; for an increment, with the values of the table it joins."""
    names = compared(policy) if method.covers == "increment" and ledger.exists else ()
    releases = ledger.releases() if names else []
    if not releases:
        return policy
    table: Values = {name: Counter() for name in names}
    for part in parts_of(ledger, releases[-1]):
        frame = files.read_as(ledger.folder(part) / DATA, ".csv").frame
        table = joined(table, values_of(frame, Identities.read(ledger.step_of(part)), policy))
    return replace(policy, earlier=table)


def values_of(frame: pl.DataFrame, identities: Identities | None, policy: Policy) -> Values:
    """The values of one release, without withheld records.

    A person counts once for each value, where the person is known.
    """
    names = compared(policy)
    if not names:
        return {}
    kept = _in_a_class(frame, policy)
    people = pl.arange(frame.height, eager=True)
    if identities is not None and identities.subjects is not None:
        people = pl.Series(identities.subjects)
    counts = {}
    for name in names:
        values = frame[name].cast(pl.String).fill_null("")
        pairs = pl.DataFrame({"value": values, "person": people}).filter(kept).unique()
        counts[name] = Counter(dict(pairs.group_by("value").len().iter_rows()))
    return counts


def _in_a_class(frame: pl.DataFrame, policy: Policy) -> pl.Series:
    """The rows that are not withheld, bool."""
    declared, mark = policy.model.attributes, policy.model.render.suppressed
    quasi = [name for name, a in declared.items() if a.role == "quasi"]
    sensitive = [name for name, a in declared.items() if a.role == "sensitive"]
    everywhere = pl.all_horizontal((pl.col(quasi).cast(pl.String) == mark).fill_null(False))
    starred = frame.select(everywhere).to_series()
    if is_withheld(frame, sensitive, starred.to_numpy(), mark):
        return ~starred
    return pl.repeat(True, frame.height, eager=True)


def joined(table: Values, more: Values) -> Values:
    """The values of two parts of a table that share no people."""
    return {name: table[name] + more[name] for name in table}
