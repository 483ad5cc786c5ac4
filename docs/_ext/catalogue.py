"""Every message of page, report and dossier, src/shoal/locale/shoal.pot, from templates and Python.

`make catalogue` runs this file; the tests compare the catalogue with what it writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import write_po

from shoal.auditor.dossier.context import SHOWN, Context, Rating, parts_of, text_fields, words_of
from shoal.auditor.dossier.dossier import ATTACKS, MEASURED, NOT_ACCEPTABLE, field_words
from shoal.data.certificate_shape import UNITS
from shoal.data.warnings import GRAVE, OPEN
from shoal.reports import attacks
from shoal.web.routes_of_release import GRADES

SOURCE = Path(__file__).resolve().parents[2] / "src" / "shoal"
CATALOGUE = SOURCE / "locale" / "shoal.pot"
METHODS = [("*/templates/*.j2", "jinja2"), ("reports/*.py", "python"), ("web/*.py", "python")]
PICKED = "words that code picks"
STATES = ("done", "refused", "failed", "stopped", "interrupted", "waiting", "running", "ended")
OUTCOMES = ("published", "waits", "withheld", "refused")
ATTACKED = ("inference", "linkability", "membership", "singling-out")
COVERED = ("increment", "table")
TEMPLATES = {"newstyle_gettext": "true", "silent": "false"}
HEADER = b'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'


def messages() -> Catalog:
    """The messages with the files that have them; without lines, which change with every edit."""
    found = Catalog(locale="en", project="Shoal")
    options = {"*/templates/*.j2": TEMPLATES}
    for path, _line, message, _comments, context in extract_from_dir(SOURCE, METHODS, options):
        found.add(message, locations=[(path, 0)], context=context)
    for word in picked():
        found.add(word, locations=[(PICKED, 0)])
    return found


def picked() -> Iterator[str]:
    """Words of lower layers, which pages look up as they find them."""
    yield from (*STATES, *OUTCOMES, *COVERED, *GRADES, *SHOWN.values(), *MEASURED.values())
    yield from (word for unit in UNITS.values() for word in unit)
    yield from (
        attacks.NOTHING,
        attacks.NO_MORE,
        attacks.NONE,
        attacks.SOME,
        attacks.NO_DIFFERENCE,
        attacks.TOO_FEW,
        attacks.MUCH,
        attacks.NOT_MEASURED,
    )
    yield from ("accepted", "not accepted", GRAVE, OPEN, *NOT_ACCEPTABLE)
    yield from (field_words(f"{ATTACKS}.{name}") for name in ATTACKED)
    yield from (words_of(field) for field in (*Context.model_fields, *text_fields()))
    yield from (word for field in Context.model_fields for word in parts_of(field).values())
    yield from (str(field.title) for field in Rating.model_fields.values())


def catalogue() -> bytes:
    """The catalogue as a file for translators."""
    written = BytesIO()
    write_po(written, messages(), omit_header=True, include_lineno=False, sort_output=True)
    return HEADER + written.getvalue()


if __name__ == "__main__":
    CATALOGUE.parent.mkdir(exist_ok=True)
    CATALOGUE.write_bytes(catalogue())
