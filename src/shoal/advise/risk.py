"""The risk in a table as it stands: how many people look like how many, by what others could know.

Everything is counted, in people. What a column gives away is measured by leaving it out: one
counting for each column, never one for each set of columns.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import eq, ne
from typing import Any

import numpy as np
import polars as pl

from shoal.advise.special_uniques import SpecialUniques, alone_in, special_uniques
from shoal.auditor.linked.labels import Exposure, exposures, view_of
from shoal.connectors.files import write_table
from shoal.connectors.linked_tables import LinkedSource
from shoal.data import notebook, person_names
from shoal.data.certificate_shape import SampleReport
from shoal.data.classes import Classes, Sample, encode_sample
from shoal.data.encoding import without_subject
from shoal.data.linked import LinkedTables
from shoal.data.numbers import parse_numbers
from shoal.data.option import require_whole
from shoal.data.progress import Progress, no_progress, tell
from shoal.data.schema import Attribute, Role, Schema
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.columns import check_columns
from shoal.policy.binding.files import Source
from shoal.policy.binding.linked import bound_linked, read_linked
from shoal.policy.model import PolicyModel
from shoal.policy.policy import Policy, PolicyLike
from shoal.policy.problem import LinkedProblem
from shoal.privacy.reidentification import people_and_weights, risks_of_people, sample_report

SCHEMA = "shoal.risk/1"


@dataclass(frozen=True, repr=False)
class Risk(notebook.Figures):
    """Who hides among how many in a table, by its quasi-identifiers; no value of it.

    unit: `people`, or `records` where each is taken to be a person. k: the policy's, None without
    one. sets: people by the size of the set they hide in, ascending; of a person's records, the
    most exposed one counts. alone: people whom a column singles out by itself; of linked tables,
    with the known numbers of rows, which alone single out alone_by_counts. without: lone people who
    remain if a column were not known. if_known: lone people if others knew a column that is
    harmless by its role, too. exposed: of linked tables, how many people hide among fewer than k by
    what is known of which table. special: the smallest sets of columns that single people out, and
    scores by them; None where it was not asked. records: by figure, (rows,) in the order of the
    table without rows that have no value, private: how many people are `alike` by what the row
    shows, whom they `stand_for` by the weights of a sample, and of the row's person the `score`
    (SUDA), individual `risk` and `household_risk`. individual_risk: of a sample, the risk of
    everybody, as a certificate has it. alone_by_weight:
    (lone,) float64, that of those who are alone.
    """

    rows: int
    people: int
    unit: str
    quasi: tuple[str, ...]
    k: int | None
    sets: Mapping[int, int]
    alone: Mapping[str, int]
    without: Mapping[str, int]
    if_known: Mapping[str, int]
    exposed: tuple[Exposure, ...] = ()
    alone_by_counts: int | None = None
    special: SpecialUniques | None = None
    records: Mapping[str, np.ndarray] = field(default_factory=dict)
    individual_risk: SampleReport | None = None
    alone_by_weight: np.ndarray | None = None

    def _figures(self) -> Mapping[str, object]:
        return {"lone": self.lone, **notebook.figures_of(self)}

    def _repr_html_(self) -> str:
        """Who is alone, and by which column, for a notebook."""
        rows = [(name, self.alone[name], self.without[name]) for name in self.quasi]
        return notebook.section(
            notebook.sentence(f"{self.lone} of {self.people} {self.unit} are alone."),
            notebook.table(("column", "alone by it", "alone without it"), rows),
        )

    @property
    def lone(self) -> int:
        """People whom nobody else looks like."""
        return self.sets.get(1, 0)

    def share(self, people: int) -> float:
        """These of all people."""
        require_whole("people", people, 0)
        return people / self.people if self.people else 0.0

    def share_alone(self, name: str) -> float | None:
        """People whom a column singles out by itself; None of one that others do not know."""
        return self.share(self.alone[name]) if name in self.alone else None

    def share_added(self, name: str) -> float | None:
        """People whom all columns single out and all but this one don't."""
        if name not in self.without:
            return None
        return self.share(self.lone) - self.share(self.without[name])

    def below(self, k: int) -> int:
        """People who hide among fewer than k, themselves counted."""
        require_whole("k", k, 1)
        return sum(people for size, people in self.sets.items() if size < k)

    def hidden(self, k: int) -> int:
        """People who hide among k or more already."""
        return self.people - self.below(k)

    def most_classes(self, k: int) -> int:
        """More classes of k people than this no release can have."""
        require_whole("k", k, 1)
        return self.people // k

    def write_records(self, path: str) -> None:
        """Writes `records` to a private file, in the format of its name; raises InputError."""
        write_table(pl.DataFrame(self.records), path, is_private=True)

    def to_dict(self) -> dict[str, Any]:
        """All figures but those of single records, as JSON can hold them."""
        found = {
            "schema": SCHEMA,
            "rows": self.rows,
            "people": self.people,
            "unit": self.unit,
            "quasi": list(self.quasi),
            "k": self.k,
            "lone": self.lone,
            "below_k": None if self.k is None else self.below(self.k),
            "most_classes": None if self.k is None else self.most_classes(self.k),
            "sets": [{"size": size, "people": people} for size, people in self.sets.items()],
            "columns": {
                name: {"alone": self.alone[name], "without": self.without[name]}
                for name in self.quasi
            },
            "if_known": dict(self.if_known),
            "exposed": [one._asdict() for one in self.exposed] or None,
            "alone_by_counts": self.alone_by_counts,
            "special": None if self.special is None else self.special.to_dict(),
            "individual_risk": self.individual_risk,
            "alone_by_weight": self._named(),
        }
        return {name: value for name, value in found.items() if value is not None or name == "k"}

    def _named(self) -> dict[str, float | None] | None:
        """How likely who is alone is re-identified in the population, by the sample's weights."""
        risks = self.alone_by_weight
        if risks is None:
            return None
        if not len(risks):
            return {"mean": None, "max": None}
        return {"mean": float(risks.mean()), "max": float(risks.max())}


