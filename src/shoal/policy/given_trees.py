"""Hierarchies as Python has them: a Hierarchy, a frame, or a dict from each label to its parent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from shoal.connectors.frames import table_of
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.tree import Tree
from shoal.data.table import as_text
from shoal.errors import InputError
from shoal.policy import registry


def with_written_trees(content: Any) -> Any:
    """The content of a policy with each such hierarchy written out by the maker `tree`."""
    attributes = content.get("attributes") if isinstance(content, Mapping) else None
    if not isinstance(attributes, Mapping):
        return content
    written = {
        name: {**own, "hierarchy": _written(own["hierarchy"], name)}
        for name, own in attributes.items()
        if isinstance(own, Mapping) and not _is_written(own.get("hierarchy"))
    }
    return {**content, "attributes": {**attributes, **written}} if written else content


def _is_written(hierarchy: object) -> bool:
    """Whether a policy file could say it: a path, or a maker."""
    if hierarchy is None or isinstance(hierarchy, str):
        return True
    is_parents = isinstance(hierarchy, dict) and all(
        isinstance(label, str) for pair in hierarchy.items() for label in pair
    )
    is_made = isinstance(hierarchy, dict) and (
        not hierarchy or (len(hierarchy) == 1 and hierarchy.keys() <= registry.makers().keys())
    )
    return is_made or not (is_parents or hasattr(hierarchy, "columns") or _is_tree(hierarchy))


def _is_tree(hierarchy: object) -> bool:
    return isinstance(hierarchy, Hierarchy) or hasattr(hierarchy, "__arrow_c_stream__")


def _written(hierarchy: Any, name: str) -> dict[str, Any]:
    """The tree, groups as mappings."""
    if isinstance(hierarchy, Hierarchy):
        paths: Iterable[Sequence[str]] = hierarchy.rows().tolist()
    elif isinstance(hierarchy, dict):
        paths = _paths(hierarchy, name)
    else:
        paths = pl.DataFrame([as_text(column) for column in table_of(hierarchy).frame]).rows()
    tree: dict[str, Any] = {}
    for leaf, *above in paths:
        branch = tree
        for label in reversed(above):
            branch = branch.setdefault(label, {})
        branch[leaf] = None
    return {Tree.kind: tree}


def _paths(parents: Mapping[str, str], name: str) -> list[list[str]]:
    """From each label that is no parent up to its root."""
    paths = []
    for leaf in parents.keys() - set(parents.values()):
        path = [leaf]
        while path[-1] in parents:
            path.append(parents[path[-1]])
            if len(path) > len(parents) + 1:
                break
        paths.append(path)
    if not paths or max(map(len, paths)) > len(parents) + 1:
        raise InputError(f"attribute '{name}': its hierarchy goes in a circle; end it in a root")
    order = list(parents)
    return sorted(paths, key=lambda path: order.index(path[0]))
