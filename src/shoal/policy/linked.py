"""What a policy says of several tables about the same people: their tree, and each by itself.

Every table is read and bound as if it were alone, under a policy of its own that says what its
columns are for; what belongs to what is said here.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import polars as pl

from shoal.data.linked import PEOPLE, Known, LinkedTable
from shoal.data.option import suggestion
from shoal.data.regular_files import Json
from shoal.data.schema import REMOVED, Schema, Shown
from shoal.data.table import Table, as_text
from shoal.policy.model import AttributePolicy, KnownRows, PolicyModel, RowsPolicy, TablePolicy

ROLES = ("identifier", "subject", "quasi", "sensitive", "plain", "drop")
DEFAULT_METHOD, DEFAULT_FOR_KNOWN_ROWS = "bundles", "items"
NAME = re.compile(r"[^\W_][\w -]*")  # files that begin with '_' are not read from a folder


@dataclass(frozen=True)
class DeclaredTable:
    """A table as a policy declares it; parent, link and separator as in `LinkedTable`."""

    name: str
    attributes: Mapping[str, AttributePolicy]
    parent: str | None = None
    link: str | None = None
    key: str | None = None
    rows: RowsPolicy = RowsPolicy.model_validate({})  # noqa: RUF009  it is frozen
    separator: str | None = None

    @property
    def sets(self) -> dict[str, AttributePolicy]:
        """Its columns whose cells hold sets."""
        return {name: a for name, a in self.attributes.items() if a.type == "set"}

    @property
    def dates(self) -> tuple[str, ...]:
        """Its quasi-identifiers that hold dates."""
        return tuple(
            n for n, a in self.attributes.items() if a.type == "date" and a.role == "quasi"
        )

    def own(self, promise: Json) -> Json | None:
        """A promise about its columns alone, named as they are in it; None for any other."""
        names = attributes_of(promise)
        table = None if self.parent is None else self.name
        if {_table_of(name) for name in names} != {table}:
            return None
        columns = [name.removeprefix(f"{self.name}.") for name in names]
        key = {"attribute": columns[0]} if "attribute" in promise else {"attributes": columns}
        return dict(promise) | key

    def linked(self, schema: Schema) -> LinkedTable:
        """As what follows the policy sees it."""
        known = self.rows.known
        return LinkedTable(
            self.name,
            schema,
            self.parent,
            self.link,
            self.key,
            known if isinstance(known, int) else Known(known),
            self.rows.weight,
            self.rows.ordered,
            Shown(self.rows.counts),
            self.separator,
            self.rows.count_known,
        )


def declared_tables(model: PolicyModel) -> list[DeclaredTable]:
    """All tables, people first and each behind its parent; sets right behind the one they stand in.

    Tables that do not hang from people are left out: `linked_findings` names them.
    """
    subject = next((n for n, a in model.attributes.items() if a.role == "subject"), None)
    found: list[DeclaredTable] = []
    below = _below(model)
    waiting = [DeclaredTable(PEOPLE, model.attributes, key=subject)]
    while waiting:
        table = waiting.pop(0)
        found += [table, *_sets_of(table)]
        waiting += [
            DeclaredTable(name, t.attributes, table.name, t.link, t.key, t.rows)
            for name, t in below[table.name]
        ]
    return found


def _below(model: PolicyModel) -> Mapping[str | None, list[tuple[str, TablePolicy]]]:
    """The tables right below each parent that is named, which may be none."""
    below: dict[str | None, list[tuple[str, TablePolicy]]] = defaultdict(list)
    for name, table in model.tables.items():
        if name != PEOPLE:
            below[table.parent_table].append((name, table))
    return below


def usual_method(model: PolicyModel) -> str:
    """The method of linked tables whose policy names none: by whether a number of rows is known of
    a table.
    """
    knows_some = any(isinstance(table.rows.known, int) for table in declared_tables(model))
    return DEFAULT_FOR_KNOWN_ROWS if knows_some else DEFAULT_METHOD


def _sets_of(table: DeclaredTable) -> Iterator[DeclaredTable]:
    """The tables that the sets in a table's cells are."""
    for column, declared in table.sets.items():
        name = column if table.parent is None else f"{table.name}.{column}"
        element = declared.model_copy(update={"type": None, "separator": None, "known": None})
        rows = RowsPolicy.model_validate({"known": declared.known or "all"})
        yield DeclaredTable(
            name, {column: element}, table.name, rows=rows, separator=declared.separator
        )


