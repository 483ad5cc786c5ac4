"""Propose: a first policy for a table, every role with its reason, to be read before it is used.

cells > how they are written > roles > who numbers people > hierarchies > who is alone
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.advise.matching import hierarchy_files, with_hierarchies
from shoal.advise.risk import row_keys, share_text, singled_out, table_risk
from shoal.connectors.dialect import Reading
from shoal.connectors.frames import Frame, durations_in, ordered_categories, table_of
from shoal.data import notebook
from shoal.data.column_words import is_no_header, looks_like_data
from shoal.data.option import build
from shoal.data.person.decision import Answer, who_is_a_person
from shoal.data.person_names import named_together, without_nobody
from shoal.data.progress import Progress, no_progress, tell
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.binding.columns import check_repeated_names
from shoal.policy.binding.files import Source, read_undeclared
from shoal.policy.loading import one_line, read_options
from shoal.policy.model import ReadOptions
from shoal.policy.policy import Policy
from shoal.policy.proposal.cells import ColumnCells, TextsOf
from shoal.policy.proposal.notation import as_read, notation_in
from shoal.policy.proposal.roles import (
    IS_IT_KNOWN,
    Guess,
    asks_who,
    guess_of,
    question_in_words,
    unread,
    with_one_subject,
    with_sample,
)

ORDERED = "others may know it; in the order of its categories"
DURATIONS = "durations, which can't be published: dropped; give numbers, such as their days"


def propose(frame: Frame, k: int = 10) -> str:
    """A valid policy for this table as YAML, with a reason beside every role. k: at least 2."""
    return propose_policy(frame, k).text


def propose_policy(
    frame: Source,
    k: int = 10,
    *,
    read: Mapping[str, Any] | None = None,
    hierarchies: str | Path | None = None,
    base: str | Path = ".",
    explain: bool = False,
    progress: Progress = no_progress,
) -> "Proposal":
    """A valid policy for a pandas, polars or pyarrow frame, with the evidence for every role.

    frame: or a file's path. read: a dict of what the policy's block of this name is to say, such as
    `{"decimal": ",", "header": 2}`; what it does not say of decimal marks and dates is found in the
    cells. hierarchies: a folder of tables, which become those of the columns whose values they
    list. base: the folder that the policy will be in. explain: also who is singled out by few
    columns. Raises InputError where the table has no header or k is below 2.
    """
    promise = build(registry.models()["k-anonymity"], "promise 'k-anonymity'", {"k": k})
    folder = [] if hierarchies is None else hierarchy_files(hierarchies)
    options = read_options(read)
    dropped: list[str] = []
    orders: dict[str, list[str]] = {}
    if isinstance(frame, (str, Path, Table)):
        written, _ = read_undeclared(frame, options, progress)
    else:
        dropped, orders = durations_in(frame), ordered_categories(frame)
        written = table_of(frame, reading=Reading(dropped=frozenset(dropped)))
    found = LookedAt.of(written.without(dropped) if dropped else written, options, progress)
    table, columns = found.table, found.cells
    guesses = with_hierarchies(_with_one_quasi(found.guesses), columns, folder, base)
    for name, labels in orders.items():
        if name in guesses and guesses[name].settings == {"role": "quasi"}:
            ordinal = {"role": "quasi", "order": labels}
            guesses[name] = replace(guesses[name], settings=ordinal, reason=ORDERED)
    for name in looks_like_data(table, table.names):
        more = "; its name looks like a value: the first line must name the columns"
        guesses[name] = replace(guesses[name], reason=guesses[name].reason + more)
    if "column_1" in guesses and "column_2" not in guesses:
        reason = "without a name in the data, as names of rows are: removed"
        guesses["column_1"] = Guess({"role": "identifier"}, reason)
    for name, question in found.questions.items():
        guesses[name] = guesses[name].asking(question)
    guesses = _asking_what_means_nothing(guesses, columns)
    guesses |= dict.fromkeys(dropped, Guess({"role": "drop"}, DURATIONS))
    guesses = {name: guesses[name] for name in written.names}
    subject = _subject_of(found.answer, guesses)
    quasi = [name for name, guess in guesses.items() if guess.role == "quasi"]
    codes = {name: table.column(name).codes for name in quasi}
    people = _people_of(table, subject)
    counted = table_risk(codes, {}, people, progress=progress)
    return Proposal(
        tuple(
            ProposedColumn(
                name,
                guess.settings | ({} if guess.ask is None else {"ask": guess.ask}),
                guess.reason,
                counted.share_alone(name),
                counted.share_added(name),
            )
            for name, guess in guesses.items()
        ),
        promise.k,
        found.read,
        found.missing_values,
        counted.share(counted.lone),
        SinglingOut(codes, people).order(progress) if explain else None,
        subject,
        found.answer.may_recur,
        found.answer.doubted,
    )


def _asking_what_means_nothing(
    guesses: Mapping[str, Guess], columns: Mapping[str, ColumnCells]
) -> dict[str, Guess]:
    """The guesses with the cells that may mean no value; among texts each is asked about once."""
    found, asked = dict(guesses), set[str]()
    for name in sorted(columns, key=lambda name: columns[name].are_texts):
        doubtful, guess = columns[name].doubtful, found[name]
        if columns[name].are_texts:
            doubtful = {text: count for text, count in doubtful.items() if text not in asked}
        found[name] = replace(guess, doubtful=doubtful)
        asked |= doubtful.keys() if found[name].asks_what_means_nothing else set()
    return found


@dataclass(frozen=True)
class LookedAt:
    """A table whose columns were looked at, before anybody has said anything about it.

    read: as in a policy's block of this name, with what the cells show. questions: by column, what
    is open about how it is read. guesses: of roles, with one subject at most. answer: who is one
    person.
    """

    table: Table
    read: Mapping[str, Any]
    questions: Mapping[str, str]
    cells: dict[str, ColumnCells]
    guesses: dict[str, Guess]
    answer: Answer

    @classmethod
    def of(
        cls, table: Table, read: ReadOptions, progress: Progress, has_key: bool = False
    ) -> "LookedAt":
        """Raises InputError where the table has no header. read, has_key: what is known of it."""
        check_header(table)
        progress("detecting how numbers and dates are written")
        said = read.model_dump(exclude_unset=True)
        found = notation_in(table, said)
        said |= found.read
        frame = as_read(without_nobody(table.frame)[0], read_options(said).notation)
        table = table if frame is table.frame else Table(frame)
        cells = cells_of(table, progress)
        progress("looking for columns that identify people")
        guesses = {name: guess_of(column) for name, column in cells.items()}
        answer = who_is_a_person(table, has_key=has_key)
        guesses = with_sample(with_one_subject(guesses, cells, answer), cells, table)
        texts = {name: unread(cells[name], guess) for name, guess in guesses.items()}
        questions = {name: asked for name, asked in texts.items() if asked} | found.questions
        return cls(table, said, questions, cells, guesses, answer)

    @property
    def missing_values(self) -> tuple[str, ...]:
        """Texts that seem to stand for no value."""
        cells = self.cells.values()
        asked = {cell for column in cells for cell in column.doubtful}
        numbers = [column.cells for column in cells if column.numbers is not None]
        elsewhere = {cell for values in numbers for cell in asked.intersection(values)}
        return tuple(
            sorted({cell for column in cells for cell in column.absent if cell} - elsewhere)
        )


def check_header(table: Table) -> None:
    odd = looks_like_data(table, table.names)
    if is_no_header(odd, table.names):
        repeated = table.rows_of_names
        rest = Table(table.frame.filter(~pl.int_range(table.records, eager=True).is_in(repeated)))
        if len(repeated) and not is_no_header(looks_like_data(rest, rest.names), rest.names):
            raise InputError.from_findings(check_repeated_names(table))
        raise InputError(
            f"columns: {len(odd)} of {len(table.names)} have names that look like data; "
            "put a line that names the columns on top, or say which line does, such as"
            " --read header=2; name the columns of a frame"
        )


def cells_of(table: Table, progress: Progress) -> dict[str, ColumnCells]:
    columns = {}
    each = TextsOf.of_each([*map(table.column, table.names)])
    for number, (name, texts) in enumerate(zip(table.names, each, strict=True)):
        tell(progress, "looking at every column", number, len(table.names))
        columns[name] = ColumnCells.of(table.column(name), texts)
    return columns


def _with_one_quasi(guesses: dict[str, Guess]) -> dict[str, Guess]:
    """Without a quasi-identifier nothing is protected: the likeliest column becomes one."""
    if any(guess.role == "quasi" for guess in guesses.values()):
        return guesses
    for wanted in ("sensitive", "drop", "identifier", "subject"):
        for name, guess in guesses.items():
            if guess.role == wanted:
                reason = "nothing else looks like what others may know: check this"
                return {**guesses, name: Guess({"role": "quasi"}, reason, (IS_IT_KNOWN,))}
    return guesses


def _subject_of(answer: Answer, guesses: Mapping[str, Guess]) -> str | list[str] | None:
    """What numbers the people, by the guesses: a column, or several together."""
    alone = [name for name, guess in guesses.items() if guess.role == "subject"]
    several = [one for one in answer.candidates[:1] if len(one.columns) > 1 and not one.is_profile]
    if alone or not several:
        return next(iter(alone), None)
    are_left = all(guesses[name].role == "identifier" for name in several[0].columns)
    return several[0].key if are_left else None


def _people_of(table: Table, subject: str | list[str] | None) -> np.ndarray | None:
    """(n,) whose record it is, numbered densely; None where each is its own person's."""
    if subject is None:
        return None
    if isinstance(subject, list):
        person = named_together("", [table.column(name) for name in subject], ())
    else:
        person = table.column(subject)
    return np.asarray(person.codes, dtype=np.int64)


