"""A table bound to its policy: encoded once, with every finding listed."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from shoal.data.classes import Classes, encode_sensitive_columns
from shoal.data.encoding import (
    EncodedTable,
    encode,
    encode_attribute,
    encode_populations,
    values_of_nobody,
)
from shoal.data.findings import listed_rows
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.labels import Flat
from shoal.data.numbers import observed_domain, parse_numbers
from shoal.data.partition import Matrix
from shoal.data.person_names import Described, values_lacking
from shoal.data.schema import Attribute, Kind, Missing, Render, Role, Schema, Shown
from shoal.data.table import Column, Table
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.binding.columns import check_columns, check_unnamed
from shoal.policy.binding.files import PolicyTables
from shoal.policy.binding.notation import check_derived
from shoal.policy.given_trees import declared_hierarchy
from shoal.policy.linked import DeclaredTable, one_table_findings
from shoal.policy.model import AttributePolicy, PolicyModel
from shoal.policy.policy import Policy
from shoal.policy.problem import Problem
from shoal.protocols import HierarchyMaker


@dataclass(frozen=True)
class BoundTable:
    """A table that fits its policy.

    whole_table: all records, suppressed ones too, in one class.
    label: (n,) what the classification metric predicts, or None. populations: as in `Matrix`.
    """

    asked: Problem
    encoded: EncodedTable
    whole_table: Classes
    label: np.ndarray | None = None
    populations: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        """What each column is for."""
        return self.asked.schema

    @cached_property
    def problem(self) -> Problem:
        """What is asked, with the method that suits such a table where the policy names none."""
        return self.asked.with_default_method(self.encoded)

    def matrix(self) -> Matrix:
        """The records that are not suppressed."""
        return self.encoded.matrix(self.label, self.populations)

    def method_input(self) -> tuple[Matrix, Classes]:
        """What a method is given: the records that are not suppressed, and one class of all of them
        with the columns that promises judge.
        """
        kept, matrix = ~self.encoded.suppressed, self.matrix()
        if kept.all():
            return matrix, self.whole_table
        return matrix, self.whole_table.only(kept, matrix.subjects)


def bound_table(table: Table, policy: Policy, counts: bool = True) -> BoundTable:
    """The table bound and encoded; raises InputError with everything that is wrong with it.

    counts: whether its rows count as people, as those of new people who are shown by a plan do not.
    """
    problem, people = _bind_columns(table, policy, counts)
    schema = problem.schema
    encoded, unfit = encode(table, schema)
    sensitive, strange = encode_sensitive_columns(table, schema, problem.earlier)
    designated = [(p.model, n, p.designated) for p in problem.promises for n in p.attributes]
    InputError.raise_for([*unfit, *strange, *values_of_nobody(sensitive, designated)])
    assert encoded is not None
    populations, wrong = encode_populations(people, schema, encoded)
    InputError.raise_for(wrong)
    everyone = np.zeros(table.records, dtype=np.int32)
    label = None if schema.label is None else table.column(schema.label).codes
    whole_table = Classes(everyone, 1, encoded.subjects, sensitive, sample=encoded.sample)
    return BoundTable(problem, encoded, whole_table, label, populations)


def parted_cells(declared: DeclaredTable, bound: BoundTable) -> Iterator[str]:
    """That an element of a set may be published as a cell that its separator parts."""
    if declared.separator is None:
        return
    (encoded,), render = bound.encoded.attributes, bound.schema.render
    reach, shown = encoded.reach, {render.suppressed, *render.parts}
    if isinstance(reach, Hierarchy):
        shown = {render.suppressed, *reach.labels[reach.leaves :]}
    if parted := sum(declared.separator in text for text in shown):
        yield (
            f"attribute '{declared.name}': its separator stands in {parted} of the cells that an"
            " element may become; separate elements by another text, or rename nodes of its"
            " hierarchy"
        )


def bind_original(table: Table, policy: Policy) -> Problem:
    """The problem of a table, its domains and hierarchies filled in; raises InputError with every
    finding.
    """
    return _bind_columns(table, policy)[0]


def bound_original(
    table: Table, policy: Policy, what: str = "original", reference: Table | None = None
) -> tuple[Problem, EncodedTable]:
    """The problem of a table, and its records in numbers; raises InputError with every finding.

    reference: what shows domains and values instead of the table.
    """
    _ = policy.tables.populations  # what is wrong with these is not the table's
    try:
        problem = bind_original(reference or table, policy)
        encoded, findings = encode(table, problem.schema)
        InputError.raise_for(findings)
    except InputError as unfit:
        raise InputError.from_findings([f"{what}: {one}" for one in unfit.found]) from None
    assert encoded is not None
    return problem, encoded


def _bind_columns(
    table: Table, policy: Policy, counts: bool = True
) -> tuple[Problem, dict[str, Table]]:
    """The problem of a table, and its populations as they were read beside it; raises InputError
    with every finding.

    Names are checked first, then the cells are read, then bound: after that, nothing here goes back
    to the table.
    """
    tables = policy.tables
    InputError.raise_for(one_table_findings(policy.model))
    findings, derived = check_columns(table.names, tables), check_derived(table.names, tables.model)
    findings = findings or check_unnamed(table, tables) or tables.lacking or derived
    InputError.raise_for(findings or (_check_signs(table, tables) if counts else []))
    people = tables.populations
    audited = {*policy.model.audited_columns}
    telling = [name for name in table.names if name in audited]
    table.encode(telling)
    read = {name: table.column(name) for name in telling}
    for population in people.values():
        # its values belong to the domains, orders and leaves as well
        read |= {name: read[name].joined(population.column(name)) for name in policy.quasi}
    return bind_attributes([(name, read.get(name)) for name in table.names], policy), people


# What each column is for, once the data has said what only the data can tell.
#
# The domain of an undeclared number, the leaves of a made hierarchy, the order by frequency.


def bind_attributes(
    columns: Iterable[tuple[str, Column | None]],
    policy: Policy,
    opaque: frozenset[str] = frozenset(),
) -> Problem:
    """The problem of these columns; raises InputError with every finding.

    columns: by name, the values that tell a domain, an order or leaves; None where they are not at
        hand. opaque: those whose order or hierarchy followed from data that is not at hand.
    """
    attributes, read, findings = [], dict[str, Column](), list[Any]()
    for name, column in columns:
        try:
            attributes.append(_bound(name, column, policy.tables, name in opaque))
            if column is not None and not policy.model.population_names:
                read[name] = column
        except InputError as broken:
            findings += broken.found
    render = policy.render
    findings += _mark_findings(attributes, render, policy.model.missing_texts)
    schema = _schema(policy.model, attributes, render)
    if findings:
        for one in schema.quasi:  # all at once, as the cells of each are at hand
            findings += encode_attribute(one, read[one.name], schema)[1] if one.name in read else []
        raise InputError.from_findings(findings)
    return Problem(schema, policy)


def _bound(name: str, column: Column | None, tables: PolicyTables, opaque: bool) -> Attribute:
    """What a column is for; raises InputError where its values don't fit."""
    model = tables.model
    declared = model.attributes.get(name) or AttributePolicy.model_validate({"role": model.other})
    texts = pl.Series([], dtype=pl.String) if column is None else column.texts
    is_value = (~texts.is_in(model.no_names)).to_numpy()
    order = _order(declared, column, is_value)
    lost_zeros = _lost_zeros(declared, column, is_value)
    hierarchy = None if opaque else _hierarchy(name, declared, column, is_value, tables)
    if lost_zeros:
        raise InputError(
            f"attribute '{name}': a prefix hierarchy over a column of numbers, which lost their"
            " leading zeros; read the column as text"
        )
    domain = declared.domain
    if domain is None and declared.kind is Kind.NUMBER and hierarchy is None and column is not None:
        domain = observed_domain(column, declared.round)
    return Attribute(
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
        declared.is_weight,
        declared.is_code,
    )


