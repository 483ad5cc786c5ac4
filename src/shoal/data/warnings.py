"""What a reader must know about a release although every promise holds on it."""

import re
from collections.abc import Mapping

PEOPLE_ASSUMED = "people-assumed"
TOGETHER_BELOW = "together-below-k"
WITHHELD_FEW = "withheld-few"
HIERARCHY_REPEATS = "hierarchy-repeats"
FORMULA_CELLS = "formula-cells"
OPEN_QUESTION = "open-question"
PRESENCE_DISCLOSED = "presence-disclosed"
SENSITIVE_UNPROMISED = "sensitive-unpromised"
WRITTEN_ALIKE = "written-alike"
NAMES_LIKE_DATA = "names-like-data"
PLAIN_NAMES_PEOPLE = "plain-names-people"
PLAIN_SINGLES_OUT = "plain-singles-out"
QUASI_LEFT_OUT = "quasi-left-out"
VALUES_UNIQUE = "values-unique"
OUTLIER_PUBLISHED = "outlier-published"
MOSTLY_ASIDE = "mostly-set-aside"
FIELDS_DROPPED = "fields-dropped"
EMPTY_ROWS = "empty-rows"
ROWS_APART = "rows-apart"
HIDDEN_ROWS = "hidden-rows"
ORDER_KEPT = "order-kept"
LEDGER_UNJUDGED = "ledger-unjudged"


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
    WRITTEN_ALIKE: NOTE,
    TOGETHER_BELOW: GRAVE,
    PLAIN_NAMES_PEOPLE: GRAVE,
    PRESENCE_DISCLOSED: GRAVE,
    LEDGER_UNJUDGED: GRAVE,
}


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


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", text)
