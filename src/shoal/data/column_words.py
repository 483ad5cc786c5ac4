"""What the words of a column's name say about it, and what it may number by them: people, contacts,
events, groups, things.

Words are whole: `num_medications` has no `medic`, `DISPOSITION` no `position`. Of compounds, such
as `Hauptdiagnose` and `患者氏名`, some ends are known. column_words.yaml and words.yaml say so.

kind        what the words of a name stand for; the first rule that fits decides
core        the words of a name that are neither words for numbers nor digits
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from itertools import pairwise

import numpy as np
import polars as pl
import yaml

from shoal.data.numbers import parse_numbers
from shoal.data.person_names import normal_form
from shoal.data.table import Table

CODE = frozenset("id code type key".split())
"""What is written in numbers that nobody computes with."""

REFERENCE = frozenset("id nbr nr no key".split())
"""Last words of the names of numbers that stand for somebody or something."""

_POSTAL = {("post", "code"), ("post", "nr"), ("kode", "pos"), ("code", "insee")}

_LETTERS_OR_DIGITS = re.compile(r"[^\W\d_]+|\d+")


def words_of(name: str) -> list[str]:
    """The words of a name in small letters: parted by other signs, by digits, or by capitals.

    `PatientID` is `patient id`, `IBANNumber` is `iban number`.
    """
    return [
        word.casefold() for run in _LETTERS_OR_DIGITS.findall(name) for word in _by_capitals(run)
    ]


def _by_capitals(run: str) -> list[str]:
    """A run of letters, cut before a capital that follows a small letter or is followed by one."""
    cuts = [
        i
        for i in range(1, len(run))
        if run[i].isupper() and (run[i - 1].islower() or run[i + 1 : i + 2].islower())
    ]
    return [run[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(run)], strict=True)]


def fold(text: str) -> str:
    """The text in small letters, without accents."""
    if text.isascii():
        return text.casefold()
    signs = normal_form("NFKD", text)
    return "".join(sign for sign in signs if unicodedata.category(sign) != "Mn").casefold()


@cache
def word_lists(package: str, name: str) -> Mapping[str, frozenset[str]]:
    """The words of a YAML file by what they mean."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    lists = yaml.load((files(package) / name).read_text("utf-8"), loader).items()
    return {meaning: frozenset(map(fold, words.split())) for meaning, words in lists}


def mean(words: Sequence[str], meant: str) -> bool:
    """Whether a word, or the end of a compound, means this: `identifier`, `sensitive` and so on."""
    known = word_lists("shoal.data", "column_words.yaml")
    ends = tuple(known.get(f"{meant}_ends", ()))
    return any(word in known[meant] or word.endswith(ends) for word in map(fold, words))


def names_place(words: Sequence[str]) -> bool:
    """Whether a name is that of a postal code."""
    return mean(words, "place") or ("post", "code") in pairwise(words)


DATE = re.compile(
    r"((19|20)\d\d[-/](0?[1-9]|1[0-2])(T.*| .*)?|(\d\d)?\d\d[-/.]N[-/.]N([T ].*)?"
    r"|N[./-]N[./-]\d\d(\d\d)?(\D.*)?|\d{1,2}:\d{2}(:\d{2})?)$".replace("N", r"(0?\d|[12]\d|3[01])")
)
"""A date or a time of day, or the month of a year, in any common form; `1234/19` is a number."""


def looks_like_data(table: Table, names: list[str]) -> list[str]:
    """Those columns whose name is a number, a date above dates, or also stands in one of their
    cells; and those that are written as their cells are, where most names then look like data.
    """
    numeric = np.isfinite(parse_numbers(tuple(names))) if names else []
    odd = [
        name
        for name, is_number in zip(names, numeric, strict=True)
        if is_number or (DATE.match(name) and _are_dates(table, name)) or table.holds(name, name)
    ]
    forms = dict(zip(names, forms_of(pl.Series(names, dtype=pl.String)), strict=True))
    # columns may be called like names and codes, too: `Full name`, `Item7`
    if not odd and not any(re.search("@| 9", form) for form in forms.values()):
        return []
    alike = {name for name in names if name in odd or _is_form_of_cells(table, name, forms[name])}
    is_told = odd or any(re.search("@| 9", forms[name]) for name in alike)
    if not is_told or len(alike) < 2 or not is_no_header([*alike], names):
        return odd
    return [name for name in names if name in alike]