def _hierarchy(
    name: str,
    declared: AttributePolicy,
    column: Column | None,
    is_value: np.ndarray,
    tables: PolicyTables,
) -> Hierarchy | None:
    """The attribute's tree; every category among the quasi-identifiers has one."""
    if declared.role not in ("quasi", "sensitive"):
        return None
    if declared.hierarchy is not None:
        return declared_hierarchy(
            name, declared.hierarchy, tables.base, column, is_value, tables.model.read.encoding
        )
    if declared.role == "quasi" and declared.kind is Kind.CATEGORY and column is not None:
        if "" in column.cells and is_value[column.cells.index("")]:
            raise InputError(_about_empty_cells(name, column))
        values = np.array(column.cells, dtype=object)[is_value]
        return Flat(root=tables.model.render.suppressed).make(values)
    return None


def with_values_of(attribute: Attribute, column: Column, tables: PolicyTables) -> Attribute:
    """The attribute with places for the values of another table, where a rule says what is above
    each, or which two each lies between; a value that the rule does not place gets none.
    """
    declared, none = tables.model.attributes[attribute.name], [*tables.model.no_names, ""]
    tree, order = attribute.hierarchy, attribute.order
    known = order or () if tree is None else tree.labels[: tree.leaves]
    new = column.texts.filter(~column.texts.is_in([*known, *none])).to_numpy()
    if declared.order is not None and tree is None:
        is_sorted = order and declared.order == "alphabetical" and len(new)
        return replace(attribute, order=(*sorted([*known, *new]),)) if is_sorted else attribute
    rule = rule_of(declared.hierarchy, tables.model.render.suppressed)
    new = new if rule is None else new[~rule.values_without_leaf(new)]
    if rule is None or not len(new):
        return attribute
    values = np.array([*known, *new], dtype=object)
    return replace(attribute, hierarchy=rule.make(values), opaque=False)


