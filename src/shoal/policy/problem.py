"""Where a policy ends: what it asks of data whose columns are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shoal.data.notation import Notation
from shoal.data.schema import Schema
from shoal.data.table import Table
from shoal.policy.binding.files import PolicyTables
from shoal.policy.policy import Policy


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

    def role_of(self, name: str) -> str:
        """What a column of the table is for, be it declared or not."""
        return self.policy.role_of(name)

    def again(self, policy: Policy) -> Problem:
        """Another policy's question about the same columns."""
        return self if policy is self.policy else Problem(self.schema, policy)

    # How it is solved: by the policy's method of publishing one table.

    @property
    def method_name(self) -> str:
        return self.policy.method_name

    @property
    def method_parameters(self) -> dict[str, Any]:
        """Every parameter of the method with the value that it takes."""
        return self.policy.method_parameters

    def build_method(self) -> Any:
        """The method with its parameters; raises InputError where it does not serve a table."""
        return self.policy.build_method("publish")
