"""The metadata beside a release: OUT.KIND.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from shoal.connectors.files import atomic_write
from shoal.connectors.location import Location
from shoal.data.certificate import Certificate
from shoal.errors import InputError

FORMS = ("datapackage", "croissant")
"""The kinds; a function of `metadata_forms` makes each, imported where it is asked for."""


def kinds_of(text: str | None) -> list[str]:
    """The kinds in a list that commas part; raises InputError with every one that is unknown."""
    kinds = [kind.strip() for kind in (text or "").split(",") if kind.strip()]
    findings = [
        f"--metadata '{kind}': is unknown; choose some of {', '.join(FORMS)}"
        for kind in kinds
        if kind not in FORMS
    ]
    InputError.raise_for(findings)
    return list(dict.fromkeys(kinds))


def check_kinds(kinds: Sequence[str], output_path: str) -> None:
    """Raises InputError, before any work is done, where a release can't be described so."""
    place = Location(output_path)
    if kinds and place.is_standard:
        raise InputError("--metadata and -o -: there is no file to describe; write to one")
    if kinds and (place.is_table or place.is_folder):
        raise InputError(
            "--metadata: describes a file, not a folder or a table in a database; leave it out, or"
            " write to a file"
        )


def metadata_path(output_path: str, kind: str) -> str:
    """Where the metadata of a kind goes."""
    return f"{output_path}.{kind}.json"


def outdated_metadata(output_path: str, kinds: Sequence[str]) -> list[str]:
    """A sentence for each metadata file beside a new release that is not of these kinds: it is of
    an earlier release.
    """
    others = (metadata_path(output_path, kind) for kind in FORMS if kind not in kinds)
    return [
        f"metadata '{path}': describes an earlier release; delete it, or write it again"
        for path in others
        if Location(output_path).is_path and Path(path).is_file()
    ]


def write_metadata(certificate: Certificate, output_path: str, kinds: Sequence[str]) -> list[str]:
    """Writes the metadata of these kinds, each whole; their paths."""
    if not kinds:
        return []
    from shoal.reports import metadata_forms

    release = metadata_forms.describe(certificate, output_path)
    contents = {
        metadata_path(output_path, kind): getattr(metadata_forms, kind)(release) for kind in kinds
    }
    for path, content in contents.items():
        with atomic_write(path) as draft:
            draft.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return list(contents)
