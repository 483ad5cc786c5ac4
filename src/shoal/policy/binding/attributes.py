"""What each column is for, once the data has said what only the data can tell.

The domain of an undeclared number, the leaves of a made hierarchy, the order by frequency.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shoal.data.findings import listed_rows
from shoal.data.hierarchies.flat import Flat
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.numbers import observed_domain
from shoal.data.schema import Attribute, Kind, Missing, Render, Role, Schema, Shown
from shoal.data.table import Column
from shoal.errors import InputError
from shoal.policy.hierarchies import declared_hierarchy
from shoal.policy.model import AttributePolicy, PolicyModel
from shoal.policy.policy import Policy


def bind_attributes(
    columns: Iterable[tuple[str, Column | None]],
    policy: Policy,
    opaque: frozenset[str] = frozenset(),
) -> tuple[Schema | None, list[str]]:
    """The schema of these columns, or every finding.

    columns: by name, the values that tell a domain, an order or leaves; None where they are not at
        hand. opaque: those whose order or hierarchy followed from data that is not at hand.
    """
    attributes, findings = [], []
    for name, column in columns:
        attribute, wrong = _bind_attribute(name, column, policy, name in opaque)
        findings += wrong
        if attribute is not None:
            attributes.append(attribute)
    render = policy.render
    findings += _mark_findings(attributes, render)
    return (None, findings) if findings else (_schema(policy.model, attributes, render), [])


def _bind_attribute(
    name: str, column: Column | None, policy: Policy, opaque: bool
) -> tuple[Attribute | None, list[str]]:
    declared = policy.model.attributes.get(name) or AttributePolicy.model_validate(
        {"role": policy.model.other}
    )
    is_value = np.array([policy.is_value(cell) for cell in column.cells] if column else [], bool)
    order = _order(declared, column, is_value)
    lost_zeros = _lost_zeros(declared, column, is_value)
    try:
        hierarchy = None if opaque else _hierarchy(name, declared, column, is_value, policy)
    except InputError as broken:
        return None, [str(broken.args[0]), *broken.findings]
    if lost_zeros:
        return None, [
            f"attribute '{name}': a prefix hierarchy over a column of numbers, which lost their"
            " leading zeros; read the column as text"
        ]
    domain = declared.domain
    if domain is None and declared.kind is Kind.NUMBER and hierarchy is None and column is not None:
        domain = observed_domain(column)
    return (
        Attribute(
            name,
            Role(declared.role),
            declared.kind,
            domain,
            order,
            hierarchy,
            declared.weight,
            declared.pseudonym,
            opaque,
            Shown(declared.render),
            declared.round,
        ),
        [],
    )


def _hierarchy(
    name: str,
    declared: AttributePolicy,
    column: Column | None,
    is_value: np.ndarray,
    policy: Policy,
) -> Hierarchy | None:
    """The attribute's tree; every category among the quasi-identifiers has one."""
    if declared.role not in ("quasi", "sensitive"):
        return None
    if declared.hierarchy is not None:
        return declared_hierarchy(
            name, declared.hierarchy, policy.base, column, is_value, policy.model.read.encoding
        )
    if declared.role == "quasi" and declared.kind is Kind.CATEGORY and column is not None:
        if "" in column.cells and is_value[column.cells.index("")]:
            raise InputError(_about_empty_cells(name, column))
        values = np.array(column.cells, dtype=object)[is_value]
        return Flat(root=policy.model.render.suppressed).make(values)
    return None


def _about_empty_cells(name: str, column: Column) -> str:
    """A tree has no label for an empty cell that counts as a value."""
    empty = np.array([cell == "" for cell in column.cells])
    count = int(column.counts()[empty].sum())
    are, them = ("1 cell is", "it") if count == 1 else (f"{count} cells are", "them")
    rows = listed_rows(column.rows_of(empty).tolist(), count)
    return f"attribute '{name}': {are} empty ({rows}); add \"\" to missing_values, or fill {them}"


def _lost_zeros(declared: AttributePolicy, column: Column | None, is_value: np.ndarray) -> bool:
    """Whether prefixes are to be taken of numbers, whose leading zeros are gone."""
    if not (isinstance(declared.hierarchy, dict) and "prefix" in declared.hierarchy):
        return False
    if column is None or not column.was_number:
        return False
    return len({len(column.cells[i]) for i in np.flatnonzero(is_value)}) > 1


def _order(
    declared: AttributePolicy, column: Column | None, is_value: np.ndarray
) -> tuple[str, ...] | None:
    if isinstance(declared.order, list):
        return tuple(declared.order)
    if declared.order is None or column is None:
        return None
    counts = column.counts()
    present = [(column.cells[i], int(counts[i])) for i in np.flatnonzero(is_value)]
    if declared.order == "frequency":
        present.sort(key=lambda pair: (-pair[1], pair[0]))
    return tuple(cell for cell, _ in present)


def _mark_findings(attributes: list[Attribute], render: Render) -> list[str]:
    """The suppression mark must mean suppression and nothing else."""
    findings = [
        f"attribute '{a.name}': the suppression mark is one of its labels; choose another mark"
        for a in attributes
        if a.role is Role.QUASI and _is_label(render.suppressed, a)
    ]
    mark, (head, middle, tail) = render.suppressed, render.parts
    frames_mark = mark.startswith(head) and mark.endswith(tail) and middle in mark
    if frames_mark and len(mark) > len(head + middle + tail):
        findings.append("render: the suppression mark reads like an interval; choose another mark")
    return findings


def _is_label(mark: str, attribute: Attribute) -> bool:
    """Whether the mark names a value or a group of the attribute that is not the whole of it."""
    if mark in (attribute.order or ()):
        return True
    tree = attribute.hierarchy
    return tree is not None and tree.node_of_label(mark) not in (-1, tree.root)


def _schema(model: PolicyModel, attributes: list[Attribute], render: Render) -> Schema:
    categorical = [
        a.name for a in attributes if a.role is Role.SENSITIVE and a.kind is not Kind.NUMBER
    ]
    label = model.label or (categorical[0] if len(categorical) == 1 else None)
    missing = Missing(model.missing)
    return Schema(tuple(attributes), missing, tuple(model.missing_values), render, label)
