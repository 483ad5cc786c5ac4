"""What a reader must know about a release although every promise holds on it."""

from __future__ import annotations

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
EMPTY_ROWS = "empty-rows"
ROWS_APART = "rows-apart"
HIDDEN_ROWS = "hidden-rows"
ORDER_KEPT = "order-kept"


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
    HIDDEN_ROWS: NOTE,
    WRITTEN_ALIKE: NOTE,
    TOGETHER_BELOW: GRAVE,
    PLAIN_NAMES_PEOPLE: GRAVE,
    PRESENCE_DISCLOSED: GRAVE,
}


class ReleaseWarning(UserWarning):
    """A finding: a sentence with a code that programs can rely on; holds no value of the data.

    severity: one of `SEVERITIES`; by default what its code has, else open. column: the one that it
        is about, if it is about one.
    """

    def __init__(
        self, code: str, text: str, column: str | None = None, severity: str | None = None
    ) -> None:
        super().__init__(text)
        self.code, self.text, self.column = code, text, column
        self.severity = severity or _BY_CODE.get(code, OPEN)

    @classmethod
    def of(cls, stated: Mapping[str, str]) -> ReleaseWarning:
        """As a certificate states it; earlier ones state neither severity nor column."""
        column, severity = stated.get("column"), stated.get("severity")
        return cls(stated["code"], stated["text"], column, severity)

    @property
    def key(self) -> tuple[str, ...]:
        """What makes it the finding that it is."""
        return self.code, self.severity, self.text, self.column or ""

    def report(self) -> dict[str, str]:
        """As a certificate states it."""
        said = {"code": self.code, "severity": self.severity, "text": self.text}
        return said | ({} if self.column is None else {"column": self.column})
