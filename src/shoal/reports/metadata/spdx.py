"""SPDX 3.0.1: a DatasetPackage in a document of its own."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from shoal.reports.metadata.description import Description

CONTEXT = "https://spdx.org/rdf/3.0.1/spdx-context.jsonld"
CREATION = "_:creation"


def content(release: Description) -> dict[str, Any]:
    """The document. How confidential the data is, only its owner can say: it is left out."""
    date = release.certificate["date"]
    base = f"urn:shoal:{release.output['sha256']}"
    agent, package = f"{base}#shoal", f"{base}#data"
    return {
        "@context": CONTEXT,
        "@graph": [
            {
                "@id": CREATION,
                "type": "CreationInfo",
                "specVersion": "3.0.1",
                "created": date,
                "createdBy": [agent],
            },
            {
                "type": "SoftwareAgent",
                "spdxId": agent,
                "creationInfo": CREATION,
                "name": f"Shoal {release.certificate['shoal']}",
            },
            _package(release, package, agent),
            {
                "type": "SpdxDocument",
                "spdxId": f"{base}#document",
                "creationInfo": CREATION,
                "profileConformance": ["core", "software", "dataset"],
                "rootElement": [package],
            },
        ],
    }


def _package(release: Description, package: str, agent: str) -> dict[str, Any]:
    date = release.certificate["date"]
    return {
        "type": "dataset_DatasetPackage",
        "spdxId": package,
        "creationInfo": CREATION,
        "name": release.path,
        "summary": release.summary,
        "builtTime": date,
        "releaseTime": date,
        "originatedBy": [agent],
        "software_downloadLocation": quote(release.path),
        "software_primaryPurpose": "data",
        "dataset_datasetType": ["structured"],
        "dataset_datasetSize": release.output["bytes"],
        "dataset_anonymizationMethodUsed": release.methods,
        "verifyUsing": [
            {"type": "Hash", "algorithm": "sha256", "hashValue": release.output["sha256"]}
        ],
    }
