"""The metadata beside a release, OUT.KIND.json: one description, written in two forms.

Nothing is added that the certificate or the cells themselves do not say: no domain, and no value.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, TypeAlias
from urllib.parse import quote

from shoal.connectors.files import write_text
from shoal.connectors.formats import Format, format_of
from shoal.connectors.location import Location
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import PromiseReport
from shoal.data.numbers import number_text
from shoal.errors import InputError, PromiseError


def kinds_of(text: str | None) -> list[str]:
    """The kinds in a list that commas part; raises InputError with every one that is unknown."""
    kinds = [kind.strip() for kind in (text or "").split(",") if kind.strip()]
    InputError.raise_for(
        f"--metadata '{kind}': is unknown; choose some of {', '.join(FORMS)}"
        for kind in kinds
        if kind not in FORMS
    )
    return list(dict.fromkeys(kinds))


def metadata_path(output_path: str, kind: str) -> str:
    """Where the metadata of a kind goes."""
    return f"{output_path}.{kind}.json"


def outdated_metadata(output_path: str) -> list[str]:
    """A sentence for each metadata file beside a new release: it is of an earlier one."""
    return [
        f"metadata '{path}': describes an earlier release; delete it, or write it again"
        for path in (metadata_path(output_path, kind) for kind in FORMS)
        if Location(output_path).is_path and Path(path).is_file()
    ]


def write_metadata(
    released: str, certificate: str | Path | None, kinds: Sequence[str]
) -> list[str]:
    """Writes the metadata of these kinds beside a release, each whole; their paths.

    certificate: by default the one beside the release. Raises InputError, and PromiseError where
    the release fails `verify`.
    """
    from shoal.auditor.signatures import Proof  # which a publication does without
    from shoal.auditor.verify import verify_by

    place = Location(released)
    if place.is_table or place.is_folder:
        raise InputError(
            "--metadata: describes a file, not a folder or a table in a database; leave it out"
        )
    proof = Proof.of(released, certificate)
    if proof.certificate.get("linked"):
        raise InputError("--metadata: describes one table, not linked ones; leave it out")
    failed = [
        f"{check.name}: {check.said}" for check in verify_by(released, proof) if check.ok is False
    ]
    if failed:
        raise PromiseError(
            f"release '{released}': fails verify, {failed[0]}; no metadata was written", failed[1:]
        )
    release = describe(proof.certificate, released)
    contents = {metadata_path(released, kind): FORMS[kind](release) for kind in kinds}
    for path, content in contents.items():
        write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return list(contents)


# A release described


TECHNIQUES = {
    "interval": "numbers as the interval of their class",
    "mean": "numbers as the mean of their class",
    "median": "numbers as the median of their class",
    "mode": "values as the most frequent one of their class",
    "mean-and-interval": "numbers as the mean and the interval of their class",
    "span": "ordered labels as the span of their class",
    "node": "values as a node of their hierarchy",
    "value-or-nothing": "the value where the whole class agrees on it",
    "pseudonym": "a keyed pseudonym",
    "as-is": "as in the original",
}


@dataclass(frozen=True)
class Column:
    """One published column. kind: number, date or text, as its cells are."""

    name: str
    kind: str
    text: str
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
    def form(self) -> Format:
        """The format without compression."""
        return format_of(f".{self.output['format']}".removesuffix(".gz"))

    @property
    def media_type(self) -> str:
        packed = str(self.output["format"]).endswith(".gz")
        return "application/gzip" if packed else self.form.media_type

    @property
    def missing(self) -> list[str]:
        """The texts that stand for no value."""
        return ["", self.dialect["mark"] or "*", *self.dialect.get("missing", ())]

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
    output = certificate.get("output") or {}
    if not certificate.get("columns") or not output.get("dialect"):
        raise InputError(
            "metadata: the certificate names no columns; publish or audit the file again"
        )
    if output.get("sensitive") is not None:
        raise InputError("--metadata: is for releases of one table, and this one has two")
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
    kind = "text" if stated["role"] == "quasi" else stated.get("type")
    kind = kind if kind in ("number", "date") else "text"
    return Column(stated["name"], kind, text, is_masked, stated)


_PARTS = {
    "lo": "the least value that a cell of '{}' covers",
    "hi": "the greatest value that a cell of '{}' covers",
    "mid": "the middle of what a cell of '{}' covers",
    "mean": "the mean that a cell of '{}' shows",
}


def _promise(promise: PromiseReport) -> str:
    about = ", ".join(promise.get("attributes") or ())
    over = f" over {about}" if about else ""
    return f"{promise['model']} {promise['asked']}{over}"


# The two forms


Document: TypeAlias = dict[str, Any]
"""A part of a form, as JSON."""

_DATA_TYPES = {"number": "number", "date": "date", "text": "string"}


def datapackage(release: Description) -> Document:
    """Data Package 2.0: a resource with its dialect and fields.

    Our own description of a column stands under `shoal`.
    """
    resource: Document = {
        "name": release.name,
        "path": release.path,
        "type": "table",
        "format": release.form[1:],
        "mediatype": release.media_type,
        "bytes": release.output["bytes"],
        "hash": f"sha256:{release.output['sha256']}",
        "schema": {
            "fields": [_package_field(release, column) for column in release.columns],
            "missingValues": release.missing,
        },
    }
    if release.form.is_delimited:
        resource["encoding"] = release.dialect["encoding"]
        resource["dialect"] = {
            "delimiter": release.dialect["delimiter"],
            "lineTerminator": release.dialect["newline"],
        }
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": release.name,
        "description": release.summary,
        "created": release.certificate["date"],
        "resources": [resource],
    }


def _package_field(release: Description, column: Column) -> Document:
    field: Document = {
        "name": column.name,
        "type": _DATA_TYPES[column.kind],
        "description": column.text,
        "missingValues": release.missing,
        "shoal": {key: value for key, value in column.stated.items() if value is not None},
    }
    if column.kind == "number" and release.dialect["decimal"] != ".":
        field["decimalChar"] = release.dialect["decimal"]
    if column.kind == "date" and release.dialect["dates"] is not None:
        field["format"] = release.dialect["dates"]
    return field


_CROISSANT: Document = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "recordSet": "cr:recordSet",
    "field": "cr:field",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "source": "cr:source",
    "fileObject": "cr:fileObject",
    "extract": "cr:extract",
    "column": "cr:column",
}
_RECORDS = "records"
_CROISSANT_TYPES = {"number": "sc:Float", "date": "sc:Date", "text": "sc:Text"}


def croissant(release: Description) -> Document:
    """Croissant 1.0 (MLCommons): a file and its fields, for machine learning.

    How people were protected stands under `rai:dataManipulationProtocol`.
    """
    return {
        "@context": _CROISSANT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": release.name,
        "description": release.summary,
        "datePublished": str(release.certificate["date"])[:10],
        "rai:dataManipulationProtocol": "; ".join(release.methods),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": release.path,
                "name": release.path,
                "contentUrl": quote(release.path),
                "contentSize": f"{release.output['bytes']} B",
                "encodingFormat": release.media_type,
                "sha256": release.output["sha256"],
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": _RECORDS,
                "name": _RECORDS,
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"{_RECORDS}/{column.name}",
                        "name": column.name,
                        "description": column.text,
                        "dataType": _CROISSANT_TYPES[column.kind],
                        "source": {
                            "fileObject": {"@id": release.path},
                            "extract": {"column": column.name},
                        },
                    }
                    for column in release.columns
                ],
            }
        ],
    }


FORMS: Mapping[str, Callable[[Description], Document]] = {
    "datapackage": datapackage,
    "croissant": croissant,
}
"""The kinds, by the name that users ask for."""
