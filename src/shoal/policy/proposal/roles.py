"""One column's role by what it is: the first rule that fits.

Guesses lean to caution: what an attacker could know is a quasi-identifier, what names a person
goes. Where a wrong guess would publish what nobody meant to publish, a question stands beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shoal.data.column_words import CODE, REFERENCE, ColumnName, mean, name_of, names_place
from shoal.data.findings import some_named
from shoal.data.person.decision import Answer, PersonCandidate, Verdict
from shoal.data.person.people import MOST_TO_A_NUMBER
from shoal.data.single_ends import outward_domain, rounding
from shoal.data.table import Table
from shoal.policy.proposal.cells import NEARLY_ALL, ColumnCells, in_order

MANY = 50  # distinct texts from which a category can hardly be published without a hierarchy
FEW_RECORDS = 10  # too few to tell a counter from numbers
LONGEST_CODE = 12
CATEGORIES = 10  # distinct numbers up to which a sensitive one is compared as a category
FEWEST_NUMBERS = 10  # distinct values of a number or an address of people; fewer are a flag

OFTEN_NEW = 1 / 4  # share of distinct phrases among many from which they are free text

FORMS = {
    "e-mail": "e-mail addresses",
    "phone": "phone numbers",
    "iban": "account numbers (IBAN)",
    "icd": "diagnoses (ICD-10)",
    "atc": "medication (ATC)",
}
PERSONAL_FORMS = ("e-mail", "phone", "iban")
PRIVATE_FORMS = ("icd", "atc")
COULD_OTHERS_KNOW = "could others know it already? if so, give it the role 'quasi'"
TOO_PRECISE = "most of its numbers are one record's alone; can they be rounded or left out?"
MEAN_NOTHING = "{} cells hold what is often written for no value; does it mean that here?"
NAME_PEOPLE = "it holds sentences; can one of them name or describe a person? if so, leave it out"
IS_IT_KNOWN = "nothing looks like what others may know; is it this?"


@dataclass(frozen=True)
class Guess:
    """A role with its settings, why, and what somebody has to decide.

    person: the answer to who is one person that somebody has to confirm here; None elsewhere.
    doubtful: cells that may stand for no value, with how many there are.
    """

    settings: dict[str, Any]
    reason: str
    questions: tuple[str, ...] = field(default=())
    person: Answer | None = None
    doubtful: Mapping[str, int] = field(default_factory=dict)

    @property
    def role(self) -> str:
        return str(self.settings["role"])

    def asking(self, *more: str) -> "Guess":
        return replace(self, questions=(*self.questions, *more))

    @property
    def asks_what_means_nothing(self) -> bool:
        is_compared = self.role in ("quasi", "sensitive")
        return bool(self.doubtful) and is_compared and self.person is None

    @property
    def ask(self) -> str | Mapping[str, Any] | None:
        """The open questions as a policy holds them; None where nothing is open."""
        if self.person is not None:
            asked = self.person.asked
        elif self.asks_what_means_nothing:
            text = MEAN_NOTHING.format(sum(self.doubtful.values()))
            asked = {"question": "missing", "values": dict(self.doubtful), "text": text}
        else:
            return _in_a_row(self.questions) or None
        return {**asked, "text": _in_a_row([asked["text"], *self.questions])}


def _in_a_row(questions: Sequence[str]) -> str:
    return "; ".join(questions).replace("?; ", "? ")


def asks_who(ask: str | Mapping[str, Any] | None) -> bool:
    """Whether a policy's `ask` is the question who is one person."""
    return isinstance(ask, Mapping) and ask.get("question") == "person"


def question_in_words(ask: str | Mapping[str, Any] | None) -> str | None:
    """A policy's `ask` in words, without a value: a sentence, or one of the questions that programs
    read.
    """
    if not isinstance(ask, Mapping):
        return ask
    if not asks_who(ask):
        return str(ask.get("text") or "do the texts that it lists mean no value?")
    listed = ask["candidates"]
    keys = [one if isinstance(one, str) else " + ".join(one) for one in listed]
    return str(ask.get("text") or f"who is one person, by {', '.join(keys)}, or every record?")


