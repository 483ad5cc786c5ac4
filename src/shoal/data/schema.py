"""What every column of a table is for, and which values it may hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np
import polars as pl

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.table import places_in


class Role(StrEnum):
    """What a column is for; decides whether and how it is published."""

    IDENTIFIER = "identifier"  # removed, or replaced by a keyed pseudonym
    SUBJECT = "subject"  # the person that k counts; removed
    QUASI = "quasi"  # an attacker could know it; generalized
    SENSITIVE = "sensitive"  # an attacker wants it; published as it is
    PLAIN = "plain"  # neither; published as it is
    TIME = "time"  # arrival in a stream; removed
    OPERATION = "operation"  # insert, update or delete, in an increment; removed
    WEIGHT = "weight"  # people of the population whom the record stands for; removed
    HOUSEHOLD = "household"  # who lives together; removed, or replaced by a keyed pseudonym
    DROP = "drop"  # removed


REMOVED: tuple[str, ...] = tuple(
    role for role in Role if role not in (Role.QUASI, Role.SENSITIVE, Role.PLAIN)
)
"""The roles whose columns are not published, unless it is as pseudonyms."""


class Kind(StrEnum):
    """How the values of a column relate to each other."""

    NUMBER = "number"
    ORDINAL = "ordinal"
    CATEGORY = "category"


class Shown(StrEnum):
    """What a class publishes of a quasi-identifier; modes of any kind, the others of numbers."""

    RANGE = "range"  # its least and greatest value
    MEAN = "mean"  # its mean alone (microaggregation)
    BOTH = "both"  # its mean, then its range
    MEDIAN = "median"  # the lower median alone
    MODE = "mode"  # the most frequent value alone, the least of several

    @property
    def hides_span(self) -> bool:
        """Whether one value stands for all, so that a cell need not cover the truth."""
        return self not in (Shown.RANGE, Shown.BOTH)


class Missing(StrEnum):
    """The one rule for missing quasi-identifiers."""

    VALUE = "value"  # a category of its own, which only the whole attribute generalizes
    SUPPRESS = "suppress"  # the record is suppressed
    REJECT = "reject"  # an error


@dataclass(frozen=True)
class Attribute:
    """One column.

    domain: least and greatest value a number may take. order: labels of an ordinal, least first.
    hierarchy: tree of a category, or of a number's or ordinal's labels; a quasi-identifier that is
    neither a number nor an ordinal always has one once it is bound to data (at worst value, `*`).
    shown: what a class publishes of a number that has no hierarchy. round: its intervals end at
        multiples of this, or at the ends of its domain. is_code: of a number, whether any two
        values lie equally far apart.
    is_weight: whether it tells how many people of the population a record stands for.
    opaque: its hierarchy follows from the original data, which is not at hand; widths can't be
    told.
    """

    name: str
    role: Role
    kind: Kind = Kind.CATEGORY
    domain: tuple[float, float] | None = None
    order: tuple[str, ...] | None = None
    hierarchy: Hierarchy | None = None
    weight: float = 1.0
    pseudonym: str | None = None
    opaque: bool = False
    shown: Shown = Shown.RANGE
    round: float | None = None
    is_weight: bool = False
    is_code: bool = False

    def places(self, texts: pl.Series | Sequence[str]) -> np.ndarray:
        """(n,) float64, the leaf or the place in the order of each text, NaN for none."""
        tree, order = self.hierarchy, self.order or ()
        codes = places_in(order, texts) if tree is None else tree.leaf_codes(texts)
        return np.where(codes < 0, np.nan, codes)


@dataclass(frozen=True)
class Render:
    """How a published cell is written. missing: texts for no value that look like numbers."""

    intervals: str = "[{lo}, {hi}]"
    suppressed: str = "*"
    order: str = "content"
    missing: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[str, str, str]:
        """What stands before, between and after the two ends of an interval."""
        head, rest = self.intervals.split("{lo}")
        middle, tail = rest.split("{hi}")
        return head, middle, tail


@dataclass(frozen=True)
class Schema:
    """All columns in the order of the input, and the rules that hold for the whole table."""

    attributes: tuple[Attribute, ...]
    missing: Missing = Missing.VALUE
    missing_values: tuple[str, ...] = ("",)
    render: Render = Render()
    label: str | None = None

    def is_value(self, cell: str) -> bool:
        """Whether a cell holds a value: not a text for a missing one, nor the suppression mark."""
        return cell not in self.missing_values and cell != self.render.suppressed

    def with_role(self, *roles: Role) -> tuple[Attribute, ...]:
        return tuple(a for a in self.attributes if a.role in roles)

    @property
    def quasi(self) -> tuple[Attribute, ...]:
        return self.with_role(Role.QUASI)

    @property
    def sensitive(self) -> tuple[Attribute, ...]:
        return self.with_role(Role.SENSITIVE)

    @property
    def no_names(self) -> list[str]:
        """The texts that name no person: those for no value, and the suppression mark."""
        return [*self.missing_values, self.render.suppressed]

    @property
    def subject(self) -> Attribute | None:
        return next(iter(self.with_role(Role.SUBJECT)), None)

    @property
    def weight(self) -> Attribute | None:
        """The column that tells how many people of the population a record stands for."""
        return next((a for a in self.attributes if a.is_weight), None)

    @property
    def household(self) -> Attribute | None:
        return next(iter(self.with_role(Role.HOUSEHOLD)), None)

    @property
    def published(self) -> tuple[Attribute, ...]:
        """The columns of a release, in order."""
        return tuple(a for a in self.attributes if a.role not in REMOVED or a.pseudonym is not None)

    @cached_property
    def _by_name(self) -> dict[str, Attribute]:
        return {a.name: a for a in self.attributes}

    def __getitem__(self, name: str) -> Attribute:
        return self._by_name[name]


RECORD_LINES = 100
"""Lines that a record of CSV in a feed may have, if nothing else is asked."""


@dataclass(frozen=True)
class Fields:
    """What a policy says of the records of a feed, whatever the first of them has.

    named: the columns that it names. needed: those without which a record is set aside. other: what
    it does with all others. people: those that name the person. record_lines: how many lines a
    record of CSV may have.
    """

    named: tuple[str, ...] = ()
    needed: frozenset[str] = frozenset()
    other: str | None = None
    people: frozenset[str] = frozenset()
    record_lines: int = RECORD_LINES

    def names(self, first: list[str]) -> list[str]:
        """The columns of a stream: those of its first record and, if that has any, the policy's."""
        if not set(first) & set(self.named):
            return first  # another table's policy
        kept = [name for name in first if name in self.named or self.other != "drop"]
        return kept + [name for name in self.named if name in self.needed and name not in first]


