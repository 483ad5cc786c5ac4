"""What a certificate says beside its measurements: when, by what, under which policy, on what."""

from __future__ import annotations

import json
from typing import Any

from shoal.auditor.columns import REMOVED, column_roles, measured_columns, with_derived
from shoal.auditor.digest import policy_identity
from shoal.auditor.provenance import build, date
from shoal.data.certificate import Certificate
from shoal.data.schema import Schema
from shoal.data.single_ends import single_end_warnings
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.data.warnings import HIERARCHY_REPEATS, ReleaseWarning
from shoal.policy import registry
from shoal.policy.policy import Policy
from shoal.utility.column_figures import ColumnFigures

TAKE_ROUND = ("publish", "audit")


def described(
    certificate: Certificate,
    released: Table,
    figures: ColumnFigures,
    schema: Schema,
    policy: Policy,
    truth: Truth | None,
) -> Certificate:
    """The certificate of a release, with its columns and with what made it.

    The certificate must name its verb already. figures: as the release was measured.
    """
    original = None if truth is None else truth.original
    columns = measured_columns(released, figures, schema, policy, original)
    made = certificate.extended(**provenance(certificate["verb"], policy), columns=columns)
    shares = {c["name"]: c["single_ends"] for c in columns if c["single_ends"] is not None}
    single = single_end_warnings(shares, schema.quasi, may_round=_takes_round(made, policy))
    return made.warned(*repeated_rows(schema), *single)


def _takes_round(certificate: Certificate, policy: Policy) -> bool:
    """Whether what made the release takes `round`: neither streams nor ledgers do."""
    named = None if policy.model.method is None else registry.verb_of(policy.method_name)
    return certificate["verb"] in TAKE_ROUND and named in (None, "publish")


def repeated_rows(schema: Schema) -> list[ReleaseWarning]:
    """A warning for each hierarchy table that says something twice."""
    return [
        ReleaseWarning(
            HIERARCHY_REPEATS,
            f"attribute '{attribute.name}': {_counted(attribute.hierarchy.repeated)} of its"
            " hierarchy; each taken once",
        )
        for attribute in schema.attributes
        if attribute.hierarchy is not None and attribute.hierarchy.repeated
    ]


def _counted(rows: int) -> str:
    return "1 repeated row" if rows == 1 else f"{rows} repeated rows"


def file_metadata(names: list[str], schema: Schema, policy: Policy) -> dict[str, str]:
    """What a Parquet file says about its columns; nothing that was measured, and no date."""
    columns = with_derived(column_roles(names, schema, policy), policy)
    notation, render = policy.notation.written, schema.render
    content = {
        "columns": [
            {key: value for key, value in column.items() if value is not None}
            for column in columns
            if column["technique"] != REMOVED
        ],
        "dialect": {
            "decimal": notation.decimal,
            "dates": notation.dates,
            "intervals": render.intervals,
            "mark": render.suppressed,
        },
    }
    return {"shoal": json.dumps(content, ensure_ascii=False)}


def provenance(verb: str, policy: Policy) -> dict[str, Any]:
    """The keys that say what made a certificate."""
    return {
        "date": date(),
        "build": build(),
        "policy": policy_identity(policy, verb),
    }