# How many people the quasi-identifiers single out in pairs, and one after the other.
#
# A person is singled out by some columns if one of their records holds values there that no other
# person's record holds. More columns single out the same people and maybe more, so that what a
# column adds to all others is a difference of two counts.


WORST_PAIRS = 3
LONGEST_ORDER = 8
ENOUGH = 0.95  # share of all whom all columns single out, at which an order ends


@dataclass(frozen=True)
class Order:
    """pairs: the worst ones, with the share that they single out. steps: columns, each the one that
    adds most to those before it, with the share that all up to it single out.
    """

    pairs: tuple[tuple[str, str, float], ...]
    steps: tuple[tuple[str, float], ...]


class SinglingOut:
    """Counts over a table's records.

    codes: by column, (n,) which value a record holds. people: (n,) whose record it is, numbered
    densely; None where each is its own person's.
    """

    def __init__(self, codes: Mapping[str, np.ndarray], people: np.ndarray | None = None) -> None:
        self._names = list(codes)
        records = len(next(iter(codes.values()), ()))
        self._keys = list(row_keys(codes, records).values())
        self._distinct = [int(column.max(initial=0)) + 1 for column in codes.values()]
        self._people = people
        self._count = records if people is None else int(people.max(initial=-1)) + 1

    def order(self, progress: Progress = no_progress) -> Order:
        """The worst pairs, and the order in which columns single out most."""
        return Order(self._worst_pairs(progress), self._greedy(progress))

    def _worst_pairs(self, progress: Progress) -> tuple[tuple[str, str, float], ...]:
        pairs = list(combinations(range(len(self._keys)), 2))
        # no pair singles out more people than it has combinations of values
        most = {(a, b): self._distinct[a] * self._distinct[b] for a, b in pairs}
        worst: list[tuple[float, int, int]] = []
        for a, b in sorted(pairs, key=lambda pair: -most[pair]):
            if len(worst) == WORST_PAIRS and most[a, b] < -worst[-1][0] * self._count:
                break
            progress(f"counting who is alone in pairs, column {a + 1} of {len(self._names)}")
            worst.append((-self._share(self._keys[a] ^ self._keys[b]), a, b))
            worst = sorted(worst)[:WORST_PAIRS]
        return tuple((self._names[a], self._names[b], -share) for share, a, b in worst if share)

    def _greedy(self, progress: Progress) -> tuple[tuple[str, float], ...]:
        if not self._keys or not self._count:
            return ()
        together = self._share(np.bitwise_xor.reduce(self._keys, axis=0))
        steps: list[tuple[str, float]] = []
        chosen = np.zeros_like(self._keys[0])
        left = dict(enumerate(self._names))
        while left and len(steps) < LONGEST_ORDER:
            progress(f"ordering columns by whom they single out, step {len(steps) + 1}")
            gains = {i: self._share(chosen ^ self._keys[i]) for i in left}
            # where none gains yet, the one with most values is nearest to it
            best = max(gains, key=lambda i: (gains[i], self._distinct[i]))
            steps.append((left.pop(best), gains[best]))
            chosen = chosen ^ self._keys[best]
            if gains[best] >= ENOUGH * together:
                break
        return tuple(steps) if steps and steps[-1][1] else ()

    def _share(self, keys: np.ndarray) -> float:
        return singled_out(keys, self._people) / self._count


