"""Where a policy ends: what it asks of data whose columns are known."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from shoal.data.certificate_shape import MethodReport
from shoal.data.encoding import EncodedTable
from shoal.data.linked import ANCHOR, PEOPLE, Anchor, Keys, TableTree
from shoal.data.numbers import Notation
from shoal.data.option import takes
from shoal.data.regular_files import Json
from shoal.data.schema import Schema
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.binding.files import PolicyTables
from shoal.policy.linked import DeclaredTable, declared_tables
from shoal.policy.model import AttributePolicy, PolicyModel
from shoal.policy.policy import (
    DEFAULT_FOR_CLOSENESS,
    DEFAULT_FOR_SAMPLES,
    DEFAULT_METHOD,
    DEFAULT_OVER_HIERARCHIES,
    Policy,
)

PEELED_RECORDS = 200_000  # larger tables over orders are cut: that takes less time
MANY_EQUAL, SOME_EQUAL = 0.5, 0.7  # shares of distinct records below which peeling loses less,
LARGE_K = 25  # the second from this k on, or where more than k is promised;
MOST_EQUAL, MANY_RECORDS = 0.45, 50_000  # the first of many records, as exchanges then look farther


@dataclass(frozen=True)
class Problem:
    """What has to hold of a release with these columns, and how it is written.

    policy: for who hashes it or states it, and to ask the question anew with other numbers.
    """

    schema: Schema
    policy: Policy

    @property
    def tables(self) -> PolicyTables:
        """Its tables, as the policy says that they are written."""
        return self.policy.tables

    @cached_property
    def promises(self) -> tuple[Any, ...]:
        """The promises, as measuring instruments."""
        return tuple(self.policy.build_promises())

    @property
    def required_k(self) -> int | None:
        """The largest k of the k-anonymity promises; None without one."""
        return self.policy.required_k

    @property
    def compares_with_input(self) -> bool:
        """Whether suppressed records count in what classes are compared with."""
        return any(model.compares_with_input for model in self.promises)

    @property
    def seed(self) -> int:
        return self.policy.model.seed

    @property
    def quasi(self) -> list[str]:
        """The quasi-identifiers, in the order in which the policy names them."""
        return self.policy.quasi

    @property
    def audited_columns(self) -> list[str]:
        """The columns that classes and promises are made of."""
        return self.policy.model.audited_columns

    @property
    def subject(self) -> str | None:
        """The column that names the person, in the data or not; None where records are people."""
        return self.policy.subject

    @property
    def earlier(self) -> Mapping[str, Mapping[str, int]]:
        """How often values of a growing table are published already, by sensitive attribute."""
        return self.policy.earlier

    @property
    def reference_table(self) -> Table | None:
        """What t-closeness of a stream is compared with."""
        return self.policy.reference_table

    @property
    def is_in_two_tables(self) -> bool:
        """Whether sensitive values are published apart, by group."""
        return self.policy.is_in_two_tables

    @property
    def notation(self) -> Notation:
        """How numbers and dates of a release are written."""
        return self.policy.notation.written

    def require_promised(self, quasi: Iterable[str]) -> None:
        """Raises InputError where one of these is in no promise: a cut would publish it raw."""
        if any(one.model != "k-anonymity" or not one.attributes for one in self.promises):
            return
        promised = {name for promise in self.promises for name in promise.attributes}
        findings = [
            f"attribute '{name}': is a quasi-identifier and in no k-anonymity promise, so it would"
            " be published as it is; add it to a promise, or give it the role 'plain'"
            for name in quasi
            if name not in promised
        ]
        InputError.raise_for(findings)

    def role_of(self, name: str) -> str:
        """What a column of the table is for, be it declared or not."""
        return self.policy.role_of(name)

    def again(self, policy: Policy) -> "Problem":
        """Another policy's question about the same columns."""
        return self if policy is self.policy else Problem(self.schema, policy)

    # How it is solved: by the policy's method of publishing one table.

    def with_default_method(self, encoded: EncodedTable) -> "Problem":
        """The problem; where nobody named a method, with the one that loses less on such a table.

        `risk` where a promise is about a sample; exchange between classes where t-closeness is
        asked; else lattice peeling where some quasi-identifier has a hierarchy of more than one
        step or many records are equal, else the rounded partition. What was set has to fit.
        """
        policy, settings = self.policy, self.policy.method_settings
        if policy.names_method:
            return self
        usual = self._usual_method(encoded)
        if not takes(registry.method(usual["name"], "publish").parameters, settings):
            return self
        return self.again(policy.with_method(usual["name"], usual | settings))

    def _usual_method(self, encoded: EncodedTable) -> dict[str, str]:
        if any(promise.of_sample for promise in self.promises):
            return {"name": DEFAULT_FOR_SAMPLES}
        if any(promise.model == "t-closeness" for promise in self.promises):
            return DEFAULT_FOR_CLOSENESS
        stepped = any(a.hierarchy is not None and a.hierarchy.height > 1 for a in self.schema.quasi)
        peels = stepped or self._finds_equal(encoded)
        return {"name": DEFAULT_OVER_HIERARCHIES if peels else DEFAULT_METHOD}

    def _finds_equal(self, encoded: EncodedTable) -> bool:
        """Whether groups of equal records lose less than even cuts, as many records are equal:
        measured on five tables over orders (`benchmarks/refinement.py`).
        """
        if encoded.records > PEELED_RECORDS or not encoded.attributes:
            return False
        asks_more = any(promise.model != "k-anonymity" for promise in self.promises)
        if asks_more or (self.required_k or 0) >= LARGE_K:
            return encoded.distinct_share < SOME_EQUAL
        share = MANY_EQUAL if encoded.records <= MANY_RECORDS else MOST_EQUAL
        return encoded.distinct_share < share

    @property
    def method_name(self) -> str:
        return self.policy.method_name

    @property
    def method_parameters(self) -> Mapping[str, Any]:
        """Every parameter of the method with the value that it takes."""
        return self.policy.parameters_for("publish")

    def stated_method(self, search_statistics: Mapping[str, Any] | None = None) -> MethodReport:
        """The method as a certificate states it, with what its search found, if anything."""
        stated = MethodReport(name=self.method_name, parameters=self.method_parameters)
        if search_statistics:
            stated["search_statistics"] = dict(search_statistics)
        return stated

    def build_method(self) -> Any:
        """The method with its parameters; raises InputError where it does not serve a table."""
        return self.policy.build_method("publish")


