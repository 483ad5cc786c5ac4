"""Whether a table has the columns that its policy names, and names for all of its columns."""

from collections.abc import Container, Iterable, Mapping
from itertools import product

import polars as pl

from shoal.data.column_words import is_no_header, looks_like_data, named_by_a_record
from shoal.data.findings import listed_rows
from shoal.data.option import nearest
from shoal.data.person.decision import Answer, who_is_a_person
from shoal.data.person_names import (
    letters_of,
    normal_form,
    spelled_apart,
    unlisted_values,
    values_for_none,
)
from shoal.data.recoding import GROUP
from shoal.data.room import blocks
from shoal.data.schema import REMOVED
from shoal.data.table import Table, names_like_patterns
from shoal.data.warnings import (
    NAMES_LIKE_DATA,
    OPEN,
    PEOPLE_ASSUMED,
    READ_AS_TEXT,
    WRITTEN_ALIKE,
    ReleaseWarning,
)
from shoal.errors import InputError
from shoal.policy.binding.files import PolicyTables
from shoal.policy.binding.notation import PARTS, is_number
from shoal.policy.binding.spare_rows import spare_rows
from shoal.policy.consistency import named_as, quoted
from shoal.policy.loading import one_line
from shoal.policy.model import SHOWN, PolicyModel
from shoal.policy.proposal.cells import ColumnCells, TextsOf, signs_of_no_value
from shoal.policy.proposal.notation import (
    DECIMAL_OR_GROUP,
    FoundNotation,
    columns_as_read,
    may_be_groups,
)
from shoal.policy.proposal.roles import CATEGORIES, guess_of, unread


def check_columns(
    names: list[str], tables: PolicyTables, released: bool = False, is_kept: bool = False
) -> list[str]:
    """Columns of the data that the policy does not name, and the other way round.

    is_kept: whether the policy can't change, as that of a ledger.
    """
    if patterns := names_like_patterns(names):
        return patterns
    model = tables.model
    declared = model.attributes
    if not set(declared) & set(names):
        otherwise = _written_otherwise(names, list(declared))
        if names[0].lstrip().startswith("{"):
            return [
                "columns: the first line is JSON, and was read as CSV, as standard input is; give"
                " it as a file or a named pipe whose name says that it is JSON lines"
            ]
        # or the names may be data: a table without a header
        named = f"none of the {len(names)} names" if names[1:] else "no name"
        return otherwise or [
            f"columns: {named} is in the policy; give the policy of this table, or, in a file, put"
            " a line that names the columns on top, or say which line does, such as --read header=2"
        ]
    unnamed = [name for name in names if name not in declared]
    unknown = [] if model.other is not None else unnamed
    absent = [
        name
        for name, a in declared.items()
        if name not in (*names, model.person)
        and (not released or a.role in SHOWN or a.pseudonym is not None)
    ]
    hidden = [name for name in absent if declared[name].role == "sensitive"]
    if released and GROUP in unnamed and hidden:
        return [
            f"columns: there is 'group' but not {quoted(hidden)}; if this is the first of two"
            " tables, name the method that made them in the policy, such as 'method: {name:"
            " anatomy}'; otherwise correct the names"
        ]
    findings = [
        unnamed_finding(name, what, tables.is_made_of_columns, released)
        for name, what in _nearly_named(names, model)
    ]
    if unknown:
        written_ends = {_end_of(name, declared) for name in unknown}
        ends = [end for end in PARTS if end in written_ends]
        written = f"say '--write numbers={','.join(ends)}' if the release has them; else "
        those = "them" if unknown[1:] else "it"
        way_out = f"name {those} under 'attributes', or say 'other: plain' or 'other: drop'"
        if is_kept:
            way_out = f"leave {those} out of the increment, as the ledger keeps its policy"
        findings.append(
            f"{named_as('column', unknown)}: in the data, not in the policy;"
            f" {written if released and ends else ''}{way_out}"
        )
    if absent:
        those = "them" if absent[1:] else "it"
        way_out = f"take {those} out or correct the name"
        if is_kept:
            way_out = f"add {those} or correct the name, as the ledger keeps its policy"
        findings.append(
            f"{named_as('column', absent)}: in the policy, not in the data;"
            f" {_renamed(absent, unnamed)}{way_out}"
        )
    return findings