def guess_of(column: ColumnCells) -> Guess:
    """The column's role by its own name and cells; who numbers people is decided over all."""
    if not column.distinct:
        return Guess({"role": "drop"}, "empty: dropped")
    return next(filter(None, (rule(column) for rule in _RULES)), None) or _category(column)


def _place(column: ColumnCells) -> Guess | None:
    if not names_place(column.words):
        return None
    longest = min(int(column.values.str.len_chars().max() or 1), 64)  # type: ignore[arg-type]
    settings = {"role": "quasi", "hierarchy": {"prefix": longest}}
    return Guess(settings, "a place; digits are hidden from the right")


def _date(column: ColumnCells) -> Guess | None:
    if not column.are_iso_days:
        return None
    decade = ["decade"] if column.values.str.head(3).n_unique() > 1 else []
    hour = ["hour"] if column.values.str.len_chars().max() > 10 else []  # type: ignore[operator]
    periods = [*hour, "day", "month", "quarter", "year", *decade]
    return Guess({"role": "quasi", "hierarchy": {"dates": periods}}, "a date")


def _identifier(column: ColumnCells) -> Guess | None:
    name = name_of(column.name)
    is_of_one = name.kind in ("civil", "contact") and not name.is_of_other
    if mean(column.words, "identifier") or (is_of_one and column.distinct >= FEWEST_NUMBERS):
        return Guess({"role": "identifier"}, "by its name it names a person: removed")
    return None


def _form(column: ColumnCells) -> Guess | None:
    """What is written as nothing else is, whatever its name."""
    form = column.form
    if not form:
        return None
    is_personal = form in PERSONAL_FORMS
    role, then = ("identifier", "removed") if is_personal else ("sensitive", "published as it is")
    return Guess({"role": role}, f"written as {FORMS[form]}: {then}")


def _all_different(column: ColumnCells) -> Guess | None:
    name = name_of(column.name)
    if _numbers_records(column, name):
        nearly = "" if column.all_differ else "nearly "
        return Guess(
            {"role": "identifier"}, f"a number that differs for {nearly}every record: removed"
        )
    if not column.all_differ:
        return None
    if name.kind == "person":
        return Guess({"role": "subject"}, BY_NAME)
    if column.numbers is None:
        removed = Guess({"role": "identifier"}, "text that differs for every record: removed")
        return None if column.unread else removed
    if column.counts_records and column.records >= FEW_RECORDS:
        return Guess({"role": "identifier"}, "it counts the records: removed")
    return None


def _numbers_records(column: ColumnCells, name: ColumnName) -> bool:
    """Whether it is named for a number, counts nothing, and hardly repeats; several records may be
    of one room or batch, which people are not told by.
    """
    is_whole = column.numbers is None or column.are_whole
    if not is_whole or not name.is_number or name.is_count:
        return False
    if column.all_differ:
        return name.kind != "person"
    is_many = column.distinct >= max(NEARLY_ALL * column.filled, FEWEST_NUMBERS)
    return is_many and name.kind not in ("group", "thing")


def _bins(column: ColumnCells) -> Guess | None:
    order = in_order(column.cells.to_list()) if 1 < column.distinct <= MANY else None
    if order is None:
        return None
    settings = {"role": "quasi", "type": "ordinal", "order": order}
    return Guess(settings, "spans of a number that others know")


def _sensitive(column: ColumnCells) -> Guess | None:
    is_sure = mean(column.words, "sensitive")
    is_named = is_sure or mean(column.words, "maybe_sensitive")
    if not is_named or column.distinct < 2:  # nothing to learn, and no promise that could hold
        return None
    is_number = column.numbers is not None and column.distinct > CATEGORIES
    settings = {"role": "sensitive"} | ({"type": "number"} if is_number else {})
    guess = Guess(settings, "by its name what an attacker wants to learn: published as it is")
    if is_number and column.are_mostly_unique:
        guess = guess.asking(TOO_PRECISE)
    return guess if is_sure else guess.asking(COULD_OTHERS_KNOW)