def attributes_of(promise: Json) -> list[str]:
    """The attributes that a promise names."""
    named = promise.get("attribute", promise.get("attributes"))
    return [named] if isinstance(named, str) else list(named or ())


def _table_of(attribute: str) -> str | None:
    """The table of a qualified name, None for one of people."""
    return attribute.rpartition(".")[0] or None


_INSTEAD = {
    "stream": "a stream publishes rows; collect what arrives, and publish that with 'shoal publish"
    " FOLDER'",
    "republish": "a ledger compares single tables; publish each round by itself with 'shoal publish"
    " FOLDER', of people who are in no other round",
    "attack": "'shoal audit FOLDER --original FOLDER' tries to find everybody in several",
}
"""What to do with linked tables instead, by verb."""


def one_table_findings(model: PolicyModel, verb: str | None = None) -> list[str]:
    """That a policy of linked tables is used where one table is expected. verb: that asked."""
    if not model.is_linked:
        return []
    usual = (
        "this command or function does not take these; 'shoal publish FOLDER', 'audit FOLDER',"
        " 'profile FOLDER' and 'compare FOLDER' do"
    )
    return [f"policy: is about several tables (tables); {_INSTEAD.get(verb or '', usual)}"]


# What keeps a policy from being about linked tables; all at once.


def linked_findings(model: PolicyModel) -> Iterator[str]:
    """Every contradiction in what a policy says of linked tables."""
    lines = model.read.header if isinstance(model.read.header, dict) else {}
    for name in {*lines} - {PEOPLE, *model.tables}:
        hint = suggestion(name, chain([PEOPLE], model.tables))
        yield f"policy, read.header: there is no table '{name}'; {hint}name one of the policy's"
    if not model.is_linked:
        yield from _not_linked(model)
        return
    yield from link_findings(model)
    for table in declared_tables(model):
        yield from _table_findings(table, model)
    yield from _knowledge_findings(model)
    if model.keys == "none":
        yield from _keyless_findings(model)
    yield from _anchor_findings(model)
    yield from _promise_findings(model)
    yield from _unserved(model)


def _not_linked(model: PolicyModel) -> Iterator[str]:
    named = {"anchor", "keys", "assume"} & model.model_fields_set
    for key in sorted(named):
        yield f"policy, {key}: is of linked tables; name them under 'tables', or leave it out"
    for name, attribute in model.attributes.items():
        if attribute.type == "date":
            yield (
                f"attribute '{name}': dates as days are of linked tables (tables); give it a"
                " hierarchy, such as 'hierarchy: {dates: [day, month, year]}'"
            )


def link_findings(model: PolicyModel) -> Iterator[str]:
    """What keeps the tables from forming a tree below people."""
    hanging = _hanging(model)
    sets = {table.name for table in declared_tables(model) if table.separator is not None}
    if model.person is not None or "subject" not in {a.role for a in model.attributes.values()}:
        yield (
            "policy: no single column of people names the person; give it the role 'subject', as"
            " rows of other tables point to it"
        )
    for name, table in model.tables.items():
        if not NAME.fullmatch(name) or name == PEOPLE or name in sets:
            yield (
                f"table '{name}': can't have this name; begin with a letter or a digit, go on with"
                f" those, '_' and '-', and use neither '{PEOPLE}' nor the name of a set"
            )
        parent = table.parent_table
        if parent is None:
            if table.ask is None:
                yield (
                    f"table '{name}': says not whose its rows are; add 'parent', such as 'parent:"
                    f" {{{PEOPLE}: COLUMN}}'"
                )
        elif parent != PEOPLE and parent not in model.tables:
            hint = suggestion(parent, chain([PEOPLE], model.tables))
            yield f"table '{name}': its parent '{parent}' is not in the policy; {hint}name it"
        elif parent != PEOPLE and model.tables[parent].key is None:
            yield (
                f"table '{parent}': rows of '{name}' point to it; name the column that they point"
                " to, as 'key'"
            )
        elif name not in hanging:
            yield (
                f"table '{name}': hangs from itself by its parents; let each table lead to"
                f" '{PEOPLE}'"
            )