def _written_otherwise(names: list[str], declared: list[str]) -> list[str]:
    """A finding where the first line has the policy's names, but not as they stand there."""
    near = {_bare(name): name for name in names}
    alike = [(near[_bare(name)], name) for name in declared if _bare(name) in near]
    if len(names) == 1 and declared[1:] and all(name in names[0] for name in declared):
        mark = names[0].partition(declared[0])[2][:1]
        return [
            f"columns: the first line is one name, in which '{mark}' parts those of the policy; say"
            f' --read "delimiter={mark}"'
        ]
    if not alike:
        return []
    shown = ", ".join(f"'{name}' for '{other}'" for name, other in alike[:3])
    return [
        f"columns: {len(alike)} of {len(names)} names differ from those of the policy only by"
        f" {_WAYS} ({shown}{', ...' if alike[3:] else ''}); write both alike"
    ]


def _end_of(name: str, declared: Container[str]) -> str | None:
    """Which derived number of a declared column a name says, such as lo of age_lo; None if none."""
    column, _, end = name.rpartition("_")
    return end if column in declared and end in PARTS else None


def check_unnamed(table: Table, tables: PolicyTables) -> list[str]:
    """A finding where rows repeat all names, or columns that the policy does not name are data
    without a header, or copies of columns that it removes or recodes. The cells are read for both
    before either is judged.
    """
    if repeated := check_repeated_names(table):
        return repeated
    declared = tables.model.attributes
    unnamed = [name for name in table.names if name not in declared]
    if not unnamed:
        return []
    hidden = {n: a.role for n, a in declared.items() if a.role in HIDDEN and n in table.names}
    odd = looks_like_data(table, unnamed)
    # only 'other: plain' would publish a copy
    is_published = tables.model.other == "plain"
    none = tables.model.missing_texts
    copies = copied_columns(table, unnamed, hidden, none) if is_published else {}
    if is_no_header(odd, table.names):
        return [
            f"columns: {len(odd)} that the policy does not name have names that look like data; "
            "put a line that names the columns on top, say which line does, such as --read"
            " header=2, or name these under 'attributes'"
        ]
    return [
        unnamed_finding(
            name, f"holds the cells of '{one}' ({declared[one].role})", tables.is_made_of_columns
        )
        for name, one in copies.items()
    ]


def check_people(frame: pl.DataFrame, model: PolicyModel) -> list[str]:
    """Why people of this table would not be recognized in another: `1` there is `1.0` here."""
    kinds = {name: frame.schema[name] for name in model.subject_columns if name in frame.columns}
    return [
        f"attribute '{name}': names people by decimals, so that they can't be known again"
        " elsewhere; give whole numbers or text"
        for name, kind in kinds.items()
        if kind.is_float() or (isinstance(kind, pl.Decimal) and kind.scale)
    ]


def check_increment(frame: pl.DataFrame, tables: PolicyTables, is_kept: bool) -> None:
    """Raises InputError where columns are not the policy's, or people can't be recognized later.

    is_kept: whether the ledger has begun.
    """
    findings = check_columns(frame.columns, tables, is_kept=is_kept)
    InputError.raise_for(findings + check_people(frame, tables.model))


def _renamed(names: list[str], others: list[str]) -> str:
    """The question whether some names stand for others; nothing where none is near."""
    # a name is only proposed for the one that it is nearest to
    nearest_to = {other: nearest(other, names) for other in others}
    mine = {name: [other for other in others if nearest_to[other] == name] for name in names}
    bare = {_bare(other): other for other in others}
    same = {name: bare[key] for name in names if (key := _bare(name)) in bare}
    near = [
        f"'{other}' for '{name}'"
        for name in names
        if (other := same.get(name) or nearest(name, mine[name]))
    ]
    ways = f"names differ only by {_WAYS}: " if same else ""
    return f"{ways}did you mean {', '.join(near)}? " if near else ""


HIDDEN = dict.fromkeys(REMOVED, 1) | {"quasi": 10}
"""The roles whose columns are not published as they are, and in how many records a copy holds
another value than its most frequent one: quasi-identifiers of few records may agree by chance.
"""


