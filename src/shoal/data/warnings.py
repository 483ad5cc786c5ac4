"""What a reader must know about a release although every promise holds on it, and what each fault
that a certificate counts means, in a sentence; its key is for programs.
"""

import inspect
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

PEOPLE_ASSUMED = "people-assumed"
TOGETHER_BELOW = "together-below-k"
WITHHELD_FEW = "withheld-few"
HIERARCHY_REPEATS = "hierarchy-repeats"
FORMULA_CELLS = "formula-cells"
OPEN_QUESTION = "open-question"
PRESENCE_DISCLOSED = "presence-disclosed"
SENSITIVE_UNPROMISED = "sensitive-unpromised"
MISSING_COUNTED = "missing-counted"
WRITTEN_ALIKE = "written-alike"
NAMES_LIKE_DATA = "names-like-data"
PLAIN_NAMES_PEOPLE = "plain-names-people"
PLAIN_SINGLES_OUT = "plain-singles-out"
QUASI_LEFT_OUT = "quasi-left-out"
VALUES_UNIQUE = "values-unique"
OUTLIER_PUBLISHED = "outlier-published"
MOSTLY_ASIDE = "mostly-set-aside"
ALL_SUPPRESSED = "all-suppressed"
FIELDS_DROPPED = "fields-dropped"
EMPTY_ROWS = "empty-rows"
ROWS_APART = "rows-apart"
ROWS_LINKED = "rows-linked"
HOUSEHOLD_JOINED = "household-joined"
HIDDEN_ROWS = "hidden-rows"
ORDER_KEPT = "order-kept"
LEDGER_UNJUDGED = "ledger-unjudged"
CONTROL_IN_ORIGINAL = "control-in-original"
VALUES_UNPLACED = "values-unplaced"
NOT_NUMBERS = "not-numbers"
NAN_MISSING = "nan-missing"
SIGN_OF_NO_VALUE = "sign-of-no-value"
READ_AS_TEXT = "read-as-text"


OF_CELLS = (
    SENSITIVE_UNPROMISED,
    PLAIN_NAMES_PEOPLE,
    QUASI_LEFT_OUT,
    VALUES_UNIQUE,
    OUTLIER_PUBLISHED,
)
"""Found in columns that are published as they are, by the release and its policy alone."""

NOTE, OPEN, GRAVE = SEVERITIES = ("note", "open", "grave")
"""For the reader to know; for somebody to decide; a release with it is not shown as green."""

_BY_CODE = {
    EMPTY_ROWS: NOTE,
    FIELDS_DROPPED: NOTE,
    HIDDEN_ROWS: NOTE,
    NAN_MISSING: NOTE,
    READ_AS_TEXT: NOTE,
    WRITTEN_ALIKE: NOTE,
    TOGETHER_BELOW: GRAVE,
    ALL_SUPPRESSED: GRAVE,
    PLAIN_NAMES_PEOPLE: GRAVE,
    PRESENCE_DISCLOSED: GRAVE,
    ROWS_LINKED: GRAVE,
    HOUSEHOLD_JOINED: GRAVE,
    LEDGER_UNJUDGED: GRAVE,
}


def assumes_people(stated: Mapping[str, str]) -> bool:
    """Whether a certificate's finding says that records are counted where people are not named;
    one about a population, or the table of people, is not about whom the release counts.
    """
    is_of_others = stated["text"].startswith(("population '", "table '"))
    return stated["code"] == PEOPLE_ASSUMED and not is_of_others


def with_grave(verdict: str, count: int) -> str:
    """The verdict on a release, which never reads as success where there are grave findings."""
    return f"{verdict}; {count} grave finding{'s' if count > 1 else ''}" if count else verdict


