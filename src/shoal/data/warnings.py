"""What a reader must know about a release although every promise holds on it."""

from __future__ import annotations

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
MOSTLY_ASIDE = "mostly-set-aside"
EMPTY_ROWS = "empty-rows"
ROWS_APART = "rows-apart"
HIDDEN_ROWS = "hidden-rows"


class ReleaseWarning(UserWarning):
    """A sentence with a code that programs can rely on; holds no value of the data."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text

    def report(self) -> dict[str, str]:
        """As a certificate states it."""
        return {"code": self.code, "text": self.text}