@dataclass(frozen=True)
class LinkedProblem:
    """What has to hold of linked tables: of all together, and of each by itself.

    policy: for who hashes it or states it, and of which each table's own is made.
    """

    policy: Policy

    @property
    def model(self) -> PolicyModel:
        return self.policy.model

    @cached_property
    def declared(self) -> list[DeclaredTable]:
        """All tables and sets, as `declared_tables` orders them."""
        return declared_tables(self.model)

    @property
    def given(self) -> list[DeclaredTable]:
        """The tables that come in a file or a frame; the others are sets in cells of them."""
        return [table for table in self.declared if table.separator is None]

    def alone(self, table: DeclaredTable) -> Policy:
        """The policy of one table by itself: its links and sets are columns that are removed."""
        removed = AttributePolicy.model_validate({"role": "identifier"})
        links = [table.link, *([] if table.parent is None else [table.key]), *table.sets]
        attributes = dict.fromkeys([name for name in links if name is not None], removed)
        kept = {name: a for name, a in table.attributes.items() if name not in attributes}
        if table.parent is not None:  # `role: subject` says whose row it is, and is checked beside
            kept = {name: removed if a.role == "subject" else a for name, a in kept.items()}
        elif self.model.anchor is not None:
            kept[ANCHOR] = AttributePolicy.model_validate({"role": "quasi", "type": "number"})
        alone = self.model.model_copy(
            update={
                "attributes": attributes | kept,
                "promises": self.promises_of(table),
                "read": self.model.read.of_table(table.name),
                "tables": {},
                "anchor": None,
                "method": None,
            }
        )
        return replace(self.policy, model=alone, links=tuple(attributes))

    def promises_of(self, table: DeclaredTable) -> list[Json]:
        """The promises about columns of one table alone, named as they are in it."""
        return [own for promise in self.model.promises if (own := table.own(promise)) is not None]

    def tree(self, schemas: Mapping[str, Schema]) -> TableTree:
        """The tree of tables whose columns are bound. schemas: by table."""
        anchor = None
        if (given := self.model.anchor) is not None:
            table, _, column = given.first.rpartition(".")
            is_exact, keeps = given.gaps == "exact", given.keep == "weekday"
            anchor = Anchor(table or PEOPLE, column, is_exact, keeps)
        return TableTree(
            tuple(table.linked(schemas[table.name]) for table in self.declared),
            anchor,
            Keys(self.model.keys),
            {table.name: table.dates for table in self.declared if table.dates},
        )