def copied_columns(
    table: Table, names: Iterable[str], others: Mapping[str, str], none: list[str]
) -> dict[str, str]:
    """Those columns whose values, however they are spelled, are those of one of the others, each
    with the first such. others: with their roles. none: texts for no value, which a copy may hold
    instead, as one in a merged table does.

    A column of one value says nothing about anybody, so it is never a copy.
    """
    found: dict[str, str] = {}
    for name, (other, role) in product(names, others.items()):
        if name not in found and _is_copy(table.different, name, other, [*none, ""], HIDDEN[role]):
            found[name] = other
    return found


def _is_copy(table: Table, name: str, other: str, none: list[str], least: int) -> bool:
    for rows in (slice(0, 20), *blocks(table.records)):  # few cells tell most columns apart
        cells = {"one": table.cells_of(name, rows), "two": table.cells_of(other, rows)}
        different = pl.DataFrame(cells).unique().filter(~pl.col("one").is_in(none))
        one, two = map(letters_of, different)
        if not (one == two).all():
            return False
    texts, counts = table.texts(name)
    filled = counts * (~texts.is_in(none)).to_numpy()
    records = pl.DataFrame({"value": letters_of(texts), "records": filled}).group_by("value").sum()
    sizes = records["records"].to_numpy()
    return bool(sizes.sum() - sizes.max(initial=0) >= least)


# Columns that `other: plain` would publish though they look like one that the policy names.
#
# `Name` beside a removed `name` is more likely a slip of the pen than a new column. In a release
# that somebody else made, `Age` beside `age` may hold what `age` hides.


_WAYS = "capitals, blanks, marks or how letters are composed"

# letters of other scripts that look like Latin ones, in small letters
_LOOK_ALIKE = str.maketrans("авеікмнорстухѕјԁɡԛԝɑανορτικχυ", "abeikmhopctyxsjdgqwaavoptikxu")


def _nearly_named(names: list[str], model: PolicyModel) -> list[tuple[str, str]]:
    """Each unnamed column whose name is but for its writing that of a named one; and of which."""
    if model.other != "plain":
        return []
    declared = model.attributes
    named = {_bare(name): name for name in declared}
    return [
        (name, f"named like '{near}' ({declared[near].role})")
        for name in names
        if name not in declared and _bare(name) and (near := named.get(_bare(name))) is not None
    ]


def unnamed_finding(
    name: str, what: str, made_of_columns: bool = False, released: bool = False
) -> str:
    """What to do about an unnamed column. made_of_columns: whether nobody wrote the policy.
    released: whether it is one of a release, which nobody can publish any more.
    """
    if made_of_columns:
        return f"column '{name}': not named, but {what}; name it, too, or take it out"
    why = "nobody has judged it" if released else "'other: plain' would publish it"
    return f"columns '{name}': not in the policy, but {what}; name it under 'attributes', {why}"


def _bare(name: str) -> str:
    """A name without what people write in different ways, or nobody sees: case, blanks, marks,
    scripts.
    """
    folded = normal_form("NFKC", name).casefold().translate(_LOOK_ALIKE)
    return "".join(sign for sign in folded if sign.isalnum())


# Values that differ only by capitals, by blanks or by signs that nobody sees: `flu`, `Flu`, `flu `.
#
# In a sensitive column they count as one value, unless a hierarchy lists them apart. In a
# quasi-identifier records that show them are not alike. Whoever publishes should know.


