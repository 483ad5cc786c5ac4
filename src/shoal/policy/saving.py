"""A policy as a file that reads as the same policy, and as a table for a notebook."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import yaml

from shoal.connectors import files
from shoal.data import notebook
from shoal.errors import InputError
from shoal.policy.model import PolicyModel

SUFFIXES = (".yaml", ".yml", ".json")


def as_yaml(content: dict[str, Any]) -> str:
    """The keys of a policy as YAML."""
    return yaml.safe_dump(
        content, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100
    )


def save(model: PolicyModel, base: Path, path: Path, overwrite: bool) -> None:
    """Writes a policy whole or not at all; its paths lead from the new place to the same files.

    base: the folder that its paths are relative to now.
    Raises InputError where a file of this name exists, unless it may be overwritten.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"policy '{path}': is YAML or JSON; give it a name that ends in .yaml")
    if path.exists() and not overwrite:
        raise InputError(f"policy '{path}': exists; name another file, or say overwrite=True")
    content = model.model_dump(mode="json", exclude_unset=True)
    _move_paths(content, base, path.parent)
    if path.suffix.lower() == ".json":
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    else:
        text = as_yaml(content)
    with files.atomic_write(str(path)) as draft:
        draft.write_text(text, encoding="utf-8")


def _move_paths(content: dict[str, Any], base: Path, folder: Path) -> None:
    """Makes every path that is relative to the policy's folder relative to the new one."""
    places = [(attribute, "hierarchy") for attribute in content["attributes"].values()]
    places += [(promise, "population") for promise in content["promises"]]
    places += [(content.get("population") or {}, key) for key in ("table", "frequencies")]
    for settings, key in [*places, (content, "reference")]:
        name = settings.get(key)
        if isinstance(name, str) and name and not Path(name).is_absolute():
            settings[key] = Path(os.path.relpath(base / name, folder)).as_posix()


def as_html(model: PolicyModel) -> str:
    """Every column's role and how it is treated, and every promise; no value of any column."""
    columns = [
        (name, a.role, a.kind.value if a.role in ("quasi", "sensitive") else "", _how(a.hierarchy))
        for name, a in model.attributes.items()
    ]
    others = [] if model.other is None else [("all others", model.other, "", "")]
    promises = [
        (
            promise["model"],
            ", ".join(f"{key}: {value}" for key, value in promise.items() if key != "model"),
        )
        for promise in model.promises
    ]
    return notebook.section(
        notebook.table(("column", "role", "type", "hierarchy"), [*columns, *others]),
        notebook.table(("promise", "asked"), promises),
    )


def _how(hierarchy: str | dict[str, Any] | None) -> str:
    """Where a hierarchy comes from; its labels are not shown."""
    if hierarchy is None:
        return ""
    return "from a file" if isinstance(hierarchy, str) else f"made by {next(iter(hierarchy))}"
