"""Several tables about the same people, as the page has them: their columns in one list, each named
`table.column` below people, as promises name them; and edits of what links tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.data.findings import some_named
from shoal.data.language import gettext, ngettext
from shoal.data.linked import PEOPLE
from shoal.errors import InputError
from shoal.reports.linked import Entity, entity_picture
from shoal.reports.pages import known_text
from shoal.web.policy_text import Context

LINK = "\t"
"""What stands between the parts of a link in a form."""
ALL_SHEETS = "*"
"""What Open sends in place of a sheet's name, which never has this sign."""


def flat(policy: Mapping[str, Any]) -> Context:
    """The policy with the columns of all tables in one list; of one table, the policy as it is."""
    columns, tables = dict(policy.get("attributes") or {}), {}
    for name, table in (policy.get("tables") or {}).items():
        columns |= {f"{name}.{column}": own for column, own in _columns(table).items()}
        tables[name] = {key: value for key, value in table.items() if key != "attributes"}
    return {**policy, "attributes": columns} | ({"tables": tables} if tables else {})


def folded(policy: Mapping[str, Any]) -> Context:
    """The policy whose columns `flat` lists, each table with its own again; raises InputError where
    a table whose rows nobody knows has columns that others could know.
    """
    if not policy.get("tables"):
        return dict(policy)
    tables = {name: {**table, "attributes": {}} for name, table in policy["tables"].items()}
    for name, table in policy["tables"].items():
        tables[name]["attributes"] |= _columns(table)
    people = {}
    for name, own in (policy.get("attributes") or {}).items():
        table, _, column = name.partition(".")
        if column and table in tables:
            tables[table]["attributes"][column] = own
        else:
            people[name] = own
    for table in tables.values():
        is_known = any(own.get("role") == "quasi" for own in table["attributes"].values())
        if is_known and (table.get("rows") or {}).get("known") in ("count", "none"):
            table["rows"] = {**table["rows"], "known": "all"}
    return {**policy, "attributes": people, "tables": tables}


def _columns(table: Mapping[str, Any]) -> Context:
    return dict(table.get("attributes") or {})


def column_names(tables: Mapping[str, Sequence[str]], people: str) -> list[str]:
    """The columns of all tables, people's first. people: the name of their table."""
    below = [f"{name}.{column}" for name, own in tables.items() if name != people for column in own]
    return [*tables[people], *below]


def linking_columns(policy: Mapping[str, Any]) -> set[str]:
    """The columns that only say what belongs to what, which are renumbered in a release."""
    found = set()
    for name, table in (policy.get("tables") or {}).items():
        found |= {f"{name}.{column}" for column in (table.get("parent") or {}).values()}
        found |= {f"{name}.{table['key']}"} if table.get("key") else set()
    return found


def people_among(tables: Sequence[str], policy: Mapping[str, Any]) -> str | None:
    """The table of people, the one that a policy does not name; None where it is of others."""
    below = policy.get("tables") or {}
    others = [name for name in tables if name not in below]
    return others[0] if below and len(others) == 1 and {*below} <= {*tables} else None


def open_links(policy: Mapping[str, Any]) -> list[str]:
    """The tables of which nobody has said yet whose their rows are."""
    return [name for name, table in (policy.get("tables") or {}).items() if not table.get("parent")]


# What forms change of links and of what is known.


def with_parent(
    policy: Context, name: str, column: str, to: str, to_column: str
) -> tuple[Context, str]:
    """The flat policy with a table below another one, whose key its column holds."""
    tables = {key: dict(table) for key, table in policy["tables"].items()}
    tables[name].pop("ask", None)
    before = dict(tables[name])
    tables[name] = {"parent": {to: column}} | {
        key: value for key, value in before.items() if key != "parent"
    }
    columns = dict(policy["attributes"])
    columns.pop(f"{name}.{column}", None)
    if to == PEOPLE:
        columns[to_column] = {"role": "subject"}
    else:
        tables[to] = {**tables[to], "key": to_column}
        columns.pop(f"{to}.{to_column}", None)
    said = gettext("{name} belongs to {to}, by {column}", name=name, to=to, column=column)
    return {**policy, "attributes": columns, "tables": tables}, said


KNOWN = ("all", "3", "2", "1", "count", "none")
"""What Promises offers, as `RowsPolicy.known` allows it."""


def with_known(policy: Context, name: str, known: str) -> tuple[Context, str]:
    """The policy with what an attacker knows of a person's rows in a table; raises InputError."""
    if name not in (policy.get("tables") or {}):
        raise InputError("table: there is none of this name; load the page again")
    if known not in KNOWN:
        raise InputError("known rows: choose one of the list")
    if why := why_not_known(policy, name).get(known):
        raise InputError(f"known rows of {name}: can't be “{known_text(known)}”, since {why}")
    value = int(known) if known.isdigit() else known
    tables, said = dict(policy["tables"]), [name]
    if isinstance(value, int):  # attackers know one number of rows of all tables together
        said += [other for other in tables if other != name and known_of(tables, other).isdigit()]
    for one in said:
        tables[one] = {**tables[one], "rows": {**(tables[one].get("rows") or {}), "known": value}}
    names, what = some_named(said), known_text(value)
    return {**policy, "tables": tables}, gettext("{names}: known {what}", names=names, what=what)