def risk(
    source: "Source | LinkedSource",
    policy: PolicyLike,
    *,
    further: Mapping[str, str] | None = None,
    special: bool = True,
    read: Mapping[str, Any] | None = None,
    progress: Progress = no_progress,
) -> Risk:
    """Who hides among how many in a table, by the quasi-identifiers of a policy.

    source: a file's path or a frame; of linked tables (a policy with `tables`) as in `shoal.audit`,
    and further ones by name. special: whether the smallest sets of columns of one table that single
    people out are looked for, too. read: as of `shoal.audit`. Counted in people
    where the policy has a subject. Hierarchies of one table need not fit yet, and questions may be
    open. Raises InputError where the columns don't fit.
    """
    policy = Policy.of(policy, read)
    if policy.model.is_linked:
        problem = LinkedProblem(policy)
        tables = bound_linked(read_linked(source, problem, further).tables, problem)
        return linked_risk(tables, policy.required_k, progress)
    if isinstance(source, Mapping):
        raise InputError("tables: several need a policy of linked tables; add 'tables' to it")
    table = policy.tables.read_source(source, progress)
    known = known_values(table, policy)
    found = table_risk(known.quasi, known.plain, known.people, policy.required_k, progress)
    if not special:
        return found
    keys = row_keys(known.quasi, found.rows)
    labels = np.unique(together(keys, found.rows), return_inverse=True)[1].reshape(-1)
    count = int(labels.max(initial=-1)) + 1
    sample = _sample(table, policy, known.people)
    classes = Classes(labels.astype(np.int32), count, known.people, sample=sample)
    found = replace(found, special=special_uniques(keys, known.people, progress))
    return _with_records(found, classes)


def _with_records(found: Risk, classes: Classes) -> Risk:
    """With the figures of every row, whose records with the same values are a class."""
    person = np.arange(found.rows) if classes.subjects is None else classes.subjects
    alike = classes.people()
    assert found.special is not None
    records = {"alike": alike[classes.labels], "score": found.special.scores[person]}
    if classes.sample is None:
        return replace(found, records=records)
    risks, stand_for = risks_of_people(classes), people_and_weights(classes)[1]
    records |= {"stand_for": stand_for[classes.labels], "risk": risks.own[person]}
    if classes.sample.households is not None:
        records["household_risk"] = risks.household[person]
    lone = np.unique(person[records["alike"] == 1])
    return replace(
        found,
        records=records,
        individual_risk=sample_report(classes),
        alone_by_weight=risks.own[lone],
    )


