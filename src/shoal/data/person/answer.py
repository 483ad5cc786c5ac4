"""An answer to who is one person, in counts and in words; never with a value of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from shoal.data.findings import some_named

QUESTION = "person"
"""The question's name where a policy asks it: `ask: {question: person, candidates: [...]}`."""


class Verdict(Enum):
    """Whether one column numbers the people, somebody has to say, or every record is a person."""

    SURE = "sure"
    ASK = "ask"
    NONE = "none"


@dataclass(frozen=True)
class PersonCandidate:
    """One column, or several together, that may number people.

    people: as many would there be. records: those that have a value; most: of one person. agreeing:
    columns on which records of one agree, steadiest first. is_named: whether its name says so.
    is_profile: whether it only describes people, as age and height together do. twins: columns that
    say the same.
    """

    columns: tuple[str, ...]
    people: int
    records: int
    most: int
    agreeing: tuple[str, ...] = ()
    is_named: bool = False
    is_profile: bool = False
    twins: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Its columns, as a question lists them."""
        return " + ".join(self.columns)

    @property
    def key(self) -> str | list[str]:
        """Its columns, as a policy lists them."""
        return self.columns[0] if len(self.columns) == 1 else list(self.columns)

    @property
    def meaning(self) -> str:
        """What would follow if it numbers people."""
        each = self.records / self.people
        return f"{self.people} people, {each:.1f} rows each on average, {self.most} at most of one"

    def __str__(self) -> str:
        if self.is_profile:
            return (
                f"no column numbers people, but only {self.people} profiles of"
                f" {some_named(self.columns)} stand in {self.records} records; if each is one"
                " person, give everyone a number in a column with the role 'subject'"
            )
        if len(self.columns) > 1:
            return (
                f"columns {some_named(self.columns)}: {self.records} records carry {self.people}"
                f" different combinations, up to {self.most} each{self._agreement}; if they number"
                f" people together, say 'subject: [{', '.join(self.columns)}]', and give each the"
                " role 'identifier'"
            )
        return (
            f"column '{self.columns[0]}': {self.records} records carry {self.people} different"
            f" values, up to {self.most} each{self._agreement}; if it numbers people, give it the"
            " role 'subject'"
        )

    @property
    def _agreement(self) -> str:
        if not self.agreeing:
            return ""
        return f", and records that share one agree on {some_named(self.agreeing)}"


@dataclass(frozen=True)
class Answer:
    """Who is one person in a table.

    candidates: the likeliest first; one where it is sure. removed: other columns that number people
    or what belongs to them.
    """

    verdict: Verdict
    candidates: tuple[PersonCandidate, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def question(self) -> str:
        """What somebody has to decide, with what each candidate would mean."""
        return question_text(self.candidates)

    @property
    def asked(self) -> Mapping[str, Any]:
        """The question as a policy holds it."""
        keys = [candidate.key for candidate in self.candidates]
        return {"question": QUESTION, "candidates": keys, "text": self.question}


def question_text(candidates: Sequence[PersonCandidate]) -> str:
    """The question who is one person, in a sentence."""
    first = candidates[0]
    if first.is_profile:
        return (
            f"who is one person? no column numbers people, but only {first.people} profiles of"
            f" {some_named(first.columns)} stand in {first.records} records, {first.most} at most"
            " of one; is every record a person?"
        )
    means = "; ".join(f"by {one.title}: {one.meaning}" for one in candidates)
    return f"who is one person? {means}; or every record"


def question_in_words(ask: str | Mapping[str, Any] | None) -> str | None:
    """A policy's `ask` in words: a sentence, or the question who is one person."""
    if not isinstance(ask, Mapping):
        return ask
    listed = ask["candidates"]
    keys = [one if isinstance(one, str) else " + ".join(one) for one in listed]
    return str(ask.get("text") or f"who is one person, by {', '.join(keys)}, or every record?")
