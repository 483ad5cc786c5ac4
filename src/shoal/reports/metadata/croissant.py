"""Croissant 1.0 (MLCommons): a file and the fields of its records, for machine learning."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from shoal.reports.metadata.description import Column, Description

VERSION = "http://mlcommons.org/croissant/1.0"
CONTEXT: dict[str, Any] = {
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
RECORDS = "records"
_TYPES = {"number": "sc:Float", "date": "sc:Date", "text": "sc:Text"}


def content(release: Description) -> dict[str, Any]:
    """The data set. How people were protected stands under `rai:dataManipulationProtocol`."""
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": VERSION,
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
                "@id": RECORDS,
                "name": RECORDS,
                "field": [_field(release, column) for column in release.columns],
            }
        ],
    }


def _field(release: Description, column: Column) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"{RECORDS}/{column.name}",
        "name": column.name,
        "description": column.text,
        "dataType": _TYPES[column.kind],
        "source": {"fileObject": {"@id": release.path}, "extract": {"column": column.name}},
    }
