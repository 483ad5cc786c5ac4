"""Which column numbers the people that k counts: by evidence in the cells, else by its name."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.advise.proposal.cells import ColumnCells
from shoal.advise.proposal.roles import Guess
from shoal.data.column_words import PERSON, REFERENCE, names_person, words_of
from shoal.data.findings import some_named
from shoal.data.person_numbers import FEWEST_DISTINCT, Evidence

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
