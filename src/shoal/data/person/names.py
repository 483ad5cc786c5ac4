"""What a column may number, by its name: people, contacts, events, groups, things.

class       what the words of a name stand for; the first rule that fits decides
core        the words of a name that are neither words for numbers nor digits
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shoal.data.column_words import words_of
from shoal.data.person import words as w

LEAST_KNOWN_END = 5  # letters of a known word at an end of a longer one
_UNKNOWN_STEM = re.compile(r"(.{3,})(id|nr|nummer|number|num|nbr)")
_NUMBER_ENDS = ("nummer", "番号", "号")
_CLASSES = (*("civil", "contact", "person", "group", "staff", "event", "proxy", "thing", "birth"),)
_WORDS_OF_CLASS = {
    "civil": w.CIVIL,
    "contact": w.CONTACT,
    "person": w.PERSON,
    "group": w.GROUP,
    "staff": w.STAFF,
    "event": w.EVENT,
    "proxy": w.PROXY,
    "thing": w.THING,
    "birth": w.BIRTH,
}
_ENDS = [
    word
    for kind in _CLASSES
    for word in sorted(_WORDS_OF_CLASS[kind], key=lambda word: (-len(word), word))
    if len(word) >= (LEAST_KNOWN_END if word.isascii() else 2)
]


@dataclass(frozen=True)
class ColumnName:
    """A name by its words.

    kind: its class, empty where none fits. is_number: whether a word says that it is a number.
    is_weak: whether its word for people may mean somebody else. is_of_other: whether it is said of
    staff, or of the other end of a call.
    """

    words: tuple[str, ...]
    kind: str
    is_number: bool
    is_weak: bool = False
    is_of_other: bool = False

    @property
    def is_personal(self) -> bool:
        """Whether it says who a person is whom the table is about."""
        return self.kind in w.PERSONAL and not self.is_of_other

    @property
    def is_of_body(self) -> bool:
        """Whether it measures a body."""
        return bool(w.BODY & set(self.words))

    @property
    def is_count(self) -> bool:
        """Whether it begins as the name of a count does."""
        return len(self.words) > 1 and self.words[0] in w.COUNT

    @property
    def is_moment(self) -> bool:
        """Whether a word of it is about time."""
        return bool(w.TIME & set(self.words))


def name_of(name: str) -> ColumnName:
    """The class of a column's name."""
    words = tuple(part for word in words_of(name) for part in parts_of(w.fold(word)))
    said = _Said(words)
    kind = next((kind for kind, fits in _RULES if fits(said)), "")
    if kind in _REFINED:
        kind = _REFINED[kind](said)
    return ColumnName(
        words,
        kind,
        said.is_number or kind == "civil" or (kind == "person" and len(words) == 1),
        kind == "person" and _is_weak(said),
        said.has(w.STAFF | w.OTHER_END),
    )


def parts_of(word: str) -> list[str]:
    """A word, split once more where it is made of two: `patientennummer`, `patid`, `idpaziente`."""
    if word in w.KNOWN:
        return [word]
    return next(filter(None, (split(word) for split in _SPLITS)), [word])


def _known_stem(word: str) -> list[str] | None:
    """A known word with what makes a number of it before or behind."""
    for affix in w.NUMBER_AFFIXES:
        stem = word.removesuffix(affix)
        if stem != word and (known := _known(stem)):
            return [known, affix]
        stem = word.removeprefix(affix)
        if stem != word and stem in w.KNOWN:
            return [affix, stem]
    return None


def _known(stem: str) -> str | None:
    """The known word that a stem is, maybe without the letters that join two words."""
    without_en = stem[:-2] if stem.endswith("en") else stem
    forms = (stem, stem.rstrip("s"), stem.rstrip("n"), without_en)
    return next((form for form in forms if form in w.KNOWN), None)


def _known_end(word: str) -> list[str] | None:
    """A known word at either end of a longer one."""
    for known in _ENDS:
        if len(word) > len(known) and (word.startswith(known) or word.endswith(known)):
            return _beside(known, word)
    return None