_FORMS = ((".*@.*", "@"), (r"\d+", "9"), (r"\p{Lu}[\p{L}'’-]*", "A"), (r"\p{Ll}+", "a"))


def _is_form_of_cells(table: Table, name: str, form: str) -> bool:
    """Whether nearly all cells, most of them different, are written as a name that is no word."""
    if not re.search("[@9]|^A A$", form) or 2 * table.distinct(name) <= table.records:
        return False
    forms = forms_of(pl.Series(table.column(name).cells, dtype=pl.String))
    return bool((forms == form).sum() >= 0.9 * len(forms))


def forms_of(texts: pl.Series) -> pl.Series:
    """Texts with one sign for each number, word and capitalized word, and for an address."""
    for pattern, sign in _FORMS:
        texts = texts.str.replace_all(pattern, sign)
    return texts.str.replace(r"^A(,? A)+$", "A A")


def _are_dates(table: Table, name: str) -> bool:
    """Whether all cells are dates, of which some are empty."""
    cells = [cell for cell in table.column(name).cells if cell.strip()]
    return bool(cells) and all(map(DATE.match, cells))


def is_no_header(odd: Sequence[str], names: Sequence[str]) -> bool:
    """Whether so large a share of the names looks like data that the first line is a record."""
    return 3 * len(odd) > 2 * len(names)


def named_by_a_record(table: Table, names: list[str]) -> list[str]:
    """Those of these columns whose name may be a cell: it looks like data, or most names do."""
    odd = looks_like_data(table, table.names) if names else []
    return names if is_no_header(odd, table.names) else [name for name in names if name in odd]


PERSONAL = ("sex", "birth", "age", "keep")
"""Kinds of columns that say who somebody is, and on which records of one person agree."""

NAMES = ("first", "last", "name")
"""Kinds of columns that hold names of people, or parts of them."""

_NUMBERED = "civil person contact proxy event".split()

LEAST_KNOWN_END = 5  # letters of a known word at an end of a longer one
_AFFIXES = (*"nummer number nbr num nr no id key code 番号 编号 編號 号码 号 番 номер".split(),)
"""How the names of numbers begin or end, the longer of two first."""

_INITIALS = re.compile(r"\b([^\W\d_])\.([^\W\d_])\.([^\W\d_])\b")
_BEFORE_ID = re.compile(r"(?<=[A-Z]{2})(?=id\b)")
_SEXES = (*map(tuple, "mf fm mw wm hf fh mv vm mwd fmd".split()),)
"""The letters of the sexes, by which a column is named."""

_FEMININE = re.compile(
    r"(?<![^\W\d_])([^\W\d_]{4,})"
    r"(?:(?:[*:/·(]-?|_)?(?:in|innen)|[*:/·(]-?(?:a|as|e|es))(?![^\W_])\)?",
    re.IGNORECASE,
)
"""A word with an ending for women: `Patient*in`, `Kundin`, `alumno/a`."""

_NOBODY = re.compile(r"\s*-([1-9]|([1-9])\2{1,3}|9{0,2}9[5-8])\s*$")
MOST_NOBODY = 5  # kinds of negative numbers that stand for nobody, and as many times more others
_COUNT_SIGN = re.compile(r"^\s*#")
_NUMBER_SIGN = re.compile(r"\bn[º°]|№|#", re.IGNORECASE)
_UNKNOWN_STEM = re.compile(r"(.{3,})(id|nr|nummer|number|num|nbr)")
_NAMED = ("thing", "group", "proxy", "event")
_NATIONAL = (("number",), ("nummer",), ("nr",))
_NUMBER_ENDS = ("nummer", "番号", "号")
_AT_ENDS = "civil contact person group staff event proxy thing birth".split()
_KNOWN = (*_AT_ENDS, *"sex age keep first last name place other_end number animal firm".split())


def meanings() -> Mapping[str, frozenset[str]]:
    """What is known of words: by meaning, the words that may have it."""
    return word_lists("shoal.data.person", "words.yaml")


@cache
def _known() -> frozenset[str]:
    """Every word that is not split further."""
    return frozenset().union(*(meanings()[meaning] for meaning in _KNOWN))


