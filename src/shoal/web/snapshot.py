"""Copies of hierarchies as they are when a user asks for work that may start later.

The tables below hierarchies/, which the page edits, are copied. A policy that its owner wrote may
name tables elsewhere: then all tables are read where they lie, since its paths are relative to the
project.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shoal.web import folder as files
from shoal.web.project import ASKED, Project

Content = dict[str, Any]
FOLDER = "hierarchies"


def take(project: Project, into: Path) -> None:
    """Copies the project's hierarchies into a folder."""
    for name, text in project.texts().items():
        if name.startswith(f"{FOLDER}/") and text is not None:
            files.made(into / FOLDER)
            files.write(into / name, text)


def take_aside(project: Project, name: str) -> Path:
    """A copy of the hierarchies for work that has no folder of its own; `drop` it afterwards."""
    place = files.made(project.folder / ".ui" / f"{ASKED}{name}")
    take(project, place)
    return place


def drop(taken: str | Path) -> None:
    """Deletes a copy that is not needed any more."""
    shutil.rmtree(taken, ignore_errors=True)


def base_of(project: Project, policy: Content, taken: Path) -> str:
    """The folder that a policy's paths are relative to: the copy, or the project."""
    is_ours = all(
        Path(name).is_absolute() or Path(name).parent == Path(FOLDER) for name in _named(policy)
    )
    return str(taken if is_ours else project.folder)


def _named(policy: Content) -> Iterator[str]:
    """Every table that a policy names."""
    around = policy.get("population")
    holders = [(policy, "reference"), (around, "table"), (around, "frequencies")]
    holders += [(settings, "hierarchy") for settings in (policy.get("attributes") or {}).values()]
    holders += [(promise, "population") for promise in policy.get("promises") or ()]
    for holder, key in holders:
        name = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(name, str) and name:
            yield name
