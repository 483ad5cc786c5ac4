"""The hierarchies of a policy, and those that Python gives it: a Hierarchy, a frame, or a dict from
each label to its parent.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import polars as pl

from shoal.connectors.frames import table_of
from shoal.data.findings import listed_rows
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.labels import Tree
from shoal.data.hierarchies.paths import values_without_leaf
from shoal.data.hierarchies.table import read_hierarchy
from shoal.data.table import Column, as_text
from shoal.errors import InputError
from shoal.policy import registry


def with_written_trees(content: Any) -> Any:
    """The content of a policy as a file holds it, each such hierarchy written out by the maker
    `tree`.
    """
    content = _as_in_a_file(content)
    attributes = content.get("attributes") if isinstance(content, Mapping) else None
    if not isinstance(attributes, Mapping):
        return content
    written = {
        name: {**own, "hierarchy": _written(own["hierarchy"], name)}
        for name, own in attributes.items()
        if isinstance(own, Mapping) and not _is_written(own.get("hierarchy"))
    }
    return {**content, "attributes": {**attributes, **written}} if written else content


def _as_in_a_file(content: Any) -> Any:
    """The content with text for paths, and Python's numbers for NumPy's."""
    if isinstance(content, Mapping):
        return {key: _as_in_a_file(one) for key, one in content.items()}
    if isinstance(content, list):
        return [_as_in_a_file(one) for one in content]
    if isinstance(content, PurePath):
        return os.fspath(content)
    if isinstance(content, (int, float)) and type(content).__module__ != "numpy":
        return content
    if isinstance(content, Integral):
        return int(content)
    return float(content) if isinstance(content, Real) else content


def _is_written(hierarchy: object) -> bool:
    """Whether it is what a policy file could say: a path, a maker, or nothing that is known."""
    if isinstance(hierarchy, dict):
        is_made = len(hierarchy) == 1 and hierarchy.keys() <= registry.makers().keys()
        return is_made or not hierarchy or any(not isinstance(v, str) for v in hierarchy.values())
    is_frame = hasattr(hierarchy, "columns") or hasattr(hierarchy, "__arrow_c_stream__")
    return not (is_frame or isinstance(hierarchy, Hierarchy))


def _written(hierarchy: Any, name: str) -> Mapping[str, Any]:
    """The tree, groups as mappings."""
    if isinstance(hierarchy, Hierarchy):
        paths: Iterable[Sequence[str]] = hierarchy.rows().tolist()
    elif isinstance(hierarchy, dict):
        paths = _paths(hierarchy, name)
    else:
        paths = pl.DataFrame([as_text(column) for column in table_of(hierarchy).frame]).rows()
    tree: Any = {}
    for leaf, *above in paths:
        branch = tree
        for label in filter(None, reversed(above)):  # rows may be of unequal length
            branch = branch.setdefault(label, {})
            if branch is None:
                break
        if branch is None or branch.setdefault(leaf) is not None:
            raise InputError(
                f"attribute '{name}': its hierarchy has a label that is both a value and a group;"
                " rename one"
            )
    return {Tree.kind: tree}


def _paths(parents: Mapping[str, str], name: str) -> list[list[str]]:
    """From each label that is no parent up to its root."""
    groups = set(parents.values())
    paths = []
    for leaf in (label for label in parents if label not in groups):
        path = [leaf]
        while path[-1] in parents and len(path) <= len(parents):
            path.append(parents[path[-1]])
        paths.append(path)
    if not paths or any(path[-1] in parents for path in paths):
        raise InputError(f"attribute '{name}': its hierarchy goes in a circle; end it in a root")
    return paths


# The hierarchy that a policy asks for: read from its table, or made by a rule.


def declared_hierarchy(
    name: str,
    declared: str | Mapping[str, Any],
    base: Path,
    column: Column | None = None,
    is_value: np.ndarray | None = None,
    encoding: str | None = None,
) -> Hierarchy:
    """The hierarchy of attribute `name`; raises InputError with the rows that a rule can't place.

    declared: the path of a table, relative to `base`, or one maker and its argument.
    column: the values that a rule needs, None where they are not at hand. is_value: (cells,) bool,
        which of its cells hold one. encoding: of a table that is not UTF-8.
    """
    if isinstance(declared, str):
        return read_hierarchy(base / declared, name, encoding)
    ((kind, argument),) = declared.items()
    try:
        maker = registry.makers()[kind].from_spec(argument)
        if column is None or is_value is None:
            return maker.make(np.array([]))
        values = np.array(column.cells, dtype=object)[is_value]
        findings = values_without_leaf(maker, name, values, column.counts()[is_value])
        if not findings:
            return maker.make(values)
    except InputError as wrong:
        raise InputError(f"attribute '{name}': {wrong.args[0]}", wrong.said[1:]) from None
    unplaced = is_value.copy()
    unplaced[is_value] = maker.values_without_leaf(values)
    rows = column.rows_of(unplaced).tolist()
    message = f"{findings[0].message} ({listed_rows(rows, findings[0].count)})"
    raise InputError(replace(findings[0], message=message, rows=tuple(row + 1 for row in rows)))