def _without_joiners(words: Iterable[str]) -> list[str]:
    """Words but for those that only join others, as `and`, `et` and `y` do."""
    return [word for word in words if word and word not in meanings()["joiner"]]


@cache
def _known_ends() -> list[str]:
    """The words that are known at either end of a longer one, in the order they are tried."""
    return [
        word
        for meaning in _AT_ENDS
        for word in sorted(meanings()[meaning], key=lambda word: (-len(word), word))
        if len(word) >= (LEAST_KNOWN_END if word.isascii() else 2)
        and word not in meanings()["no_ends"]
    ]


@dataclass(frozen=True)
class ColumnName:
    """A name by its words, and what they say."""

    words: tuple[str, ...]

    def has(self, *meant: str) -> bool:
        """Whether one of its words, or all of them together, may mean one of these."""
        return not self._meant.isdisjoint(meant)

    @cached_property
    def _meant(self) -> frozenset[str]:
        said = {*self.words, "".join(self.words)}
        return frozenset(one for one, words in meanings().items() if not words.isdisjoint(said))

    def ends(self, meant: str) -> bool:
        """Whether the last word of its core may mean this."""
        return not meanings()[meant].isdisjoint(self.core[-1:])

    def is_last(self, meant: str) -> bool:
        """Whether its last word, be it one for a number, may mean this."""
        return not meanings()[meant].isdisjoint(self.words[-1:])

    @cached_property
    def core(self) -> list[str]:
        """Its words but for words for numbers and digits."""
        numbers = meanings()["number"]
        return [word for word in self.words if word not in numbers and not word.isdigit()]

    def nobody_among(self, cells: pl.Series) -> list[str]:
        """The few kinds of `-1`, `-99` and the like, if it is named as a number of people is."""
        is_named = self.is_number or self.kind in ("person", "proxy")
        below = cells.filter(cells.str.contains(r"^\s*-")).to_list() if is_named else []
        is_few = len(below) <= min(MOST_NOBODY, len(cells) / MOST_NOBODY)
        return below if is_few and all(map(_NOBODY.match, below)) else []

    @property
    def is_place(self) -> bool:
        """Whether it is of a postal code."""
        is_code = self.has("place") or not _POSTAL.isdisjoint(pairwise(self.words))
        return is_code and not self.has("phone")

    @property
    def labels_people(self) -> bool:
        """Whether its last word is what numbers people behind a word for them."""
        return self.is_last("label") and self.has("person") and not self.has("flag")

    @property
    def says_number(self) -> bool:
        """Whether a word of it says that it is a number."""
        is_told = len(self.words) == 1 and self.words[0].endswith(_NUMBER_ENDS)
        return is_told or self.has("number") or self.labels_people

    @cached_property
    def kind(self) -> str:
        """Its kind, empty where none fits."""
        return next((kind for kind, fits in _RULES if fits(self)), "")

    @property
    def is_number(self) -> bool:
        """Whether it is the name of a number, as those of the state and single words for people."""
        is_one_person = self.kind == "person" and len(self.words) == 1
        return self.says_number or self.kind == "civil" or is_one_person

    @property
    def numbers_people(self) -> bool:
        """Whether it says that it is the number of a person, or of what stands for one, in whatever
        form that is written.
        """
        is_alone = self.kind in ("civil", "person") and len(self.core) == 1 and not self.is_weak
        return is_alone or (self.says_number and self.kind in _NUMBERED)

    @property
    def says_only_name(self) -> bool:
        """Whether it has only words for names of people, and such as join them."""
        names = meanings()["first"] | meanings()["last"] | meanings()["name"]
        return names.issuperset(_without_joiners(self.core))

    @property
    def is_count(self) -> bool:
        """Whether it is named as a count is, as `num_visits`; `no_dossier` may be one."""
        return len(self.words) > 1 and self.words[0] in meanings()["count"]

    @property
    def may_number_one(self) -> bool:
        """Whether, though named as a count, it may number people, as `No. Paciente` does, or one
        file or state's number, as `No. de historia clínica` does, and not what happened with it, as
        `num_nhs_visits` does.
        """
        known = meanings()
        first, *rest = _without_joiners(self.core) or [""]
        is_file = first in known["file"] | known["civil"] and self.core[-1:] != ["s"]
        is_file = is_file and (known["event"] | known["thing"]).isdisjoint(rest)
        is_person = self.ends("person") and not self.ends("several")
        is_of_one = is_person or is_file or self.ends("file") or self.ends("proxy")
        return is_of_one and self.words[0] in known["count_of_one"]

    @property
    def is_mere_id(self) -> bool:
        """Whether it says that it is a number or another name of somebody, and not of whom."""
        return (self.kind == "number" and not self.core) or self.has("alias")

    @property
    def says_more(self) -> bool:
        """Whether a word beside is not known, as that for somebody else in `Leiter PersNr`, or of
        two words for people the first may be of another, as in `owner_person_id`.
        """
        others = [] if "".join(self.words) in _known() else _without_joiners(self.core)
        people = [word for word in others if word in meanings()["person"]]
        is_other = len(people) > 1 and people[0] in meanings()["weak"]
        return is_other or not _known().issuperset(others)

    @property
    def is_weak(self) -> bool:
        """Whether its word for people may mean somebody else."""
        if self.kind == "person" and not self.ends("person"):
            return self.has("weak")
        return self.kind in ("person", "civil") and self.ends("weak")

    @property
    def may_number_others(self) -> bool:
        """Whether its number may be that of what or whom it names, too: of a firm in
        `rut_empleador`, a mother in `mother_nhs_number`, a visit in `id_visita_paciente`.
        """
        if self.kind not in ("civil", "person"):
            return False
        own = meanings()["civil"] | meanings()["person"]
        words = set() if "".join(self.words) in own else {*self.core} - own
        beside = ColumnName((*_without_joiners(words),))
        is_number_last = self.is_last("number") or not self.has("number")
        if self.kind == "person" and is_number_last:  # else the first noun is the head
            return beside.has(*_NAMED, "firm", "staff") or self.has("relative")
        return bool(beside.words) or self.has("shared", "relative")

    @property
    def is_of_other(self) -> bool:
        """Whether it is said of staff, or of the other end of a call."""
        return self.has("staff", "other_end")

    @property
    def is_personal(self) -> bool:
        """Whether it says who a person is whom the table is about."""
        return self.kind in PERSONAL and not self.is_of_other

    def is_own_of(self, words: Iterable[str]) -> bool:
        """Whether it is the sex, the birth or the age of whom these words name, or of any person
        where they name none: an account, a picture and a user's child have an age, too.
        """
        people = meanings()["person"]
        known = [meanings()[one] for one in ("sex", "birth", "age", "calendar")]
        of_person = (people.intersection(words) or people).union(*known)
        is_of_one = self.kind in ("sex", "birth", "age") and of_person.issuperset(self.core)
        return is_of_one and not self.has("doubtful")


