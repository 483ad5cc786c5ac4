"""One column's role by what it is: the first rule that fits.

Guesses lean to caution: what an attacker could know is a quasi-identifier, what names a person
goes. Where a wrong guess would publish what nobody meant to publish, a question stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shoal.advise.proposal.cells import ColumnCells, in_order
from shoal.data.column_words import (
    CODE,
    IDENTIFIER,
    MAYBE_SENSITIVE,
    NUMBER,
    PERSON,
    REFERENCE,
    SENSITIVE,
    names_person,
    names_place,
    words_of,
)
from shoal.data.findings import some_named
from shoal.data.person_numbers import FEWEST_DISTINCT, Evidence
from shoal.data.single_ends import outward_domain

MANY = 50  # distinct texts from which a category can hardly be published without a hierarchy
FEW_RECORDS = 10  # too few to tell a counter from numbers
LONGEST_CODE = 12
CATEGORIES = 10  # distinct numbers up to which a sensitive one is compared as a category

COULD_OTHERS_KNOW = "could others know it already? if so, give it the role 'quasi'"
IS_IT_KNOWN = "nothing looks like what others may know; is it this?"


@dataclass(frozen=True)
class Guess:
    """A role with its settings, why, and what somebody has to decide."""

    settings: dict[str, Any]
    reason: str
    questions: tuple[str, ...] = field(default=())

    @property
    def role(self) -> str:
        return str(self.settings["role"])

    def asking(self, *more: str) -> Guess:
        return replace(self, questions=(*self.questions, *more))


def guess_of(column: ColumnCells) -> Guess:
    """The column's role by its own name and cells; who numbers people is decided over all."""
    for rule in _RULES:
        guess = rule(column)
        if guess is not None:
            return guess
    return _category(column)


def _empty(column: ColumnCells) -> Guess | None:
    return None if column.distinct else Guess({"role": "drop"}, "empty: dropped")


def _place(column: ColumnCells) -> Guess | None:
    if not names_place(column.words):
        return None
    longest = min(int(column.values.str.len_chars().max() or 1), 64)  # type: ignore[arg-type]
    return Guess(
        {"role": "quasi", "hierarchy": {"prefix": longest}},
        "a place; digits are hidden from the right",
    )


def _date(column: ColumnCells) -> Guess | None:
    if not column.are_iso_days:
        return None
    decade = ["decade"] if column.values.str.head(3).n_unique() > 1 else []
    hour = ["hour"] if column.values.str.len_chars().max() > 10 else []  # type: ignore[operator]
    periods = [*hour, "day", "month", "quarter", "year", *decade]
    return Guess({"role": "quasi", "hierarchy": {"dates": periods}}, "a date")


def _identifier(column: ColumnCells) -> Guess | None:
    if not IDENTIFIER & set(column.words):
        return None
    return Guess({"role": "identifier"}, "by its name it names a person: removed")


def _all_different(column: ColumnCells) -> Guess | None:
    if not column.all_differ:
        return None
    words = set(column.words)
    if words & PERSON:
        return Guess({"role": "subject"}, "by its name the people that k counts: removed")
    if words & NUMBER and (column.numbers is None or column.are_whole):
        return Guess({"role": "identifier"}, "a number that differs for every record: removed")
    if column.numbers is None:
        return Guess({"role": "identifier"}, "text that differs for every record: removed")
    if column.counts_records and column.records >= FEW_RECORDS:
        return Guess({"role": "identifier"}, "it counts the records: removed")
    return None


def _bins(column: ColumnCells) -> Guess | None:
    if not 1 < column.distinct <= MANY:
        return None
    order = in_order(column.cells.to_list())
    if order is None:
        return None
    return Guess(
        {"role": "quasi", "type": "ordinal", "order": order}, "spans of a number that others know"
    )


def _sensitive(column: ColumnCells) -> Guess | None:
    is_sure = bool(SENSITIVE & set(column.words))
    if not is_sure and not MAYBE_SENSITIVE & set(column.words):
        return None
    is_number = column.numbers is not None and column.distinct > CATEGORIES
    guess = Guess(
        {"role": "sensitive", **({"type": "number"} if is_number else {})},
        "by its name what an attacker wants to learn: published as it is",
    )
    return guess if is_sure else guess.asking(COULD_OTHERS_KNOW)


def _code(column: ColumnCells) -> Guess | None:
    """Numbers that nobody computes with."""
    length = column.code_length
    if length is not None and length <= LONGEST_CODE and column.distinct > MANY:
        return Guess(
            {"role": "quasi", "hierarchy": {"prefix": length}},
            "codes that others may know; digits are hidden from the right",
        )
    named = CODE & set(column.words) and column.distinct <= MANY and column.are_whole
    if length is None and not named:
        return None
    return Guess({"role": "quasi"}, "codes that others may know; a hierarchy would lose less")


