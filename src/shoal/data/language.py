"""Messages of page, report and dossier in the reader's language: one catalogue, English without."""

import os
from functools import cache
from gettext import NullTranslations, translation
from pathlib import Path


@cache
def catalogue() -> NullTranslations:
    """The catalogue of the environment's language; an empty one, which leaves the English of the
    source, where there is none. TEXTDOMAINDIR: a folder of catalogues in place of Shoal's own.
    """
    folder = os.environ.get("TEXTDOMAINDIR") or Path(__file__).parents[1] / "locale"
    return translation("shoal", folder, fallback=True)


def gettext(message: str, /, **values: object) -> str:
    """The message in the reader's language, with the values that it names in braces."""
    text = catalogue().gettext(message) if message else ""  # else its header
    return text.format(**values) if values else text


def ngettext(one: str, many: str, count: int, /, **values: object) -> str:
    """The message for this count, which it may name as {count}."""
    return catalogue().ngettext(one, many, count).format(count=count, **values)