def rule_of(declared: object, mark: str) -> HierarchyMaker | None:
    """What makes a hierarchy whose labels above a value follow from it alone; None for others."""
    if not isinstance(declared, dict):
        return Flat(root=mark) if declared is None else None
    ((kind, argument),) = declared.items()
    maker = registry.makers()[kind]
    return maker.from_spec(argument) if getattr(maker, "by_value", False) else None


def _about_empty_cells(name: str, column: Column) -> str:
    """A tree has no label for an empty cell that counts as a value."""
    empty = (column.texts == "").to_numpy()
    count = int(column.counts()[empty].sum())
    are, them = ("1 cell is", "it") if count == 1 else (f"{count} cells are", "them")
    rows = listed_rows(column.rows_of(empty).tolist(), count)
    return f"attribute '{name}': {are} empty ({rows}); add \"\" to missing_values, or fill {them}"


def _lost_zeros(declared: AttributePolicy, column: Column | None, is_value: np.ndarray) -> bool:
    """Whether prefixes are to be taken of numbers, whose leading zeros are gone."""
    if declared.maker != "prefix" or column is None or not column.was_number:
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


def _mark_findings(
    attributes: list[Attribute], render: Render, missing: Iterable[str]
) -> list[str]:
    """What is published must have one meaning: the suppression mark, groups and intervals."""
    findings = [
        f"attribute '{one.name}': {wrong}"
        for one in attributes
        if one.role is Role.QUASI
        for wrong in _ambiguities(one, render, {*missing} - {render.suppressed})
    ]
    mark, (head, middle, tail) = render.suppressed, render.parts
    frames_mark = mark.startswith(head) and mark.endswith(tail) and middle in mark
    if frames_mark and len(mark) > len(head + middle + tail):
        findings.append("render: the suppression mark reads like an interval; choose another mark")
    return findings


def _ambiguities(attribute: Attribute, render: Render, missing: set[str]) -> Iterator[str]:
    if _is_label(render.suppressed, attribute):
        yield "the suppression mark is one of its labels; choose another mark"
    tree = attribute.hierarchy
    if tree is not None:
        nodes = [node for text in missing if (node := tree.node_of_label(text)) >= 0]
        if any({*tree.labels[tree.first[n] : tree.last[n] + 1]} - missing for n in nodes):
            yield (
                "a group of its hierarchy is named by one of 'missing_values', and would be read as"
                " no value; rename the group, or take that text out of the list"
            )
    elif _has_two_readings({*(attribute.order or ())}, render, missing):
        yield (
            "an interval of its labels could be read in two ways; part the two ends by other signs,"
            " in 'intervals' under 'render', or rename labels"
        )


def _has_two_readings(labels: set[str], render: Render, missing: set[str]) -> bool:
    """Whether the interval between two labels may also be another label, no value, or lie between
    two others.
    """
    head, middle, tail = render.parts

    def partings(text: str) -> Iterator[tuple[str, str]]:
        for at in re.finditer(f"(?=({re.escape(middle)}))", text):
            yield text[: at.start()], text[at.end(1) :]

    framed = [t for t in labels | missing if t.startswith(head) and t.endswith(tail)]
    inside = [text[len(head) : len(text) - len(tail)] for text in framed]
    if any(lo != hi and {lo, hi} <= labels for text in inside for lo, hi in partings(text)):
        return True
    # `lo middle rest` may be a label as well as `rest hi`
    rests = {rest for one in labels for lo, rest in partings(one + middle) if lo in labels - {one}}
    return any(rest + hi in labels for rest in rests for hi in labels)