def _hanging(model: PolicyModel) -> set[str]:
    """The tables below people, or below a parent that is not known, of which there is a finding of
    its own.
    """
    below = _below(model)
    waiting = [name for name in below if name == PEOPLE or name not in model.tables]
    hanging: set[str] = set()
    while waiting:
        names = [name for name, _ in below[waiting.pop()]]
        hanging.update(names)
        waiting += names
    return hanging


def _table_findings(table: DeclaredTable, model: PolicyModel) -> Iterator[str]:
    """What is wrong with the columns of a table."""
    links = {table.link, table.key} if table.parent is not None else set()
    subjects = 0
    for name, attribute in table.attributes.items():
        where = f"attribute '{name if table.parent is None else f'{table.name}.{name}'}'"
        if name in links:
            yield f"{where}: only says what belongs to what; take it out of 'attributes'"
        if attribute.role not in ROLES:
            yield f"{where}: the role '{attribute.role}' is of one table; choose another"
        if attribute.over_time is not None or attribute.render != "range":
            yield f"{where}: 'over_time' and 'render' are of one table; leave them out"
        if attribute.publish is not None:
            yield f"{where}: weights are of one table; leave out 'publish'"
        if "." in name:
            yield f"{where}: has a point in its name, which parts table and column; rename it"
        subjects += attribute.role == "subject"
    if table.parent is not None and subjects > 1:
        yield f"table '{table.name}': more than one subject; one column says whose a row is"
    has_quasi = any(a.role == "quasi" for a in table.attributes.values())
    if table.rows.known in ("count", "none") and has_quasi and table.separator is None:
        yield (
            f"table '{table.name}': has quasi-identifiers, and 'known: {table.rows.known}' says"
            " that nobody knows its rows; say 'known: all' or a number, or give them another role"
        )


def _knowledge_findings(model: PolicyModel) -> Iterator[str]:
    """What is wrong with the rows that attackers are said to know."""
    tables = {table.name: table for table in declared_tables(model)}
    numbers: dict[str, KnownRows] = {
        name: t.rows.known for name, t in tables.items() if isinstance(t.rows.known, int)
    }
    if len({*numbers.values()}) > 1:
        yield (
            "tables: attackers know one number of rows of all tables together; say the same"
            f" 'known' of {', '.join(numbers)}"
        )
    for name, table in tables.items():
        if table.rows.count_known and (name not in numbers or table.parent != PEOPLE):
            yield (
                f"table '{name}': 'count_known' goes with a number of known rows right below"
                " people; leave it out"
            )
    for name in numbers:
        parent = tables[name].parent
        if parent not in (None, PEOPLE) and tables[parent].rows.known != "all":
            yield (
                f"table '{name}': 'known' can be a number below people, or below a table with"
                f" 'known: all'; change it there, or in '{parent}'"
            )
    for table in tables.values():
        above = tables[table.parent or PEOPLE]
        if above.rows.known == "none" and table.rows.known != "none":
            yield (
                f"table '{table.name}': who knows its rows knows some of '{above.name}'; say"
                f" 'known: none' here, or 'known: count' there"
            )
        elif above.name in numbers and table.rows.known in ("all", "count"):
            # a person's rows here all count, also those below rows that nobody knows
            yield (
                f"table '{table.name}': 'known: {table.rows.known}' tells of all rows of"
                f" '{above.name}', of which attackers know {above.rows.known}; say 'known: none'"
                " here, with 'assume: [counts-unknown]', or 'known: all' there"
            )
    unknown = [name for name, table in tables.items() if table.rows.known == "none"]
    if unknown and model.keys != "none" and "counts-unknown" not in model.assume:
        yield (
            f"table '{unknown[0]}': 'known: none' says that nobody knows how many rows a person"
            " has, and linked files show it; say 'known: count', 'keys: none', or 'assume:"
            " [counts-unknown]'"
        )