def written_alike(table: Table, model: PolicyModel) -> list[ReleaseWarning]:
    """A warning for each text column of quasi-identifiers, sensitive values, people or households
    that holds such values, and for any that holds texts for no value as `-9.00`; counts alone.
    """
    found = []
    for name, attribute in model.attributes.items():
        is_text = attribute.type in (None, "category") and attribute.domain is None
        role = "subject" if name in (model.subject or ()) else attribute.role
        if role not in _ALIKE or name not in table.names:
            continue
        is_person = role == "subject"
        if unlisted := unlisted_values(table.column(name), is_person, model.missing_texts):
            hold = "1 record holds" if unlisted == 1 else f"{unlisted} records hold"
            text = (
                f"attribute '{name}': {hold} {_OFTEN if is_person else ''}a number of"
                " 'missing_values' with blanks or as a decimal ('.00'), which counts as a"
                f" {'person' if is_person else 'value'}; if it stands for none, list that text, too"
            )
            found.append(ReleaseWarning(WRITTEN_ALIKE, text, name))
        if not is_text:
            continue
        is_sensitive = role == "sensitive"
        none = values_for_none(table.column(name), model.missing_texts) if is_sensitive else 0
        if none > 1:
            text = (
                f"attribute '{name}': {none} of its values often stand for none, and l counts each;"
                " list those that do under 'missing_values', which makes them one value"
            )
            found.append(ReleaseWarning(WRITTEN_ALIKE, text, name))
        listed = attribute.hierarchy is not None
        if not table.column(name).was_number:
            found += spelled_apart(table.column(name).used, role, model.missing_texts, listed)
    return found


_ALIKE = ("quasi", "sensitive", "subject", "household")
_OFTEN = "a text that often stands for no value, or "


# Numbers and dates of columns without a type: what `policy init` reads or asks about is not taken
# for labels in silence.


CLOSENESS = "t-closeness"
LABELS = "each cell is shown whole or not at all"
UNORDERED = f"any two values are equally far apart to {CLOSENESS}"
ASKED = "{}? {}rite numbers as 1234.5 and dates as 2024-12-31"
KNOWN = "if its cells are {}, say {}"
PERIODS = "hierarchy: {dates: [day, month, year]}"


def read_as_text(table: Table, model: PolicyModel) -> list[ReleaseWarning]:
    """A warning for each column without a type whose cells look like numbers or dates, of the
    quasi-identifiers and what t-closeness is promised on.
    """
    close = [promise for promise in model.promises if promise["model"] == CLOSENESS]
    compared = {name for promise in close for name in promise.get("attributes", ())}
    untyped = [
        name
        for name, one in model.attributes.items()
        if (one.role == "quasi" or name in compared)
        and not (one.type or one.domain or one.order or one.hierarchy)
    ]
    columns, found = columns_as_read(table, untyped, model.read.model_dump(exclude_unset=True))
    warnings = []
    for name, column in columns.items():
        if seems := _seem(ColumnCells.of(column), found.questions.get(name), found):
            is_quasi = model.attributes[name].role == "quasi"
            text = (
                f"attribute '{name}': has no type, so {LABELS if is_quasi else UNORDERED}; {seems};"
                " if they are labels, say 'type: category'"
            )
            warnings.append(ReleaseWarning(READ_AS_TEXT, text, name))
    return [*warnings, *_decimals_in_doubt(table, model)]


def _decimals_in_doubt(table: Table, model: PolicyModel) -> list[ReleaseWarning]:
    """A warning for each column of numbers that could all have groups of digits where 'read' says
    that their mark is of decimals, and nothing of groups.
    """
    said, mark = model.read.model_fields_set, model.read.decimal
    if "decimal" not in said or "thousands" in said:
        return []
    decimals, groups = map(one_line, DECIMAL_OR_GROUP[mark])
    text = (
        f": three digits stand behind each '{mark}' of its numbers, as in groups of digits, and are"
        f" read as decimals; let 'read' say {groups} if they are groups, else {decimals}"
    )
    return [
        ReleaseWarning(READ_AS_TEXT, f"attribute '{name}'{text}", name, OPEN)
        for name, one in model.attributes.items()
        if is_number(one) and name in table.names and not table.column(name).was_number
        if may_be_groups(
            TextsOf.alone(
                pl.Series(filter(model.is_value, table.column(name).cells), dtype=pl.String)
            )
        )
    ]


def _seem(cells: ColumnCells, question: str | None, found: FoundNotation) -> str:
    """What cells may be, and what to say then; empty where they are labels."""
    guess = guess_of(cells)
    if asked := question or unread(cells, guess):
        # how a proposed policy takes cells is not how this one does
        open_, answers = asked.partition("?")[0], map(one_line, found.answers(asked))
        ways = " or ".join(answers)
        return ASKED.format(open_, f"Say {ways} under 'read', or w" if ways else "W")
    if guess.settings.get("type") == "number" and cells.distinct > CATEGORIES:
        return KNOWN.format("numbers", _said("type: number", found, "decimal", "thousands"))
    if cells.are_iso_days:
        return KNOWN.format("dates", _said(PERIODS, found, "dates"))
    return ""


