"""Pages for people, written whole or not at all, and what the page of a release is drawn from."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from shoal.auditor.verdict import CertifiedRelease
from shoal.connectors import files
from shoal.data import language
from shoal.data.certificate import Certificate
from shoal.data.language import gettext, ngettext, readable
from shoal.data.linked import ANCHOR, PEOPLE, Keys, Known
from shoal.data.release import Release
from shoal.data.schema import Schema
from shoal.data.truth import Truth
from shoal.policy.policy import Policy
from shoal.tables.draft import Outcome

if TYPE_CHECKING:
    from shoal.auditor.audit import AuditResult
    from shoal.auditor.dossier.context import ContextLike

Content: TypeAlias = Mapping[str, Any]
"""What a template takes, by the names in it."""


def render_template(template: str, content: Content) -> str:
    """The page; the same for the same content. Whatever is put in is escaped, can't reorder or hide
    the text around it, and nothing may be missing.
    """
    environment = Environment(
        loader=PackageLoader("shoal.reports"),
        autoescape=True,
        finalize=_readable,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    translate(environment)
    environment.filters |= {"number": number_text, "percent": percent_text}
    return environment.get_template(template).render(content)


def translate(environment: Environment) -> None:
    """Draws messages of templates from the catalogue; values are finalized and escaped as ever."""

    def filled(message: str, values: Content) -> Markup:
        shown = environment.finalize or (lambda value: value)
        return Markup(message) % {name: shown(value) for name, value in values.items()}

    def gettext(message: str, /, **values: Any) -> Markup:
        return filled(language.catalogue().gettext(message), values)

    def ngettext(one: str, many: str, num: int, /, **values: Any) -> Markup:
        return filled(language.catalogue().ngettext(one, many, num), {"num": num, **values})

    environment.extend(newstyle_gettext=True)  # before the extension, whose own default is False
    environment.add_extension("jinja2.ext.i18n")
    tag = language.catalogue().info().get("language", "en")
    environment.filters["translated"] = language.gettext  # for words that code picks
    environment.globals |= {"gettext": gettext, "ngettext": ngettext, "language": tag}


def _readable(content: Any) -> Any:
    """Text as a page may show it; charts are made of such text already."""
    return readable(content) if type(content) is str else content


def write_page(page: str, path: Path) -> None:
    """The page as a file."""
    files.write_text(path, page)


# What a report of a release is drawn from, and how its figures read.


@dataclass(frozen=True)
class Measured:
    """All that a report says: one release under one policy. truth: None where the original is not
    at hand.

    reasons: why records are suppressed, with how many.
    """

    certificate: Certificate
    release: Release
    schema: Schema
    policy: Policy
    truth: Truth | None
    reasons: dict[str, int]


def measured_of(found: CertifiedRelease, policy: Policy) -> Measured:
    """What a publish or an audit found."""
    certificate, release = found.certificate, found.release
    if isinstance(found, Outcome):
        draft = found.draft
        schema, truth, reasons = draft.asked.schema, draft.truth, draft.reasons
        return Measured(certificate, release, schema, policy, truth, reasons)
    audited = cast("AuditResult", found)
    return Measured(certificate, release, audited.problem.schema, policy, audited.truth, {})


class Heading(NamedTuple):
    """What a page is of: the name of the file, and what its context states of who releases it to
    whom, and why.
    """

    file: str = ""
    title: str = ""
    owner: str = ""
    recipient: str = ""
    purpose: str = ""

    @classmethod
    def of(cls, released: str, given: "ContextLike | None" = None) -> "Heading":
        """Raises InputError where the context can't be read."""
        name = "" if "://" in released or released == "-" else Path(released).name
        if given is None:
            return cls(name)
        from shoal.auditor.dossier.context import read_context

        context = read_context(given)
        stated = (context.title, context.controller.name, context.recipient.who, context.purpose)
        return cls(name, *(text or "" for text in stated))


def number_text(value: object) -> str:
    """A figure with separators and at most six digits that matter; other things as they are."""
    if value is None:
        return language.gettext("none")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) or value.is_integer():
        return f"{int(value):,}"
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.1f}"


def percent_text(share: float | None, unknown: str | None = None) -> str:
    """A share in percent with one digit, two below one percent. unknown: in place of None."""
    if share is None:
        return language.gettext("not known") if unknown is None else unknown
    return f"{100 * share:.1f} %" if share == 0 or abs(share) >= 0.01 else f"{100 * share:.2g} %"


MOST_NAMED = 6  # columns in one line


def columns_by_table(certificate: Certificate) -> str:
    """How many columns of each linked table are published, beside keys, which are new."""
    tables = [table["name"] for table in certificate["tables"]]
    names = {c["name"] for c in certificate["columns"] if c["role"] != "subject"}
    names -= {*certificate.removed, ANCHOR}
    counts = Counter(next((t for t in tables if n.startswith(f"{t}.")), PEOPLE) for n in names)
    texts = [gettext("{count:,} in {name}", count=counts[t], name=t) for t in tables if counts[t]]
    return listed(texts) or gettext("none")


_KNOWN = {
    "all": gettext("all rows"),
    "count": gettext("the number of rows"),
    "none": gettext("nothing"),
}


def known_text(known: str | int) -> str:
    """What an attacker knows of a person's rows in a table."""
    if known in _KNOWN:
        return _KNOWN[str(known)]
    return ngettext("any {count} row", "any {count} rows", int(known))


def known_of_linked(certificate: Certificate) -> str:
    """What attackers know of a person in linked tables where the promise of k holds."""
    found, (people, *others) = certificate["linked"], certificate["tables"]
    own = [name for name in people["columns"] if name != ANCHOR]
    tables: dict[str | int, list[str]] = {}  # by what is known of them
    for table in others:
        known = table["known"]
        if found["keys"] == Keys.NONE:  # nobody can tell whose a row is
            is_told = known in (Known.ALL, Known.COUNT) and table["parent"] == PEOPLE
            known = Known.COUNT if is_told else Known.NONE
        if known != Known.NONE:
            tables.setdefault(known, []).append(_with_columns(table, known))
    texts = [listed(own)] if own else []
    texts += [
        gettext("{what} of {table}", what=known_text(known), table=listed(names))
        for known, names in tables.items()
    ]
    text = listed(texts) or gettext("that they are among them")
    anchor = found["anchor"] or {}
    if anchor.get("gaps") != "exact":
        return text
    if "worst_posterior" in anchor:  # whoever made the release judged known dates
        return gettext("{known}, of all their dates only one", known=text)
    return gettext("{known}, of all their dates none", known=text)


def _with_columns(table: Mapping[str, Any], known: str | int) -> str:
    """A table's name, and of what in its rows something is known; a set is what is known of it."""
    columns = [] if known == Known.COUNT else table["columns"]
    name = str(table["name"])
    return name if columns in ([], [name]) else f"{name} ({listed(columns)})"


def listed(names: Sequence[str]) -> str:
    """Names as a sentence has them; many are cut short."""
    if len(names) > MOST_NAMED:
        more = gettext("{count} more", count=len(names) - MOST_NAMED + 1)
        names = [*names[: MOST_NAMED - 1], more]
    parts = ", ".join(names[:-1]), "".join(names[-1:])
    return gettext(" and ").join(filter(None, parts))
