"""CSV on the Web (W3C): a delimited file with its dialect and columns."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from shoal.errors import InputError
from shoal.reports.metadata.description import DELIMITED, Column, Description

CONTEXT = "http://www.w3.org/ns/csvw"
# a strptime form in the letters of UAX 35; other directives have none, and stay text
_LETTERS = {"%d": "dd", "%m": "MM", "%Y": "yyyy"}


def check_format(output_path: str) -> None:
    """Raises InputError for a file that is not plain delimited text."""
    if not output_path.lower().endswith(tuple(f".{form}" for form in DELIMITED)):
        raise InputError(
            "--metadata csvw: describes plain delimited text; write a .csv, or leave csvw out"
        )


def content(release: Description) -> dict[str, Any]:
    """The description of the table, which must be delimited text."""
    return {
        "@context": CONTEXT,
        "url": quote(release.path),
        "dc:description": release.summary,
        "dialect": {
            "delimiter": release.dialect["delimiter"],
            "encoding": release.dialect["encoding"],
            "lineTerminators": [release.dialect["newline"]],
            "header": True,
        },
        "tableSchema": {"columns": [_column(release, column) for column in release.columns]},
    }


def _column(release: Description, column: Column) -> dict[str, Any]:
    return {
        # a name is a variable of a URI template: what it can't hold is percent-encoded
        "name": quote(column.name, safe="").replace("-", "%2D").replace("~", "%7E"),
        "titles": column.name,
        "dc:description": column.text,
        "datatype": _datatype(release, column),
        "null": release.missing,
    }


def _datatype(release: Description, column: Column) -> str | dict[str, Any]:
    if column.kind == "number":
        decimal = release.dialect["decimal"]
        if decimal == ".":
            return "number"
        return {"base": "number", "format": {"decimalChar": decimal}}
    if column.kind == "date":
        form = release.dialect["dates"]
        if form is None:
            return "date"
        for directive, letters in _LETTERS.items():
            form = form.replace(directive, letters)
        return "string" if "%" in form else {"base": "date", "format": form}
    return "string"
