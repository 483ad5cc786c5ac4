"""One policy: who is the person, what an attacker could know, what is sensitive, and what must
hold.

A policy is read once, checked as a whole - every finding is listed, not just the first - and then
*bound* to a table, which fixes what only the data can tell: the domain of an undeclared number, the
leaves of a made hierarchy, the order by frequency.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml
from pydantic import ValidationError

from shoal.connectors import files
from shoal.data.encoding import parse_numbers
from shoal.data.hierarchies import MAKERS
from shoal.data.hierarchies.diagnostics import values_without_leaf
from shoal.data.hierarchies.flat import Flat
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.table import read_hierarchy
from shoal.data.schema import Attribute, Kind, Missing, Render, Role, Schema, Shown
from shoal.data.table import Column, Table
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.loading import _finding, _mapping, _read, _UniqueKeys
from shoal.policy.model import AttributePolicy, PolicyModel
from shoal.policy.parameters import build, nearest, suggestion

DEFAULT_METHOD = "rounded-partition"
DEFAULT_OVER_HIERARCHIES = "lattice-peeling"
DEFAULT_FOR_CLOSENESS = {"name": "tcloseness", "aim": "spans", "scale": "range"}
PSEUDONYM = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Policy:
    """A whole, checked policy. `base` is the folder that its paths are relative to.

    earlier: for promises that compare with all of a growing table, how often each value of a
        sensitive attribute counts in what of it is published already.
    """

    model: PolicyModel
    base: Path = Path()
    earlier: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """The policy in a YAML, JSON or TOML file; raises InputError with every finding."""
        path = Path(path)
        return cls.from_dict(_read(path), base=path.parent)

    @classmethod
    def from_dict(cls, content: dict[str, Any], base: str | Path = ".") -> Policy:
        """A policy from plain dicts; raises InputError with every finding."""
        try:
            policy = cls(PolicyModel.model_validate(content), Path(base))
        except ValidationError as invalid:
            raise InputError.from_findings(
                [_finding(error, PolicyModel) for error in invalid.errors()]
            ) from None
        findings = policy._contradictions()
        if findings:
            raise InputError.from_findings(findings)
        return policy

    @classmethod
    def of(cls, policy: Policy | str | Path | dict[str, Any]) -> Policy:
        """The policy itself, or the one in a file or in plain dicts."""
        if isinstance(policy, (str, Path)):
            return cls.load(policy)
        if isinstance(policy, dict):
            return cls.from_dict(policy)
        if not isinstance(policy, Policy):
            raise InputError(
                "policy: is no policy; give a Policy, the path of one, or its content as dicts"
            )
        return policy

    @property
    def files(self) -> list[str]:
        """The hierarchy, population and reference tables that it reads."""
        named = [self.model.reference, *(a.hierarchy for a in self.model.attributes.values())]
        return [
            str(self.base / name)
            for name in (*named, *self._population_names)
            if isinstance(name, str)
        ]

    @property
    def _population_names(self) -> list[str]:
        named = [promise.get("population") for promise in self.model.promises]
        return sorted({name for name in named if isinstance(name, str) and name})

    @cached_property
    def populations(self) -> dict[str, Table]:
        """The tables of the population that promises compare with, by the name that the policy
        gives.
        """
        return {
            name: Table(files.read(str(self.base / name), self.quasi).frame)
            for name in self._population_names
        }

    @property
    def reference(self) -> str | None:
        """The table that a stream is compared with; its path from here."""
        return None if self.model.reference is None else str(self.base / self.model.reference)

    @cached_property
    def reference_table(self) -> Table | None:
        return None if self.reference is None else Table(files.read(self.reference).frame)

    def with_reference(self, path: str | None) -> Policy:
        """The same policy with another reference, if one is given; path: from here."""
        return self if path is None else self._with(reference=str(Path(path).resolve()))

    @property
    def quasi(self) -> list[str]:
        return [name for name, a in self.model.attributes.items() if a.role == "quasi"]

    def with_k(self, k: int) -> Policy:
        """The same policy with another k: in its k-anonymity promises, or in a new one."""
        promises = [dict(promise) for promise in self.model.promises]
        for promise in promises:
            if "k" in promise and not promise.get("population"):
                promise["k"] = k
        if not any(promise["model"] == "k-anonymity" for promise in promises):
            promises.insert(0, {"model": "k-anonymity", "k": k})
        return self._with(promises=promises)

    def with_method(self, name: str | None, settings: Mapping[str, Any] | None = None) -> Policy:
        """The same policy with another method, or with some of its parameters changed."""
        if not isinstance(settings, Mapping | None):
            raise InputError("method: its parameters are a dict, such as {'cut': 'nearest'}")
        method = dict(self.model.method or {"name": DEFAULT_METHOD})
        if name is not None and name != method["name"]:
            method = {"name": name}
        return self._with(method=method | dict(settings or {}))

    def with_default_method(self, schema: Schema) -> Policy:
        """The same policy; where it names no method, with the one that loses less on such a table.

        Exchange between classes where t-closeness is asked; else lattice peeling where some
        quasi-identifier has a hierarchy of more than one step, else the rounded partition.
        """
        if self.model.method is not None:
            return self
        if any(promise["model"] == "t-closeness" for promise in self.model.promises):
            return self._with(method=dict(DEFAULT_FOR_CLOSENESS))
        stepped = any(a.hierarchy is not None and a.hierarchy.height > 1 for a in schema.quasi)
        return self._with(method={"name": DEFAULT_OVER_HIERARCHIES if stepped else DEFAULT_METHOD})

    def with_shuffled_rows(self) -> Policy:
        """The same policy; rows are shuffled unless it says otherwise, as releases of a series are."""
        if "order" in self.model.render.model_fields_set:
            return self
        return self._with(
            render=self.model.render.model_dump(exclude_unset=True) | {"order": "shuffled"}
        )

    def with_promises(self, promises: list[dict[str, Any]]) -> Policy:
        return self._with(promises=promises)

    def with_seed(self, seed: int) -> Policy:
        return self._with(seed=seed)

    def _with(self, **changes: Any) -> Policy:
        return Policy.from_dict(self.model.model_dump(exclude_unset=True) | changes, self.base)

    @property
    def method_name(self) -> str:
        return (self.model.method or {"name": DEFAULT_METHOD})["name"]

    @property
    def method_settings(self) -> dict[str, Any]:
        return {name: value for name, value in (self.model.method or {}).items() if name != "name"}

    def build_method(self, verb: str) -> Any:
        """The method with its parameters; raises InputError where it does not serve the verb, or
        can't show means.
        """
        if self._means and verb != "publish":
            raise InputError(
                f"attributes {_quoted(self._means)}: 'render' shows means of single tables; leave"
                f" it out for '{verb}'"
            )
        if self.model.reference is not None and verb != "stream":
            raise InputError(
                f"policy: 'reference' is what a stream is compared with; leave it out for '{verb}'"
            )
        found = registry.method(self.method_name, verb)
        return build(found.implementation, f"method '{found.name}'", self.method_settings)

    @property
    def _means(self) -> list[str]:
        """The attributes that show means."""
        return [name for name, a in self.model.attributes.items() if a.render != "range"]

    @property
    def recodes_globally(self) -> bool:
        """Whether it names a method that generalizes every value the same way in all records."""
        known = registry.methods().get(self.method_name) if self.model.method is not None else None
        return known is not None and known.recodes_globally

    @property
    def method_parameters(self) -> dict[str, Any]:
        """Every parameter of the method with the value that it takes."""
        return self.parameters_for("publish")

    def parameters_for(self, verb: str) -> dict[str, Any]:
        """Every parameter of the verb's method with the value that it takes."""
        method = self.build_method(verb)
        return {
            p.name: getattr(method, p.name)
            for p in registry.method(self.method_name, verb).parameters
        }

    def build_promises(self) -> list[Any]:
        """The promises, as measuring instruments."""
        return [_promise(promise) for promise in self.model.promises]

    @property
    def subject(self) -> str | None:
        """The column that names the person, None where every record is its own."""
        return self._with_role("subject")

    @property
    def operation(self) -> str | None:
        """The column that says what an increment does with a record, None where all are new."""
        return self._with_role("operation")

    def _with_role(self, role: str) -> str | None:
        return next((name for name, a in self.model.attributes.items() if a.role == role), None)

    @property
    def required_k(self) -> int | None:
        """The largest k of the k-anonymity promises; None without one."""
        return max(
            (model.k for model in self.build_promises() if model.model == "k-anonymity"),
            default=None,
        )

    def _contradictions(self) -> list[str]:
        """What no single field shows: roles, promises and attributes that don't fit each other."""
        attributes = self.model.attributes
        findings = []
        if sum(a.role == "subject" for a in attributes.values()) > 1:
            findings.append("policy: more than one subject; exactly one column names the person")
        if sum(a.role == "operation" for a in attributes.values()) > 1:
            findings.append(
                "policy: more than one operation; one column says what an increment does with its"
                " records"
            )
        if not any(a.role == "quasi" for a in attributes.values()):
            findings.append(
                "policy: no quasi-identifier; give at least one attribute the role 'quasi'"
            )
        if self.model.label is not None and self.model.label not in attributes:
            findings.append(
                "policy: 'label' names no attribute of the"
                f" policy{_or_near(self.model.label, attributes)}"
            )
        if self._means and self.recodes_globally:
            findings.append(
                f"method '{self.method_name}': recodes values, not classes: {_quoted(self._means)}"
                " can't show means; leave out 'render', or choose another method"
            )
        for promise in self.model.promises:
            findings += self._promise_findings(promise)
        return findings

    def _promise_findings(self, promise: dict[str, Any]) -> list[str]:
        try:
            built = _promise(promise)
        except InputError as unfit:
            return [str(unfit.args[0]), *unfit.findings]
        role = "quasi" if promise["model"] == "k-anonymity" else "sensitive"
        findings = []
        for name in built.attributes:
            if name not in self.model.attributes:
                hint = _or_near(name, self.model.attributes)
                findings.append(
                    f"promise '{promise['model']}': attribute '{name}' is not in the policy{hint}"
                )
            elif self.model.attributes[name].role != role:
                findings.append(
                    f"promise '{promise['model']}': attribute '{name}' must have the role '{role}'"
                )
        return findings

    # Binding to data

    def check_columns(self, names: list[str], released: bool = False) -> list[str]:
        """Columns of the data that the policy does not name, and the other way round."""
        declared = self.model.attributes
        if not set(declared) & set(names):
            # the names may be data: a table without a header
            return [
                f"columns: none of the {len(names)} names in the first line is in the policy; "
                "put a line that names the columns on top, or give the policy of this table"
            ]
        unknown = (
            [] if self.model.other is not None else [name for name in names if name not in declared]
        )
        shown = {"quasi", "sensitive", "plain"}
        absent = [
            name
            for name, a in declared.items()
            if name not in names and (not released or a.role in shown or a.pseudonym is not None)
        ]
        findings = []
        if unknown:
            findings.append(
                f"columns {_quoted(unknown)}: in the data, not in the policy;"
                f" {_renamed(unknown, absent)}name them under 'attributes', or say 'other: plain'"
                " or 'other: drop'"
            )
        if absent:
            others = [] if unknown else [name for name in names if name not in declared]
            findings.append(
                f"columns {_quoted(absent)}: in the policy, not in the data;"
                f" {_renamed(absent, others)}take them out or mend the name"
            )
        return findings

    def check_people(self, frame: pl.DataFrame) -> list[str]:
        """Why people of this table would not be known again in another: who is `1` there is `1.0`
        in decimals.
        """
        if self.subject is None or self.subject not in frame.columns:
            return []
        kind = frame.schema[self.subject]
        if not (kind.is_float() or (isinstance(kind, pl.Decimal) and kind.scale)):
            return []
        return [
            f"attribute '{self.subject}': names people by decimals, so that they can't be known"
            " again elsewhere; give whole numbers or text"
        ]

    def _unnamed_columns(self, table: Table) -> list[str]:
        """A finding where columns that the policy leaves to `other` are named like data: the header
        is missing.
        """
        rest = [name for name in table.names if name not in self.model.attributes]
        odd = looks_like_data(table, rest)
        if not odd:
            return []
        return [
            f"columns: {len(odd)} that the policy does not name have names that look like data; "
            "put a line that names the columns on top, or name these under 'attributes'"
        ]

    def unremoved_identifiers(self, released: Table, original: Table | None) -> list[str]:
        """Columns of a release that the policy removes, or names instead of giving pseudonyms.

        A subject column is left out of account: releases that still hold it are counted in people.
        """
        kept = []
        for name, attribute in self.model.attributes.items():
            if name not in released.names:
                continue
            if attribute.pseudonym is not None:
                given = set(released.column(name).cells)
                named = not all(PSEUDONYM.fullmatch(cell) for cell in given)
                if named or (original is not None and given & set(original.column(name).cells)):
                    kept.append(name)
            elif attribute.role in ("identifier", "drop", "time", "operation"):
                kept.append(name)
        return kept

    @property
    def audited_columns(self) -> list[str]:
        """The columns that classes and promises are made of."""
        return [
            name for name, a in self.model.attributes.items() if a.role in ("quasi", "sensitive")
        ]

    def bind(self, table: Table) -> tuple[Schema | None, list[str]]:
        """The schema of this table, with domains and hierarchies filled in; or every finding."""
        findings = (
            self.check_columns(table.names)
            or self._unnamed_columns(table)
            or self._population_gaps()
        )
        if findings:
            return None, findings
        attributes = []
        for name in table.names:
            attribute, found = self._bind_attribute(name, self._values_of(table, name))
            findings += found
            if attribute is not None:
                attributes.append(attribute)
        findings += self._mark_findings(attributes)
        return (None, findings) if findings else (self._schema(attributes), [])

    def bind_release(self, released: Table) -> tuple[Schema | None, list[str]]:
        """The schema of a released file whose original is not at hand.

        What only the original could tell stays open: a number without a declared domain has none,
        an order or hierarchy that follows the data is None.
        """
        findings = self.check_columns(released.names, released=True)
        if findings:
            return None, findings
        attributes = []
        for name in released.names:
            declared = self.model.attributes.get(name)
            opaque = declared is not None and declared.follows_the_data
            if declared is not None and declared.role == "sensitive":
                # published as it was, so it tells what it follows
                attribute, found = self._bind_attribute(name, released.column(name))
            else:
                attribute, found = self._bind_attribute(name, None, opaque=opaque)
            findings += found
            if attribute is not None:
                attributes.append(attribute)
        findings += self._mark_findings(attributes)
        return (None, findings) if findings else (self._schema(attributes), [])

    def bind_stream(self, names: list[str]) -> tuple[Schema | None, list[str]]:
        """The schema of a stream with these columns, known before its first record; or every
        finding.
        """
        findings = self.check_columns(names)
        attributes = []
        for name in names if not findings else ():
            found = self._unknown_beforehand(name)
            attribute, more = (None, []) if found else self._bind_attribute(name, None)
            findings += found + more
            if attribute is not None:
                attributes.append(attribute)
        findings += self._mark_findings(attributes)
        return (None, findings) if findings else (self._schema(attributes), [])

    def _unknown_beforehand(self, name: str) -> list[str]:
        """What a stream would have to have seen to its end: domains and hierarchies that follow the
        data.
        """
        declared = self.model.attributes.get(name)
        if declared is None or declared.role not in ("quasi", "sensitive"):
            return []
        before = f"attribute '{name}': a stream must know"
        if declared.follows_the_data:
            return [
                f"{before} every value before the first record; give a hierarchy table, a 'tree' or"
                " an 'order'"
            ]
        if declared.role == "quasi" and declared.hierarchy is None:
            if declared.kind is Kind.NUMBER and declared.domain is None:
                return [f"{before} its least and greatest value; declare its 'domain'"]
            if declared.kind is Kind.CATEGORY:
                return [
                    f"{before} its values; give a hierarchy table, or list them: 'hierarchy:"
                    " {tree: [...]}'"
                ]
        return []

    def _mark_findings(self, attributes: list[Attribute]) -> list[str]:
        """The suppression mark must mean suppression and nothing else."""
        mark, (head, middle, tail) = self.model.render.suppressed, self._render.parts
        findings = []
        for a in attributes:
            tree = a.hierarchy
            node = tree.node_of_label(mark) if tree is not None and a.role is Role.QUASI else -1
            is_label = mark in (a.order or ()) or (
                tree is not None and node >= 0 and node != tree.root
            )
            if a.role is Role.QUASI and is_label:
                findings.append(
                    f"attribute '{a.name}': the suppression mark is one of its labels; choose"
                    " another mark"
                )
        if (
            len(mark) > len(head + middle + tail)
            and mark.startswith(head)
            and mark.endswith(tail)
            and middle in mark
        ):
            findings.append(
                "render: the suppression mark reads like an interval; choose another mark"
            )
        return findings

    @property
    def _render(self) -> Render:
        return Render(
            self.model.render.intervals, self.model.render.suppressed, self.model.render.order
        )

    def _schema(self, attributes: list[Attribute]) -> Schema:
        model = self.model
        sensitive = [
            a.name for a in attributes if a.role is Role.SENSITIVE and a.kind is not Kind.NUMBER
        ]
        label = model.label or (sensitive[0] if len(sensitive) == 1 else None)
        return Schema(
            tuple(attributes),
            Missing(model.missing),
            tuple(model.missing_values),
            self._render,
            label,
        )

    def _values_of(self, table: Table, name: str) -> Column | None:
        """The column that tells a domain, order or made hierarchy; the population's values are
        among them.
        """
        declared = self.model.attributes.get(name)
        if declared is None or declared.role not in ("quasi", "sensitive"):
            return None
        others = self.populations.values() if declared.role == "quasi" else ()
        return reduce(
            lambda column, other: column.joined(other.column(name)), others, table.column(name)
        )

    def _population_gaps(self) -> list[str]:
        """Quasi-identifiers that a table of the population lacks."""
        return [
            f"population '{table}': has no column '{name}', a quasi-identifier; add it"
            for table, frame in self.populations.items()
            for name in self.quasi
            if name not in frame.names
        ]

    def _bind_attribute(
        self, name: str, column: Column | None, opaque: bool = False
    ) -> tuple[Attribute | None, list[str]]:
        declared = self.model.attributes.get(name) or AttributePolicy.model_validate(
            {"role": self.model.other}
        )
        try:
            hierarchy = None if opaque else self._hierarchy(name, declared, column)
        except InputError as broken:
            return None, [str(broken.args[0]), *broken.findings]
        if (
            isinstance(declared.hierarchy, dict)
            and "prefix" in declared.hierarchy
            and column is not None
        ):
            lengths = {len(cell) for cell in column.cells if self.is_value(cell)}
            if column.was_number and len(lengths) > 1:
                return None, [
                    f"attribute '{name}': a prefix hierarchy over a column of numbers, which lost"
                    " their leading zeros; read the column as text"
                ]
        attribute = Attribute(
            name,
            Role(declared.role),
            declared.kind,
            declared.domain,
            self._order(declared, column),
            hierarchy,
            declared.weight,
            declared.pseudonym,
            opaque,
            Shown(declared.render),
        )
        if (
            attribute.kind is Kind.NUMBER
            and attribute.domain is None
            and hierarchy is None
            and column is not None
        ):
            attribute = dataclasses.replace(attribute, domain=self._observed_domain(column))
        return attribute, []

    def _observed_domain(self, column: Column) -> tuple[float, float] | None:
        values = parse_numbers(column.cells)
        values = values[np.isfinite(values)]
        return (float(values.min()), float(values.max())) if len(values) else None

    def _order(self, declared: AttributePolicy, column: Column | None) -> tuple[str, ...] | None:
        if isinstance(declared.order, list):
            return tuple(declared.order)
        if declared.order is None or column is None:
            return None
        present = [
            (cell, int(n))
            for cell, n in zip(column.cells, column.counts(), strict=True)
            if self.is_value(cell)
        ]
        if declared.order == "frequency":
            present.sort(key=lambda pair: (-pair[1], pair[0]))
        return tuple(cell for cell, _ in present)

    def is_value(self, cell: str) -> bool:
        """Whether a cell holds a value: the texts for missing values and the suppression mark
        don't.
        """
        return cell not in self.model.missing_values and cell != self.model.render.suppressed

    def _hierarchy(
        self, name: str, declared: AttributePolicy, column: Column | None
    ) -> Hierarchy | None:
        """The attribute's tree; every category among the quasi-identifiers has one."""
        if declared.role not in ("quasi", "sensitive"):
            return None
        values = (
            np.array([cell for cell in column.cells if self.is_value(cell)], dtype=object)
            if column
            else np.array([])
        )
        if isinstance(declared.hierarchy, str):
            return read_hierarchy(self.base / declared.hierarchy, name)
        if isinstance(declared.hierarchy, dict):
            return _made(name, declared.hierarchy, values, column)
        if declared.role == "quasi" and declared.kind is Kind.CATEGORY and column is not None:
            return Flat(root=self.model.render.suppressed).make(values)
        return None