def _number(column: ColumnCells) -> Guess | None:
    if column.numbers is None or column.distinct <= 2:
        return None
    if column.numbers.min() == column.numbers.max():  # 1, 1.0 and 1.00
        return None
    domain = outward_domain(column.numbers, column.words)
    return Guess({"role": "quasi", "type": "number", "domain": domain}, "others may know it")


def _free_text(column: ColumnCells) -> Guess | None:
    if column.distinct <= max(MANY, column.records / 2):
        return None
    return Guess(
        {"role": "drop"}, "text that differs for most records: dropped, it may name people"
    )


def _category(column: ColumnCells) -> Guess:
    if column.distinct > MANY:
        reason = (
            f"{column.distinct} values; give it a hierarchy, or it is published whole or not at all"
        )
        return Guess({"role": "quasi"}, reason)
    return Guess({"role": "quasi"}, "others may know it; a hierarchy would lose less")


_RULES: tuple[Callable[[ColumnCells], Guess | None], ...] = (
    _empty,
    _place,
    _date,
    _identifier,
    _all_different,
    _bins,
    _sensitive,
    _code,
    _number,
    _free_text,
)


# Which column numbers the people that k counts: by evidence in the cells, else by its name.


DOES_IT_NUMBER_PEOPLE = "does it number people? if not, give it another role"
OR_IS_IT = "are its people the ones to count, or those of {}?"
WHOSE = "records without a value here: {}; whose are they?"
BY_NAME = "by its name the people that k counts: removed"
ANOTHER = Guess({"role": "identifier"}, "another number of people or things: removed")


def with_one_subject(
    guesses: Mapping[str, Guess], columns: Mapping[str, ColumnCells], evidence: list[Evidence]
) -> dict[str, Guess]:
    """The guesses with at most one subject; other columns that number something are removed."""
    if evidence:
        chosen, subject, rest = _by_evidence(evidence)
    else:
        rest = _by_name(guesses, columns)
        if not rest:
            return dict(guesses)
        chosen, *rest = rest
        subject = _named(columns[chosen], [name for name in rest if columns[name].repeats])
    lacking = columns[chosen].records - columns[chosen].filled
    if lacking:
        subject = subject.asking(WHOSE.format(lacking))
    named = {name for name, guess in guesses.items() if guess.role == "subject"}
    things = {name for name, column in columns.items() if _refers(column, guesses[name])}
    removed = dict.fromkeys(({*rest} | named | things) - {chosen}, ANOTHER)
    return {**guesses, **removed, chosen: subject}


def _by_evidence(evidence: list[Evidence]) -> tuple[str, Guess, list[str]]:
    """The column that numbers people, its guess, and others that number something.

    Of an order and its customer the customer is the person: the one named for people, else the one
    with fewer values.
    """
    first, *others = sorted(evidence, key=lambda one: (not _says_people(one.column), one.values))
    rest = [one.column for one in others]
    agreed = some_named(first.agreeing)
    guess = Guess(
        {"role": "subject"},
        f"records that share one agree on {agreed}: the people that k counts, removed",
    )
    rivals = [name for name in rest if _says_people(name) or not _says_people(first.column)]
    if rivals:
        guess = guess.asking(OR_IS_IT.format(", ".join(rivals)))
    elif not _says_people(first.column):
        guess = guess.asking(DOES_IT_NUMBER_PEOPLE)
    return first.column, guess, rest


def _says_people(name: str) -> bool:
    """Whether it is named for people; `id` alone may number orders or households."""
    return bool(PERSON & set(words_of(name)))


def _by_name(guesses: Mapping[str, Guess], columns: Mapping[str, ColumnCells]) -> list[str]:
    """Columns that number people by their names: those that repeat before those that don't."""
    chances = {}
    for name, guess in guesses.items():
        column = columns[name]
        is_person = names_person(column.words)
        # a column of names or codes that mostly differ would be dropped for looking like text
        if column.repeats and column.distinct > 1 and (is_person or _refers(column, guess)):
            chances[name] = (2, is_person, column.distinct)
        elif guess.role == "subject":
            chances[name] = (1, is_person, column.distinct)
    return sorted(chances, key=chances.__getitem__, reverse=True)


def _named(column: ColumnCells, others: list[str]) -> Guess:
    guess = Guess({"role": "subject"}, BY_NAME)
    if not column.repeats:
        return guess
    if others:
        return guess.asking(OR_IS_IT.format(", ".join(others)))
    return guess.asking(DOES_IT_NUMBER_PEOPLE)


def _refers(column: ColumnCells, guess: Guess) -> bool:
    """Whether it repeats as numbers of people or things do, and its name says that it is one."""
    is_named = bool(column.words) and column.words[-1] in REFERENCE
    is_many = column.distinct > column.filled / FEWEST_DISTINCT
    is_whole = column.numbers is None or column.are_whole
    return is_named and is_many and is_whole and column.repeats and guess.role == "quasi"