class ReleaseWarning(UserWarning):
    """A finding: a sentence with a code that programs can rely on; holds no value of the data.

    severity: one of `SEVERITIES`; by default what its code has, else open. column: the one that it
        is about, if it is about one. figures: the numbers of the sentence that were measured, where
        others only advise.
    """

    def __init__(
        self,
        code: str,
        text: str,
        column: str | None = None,
        severity: str | None = None,
        figures: str | None = None,
    ) -> None:
        super().__init__(text)
        self.code, self.text, self.column = code, text, column
        self.severity = severity or _BY_CODE.get(code, OPEN)
        self.figures = figures

    @classmethod
    def of(cls, stated: Mapping[str, str]) -> "ReleaseWarning":
        """As a certificate states it; earlier ones state its code and sentence alone."""
        known = [stated.get(key) for key in ("column", "severity", "figures")]
        return cls(stated["code"], stated["text"], *known)

    def at(self, where: str) -> "ReleaseWarning":
        """The finding with the table that it is about, where there are several."""
        text = f"{where}: {self.text}"
        return ReleaseWarning(self.code, text, self.column, self.severity, self.figures)

    def is_stated_by(self, other: "ReleaseWarning") -> bool:
        """Whether a certificate's finding is this one, in the wording of whatever version."""
        is_about = other.column in (self.column, None) and (self.column or "") in other.text
        is_alike = is_about and (self.code, self.severity) == (other.code, other.severity)
        return is_alike and {*_numbers(self.figures or self.text)} <= {*_numbers(other.text)}

    def report(self) -> dict[str, str]:
        """As a certificate states it."""
        said = {"code": self.code, "severity": self.severity, "text": self.text}
        more = {"column": self.column, "figures": self.figures}
        return said | {key: value for key, value in more.items() if value is not None}


OURS = "shoal.", "sklearn.", "joblib."


_FIGURE = re.compile(r" \d[\d.,]*")
_said: set[tuple[object, ...]] = set()


def warn(warning: Warning | str, once: bool = False) -> None:
    """Warns who called us, however many frames of ours and of scikit-learn lie between.

    once: not again from the same line, whatever the figures: scikit-learn fits to many parts of a
    table, and Python forgets what it has shown where a library changes filters of warnings.
    """
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(OURS):
        level, frame = level + 1, frame.f_back
    line = None if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    what = (line, getattr(warning, "column", None), _FIGURE.sub("", str(warning)))
    if once and what in _said:
        return
    warnings.warn(warning, stacklevel=level)
    if once:
        _said.add(what)


def unread_lists(column: str) -> ReleaseWarning:
    """That a column of a file may number people, but nobody has looked."""
    text = (
        f"column '{column}': holds lists, which are not read; if they number people, give these in"
        " plain values, and the column the role 'subject'"
    )
    return ReleaseWarning(PEOPLE_ASSUMED, text, column)


def nan_remarks(counts: Mapping[str, int]) -> tuple[ReleaseWarning, ...]:
    """That NaN counts as missing, for each column that has some. counts: by column."""
    return tuple(
        ReleaseWarning(
            NAN_MISSING,
            f"column '{name}': {count} NaN count{'s' if count == 1 else ''} as missing",
            name,
        )
        for name, count in counts.items()
        if count
    )


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", text)


