"""The policy that a few words say: what an attacker could know, what is sensitive, and k.

What a policy file would say of a column's type follows from the column: numbers get a domain of
round ends around what was seen, ordered categories keep their order, dates become periods, codes of
digits lose digits from the right, and all else is a value or nothing.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import cache, wraps
from inspect import CO_VARKEYWORDS, isfunction, signature
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, cast

import numpy as np
import polars as pl

from shoal.connectors.dialect import Reading
from shoal.connectors.frames import Frame, ordered_categories, refuse_index, table_of
from shoal.data.column_words import words_of
from shoal.data.numbers import FARTHEST, fall_together, parse_numbers
from shoal.data.option import nearest, suggestion
from shoal.data.progress import watched
from shoal.data.regular_files import Json
from shoal.data.single_ends import outward_domain
from shoal.data.table import Column, Table, as_text, with_decimals
from shoal.errors import InputError, KeywordError
from shoal.policy.consistency import named_as, quoted
from shoal.policy.loading import read_options
from shoal.policy.model import PolicyModel
from shoal.policy.proposal.notation import POINT_OR_GROUPS, columns_as_read
from shoal.protocols import NamedMethod

Names = str | Collection[str]
Settings = Mapping[str, Any]
NamesOrSettings = Names | Mapping[str, Settings | None]
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")  # not 01305, which is a code
DIGITS = re.compile(r"[0-9]+")
FEWEST_DIGITS = 4
DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
PERIODS = ("day", "month", "quarter", "year")
TYPE_KEYS = ("type", "domain", "order", "hierarchy")
FEWEST_NUMBERS = 3  # values; two are a category
Call = TypeVar("Call", bound=Callable[..., object])
OF_SAMPLE = ("global_risk", "household", "individual_risk", "weight")
MANY_NUMBERS = 10  # of a sensitive column, beyond which it is an amount and not a code


class Columns(TypedDict, total=False):
    """What a publish without a policy is asked; `shoal.publish` says what each word means."""

    quasi: NamesOrSettings
    sensitive: NamesOrSettings
    subject: str | None
    plain: NamesOrSettings
    drop: Names
    other: Literal["plain", "drop"] | None
    k: int
    l: int | None
    t: float | None
    label: str | None
    method: str | Settings | NamedMethod | None
    seed: int | None
    read: Settings | None
    missing_values: Names


def words_of_call(columns: Mapping[str, Any]) -> Columns:
    """The words that say something; raises KeywordError for one that is unknown."""
    refuse_unknown(columns, Columns.__annotations__)
    for word, value in columns.items():
        require_no_data(word, value)
    return cast("Columns", given_words(columns))


def columns_among(words: Mapping[str, Any]) -> Columns:
    """The keywords of a call that are about columns and numbers."""
    return cast("Columns", {name: words[name] for name in words if name in Columns.__annotations__})


def refuse_unknown(words: Iterable[str], known: Collection[str], function: str = "") -> None:
    """Raises KeywordError for a keyword that is none of those known."""
    unknown = sorted(set(words) - set(known))
    if not unknown:
        return
    word, has_policy = unknown[0], not {"policy", "quasi"}.isdisjoint(known)
    hint = suggestion(word, known).rstrip() or f"it takes {', '.join(known)}"
    if word in OF_SAMPLE and has_policy:
        hint = "a sample needs a policy with its roles, weight and household, and promises"
    elif has_policy and word in {*PolicyModel.model_fields, *Columns.__annotations__}:
        hint = "say it in a policy"
        if word == "missing_values":
            hint += ", or as read={'missing_values': [...]}"
    raise KeywordError(f"{function}unexpected keyword argument '{word}'; {hint}")


@cache
def knowing_its_keywords(function: Call) -> Call:
    """A function of `shoal` that refuses a keyword it does not take, and names the nearest, and
    that takes True for a progress to standard error.
    """
    if not isfunction(function) or function.__code__.co_flags & CO_VARKEYWORDS:
        return function  # a class, or a function that refuses such a keyword itself
    known = [name for name in signature(function).parameters if name != "self"]

    @wraps(function)
    def called(*given: object, **words: object) -> object:
        if not words.keys() <= {*known}:
            refuse_unknown(words, known, f"{function.__qualname__.removesuffix('.__init__')}: ")
        if isinstance(asked := words.get("progress"), bool):
            words["progress"] = watched(asked)
        return function(*given, **words)

    called.__module__ = "shoal"  # where pickle finds it
    return cast("Call", called)


def require_no_data(word: str, value: object) -> None:
    """Raises InputError for data where names or numbers are asked: no message may show them."""
    kind = type(value).__name__
    if kind in ("Series", "DataFrame", "LazyFrame", "Table"):
        raise InputError(f"{word}: this is of type {kind}; give names or numbers, not the data")


BESIDE = ("k", "method", "seed", "read", "missing_values")
"""Words that change a policy which they stand beside."""


class Words(NamedTuple):
    """What the words of a call say of a table.

    content: the policy, but for its method. method: as it was given. misnamed: findings about names
    that don't match the columns, which come last.
    """

    content: Json
    method: Any
    misnamed: list[str]


def words_of_frame(frame: Frame, columns: Mapping[str, Any], verb: str = "publish") -> Words:
    """What the words of a call say of a frame; raises InputError with every finding.

    verb: the call, as findings name it.
    """
    asked = words_of_call(columns)
    if not asked:
        raise InputError(f"{verb}: needs a policy, or 'quasi' and 'k'; give one of them")
    kept = _needed(asked) if asked.get("other") == "drop" else None
    dropped = frozenset(map(str, listed(asked.get("drop", ()))))
    table = table_of(frame, reading=Reading(dropped=dropped, kept=kept))
    refuse_index(frame, _needed(asked))
    return words_of_table(table, ordered_categories(frame), asked, verb)


def _needed(asked: Columns) -> frozenset[str]:
    """The columns that have another role than to be dropped."""
    needed = [asked.get("quasi"), asked.get("sensitive"), asked.get("subject"), asked.get("plain")]
    return frozenset(str(name) for names in needed if names is not None for name in listed(names))


def words_of_table(
    table: Table, orders: Mapping[str, list[str]], asked: Columns, verb: str = "publish"
) -> Words:
    """What the words say of a table; raises InputError with every finding.

    orders: labels of the columns whose categories have an order. verb: as for `words_of_frame`.
    """
    given: dict[str, NamesOrSettings] = {
        role: cast("NamesOrSettings", asked.get(role, ()))
        for role in ("quasi", "sensitive", "plain", "drop")
    }
    roles = {role: listed(names) for role, names in given.items()}
    settings = _settings(given)
    subject = asked.get("subject")
    roles["subject"] = [] if subject is None else [subject]
    given_names = [name for names in roles.values() for name in names]
    _check(asked, given_names, table.names, verb)
    named = roles.pop("quasi")
    attributes: dict[str, dict[str, Any]] = {}
    said, missing = said_of_reading(asked), texts_of(asked.get("missing_values", ()))
    if missing:
        table = _with_values_alone(table, missing)
    columns, read = _as_read([*named, *settings], table, said)
    for name in named:
        own = settings.get(name, {})
        attributes[name] = {"role": "quasi", **_quasi(name, own, table, columns, orders)}
    for role, name in ((role, name) for role, names in roles.items() for name in names):
        own = _sensitive(name, role, table, settings.get(name, {}), orders)
        attributes[name] = {"role": role, **own}
    rest = [name for name in table.names if name not in attributes]
    for name in rest if asked.get("other") == "plain" else ():
        own = _sensitive(name, "plain", table, {}, orders)
        if own or name == asked.get("label"):
            attributes[name] = {"role": "plain", **own}
    sensitive, l, t = roles["sensitive"], asked.get("l"), asked.get("t")
    content: dict[str, Any] = {
        "version": 1,
        "attributes": attributes,
        "promises": promises_of(sensitive, asked["k"], l, t),
    }
    content |= {"read": read} if read else {}
    content |= {"missing_values": list(dict.fromkeys(["", *missing]))} if missing else {}
    content |= {key: asked[key] for key in ("other", "label", "seed") if asked.get(key) is not None}
    misnamed = _misnamed(table.names, given_names, asked.get("other"), verb)
    return Words(content, asked.get("method"), misnamed)


def words_of_reading(read: Any) -> Columns:
    """What `read` says beside a policy: keys of the policy's block, and `missing_values`."""
    words = dict(read) if isinstance(read, Mapping) else {}
    missing = words.pop("missing_values", None)
    given = {"read": words if missing is not None else read, "missing_values": missing}
    return cast("Columns", given_words(given))


