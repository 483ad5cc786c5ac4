"""What every form of metadata says about a release, taken from its certificate.

Nothing is added that the certificate or the cells themselves do not say: no domain, and no value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from shoal.data.certificate import Certificate
from shoal.data.numbers import number_text
from shoal.errors import InputError

MEDIA_TYPES = {
    "csv": "text/csv",
    "txt": "text/csv",
    "tsv": "text/tab-separated-values",
    "tab": "text/tab-separated-values",
    "jsonl": "application/jsonlines",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.file",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
DELIMITED = ("csv", "txt", "tsv", "tab")
TECHNIQUES = {
    "interval": "numbers as the interval of their group",
    "mean": "numbers as the mean of their group",
    "mean-and-interval": "numbers as the mean and the interval of their group",
    "span": "ordered labels as the span of their group",
    "node": "values as a node of their hierarchy",
    "value-or-nothing": "the value where the whole group agrees on it",
    "pseudonym": "a keyed pseudonym",
    "as-is": "as in the original",
}


@dataclass(frozen=True)
class Column:
    """One published column. kind: number, date or text, as its cells are; source: what it is of."""

    name: str
    kind: str
    text: str
    source: str
    is_masked: bool
    stated: Mapping[str, Any]


@dataclass(frozen=True)
class Description:
    """A release: its file, its columns, and how it was made."""

    path: str
    certificate: Certificate
    columns: tuple[Column, ...]

    @property
    def name(self) -> str:
        """A name of lower-case letters, digits and hyphens."""
        return re.sub(r"[^a-z0-9]+", "-", self.path.lower()).strip("-") or "release"

    @property
    def output(self) -> Mapping[str, Any]:
        return self.certificate["output"]

    @property
    def dialect(self) -> Mapping[str, Any]:
        return self.output["dialect"]

    @property
    def form(self) -> str:
        """The format without compression, such as csv."""
        return str(self.output["format"]).removesuffix(".gz")

    @property
    def media_type(self) -> str:
        packed = str(self.output["format"]).endswith(".gz")
        return "application/gzip" if packed else MEDIA_TYPES[self.form]

    @property
    def missing(self) -> list[str]:
        """The texts that stand for no value."""
        return ["", self.dialect["mark"] or "*"]

    @property
    def methods(self) -> list[str]:
        """What protects people: the promises, and how columns were coarsened."""
        promises = [_promise(promise) for promise in self.certificate["promises"]]
        done = {c.stated["technique"] for c in self.columns if c.is_masked}
        return promises + [TECHNIQUES[name] for name in TECHNIQUES if name in done]

    @property
    def summary(self) -> str:
        count = self.certificate["records"]["out"]
        return f"{count} records, published by Shoal: {'; '.join(self.methods)}."


def describe(certificate: Certificate, output_path: str) -> Description:
    """The description of a released file; raises InputError where the certificate has none."""
    if not certificate.get("columns") or not certificate.get("output"):
        raise InputError(
            "metadata: the certificate names no columns; publish or audit the file again"
        )
    columns = tuple(
        _column(stated) for stated in certificate["columns"] if stated["technique"] != "removed"
    )
    return Description(PurePath(output_path).name, certificate, columns)


def _column(stated: Mapping[str, Any]) -> Column:
    source = stated.get("derived_from")
    part = "" if source is None else str(stated["name"]).rpartition("_")[2]
    text = _PARTS[part].format(source) if source else TECHNIQUES[stated["technique"]]
    if stated.get("round"):
        text += f", ends at multiples of {number_text(stated['round'])}"
    is_masked = stated["role"] == "quasi" or source is not None
    kind = "text" if stated["role"] == "quasi" else str(stated.get("type") or "text")
    return Column(
        stated["name"],
        {"number": "number", "date": "date"}.get(kind, "text"),
        text,
        source or stated["name"],
        is_masked,
        stated,
    )


_PARTS = {
    "lo": "the least value that a cell of '{}' covers",
    "hi": "the greatest value that a cell of '{}' covers",
    "mid": "the middle of what a cell of '{}' covers",
    "mean": "the mean that a cell of '{}' shows",
}


def _promise(promise: Mapping[str, Any]) -> str:
    about = ", ".join(promise.get("attributes") or ())
    over = f" over {about}" if about else ""
    return f"{promise['model']} {promise['asked']}{over}"