def _is_label(mark: str, attribute: Attribute) -> bool:
    """Whether the mark may name a value, or a group that is not the whole of the attribute."""
    if mark in (attribute.order or ()):
        return True
    if attribute.kind is Kind.NUMBER and attribute.hierarchy is None:
        return bool(np.isfinite(parse_numbers((mark,))[0]))
    tree = attribute.hierarchy
    return tree is not None and tree.node_of_label(mark) not in (-1, tree.root)


def _schema(model: PolicyModel, attributes: list[Attribute], render: Render) -> Schema:
    categorical = [
        a.name
        for a in attributes
        if a.role is Role.SENSITIVE and (a.kind is not Kind.NUMBER or a.is_code)
    ]
    label = model.label or (categorical[0] if len(categorical) == 1 else None)
    missing = Missing(model.missing)
    return Schema(tuple(attributes), missing, tuple(model.missing_texts), render, label)


# The schema of a released file, whether its original is at hand or not.


def bound_release(released: Table, policy: Policy) -> Problem:
    """The problem of a released file whose original is not at hand; raises InputError with every
    finding.

    What only the original could tell stays open: a number without a declared domain has none, an
    order or hierarchy that follows the data is None. Where the policy names a reference, it tells
    the order of sensitive values, as it did when the stream was published.
    """
    InputError.raise_for(one_table_findings(policy.model))
    InputError.raise_for(check_columns(released.names, policy.tables, released=True))
    declared = policy.model.attributes
    # sensitive values are published as they were, so they tell what follows them
    as_they_were = {name for name, a in declared.items() if a.role == "sensitive"}
    opaque = {name for name, a in declared.items() if a.follows_the_data} - as_they_were
    columns = []
    for name in released.names:
        shown = released
        if (reference := policy.reference_table) is not None and name in reference.names:
            shown = reference
        columns.append((name, shown.column(name) if name in as_they_were else None))
    return bind_attributes(columns, policy, frozenset(opaque))


# The schema of a stream, which must be known before its first record.


def bind_stream(names: list[str], policy: Policy) -> Problem:
    """The problem of a stream with these columns; raises InputError with every finding."""
    InputError.raise_for(
        one_table_findings(policy.model, "stream") or check_columns(names, policy.tables)
    )
    declared = policy.model.attributes
    open_questions = {name: _unknown_beforehand(name, declared.get(name)) for name in names}
    findings: list[object] = [one for unknown in open_questions.values() for one in unknown]
    try:
        known = [(name, None) for name, unknown in open_questions.items() if not unknown]
        problem = bind_attributes(known, policy)
    except InputError as wrong:
        findings += wrong.found
    InputError.raise_for(findings)
    return problem


def _unknown_beforehand(name: str, declared: AttributePolicy | None) -> list[str]:
    """What only the end of the stream would tell: domains and hierarchies that follow the data."""
    if declared is None or declared.role not in ("quasi", "sensitive"):
        return []
    unknown = ""
    if declared.follows_the_data:
        unknown = (
            "every value before the first record; give a hierarchy table, a 'tree' or an 'order'"
        )
    elif declared.role == "quasi" and declared.hierarchy is None:
        if declared.kind is Kind.NUMBER and declared.domain is None:
            unknown = "its least and greatest value; declare its 'domain'"
        elif declared.kind is Kind.CATEGORY:
            unknown = "its values; give a hierarchy table, or list them: 'hierarchy: {tree: [...]}'"
    otherwise = "(or name a table that shows them as its reference)"
    return [f"attribute '{name}': a stream must know {unknown} {otherwise}"] if unknown else []


def _check_signs(table: Table, tables: PolicyTables) -> list[str]:
    """A finding where rows hold nothing but usual signs for no value: listed in the policy, these
    would make them nobody.
    """
    model, (_, silent) = tables.model, tables.nobody(table.names)
    columns = []
    for name in sorted({*table.names} - {*silent}, key=lambda n: n not in model.audited_columns):
        columns.append(Described.of(table.column(name), model.no_names))
        if not columns[-1].is_none.any():  # seldom is a further column encoded
            return []
    count = np.count_nonzero(values_lacking(columns) == len(columns))
    rows, them = ("1 row holds", "it") if count == 1 else (f"{count} rows hold", "them")
    text = (
        f"data: {rows} nothing but usual signs for no value, removed columns aside, and would count"
        f" as people; list the signs under 'missing_values', which leaves {them} out, or take"
        f" {them} out of the data; if they are people, name who is one under 'subject', or write"
        " what they answered in other words"
    )
    return [text] if count else []