ONE_AND_MANY: dict[str, tuple[str, str]] = {
    "uncovered": (
        "1 record has a cell that does not cover its true value",
        "{} records have a cell that does not cover their true value",
    ),
    "changed": (
        "1 record shows another sensitive or plain value than the original",
        "{} records show another sensitive or plain value than the original",
    ),
    "unmatched": (
        "1 record was made of no row of the original, whichever the others were made of",
        "{} records were made of no row of the original, whichever the others were made of",
    ),
    "derived": (
        "1 record has a lo, hi, mid or mean that its cell contradicts",
        "{} records have a lo, hi, mid or mean that its cell contradicts",
    ),
    "unrounded": (
        "1 record has an interval whose ends are not rounded as the policy says",
        "{} records have an interval whose ends are not rounded as the policy says",
    ),
    "not_removed": (
        "the policy removes 1 column that the release still holds",
        "the policy removes {} columns that the release still holds",
    ),
    "rows": (
        "1 published row is not named exactly once by the trace",
        "{} published rows are not named exactly once by the trace",
    ),
    "records": (
        "1 record was not decided exactly once",
        "{} records were not decided exactly once",
    ),
    "weak_first": (
        "1 class had fewer than k people when it first appeared",
        "{} classes had fewer than k people when they first appeared",
    ),
    "weak_new": (
        "1 cluster broke a promise with its own first members",
        "{} clusters broke a promise with their own first members",
    ),
    "loose": (
        "1 cluster publishes a wider span than its first members need",
        "{} clusters publish a wider span than their first members need",
    ),
    "reused_before_made": (
        "1 row reuses a cluster before it was published",
        "{} rows reuse a cluster before it was published",
    ),
    "stale": (
        "1 row reuses a cluster that had expired",
        "{} rows reuse a cluster that had expired",
    ),
    "missed": (
        "1 row could have reused a cluster that loses less",
        "{} rows could have reused a cluster that loses less",
    ),
    "needless": (
        "1 release suppresses k people who could have had a cluster of their own",
        "{} releases suppress k people who could have had a cluster of their own",
    ),
    "late": (
        "1 record waited longer than the method promises",
        "{} records waited longer than the method promises",
    ),
    "overheld": (
        "1 record more than delta was held at once",
        "{} records more than delta were held at once",
    ),
    "weak_release": (
        "1 class has fewer than k people within one release",
        "{} classes have fewer than k people within one release",
    ),
    "out_of_order": (
        "1 release stands before an earlier one",
        "{} releases stand before an earlier one",
    ),
    "unshuffled": (
        "1 release has its rows in the order of arrival, not of what they show",
        "{} releases have their rows in the order of arrival, not of what they show",
    ),
    "orphans": (
        "1 row belongs to no row of the table above it",
        "{} rows belong to no row of the table above them",
    ),
    "repeated_keys": ("1 key is there twice", "{} keys are there twice"),
    "original_keys": (
        "1 key is none of the numbers or pseudonyms that a release gives its rows",
        "{} keys are none of the numbers or pseudonyms that a release gives its rows",
    ),
    "kept_keys": ("1 key is that of the original", "{} keys are those of the original"),
    "kept_order": (
        "the rows of 1 table stand in the order of the original",
        "the rows of {} tables stand in the order of the original",
    ),
    "ordered_keys": (
        "keys follow what 1 column shows, and so tell the order of rows",
        "keys follow what {} columns show, and so tell the order of rows",
    ),
    "extra_rows": (
        "1 row is more than the count beside its parent says",
        "{} rows are more than the counts beside their parents say",
    ),
    "odd_days": (
        "1 day lies outside its span, or was not moved by chance",
        "{} days lie outside their spans, or were not moved by chance",
    ),
    "matched": (
        "1 person of the original fits fewer than k published people",
        "{} people of the original fit fewer than k published people",
    ),
    "invented": ("1 row is more than the original has", "{} rows are more than the original has"),
    "not_starred": (
        "1 suppressed row shows more than the mark",
        "{} suppressed rows show more than the mark",
    ),
}
OTHER = ("1 fault of another kind", "{} faults of another kind")  # of a later version
REMOVED_ROLES = ("identifier", "time", "operation", "weight", "household", "drop")


def unpublished(records: Mapping[str, int]) -> str:
    """How many records a stream leaves out of its release by `leftovers`; empty where none."""
    counts = [f"{records[kind]:,} {kind}" for kind in ("held", "dropped") if records.get(kind)]
    return f"{' and '.join(counts)}, never published" if counts else ""


def fault_sentences(certificate: Mapping[str, Any]) -> Iterator[str]:
    """Every fault that a certificate counts, a sentence each; nothing where there is none."""
    for name, count in (certificate.get("faults") or {}).items():
        if not count:
            continue
        kept = _still_held(certificate) if name == "not_removed" else []
        if len(kept) == count:
            yield from (f"the policy removes '{one}', the release still holds it" for one in kept)
        else:
            yield fault_sentence(name, count)


def fault_sentence(name: str, count: int) -> str:
    """What this number of faults of a kind means."""
    one, many = ONE_AND_MANY.get(name, OTHER)
    return one if count == 1 else many.format(count)


def _still_held(certificate: Mapping[str, Any]) -> list[str]:
    """The columns that should have been removed, or hold names instead of pseudonyms."""
    return [
        str(column["name"])
        for column in certificate.get("columns") or []
        if column["role"] in REMOVED_ROLES and column["technique"] not in ("removed", "pseudonym")
    ]