def _said(keys: str, found: FoundNotation, *of_read: str) -> str:
    """Keys of an attribute, and those of the policy's block `read` that belong to them."""
    read = {key: found.read[key] for key in of_read if key in found.read}
    return f"'{keys}'" + (f", and under 'read' {one_line(read)}" if read else "")


def check_repeated_names(table: Table) -> list[str]:
    """A finding where there are rows of names, as a report has on each page."""
    rows = table.rows_of_names
    repeat, it = ("repeats", "it") if len(rows) == 1 else ("repeat", "them")
    text = (
        f"data: {listed_rows(rows.tolist())} {repeat} the names of all columns, as reports do on"
        f" each page; take {it} out of the data, and keep the first line"
    )
    return [text] if len(rows) else []


def input_warnings(table: Table, model: PolicyModel) -> list[ReleaseWarning]:
    """What the original gives reason to say: columns that seem to number people, where every record
    is taken to be its own person, values that look alike, and rows that may be nobody.
    """
    assumed = [] if model.subject_columns else people_assumed(table, model)
    named = named_like_data(table, model)
    odd = [*cell_warnings(table, model), *spare_rows(table, model)]
    return [*assumed, *odd, *named]


def cell_warnings(table: Table, model: PolicyModel) -> list[ReleaseWarning]:
    """What the cells of a table's columns give reason to say."""
    roles = {name: one.role for name, one in model.attributes.items()}
    shown = [name for name in table.names if roles.get(name, model.other) in SHOWN]
    signs = signs_of_no_value(table, shown, model.no_names)
    return [*read_as_text(table, model), *written_alike(table, model), *signs]


def audit_warnings(
    released: Table, original: Table | None, tables: PolicyTables
) -> list[ReleaseWarning]:
    """What an audit gives reason to say of whom it counts: by the original, else by the columns
    that the release shows as they were; and by populations.
    """
    if original is None:
        # classes repeat quasi-identifiers, as visits of one person would
        classes = {*tables.model.quasi, GROUP}
        original = released.without([name for name in released.names if name in classes])
    return [*input_warnings(original, tables.model), *population_warnings(tables)]


def population_warnings(tables: PolicyTables) -> list[ReleaseWarning]:
    """What the tables of the population give reason to say of whom they count."""
    found = []
    for name, people in tables.populations.items():
        is_named = bool({*tables.model.subject_columns} & {*people.names})
        assumed = [] if is_named else people_assumed(people, tables.model)
        found += [
            one.at(f"population '{name}'")
            for one in (*assumed, *written_alike(people, tables.model))
        ]
    return found


def people_assumed(table: Table, model: PolicyModel) -> list[ReleaseWarning]:
    """A warning for each who else may be one person than every record."""
    doubted = people_doubted(table, model).candidates
    return [ReleaseWarning(PEOPLE_ASSUMED, str(one)) for one in doubted]


def people_doubted(table: Table, model: PolicyModel, has_key: bool = False) -> Answer:
    """Who else may be one person than every record. has_key: as `who_is_a_person` takes it."""
    declared = [name for name, one in model.attributes.items() if one.role == "identifier"]
    return who_is_a_person(table, declared, has_key)


def named_like_data(table: Table, model: PolicyModel) -> list[ReleaseWarning]:
    """A warning where columns that `other: plain` publishes may be named by a record; counts alone,
    as such a name may be somebody's value.
    """
    unnamed = [name for name in table.names if name not in model.attributes]
    odd = named_by_a_record(table, unnamed) if model.other == "plain" else []
    if not odd:
        return []
    text = (
        f"columns: {len(odd)} that the policy does not name have names that look like data and are"
        " published; if the first line is a record, put one with names on top"
    )
    return [ReleaseWarning(NAMES_LIKE_DATA, text)]
