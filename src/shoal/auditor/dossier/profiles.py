"""Profiles: what a standard or law asks of a release, clause by clause. They are data, not code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files as resources

import yaml

from shoal.errors import InputError
from shoal.policy.parameters import suggestion

SUFFIX = ".yaml"


@dataclass(frozen=True)
class Clause:
    """One clause, and the fields of a dossier that speak to it."""

    clause: str
    about: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Profile:
    """One standard or law. basis: where its clauses are taken from."""

    name: str
    title: str
    basis: str
    clauses: tuple[Clause, ...]


def profile_names() -> list[str]:
    """The profiles that are here."""
    folder = resources("shoal.auditor.dossier") / "profiles"
    return sorted(
        entry.name.removesuffix(SUFFIX) for entry in folder.iterdir() if entry.name.endswith(SUFFIX)
    )


def read_profiles(names: Sequence[str]) -> list[Profile]:
    """The profiles of these names, all where none is named; raises InputError."""
    known = profile_names()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError.from_findings(
            [
                f"profile '{name}': unknown; {suggestion(name, known)}choose one of"
                f" {', '.join(known)}"
                for name in unknown
            ]
        )
    return [_read_profile(name) for name in dict.fromkeys(names or known)]


def _read_profile(name: str) -> Profile:
    path = resources("shoal.auditor.dossier") / "profiles" / f"{name}{SUFFIX}"
    content = yaml.safe_load(path.read_text("utf-8"))
    clauses = tuple(
        Clause(str(entry["clause"]), str(entry["about"]), tuple(entry["fields"]))
        for entry in content["clauses"]
    )
    return Profile(name, content["title"], content["basis"], clauses)