def linked_risk(tables: LinkedTables, k: int | None, progress: Progress = no_progress) -> Risk:
    """The risk of people by all of their rows in several tables."""
    names = [
        table.qualified(one.attribute.name)
        for table in tables.tree.tables
        for one in tables.rows[table.name].encoded.attributes
    ]
    progress("counting who hides among how many")
    view = view_of(tables)
    fewest = view.fewest_alike
    sizes, counts = np.unique(fewest, return_counts=True)

    def lone(knows: Callable[[str], bool]) -> int:
        return int((np.bincount(view_of(tables, knows).knowing_all.labels) == 1).sum())

    alone, without = {}, {}
    for number, name in enumerate(names):
        tell(progress, "counting who is alone", number, len(names))
        alone[name], without[name] = lone(partial(eq, name)), lone(partial(ne, name))
    return Risk(
        sum(one.count for one in tables.rows.values()),
        tables.people.count,
        "people",
        tuple(names),
        k,
        dict(zip(sizes.tolist(), counts.tolist(), strict=True)),
        alone,
        without,
        {},
        exposures(view, k or 2),
        lone(lambda _: False),
    )


def table_risk(
    quasi: Mapping[str, np.ndarray],
    plain: Mapping[str, np.ndarray],
    people: np.ndarray | None,
    k: int | None = None,
    progress: Progress = no_progress,
) -> Risk:
    """The risk of records by what others could know of them.

    quasi, plain: by column, (n,) codes, equal for values that look the same. people: (n,) whose
    record it is, numbered densely; None where each is its own person's.
    """
    records = len(next(iter({**quasi, **plain}.values()), ()))
    keys = row_keys({**quasi, **plain}, records)
    known = {name: keys[name] for name in quasi}
    every = together(known, records)
    progress("counting who hides among how many")
    sizes, counts = np.unique(smallest_sets(every, people), return_counts=True)
    alone, without, if_known = {}, {}, {}
    for number, (name, own) in enumerate(known.items()):
        tell(progress, "counting who is alone", number, len(known) + len(plain))
        alone[name] = singled_out(own, people)
        without[name] = singled_out(every ^ own, people)
    for number, name in enumerate(plain, len(known)):
        tell(progress, "counting who would be alone", number, len(known) + len(plain))
        if_known[name] = singled_out(every ^ keys[name], people)
    return Risk(
        records,
        int(counts.sum()),
        "records" if people is None else "people",
        tuple(quasi),
        k,
        dict(zip(sizes.tolist(), counts.tolist(), strict=True)),
        alone,
        without,
        if_known,
    )


def percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.1f} %"


def share_text(share: float) -> str:
    """A share in percent."""
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    return "below 0.1 %" if share < 0.001 else f"{min(100 * share, 99.9):.1f} %"


# Whom values single out, and how many people look like everybody: counted exactly, in people.
#
# A person is singled out by some columns if one of their records holds values there that no other
# person's record holds. Whoever has several records is as exposed as the most exposed of them.
#
# Each value of each column has a random number of 64 bits; the exclusive or over some columns, a
# record's key, stands for its values there. Two different rows have the same key by chance in one
# of 10^19 cases, so that no count shows it.


def value_keys(number: int, codes: np.ndarray) -> np.ndarray:
    """(n,) uint64, a random number for each value of a column (Steele and others, SplitMix64).

    number: the column's own, so that no two columns share random numbers.
    """
    values = np.arange(int(codes.max(initial=0)) + 1, dtype=np.uint64)
    z = (values + np.uint64(number << 40)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31)))[codes]


def row_keys(columns: Mapping[str, np.ndarray], records: int) -> dict[str, np.ndarray]:
    """By column, the (records,) uint64 numbers of its values."""
    assert all(len(codes) == records for codes in columns.values())
    return {name: value_keys(i, codes) for i, (name, codes) in enumerate(columns.items())}


def together(keys: Mapping[str, np.ndarray], records: int) -> np.ndarray:
    """(records,) uint64, the key of each record over all columns; of none, all are alike."""
    every = np.zeros(records, dtype=np.uint64)
    for column in keys.values():
        every ^= column
    return every