def said_of_reading(asked: Columns) -> Json:
    return read_options(asked.get("read")).model_dump(exclude_unset=True)


def _check(asked: Columns, named: Sequence[str], names: Sequence[str], verb: str) -> None:
    require_text(verb, named)
    findings = named_twice(named)
    if not asked.get("quasi"):
        findings.append(
            f"{verb}: no quasi-identifier; name the columns that an attacker could know as 'quasi'"
        )
    if asked.get("k") is None:
        findings.append(f"{verb}: no k; say how many people must look alike, for instance k=10")
    is_diverse = asked.get("l") is not None or asked.get("t") is not None
    if is_diverse and not asked.get("sensitive"):
        findings.append(f"{verb}: l and t are about sensitive columns; name one as 'sensitive'")
    label = asked.get("label")
    if label is not None and label not in names:
        InputError.raise_for(_misnamed(names, [*named, label], "drop", verb))
    if label is not None and label not in named and asked.get("other") != "plain":
        what = "is dropped" if asked.get("other") == "drop" else "has no role"
        findings.append(f"{verb}: the label, '{label}', {what}; name it in plain=, too")
    InputError.raise_for(findings)


def require_text(verb: str, named: Iterable[object]) -> None:
    """Raises InputError for names other than text: frames may have some, policies have not."""
    odd = [name for name in named if not isinstance(name, str)]
    if odd:
        columns, are = ("columns", "are") if odd[1:] else ("column", "is")
        raise InputError(
            f"{verb}: {columns} {', '.join(map(repr, odd))} {are} not named by text; rename"
            f" {'them' if odd[1:] else 'it'}, in pandas by df.columns = df.columns.map(str)"
        )


