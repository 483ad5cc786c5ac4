"""Propose: a first policy for a table, every role with its reason, to be read before it is used.

cells > how they are written > roles > who numbers people > hierarchies > who is alone
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shoal.advise.proposal.cells import ColumnCells, as_read, notation_in
from shoal.advise.proposal.matching import (
    HierarchyFile,
    hierarchy_files,
    with_hierarchies,
)
from shoal.advise.proposal.proposal import Proposal, ProposedColumn, SinglingOut, with_shares
from shoal.advise.proposal.roles import IS_IT_KNOWN, Guess, guess_of, with_one_subject
from shoal.connectors import files
from shoal.connectors.frames import Frame, table_of
from shoal.data.column_words import is_no_header, looks_like_data
from shoal.data.person.answer import Answer
from shoal.data.person.decision import who_is_a_person
from shoal.data.person_names import named_together
from shoal.data.progress import Progress, no_progress, tell
from shoal.data.table import Table, without_nobody
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.interchange import ReadOptions, reading_of
from shoal.policy.loading import read_options
from shoal.policy.parameters import build


def propose(frame: Frame, k: int = 10) -> str:
    """A valid policy for this table as YAML, with a reason beside every role. k: at least 2."""
    return propose_policy(frame, k).text


def propose_policy(
    frame: Frame,
    k: int = 10,
    *,
    read: Mapping[str, Any] | None = None,
    hierarchies: str | Path | None = None,
    base: str | Path = ".",
    explain: bool = False,
    progress: Progress = no_progress,
) -> Proposal:
    """A valid policy for a pandas, polars or pyarrow frame, with the evidence for every role.

    read: what the policy's block of this name is to say; what it does not say of decimal marks and
    dates is found in the cells. hierarchies: a folder of tables, which become those of the columns
    whose values they list. base: the folder that the policy will be in. explain: also who is
    singled out by few columns. Raises InputError where the table has no header or k is below 2.
    """
    asked = _Asked.of(k, read, hierarchies, base, explain)
    return _proposal(table_of(frame), asked, progress)


def propose_file(
    data_path: str,
    k: int,
    *,
    read: Mapping[str, Any] | None = None,
    hierarchies: str | Path | None = None,
    base: str | Path = ".",
    explain: bool = False,
    progress: Progress = no_progress,
) -> Proposal:
    """As `propose_policy`, for a table in a file."""
    asked = _Asked.of(k, read, hierarchies, base, explain)
    progress("reading the table")
    table = Table(files.read(data_path, reading=reading_of(asked.read)).frame)
    return _proposal(table, asked, progress)


class _Asked(NamedTuple):
    """The options of a proposal, checked before any data is read."""

    k: int
    read: ReadOptions
    folder: list[HierarchyFile]
    base: str | Path
    explain: bool

    @classmethod
    def of(
        cls,
        k: Any,
        read: Mapping[str, Any] | None,
        hierarchies: str | Path | None,
        base: str | Path,
        explain: bool,
    ) -> _Asked:
        promise = build(registry.models()["k-anonymity"], "promise 'k-anonymity'", {"k": k})
        folder = [] if hierarchies is None else hierarchy_files(hierarchies)
        return cls(promise.k, read_options(read or {}), folder, base, explain)


def _proposal(table: Table, asked: _Asked, progress: Progress) -> Proposal:
    check_header(table)
    progress("detecting how numbers and dates are written")
    said = asked.read.model_dump(exclude_unset=True)
    found = notation_in(table, said)
    said |= found.read
    notation = read_options(said).notation
    frame = as_read(without_nobody(table.frame)[0], notation)
    table = table if frame is table.frame else Table(frame)
    columns = cells_of(table, progress)
    guesses = {name: guess_of(column) for name, column in columns.items()}
    progress("looking for columns that number people")
    answer = who_is_a_person(table)
    guesses = with_one_subject(guesses, columns, answer)
    guesses = with_hierarchies(_with_one_quasi(guesses), columns, asked.folder, asked.base)
    for name in looks_like_data(table, table.names):
        more = "; its name looks like a value: the first line must name the columns"
        guesses[name] = replace(guesses[name], reason=guesses[name].reason + more)
    if "column_1" in guesses and "column_2" not in guesses:
        reason = "without a name in the data, as names of rows are: removed"
        guesses["column_1"] = Guess({"role": "identifier"}, reason)
    for name, question in found.questions.items():
        guesses[name] = guesses[name].asking(question)
    proposed = [_proposed(name, guess) for name, guess in guesses.items()]
    subject = _subject_of(answer, guesses)
    counted = _singling_out(table, proposed, subject)
    shares = counted.shares(progress)
    return Proposal(
        with_shares(proposed, shares),
        asked.k,
        said,
        tuple(sorted({cell for column in columns.values() for cell in column.absent if cell})),
        shares.together,
        counted.order(progress) if asked.explain else None,
        subject,
    )


def check_header(table: Table) -> None:
    odd = looks_like_data(table, table.names)
    if is_no_header(odd, table.names):
        raise InputError(
            f"columns: {len(odd)} of {len(table.names)} have names that look like data; "
            "put a line that names the columns on top, or say which line does, such as"
            " --read header=2"
        )


def cells_of(table: Table, progress: Progress) -> dict[str, ColumnCells]:
    columns = {}
    for number, name in enumerate(table.names, 1):
        stage = f"looking at column {number} of {len(table.names)}"
        tell(progress, stage, number - 1, len(table.names))
        columns[name] = ColumnCells.of(table.column(name))
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


def _proposed(name: str, guess: Guess) -> ProposedColumn:
    asked = {} if guess.ask is None else {"ask": guess.ask}
    return ProposedColumn(name, guess.settings | asked, guess.reason)


def _subject_of(answer: Answer, guesses: Mapping[str, Guess]) -> str | list[str] | None:
    """What numbers the people, by the guesses: a column, or several together."""
    alone = next((name for name, guess in guesses.items() if guess.role == "subject"), None)
    first = next(iter(answer.candidates), None)
    if alone is not None or first is None or len(first.columns) < 2 or first.is_profile:
        return alone
    return first.key if all(guesses[name].role == "identifier" for name in first.columns) else None


def _singling_out(
    table: Table, proposed: list[ProposedColumn], subject: str | list[str] | None
) -> SinglingOut:
    quasi = [column.name for column in proposed if column.role == "quasi"]
    person = None
    if isinstance(subject, list):
        person = named_together("", [table.column(name) for name in subject], ())
    elif subject is not None:
        person = table.column(subject)
    people = None if person is None else np.asarray(person.codes, dtype=np.int64)
    return SinglingOut(quasi, [table.column(name).codes for name in quasi], people)
