"""Who was counted: people that are known, records that are taken to be people, or mere rows."""

from collections.abc import Mapping
from typing import Any, NamedTuple

KNOWN, ASSUMED, UNKNOWN = "known", "assumed", "unknown"


class Unit(NamedTuple):
    """What figures about people are counted in. first: the word where it is first mentioned."""

    one: str
    many: str
    first: str

    def of(self, count: int) -> str:
        """The word behind a number."""
        return self.one if count == 1 else self.many

    def first_of(self, count: int) -> str:
        """The words behind the first number of a sentence."""
        return self.first.replace(self.many, self.of(count), 1)


UNITS = {
    KNOWN: Unit("person", "people", "people"),
    ASSUMED: Unit("record", "records", "records, each taken to be a person"),
    UNKNOWN: Unit("row", "rows", "rows"),
}


def span_text(sizes: Mapping[str, Any]) -> str:
    """How large classes or groups are: '2 to 5', or '2' where all are of one size."""
    least, most = sizes["min"], sizes["max"]
    return f"{least}" if least == most else f"{least} to {most}"


def people_key(subject: str | None, is_counted: bool) -> str:
    """The certificate's `people`.

    subject: the policy's. is_counted: whether the release or the original names every person.
    """
    if subject is None:
        return ASSUMED
    return KNOWN if is_counted else UNKNOWN


def have_several_rows(certificate: Mapping[str, Any]) -> bool:
    """Whether people are known, and some have several published rows."""
    people, records = certificate.get("subjects"), (certificate.get("records") or {}).get("out")
    return unit(certificate) == UNITS[KNOWN] and people != records


def unit(certificate: Mapping[str, Any]) -> Unit:
    """What a certificate counts in; one of the first schema tells rows from all else only."""
    stated = certificate.get("people")
    if stated in UNITS:
        return UNITS[stated]
    return UNITS[UNKNOWN if certificate.get("counted") == "rows" else KNOWN]