def _misnamed(
    names: Sequence[str], given: Sequence[str], other: str | None, verb: str
) -> list[str]:
    """Where columns and names don't match, in the words of the call."""
    absent = [name for name in given if name not in names]
    unnamed = [] if other is not None else [name for name in names if name not in given]
    findings = []
    if absent:
        near = [(name, nearest(name, names)) for name in absent]
        hints = ", ".join(f"'{other}' for '{name}'" for name, other in near if other)
        hint = f"did you mean {hints}? " if hints else ""
        are = "are" if absent[1:] else "is"
        findings.append(
            f"{verb}: {named_as('column', absent)} {are} not in the frame; {hint}correct the names"
        )
    if unnamed:
        findings.append(
            f"{verb}: no role is given to {quoted(unnamed)}; name each as quasi, sensitive, plain,"
            " drop or subject, or say other='drop' or other='plain'"
        )
    return findings


def _settings(given: Mapping[str, NamesOrSettings]) -> dict[str, Settings]:
    """The settings of columns that have some; raises InputError for what can be none.

    given: by role, names of columns or a mapping from them to settings.
    """
    findings, settings = [], {}
    of_roles = [(role, names) for role, names in given.items() if isinstance(names, Mapping)]
    for role, name, own in ((role, *pair) for role, names in of_roles for pair in names.items()):
        if not isinstance(own, Mapping | None):
            findings.append(f"column '{name}': its settings are a dict, such as {{'round': 5}}")
        elif own is not None and "role" in own:
            findings.append(f"column '{name}': '{role}' says its role; leave 'role' out")
        elif own:
            settings[name] = own
    InputError.raise_for(findings)
    return settings


# What a column says of itself


def texts_of(values: Names) -> list[str]:
    """What stands for no value, as cells hold it."""
    return with_decimals(map(str, listed(values)))


def _with_values_alone(table: Table, missing: Sequence[str]) -> Table:
    """The table with nothing where a cell stands for no value."""
    is_value = {name: ~as_text(table.frame[name]).is_in(missing) for name in table.names}
    return Table(
        table.frame.select(pl.when(one).then(pl.col(name)) for name, one in is_value.items())
    )


def _as_read(
    named: Collection[str], table: Table, said: Mapping[str, Any]
) -> tuple[dict[str, Column], Json]:
    """The columns of these names, numbers and dates as Shoal reads them where nothing is open about
    how they are written, and what a policy says of that. said: of it by whoever publishes.
    """
    columns, found = columns_as_read(table, named, said)
    are_other = any(one.cells != table.column(name).cells for name, one in columns.items())
    read = found.read if are_other else {}
    if POINT_OR_GROUPS in found.questions.values():
        read.setdefault("decimal", ".")  # what is said is warned of
    return columns, {**said, **read}


def _quasi(
    name: str,
    own: Settings,
    table: Table,
    columns: Mapping[str, Column],
    orders: Mapping[str, list[str]],
) -> dict[str, Any]:
    """The settings of a quasi-identifier: its own, and what its column says where they don't.

    columns: as they are read, where `table` has them as they are written.
    """
    if name not in table.names or any(key in own for key in TYPE_KEYS):
        return dict(own)
    if name in orders:
        return {"order": orders[name], **own}
    column = columns[name]
    cells = [cell for cell in column.cells if cell]
    if _is_dates(table.frame[name].dtype, cells):
        decades = ["decade"] if len({cell[:3] for cell in cells}) > 1 else []
        return {"hierarchy": {"dates": [*PERIODS, *decades]}, **own}
    is_as_written = column.cells == table.column(name).cells
    if not column.was_number and is_as_written and _is_code(cells):
        return {"hierarchy": {"prefix": len(cells[0])}, **own}
    if _is_number(column, cells) and (column.was_number or len(cells) >= FEWEST_NUMBERS):
        return {"type": "number", **_domain(name, parse_numbers(tuple(cells))), **own}
    return dict(own)