def known_of(tables: Mapping[str, Any], name: str) -> str:
    """What is known of a table's rows, as a form says it; of people all is."""
    return str(((tables.get(name) or {}).get("rows") or {}).get("known", "all"))


def why_not_known(policy: Context, name: str) -> dict[str, str]:
    """What can't be said of the rows of a table, of the ways of `KNOWN`, each with why not and what
    to change first. policy: as `flat` makes it.
    """
    tables = policy["tables"]
    own_columns = {c: a for c, a in policy["attributes"].items() if c.partition(".")[0] == name}
    parents = {one: next(iter(table.get("parent") or ()), PEOPLE) for one, table in tables.items()}
    below = [one for one in tables if parents[one] == name and known_of(tables, one).isdigit()]
    if below:
        why = gettext("any rows of {names} are known; first change that", names=some_named(below))
        return dict.fromkeys(KNOWN[1:], why)
    refused = {}
    if known_of(tables, parents[name]) != "all":
        why = gettext("not all rows of {name} are known; first change that", name=parents[name])
        refused = dict.fromkeys(("3", "2", "1"), why)
        if known_of(tables, parents[name]).isdigit():
            refused |= dict.fromkeys(("all", "count"), why)
    whole = [t for t in tables if parents[t] == name and known_of(tables, t) != "none"]
    sets = {c: a.get("known") or "all" for c, a in own_columns.items() if a.get("type") == "set"}
    whole += [column for column, known in sets.items() if known in ("all", "count")]
    if whole:
        why = gettext(
            "what is known of {parts} tells of all of these rows; first say “nothing” there",
            parts=some_named(whole),
        )
        refused = dict.fromkeys(("3", "2", "1"), why) | refused
    columns = [column for column, own in own_columns.items() if own.get("role") == "quasi"]
    if columns:
        why = gettext(
            "others could know {columns}; first say under Columns that they could not",
            columns=some_named(columns),
        )
        return refused | dict.fromkeys(("count", "none"), why)
    if policy.get("keys") == "none" or "counts-unknown" in (policy.get("assume") or ()):
        return refused
    why = gettext(
        "keys say how many rows a person has; first write “keys: none” or “assume:"
        " [counts-unknown]” into the policy, by “Edit as text”"
    )
    return refused | {"none": why}


# The picture.


def entities(found: Sequence[Mapping[str, Any]], people: str) -> list[Entity]:
    """The tables as they are, before any release. found: as `SeveralLooks.look_profile` counts."""
    drawn = []
    for one in found:
        if one["name"] == PEOPLE:
            lines = [gettext("{count:,} people", count=one["rows"])]
            drawn.append(Entity(people, None, lines, is_people=True))
            continue
        lines = [ngettext("{count:,} row", "{count:,} rows", one["rows"])]
        if one["parent"] is None:
            lines.append(gettext("whose they are is not said yet"))
        else:
            lines.append(gettext("by {column}", column=one["link"]))
        if "most" in one:
            lines[0] += gettext(", {least:,} to {most:,} of a person", **one)
        parent = people if one["parent"] == PEOPLE else one["parent"]
        drawn.append(Entity(one["name"], parent, lines))
    return drawn


# What Columns and Promises show of them.


def several_context(
    policy: Context, columns: Sequence[str], people: str, profile: Context | None
) -> Context:
    """How several tables hang together, and what is still to be said of it. people: the name of
    their table. profile: what was counted, if it was.
    """
    counted = (profile or {}).get("tables") or []
    unlinked, links = open_links(policy), linking_columns(policy)
    below = policy["tables"]
    return {
        "picture": entity_picture(entities(counted, people)) if counted else None,
        "people": people,
        "links": [name for name in columns if name in links],
        "questions": [
            {
                "name": name,
                "is_open": name in unlinked,
                "is_counted": profile is not None,
                "links": [
                    {
                        **link,
                        "value": LINK.join(link[part] for part in LINK_PARTS),
                        "to_shown": people if link["to_table"] == PEOPLE else link["to_table"],
                        "is_chosen": below[name].get("parent")
                        == {link["to_table"]: link["column"]},
                    }
                    for link in (profile or {}).get("links") or ()
                    if link["table"] == name
                ],
            }
            for name in below
        ],
        "is_open": bool(unlinked),
        "known": [
            {
                "name": name,
                "known": known_of(below, name),
                "why_not": why_not_known(flat(policy), name),
            }
            for name in below
        ],
    }


LINK_PARTS = ("table", "column", "to_table", "to_column")