LONGEST_KEY = 1000  # signs; YAML reads a longer one only behind a question mark
HEAD = """\
# A proposal: read every role before you rely on it. Roles: identifier, subject, quasi, sensitive,
# plain, drop, and weight and household of samples. Nothing is published while a key 'ask' is there:
# answer it, then delete it. Beside a quasi-identifier stands how many {unit} are alone with what it
# says of them, and how many it adds to those whom all others single out.
"""
HEAD_OF_SEVERAL = """\
# A proposal for several tables: read every role and every 'parent' before you rely on them. Nothing
# is published or audited while a key 'ask' is there: answer it, then delete it.
"""


@dataclass(frozen=True)
class ProposedColumn:
    """A column's keys in the policy, why, and what it alone shows.

    alone: share of people whom it singles out; adds: share whom all quasi-identifiers single out
    and all others don't. Both are None for other roles.
    """

    name: str
    settings: Mapping[str, Any]
    reason: str
    alone: float | None = None
    adds: float | None = None

    @property
    def role(self) -> str:
        return str(self.settings["role"])

    @property
    def ask(self) -> str | None:
        """What somebody has to decide, in words; None where nothing is open."""
        return question_in_words(self.settings.get("ask"))

    @property
    def why(self) -> str:
        """The reason on one line, with both shares."""
        reason = " ".join(self.reason.split())
        if self.alone is None or self.adds is None:
            return reason
        return f"{reason}; alone {share_text(self.alone)}, adds {share_text(self.adds)}"