def _code(column: ColumnCells) -> Guess | None:
    """Numbers that nobody computes with."""
    length = column.code_length
    if length is not None and length <= LONGEST_CODE and column.distinct > MANY:
        settings = {"role": "quasi", "hierarchy": {"prefix": length}}
        return Guess(settings, "codes that others may know; digits are hidden from the right")
    named = CODE & set(column.words) and column.distinct <= MANY and column.are_whole
    if not column.have_leading_zeros and not named:
        return None
    return Guess({"role": "quasi"}, f"codes that others may know{_would_lose_less(column)}")


def _number(column: ColumnCells) -> Guess | None:
    if column.numbers is None or column.distinct <= 2 or not np.ptp(column.numbers):
        return None  # 1, 1.0 and 1.00 are one number
    domain = outward_domain(column.numbers, column.words)
    rounded = {}
    if column.distinct > CATEGORIES:  # of fewer, several people have each
        rounded["round"] = max(_step(column.numbers), 2 if column.are_whole else 0)
    settings = {"role": "quasi", "type": "number", "domain": domain, **rounded}
    return Guess(settings, "others may know it")


def unread(column: ColumnCells, guess: Guess) -> str:
    """What is open about cells that a guess takes for texts; empty where nothing is."""
    is_code = guess.role == "sensitive" and column.odd > 0
    is_of_texts = guess.role in ("quasi", "sensitive", "drop") and len(guess.settings) == 1
    return column.unread if is_of_texts and not is_code else ""


def advised_step(column: ColumnCells) -> int | float | None:
    """The step of `round` if others may know the numbers of a column; None of codes and of few."""
    guess = guess_of(column)
    if guess.role in ("sensitive", "plain"):
        guess = _number(column) or guess
    return guess.settings.get("round")


def _step(numbers: np.ndarray) -> int | float:
    """The step of `round` for a column: about a tenth of what lies between its quartiles."""
    step = rounding(np.diff(np.quantile(numbers, [0.25, 0.75])), 10)
    return int(step) if step >= 1 else step


def _free_text(column: ColumnCells) -> Guess | None:
    fewest = CATEGORIES if column.are_phrases else MANY
    share = OFTEN_NEW if column.are_phrases and column.distinct > MANY else 1 / 2
    is_new = column.distinct > max(fewest, share * column.filled)
    if is_new:
        return Guess({"role": "drop"}, "free text, which may name people: dropped")
    if column.are_sentences and column.distinct > CATEGORIES:
        return Guess({"role": "quasi"}, "sentences that others may know", (NAME_PEOPLE,))
    return None


def _category(column: ColumnCells) -> Guess:
    reason = f"others may know it{_would_lose_less(column)}"
    if column.distinct > MANY:
        less = "give it a hierarchy, or it is published whole or not at all"
        reason = f"{column.distinct} values; {less}"
    return Guess({"role": "quasi"}, reason)


def _would_lose_less(column: ColumnCells) -> str:
    """Advice for a category; of two values, a hierarchy has nothing between one and all."""
    return "; a hierarchy would lose less" if column.distinct > 2 else ""


_RULES: tuple[Callable[[ColumnCells], Guess | None], ...] = (
    _place,
    _date,
    _form,
    _identifier,
    _all_different,
    _bins,
    _sensitive,
    _code,
    _number,
    _free_text,
)


# Which column says how many people of a population a record stands for.


STANDS_FOR = "does it say how many people of the population a record stands for?"
HUNDREDTHS = r"\.\d\d"  # bodies are seldom weighed that exactly


