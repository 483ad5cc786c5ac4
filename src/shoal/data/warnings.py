"""What a reader must know about a release although every promise holds on it, and what each fault
that a certificate counts means, in a sentence; its key is for programs.
"""

import inspect
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shoal.data.language import inflected

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

_NOTES = (EMPTY_ROWS, FIELDS_DROPPED, HIDDEN_ROWS, NAN_MISSING, READ_AS_TEXT, WRITTEN_ALIKE)
_GRAVE = (
    *(TOGETHER_BELOW, ALL_SUPPRESSED, PLAIN_NAMES_PEOPLE, PRESENCE_DISCLOSED, ROWS_LINKED),
    *(HOUSEHOLD_JOINED, LEDGER_UNJUDGED),
)
_BY_CODE = dict.fromkeys(_NOTES, NOTE) | dict.fromkeys(_GRAVE, GRAVE)


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


FAULTS = {
    "uncovered": "{} [record has|records have] a cell that does not cover [its|their] true value",
    "changed": "{} [record shows|records show] another sensitive or plain value than the original",
    "unmatched": (
        "{} [record was|records were] made of no row of the original, whichever the others were"
        " made of"
    ),
    "derived": "{} [record has|records have] a lo, hi, mid or mean that its cell contradicts",
    "unrounded": (
        "{} [record has|records have] an interval whose ends are not rounded as the policy says"
    ),
    "not_removed": "the policy removes {} [column|columns] that the release still holds",
    "rows": "{} published [row is|rows are] not named exactly once by the trace",
    "records": "{} [record was|records were] not decided exactly once",
    "weak_first": "{} [class|classes] had fewer than k people when [it|they] first appeared",
    "weak_new": "{} [cluster|clusters] broke a promise with [its|their] own first members",
    "loose": (
        "{} [cluster publishes|clusters publish] a wider span than [its|their] first members need"
    ),
    "reused_before_made": "{} [row reuses|rows reuse] a cluster before it was published",
    "stale": "{} [row reuses|rows reuse] a cluster that had expired",
    "missed": "{} [row|rows] could have reused a cluster that loses less",
    "needless": (
        "{} [release suppresses|releases suppress] k people who could have had a cluster of their"
        " own"
    ),
    "late": "{} [record|records] waited longer than the method promises",
    "overheld": "{} [record|records] more than delta [was|were] held at once",
    "weak_release": "{} [class has|classes have] fewer than k people within one release",
    "out_of_order": "{} [release stands|releases stand] before an earlier one",
    "unshuffled": (
        "{} [release has its|releases have their] rows in the order of arrival, not of what they"
        " show"
    ),
    "orphans": "{} [row belongs|rows belong] to no row of the table above [it|them]",
    "repeated_keys": "{} [key is|keys are] there twice",
    "original_keys": (
        "{} [key is|keys are] none of the numbers or pseudonyms that a release gives its rows"
    ),
    "kept_keys": "{} [key is that|keys are those] of the original",
    "kept_order": "the rows of {} [table|tables] stand in the order of the original",
    "ordered_keys": (
        "keys follow what {} [column shows|columns show], and so tell the order of rows"
    ),
    "extra_rows": (
        "{} [row is|rows are] more than the [count|counts] beside [its parent says|their parents"
        " say]"
    ),
    "odd_days": (
        "{} [day lies|days lie] outside [its span, or was|their spans, or were] not moved by chance"
    ),
    "matched": (
        "{} [person of the original fits|people of the original fit] fewer than k published people"
    ),
    "invented": "{} [row is|rows are] more than the original has",
    "not_starred": "{} suppressed [row shows|rows show] more than the mark",
}
"""What a number of faults of each kind means; `inflected` for that number."""
OTHER = "{} [fault|faults] of another kind"  # of a later version
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
    return inflected(FAULTS.get(name, OTHER), count)


def _still_held(certificate: Mapping[str, Any]) -> list[str]:
    """The columns that should have been removed, or hold names instead of pseudonyms."""
    return [
        str(column["name"])
        for column in certificate.get("columns") or []
        if column["role"] in REMOVED_ROLES and column["technique"] not in ("removed", "pseudonym")
    ]


def warn_of_nobody(remarks: Iterable[ReleaseWarning]) -> None:
    """Warns of rows without any value, where a result names rows by their numbers."""
    for remark in remarks:
        if remark.code == EMPTY_ROWS:
            warn(remark)