def _promise(promise: dict[str, Any]) -> Any:
    known = registry.models()
    model = promise["model"]
    if model not in known:
        hint = suggestion(model, known)
        raise InputError(
            f"promise '{model}': unknown model; {hint}choose one of {', '.join(known)}"
        )
    return build(
        known[model], f"promise '{model}'", {k: v for k, v in promise.items() if k != "model"}
    )


def looks_like_data(table: Table, names: list[str]) -> list[str]:
    """Those columns whose name is a number or also stands in one of their cells."""
    numeric = np.isfinite(parse_numbers(tuple(names))) if names else []
    return [
        n
        for n, is_number in zip(names, numeric, strict=True)
        if is_number or n in table.column(n).cells
    ]


def _made(name: str, spec: dict[str, Any], values: np.ndarray, column: Column | None) -> Hierarchy:
    """The hierarchy that a maker makes of these values; raises InputError with rows it has no place
    for.
    """
    ((kind, argument),) = spec.items()
    try:
        maker = MAKERS[kind].from_spec(argument)
        unfit = (
            np.isin(column.cells, values[maker.values_without_leaf(values)])
            if column is not None
            else np.zeros(0, dtype=bool)
        )
        if column is not None and unfit.any():
            (finding,) = values_without_leaf(
                maker, name, np.array(column.cells, dtype=object)[unfit], column.counts()[unfit]
            )
            rows = ", ".join(str(row + 1) for row in column.rows_of(unfit))
            message = finding.message.removeprefix(f"attribute '{name}': ")
            raise InputError(f"{message} (row {rows})")
        return maker.make(values)
    except InputError as wrong:
        raise InputError(f"attribute '{name}': {wrong.args[0]}", wrong.findings) from None


_UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _or_near(name: str, known: Iterable[str]) -> str:
    """The question whether another name was meant, behind a finding."""
    return f"; {hint.rstrip()}" if (hint := suggestion(name, known)) else ""


def _renamed(names: list[str], others: list[str]) -> str:
    """The question whether some names stand for others; nothing where none is near."""
    near = [f"'{other}' for '{name}'" for name in names if (other := nearest(name, others))]
    return f"did you mean {', '.join(near)}? " if near else ""


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