@lru_cache(maxsize=4096)
def name_of(name: str) -> ColumnName:
    """A column's name, by its words."""
    text = _FEMININE.sub(_masculine, _INITIALS.sub(r"\1\2\3", _BEFORE_ID.sub("_", name)))
    words = words_of(_NUMBER_SIGN.sub(" nr ", _COUNT_SIGN.sub("num ", text)))
    if tuple(words) in _SEXES:
        return ColumnName(("sex",))
    return ColumnName(tuple(part for word in words for part in parts_of(fold(word))))


def _masculine(match: re.Match[str]) -> str:
    """A word for a person without its ending for women, so that it is known; any other as it is."""
    people = meanings()["person"] | meanings()["staff"]
    stems = (match[1], f"{match[1]}e")
    return next((stem for stem in stems if parts_of(fold(stem))[-1] in people), match[0])


@lru_cache(maxsize=4096)
def parts_of(word: str) -> list[str]:
    """A word, split once more where it is made of two: `patientennummer`, `patid`, `idpaziente`."""
    if word in _known():
        return [word]
    return _by_affix(word) or _by_known_end(word) or _by_unknown_stem(word) or [word]


def _by_affix(word: str) -> list[str] | None:
    """A known word with what makes a number of it before or behind, maybe joined by letters."""
    for affix in _AFFIXES:
        stem = word.removesuffix(affix)
        if stem != word:
            forms = (stem, stem.rstrip("s"), stem.rstrip("n"), stem.removesuffix("en"))
            known = next((form for form in forms if form in _known()), None)
            if known:
                return [known, affix]
        stem = word.removeprefix(affix)
        if stem != word and stem in _known():
            return [affix, stem]
    return None