@dataclass(frozen=True)
class ProposedTable:
    """A table below people: its columns, its other keys in the policy, and why its parent is it."""

    columns: tuple[ProposedColumn, ...]
    settings: Mapping[str, Any]
    why: str = ""


@dataclass(frozen=True, repr=False)
class Proposal:
    """A first policy for a table, or for that of people and others below it.

    read: the policy's block of this name. missing_values: texts that seem to stand for no value.
    together: share of people whom all quasi-identifiers single out. order: who is singled out by
    few columns; None where it was not asked. subject: what numbers the people, as a policy lists
    it: a column, or several together; None where every record is its own. may_recur: whether people
    may have several records without that being seen. doubted: columns that are named for people,
    but are not taken to number them. tables: those below people, by name.
    """

    columns: tuple[ProposedColumn, ...]
    k: int
    read: Mapping[str, Any]
    missing_values: tuple[str, ...]
    together: float = 0.0
    order: Order | None = None
    subject: str | list[str] | None = None
    may_recur: bool = False
    doubted: tuple[str, ...] = ()
    tables: Mapping[str, ProposedTable] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text

    @property
    def questions(self) -> dict[str, str]:
        """By column or table, what somebody has to decide before anything is published."""
        found = {column.name: column.ask for column in self.columns if column.ask is not None}
        for name, table in self.tables.items():
            found |= {f"{name}.{c.name}": c.ask for c in table.columns if c.ask is not None}
            found |= {name: table.settings["ask"]} if "ask" in table.settings else {}
        return found

    @property
    def asks_who(self) -> bool:
        """Whether somebody has to say who is one person."""
        return any(asks_who(column.settings.get("ask")) for column in self.columns)

    @property
    def unit(self) -> str:
        """What is counted."""
        return "records" if self.subject is None else "people"

    @property
    def content(self) -> Mapping[str, Any]:
        """The policy as plain dicts, as `Policy.from_dict` takes it."""
        content: dict[str, object] = {"version": 1, "attributes": _attributes(self.columns)}
        if self.tables:
            content["tables"] = {
                name: {**table.settings, "attributes": _attributes(table.columns)}
                for name, table in self.tables.items()
            }
        content["promises"] = [
            {"model": "k-anonymity", "k": self.k},
            # the least that hides a sensitive column: nobody's class agrees on one value
            *(
                {"model": "l-diversity", "attribute": column.name, "l": 2, "kind": "distinct"}
                for column in self.columns
                if column.role == "sensitive" and not self.tables
            ),
        ]
        if isinstance(self.subject, list):
            content["subject"] = self.subject
        if self.missing_values:
            content["missing_values"] = ["", *self.missing_values]
        return content | ({"read": dict(self.read)} if self.read else {}) | {"seed": 7}

    @property
    def policy(self) -> Policy:
        """The policy, to be used once its questions are answered."""
        return Policy.from_dict(self.content)

    def __repr__(self) -> str:
        """What is proposed, in a line; `text` is the whole policy."""
        asked = f"{len(self.questions)} open question{'s' if len(self.questions) != 1 else ''}"
        return f"<Proposal for {len(self.columns)} columns, k = {self.k}, {asked}>"

    def _repr_html_(self) -> str:
        """Each column with its role, why, and what is open, for a notebook."""
        heads = ("column", "role", "why", "open question")
        rows = [(column.name, column.role, column.why, column.ask) for column in self.columns]
        return notebook.section(notebook.table(heads, rows))

    @property
    def text(self) -> str:
        """The policy file, in YAML, with the reason beside every role and every parent."""
        content = self.content
        head = HEAD_OF_SEVERAL if self.tables else HEAD.format(unit=self.unit)
        lines = [f"{head}version: 1", "attributes:", *_lines(self.columns, "  ")]
        lines += ["tables:"] if self.tables else []
        for name, table in self.tables.items():
            lines.append(f"  {one_line(name)}:")
            for key, value in table.settings.items():
                why = f"  # {table.why}" if key == "parent" else ""
                lines.append(f"    {key}: {one_line(value)}{why}")
            lines += ["    attributes:", *_lines(table.columns, "      ")]
        if isinstance(self.subject, list):
            lines.append(f"subject: {one_line(self.subject)}  # they number people together")
        lines += ["promises:", *(f"  - {one_line(promise)}" for promise in content["promises"])]
        if self.missing_values:
            texts = one_line(content["missing_values"])
            lines.append(f"missing_values: {texts}  # texts that seem to stand for no value")
        if self.read:
            lines.append(f"read: {one_line(content['read'])}")
        return "\n".join([*lines, "seed: 7", ""])


def _attributes(columns: Sequence[ProposedColumn]) -> dict[str, object]:
    return {column.name: dict(column.settings) for column in columns}


def _lines(columns: Sequence[ProposedColumn], indent: str) -> list[str]:
    """A line for each column, with the reason beside its role."""
    if not columns:
        return [f"{indent}{{}}"]
    keys = [f"{one_line(column.name)}:" for column in columns]
    keys = [key if len(key) <= LONGEST_KEY else f"? {key[:-1]}\n{indent}:" for key in keys]
    width = min(max(map(len, keys)), LONGEST_KEY)
    return [
        f"{indent}{key:<{width}} {one_line(column.settings)}  # {column.why}"
        for key, column in zip(keys, columns, strict=True)
    ]
