"""Data Package 2.0 (datapackage.org): a resource with its dialect and fields."""

from __future__ import annotations

from typing import Any

from shoal.reports.metadata.description import DELIMITED, Column, Description

PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
_TYPES = {"number": "number", "date": "date", "text": "string"}


def content(release: Description) -> dict[str, Any]:
    """The package; our own description of a column stands under `shoal`."""
    resource: dict[str, Any] = {
        "name": release.name,
        "path": release.path,
        "type": "table",
        "format": release.form,
        "mediatype": release.media_type,
        "bytes": release.output["bytes"],
        "hash": f"sha256:{release.output['sha256']}",
        "schema": {
            "fields": [_field(release, column) for column in release.columns],
            "missingValues": release.missing,
        },
    }
    if release.form in DELIMITED:
        resource["encoding"] = release.dialect["encoding"]
        resource["dialect"] = {
            "delimiter": release.dialect["delimiter"],
            "lineTerminator": release.dialect["newline"],
        }
    return {
        "$schema": PROFILE,
        "name": release.name,
        "description": release.summary,
        "created": release.certificate["date"],
        "resources": [resource],
    }


def _field(release: Description, column: Column) -> dict[str, Any]:
    field: dict[str, Any] = {
        "name": column.name,
        "type": _TYPES[column.kind],
        "description": column.text,
        "missingValues": release.missing,
        "shoal": {key: value for key, value in column.stated.items() if value is not None},
    }
    if column.kind == "number" and release.dialect["decimal"] != ".":
        field["decimalChar"] = release.dialect["decimal"]
    if column.kind == "date" and release.dialect["dates"] is not None:
        field["format"] = release.dialect["dates"]
    return field