def _beside(known: str, word: str) -> list[str]:
    """The known word and the rest of the longer one, in their order."""
    is_first = word.startswith(known)
    rest = word.removeprefix(known) if is_first else word.removesuffix(known)
    if rest.endswith(w.NUMBER_AFFIXES):
        return [known, "nr"]
    return [rest, known] if word.endswith(known) else [known, rest]


def _unknown_stem(word: str) -> list[str] | None:
    """An unknown word with what makes a number of it behind."""
    match = _UNKNOWN_STEM.fullmatch(word)
    return None if match is None or word in w.NO_NUMBER_ENDS else [match[1], match[2]]


_SPLITS: tuple[Callable[[str], list[str] | None], ...] = (_known_stem, _known_end, _unknown_stem)


class _Said:
    """The words of a name, as the rules ask for them."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self.all = set(words)
        self.core = [word for word in words if word not in w.NUMBER and not word.isdigit()]
        self.last = self.core[-1] if self.core else ""
        is_one_number = len(words) == 1 and words[0].endswith(_NUMBER_ENDS)
        self.is_number = bool(self.all & w.NUMBER) or is_one_number

    def has(self, words: frozenset[str]) -> bool:
        return bool(self.all & words)

    @property
    def is_alone(self) -> bool:
        return len(self.core) == 1


def _is_contact(said: _Said) -> bool:
    found = said.all & w.CONTACT
    if not found or said.has(w.THING):
        return False
    return said.is_alone or not (found <= w.WEAK_CONTACT or said.has(w.FLAG))


def _is_part_of_name(parts: frozenset[str]) -> Callable[[_Said], bool]:
    return lambda said: said.has(parts) and (said.is_alone or said.has(w.NAME))


def _is_person(said: _Said) -> bool:
    return said.last in w.PERSON and (said.is_number or said.last not in w.AMBIGUOUS)


def _is_proxy(said: _Said) -> bool:
    is_numbered = said.has(w.PROXY) and said.is_number and not said.has(w.GROUP | w.THING)
    return said.last in w.PROXY or is_numbered


def _is_numbered_person(said: _Said) -> bool:
    return said.has(w.PERSON) and said.words[-1] in w.NUMBER


def _is_group(said: _Said) -> bool:
    return said.has(w.GROUP) and not said.has(w.PERSON) and not said.is_number


def _is_weak(said: _Said) -> bool:
    return said.last in w.WEAK if said.last in w.PERSON else said.has(w.WEAK)


def _rules() -> Iterator[tuple[str, Callable[[_Said], bool]]]:
    """Each class with who belongs to it, in the order in which they are asked."""
    yield "sex", lambda said: said.has(w.SEX)
    yield "birth", lambda said: said.has(w.BIRTH)
    yield "age", lambda said: said.has(w.AGE) and not said.is_number
    yield "keep", lambda said: said.has(w.KEEP)
    yield "thing", lambda said: said.has(w.PLACE)
    yield "staff", lambda said: said.has(w.STAFF) and said.last not in w.PERSON
    yield "civil", lambda said: said.has(w.CIVIL)
    yield "contact", _is_contact
    yield "other end", lambda said: said.has(w.OTHER_END)
    yield "first", _is_part_of_name(w.FIRST)
    yield "last", _is_part_of_name(w.LAST)
    yield "person", _is_person
    yield "name", lambda said: said.has(w.NAME)
    yield "group", lambda said: said.last in w.GROUP
    yield "thing", lambda said: said.last in w.THING
    yield "proxy", _is_proxy
    yield "event", lambda said: said.last in w.EVENT
    yield "person", _is_numbered_person
    yield "group", _is_group
    yield "number", lambda said: said.is_number


_RULES = tuple(_rules())
_REFINED: dict[str, Callable[[_Said], str]] = {
    "other end": lambda said: (
        "contact" if said.is_number or (said.is_alone and said.last in w.OTHER_END) else ""
    ),
    "name": lambda said: "thing" if said.has(w.THING | w.GROUP | w.PROXY) else "name",
}
"""Classes that hold only under a further condition."""
