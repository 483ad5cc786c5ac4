"""What several releases give away together, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

WORDS = {
    "presence": "who knows in which releases a person is",
    "own": "who knows that a person was published, and of others what they are like",
}


def beside_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """How few people and values remain over all releases, then by pair of them."""
    kinds = ", ".join(
        f"{number} is a {release['kind']}" for number, release in enumerate(found["releases"], 1)
    )
    yield f"releases together ({kinds}), for {WORDS[found['attacker']]}:"
    for number, release in enumerate(found["releases"], 1):
        if not release["holds"]:
            yield f"  release {number}: DOES NOT HOLD even alone"
    if not found["people"]:
        yield "  nobody is in two of them, by the names of their subjects"
        return
    yield f"  {_remaining(found, found['k'])}: {_verdict(not found['below_k'])}"
    for row in found["attributes"]:
        yield f"  {_values(row)}"
    for pair in found["pairs"]:
        one, other = pair["releases"]
        yield f"  releases {one} and {other} alone: {_remaining(pair, found['k'])}"


def guard_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """What was done to publish beside releases that are out."""
    kinds = ", ".join(f"a {release['kind']}" for release in found["releases"])
    known = "" if found["attacker"] == "presence" else f", for {WORDS[found['attacker']]}"
    yield f"beside {kinds}{known}: {_remaining(found, found['k'])}: {_verdict(found['holds'])}"
    yield (f"  {_people(found['withheld'])} withheld, {found['newcomers']:,} in none of the others")


def _remaining(row: Mapping[str, Any], k: int) -> str:
    people = f"{_people(row['people'])} in several"
    if not row["people"]:
        return people
    return (
        f"{people}: {row['below_k']:,} left among fewer than {k}, {row['alone']:,} of these alone;"
        f" the least are {row['least']:,}"
    )


def _values(row: Mapping[str, Any]) -> str:
    name = " = ".join(dict.fromkeys(row["names"]))
    text = f"{name}: certain for {row['certain']:,} of {_people(row['people'])}"
    if row["asked"] is not None:
        text += f", fewer than {row['asked']} values for {row['below']:,}"
        text += f": {_verdict(not row['below'])}"
    if row["none"]:
        text += f"; for {row['none']:,} no common value is shown, so it changes"
    return text


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"


def _verdict(holds: bool) -> str:
    return "holds" if holds else "DOES NOT HOLD"