def with_sample(
    guesses: Mapping[str, Guess], columns: Mapping[str, ColumnCells], table: Table
) -> dict[str, Guess]:
    """The guesses with the column of weights and that of households, if there are some.

    A weight is 1 at least in every record. A household whose people have one weight shows that it
    is not that of a body. Somebody has to confirm what the name of a survey suggests; where there
    is only a household, or hundredths, it stays a quasi-identifier that asks.
    """
    homes = [name for name, c in columns.items() if mean(c.words, "household") and c.repeats]
    for name, column in columns.items():
        if not mean(column.words, "weight") or not _may_weigh(column):
            continue
        weight = Guess({"role": "weight"}, "how many people a record stands for: removed")
        home = next((home for home in homes if _is_one_in_each(table, name, home)), None)
        if home is not None:
            lives = Guess({"role": "household"}, "who lives together: removed")
            return {**guesses, name: weight, home: lives}
        if mean(column.words, "survey"):
            return {**guesses, name: weight.asking(STANDS_FOR)}
        if homes or column.values.str.contains(HUNDREDTHS).any():
            beside = f", and '{homes[0]}' the role 'household'" if homes else ""
            asked = f"{STANDS_FOR} if so, give it the role 'weight'{beside}"
            return {**guesses, name: guesses[name].asking(asked)}
    return dict(guesses)


def _may_weigh(column: ColumnCells) -> bool:
    is_whole = column.numbers is not None and column.filled == column.records
    return is_whole and column.distinct > 1 and float(np.min(column.numbers)) >= 1  # type: ignore[arg-type]


def _is_one_in_each(table: Table, name: str, home: str) -> bool:
    """Whether all records of a household agree on a column."""
    pairs = table.column(home).codes.astype(np.int64) << 32 | table.column(name).codes
    return len(np.unique(pairs)) == len(table.column(home).cells)


# Which column numbers the people that k counts, by the answer to who is one person.


WHOSE = "records without a value here: {}; whose are they?"
MAYBE = "maybe the people that k counts: removed"
BY_NAME = "by its name the people that k counts: removed"
ANOTHER = Guess({"role": "identifier"}, "another number of people or things: removed")
PART = Guess({"role": "identifier"}, "numbers people together with another column: removed")


def with_one_subject(
    guesses: Mapping[str, Guess], columns: Mapping[str, ColumnCells], answer: Answer
) -> dict[str, Guess]:
    """The guesses with at most one subject; other columns that number something are removed.

    Where the answer has to be confirmed, its first column asks.
    """
    first = next(iter(answer.candidates), None)
    is_asked = answer.verdict is Verdict.ASK
    if first is None or first.is_profile:  # no column repeats as the number of people does
        own = dict([one for one in guesses.items() if one[1].role == "subject"][:1])
        removed: tuple[str, ...] = ()
    else:
        own = {name: _own_guess(first, is_asked) for name in first.columns}
        removed = answer.removed
    found = {**guesses, **(_others_removed(guesses, columns, removed) if own else {}), **own}
    for name in own if len(own) == 1 else ():
        if lacking := columns[name].records - columns[name].filled:
            found[name] = found[name].asking(WHOSE.format(lacking))
    if first is not None and is_asked:
        asking = first.columns[0]
        found[asking] = replace(found[asking], person=answer)
    return found


def _own_guess(first: PersonCandidate, is_asked: bool) -> Guess:
    """The guess for a column of the first candidate."""
    if len(first.columns) > 1:
        return PART
    reason = MAYBE if is_asked else BY_NAME
    if first.agreeing:
        agreed = some_named(first.agreeing)
        reason = f"records that share one agree on {agreed}: the people that k counts, removed"
    return Guess({"role": "subject"}, reason)


def _others_removed(
    guesses: Mapping[str, Guess], columns: Mapping[str, ColumnCells], removed: Sequence[str]
) -> dict[str, Guess]:
    """The guesses for numbers of people and things."""
    named = {name for name, guess in guesses.items() if guess.role == "subject"}
    things = {name for name, column in columns.items() if _refers(column, guesses[name])}
    private = {name for name in removed if columns[name].form in PRIVATE_FORMS}
    return dict.fromkeys({*removed, *named, *things} - private, ANOTHER)


def _refers(column: ColumnCells, guess: Guess) -> bool:
    """Whether it repeats as numbers of people or things do, and its name says that it is one."""
    is_named = bool(column.words) and column.words[-1] in REFERENCE
    is_many = column.distinct > column.filled / MOST_TO_A_NUMBER
    is_whole = column.numbers is None or column.are_whole
    return is_named and is_many and is_whole and column.repeats and guess.role == "quasi"