# What all owners of a fusion know of an attribute and of a quasi-identifier beforehand.
#
# An attribute is a row of *cells* 0..m-1: the leaves of a hierarchy in depth-first order, or the
# points of a number's grid. A node is a span of cells, and a specialization is where its children
# start.


Span = tuple[int, int]
"""First and last cell of a node."""


@dataclass(frozen=True)
class Taxonomy:
    """The public part of an attribute: how many cells it has, and the children of its nodes.

    children: node -> first cells of its children, ascending. is_number: whether nodes without
    children are split in two where the data says.
    """

    cells: int
    children: Mapping[Span, np.ndarray] = field(default_factory=dict)
    is_number: bool = False

    @classmethod
    def of_tree(cls, hierarchy: Hierarchy) -> "Taxonomy":
        starts_below: dict[int, list[int]] = {}
        for node, parent in enumerate(hierarchy.parent.tolist()):
            if parent >= 0:
                starts_below.setdefault(parent, []).append(int(hierarchy.first[node]))
        children = {}
        for node, starts in starts_below.items():
            span = (int(hierarchy.first[node]), int(hierarchy.last[node]))
            children[span] = np.array(sorted(starts))
        return cls(hierarchy.leaves, children)

    @property
    def root(self) -> Span:
        return 0, self.cells - 1


@dataclass(frozen=True)
class IndexedRequirement:
    """A QID, attributes by number: how many people must share each combination of values."""

    attributes: tuple[int, ...]
    k: int