def _by_known_end(word: str) -> list[str] | None:
    """A known word at either end of a longer one, and the rest, in their order."""
    longest = max(map(len, _known_ends()))  # the word may be a whole text
    cuts = range(1, min(len(word), longest + 1))
    parts = {part for cut in cuts for part in (word[:cut], word[-cut:])}
    known = next((end for end in _known_ends() if end in parts), None)
    if known is None:
        return None
    is_first, is_last = word.startswith(known), word.endswith(known)
    rest = word.removeprefix(known) if is_first else word.removesuffix(known)
    affix = next((affix for affix in _AFFIXES if rest.endswith(affix)), None)
    if affix is not None:
        stem = rest.removesuffix(affix)  # a number of what, as of a sample
        return [known, *_without_joiners([stem]), "nr"]
    return [rest, known] if is_last else [known, rest]


def _by_unknown_stem(word: str) -> list[str] | None:
    """An unknown word with what makes a number of it behind."""
    match = _UNKNOWN_STEM.fullmatch(word)
    return [*match.groups()] if match and word not in meanings()["no_number_ends"] else None


def _is_full_name(name: ColumnName) -> bool:
    """Whether it is of first and last names together, as `Last, First` and `Nom et prénom` are."""
    is_of_both = name.has("last") or (name.has("name") and not name.has("part"))
    return name.has("first") and is_of_both and name.says_only_name


def _is_kept(name: ColumnName) -> bool:
    """Whether it is of what a person keeps; `Race no` is of who runs, and `race_code` of a race."""
    is_other = name.has("numeral") or ("blood" in name.words and name.ends("person"))
    return name.has("keep") and not is_other


def _is_contact(name: ColumnName) -> bool:
    if not name.has("contact") or name.has("thing"):
        return False
    found = meanings()["contact"].intersection(name.words)
    return len(name.core) == 1 or not (found <= meanings()["weak_contact"] or name.has("flag"))


def _is_proxy(name: ColumnName) -> bool:
    is_numbered = name.has("proxy") and name.says_number and not name.has("group", "thing")
    # as eye trackers call whom they record
    return name.ends("proxy") or is_numbered or name.words[-2:] == ("session", "label")


_RULES: tuple[tuple[str, Callable[[ColumnName], bool]], ...] = (
    # as a birth number, whose digits tell the birth
    ("civil", lambda name: name.words[-1:] in _NATIONAL and name.ends("birth")),
    # `sex_worker_id` is of who works
    ("sex", lambda name: name.has("sex") and not (name.ends("person") and name.is_last("number"))),
    ("birth", lambda name: name.has("birth")),
    ("age", lambda name: name.has("age") and not name.says_number),
    ("keep", _is_kept),
    ("thing", lambda name: name.is_place),
    ("number", lambda name: name.ends("dealer") and name.says_number),
    ("staff", lambda name: name.has("staff") and not name.ends("person")),
    ("civil", lambda name: name.has("civil") and (name.says_number or not name.ends("ambiguous"))),
    ("contact", lambda name: name.has("profile") and name.has("web")),
    ("contact", _is_contact),
    ("contact", lambda name: name.has("other_end") and (name.says_number or len(name.core) == 1)),
    ("", lambda name: name.has("other_end")),
    ("name", _is_full_name),
    ("first", lambda name: name.has("first") and (len(name.core) == 1 or name.has("name"))),
    ("last", lambda name: name.has("last") and (len(name.core) == 1 or name.has("name"))),
    (
        "person",
        lambda name: name.ends("person") and (name.says_number or not name.ends("ambiguous")),
    ),
    ("person", lambda name: name.labels_people),
    ("last", lambda name: name.has("name") and name.has("family")),
    ("thing", lambda name: name.has("name") and name.has(*_NAMED)),
    ("name", lambda name: name.has("name")),
    ("group", lambda name: name.ends("group")),
    ("thing", lambda name: name.ends("thing")),
    ("proxy", _is_proxy),
    ("event", lambda name: name.ends("event")),
    ("person", lambda name: name.has("person") and name.is_last("number")),
    ("group", lambda name: name.has("group") and not name.has("person") and not name.says_number),
    ("number", lambda name: name.says_number),
)
"""Each kind with the names that are of it, in the order in which they are asked."""
