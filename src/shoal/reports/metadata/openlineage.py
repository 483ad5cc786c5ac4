"""OpenLineage: the run that made the release, and which column came of which."""

from __future__ import annotations

import uuid
from typing import Any

from shoal.reports.metadata.description import Column, Description

SPEC = "https://openlineage.io/spec"
EVENT = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
SCHEMA_FACET = f"{SPEC}/facets/1-1-1/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet"
LINEAGE_FACET = (
    f"{SPEC}/facets/1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet"
)
NAMESPACE = "shoal"


def content(release: Description) -> dict[str, Any]:
    """A COMPLETE event. The input goes by its hash: its name and folder are its owner's."""
    certificate = release.certificate
    origin = f"sha256:{(certificate['input'] or {}).get('sha256')}"
    producer = f"urn:shoal:{certificate['shoal']}"
    run = uuid.uuid5(uuid.NAMESPACE_URL, f"{release.output['sha256']} {certificate['date']}")
    facet = {"_producer": producer}
    schema = {
        **facet,
        "_schemaURL": SCHEMA_FACET,
        "fields": [
            {"name": c.name, "type": c.kind, "description": c.text} for c in release.columns
        ],
    }
    lineage = {
        **facet,
        "_schemaURL": LINEAGE_FACET,
        "fields": {c.name: {"inputFields": [_input(c, origin)]} for c in release.columns},
    }
    return {
        "eventType": "COMPLETE",
        "eventTime": certificate["date"],
        "run": {"runId": str(run)},
        "job": {"namespace": NAMESPACE, "name": certificate["verb"]},
        "inputs": [{"namespace": NAMESPACE, "name": origin}],
        "outputs": [
            {
                "namespace": NAMESPACE,
                "name": release.path,
                "facets": {"schema": schema, "columnLineage": lineage},
            }
        ],
        "producer": producer,
        "schemaURL": EVENT,
    }


def _input(column: Column, origin: str) -> dict[str, Any]:
    subtype = "TRANSFORMATION" if column.is_masked else "IDENTITY"
    return {
        "namespace": NAMESPACE,
        "name": origin,
        "field": column.source,
        "transformations": [
            {
                "type": "DIRECT",
                "subtype": subtype,
                "description": column.text,
                "masking": column.is_masked,
            }
        ],
    }