def singled_out(keys: np.ndarray, people: np.ndarray | None = None) -> int:
    """How many people have a record whose key no record of anybody else has.

    keys: (n,) uint64. people: (n,) whose record it is, numbered densely; None where each is its own
    person's.
    """
    if people is None:
        ordered = np.sort(keys)
        begins = np.append(np.append(True, ordered[1:] != ordered[:-1]), True)
        return int((begins[1:] & begins[:-1]).sum())
    return int((np.bincount(people[alone_in(keys, people)]) > 0).sum())


def smallest_sets(keys: np.ndarray, people: np.ndarray | None = None) -> np.ndarray:
    """For each person, how many people share a key with them: themselves, and others like them.

    Of the sets that a person's records are in, the smallest counts. (people,) int64.
    """
    if not len(keys):
        return np.zeros(0, dtype=np.int64)
    order = np.argsort(keys)
    ordered = keys[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    rows = np.diff(np.append(starts, len(keys)))
    if people is None:
        sizes = np.empty(len(keys), dtype=np.int64)
        sizes[order] = np.repeat(rows, rows)
        return sizes
    number = np.repeat(np.arange(len(rows), dtype=np.int64), rows)
    pairs = np.sort(number << 32 | people[order].astype(np.int64))
    pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])]
    sets, whose = pairs >> 32, pairs & 0xFFFFFFFF
    sizes = np.bincount(sets)[sets]
    smallest = np.full(int(people.max()) + 1, len(keys), dtype=np.int64)
    np.minimum.at(smallest, whose, sizes)
    return smallest


# What others could know of the people in a table, as codes: equal where it is the same to them.


@dataclass(frozen=True)
class KnownValues:
    """By column, (n,) codes. people: (n,) whose record it is; None where each is its own person's.

    plain: columns that are harmless by their roles, the policy's `other` ones too.
    """

    quasi: dict[str, np.ndarray]
    plain: dict[str, np.ndarray]
    people: np.ndarray | None


def known_values(table: Table, policy: Policy) -> KnownValues:
    """The table by the policy's roles, whether or not its hierarchies fit; raises InputError.

    Numbers are compared as numbers, and all texts for no value are one.
    """
    findings = check_columns(table.names, policy.tables)
    if not findings and not policy.quasi:
        findings = ["policy: no attribute is a quasi-identifier; say what others could know"]
    InputError.raise_for(findings)
    declared = policy.model.attributes
    roles = {
        name: declared[name].role if name in declared else policy.model.other
        for name in table.names
    }
    people = None
    if policy.subject is not None:
        column = table.column(policy.subject)
        InputError.raise_for(without_subject(column, policy.model.no_names))
        people = person_names.people_of(column).astype(np.int32)
    table.encode(name for name, role in roles.items() if role in ("quasi", "plain"))
    return KnownValues(
        {name: _compared(table, name, policy.model) for name, r in roles.items() if r == "quasi"},
        {name: _compared(table, name, policy.model) for name, r in roles.items() if r == "plain"},
        people,
    )


def _sample(table: Table, policy: Policy, people: np.ndarray | None) -> Sample | None:
    """Raises InputError with every weight and household that does not fit."""
    attributes = tuple(
        Attribute(name, Role(declared.role), is_weight=declared.is_weight)
        for name, declared in policy.model.attributes.items()
        if declared.is_weight or declared.role == "household"
    )
    missing = tuple(policy.model.missing_texts)
    schema = Schema(attributes, missing_values=missing, render=policy.render)
    sample, findings = encode_sample(table, schema, people)
    InputError.raise_for([finding.message for finding in findings])
    return sample


def _compared(table: Table, name: str, model: PolicyModel) -> np.ndarray:
    column = table.column(name)
    declared = model.attributes.get(name)
    cells: list[object] = list(column.cells)
    if declared is not None and declared.type == "number":
        numbers = parse_numbers(column.cells)
        cells = [c if np.isnan(x) else x for c, x in zip(cells, numbers.tolist(), strict=True)]
    missing = set(model.missing_texts)
    number: dict[object, int] = {}
    codes = [
        number.setdefault(None if text in missing else cell, len(number))
        for cell, text in zip(cells, column.cells, strict=True)
    ]
    return np.array(codes, dtype=np.int32)[column.codes]