def _keyless_findings(model: PolicyModel) -> Iterator[str]:
    """What would join rows that have no keys, or what nobody could measure or publish of them."""
    tables = declared_tables(model)
    for table in tables:
        for name, attribute in table.attributes.items():
            if table.parent is not None and attribute.pseudonym is not None:
                yield (
                    f"attribute '{table.name}.{name}': with 'keys: none' a pseudonym would join"
                    " rows again; say 'keys: release', or leave out 'pseudonym'"
                )
        counted = any(t.parent == table.name and t.rows.known != "none" for t in tables)
        columns = table.attributes.values()
        if not (counted or any(a.role not in REMOVED or a.pseudonym for a in columns)):
            yield (
                f"table '{table.name}': with 'keys: none' nothing of it is published; say 'keys:"
                " release', or give a column a role that is published"
            )
        is_set = table.separator is not None
        if is_set and "." in table.name and table.rows.known != "all":
            yield (
                f"attribute '{table.name}': with 'keys: none' nobody can measure what some"
                " elements of a set tell; say 'known: all', or 'keys: release'"
            )


def _anchor_findings(model: PolicyModel) -> Iterator[str]:
    if model.anchor is None:
        return
    dates = [
        f"{table.name}.{name}" if table.parent is not None else name
        for table in declared_tables(model)
        for name in table.dates
    ]
    if model.anchor.first not in dates:
        hint = suggestion(model.anchor.first, dates)
        yield (
            f"policy, anchor.first: '{model.anchor.first}' is no quasi-identifier of type 'date';"
            f" {hint}name one of those"
        )
    if model.keys == "none":
        yield (
            "policy, anchor: with 'keys: none' the moved days would join rows with their person;"
            " say 'keys: release', or leave out 'anchor'"
        )
    if model.anchor.gaps == "exact" and "one-date-known" not in model.assume:
        yield (
            "policy, anchor.gaps: exact gaps undo a shift for an attacker who knows two dates; say"
            " 'covered', or 'assume: [one-date-known]'"
        )
    if model.anchor.gaps == "exact":
        yield from _exact_findings(model)


def _exact_findings(model: PolicyModel) -> Iterator[str]:
    """What can't be promised where each gap is published as it is."""
    for table in declared_tables(model):
        if table.dates and table.rows.known != "all":
            yield (
                f"table '{table.name}': exact gaps between its dates need 'known: all'; say so, or"
                " 'gaps: covered'"
            )
    for promise in model.promises:
        if promise["model"] != "k-anonymity":
            yield (
                f"promise '{promise['model']}': with exact gaps, a known date tells rows of a class"
                " apart; say 'gaps: covered', or leave it out"
            )


def _promise_findings(model: PolicyModel) -> Iterator[str]:
    """Promises that name columns of several tables, or count people by some columns alone."""
    for promise in model.promises:
        names = attributes_of(promise)
        if promise["model"] == "k-anonymity" and (names or promise.get("population")):
            yield (
                "promise 'k-anonymity': counts who is alike in all tables together; leave out"
                " 'attributes' and 'population'"
            )
        elif model.keys == "none" and any(map(_table_of, names)):
            yield (
                f"promise '{promise['model']}': can't be measured with 'keys: none', as nobody can"
                " tell whose a row is; say 'keys: release'"
            )
        elif len({_table_of(name) for name in names}) > 1:
            yield (
                f"promise '{promise['model']}': names columns of several tables; ask one promise"
                " of each"
            )


def _unserved(model: PolicyModel) -> Iterator[str]:
    """Keys that are about one table."""
    asked = {
        "label": model.label is not None,
        "reference": model.reference is not None,
        "accept": bool(model.accept),
        "population": model.population is not None,
        "require_together": model.require_together,
        "write.numbers": bool(model.write.numbers),
    }
    for key in (key for key, is_asked in asked.items() if is_asked):
        yield f"policy, {key}: is of one table; leave it out for linked tables"
    if model.missing == "suppress":
        yield "policy, missing: whole people would be suppressed; say 'value' or 'reject'"
    if model.render.order == "input":
        yield "policy, render.order: the input's order tells whose row is whose; leave it out"


def elements_of(
    declared: DeclaredTable, above: Table, none: Iterable[str]
) -> tuple[Table, np.ndarray]:
    """The elements of the sets in a column, as often as they are written, and (n,) the row of each;
    those in `none` are none.
    """
    (column,) = declared.attributes
    assert declared.separator is not None
    cells = as_text(above.frame[column])
    parted = (
        pl.DataFrame({"row": np.arange(len(cells)), "cell": cells.str.split(declared.separator)})
        .explode("cell")
        .with_columns(pl.col("cell").str.strip_chars())
        .filter(~pl.col("cell").is_in(["", *none]))
    )
    return Table(parted.select(pl.col("cell").alias(column))), parted["row"].to_numpy()