def _domain(name: str, values: np.ndarray) -> dict[str, Any]:
    """The domain of a column of numbers; none where no float can tell its ends apart."""
    values = values[np.isfinite(values)]
    if not len(values) or np.abs(values).max() > FARTHEST:
        return {}
    low, high = outward_domain(values, words_of(name))
    return {"domain": [low, high]} if float(low) < float(high) else {}


def _sensitive(
    name: str, role: str, table: Table, own: Settings, orders: Mapping[str, list[str]]
) -> dict[str, Any]:
    """The settings of another column: its own, and what its cells say where they don't.

    Amounts and ordered categories are compared by how far they lie apart, all other values as equal
    or not; numbers stay numbers to whoever reads them.
    """
    is_shown = role in ("sensitive", "plain") and name in table.names
    if not is_shown or any(key in own for key in TYPE_KEYS):
        return dict(own)
    if role == "sensitive" and name in orders:
        return {"order": orders[name], **own}
    column = table.column(name)
    cells = [cell for cell in column.cells if cell]
    if not (column.was_number and cells):
        return dict(own)
    if role == "plain":
        return {"type": "number", **own}
    if fall_together(parse_numbers(cells), cells).any():
        return dict(own)
    if len(cells) > MANY_NUMBERS:
        return {"type": "number", **own}
    is_code = all(map(NUMBER.fullmatch, cells))
    return {"type": "number", "distance": "equal", **own} if is_code else dict(own)


def _is_dates(dtype: pl.DataType, cells: Sequence[str]) -> bool:
    if dtype == pl.Date or isinstance(dtype, pl.Datetime):
        return bool(cells)
    return dtype == pl.String and bool(cells) and all(map(DATE.fullmatch, cells))


def _is_code(cells: Sequence[str]) -> bool:
    """Whether all texts are as many digits, as postal codes and years are."""
    lengths = {len(cell) for cell in cells}
    is_code = len(lengths) == 1 and lengths.pop() >= FEWEST_DIGITS
    return is_code and all(map(DIGITS.fullmatch, cells))


def _is_number(column: Column, cells: Sequence[str]) -> bool:
    """Whether all values are numbers; digits in text that begin with 0 are a code.

    A column that came as numbers is one though it holds what is none, which is then an error.
    """
    return bool(cells) and (column.was_number or all(map(NUMBER.fullmatch, cells)))


# Words of a call


def promises_of(
    sensitive: Sequence[str], k: int, l: int | None, t: float | None
) -> Sequence[Mapping[str, Any]]:
    """What these numbers promise: k for all, l and t of every sensitive column."""
    promises: list[Mapping[str, Any]] = [{"model": "k-anonymity", "k": k}]
    for name in sensitive:
        if l is not None:
            promises.append({"model": "l-diversity", "attribute": name, "l": l, "kind": "distinct"})
        if t is not None:
            promises.append({"model": "t-closeness", "attributes": [name], "t": t})
    return promises


def named_twice(names: Iterable[str]) -> list[str]:
    """A finding for every column that was given two roles."""
    return [
        f"column '{name}': is named twice; name it once"
        for name, count in sorted(Counter(names).items())
        if count > 1
    ]


def given_words(words: Mapping[str, Any]) -> Mapping[str, Any]:
    """The words that say something, as Python's own values; None and empty lists say nothing."""
    plain = {word: _plain(value) for word, value in words.items()}
    return {
        word: value
        for word, value in plain.items()
        if value is not None and not (isinstance(value, list | tuple) and not value)
    }


def _plain(value: Any) -> Any:
    """Of an array or an index the list of its cells, of NumPy's number Python's."""
    for way in ("tolist", "to_list"):  # NumPy and pandas, polars
        if hasattr(value, way):
            return getattr(value, way)()
    return value


def listed(names: str | Iterable[str]) -> list[str]:
    """Names of columns; a text is one name, and so is what is no collection, such as a number. A
    set is sorted, so that it is always the same list.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        return [names]
    return sorted(names, key=str) if isinstance(names, Set) else list(names)
