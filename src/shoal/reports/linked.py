"""What is known of linked tables, in sentences: on a certificate, and before a release."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shoal.data.certificate import Certificate
from shoal.data.linked import PEOPLE
from shoal.data.people import span_text
from shoal.data.warnings import fault_sentences

_OF_ROWS = {"count": "the number of rows", "1": "any 1 row", "all": "all rows"}


def linked_lines(certificate: Certificate) -> Iterator[str]:
    """Promises asked and measured, tables, who is betrayed by what, and what was lost."""
    classes, people = certificate["classes"], certificate["records"]
    for promise in certificate["promises"]:
        over = f" over {', '.join(promise['attributes'])}" if promise["attributes"] else ""
        measured = promise["measured"]
        found = "nothing (no class)" if measured is None else f"{measured:.6g}"
        verdict = "holds" if promise["holds"] else "DOES NOT HOLD"
        yield f"{promise['model']}{over}: asked {promise['asked']}, measured {found}: {verdict}"
    kinds = f"{classes['count']} kinds of {span_text(classes)} people alike in all tables"
    yield f"{kinds}, {people['out']} people, {people['withheld']} of these withheld"
    yield from map(_of_table, certificate["tables"])
    found = certificate["linked"]
    yield from exposure_lines(found["exposed"], certificate["together"]["asked"])
    if found["matching"] is not None:
        yield _of_attack(found["matching"], certificate["together"]["asked"])
    if found["bundle_loss"] is not None:
        yield f"information loss (bundles) {100 * found['bundle_loss']:.2f} %"
    if found["audited"] == "files":
        yield "measured on the published files alone; --original tries to match people as well"
    yield from (f"{sentence}: DOES NOT HOLD" for sentence in fault_sentences(certificate))


def _of_table(table: Mapping[str, Any]) -> str:
    rows = table["rows"]
    withheld = "" if rows["withheld"] is None else f", {rows['withheld']} withheld"
    return f"table {table['name']}: {rows['published']} rows{withheld}"


def _of_attack(found: Mapping[str, int], k: int) -> str:
    tried = f"{found['tried']} of {found['people']} people were tried to match with the originals"
    if not found["below"]:
        return f"{tried}: each fits at least {k} published people"
    return (
        f"{tried}: {found['below']} fit fewer than {k} published people, one fits {found['least']}"
    )


def exposure_lines(exposed: Sequence[Mapping[str, Any]], k: int) -> Iterator[str]:
    """How many people hide among fewer than k, by what is known of which table."""
    for one in exposed:
        words = _OF_ROWS.get(one["known"], f"any {one['known']} rows")
        what = "their own cells" if one["table"] == PEOPLE else f"{words} of {one['table']}"
        below = "not judged, too many sets" if one["below"] is None else one["below"]
        yield f"known {what}: {below} people hide among fewer than {k}"
